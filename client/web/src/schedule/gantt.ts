// Drawing a timeline on a canvas: a lane per row, as much detail as there are pixels for.
import { formatCount } from '../lib/format';
import { linearTicks } from '../lib/ticks';
import { firstEndingAfter, kinds, spentUntil, type RowActions, type Timeline } from './timeline';

export interface GanttColors {
  forward: string;
  backward: string;
  update: string;
  sync: string;
  idle: string;
  ink: string;
  soft: string;
  grid: string;
  surface: string;
}

export interface Lanes {
  timeline: Timeline;
  rows: RowActions[];
}

export interface Window {
  from: number;
  to: number;
}

export interface Layout {
  width: number;
  left: number;
  top: number;
  laneHeight: number;
  gap: number;
  flightHeight: number;
  height: number;
}

export function layoutOf(width: number, rows: number): Layout {
  const left = width < 560 ? 34 : 64;
  const laneHeight = rows > 24 ? 18 : 30;
  const gap = 6;
  const top = 26;
  const flightHeight = 56;
  return { width, left, top, laneHeight, gap, flightHeight, height: top + rows * (laneHeight + gap) + flightHeight + 18 };
}

export function laneTop(layout: Layout, row: number): number {
  return layout.top + row * (layout.laneHeight + layout.gap);
}

function colorOf(kind: number, colors: GanttColors): string {
  return [colors.forward, colors.backward, colors.update, colors.sync][kind] ?? colors.ink;
}

/// Replicas are shades of the same colour: the higher, the lighter.
function shadeOf(replica: number, replicas: number): number {
  return replicas > 1 ? 1 - (0.55 * replica) / (replicas - 1) : 1;
}

export function drawGantt(
  context: CanvasRenderingContext2D,
  lanes: Lanes,
  shown: Window,
  layout: Layout,
  colors: GanttColors,
  flight: { time: number[]; count: number[]; most: number },
  rowName: (row: number) => string,
): void {
  const { width, left, height } = layout;
  const scale = (width - left) / (shown.to - shown.from);
  const at = (time: number) => left + (time - shown.from) * scale;
  context.clearRect(0, 0, width, height);
  context.fillStyle = colors.surface;
  context.fillRect(0, 0, width, height);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  drawTimes(context, shown, layout, colors, at);
  lanes.rows.forEach((_, row) => {
    const y = laneTop(layout, row);
    context.fillStyle = colors.soft;
    context.textAlign = 'right';
    context.fillText(rowName(row), left - 8, y + layout.laneHeight / 2);
    context.fillStyle = colors.idle;
    context.fillRect(left, y, width - left, layout.laneHeight);
  });
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left, height);
  context.clip();
  lanes.rows.forEach((actions, row) => {
    const y = laneTop(layout, row);
    const inSight = firstEndingAfter(lanes.timeline, actions.bars, shown.to) - firstEndingAfter(lanes.timeline, actions.bars, shown.from);
    if (inSight > (width - left) / 2) drawShares(context, lanes.timeline, actions, shown, y, layout, colors);
    else drawBars(context, lanes.timeline, actions.bars, shown, y, layout.laneHeight, scale, at, colors);
    drawMarks(context, lanes.timeline, actions.marks, shown, y, layout.laneHeight, scale, at, colors);
  });
  drawFlight(context, flight, shown, layout, colors, at);
  context.restore();
}

function drawTimes(context: CanvasRenderingContext2D, shown: Window, layout: Layout, colors: GanttColors, at: (time: number) => number): void {
  context.fillStyle = colors.soft;
  context.strokeStyle = colors.grid;
  context.textAlign = 'center';
  for (const tick of linearTicks(shown.from, shown.to, Math.max(2, Math.floor(layout.width / 110)))) {
    const x = Math.round(at(tick)) + 0.5;
    context.beginPath();
    context.moveTo(x, 20);
    context.lineTo(x, layout.height);
    context.stroke();
    if (x > layout.left + 6 && x < layout.width - 18) context.fillText(formatCount(tick), x, 10);
  }
}

/// Where single actions are narrower than pixels: how each pixel's time was spent, forwards above,
/// backwards below, idle between.
function drawShares(
  context: CanvasRenderingContext2D,
  timeline: Timeline,
  row: RowActions,
  shown: Window,
  y: number,
  layout: Layout,
  colors: GanttColors,
): void {
  const pixels = layout.width - layout.left;
  const step = (shown.to - shown.from) / pixels;
  let before = spentUntil(timeline, row, shown.from);
  for (let i = 0; i < pixels; ++i) {
    const after = spentUntil(timeline, row, shown.from + (i + 1) * step);
    const forward = ((after.forward - before.forward) / step) * layout.laneHeight;
    const backward = ((after.busy - before.busy) / step) * layout.laneHeight - forward;
    context.fillStyle = colors.forward;
    context.fillRect(layout.left + i, y, 1, forward);
    context.fillStyle = colors.backward;
    context.fillRect(layout.left + i, y + layout.laneHeight - backward, 1, backward);
    before = after;
  }
}

function drawBars(
  context: CanvasRenderingContext2D,
  timeline: Timeline,
  bars: Int32Array,
  shown: Window,
  y: number,
  height: number,
  scale: number,
  at: (time: number) => number,
  colors: GanttColors,
): void {
  context.textAlign = 'center';
  for (let i = firstEndingAfter(timeline, bars, shown.from); i < bars.length; ++i) {
    const action = bars[i] as number;
    const start = timeline.start[action] as number;
    const end = timeline.end[action] as number;
    if (start >= shown.to) break;
    const x = at(start);
    const width = (end - start) * scale;
    context.globalAlpha = shadeOf(timeline.replica[action] as number, timeline.replicas);
    context.fillStyle = colorOf(timeline.kind[action] as number, colors);
    context.fillRect(x, y, width > 3 ? width - 1 : width, height);
    context.globalAlpha = 1;
    if (width >= 26 && height >= 14) {
      context.fillStyle = '#fff';
      if (shadeOf(timeline.replica[action] as number, timeline.replicas) < 0.7) context.fillStyle = colors.ink;
      const text = `${kinds[timeline.kind[action] as number]}${timeline.microbatch[action]}`;
      const inside = Math.max(x, at(shown.from)) + (Math.min(x + width, at(shown.to)) - Math.max(x, at(shown.from))) / 2;
      context.fillText(text, inside, y + height / 2 + 1);
    }
  }
  context.globalAlpha = 1;
}

/// Updates are thin lines as soon as there is room between them; syncs always.
function drawMarks(
  context: CanvasRenderingContext2D,
  timeline: Timeline,
  marks: Int32Array,
  shown: Window,
  y: number,
  height: number,
  scale: number,
  at: (time: number) => number,
  colors: GanttColors,
): void {
  const updates = scale > 6;
  let lastX = -Infinity;
  for (let i = firstEndingAfter(timeline, marks, shown.from - 1e-9 * (shown.to - shown.from)); i < marks.length; ++i) {
    const action = marks[i] as number;
    const time = timeline.start[action] as number;
    if (time > shown.to) break;
    const sync = kinds[timeline.kind[action] as number] === 'SYNC';
    if (!sync && !updates) continue;
    const x = at(time);
    if (!sync && x - lastX < 1) continue;
    lastX = x;
    context.fillStyle = sync ? colors.sync : colors.update;
    context.fillRect(x - (sync ? 2 : 1.5), sync ? y - 3 : y, sync ? 4 : 2.5, height + (sync ? 6 : 0));
  }
}

function drawFlight(
  context: CanvasRenderingContext2D,
  flight: { time: number[]; count: number[]; most: number },
  shown: Window,
  layout: Layout,
  colors: GanttColors,
  at: (time: number) => number,
): void {
  const bottom = layout.height - 6;
  const height = layout.flightHeight - 16;
  const y = (count: number) => bottom - (height * count) / Math.max(1, flight.most);
  let i = Math.max(0, upperBound(flight.time, shown.from) - 1);
  context.beginPath();
  context.moveTo(layout.left, bottom);
  let level = flight.count[i] ?? 0;
  context.lineTo(layout.left, y(level));
  let lastX = -1;
  for (++i; i < flight.time.length && (flight.time[i] as number) <= shown.to; ++i) {
    const x = at(flight.time[i] as number);
    const next = flight.count[i] as number;
    // At most a few steps per pixel, so that very long timelines stay quick.
    if (x - lastX < 0.25 && next !== 0) {
      level = next;
      continue;
    }
    context.lineTo(x, y(level));
    context.lineTo(x, y(next));
    level = next;
    lastX = x;
  }
  context.lineTo(layout.width, y(level));
  context.lineTo(layout.width, bottom);
  context.closePath();
  context.globalAlpha = 0.35;
  context.fillStyle = colors.forward;
  context.fill();
  context.globalAlpha = 1;
  context.fillStyle = colors.soft;
  context.textAlign = 'left';
  context.fillText(`in flight, at most ${flight.most}`, layout.left + 6, bottom - height - 8);
}

function upperBound(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function flightAt(flight: { time: number[]; count: number[] }, time: number): number {
  return flight.count[upperBound(flight.time, time) - 1] ?? 0;
}

/// The action at a place of the canvas: a bar, else -1.
export function actionAt(lanes: Lanes, shown: Window, layout: Layout, x: number, y: number): number {
  const row = Math.floor((y - layout.top) / (layout.laneHeight + layout.gap));
  const actions = lanes.rows[row];
  if (!actions || x < layout.left) return -1;
  const time = shown.from + ((x - layout.left) / (layout.width - layout.left)) * (shown.to - shown.from);
  const action = actions.bars[firstEndingAfter(lanes.timeline, actions.bars, time)];
  return action !== undefined && (lanes.timeline.start[action] as number) <= time ? action : -1;
}
