// Drawing timelines on a canvas: a lane per row (of a real run two: what was planned, and below it what
// was measured), as much detail as there are pixels for.
import { axisUnit, formatCount, type TickUnit } from '../lib/format';
import { linearTicks } from '../lib/ticks';
import { firstEndingAfter, kinds, rowName, spentUntil, type Flight, type RowActions, type Timeline } from './timeline';
import type { RunSchedule, Traced } from './view';

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

export interface Window {
  from: number;
  to: number;
}

/// One row of a timeline and where it is drawn.
export interface Lane {
  of: Traced;
  row: RowActions;
  label: string;
  y: number;
  height: number;
}

export interface Layout {
  width: number;
  left: number;
  lanes: Lane[];
  flightHeight: number;
  height: number;
}

const top = 26;
const laneGap = 6;

export function layoutOf(width: number, run: RunSchedule): Layout {
  const { measured, planned, shape } = run;
  const short = width < 560;
  const laneHeight = measured.rows.length > 24 ? 18 : 30;
  const planHeight = planned ? laneHeight - 10 : 0;
  const lanes: Lane[] = [];
  let y = top;
  measured.rows.forEach((row, i) => {
    const name = short ? String(i) : rowName(i, shape);
    const plan = planned?.rows[i];
    if (planned && plan) {
      lanes.push({ of: planned, row: plan, label: short ? 'plan' : 'planned', y, height: planHeight });
      y += planHeight + 2;
    }
    lanes.push({ of: measured, row, label: name, y, height: laneHeight });
    y += laneHeight + laneGap;
  });
  const flightHeight = 56;
  return { width, left: short ? 42 : 64, lanes, flightHeight, height: y + flightHeight + 18 };
}

function colorOf(kind: number, colors: GanttColors): string {
  return [colors.forward, colors.backward, colors.update, colors.sync][kind] ?? colors.ink;
}

/// Replicas are shades of the same colour: the higher, the lighter.
function shadeOf(replica: number, replicas: number): number {
  return replicas > 1 ? 1 - (0.55 * replica) / (replicas - 1) : 1;
}

/// What is drawn beside the lanes.
export interface Surroundings {
  flight: Flight;
  plannedFlight?: Flight;
  unit: TickUnit;
}

export function drawGantt(
  context: CanvasRenderingContext2D,
  shown: Window,
  layout: Layout,
  colors: GanttColors,
  { flight, plannedFlight, unit }: Surroundings,
): void {
  const { width, left, height, lanes } = layout;
  const scale = (width - left) / (shown.to - shown.from);
  const at = (time: number) => left + (time - shown.from) * scale;
  context.clearRect(0, 0, width, height);
  context.fillStyle = colors.surface;
  context.fillRect(0, 0, width, height);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  drawTimes(context, shown, layout, colors, at, unit);
  for (const lane of lanes) {
    context.fillStyle = colors.soft;
    context.textAlign = 'right';
    context.fillText(lane.label, left - 8, lane.y + lane.height / 2);
    context.fillStyle = colors.idle;
    context.fillRect(left, lane.y, width - left, lane.height);
  }
  context.save();
  context.beginPath();
  context.rect(left, 0, width - left, height);
  context.clip();
  for (const lane of lanes) {
    const { timeline } = lane.of;
    const { bars } = lane.row;
    const inSight = firstEndingAfter(timeline, bars, shown.to) - firstEndingAfter(timeline, bars, shown.from);
    if (inSight > (width - left) / 2) drawShares(context, lane, shown, layout, colors);
    else drawBars(context, lane, shown, scale, at, colors);
    drawMarks(context, lane, shown, at, colors);
  }
  const most = Math.max(flight.most, plannedFlight?.most ?? 0);
  drawFlight(context, flight, most, shown, layout, at, colors.forward, null);
  if (plannedFlight) drawFlight(context, plannedFlight, most, shown, layout, at, null, colors.soft);
  context.fillStyle = colors.soft;
  context.textAlign = 'left';
  const plan = plannedFlight ? `, planned ${plannedFlight.most} (line)` : '';
  context.fillText(`in flight, at most ${flight.most}${plan}`, left + 6, height - 6 - layout.flightHeight + 8);
  context.restore();
}

function drawTimes(
  context: CanvasRenderingContext2D,
  shown: Window,
  layout: Layout,
  colors: GanttColors,
  at: (time: number) => number,
  unit: TickUnit,
): void {
  const { size, name } = axisUnit(shown.to, unit);
  context.fillStyle = colors.soft;
  context.strokeStyle = colors.grid;
  context.textAlign = 'center';
  for (const tick of linearTicks(shown.from / size, shown.to / size, Math.max(2, Math.floor(layout.width / 90)))) {
    const x = Math.round(at(tick * size)) + 0.5;
    context.beginPath();
    context.moveTo(x, 20);
    context.lineTo(x, layout.height);
    context.stroke();
    // The axis is in whole ticks, or in nanoseconds as seconds and the like.
    const text = unit === 'ticks' ? formatCount(tick) : String(tick);
    if (x > layout.left + 6 && x < layout.width - 18) context.fillText(text, x, 10);
  }
  context.textAlign = 'right';
  context.fillText(name, layout.left - 8, 10);
}

/// Where single actions are narrower than pixels: how each pixel's time was spent, forwards above,
/// backwards below, idle between.
function drawShares(context: CanvasRenderingContext2D, lane: Lane, shown: Window, layout: Layout, colors: GanttColors): void {
  const { timeline } = lane.of;
  const pixels = layout.width - layout.left;
  const step = (shown.to - shown.from) / pixels;
  let before = spentUntil(timeline, lane.row, shown.from);
  for (let i = 0; i < pixels; ++i) {
    const after = spentUntil(timeline, lane.row, shown.from + (i + 1) * step);
    const forward = ((after.forward - before.forward) / step) * lane.height;
    const backward = ((after.busy - before.busy) / step) * lane.height - forward;
    context.fillStyle = colors.forward;
    context.fillRect(layout.left + i, lane.y, 1, forward);
    context.fillStyle = colors.backward;
    context.fillRect(layout.left + i, lane.y + lane.height - backward, 1, backward);
    before = after;
  }
}

function drawBars(
  context: CanvasRenderingContext2D,
  { of: { timeline }, row: { bars }, y, height }: Lane,
  shown: Window,
  scale: number,
  at: (time: number) => number,
  colors: GanttColors,
): void {
  context.textAlign = 'center';
  const first = firstEndingAfter(timeline, bars, shown.from);
  const roomy = isRoomy(timeline, bars, first, firstEndingAfter(timeline, bars, shown.to), at);
  for (let i = first; i < bars.length; ++i) {
    const action = bars[i] as number;
    const start = timeline.start[action] as number;
    const end = timeline.end[action] as number;
    if (start >= shown.to) break;
    const x = at(start);
    const width = (end - start) * scale;
    const shade = shadeOf(timeline.replica[action] as number, timeline.replicas);
    const kind = timeline.kind[action] as number;
    const short = kinds[kind] === 'U' || kinds[kind] === 'SYNC';
    context.globalAlpha = shade;
    context.fillStyle = colorOf(kind, colors);
    // Of a real run these take time, mostly less than a pixel.
    if (short && roomy) context.fillRect(x, y, Math.max(width, 2.5), height);
    else context.fillRect(x, y, width > 3 ? width - 1 : width, height);
    context.globalAlpha = 1;
    if (width >= 26 && height >= 14) {
      context.fillStyle = shade < 0.7 ? colors.ink : '#fff';
      const text = `${kinds[kind]}${timeline.microbatch[action]}`;
      const inside = Math.max(x, at(shown.from)) + (Math.min(x + width, at(shown.to)) - Math.max(x, at(shown.from))) / 2;
      context.fillText(text, inside, y + height / 2 + 1);
    }
  }
}

/// Whether there are some 8 pixels for each action of list[first .. end).
function isRoomy(timeline: Timeline, list: Int32Array, first: number, end: number, at: (time: number) => number): boolean {
  if (end - first < 2) return true;
  return at(timeline.start[list[end - 1] as number] as number) - at(timeline.start[list[first] as number] as number) > 8 * (end - first);
}

/// Updates are thin lines as soon as there is room between them; syncs always.
function drawMarks(
  context: CanvasRenderingContext2D,
  { of: { timeline }, row: { marks }, y, height }: Lane,
  shown: Window,
  at: (time: number) => number,
  colors: GanttColors,
): void {
  const before = shown.from - 1e-9 * (shown.to - shown.from);
  const first = firstEndingAfter(timeline, marks, before);
  const updates = isRoomy(timeline, marks, first, firstEndingAfter(timeline, marks, shown.to), at);
  for (let i = first; i < marks.length; ++i) {
    const action = marks[i] as number;
    const time = timeline.start[action] as number;
    if (time > shown.to) break;
    const sync = kinds[timeline.kind[action] as number] === 'SYNC';
    if (!sync && !updates) continue;
    const x = at(time);
    context.fillStyle = sync ? colors.sync : colors.update;
    context.fillRect(x - (sync ? 2 : 1.5), sync ? y - 3 : y, sync ? 4 : 2.5, height + (sync ? 6 : 0));
  }
}

/// As an area, or as a line.
function drawFlight(
  context: CanvasRenderingContext2D,
  flight: Flight,
  most: number,
  shown: Window,
  layout: Layout,
  at: (time: number) => number,
  fill: string | null,
  stroke: string | null,
): void {
  const bottom = layout.height - 6;
  const height = layout.flightHeight - 16;
  const y = (count: number) => bottom - (height * count) / Math.max(1, most);
  let i = Math.max(0, upperBound(flight.time, shown.from) - 1);
  context.beginPath();
  let level = flight.count[i] ?? 0;
  context.moveTo(layout.left, bottom);
  context.lineTo(layout.left, y(level));
  let lastX = layout.left;
  for (++i; i < flight.time.length && (flight.time[i] as number) <= shown.to; ++i) {
    const x = at(flight.time[i] as number);
    const next = flight.count[i] as number;
    // At most a few steps per pixel, so that very long timelines stay quick.
    if (x - lastX >= 0.25 || next === 0) {
      context.lineTo(lastX, y(level));
      context.lineTo(x, y(level));
      context.lineTo(x, y(next));
      lastX = x;
    }
    level = next;
  }
  context.lineTo(lastX, y(level));
  context.lineTo(layout.width, y(level));
  if (fill) {
    context.lineTo(layout.width, bottom);
    context.closePath();
    context.globalAlpha = 0.35;
    context.fillStyle = fill;
    context.fill();
    context.globalAlpha = 1;
  }
  if (stroke) {
    context.strokeStyle = stroke;
    context.lineWidth = 1;
    context.stroke();
  }
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

export function flightAt(flight: Flight, time: number): number {
  return flight.count[upperBound(flight.time, time) - 1] ?? 0;
}

export interface Hit {
  of: Traced;
  action: number;
}

/// The bar at a place of the canvas.
export function actionAt(shown: Window, layout: Layout, x: number, y: number): Hit | null {
  const lane = layout.lanes.find((each) => y >= each.y && y <= each.y + each.height);
  if (!lane || x < layout.left) return null;
  const { timeline } = lane.of;
  const time = shown.from + ((x - layout.left) / (layout.width - layout.left)) * (shown.to - shown.from);
  const action = lane.row.bars[firstEndingAfter(timeline, lane.row.bars, time)];
  return action !== undefined && (timeline.start[action] as number) <= time ? { of: lane.of, action } : null;
}
