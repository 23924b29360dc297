// Numbers, times and names as people read them.
import { num, stateOf, type Job, type JobSpec, type Plugin, type Progress } from './wire';

/// Six digits at most, exponents where they are shorter; "NaN" and "∞" say what they are.
export function formatValue(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) {
    return value.toExponential(4).replace(/\.?0+e/, 'e').replace('e+', 'e').replaceAll('-', '−');
  }
  return String(Number(value.toPrecision(6))).replaceAll('-', '−');
}

/// "512", "20.8k", "1.2M"
export function formatCount(value: number): string {
  if (!Number.isFinite(value)) return '';
  for (const [unit, letter] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e4, 'k'],
  ] as const) {
    if (Math.abs(value) >= unit) {
      const scaled = value / (letter === 'k' ? 1e3 : unit);
      return String(Number(scaled.toPrecision(4))) + letter;
    }
  }
  return String(Math.round(value));
}

export type TickUnit = 'ticks' | 'ns';

/// Jobs whose times are durations, or that say how long a tick is, are counted in nanoseconds.
export function tickUnitOf(spec: JobSpec | undefined): TickUnit {
  if (!spec) return 'ticks';
  const isDuration = (value: unknown): boolean => {
    if (typeof value === 'string') return /^\s*[0-9.]*[1-9][0-9.]*(e[+-]?\d+)?\s*(ns|us|µs|ms|s|min|h|[kMGT]?bit\/s|[kMGT]?B\/s)\s*$/.test(value);
    return typeof value === 'object' && value !== null && Object.values(value).some(isDuration);
  };
  return spec.clock === 'real' || spec.more?.tick !== undefined || [spec.cost, spec.link, spec.observe, spec.more].some(isDuration) ? 'ns' : 'ticks';
}

const timeUnits = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'us'],
  [1, 'ns'],
] as const;

/// "1,024 ticks" are counted, nanoseconds are told in a unit in which they are short: "2.239 s".
export function formatTicks(ticks: number, unit: TickUnit): string {
  if (!Number.isFinite(ticks)) return '';
  if (unit === 'ticks') return `${ticks.toLocaleString('en')} ${Math.abs(ticks) === 1 ? 'tick' : 'ticks'}`;
  const [size, name] = timeUnits.find(([each]) => Math.abs(ticks) >= each) ?? timeUnits[3];
  return `${Number((ticks / size).toPrecision(6))} ${name}`.replaceAll('-', '−');
}

/// The unit for an axis that goes up to `most`, and how many ticks it has.
export function axisUnit(most: number, unit: TickUnit): { size: number; name: string } {
  if (unit === 'ticks') return { size: 1, name: 'ticks' };
  const [size, name] = timeUnits.find(([each]) => most >= each) ?? timeUnits[3];
  return { size, name };
}

/// "0.4 s", "12 s", "3 min 20 s", "2 h 05 min", "3 d 4 h"
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms)) return '';
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/// In one unit, for narrow columns: "4 s", "12 min", "3 h", "9 d".
export function formatAge(ms: number): string {
  if (!Number.isFinite(ms)) return '';
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
}

/// From 0 to 1; NaN when nothing is known.
export function fractionDone(progress: Progress | undefined): number {
  if (!progress) return NaN;
  const runs = progress.runs;
  if (runs && runs.total > 1) return (runs.succeeded + runs.failed + runs.cancelled) / runs.total;
  for (const [done, total] of [
    [progress.ticks_done, progress.ticks_total],
    [progress.microbatches_done, progress.microbatches_total],
    [progress.updates_done, progress.updates_total],
  ] as const) {
    if (num(total) > 0) return Math.min(1, num(done) / num(total));
  }
  return NaN;
}

/// Milliseconds until a running job ends, if it goes on as fast as it has; NaN when that is not known.
export function timeLeft(job: Job, nowMs: number): number {
  const done = fractionDone(job.progress);
  const started = num(job.started_unix_ms);
  if (stateOf(job.state) !== 'RUNNING' || !(done > 0.005) || !(started > 0)) return NaN;
  return ((nowMs - started) * (1 - done)) / done;
}

export function sizesOf(schedule: Plugin | undefined): { stages?: number; replicas?: number; localSteps?: number } {
  const all = schedule?.parameters ?? {};
  const whole = (name: string) => (typeof all[name] === 'number' ? (all[name] as number) : undefined);
  const stages = whole('stages');
  const replicas = whole('replicas');
  const localSteps = whole('local_steps');
  return {
    ...(stages === undefined ? {} : { stages }),
    ...(replicas === undefined ? {} : { replicas }),
    ...(localSteps === undefined ? {} : { localSteps }),
  };
}

/// "S4", "S4 R4 H5"
export function formatSizes(schedule: Plugin | undefined): string {
  const { stages, replicas, localSteps } = sizesOf(schedule);
  return [
    stages === undefined ? '' : `S${stages}`,
    replicas === undefined ? '' : `R${replicas}`,
    localSteps === undefined ? '' : `H${localSteps}`,
  ]
    .filter(Boolean)
    .join(' ');
}

export function nameOf(job: Pick<Job, 'id' | 'spec'>): string {
  return job.spec?.name || `${job.spec?.schedule?.kind ?? 'job'} on ${job.spec?.objective?.kind ?? '?'}`;
}

export function runsOf(job: Job): number {
  return job.progress?.runs?.total ?? 1;
}
