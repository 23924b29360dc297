// All jobs that the daemon has, kept up to date by asking: the newest ones and those that have not
// ended. What has ended does not change any more.
import { signal } from '@preact/signals';
import { ApiError, get, messageOf } from '../lib/api';
import { token } from '../lib/session';
import { isFinal, stateOf, type Job } from '../lib/wire';

interface JobList {
  jobs: Job[];
  next_before: number;
}

export const jobs = signal<ReadonlyMap<number, Job>>(new Map());
/// All pages have come.
export const complete = signal(false);
export const fault = signal('');

const pageMax = 1000;
const newestMax = 50;
const intervalMs = 1000;
const hiddenIntervalMs = 10_000;
const singlesMax = 20;

function keep(list: readonly Job[]): void {
  if (list.length === 0) return;
  const next = new Map(jobs.peek());
  for (const job of list) next.set(job.id, job);
  jobs.value = next;
}

export function keepJob(job: Job): void {
  keep([job]);
}

export function forgetJob(id: number): void {
  const next = new Map(jobs.peek());
  next.delete(id);
  jobs.value = next;
}

async function loadAll(): Promise<void> {
  let before = 0;
  do {
    const page: JobList = await get(`/v1/jobs?limit=${pageMax}${before > 0 ? `&before=${before}` : ''}`);
    keep(page.jobs);
    before = page.next_before;
  } while (before > 0);
  complete.value = true;
}

/// The newest jobs, down to one that is known. Gives the lowest id that was seen.
async function loadNewest(): Promise<number> {
  const newestKnown = Math.max(0, ...jobs.peek().keys());
  let before = 0;
  let lowest = Infinity;
  do {
    const page: JobList = await get(`/v1/jobs?limit=${newestMax}${before > 0 ? `&before=${before}` : ''}`);
    keep(page.jobs);
    for (const job of page.jobs) lowest = Math.min(lowest, job.id);
    before = page.next_before;
  } while (before > newestKnown);
  return lowest;
}

async function loadState(state: string, seen: Set<number>): Promise<void> {
  let before = 0;
  do {
    const page: JobList = await get(
      `/v1/jobs?state=${state}&limit=${pageMax}${before > 0 ? `&before=${before}` : ''}`,
    );
    keep(page.jobs);
    for (const job of page.jobs) seen.add(job.id);
    before = page.next_before;
  } while (before > 0);
}

export async function refreshJob(id: number): Promise<void> {
  try {
    keepJob(await get<Job>(`/v1/jobs/${id}`));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    forgetJob(id);
  }
}

/// Jobs below `lowest` that had not ended when they were last seen.
async function refreshUnfinished(lowest: number): Promise<void> {
  const open = [...jobs.peek().values()].filter((job) => job.id < lowest && !isFinal(stateOf(job.state)));
  if (open.length === 0) return;
  if (open.length <= singlesMax) {
    for (const job of open) await refreshJob(job.id);
    return;
  }
  const seen = new Set<number>();
  for (const state of ['RUNNING', 'STARTING', 'QUEUED']) await loadState(state, seen);
  // These have ended meanwhile; the rest of them waits for the next round.
  for (const job of open.filter((each) => !seen.has(each.id)).slice(0, singlesMax)) await refreshJob(job.id);
}

async function round(): Promise<void> {
  try {
    if (!complete.peek()) await loadAll();
    else await refreshUnfinished(await loadNewest());
    fault.value = '';
  } catch (error) {
    fault.value = messageOf(error);
  }
}

let following = false;

export async function followJobs(): Promise<void> {
  if (following) return;
  following = true;
  while (token.peek() !== null) {
    await round();
    await pause(document.visibilityState === 'hidden' ? hiddenIntervalMs : intervalMs);
  }
  following = false;
  jobs.value = new Map();
  complete.value = false;
}

let wakeUp: () => void = () => {};

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    wakeUp = () => {
      clearTimeout(timer);
      resolve();
    };
  });
}

/// The next round begins now.
export function refreshNow(): void {
  wakeUp();
}
