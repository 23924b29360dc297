// The plot: uPlot with zoom, pan, marks and a tooltip that shows the nearest point of every line.
import { effect, signal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { cssColor, isDark } from '../lib/dom';
import { formatCount, formatValue } from '../lib/format';
import { logTicks } from '../lib/ticks';
import { drawnValue, joined, nearestIndex } from './line';
import type { Range } from './source';

export interface PlotLine {
  key: string;
  label: string;
  color: string;
  dash: number[];
  width: number;
  /// The raw line behind its smoothed one, or an edge of a band: no part of the tooltip.
  aside: boolean;
  alpha: number;
  xs: number[];
  ys: number[];
  faults: { x: number; y: number }[];
  /// The area between this line and the one with that key is filled.
  fillTo?: string;
  /// On a log axis no edge of a band is drawn below it: one may be at zero or near it.
  floor?: number;
}

export interface PlotSetup {
  xLabel: string;
  yLabel: string;
  xLog: boolean;
  yLog: boolean;
  formatX: (x: number) => string;
  /// In full, for the tooltip.
  tellX: (x: number) => string;
}

interface Props {
  lines: Signal<PlotLine[]>;
  setup: PlotSetup;
  range: Signal<Range | null>;
  label: string;
}

/// Frames drawn, for whoever wants to know how smooth it is.
export const framesDrawn = signal(0);

function aligned(lines: PlotLine[], setup: PlotSetup): uPlot.AlignedData {
  if (lines.length === 0) return [[]];
  const tables = lines.map((line) => {
    const xs: number[] = [];
    const ys: (number | null)[] = [];
    line.xs.forEach((x, i) => {
      if (setup.xLog && x <= 0) return;
      const y = drawnValue(line.ys[i] as number, setup.yLog, line.floor);
      xs.push(x);
      ys.push(Number.isNaN(y) ? null : y);
    });
    return { xs, ys };
  });
  return joined(tables) as uPlot.AlignedData;
}

function axisStyle(): Pick<uPlot.Axis, 'stroke' | 'grid' | 'ticks' | 'font' | 'labelFont'> {
  const grid = { stroke: cssColor('--grid'), width: 1 };
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return { stroke: cssColor('--ink-soft'), grid, ticks: grid, font, labelFont: font };
}

/// A little room around the values; uPlot's own range goes to the next power of ten.
function logRange(_plot: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [1, 10];
  return [min / 1.15, Math.min(max * 1.15, Number.MAX_VALUE)];
}

/// uPlot's own marks of a log axis are none at all over a hundred powers of ten, for which it finds no
/// step. It uses none here, but wants one: so large that it finds room for it.
const logAxis: Pick<uPlot.Axis, 'incrs' | 'splits' | 'filter'> = {
  incrs: (_plot, _axis, _min, max) => [Math.max(5, max)],
  splits: (_plot, _axis, min, max) => logTicks(min, max, 16),
  filter: (_plot, splits) => splits,
};

function shapeOf(lines: PlotLine[], setup: PlotSetup): string {
  const styles = lines.map((line) => [line.key, line.color, line.dash, line.width, line.alpha, line.fillTo]);
  return JSON.stringify([styles, setup.xLabel, setup.yLabel, setup.xLog, setup.yLog, isDark()]);
}

/// A small cross where a line stops being finite.
function drawFaults(plot: uPlot, lines: PlotLine[]): void {
  const { ctx } = plot;
  const { left, top, width, height } = plot.bbox;
  const size = 5 * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, top - size, width, height + 2 * size);
  ctx.clip();
  for (const line of lines) {
    if (line.aside) continue;
    ctx.strokeStyle = line.color;
    ctx.lineWidth = 2 * devicePixelRatio;
    for (const fault of line.faults) {
      const x = plot.valToPos(fault.x, 'x', true);
      const y = Number.isFinite(fault.y) ? plot.valToPos(fault.y, 'y', true) : top + size;
      const inside = Math.min(Math.max(y, top + size), top + height - size);
      ctx.beginPath();
      ctx.moveTo(x - size, inside - size);
      ctx.lineTo(x + size, inside + size);
      ctx.moveTo(x + size, inside - size);
      ctx.lineTo(x - size, inside + size);
      ctx.stroke();
    }
  }
  ctx.restore();
}

/// What zooming and panning need: the range that is shown, and how to ask for another.
class Controller {
  plot: uPlot | null = null;
  private shape = '';

  constructor(
    private readonly host: HTMLElement,
    private readonly tooltip: HTMLElement,
    private readonly range: Signal<Range | null>,
    public setup: PlotSetup,
  ) {}

  show(lines: PlotLine[]): void {
    const same = lines === this.lines && this.setup === this.shownSetup && isDark() === this.shownDark;
    if (same) return;
    [this.shownSetup, this.shownDark] = [this.setup, isDark()];
    const shape = shapeOf(lines, this.setup);
    const data = aligned(lines, this.setup);
    if (!this.plot || shape !== this.shape) {
      this.plot?.destroy();
      this.shape = shape;
      this.plot = new uPlot(this.options(lines), data, this.host);
      this.plot.over.addEventListener('wheel', this.onWheel, { passive: false });
      this.plot.over.addEventListener('dblclick', () => (this.range.value = null));
    } else {
      this.plot.setData(data, false);  // rescale() follows
    }
    this.lines = lines;
  }
  private lines: PlotLine[] = [];
  private shownSetup: PlotSetup | null = null;
  private shownDark = false;

  rescale(): void {
    if (!this.plot || !this.plot.data[0]?.length) return;
    const [min, max] = this.fullOrZoomed();
    this.plot.setScale('x', { min, max });
  }

  resize(): void {
    this.plot?.setSize(this.size());
  }

  zoom(factor: number, at?: number): void {
    const [from, to] = this.shown();
    const toScreen = this.setup.xLog ? Math.log : (x: number) => x;
    const back = this.setup.xLog ? Math.exp : (x: number) => x;
    const [low, high] = [toScreen(from), toScreen(to)];
    const middle = at === undefined ? (low + high) / 2 : toScreen(at);
    this.range.value = { from: back(middle - (middle - low) * factor), to: back(middle + (high - middle) * factor) };
  }

  pan(part: number): void {
    const [from, to] = this.shown();
    if (this.setup.xLog) {
      const factor = (to / from) ** part;
      this.range.value = { from: from * factor, to: to * factor };
    } else {
      const step = (to - from) * part;
      this.range.value = { from: from + step, to: to + step };
    }
  }

  destroy(): void {
    this.plot?.destroy();
  }

  private shown(): [number, number] {
    const { min, max } = this.plot?.scales.x ?? {};
    return [min ?? 0, max ?? 1];
  }

  private fullOrZoomed(): [number, number] {
    const zoomed = this.range.peek();
    if (zoomed) return [zoomed.from, zoomed.to];
    const xs = this.plot?.data[0] ?? [];
    const first = xs[0] ?? (this.setup.xLog ? 1 : 0);
    const last = xs[xs.length - 1] ?? first + 1;
    return first < last ? [first, last] : [first, this.setup.xLog ? first * 10 : first + 1];
  }

  private size() {
    return { width: Math.max(200, this.host.clientWidth), height: Math.max(220, this.host.clientHeight) };
  }

  private options(lines: PlotLine[]): uPlot.Options {
    const style = axisStyle();
    const { setup } = this;
    const index = new Map(lines.map((line, i) => [line.key, i + 1]));
    const bands = lines.flatMap((line) => {
      const other = line.fillTo === undefined ? undefined : index.get(line.fillTo);
      const own = index.get(line.key);
      return other === undefined || own === undefined ? [] : [{ series: [own, other] as [number, number], fill: line.color + '2e' }];
    });
    return {
      ...this.size(),
      legend: { show: false },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false }, focus: { prox: 24 } },
      scales: {
        x: { time: false, distr: setup.xLog ? 3 : 1, range: () => this.fullOrZoomed() },
        y: setup.yLog ? { distr: 3, range: logRange } : {},
      },
      series: [
        {},
        ...lines.map((line) => ({
          label: line.label,
          stroke: line.color,
          alpha: line.alpha,
          width: line.width,
          dash: line.dash,
          points: { show: false },
          spanGaps: false,
        })),
      ],
      bands,
      axes: [
        { ...style, label: setup.xLabel, labelSize: 22, size: 34, values: (_, splits) => splits.map((x) => (x === null ? '' : setup.formatX(x))) },
        { ...style, ...(setup.yLog && logAxis), label: setup.yLabel, labelSize: 22, size: 64, values: (_, splits) => splits.map((y) => (y === null ? '' : formatValue(y))) },
      ],
      hooks: {
        draw: [(plot) => (drawFaults(plot, this.lines), framesDrawn.value++)],
        setSelect: [(plot) => this.onSelect(plot)],
        setCursor: [(plot) => this.showTooltip(plot)],
      },
    };
  }

  private onSelect(plot: uPlot): void {
    const { left, width } = plot.select;
    if (width < 4) return;
    this.range.value = { from: plot.posToVal(left, 'x'), to: plot.posToVal(left + width, 'x') };
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  private onWheel = (event: WheelEvent): void => {
    if (!this.plot) return;
    event.preventDefault();
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) this.pan(Math.sign(event.deltaX || event.deltaY) * 0.1);
    else this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.plot.posToVal(event.offsetX, 'x'));
  };

  private showTooltip(plot: uPlot): void {
    const { left, top } = plot.cursor;
    const box = this.tooltip;
    if (left === undefined || top === undefined || left < 0 || plot.select.width > 0) {
      box.hidden = true;
      return;
    }
    const x = plot.posToVal(left, 'x');
    const rows = this.lines
      .filter((line) => !line.aside)
      .map((line) => ({ line, at: nearestIndex(line.xs, x) }))
      .filter(({ at }) => at >= 0)
      .map(({ line, at }) => ({ line, x: line.xs[at] as number, y: line.ys[at] as number }));
    if (rows.length === 0) {
      box.hidden = true;
      return;
    }
    const away = (y: number) => (Number.isFinite(y) ? Math.abs(plot.valToPos(y, 'y') - top) : Infinity);
    const nearest = rows.reduce((best, row) => (away(row.y) < away(best.y) ? row : best));
    box.replaceChildren(tooltipHead(this.setup, nearest.x), ...rows.map((row) => this.tooltipRow(row, nearest)));
    box.hidden = false;
    place(box, plot, left, top);
  }

  private tooltipRow(row: { line: PlotLine; x: number; y: number }, nearest: { line: PlotLine; x: number }) {
    const element = document.createElement('div');
    element.className = row.line === nearest.line ? 'row nearest' : 'row';
    const sign = document.createElement('i');
    sign.style.background = row.line.color;
    const name = document.createElement('span');
    name.textContent = row.line.label;
    const value = document.createElement('b');
    value.textContent = formatValue(row.y);
    element.append(sign, name, value);
    if (row.x !== nearest.x) {
      const at = document.createElement('small');
      at.textContent = `at ${this.setup.tellX(row.x)}`;
      element.append(at);
    }
    return element;
  }
}

function tooltipHead(setup: PlotSetup, x: number): HTMLElement {
  const head = document.createElement('div');
  head.className = 'head';
  head.textContent = `${setup.xLabel} ${setup.tellX(x)}`;
  return head;
}

function place(box: HTMLElement, plot: uPlot, left: number, top: number): void {
  const over = plot.over;
  const gap = 14;
  const right = over.offsetLeft + left + gap;
  const fits = right + box.offsetWidth < plot.width;
  box.style.left = `${fits ? right : Math.max(0, right - box.offsetWidth - 2 * gap)}px`;
  const y = over.offsetTop + Math.min(top + gap, over.clientHeight - box.offsetHeight);
  box.style.top = `${Math.max(0, y)}px`;
}

export function Plot({ lines, setup, range, label }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const tooltip = useRef<HTMLDivElement>(null);
  const controller = useRef<Controller | null>(null);

  useEffect(() => {
    if (!host.current || !tooltip.current) return;
    const control = new Controller(host.current, tooltip.current, range, setup);
    controller.current = control;
    let frame = 0;
    // However often points come, a frame draws once.
    const stop = effect(() => {
      void [lines.value, isDark(), range.value];
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => {
        control.show(lines.peek());
        control.rescale();
      });
    });
    const observer = new ResizeObserver(() => control.resize());
    observer.observe(host.current);
    return () => {
      stop();
      cancelAnimationFrame(frame);
      observer.disconnect();
      control.destroy();
    };
  }, []);
  useEffect(() => {
    if (!controller.current) return;
    controller.current.setup = setup;
    controller.current.show(lines.peek());
    controller.current.rescale();
  }, [setup.xLabel, setup.yLabel, setup.xLog, setup.yLog]);

  const onKey = (event: KeyboardEvent) => {
    const control = controller.current;
    if (!control || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => control.pan(-0.1),
      ArrowRight: () => control.pan(0.1),
      '+': () => control.zoom(0.8),
      '=': () => control.zoom(0.8),
      '-': () => control.zoom(1.25),
      '0': () => (range.value = null),
      Escape: () => (range.value = null),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  };
  return (
    <div class="plot" tabIndex={0} role="group" aria-label={label} onKeyDown={onKey}>
      <div class="plot-host" ref={host} />
      <div class="tooltip" ref={tooltip} hidden />
    </div>
  );
}

export function tellNumber(x: number): string {
  return Number.isInteger(x) ? x.toLocaleString('en') : formatValue(x);
}

export function formatTick(x: number): string {
  return Number.isInteger(x) ? formatCount(x) : formatValue(x);
}
