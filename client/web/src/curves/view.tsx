// Curves of any runs over each other. Everything that is chosen here stands in the address.
import { effect, useComputed, useSignal, type Signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { jobs } from '../jobs/store';
import { offerFile } from '../lib/dom';
import { nameOf } from '../lib/format';
import { Empty } from '../lib/parts';
import { adjust, route } from '../lib/route';
import { seriesNames, type Series } from '../lib/wire';
import { csvOf } from './export';
import { formatPairs, parseItem } from './items';
import { Legend, type LegendActions } from './legend';
import { xAxes, type XAxis } from './line';
import { Plot, type PlotLine, type PlotSetup } from './plot';
import { CurveSet, setupOf } from './set';
import { axisTitles, formatRange, parseSettings, seriesTitles, type Settings } from './settings';
import type { Range } from './source';
import { pngOf, svgOf, type Figure } from './svg';

export function CurvesView() {
  const settings = useComputed(() => parseSettings(route.value.query));
  const range = useSignal<Range | null>(settings.peek().range);
  const set = useMemo(() => new CurveSet(settings, range), []);
  useEffect(() => () => set.close(), []);
  useRangeInAddress(settings, range);
  const entries = set.entries.value;
  const now = settings.value;
  if (now.items.length === 0) return <NothingChosen />;
  const setup = setupOf(now, entries);
  return (
    <div class="curves">
      <h1 class="visually-hidden">Curves</h1>
      <CurveControls settings={now} setup={setup} range={range} lines={set.lines} />
      <div class="curves-body">
        <div class="plot-column">
          <Plot
            lines={set.lines as Signal<PlotLine[]>}
            setup={setup}
            range={range}
            label="Plot. Arrow keys pan, plus and minus zoom, 0 shows all"
          />
          <Follow range={range} />
        </div>
        <aside class="side" aria-label="Legend">
          <Legend entries={entries} actions={actionsOf(now)} />
          <AddRun settings={now} />
        </aside>
      </div>
    </div>
  );
}

/// The zoom goes to the address once it rests, and comes from there when somebody changes it.
function useRangeInAddress(settings: Signal<Settings>, range: Signal<Range | null>): void {
  useEffect(() => {
    let timer = 0;
    const stopOut = effect(() => {
      const text = formatRange(range.value);
      clearTimeout(timer);
      timer = window.setTimeout(() => {
        if (route.peek().view === 'curves' && route.peek().query.zoom !== text) adjust({ zoom: text });
      }, 250);
    });
    const onHash = () => (range.value = settings.peek().range);
    addEventListener('hashchange', onHash);
    return () => {
      stopOut();
      clearTimeout(timer);
      removeEventListener('hashchange', onHash);
    };
  }, []);
}

function actionsOf(settings: Settings): LegendActions {
  return {
    hide(key, hidden) {
      const next = new Set(settings.hidden);
      if (hidden) next.add(key);
      else next.delete(key);
      adjust({ hide: [...next].join(',') });
    },
    rename(key, name) {
      const names = new Map(settings.names);
      if (name) names.set(key, name);
      else names.delete(key);
      adjust({ names: formatPairs(names) });
    },
    recolor(key, index) {
      const colors = new Map([...settings.colors].map(([each, value]) => [each, String(value)]));
      adjust({ colors: formatPairs(colors.set(key, String(index))) });
    },
    remove(key) {
      adjust({ runs: settings.items.map((item) => item.key).filter((each) => each !== key).join(',') });
    },
  };
}

interface ControlProps {
  settings: Settings;
  setup: PlotSetup;
  range: Signal<Range | null>;
  lines: CurveSet['lines'];
}

function CurveControls({ settings, setup, range, lines }: ControlProps) {
  const changeAxis = (axis: XAxis) => {
    range.value = null;  // it was in another unit
    adjust({ x: axis === 'tick' ? undefined : axis, zoom: undefined });
  };
  return (
    <div class="controls">
      <label>
        Show
        <select value={settings.series} onChange={(event) => adjust({ series: event.currentTarget.value as Series })}>
          {seriesNames
            .filter((name) => name !== 'bound')
            .map((name) => (
              <option key={name} value={name}>
                {seriesTitles[name]}
              </option>
            ))}
        </select>
      </label>
      <label>
        over
        <select aria-label="x axis" value={settings.axis} onChange={(event) => changeAxis(event.currentTarget.value as XAxis)}>
          {xAxes.map((name) => (
            <option key={name} value={name}>
              {axisTitles[name]}
            </option>
          ))}
        </select>
      </label>
      <label class="check">
        <input type="checkbox" checked={settings.xLog} onChange={(event) => adjust({ xlog: event.currentTarget.checked ? '1' : undefined })} />
        log x
      </label>
      <label class="check">
        <input type="checkbox" checked={settings.yLog} onChange={(event) => adjust({ ylog: event.currentTarget.checked ? undefined : '0' })} />
        log y
      </label>
      <label>
        Smooth
        <input
          type="range"
          min={0}
          max={100}
          value={settings.smoothing}
          aria-valuetext={settings.smoothing === 0 ? 'off' : String(settings.smoothing)}
          onInput={(event) => adjust({ smooth: event.currentTarget.value === '0' ? undefined : event.currentTarget.value })}
        />
      </label>
      <span class="spring" />
      <Exports settings={settings} setup={setup} range={range} lines={lines} />
    </div>
  );
}

function figureOf({ settings, setup, range, lines }: ControlProps): Figure | null {
  const shown = lines.peek();
  const { xLog, yLog } = settings;
  const zoomed = range.peek();
  let [xMin, xMax, yMin, yMax] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const line of shown) {
    line.xs.forEach((x, i) => {
      const y = line.ys[i] as number;
      if (Number.isNaN(y) || (xLog && x <= 0) || (yLog && y <= 0)) return;
      if (zoomed && (x < zoomed.from || x > zoomed.to)) return;
      [xMin, xMax] = [Math.min(xMin, x), Math.max(xMax, x)];
      [yMin, yMax] = [Math.min(yMin, y), Math.max(yMax, y)];
    });
  }
  if (!(xMin <= xMax)) return null;
  const room = yLog ? 1 : (yMax - yMin) * 0.04 || 1;
  const y: [number, number] = yLog ? [yMin / 1.15, yMax * 1.15] : [yMin - room, yMax + room];
  return { lines: shown, setup, x: zoomed ? [zoomed.from, zoomed.to] : [xMin, xMax], y };
}

function Exports(props: ControlProps) {
  const save = async (kind: 'csv' | 'svg' | 'png') => {
    const { settings, range, lines } = props;
    if (kind === 'csv') {
      const zoomed = range.peek();
      const inside = (x: number) => !zoomed || (x >= zoomed.from && x <= zoomed.to);
      const text = csvOf(lines.peek(), settings.axis, settings.series, inside);
      offerFile('curves.csv', new Blob([text], { type: 'text/csv' }));
      return;
    }
    const figure = figureOf(props);
    if (!figure) return;
    const svg = svgOf(figure);
    offerFile(`curves.${kind}`, kind === 'svg' ? new Blob([svg], { type: 'image/svg+xml' }) : await pngOf(svg));
  };
  return (
    <span class="group" role="group" aria-label="Save what is shown">
      {(['csv', 'svg', 'png'] as const).map((kind) => (
        <button key={kind} type="button" onClick={() => void save(kind)}>
          {kind.toUpperCase()}
        </button>
      ))}
    </span>
  );
}

function Follow({ range }: { range: Signal<Range | null> }) {
  return (
    <p class="follow" role="status">
      {range.value === null ? (
        <span class="hint">Shows all and follows what comes. Drag to zoom; wheel zooms, Shift+wheel pans.</span>
      ) : (
        <>
          <span>Zoomed: does not follow.</span>
          <button type="button" onClick={() => (range.value = null)}>
            Show all
          </button>
        </>
      )}
    </p>
  );
}

function addRun(settings: Settings, text: string): boolean {
  const item = parseItem(text.split(' ')[0] ?? '');
  if (!item) return false;
  adjust({ runs: [...settings.items.map((each) => each.key), item.key].join(',') });
  return true;
}

function AddRun({ settings }: { settings: Settings }) {
  const text = useSignal('');
  const wrong = useSignal(false);
  const newest = [...jobs.value.values()].sort((a, b) => b.id - a.id).slice(0, 100);
  return (
    <form
      class="add-run"
      onSubmit={(event) => {
        event.preventDefault();
        wrong.value = !addRun(settings, text.value.trim());
        if (!wrong.value) text.value = '';
      }}
    >
      <label>
        Add a curve
        <input
          list="known-jobs"
          placeholder="12, 12.3 or 12g0"
          aria-invalid={wrong.value}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
        />
      </label>
      <datalist id="known-jobs">
        {newest.map((job) => (
          <option key={job.id} value={`${job.id} ${nameOf(job)}`} />
        ))}
      </datalist>
      <button type="submit">Add</button>
      {wrong.value && (
        <p class="fault" role="alert">
          The number of a job (12), of a run of a sweep (12.3), or of a point of a sweep with its seeds (12g0).
        </p>
      )}
    </form>
  );
}

function NothingChosen() {
  const settings = parseSettings(route.value.query);
  const newest = [...jobs.value.values()].sort((a, b) => b.id - a.id).slice(0, 8);
  return (
    <Empty title="No curve is chosen">
      <p>Tick jobs in the list and choose Overlay, or begin with one of these:</p>
      <ul class="picks">
        {newest.map((job) => (
          <li key={job.id}>
            <button type="button" onClick={() => addRun(settings, String(job.id))}>
              {job.id} · {nameOf(job)}
            </button>
          </li>
        ))}
      </ul>
      {newest.length === 0 && <p class="hint">There are no jobs yet.</p>}
    </Empty>
  );
}
