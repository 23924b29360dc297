// Sweeps: what came out against what was swept, and the table of all points.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { jobs } from '../jobs/store';
import { get, messageOf } from '../lib/api';
import { isDark } from '../lib/dom';
import { formatValue, nameOf, runsOf } from '../lib/format';
import { colorOf, dashOf } from '../lib/palette';
import { Empty, ProgressBar, StateMark } from '../lib/parts';
import { adjust, formatRoute, route } from '../lib/route';
import { allRuns, shortPath } from '../lib/runs';
import { isFinal, num, stateOf, type Job } from '../lib/wire';
import { numericKeys, sweepLines, sweepOfRuns, sweepOfTable, type Metric, type Sweep, type SweepPoint } from './points';
import { SweepPlot } from './plot';

const intervalMs = 3000;
const rowsMax = 500;
/// Runs of a sweep that goes on come with their summaries, which is too much for very many.
const liveRunsMax = 3000;

async function load(id: number, metric: Metric): Promise<{ job: Job; sweep: Sweep | null }> {
  const job = await get<Job>(`/v1/jobs/${id}`);
  if (job.summary_json) return { job, sweep: sweepOfTable(job.summary_json, metric) };
  if (runsOf(job) > liveRunsMax) return { job, sweep: null };
  return { job, sweep: sweepOfRuns(await allRuns(id)) };
}

export function SweepsView() {
  const { query } = route.value;
  const sweeps = [...jobs.value.values()].filter((job) => runsOf(job) > 1).sort((a, b) => b.id - a.id);
  const chosen = Number(query.job ?? sweeps[0]?.id ?? 0);
  const metric: Metric = query.by === 'tail' ? 'tail_mean' : 'objective_last';
  const answer = useSignal<{ id: number; job: Job; sweep: Sweep | null } | null>(null);
  const fault = useSignal('');
  useEffect(() => {
    if (!chosen) return;
    let timer = 0;
    let closed = false;
    const round = async () => {
      let again = true;
      try {
        const next = await load(chosen, metric);
        if (closed) return;
        answer.value = { id: chosen, ...next };
        fault.value = '';
        again = !isFinal(stateOf(next.job.state));
      } catch (error) {
        fault.value = messageOf(error);
      }
      if (again && !closed) timer = window.setTimeout(round, intervalMs);
    };
    void round();
    return () => {
      closed = true;
      clearTimeout(timer);
    };
  }, [chosen, metric]);
  if (!chosen) {
    return (
      <Empty title="No sweeps yet">
        <p>
          A job with <code>sweep:</code> or <code>repeats:</code> has many runs; what came out of them is compared here.
        </p>
      </Empty>
    );
  }
  const shown = answer.value?.id === chosen ? answer.value : null;
  return (
    <div class="sweeps">
      <h1 class="visually-hidden">Sweeps</h1>
      <div class="controls">
        <label>
          Sweep
          <select value={String(chosen)} onChange={(event) => adjust({ job: event.currentTarget.value, over: undefined })}>
            {!sweeps.some((job) => job.id === chosen) && <option value={String(chosen)}>{chosen}</option>}
            {sweeps.map((job) => (
              <option key={job.id} value={String(job.id)}>
                {job.id} · {nameOf(job)}
              </option>
            ))}
          </select>
        </label>
        <label>
          by
          <select value={query.by ?? 'final'} onChange={(event) => adjust({ by: event.currentTarget.value })}>
            <option value="final">last objective</option>
            <option value="tail">mean of the tail</option>
          </select>
        </label>
        {shown?.sweep && <Axes sweep={shown.sweep} />}
      </div>
      {fault.value && <p class="fault">{fault.value}</p>}
      {!shown && !fault.value && <p class="hint">Loading…</p>}
      {shown && <Standing job={shown.job} sweep={shown.sweep} />}
      {shown?.sweep && <Results job={shown.job} sweep={shown.sweep} metric={metric} />}
    </div>
  );
}

function Axes({ sweep }: { sweep: Sweep }) {
  const { query } = route.value;
  const keys = numericKeys(sweep.points);
  const logX = mayBeLog(sweep, chosenKey(keys));
  return (
    <>
      {keys.length > 0 && (
        <label>
          over
          <select value={chosenKey(keys)} onChange={(event) => adjust({ over: event.currentTarget.value })}>
            {keys.map((key) => (
              <option key={key} value={key}>
                {key}
              </option>
            ))}
          </select>
        </label>
      )}
      <label class="check" title={logX ? '' : 'Not every value is above zero'}>
        <input
          type="checkbox"
          disabled={!logX}
          checked={logX && query.xlog !== '0'}
          onChange={(event) => adjust({ xlog: event.currentTarget.checked ? undefined : '0' })}
        />
        log x
      </label>
      <label class="check">
        <input type="checkbox" checked={query.ylog !== '0'} onChange={(event) => adjust({ ylog: event.currentTarget.checked ? undefined : '0' })} />
        log y
      </label>
    </>
  );
}

/// A log axis would leave out the points at zero.
function mayBeLog(sweep: Sweep, key: string): boolean {
  return sweep.points.every((point) => num(point.swept[key] as number) > 0);
}

/// The key that the address names, else the one that changes fastest.
function chosenKey(keys: readonly string[]): string {
  const wanted = route.value.query.over;
  return keys.find((key) => key === wanted) ?? keys[keys.length - 1] ?? '';
}

function Standing({ job, sweep }: { job: Job; sweep: Sweep | null }) {
  const counts = job.progress?.runs;
  const ended = counts ? counts.succeeded + counts.failed + counts.cancelled : 0;
  return (
    <>
      <p class="standing">
        <StateMark state={stateOf(job.state)} />
        <ProgressBar progress={job.progress} label="Runs that have ended" />
        <span>
          {ended} of {runsOf(job)} runs
        </span>
        {counts && counts.failed > 0 && <span class="fault">{counts.failed} failed</span>}
        {!sweep && <span class="hint">With so many runs the table comes when all have ended.</span>}
      </p>
      {job.message && <p class="remark">{job.message}</p>}
      {sweep?.warnings.map((warning) => (
        <p key={warning} class="remark warning">
          {warning}
        </p>
      ))}
    </>
  );
}

function Results({ job, sweep, metric }: { job: Job; sweep: Sweep; metric: Metric }) {
  const { query } = route.value;
  const box = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  useEffect(() => {
    if (!box.current) return;
    const element = box.current;
    const observer = new ResizeObserver(() => (width.value = element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const keys = numericKeys(sweep.points);
  const key = chosenKey(keys);
  return (
    <>
      <div ref={box} class="sweep-box">
        {width.value > 0 && key && (
          <SweepPlot
            job={job.id}
            sweep={sweep}
            xKey={key}
            xLog={query.xlog !== '0' && mayBeLog(sweep, key)}
            yLog={query.ylog !== '0'}
            yLabel={metric === 'objective_last' ? 'Last objective' : 'Mean of the tail'}
            width={Math.max(300, width.value - 2)}
          />
        )}
        {!key && <p class="hint">No key takes several numbers: the table has it all.</p>}
        {key && <SweepLegend sweep={sweep} xKey={key} />}
      </div>
      <SweepTable job={job} sweep={sweep} />
    </>
  );
}

function SweepLegend({ sweep, xKey }: { sweep: Sweep; xKey: string }) {
  const lines = sweepLines(sweep.points, xKey, shortPath);
  if (lines.length < 2) return null;
  return (
    <ul class="sweep-legend">
      {lines.map((line, i) => (
        <li key={line.label}>
          <svg viewBox="0 0 28 8" width="28" height="8" aria-hidden="true">
            <path d="M1 4h26" stroke={colorOf(i, isDark())} stroke-width="3" stroke-dasharray={dashOf(i).join(' ')} />
          </svg>
          {line.label}
        </li>
      ))}
    </ul>
  );
}

function byValue(a: SweepPoint, b: SweepPoint): number {
  if (Number.isNaN(a.value) || Number.isNaN(b.value)) return Number(Number.isNaN(a.value)) - Number(Number.isNaN(b.value)) || a.index - b.index;
  return a.value - b.value;
}

function SweepTable({ job, sweep }: { job: Job; sweep: Sweep }) {
  const keys = Object.keys(sweep.points[0]?.swept ?? {});
  const rows = [...sweep.points].sort(byValue);
  const several = rows.some((point) => point.runs > 1);
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Points of the sweep">
      <table>
        <caption>{rows.length > rowsMax ? `The best ${rowsMax} of ${rows.length} points` : `${rows.length} points, the best first`}</caption>
        <thead>
          <tr>
            {keys.map((key) => (
              <th scope="col" key={key} title={key} class="number">
                {shortPath(key)}
              </th>
            ))}
            <th scope="col" class="number">
              Value
            </th>
            {several && (
              <th scope="col" class="number">
                95 % interval
              </th>
            )}
            <th scope="col">Outcome</th>
            <th scope="col">Curves</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, rowsMax).map((point) => (
            <tr key={point.index} class={point.index === sweep.best?.point ? 'best' : ''}>
              {keys.map((key) => (
                <td key={key} class="number">
                  {typeof point.swept[key] === 'number' ? formatValue(point.swept[key]) : JSON.stringify(point.swept[key])}
                </td>
              ))}
              <td class="number">{Number.isNaN(point.value) ? '–' : formatValue(point.value)}</td>
              {several && (
                <td class="number">{Number.isNaN(point.value) ? '' : `${formatValue(point.low)} … ${formatValue(point.high)}`}</td>
              )}
              <td>
                {point.index === sweep.best?.point ? '★ best, ' : ''}
                {point.outcome === 'open' ? 'not ended' : point.outcome}
                {point.stable === false && point.outcome === 'succeeded' ? ', not stable' : ''}
              </td>
              <td>
                <a href={formatRoute('curves', { runs: point.runs > 1 ? `${job.id}g${point.index}` : `${job.id}.${point.index}` })}>curves</a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
