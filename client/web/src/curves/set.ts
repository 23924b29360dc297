// The curves that the settings ask for: each is loaded once and kept while the settings ask for it.
import { computed, effect, signal, type ReadonlySignal } from '@preact/signals';
import { jobs } from '../jobs/store';
import { isDark } from '../lib/dom';
import { formatTicks } from '../lib/format';
import { colorOf, dashOf } from '../lib/palette';
import { Curve, type Drawn } from './curve';
import { axisTitles, seriesTitles, smoothingWidth, type Settings } from './settings';
import { formatTick, tellNumber, type PlotLine, type PlotSetup } from './plot';
import type { Line } from './line';
import type { Range } from './source';

export interface Entry {
  curve: Curve;
  /// What it is called, and that with what tells it from others of its job.
  name: string;
  label: string;
  color: string;
  colorIndex: number;
  dash: number[];
  hidden: boolean;
  drawn: Drawn;
}

/// What the time of the runs is: one unit for all, or both named.
function timeLabel(entries: readonly Entry[]): { label: string; inNs: boolean } {
  const metas = entries.map((entry) => entry.curve.meta.value).filter((meta) => meta !== null);
  const real = metas.filter((meta) => meta.isReal).length;
  const title = real === 0 ? 'Simulated time' : real === metas.length ? 'Measured time' : 'Simulated or measured time';
  const ns = metas.filter((meta) => meta.unit === 'ns').length;
  if (ns > 0 && ns === metas.length) return { label: title, inNs: true };
  return { label: `${title} (${ns > 0 ? 'ticks, or ns' : 'ticks'})`, inNs: false };
}

export function setupOf(settings: Settings, entries: readonly Entry[]): PlotSetup {
  const { axis } = settings;
  const setup = {
    xLabel: axis === 'time' ? 'Wall time (s, when points came)' : axisTitles[axis],
    yLabel: seriesTitles[settings.series],
    xLog: settings.xLog,
    yLog: settings.yLog,
    formatX: formatTick,
    tellX: tellNumber,
  };
  if (axis !== 'tick') return setup;
  const { label, inNs } = timeLabel(entries);
  const inUnits = (x: number) => (x === 0 ? '0' : formatTicks(x, 'ns'));
  return { ...setup, xLabel: label, ...(inNs && { formatX: inUnits, tellX: inUnits }) };
}

function lengthOf(line: Line): number {
  const first = line.xs[0] ?? 0;
  return (line.xs[line.xs.length - 1] ?? first) - first;
}

function linesOf(entry: Entry, live: boolean): PlotLine[] {
  const { drawn, color, dash, label } = entry;
  const key = entry.curve.item.key;
  const base = { color, dash, label, width: 2, alpha: 1, aside: false };
  const lines: PlotLine[] = [];
  if (drawn.band) {
    const least = drawn.line.ys.reduce((soFar, y) => (y > 0 && y < soFar ? y : soFar), Infinity);
    const edge = { ...base, width: 0, aside: true, floor: least / 10 };
    lines.push({ ...edge, ...drawn.band.low, key: `${key}-low` });
    lines.push({ ...edge, ...drawn.band.high, key: `${key}-high`, fillTo: `${key}-low` });
  }
  if (drawn.raw) lines.push({ ...base, ...drawn.raw, key: `${key}-raw`, aside: true, alpha: 0.25, width: 1 });
  lines.push({ ...base, ...drawn.line, key, alpha: live ? 1 : 0.95 });
  if (drawn.bound) lines.push({ ...base, ...drawn.bound, key: `${key}-bound`, label: `${label}: bound`, dash: [6, 5], width: 1.5 });
  return lines;
}

export class CurveSet {
  private readonly curves = signal<ReadonlyMap<string, Curve>>(new Map());
  readonly entries: ReadonlySignal<Entry[]>;
  readonly lines: ReadonlySignal<PlotLine[]>;
  private readonly stop: (() => void)[];

  constructor(
    private readonly settings: ReadonlySignal<Settings>,
    range: ReadonlySignal<Range | null>,
  ) {
    this.entries = computed(() => this.makeEntries());
    this.lines = computed(() =>
      this.entries.value.filter((entry) => !entry.hidden).flatMap((entry) => linesOf(entry, entry.curve.status.value === 'live')),
    );
    this.stop = [
      effect(() => this.follow(this.settings.value)),
      effect(() => {
        for (const curve of this.curves.value.values()) {
          void [curve.meta.value, curve.loading.value];
          curve.look(range.value);
        }
      }),
      effect(() => {
        for (const curve of this.curves.value.values()) curve.follow(jobs.value.get(curve.item.job));
      }),
    ];
  }

  close(): void {
    for (const each of this.stop) each();
    for (const curve of this.curves.peek().values()) curve.close();
  }

  private follow(settings: Settings): void {
    const before = this.curves.peek();
    const next = new Map<string, Curve>();
    for (const item of settings.items) {
      const key = [item.key, settings.series, settings.axis].join(' ');
      next.set(key, before.get(key) ?? new Curve(item, settings.series, settings.axis));
    }
    for (const [key, curve] of before) if (!next.has(key)) curve.close();
    if ([...next.keys()].join() !== [...before.keys()].join()) this.curves.value = next;
  }

  private makeEntries(): Entry[] {
    const settings = this.settings.value;
    return [...this.curves.value.values()].map((curve, i) => {
      void curve.version.value;
      const meta = curve.meta.value;
      const key = curve.item.key;
      const colorIndex = settings.colors.get(key) ?? i;
      const plain = curve.draw(0);
      const width = smoothingWidth(settings.smoothing, lengthOf(plain.line));
      const own = settings.names.get(key);
      return {
        curve,
        name: own ?? meta?.name ?? `job ${key}`,
        label: own ?? (meta ? [meta.name, meta.detail].filter(Boolean).join(' · ') : `job ${key}`),
        color: colorOf(colorIndex, isDark()),
        colorIndex,
        dash: dashOf(colorIndex),
        hidden: settings.hidden.has(key),
        drawn: width > 0 ? curve.draw(width) : plain,
      };
    });
  }
}
