// A run's timelines and schedule.csv, and which weights each forward read.

export const kinds = ['F', 'B', 'U', 'SYNC'] as const;
export type Kind = (typeof kinds)[number];

/// Actions in the global order of the file (end, then stage), as columns.
export interface Timeline {
  count: number;
  row: Int32Array;
  kind: Uint8Array;  // index of `kinds`
  microbatch: Int32Array;
  replica: Int32Array;
  start: Float64Array;
  end: Float64Array;
  rows: number;
  replicas: number;
  makespan: number;
}

/// Which rows there are. With `placement: spread` each replica has rows of its own.
export interface Shape {
  stages: number;
  replicas: number;
  spread: boolean;
}

/// From the first line of schedule.csv.
export function parseShape(text: string): Shape {
  const line = text.slice(0, Math.max(0, text.indexOf('\n')));
  const fields = new Map(line.split(' ').map((word) => word.split('=', 2) as [string, string | undefined]));
  const stages = Number(fields.get('stages'));
  if (!line.startsWith('# pipewright schedule') || !(stages >= 1)) throw new Error('this is no schedule.csv');
  return { stages, replicas: Number(fields.get('replicas') ?? 1), spread: fields.get('placement') === 'spread' };
}

export function rowsOf(shape: Shape): number {
  return shape.spread ? shape.stages * shape.replicas : shape.stages;
}

/// "stage 2", or "2 of r1": stage 2 of replica 1.
export function rowName(row: number, shape: Shape): string {
  if (!shape.spread) return `stage ${row}`;
  return `${row % shape.stages} of r${Math.floor(row / shape.stages)}`;
}

export function parseTimeline(text: string, shape: Shape): Timeline {
  const lines = text.split('\n');
  if (lines[0]?.trim() !== 'stage,kind,microbatch,replica,start,end') throw new Error('this is no timeline.csv');
  const most = lines.length;
  const timeline: Timeline = {
    count: 0,
    row: new Int32Array(most),
    kind: new Uint8Array(most),
    microbatch: new Int32Array(most),
    replica: new Int32Array(most),
    start: new Float64Array(most),
    end: new Float64Array(most),
    rows: rowsOf(shape),
    replicas: shape.replicas,
    makespan: 0,
  };
  for (let i = 1; i < lines.length; ++i) {
    const line = lines[i] as string;
    if (line === '') continue;
    const cells = line.split(',');
    const kind = kinds.indexOf(cells[1] as Kind);
    const stage = Number(cells[0]);
    const replica = Number(cells[3]);
    if (cells.length !== 6 || kind < 0 || !(stage < shape.stages && replica < shape.replicas)) {
      throw new Error(`timeline.csv, line ${i + 1}: '${line.slice(0, 80)}' is no action`);
    }
    const at = timeline.count++;
    timeline.row[at] = shape.spread ? replica * shape.stages + stage : stage;
    timeline.kind[at] = kind;
    timeline.microbatch[at] = Number(cells[2]);
    timeline.replica[at] = replica;
    timeline.start[at] = Number(cells[4]);
    timeline.end[at] = Number(cells[5]);
    timeline.makespan = Math.max(timeline.makespan, Number(cells[5]));
  }
  return timeline;
}

/// Of RPD's forwards: the update count whose weights each reads, by "row,microbatch".
export function parseReads(text: string): Map<string, number> {
  const reads = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const cells = line.split(',');
    if (cells[1] === 'F' && cells[5]) reads.set(`${cells[0]},${cells[2]}`, Number(cells[5]));
  }
  return reads;
}

export interface Reading {
  /// Updates of this block (and replica) before the forward read it.
  version: number;
  /// Version at the update that follows from it, minus that; NaN when no update of it follows.
  staleness: number;
  /// Of RPD: block updates between the reading and the update.
  delay: number;
}

/// By the action's index in the timeline, for every forward (docs/theory.md says what staleness is).
export function readingsOf(timeline: Timeline, reads: ReadonlyMap<string, number>): Map<number, Reading> {
  const readings = new Map<number, Reading>();
  const versions = new Map<number, number>();  // by row and replica
  const forwards = new Map<string, number>();  // F of "row,replica,microbatch" that waits for its U
  const updatesOfRow = new Map<number, number[]>();  // RPD: the numbers k of a row's updates, ascending
  if (reads.size > 0) {
    for (let i = 0; i < timeline.count; ++i) {
      if (kinds[timeline.kind[i] as number] !== 'U') continue;
      const row = timeline.row[i] as number;
      const list = updatesOfRow.get(row) ?? [];
      list.push(timeline.microbatch[i] as number);
      updatesOfRow.set(row, list);
    }
    for (const list of updatesOfRow.values()) list.sort((a, b) => a - b);
  }
  for (let i = 0; i < timeline.count; ++i) {
    const row = timeline.row[i] as number;
    const replica = timeline.replica[i] as number;
    const microbatch = timeline.microbatch[i] as number;
    const block = row * timeline.replicas + replica;
    const version = versions.get(block) ?? 0;
    const key = `${row},${replica},${microbatch}`;
    const kind = kinds[timeline.kind[i] as number];
    if (kind === 'F') {
      const read = reads.get(`${row},${microbatch}`);
      const seen = read === undefined ? version : countBelow(updatesOfRow.get(row) ?? [], read);
      readings.set(i, { version: seen, staleness: NaN, delay: read === undefined ? NaN : microbatch - read });
      forwards.set(key, i);
    } else if (kind === 'U') {
      versions.set(block, version + 1);
      const reading = readings.get(forwards.get(key) ?? -1);
      if (reading) {
        const before = reads.size > 0 ? countBelow(updatesOfRow.get(row) ?? [], microbatch) : version;
        reading.staleness = before - reading.version;
      }
      forwards.delete(key);
    }
  }
  return readings;
}

function countBelow(sorted: readonly number[], limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface Flight {
  time: number[];
  count: number[];
  most: number;
}

/// How many microbatches are inside at each time: steps (time, count), from the first start of each to
/// its last end.
export function inFlight(timeline: Timeline): Flight {
  const first = new Map<number, number>();
  const last = new Map<number, number>();
  for (let i = 0; i < timeline.count; ++i) {
    const microbatch = timeline.microbatch[i] as number;
    // Of a SYNC it is the round.
    if (kinds[timeline.kind[i] as number] === 'SYNC') continue;
    const start = timeline.start[i] as number;
    const end = timeline.end[i] as number;
    first.set(microbatch, Math.min(first.get(microbatch) ?? Infinity, start));
    last.set(microbatch, Math.max(last.get(microbatch) ?? 0, end));
  }
  const changes = [...[...first.values()].map((time) => [time, 1] as const), ...[...last.values()].map((time) => [time, -1] as const)];
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const steps: Flight = { time: [], count: [], most: 0 };
  let inside = 0;
  for (const [time, change] of changes) {
    inside += change;
    if (steps.time[steps.time.length - 1] === time) steps.count[steps.count.length - 1] = inside;
    else {
      steps.time.push(time);
      steps.count.push(inside);
    }
  }
  steps.most = steps.count.reduce((most, count) => Math.max(most, count), 0);
  return steps;
}

/// What a timeline has of the same action as another one; -1 of none.
export function sameAction(timeline: Timeline, rows: readonly RowActions[], other: Timeline, action: number): number {
  const row = rows[other.row[action] as number];
  const same = (i: number) =>
    timeline.kind[i] === other.kind[action] &&
    timeline.microbatch[i] === other.microbatch[action] &&
    timeline.replica[i] === other.replica[action];
  return row?.bars.find(same) ?? row?.marks.find(same) ?? -1;
}

export interface RowActions {
  /// Indices into the timeline of what takes time, by start; none overlaps another.
  bars: Int32Array;
  /// Updates and syncs without length, by time.
  marks: Int32Array;
  /// Of the bars before each bar (and of all, at the end): time in forwards, and in all.
  forwardBefore: Float64Array;
  busyBefore: Float64Array;
  busy: number;
}

export function rowActions(timeline: Timeline): RowActions[] {
  const bars: number[][] = Array.from({ length: timeline.rows }, () => []);
  const marks: number[][] = Array.from({ length: timeline.rows }, () => []);
  for (let i = 0; i < timeline.count; ++i) {
    const long = (timeline.end[i] as number) > (timeline.start[i] as number);
    (long ? bars : marks)[timeline.row[i] as number]?.push(i);
  }
  const byStart = (a: number, b: number) => (timeline.start[a] as number) - (timeline.start[b] as number);
  return bars.map((list, row) => {
    const sorted = Int32Array.from(list.sort(byStart));
    const forwardBefore = new Float64Array(sorted.length + 1);
    const busyBefore = new Float64Array(sorted.length + 1);
    sorted.forEach((action, i) => {
      const length = (timeline.end[action] as number) - (timeline.start[action] as number);
      const forward = kinds[timeline.kind[action] as number] === 'F';
      forwardBefore[i + 1] = (forwardBefore[i] as number) + (forward ? length : 0);
      busyBefore[i + 1] = (busyBefore[i] as number) + length;
    });
    const ordered = Int32Array.from((marks[row] ?? []).sort(byStart));
    return { bars: sorted, marks: ordered, forwardBefore, busyBefore, busy: busyBefore[sorted.length] as number };
  });
}

/// Time that a row has spent in forwards, and in all, until `time`.
export function spentUntil(timeline: Timeline, row: RowActions, time: number): { forward: number; busy: number } {
  const at = firstEndingAfter(timeline, row.bars, time);
  const action = row.bars[at];
  const started = action === undefined ? NaN : (timeline.start[action] as number);
  const part = started < time ? time - started : 0;
  const forward = part > 0 && kinds[timeline.kind[action as number] as number] === 'F';
  return {
    forward: (row.forwardBefore[at] as number) + (forward ? part : 0),
    busy: (row.busyBefore[at] as number) + part,
  };
}

/// The position in `list` of the first action that ends after `time`.
export function firstEndingAfter(timeline: Timeline, list: Int32Array, time: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((timeline.end[list[middle] as number] as number) <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}
