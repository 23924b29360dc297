// The Gantt chart with zoom, pan and what is under the pointer.
import { effect, useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { cssColor, isDark } from '../lib/dom';
import { formatCount, formatValue } from '../lib/format';
import { adjust, route } from '../lib/route';
import { actionAt, drawGantt, flightAt, layoutOf, type GanttColors, type Layout, type Window } from './gantt';
import { rowName } from './stages';
import { inFlight, kinds } from './timeline';
import type { RunSchedule } from './view';

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

function windowOfAddress(makespan: number): Window {
  const [from, to] = (route.peek().query.zoom ?? '').split(',').map(Number);
  return from !== undefined && to !== undefined && from < to ? { from, to } : firstLook(makespan);
}

/// A long run is shown from its start on, where single actions can be told apart.
function firstLook(makespan: number): Window {
  return { from: 0, to: makespan };
}

export function Gantt({ run }: { run: RunSchedule }) {
  const { timeline, summary } = run;
  const canvas = useRef<HTMLCanvasElement>(null);
  const box = useRef<HTMLDivElement>(null);
  const shown = useSignal<Window>(windowOfAddress(timeline.makespan));
  const width = useSignal(0);
  const under = useSignal<{ x: number; y: number; lines: string[] } | null>(null);
  const drag = useRef<{ x: number; window: Window } | null>(null);
  const flight = useMemo(() => inFlight(timeline), [timeline]);
  const layout = (): Layout => layoutOf(width.peek(), timeline.rows);

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
    const short = to.left < 50;
    const name = (row: number) => (short ? String(row) : rowName(row, summary, timeline.rows));
    drawGantt(context, { timeline, rows: run.rows }, shown.peek(), to, colors(), flight, name);
  }

  function rememberZoom(): void {
    const { from, to } = shown.peek();
    const all = from <= 0 && to >= timeline.makespan;
    const text = all ? undefined : `${Number(from.toPrecision(9))},${Number(to.toPrecision(9))}`;
    if (route.peek().view === 'schedule' && route.peek().query.zoom !== text) adjust({ zoom: text });
  }

  const timeAt = (x: number): number => {
    const { left, width: all } = layout();
    const { from, to } = shown.peek();
    return from + ((x - left) / (all - left)) * (to - from);
  };
  const limit = (from: number, to: number): void => {
    const length = Math.min(Math.max(to - from, timeline.makespan * 1e-6), timeline.makespan);
    const begin = Math.min(Math.max(0, from), timeline.makespan - length);
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
    const action = actionAt({ timeline, rows: run.rows }, shown.peek(), layout(), x, y);
    under.value = action < 0 ? null : { x, y, lines: describe(run, action, flightAt(flight, timeAt(x))) };
  };

  const onKey = (event: KeyboardEvent) => {
    const actions: Record<string, () => void> = {
      ArrowLeft: () => pan(-0.1),
      ArrowRight: () => pan(0.1),
      '+': () => zoom(0.8),
      '=': () => zoom(0.8),
      '-': () => zoom(1.25),
      '0': () => limit(0, timeline.makespan),
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
        <button type="button" onClick={() => limit(0, timeline.makespan)}>
          All
        </button>
        <button type="button" onClick={() => limit(0, Math.max(1, (timeline.makespan * 40 * timeline.rows) / timeline.count))}>
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
          onDblClick={() => limit(0, timeline.makespan)}
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

export function describe(run: RunSchedule, action: number, inside: number): string[] {
  const { timeline, summary } = run;
  const kind = kinds[timeline.kind[action] as number];
  const lines = [
    `${kind}${timeline.microbatch[action]} on ${rowName(timeline.row[action] as number, summary, timeline.rows)}` +
      (timeline.replicas > 1 ? `, replica ${timeline.replica[action]}` : ''),
    `${formatCount(timeline.start[action] as number)} to ${formatCount(timeline.end[action] as number)}`,
  ];
  const reading = run.readings.get(action);
  if (reading) {
    lines.push(`reads version ${reading.version}`);
    if (!Number.isNaN(reading.staleness)) lines.push(`staleness at its update: ${formatValue(reading.staleness)} versions`);
    if (!Number.isNaN(reading.delay)) lines.push(`delay: ${formatValue(reading.delay)} updates`);
  }
  lines.push(`${inside} in flight`);
  return lines;
}
