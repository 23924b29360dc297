// What the curves view shows, as it stands in the address.
import { seriesNames, type Series } from '../lib/wire';
import { parseItems, parsePairs, type Item } from './items';
import { xAxes, type XAxis } from './line';
import type { Range } from './source';

export interface Settings {
  items: Item[];
  series: Series;
  axis: XAxis;
  xLog: boolean;
  yLog: boolean;
  /// 0 to 100, see smoothingWidth().
  smoothing: number;
  hidden: Set<string>;
  names: Map<string, string>;
  colors: Map<string, number>;
  range: Range | null;
}

export const seriesTitles: Record<Series, string> = {
  objective: 'Objective',
  last_stage_loss: 'Loss of the last stage',
  validation: 'Validation loss',
  gradient_norm_sq: '‖∇f‖²',
  gradient_norm_sq_mean: 'Mean ‖∇f‖² and its bound',
  gap: 'Gap f − f*',
  bound: 'Bound of RPD',
};

export const axisTitles: Record<XAxis, string> = {
  tick: 'Simulated time',
  updates: 'Block updates',
  microbatch: 'Microbatches',
  time: 'Wall time',
};

export function parseSettings(query: Record<string, string>): Settings {
  const [from, to] = (query.zoom ?? '').split(',').map(Number);
  const zoomed = from !== undefined && to !== undefined && Number.isFinite(from) && from < to;
  const smoothing = Number(query.smooth ?? 0);
  return {
    items: parseItems(query.runs),
    series: seriesNames.find((name) => name === query.series) ?? 'objective',
    axis: xAxes.find((name) => name === query.x) ?? 'tick',
    xLog: query.xlog === '1',
    yLog: query.ylog !== '0',
    smoothing: smoothing >= 0 && smoothing <= 100 ? smoothing : 0,
    hidden: new Set((query.hide ?? '').split(',').filter(Boolean)),
    names: parsePairs(query.names),
    colors: new Map([...parsePairs(query.colors)].map(([key, value]) => [key, Number(value) || 0])),
    range: zoomed ? { from, to } : null,
  };
}

/// From a slider's 1 to 100 to a part of the curve's length: 0.05 % to 20 %, each step the same factor.
export function smoothingWidth(slider: number, length: number): number {
  return slider > 0 ? length * 0.0005 * 400 ** ((slider - 1) / 99) : 0;
}

/// Six digits are enough for a place on a screen.
export function formatRange(range: Range | null): string | undefined {
  return range ? `${Number(range.from.toPrecision(6))},${Number(range.to.toPrecision(6))}` : undefined;
}
