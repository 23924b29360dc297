// The daemon's JSON (docs/http.md): protobuf's JSON form, in which 64-bit numbers are texts and doubles
// that are not finite are "NaN", "Infinity", "-Infinity".

export type Int64 = string | number;
export type Double = number | string;

/// NaN for what is absent.
export function num(value: Int64 | Double | undefined | null): number {
  return value === undefined || value === null ? NaN : Number(value);
}

export const states = ['QUEUED', 'STARTING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const;
export type State = (typeof states)[number];

export function stateOf(text: string | undefined): State {
  const name = (text ?? '').replace('JOB_STATE_', '') as State;
  return states.includes(name) ? name : 'QUEUED';
}

export function isFinal(state: State): boolean {
  return state === 'SUCCEEDED' || state === 'FAILED' || state === 'CANCELLED';
}

export interface Plugin {
  kind: string;
  parameters?: Record<string, unknown>;
}

export interface JobSpec {
  name: string;
  objective?: Plugin;
  schedule?: Plugin;
  optimizer?: Plugin;
  cost?: Record<string, unknown>;
  link?: Record<string, unknown>;
  observe?: Record<string, unknown>;
  clock: string;
  seed: Int64;
  more?: Record<string, unknown>;
}

export interface RunCounts {
  total: number;
  under_way: number;
  succeeded: number;
  failed: number;
  cancelled: number;
}

export interface Progress {
  ticks_done: Int64;
  ticks_total: Int64;
  updates_done: Int64;
  updates_total: Int64;
  microbatches_done: Int64;
  microbatches_total: Int64;
  runs?: RunCounts;
}

export interface Job {
  id: number;
  spec: JobSpec;
  state: string;
  message: string;
  attempt: number;
  submitted_unix_ms: Int64;
  started_unix_ms: Int64;
  ended_unix_ms: Int64;
  progress?: Progress;
  objective_last?: Double;
  objective_best?: Double;
  last_sequence: Int64;
  pool: string;
  ranks: number[];
  summary_json: string;
  /// The name of the token that submitted it.
  user?: string;
}

export interface Swept {
  path: string;
  value: unknown;
}

export interface Run {
  job: number;
  number: number;
  state: string;
  message: string;
  attempt: number;
  started_unix_ms: Int64;
  ended_unix_ms: Int64;
  progress?: Progress;
  objective_last?: Double;
  objective_best?: Double;
  pool: string;
  ranks: number[];
  summary_json: string;
  swept: Swept[];
  seed: Int64;
}

export interface Point {
  series: string;
  tick: Int64;
  updates: Int64;
  microbatch: Int64;
  value: Double;
}

export interface JobEvent {
  sequence: Int64;
  time_unix_ms: Int64;
  run: number;
  state?: { state: string; message: string; attempt: number };
  run_state?: { state: string; message: string; attempt: number };
  point?: Point;
  log?: { severity: string; text: string };
}

export interface EventList {
  events: JobEvent[];
  next_sequence: Int64;
}

export interface StreamFrame {
  events?: EventList;
  live_from_here?: Job;
  progress?: Progress;
  heartbeat?: object;
  closing?: string;
  ended?: Job;
}

export interface PoolInfo {
  name: string;
  rank_hosts: string[];
  rank_jobs: number[];
  attached_unix_ms: Int64;
  heartbeat_unix_ms: Int64;
  program_version: string;
  local: boolean;
  state: string;
  slurm_job: string;
  lease_ends_unix_ms: Int64;
}

export interface SeriesBucket {
  begin: Int64;
  count: Int64;
  not_finite: Int64;
  first_x: Int64;
  last_x: Int64;
  last: Double;
  min?: Double;
  min_x: Int64;
  max?: Double;
  max_x: Int64;
}

export interface SeriesData {
  from: Int64;
  to: Int64;
  count: Int64;
  raw: boolean;
  points: { x: Int64; value: Double }[];
  width: Int64;
  buckets: SeriesBucket[];
  next_sequence: Int64;
}

export const seriesNames = [
  'objective',
  'last_stage_loss',
  'validation',
  'gradient_norm_sq',
  'gradient_norm_sq_mean',
  'bound',
  'gap',
] as const;
export type Series = (typeof seriesNames)[number];

export function seriesOf(text: string): Series {
  return text.replace('SERIES_', '').toLowerCase() as Series;
}
