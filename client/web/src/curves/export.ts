// The curves that are shown, as CSV.
import type { PlotLine } from './plot';

function quoted(text: string): string {
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/// One row per point: curve, x, value. Numbers are the shortest that read back.
export function csvOf(lines: readonly PlotLine[], xName: string, yName: string, inside: (x: number) => boolean): string {
  const rows = [`curve,${quoted(xName)},${quoted(yName)}`];
  for (const line of lines) {
    line.xs.forEach((x, i) => {
      if (!inside(x)) return;
      const y = line.ys[i] as number;
      rows.push(`${quoted(line.label)},${x},${Number.isNaN(y) ? 'nan' : y}`);
    });
  }
  return rows.join('\n') + '\n';
}
