// From the x that the server counts in to the x that is shown, and back.
import { get } from '../lib/api';
import { num, type EventList, type Progress, type Series } from '../lib/wire';
import type { StoredAxis, XAxis } from './line';

export interface Mapping {
  forth(x: number): number;
  back(x: number): number;
}

export const identity: Mapping = { forth: (x) => x, back: (x) => x };

/// What to ask the server for: objectives are counted in updates, losses in microbatches; the time of
/// the clock on the wall goes with the ticks.
export function storedAxis(axis: XAxis, series: Series): StoredAxis {
  if (axis === 'tick' || axis === 'time') return 'tick';
  return series === 'last_stage_loss' ? 'microbatch' : 'updates';
}

/// A run has a fixed number of updates and of microbatches, which go side by side.
export function proportional(axis: XAxis, series: Series, progress: Progress | undefined): Mapping {
  const updates = num(progress?.updates_total);
  const microbatches = num(progress?.microbatches_total);
  if (axis === 'time' || storedAxis(axis, series) === axis || !(updates > 0 && microbatches > 0)) return identity;
  const factor = axis === 'microbatch' ? microbatches / updates : updates / microbatches;
  return { forth: (x) => x * factor, back: (x) => x / factor };
}

export interface Moment {
  tick: number;
  timeMs: number;
}

/// Straight lines between moments (by tick, neither decreasing), the first of which is the beginning of
/// the run; beyond them the nearest one.
export function timeMapping(moments: readonly Moment[], startedMs: number): Mapping {
  if (moments.length === 0) return { forth: () => 0, back: () => 0 };
  const between = (from: 'tick' | 'timeMs', to: 'tick' | 'timeMs', at: number): number => {
    let low = 0;
    let high = moments.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((moments[middle] as Moment)[from] < at) low = middle + 1;
      else high = middle;
    }
    const after = moments[low] as Moment;
    const before = moments[Math.max(0, low - 1)] as Moment;
    if (after[from] <= at || after[from] === before[from]) return after[to];
    if (at <= before[from]) return before[to];
    return before[to] + ((after[to] - before[to]) * (at - before[from])) / (after[from] - before[from]);
  };
  return {
    forth: (tick) => (between('tick', 'timeMs', tick) - startedMs) / 1000,
    back: (seconds) => between('timeMs', 'tick', startedMs + seconds * 1000),
  };
}

const pageMax = 10_000;
const samplesMax = 48;

/// When the run was where: of a short job from all of its points, of a long one from some of them.
export async function momentsOf(job: number, run: number, lastSequence: number): Promise<Moment[]> {
  const ask = (from: number, limit: number) =>
    get<EventList>(`/v1/jobs/${job}/events?kind=point&run=${run}&from=${from}&limit=${limit}`);
  const short = lastSequence <= pageMax;
  const step = Math.max(1, Math.floor(lastSequence / samplesMax));
  const lists = short
    ? [await ask(1, pageMax)]
    : await Promise.all(Array.from({ length: samplesMax + 1 }, (_, i) => ask(Math.min(1 + i * step, lastSequence), 1)));
  const moments = lists.flatMap((list) =>
    list.events.map((event) => ({ tick: num(event.point?.tick), timeMs: num(event.time_unix_ms) })),
  );
  return ascending(moments);
}

/// In the order of ticks, times not decreasing. Points come in batches of one time: its last one had it.
export function ascending(moments: Moment[]): Moment[] {
  const out: Moment[] = [];
  for (const moment of moments.sort((a, b) => a.tick - b.tick || a.timeMs - b.timeMs)) {
    const last = out[out.length - 1];
    if (last && moment.timeMs < last.timeMs) continue;
    if (last && moment.timeMs === last.timeMs) out.pop();
    out.push(moment);
  }
  return out;
}
