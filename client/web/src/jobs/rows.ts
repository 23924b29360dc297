// Which jobs the table shows, in which order.
import { formatSizes, fractionDone, nameOf } from '../lib/format';
import { num, stateOf, type Job } from '../lib/wire';

export type SortKey = 'id' | 'state' | 'name' | 'schedule' | 'objective' | 'progress' | 'latest' | 'best' | 'age';

export interface Filter {
  text: string;
  state: string;  // '' for all, 'active' for those that have not ended
  sort: SortKey;
  descending: boolean;
}

const activity = { RUNNING: 0, STARTING: 1, QUEUED: 2, FAILED: 3, CANCELLED: 4, SUCCEEDED: 5 } as const;

function sortValue(job: Job, key: SortKey): number | string {
  switch (key) {
    case 'id':
      return job.id;
    case 'state':
      return activity[stateOf(job.state)];
    case 'name':
      return nameOf(job).toLowerCase();
    case 'schedule':
      return `${job.spec?.schedule?.kind ?? ''} ${formatSizes(job.spec?.schedule)}`;
    case 'objective':
      return job.spec?.objective?.kind ?? '';
    case 'progress':
      return fractionDone(job.progress);
    case 'latest':
      return num(job.objective_last);
    case 'best':
      return num(job.objective_best);
    case 'age':
      return -num(job.submitted_unix_ms);
  }
}

/// What is not a number stands behind all numbers, whichever the order.
function compare(a: number | string, b: number | string, sign: number): number {
  if (typeof a === 'string' || typeof b === 'string') return sign * String(a).localeCompare(String(b));
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return sign * (a - b);
}

function matches(job: Job, filter: Filter, words: string[]): boolean {
  const state = stateOf(job.state);
  if (filter.state === 'active' && !['QUEUED', 'STARTING', 'RUNNING'].includes(state)) return false;
  if (filter.state !== '' && filter.state !== 'active' && filter.state !== state) return false;
  if (words.length === 0) return true;
  const text =
    `${job.id} ${nameOf(job)} ${job.spec?.schedule?.kind} ${formatSizes(job.spec?.schedule)} ` +
    `${job.spec?.objective?.kind} ${state} ${job.pool} ${job.message}`;
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}

export function rowsOf(jobs: Iterable<Job>, filter: Filter): Job[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const sign = filter.descending ? -1 : 1;
  return [...jobs]
    .filter((job) => matches(job, filter, words))
    .map((job) => ({ job, value: sortValue(job, filter.sort) }))
    .sort((a, b) => compare(a.value, b.value, sign) || b.job.id - a.job.id)
    .map(({ job }) => job);
}

/// Which rows of a list are in sight, and a few around them.
export function rowsInSight(count: number, rowHeight: number, scrollTop: number, height: number) {
  const around = 8;
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - around);
  const end = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + around);
  return { first: Math.min(first, end), end };
}
