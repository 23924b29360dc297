// Which run is where.
import { runsOf } from '../lib/format';
import { stateOf, type Job, type PoolInfo, type Progress, type Run, type State } from '../lib/wire';

export interface Place {
  pool: string;
  job: number;
  run: number;
  /// The job has more than one run.
  many: boolean;
  ranks: number[];
  state: State;
  progress: Progress | undefined;
}

/// Jobs of one run by what the ranks say; of the others the given runs.
export function placesOf(pools: readonly PoolInfo[], jobs: ReadonlyMap<number, Job>, runs: readonly Run[]): Place[] {
  const places: Place[] = [];
  for (const pool of pools) {
    for (const id of new Set(pool.rank_jobs.filter((job) => job > 0))) {
      const job = jobs.get(id);
      const ranks = pool.rank_jobs.flatMap((each, rank) => (each === id ? [rank] : []));
      if (job && runsOf(job) > 1) continue;
      const state = job ? stateOf(job.state) : 'RUNNING';
      places.push({ pool: pool.name, job: id, run: 0, many: false, ranks, state, progress: job?.progress });
    }
  }
  for (const run of runs) {
    const { pool, job, number, ranks, progress } = run;
    places.push({ pool, job, run: number, many: true, ranks, state: stateOf(run.state), progress });
  }
  return places.sort((a, b) => a.job - b.job || a.run - b.run);
}
