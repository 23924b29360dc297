// All jobs: filter, search, sort; what one is about; overlay and cancel.
import { useComputed, useSignal, type Signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { narrow } from '../lib/dom';
import { Empty } from '../lib/parts';
import { adjust, go, route } from '../lib/route';
import { states } from '../lib/wire';
import { JobDetail } from './detail';
import { rowsOf, type Filter, type SortKey } from './rows';
import { complete, fault, jobs } from './store';
import { submitOpen } from './submit';
import { JobTable } from './table';

const sortKeys: readonly SortKey[] = [
  'id', 'state', 'name', 'schedule', 'objective', 'progress', 'latest', 'best', 'age',
];

function filterOf(query: Record<string, string>): Filter {
  const sort = query.sort ?? '-id';
  const key = sort.replace(/^-/, '') as SortKey;
  return {
    text: query.q ?? '',
    state: query.state ?? '',
    sort: sortKeys.includes(key) ? key : 'id',
    descending: sort.startsWith('-'),
  };
}

export function JobsView() {
  const rows = useComputed(() => rowsOf(jobs.value.values(), filterOf(route.value.query)));
  const chosen = useSignal<ReadonlySet<number>>(new Set());
  const { query } = route.value;
  const shown = query.job ? jobs.value.get(Number(query.job)) : undefined;
  return (
    <div class="jobs">
      <h1 class="visually-hidden">Jobs</h1>
      <Controls count={rows.value.length} chosen={chosen} />
      <div class={shown ? 'jobs-body with-detail' : 'jobs-body'}>
        {rows.value.length > 0 ? <JobTable rows={rows.value} filter={filterOf(query)} chosen={chosen} /> : <NoRows />}
        {shown && <JobDetail job={shown} />}
      </div>
    </div>
  );
}

function NoRows() {
  if (jobs.value.size > 0) {
    return (
      <Empty title="No job matches">
        <button type="button" onClick={() => adjust({ q: undefined, state: undefined })}>
          Show all {jobs.value.size}
        </button>
      </Empty>
    );
  }
  if (!complete.value) return <Empty title={fault.value ? 'Not live' : 'Loading the jobs…'}>{fault.value}</Empty>;
  return (
    <Empty title="No jobs yet">
      <p>
        Drop a job file here, or submit one: the dialog has an example. From a terminal:{' '}
        <code>pipewright submit JOB.yaml</code>
      </p>
      <button type="button" class="primary" onClick={() => (submitOpen.value = true)}>
        Submit a job
      </button>
    </Empty>
  );
}

function Controls({ count, chosen }: { count: number; chosen: Signal<ReadonlySet<number>> }) {
  const filter = filterOf(route.value.query);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.closest('input, textarea, select, dialog');
      if (event.key !== '/' || typing) return;
      event.preventDefault();
      document.getElementById('job-search')?.focus();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <div class="controls">
      <input
        id="job-search"
        type="search"
        aria-label="Search jobs"
        placeholder="Search (press /)"
        value={filter.text}
        onInput={(event) => adjust({ q: event.currentTarget.value })}
      />
      <select
        aria-label="State"
        value={filter.state}
        onChange={(event) => adjust({ state: event.currentTarget.value })}
      >
        <option value="">All states</option>
        <option value="active">Not ended</option>
        {states.map((state) => (
          <option key={state} value={state}>
            {state.charAt(0) + state.slice(1).toLowerCase()}
          </option>
        ))}
      </select>
      {narrow.value && <SortSelect filter={filter} />}
      <span class="hint count" aria-live="polite">
        {count === jobs.value.size ? `${count} jobs` : `${count} of ${jobs.value.size}`}
      </span>
      <span class="spring" />
      {chosen.value.size > 0 && (
        <>
          <button type="button" class="quiet" onClick={() => (chosen.value = new Set())}>
            Clear
          </button>
          <button
            type="button"
            class="primary"
            onClick={() => go('curves', { runs: [...chosen.value].sort((a, b) => a - b).join(',') })}
          >
            Overlay {chosen.value.size}
          </button>
        </>
      )}
    </div>
  );
}

function SortSelect({ filter }: { filter: Filter }) {
  return (
    <select
      aria-label="Sort by"
      value={(filter.descending ? '-' : '') + filter.sort}
      onChange={(event) => adjust({ sort: event.currentTarget.value })}
    >
      <option value="-id">Newest first</option>
      <option value="state">By state</option>
      <option value="name">By name</option>
      <option value="best">Best first</option>
      <option value="latest">Lowest latest</option>
    </select>
  );
}
