// The curves that are drawn: name, colour, how each stands; hide, rename, colour, take away.
import { reachable } from '../lib/api';
import { formatCount, formatValue } from '../lib/format';
import { paletteSize } from '../lib/palette';
import { StateMark } from '../lib/parts';
import { formatRoute, route } from '../lib/route';
import { isFinal } from '../lib/wire';
import type { Entry } from './set';

export interface LegendActions {
  hide(key: string, hidden: boolean): void;
  rename(key: string, name: string): void;
  recolor(key: string, index: number): void;
  remove(key: string): void;
}

export function Legend({ entries, actions }: { entries: Entry[]; actions: LegendActions }) {
  return (
    <ul class="legend" aria-label="Curves">
      {entries.map((entry) => (
        <LegendEntry key={entry.curve.item.key} entry={entry} actions={actions} />
      ))}
    </ul>
  );
}

function lastFiniteOf(ys: readonly number[]): number {
  for (let i = ys.length - 1; i >= 0; --i) if (!Number.isNaN(ys[i])) return ys[i] as number;
  return NaN;
}

function leastOf(ys: readonly number[]): number {
  let least = NaN;
  for (const y of ys) if (!(y >= least)) least = Number.isNaN(y) ? least : y;
  return least;
}

function LegendEntry({ entry, actions }: { entry: Entry; actions: LegendActions }) {
  const { curve, drawn } = entry;
  const key = curve.item.key;
  const ys = (drawn.raw ?? drawn.line).ys;
  const meta = curve.meta.value;
  return (
    <li class={entry.hidden ? 'hidden' : ''} data-run={key}>
      <button
        type="button"
        class="swatch"
        aria-label={`Colour of ${entry.label}: ${(entry.colorIndex % paletteSize) + 1} of ${paletteSize}. Change`}
        title="Another colour"
        onClick={() => actions.recolor(key, (entry.colorIndex + 1) % paletteSize)}
      >
        <svg viewBox="0 0 28 12" aria-hidden="true">
          <path d="M1 6h26" stroke={entry.color} stroke-width="4" stroke-dasharray={entry.dash.join(' ')} />
        </svg>
      </button>
      <input
        class="rename"
        aria-label={`Name of curve ${key}`}
        title={entry.label}
        value={entry.name}
        onChange={(event) => actions.rename(key, event.currentTarget.value.trim())}
      />
      <button
        type="button"
        class="quiet"
        aria-pressed={entry.hidden}
        aria-label={`Hide ${entry.label}`}
        onClick={() => actions.hide(key, !entry.hidden)}
      >
        {entry.hidden ? 'Show' : 'Hide'}
      </button>
      <button type="button" class="quiet" aria-label={`Take ${entry.label} away`} onClick={() => actions.remove(key)}>
        ✕
      </button>
      {meta?.detail && <div class="sub">{meta.detail}</div>}
      <div class="facts-line">
        <a href={formatRoute('jobs', { job: String(curve.item.job) })}>job {key}</a>
        {meta && <StateMark state={meta.state} />}
        <Standing entry={entry} />
        {ys.length > 0 && (
          <span class="values">
            latest <b>{formatValue(lastFiniteOf(ys))}</b>, least <b>{formatValue(leastOf(ys))}</b>
          </span>
        )}
        {curve.points() > 0 && (
          <span class="hint" data-points={curve.points()}>
            {formatCount(curve.points())} points{drawn.line.raw ? '' : ', down-sampled'}
          </span>
        )}
      </div>
    </li>
  );
}

function Standing({ entry }: { entry: Entry }) {
  const { curve, drawn } = entry;
  const meta = curve.meta.value;
  const fault = curve.fault.value || curve.sourceFault.value;
  const lost = curve.status.value === 'lost';
  const notLive = <span class="warning">not live: connecting again…</span>;
  // While the daemon is away a request that it cut off is no fault of this curve.
  if (lost && reachable.value === false) return notLive;
  if (fault) return <span class="fault">{fault}</span>;
  if (meta?.message.startsWith('diverged')) return <span class="warning">✕ {meta.message}</span>;
  if (drawn.line.faults.length > 0) return <span class="warning">✕ not finite from {formatValue(drawn.line.faults[0]?.x ?? NaN)} on</span>;
  if (lost) return notLive;
  if (curve.loading.value) return <span class="hint">loading…</span>;
  if (drawn.line.xs.length === 0) {
    const ended = meta !== null && isFinal(meta.state);
    return <span class="hint">{ended ? 'it has no such series' : 'no points yet'}</span>;
  }
  if (route.value.query.ylog !== '0' && (drawn.raw ?? drawn.line).ys.some((y) => y <= 0)) {
    return <span class="warning">not above 0 everywhere: the log axis leaves points out</span>;
  }
  if (curve.remark.value) return <span class="hint">{curve.remark.value}</span>;
  return null;
}
