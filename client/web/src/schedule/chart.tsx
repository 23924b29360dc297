// The Gantt chart with zoom, pan and what is under the pointer.
import { effect, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { cssColor, isDark } from '../lib/dom';
import { formatTicks, formatValue } from '../lib/format';
import { adjust, route } from '../lib/route';
import { actionAt, drawGantt, flightAt, layoutOf, type GanttColors, type Hit, type Layout, type Window } from './gantt';
import { inFlight, kinds, rowName, sameAction } from './timeline';
import type { RunSchedule, Traced } from './view';

function colors(): GanttColors {
  const dark = isDark();
  return {
    forward: dark ? '#2f86c9' : '#0072b2',
    backward: dark ? '#d9702a' : '#d55e00',
    update: dark ? '#f2f5f8' : '#111820',
    sync: dark ? '#d98ab9' : '#a13d7c',
    idle: cssColor('--raised'),
    ink: cssColor('--ink'),
    soft: cssColor('--ink-soft'),
    grid: cssColor('--grid'),
    surface: cssColor('--surface'),
  };
}

function windowOfAddress(end: number): Window {
  const [from, to] = (route.peek().query.zoom ?? '').split(',').map(Number);
  return from !== undefined && to !== undefined && from < to ? { from, to } : { from: 0, to: end };
}

export function Gantt({ run }: { run: RunSchedule }) {
  const { end, measured, planned, unit } = run;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const shown = useSignal<Window>(windowOfAddress(end));
  const width = useSignal(0);
  const under = useSignal<{ x: number; y: number; lines: string[] } | null>(null);
  const drag = useRef<{ x: number; window: Window } | null>(null);
  const flight = useMemo(() => inFlight(measured.timeline), [run]);
  const plannedFlight = useMemo(() => planned && inFlight(planned.timeline), [run]);
  const layout = (): Layout => layoutOf(width.peek(), run);

  useEffect(() => {
    if (!box.current) return;
    const element = box.current;
    const observer = new ResizeObserver(() => (width.value = element.clientWidth));
    observer.observe(element);
    let frame = 0;
    let timer = 0;
    const stop = effect(() => {
      void [shown.value, width.value, isDark()];
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(draw);
      clearTimeout(timer);
      timer = window.setTimeout(rememberZoom, 250);
    });
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (sideways) pan(Math.sign(event.deltaX || event.deltaY) * 0.1);
      else zoom(event.deltaY < 0 ? 0.8 : 1.25, timeAt(event.offsetX));
    };
    canvas.current?.addEventListener('wheel', onWheel, { passive: false });
    return () => {
      stop();
      observer.disconnect();
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      canvas.current?.removeEventListener('wheel', onWheel);
    };
  }, []);

  function draw(): void {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!element || !context || width.peek() === 0) return;
    const to = layout();
    const ratio = devicePixelRatio;
    element.width = Math.round(to.width * ratio);
    element.height = Math.round(to.height * ratio);
    element.style.height = `${to.height}px`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawGantt(context, shown.peek(), to, colors(), { flight, ...(plannedFlight && { plannedFlight }), unit });
  }

  function rememberZoom(): void {
    const { from, to } = shown.peek();
    const all = from <= 0 && to >= end;
    const text = all ? undefined : `${Number(from.toPrecision(9))},${Number(to.toPrecision(9))}`;
    if (route.peek().view === 'schedule' && route.peek().query.zoom !== text) adjust({ zoom: text });
  }

  const timeAt = (x: number): number => {
    const { left, width: all } = layout();
    const { from, to } = shown.peek();
    return from + ((x - left) / (all - left)) * (to - from);
  };
  const limit = (from: number, to: number): void => {
    const length = Math.min(Math.max(to - from, end * 1e-6), end);
    const begin = Math.min(Math.max(0, from), end - length);
    shown.value = { from: begin, to: begin + length };
  };
  const zoom = (factor: number, around?: number): void => {
    const { from, to } = shown.peek();
    const middle = around ?? (from + to) / 2;
    limit(middle - (middle - from) * factor, middle + (to - middle) * factor);
  };
  const pan = (part: number): void => {
    const { from, to } = shown.peek();
    limit(from + (to - from) * part, to + (to - from) * part);
  };
  const showUnder = (x: number, y: number): void => {
    const hit = actionAt(shown.peek(), layout(), x, y);
    const inside = hit?.of === planned ? plannedFlight : flight;
    under.value = hit && inside ? { x, y, lines: describe(run, hit, flightAt(inside, timeAt(x))) } : null;
  };

  const onKey = (event: KeyboardEvent) => {
    const actions: Record<string, () => void> = {
      ArrowLeft: () => pan(-0.1),
      ArrowRight: () => pan(0.1),
      '+': () => zoom(0.8),
      '=': () => zoom(0.8),
      '-': () => zoom(1.25),
      '0': () => limit(0, end),
      Home: () => limit(0, shown.peek().to - shown.peek().from),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    action();
  };
  return (
    <>
      <div class="gantt-tools">
        <button type="button" aria-label="Zoom in" onClick={() => zoom(0.5)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => zoom(2)}>
          −
        </button>
        <button type="button" onClick={() => limit(0, end)}>
          All
        </button>
        <button type="button" onClick={() => limit(0, Math.max(1, (end * 40 * measured.rows.length) / measured.timeline.count))}>
          Start
        </button>
        <Key />
      </div>
      <div
        class="gantt"
        ref={box}
        tabIndex={0}
        role="group"
        aria-label="Gantt chart. Arrow keys pan, plus and minus zoom, 0 shows all; the table below has the totals"
        onKeyDown={onKey}
      >
        <canvas
          ref={canvas}
          onPointerDown={(event) => {
            drag.current = { x: event.offsetX, window: shown.peek() };
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={(event) => {
            const from = drag.current;
            if (!from) return showUnder(event.offsetX, event.offsetY);
            const { left, width: all } = layout();
            const step = ((event.offsetX - from.x) / (all - left)) * (from.window.to - from.window.from);
            limit(from.window.from - step, from.window.to - step);
          }}
          onPointerUp={() => (drag.current = null)}
          onPointerLeave={() => (under.value = null)}
          onDblClick={() => limit(0, end)}
        />
        {under.value && (
          <div class="tooltip" style={{ left: `${Math.min(under.value.x + 14, Math.max(0, width.value - 250))}px`, top: `${under.value.y + 16}px` }}>
            {under.value.lines.map((line, i) => (
              <div key={i} class={i === 0 ? 'nearest' : ''}>
                {line}
              </div>
            ))}
          </div>
        )}
      </div>
    </>
  );
}

function Key() {
  const now = colors();
  const entries: [string, string][] = [
    ['F forward', now.forward],
    ['B backward', now.backward],
    ['U update', now.update],
    ['SYNC', now.sync],
    ['idle', now.idle],
  ];
  return (
    <ul class="key" aria-label="Colours">
      {entries.map(([name, color]) => (
        <li key={name}>
          <i style={{ background: color }} aria-hidden="true" />
          {name}
        </li>
      ))}
    </ul>
  );
}

function fromTo({ timeline }: Traced, action: number, run: RunSchedule): string {
  return [timeline.start, timeline.end].map((times) => formatTicks(times[action] as number, run.unit)).join(' to ');
}

/// "0.31 ms later", "2 us earlier", "as planned"
function shift(by: number, run: RunSchedule, [more, less]: [string, string]): string {
  return by === 0 ? 'as planned' : `${formatTicks(Math.abs(by), run.unit)} ${by > 0 ? more : less}`;
}

/// What was planned of an action and what was measured, and how they differ.
function compare(run: RunSchedule, planned: Traced, hit: Hit): string[] {
  const { measured } = run;
  const other = hit.of === planned ? measured : planned;
  const same = sameAction(other.timeline, other.rows, hit.of.timeline, hit.action);
  if (same < 0) return [`${hit.of === planned ? 'planned' : 'measured'} ${fromTo(hit.of, hit.action, run)}`, 'the other has no such action'];
  const [plan, real] = hit.of === planned ? [hit.action, same] : [same, hit.action];
  const by = (times: 'start' | 'end') => (measured.timeline[times][real] as number) - (planned.timeline[times][plan] as number);
  return [
    `planned ${fromTo(planned, plan, run)}`,
    `measured ${fromTo(measured, real, run)}`,
    `starts ${shift(by('start'), run, ['later', 'earlier'])}, lasts ${shift(by('end') - by('start'), run, ['longer', 'less'])}`,
  ];
}

export function describe(run: RunSchedule, hit: Hit, inside: number): string[] {
  const { timeline } = hit.of;
  const kind = kinds[timeline.kind[hit.action] as number];
  const lines = [
    `${kind}${timeline.microbatch[hit.action]} on ${rowName(timeline.row[hit.action] as number, run.shape)}` +
      (timeline.replicas > 1 ? `, replica ${timeline.replica[hit.action]}` : ''),
    ...(run.planned ? compare(run, run.planned, hit) : [fromTo(hit.of, hit.action, run)]),
  ];
  const reading = hit.of === run.measured ? run.readings.get(hit.action) : undefined;
  if (reading) {
    lines.push(`reads version ${reading.version}`);
    if (!Number.isNaN(reading.staleness)) lines.push(`staleness at its update: ${versions(reading.staleness)}`);
    if (!Number.isNaN(reading.delay)) lines.push(`delay: ${formatValue(reading.delay)} updates`);
  }
  lines.push(`${inside} in flight`);
  return lines;
}

function versions(count: number): string {
  return `${formatValue(count)} ${count === 1 ? 'version' : 'versions'}`;
}
