// Smoothing, and bands over runs that differ in their seeds only.
import { append, emptyLine, indexBefore, type Line } from './line';

/// An exponential mean over x: a point at distance d behind counts exp(-d / width), however densely
/// points lie. The weights are normalised, so the start is not drawn towards anything. Starts anew
/// behind a gap.
export function smoothed(line: Line, width: number): Line {
  if (!(width > 0)) return line;
  const out: Line = { ...emptyLine(), raw: line.raw };
  let sum = 0;
  let weight = 0;
  let previous = NaN;
  for (let i = 0; i < line.xs.length; ++i) {
    const x = line.xs[i] as number;
    const y = line.ys[i] as number;
    if (Number.isNaN(y)) {
      sum = weight = 0;
      append(out, x, NaN);
      continue;
    }
    const decay = weight > 0 ? Math.exp(-Math.abs(x - previous) / width) : 0;
    sum = sum * decay + y;
    weight = weight * decay + 1;
    previous = x;
    append(out, x, sum / weight);
  }
  return out;
}

/// Student's t, 0.975 quantile, for 1 to 30 degrees of freedom.
const t975 = [
  12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281, 2.201, 2.1788, 2.1604, 2.1448,
  2.1314, 2.1199, 2.1098, 2.1009, 2.093, 2.086, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484,
  2.0452, 2.0423,
];

/// Beyond 30 by the Cornish-Fisher expansion around the normal quantile, right to 4 digits there.
export function studentT975(degrees: number): number {
  const table = t975[degrees - 1];
  if (table !== undefined) return table;
  const z = 1.959964;
  return z + (z ** 3 + z) / (4 * degrees) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2);
}

export interface Band {
  mean: Line;
  low: Line;
  high: Line;
}

/// Mean and 95 % confidence interval of the mean, at every x at which one of the lines has a point
/// (docs/sweeps.md, "Bands"): a line keeps its value until its next point and behind its end. The band
/// begins where all lines have begun, and ends before the first value that is not finite.
export function bandOf(lines: readonly Line[]): Band {
  const band: Band = { mean: emptyLine(), low: emptyLine(), high: emptyLine() };
  const used = lines.filter((line) => line.xs.length > 0);
  if (used.length === 0) return band;
  const begin = Math.max(...used.map((line) => line.xs[0] as number));
  const end = Math.min(...used.map((line) => line.faults[0]?.x ?? Infinity));
  const xs = [...new Set(used.flatMap((line) => line.xs))]
    .filter((x) => x >= begin && x < end)
    .sort((a, b) => a - b);
  const n = used.length;
  const factor = n > 1 ? studentT975(n - 1) / Math.sqrt(n) : 0;
  for (const x of xs) {
    const values = used.map((line) => line.ys[indexBefore(line.xs, x)] as number);
    const mean = values.reduce((sum, value) => sum + value, 0) / n;
    const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
    const half = n > 1 ? factor * Math.sqrt(squares / (n - 1)) : 0;
    append(band.mean, x, mean);
    append(band.low, x, mean - half);
    append(band.high, x, mean + half);
  }
  return band;
}
