// The runs of a job, and those that differ in their seeds only.
import { get } from './api';
import { formatValue } from './format';
import type { Run, Swept } from './wire';

interface RunList {
  runs: Run[];
  next_from: number;
}

export async function allRuns(job: number): Promise<Run[]> {
  const runs: Run[] = [];
  let from = 0;
  do {
    const page: RunList = await get(`/v1/jobs/${job}/runs?from=${from}&limit=1000`);
    runs.push(...page.runs);
    from = page.next_from;
  } while (from > 0);
  return runs;
}

export interface Group {
  index: number;
  swept: Swept[];
  runs: Run[];
}

/// Points of a sweep, in the order of their first runs.
export function groupRuns(runs: readonly Run[]): Group[] {
  const groups = new Map<string, Group>();
  for (const run of runs) {
    const swept = run.swept ?? [];
    const key = JSON.stringify(swept.map(({ path, value }) => [path, value]));
    const group = groups.get(key) ?? { index: groups.size, swept, runs: [] };
    group.runs.push(run);
    groups.set(key, group);
  }
  return [...groups.values()];
}

/// "optimizer.sgd.learning_rate" -> "learning_rate"
export function shortPath(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

export function formatSwept(swept: readonly Swept[]): string {
  return swept
    .map(({ path, value }) => `${shortPath(path)}=${typeof value === 'number' ? formatValue(value) : JSON.stringify(value)}`)
    .join(' ');
}
