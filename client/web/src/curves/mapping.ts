// From the x that the server counts in to the x that is shown, and back.
import { num, type Progress, type Series } from '../lib/wire';
import type { XAxis } from './line';

export interface Mapping {
  forth(x: number): number;
  back(x: number): number;
}

export const identity: Mapping = { forth: (x) => x, back: (x) => x };

/// What to ask the server for: objectives are counted in updates, losses in microbatches.
export function storedAxis(axis: XAxis, series: Series): XAxis {
  if (axis === 'tick' || axis === 'time') return axis;
  return series === 'last_stage_loss' ? 'microbatch' : 'updates';
}

/// A run has a fixed number of updates and of microbatches, which go side by side.
export function proportional(axis: XAxis, series: Series, progress: Progress | undefined): Mapping {
  const updates = num(progress?.updates_total);
  const microbatches = num(progress?.microbatches_total);
  if (storedAxis(axis, series) === axis || !(updates > 0 && microbatches > 0)) return identity;
  const factor = axis === 'microbatch' ? microbatches / updates : updates / microbatches;
  return { forth: (x) => x * factor, back: (x) => x / factor };
}

/// From the daemon's time in milliseconds to seconds since the run began.
export function sinceStart(startedMs: number): Mapping {
  return { forth: (ms) => (ms - startedMs) / 1000, back: (seconds) => startedMs + 1000 * seconds };
}
