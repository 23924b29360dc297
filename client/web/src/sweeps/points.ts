// The points of a sweep with what came out, from the daemon's table or, while runs go on, from the runs.
import { studentT975 } from '../curves/smooth';
import { groupRuns } from '../lib/runs';
import { isFinal, num, stateOf, type Run } from '../lib/wire';

export type Metric = 'objective_last' | 'tail_mean';

export interface SweepPoint {
  index: number;
  swept: Record<string, unknown>;
  runs: number;
  /// Mean over the repeats with its 95 % confidence interval; NaN unless all of them succeeded.
  value: number;
  low: number;
  high: number;
  stable: boolean | null;
  outcome: 'succeeded' | 'diverged' | 'failed' | 'cancelled' | 'open';
}

export interface Best {
  point: number;
  value: number;
  /// Keys whose lowest or highest number is the best one's: a better one may lie outside.
  edges: string[];
}

export interface Sweep {
  points: SweepPoint[];
  best: Best | null;
  warnings: string[];
}

interface TableInterval {
  mean: number | null;
  low?: number | null;
  high?: number | null;
}
interface Table {
  runs: { run: number; swept: Record<string, unknown>; outcome: string }[];
  groups: {
    point: number;
    swept: Record<string, unknown>;
    runs: number;
    objective_last?: TableInterval | null;
    tail_mean?: TableInterval | null;
    stable: boolean | null;
  }[];
  best: Record<string, { point: number; value: number; edges: { key: string }[] } | null>;
  warnings: string[];
}

const worst = ['failed', 'cancelled', 'open', 'diverged', 'succeeded'] as const;

function worstOf(outcomes: readonly string[]): SweepPoint['outcome'] {
  return worst.find((outcome) => outcomes.includes(outcome)) ?? 'open';
}

/// The table that the daemon makes once all runs have ended (docs/sweeps.md, "The table").
export function sweepOfTable(text: string, metric: Metric): Sweep {
  const table = JSON.parse(text) as Table;
  const repeats = table.groups.reduce((most, group) => Math.max(most, group.runs), 1);
  const outcomes = new Map<number, string[]>();
  for (const { run, outcome } of table.runs) {
    const point = Math.floor(run / repeats);
    outcomes.set(point, [...(outcomes.get(point) ?? []), outcome]);
  }
  const points = table.groups.map((group): SweepPoint => {
    const interval = group[metric];
    const mean = num(interval?.mean);
    return {
      index: group.point,
      swept: group.swept,
      runs: group.runs,
      value: mean,
      low: interval?.low == null ? mean : num(interval.low),
      high: interval?.high == null ? mean : num(interval.high),
      stable: group.stable,
      outcome: worstOf(outcomes.get(group.point) ?? []),
    };
  });
  const best = table.best?.[metric === 'objective_last' ? 'by_final' : 'by_tail_mean_of_stable'] ?? null;
  return {
    points,
    best: best && { point: best.point, value: best.value, edges: best.edges.map((edge) => edge.key) },
    warnings: table.warnings ?? [],
  };
}

function outcomeOf(run: Run): SweepPoint['outcome'] {
  const state = stateOf(run.state);
  if (!isFinal(state)) return 'open';
  if (state === 'SUCCEEDED') return run.message.startsWith('diverged') ? 'diverged' : 'succeeded';
  return state === 'FAILED' ? 'failed' : 'cancelled';
}

/// While runs go on: last objectives of the points all of whose runs have succeeded.
export function sweepOfRuns(runs: readonly Run[]): Sweep {
  const points = groupRuns(runs).map((group): SweepPoint => {
    const outcome = worstOf(group.runs.map(outcomeOf));
    const values = group.runs.map((run) => num(run.objective_last));
    const n = values.length;
    const mean = outcome === 'succeeded' ? values.reduce((sum, each) => sum + each, 0) / n : NaN;
    const squares = values.reduce((sum, each) => sum + (each - mean) ** 2, 0);
    const half = n > 1 ? (studentT975(n - 1) * Math.sqrt(squares / (n - 1))) / Math.sqrt(n) : 0;
    return {
      index: group.index,
      swept: Object.fromEntries(group.swept.map(({ path, value }) => [path, value])),
      runs: n,
      value: mean,
      low: mean - half,
      high: mean + half,
      stable: null,
      outcome,
    };
  });
  let best: Best | null = null;
  for (const point of points) {
    if (point.value < (best?.value ?? Infinity)) best = { point: point.index, value: point.value, edges: [] };
  }
  return { points, best, warnings: [] };
}

/// Keys that take at least two numbers.
export function numericKeys(points: readonly SweepPoint[]): string[] {
  const keys = Object.keys(points[0]?.swept ?? {});
  return keys.filter((key) => {
    const values = points.map((point) => point.swept[key]);
    return values.every((value) => typeof value === 'number') && new Set(values).size > 1;
  });
}

export interface SweepLine {
  label: string;
  points: SweepPoint[];
}

/// One line for each combination of the other keys' values, in the order of x.
export function sweepLines(points: readonly SweepPoint[], key: string, nameOf: (path: string) => string): SweepLine[] {
  const lines = new Map<string, SweepLine>();
  for (const point of points) {
    const others = Object.entries(point.swept).filter(([path]) => path !== key);
    const label = others.map(([path, value]) => `${nameOf(path)} ${typeof value === 'number' ? value : JSON.stringify(value)}`).join(', ');
    const line = lines.get(label) ?? { label, points: [] };
    line.points.push(point);
    lines.set(label, line);
  }
  for (const line of lines.values()) line.points.sort((a, b) => num(a.swept[key] as number) - num(b.swept[key] as number));
  return [...lines.values()];
}
