// The table of jobs. Only the rows in sight are in the document, so thousands cost nothing.
import { useSignal, type Signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { narrow, now } from '../lib/dom';
import { formatAge, formatDuration, formatSizes, formatValue, fractionDone, nameOf, runsOf, timeLeft } from '../lib/format';
import { ProgressBar, StateMark } from '../lib/parts';
import { adjust, formatRoute } from '../lib/route';
import { isFinal, num, stateOf, type Job } from '../lib/wire';
import { cancelJob } from './actions';
import { rowsInSight, type Filter, type SortKey } from './rows';

const rowHeight = 40;
const narrowRowHeight = 76;

interface Column {
  key: SortKey;
  title: string;
  number?: boolean;
}
const columns: Column[] = [
  { key: 'id', title: 'Job', number: true },
  { key: 'state', title: 'State' },
  { key: 'name', title: 'Name' },
  { key: 'schedule', title: 'Schedule' },
  { key: 'objective', title: 'Objective' },
  { key: 'progress', title: 'Progress' },
  { key: 'latest', title: 'Latest', number: true },
  { key: 'best', title: 'Best', number: true },
  { key: 'age', title: 'Age', number: true },
];

interface Props {
  rows: Job[];
  filter: Filter;
  chosen: Signal<ReadonlySet<number>>;
}

export function JobTable({ rows, filter, chosen }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const scrollTop = useSignal(0);
  const height = useSignal(800);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(() => (height.value = element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const each = narrow.value ? narrowRowHeight : rowHeight;
  const { first, end } = rowsInSight(rows.length, each, scrollTop.value, height.value);
  return (
    <div
      class="table-scroll"
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label="Jobs, scrolls"
      onScroll={(event) => (scrollTop.value = event.currentTarget.scrollTop)}
    >
      <div class="job-table" role="table" aria-label="Jobs" aria-rowcount={rows.length + 1}>
        <div role="rowgroup" class="job-head">
          <div role="row" class="job-row">
            <span role="columnheader">
              <span class="visually-hidden">Overlay</span>
            </span>
            {columns.map((column) => (
              <Heading key={column.key} column={column} filter={filter} />
            ))}
            <span role="columnheader">
              <span class="visually-hidden">Actions</span>
            </span>
          </div>
        </div>
        <div role="rowgroup" class="job-rows" style={{ height: `${rows.length * each}px` }}>
          {rows.slice(first, end).map((job, i) => (
            <Row key={job.id} job={job} index={first + i} top={(first + i) * each} chosen={chosen} />
          ))}
        </div>
      </div>
    </div>
  );
}

function Heading({ column, filter }: { column: Column; filter: Filter }) {
  const active = filter.sort === column.key;
  const direction = filter.descending ? 'descending' : 'ascending';
  const next = active && !filter.descending ? `-${column.key}` : column.key;
  return (
    <span role="columnheader" aria-sort={active ? direction : 'none'} class={`c-${column.key}${column.number ? ' number' : ''}`}>
      <button type="button" class="heading" onClick={() => adjust({ sort: next })}>
        {column.title}
        <span aria-hidden="true">{active ? (filter.descending ? ' ▾' : ' ▴') : ''}</span>
      </button>
    </span>
  );
}

function Row({ job, index, top, chosen }: { job: Job; index: number; top: number; chosen: Props['chosen'] }) {
  const state = stateOf(job.state);
  const toggle = (on: boolean) => {
    const next = new Set(chosen.value);
    if (on) next.add(job.id);
    else next.delete(job.id);
    chosen.value = next;
  };
  return (
    <div role="row" aria-rowindex={index + 2} class="job-row" style={{ top: `${top}px` }} data-job={job.id}>
      <span role="cell" class="c-pick">
        <input
          type="checkbox"
          aria-label={`Overlay job ${job.id}`}
          checked={chosen.value.has(job.id)}
          onChange={(event) => toggle(event.currentTarget.checked)}
        />
      </span>
      <span role="cell" class="c-id number">
        {job.id}
      </span>
      <span role="cell" class="c-state">
        <StateMark state={state} />
      </span>
      <span role="cell" class="c-name" title={nameOf(job)}>
        <a href={formatRoute('jobs', { ...currentQuery(), job: String(job.id) })}>{nameOf(job)}</a>
        {runsOf(job) > 1 && <span class="tag">{runsOf(job)} runs</span>}
      </span>
      <span role="cell" class="c-schedule">
        {job.spec?.schedule?.kind} <span class="hint">{formatSizes(job.spec?.schedule)}</span>
      </span>
      <span role="cell" class="c-objective">
        {job.spec?.objective?.kind}
      </span>
      <span role="cell" class="c-progress">
        <Progressed job={job} />
      </span>
      <span role="cell" class="c-latest number">
        {job.objective_last === undefined ? '' : formatValue(num(job.objective_last))}
      </span>
      <span role="cell" class="c-best number">
        {job.objective_best === undefined ? '' : formatValue(num(job.objective_best))}
      </span>
      <span role="cell" class="c-age number" title={new Date(num(job.submitted_unix_ms)).toLocaleString()}>
        {formatAge(now.value - num(job.submitted_unix_ms))}
      </span>
      <span role="cell" class="c-actions">
        <a class="button small" href={linkToResult(job)}>
          {runsOf(job) > 1 ? 'Sweep' : 'Curve'}
        </a>
        {!isFinal(state) && (
          <button type="button" class="small danger" aria-label={`Cancel job ${job.id}`} onClick={() => void cancelJob(job)}>
            Cancel
          </button>
        )}
      </span>
    </div>
  );
}

function currentQuery(): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(location.hash.split('?')[1] ?? ''));
}

export function linkToResult(job: Job): string {
  return runsOf(job) > 1 ? formatRoute('sweeps', { job: String(job.id) }) : formatRoute('curves', { runs: String(job.id) });
}

function Progressed({ job }: { job: Job }) {
  const state = stateOf(job.state);
  const done = fractionDone(job.progress);
  if (state === 'QUEUED' || state === 'STARTING' || Number.isNaN(done)) return null;
  const left = timeLeft(job, now.value);
  return (
    <>
      <ProgressBar progress={job.progress} label={`Progress of job ${job.id}`} />
      <span class="percent">{Math.floor(100 * done)} %</span>
      {Number.isFinite(left) && <span class="hint left">{formatDuration(left)} left</span>}
    </>
  );
}
