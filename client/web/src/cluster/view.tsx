// Pools and their ranks: who is there, who works on what, when each was last heard of.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { jobs } from '../jobs/store';
import { get, messageOf } from '../lib/api';
import { now } from '../lib/dom';
import { formatAge, nameOf, runsOf } from '../lib/format';
import { Empty, ProgressBar, StateMark } from '../lib/parts';
import { formatRoute } from '../lib/route';
import { isFinal, num, stateOf, type PoolInfo, type Run, type State } from '../lib/wire';
import { placesOf, type Place } from './places';

const intervalMs = 2000;
/// A pool that is silent for so long is about to be lost (docs/http.md, "Pools").
const silenceMs = 6000;

interface Answer {
  pools: PoolInfo[];
  places: Place[];
}

/// Where the runs of a sweep are. They start in the order of their numbers, so those under way are
/// near the number of those that have ended.
async function runsUnderWay(job: number): Promise<Run[]> {
  const counts = jobs.peek().get(job)?.progress?.runs;
  const ended = counts ? counts.succeeded + counts.failed + counts.cancelled : 0;
  const page = await get<{ runs: Run[] }>(`/v1/jobs/${job}/runs?from=${Math.max(0, ended - 100)}&limit=400`);
  return page.runs.filter((run) => !isFinal(stateOf(run.state)) && run.pool);
}

async function load(): Promise<Answer> {
  const { pools } = await get<{ pools: PoolInfo[] }>('/v1/pools');
  const busy = new Set(pools.flatMap((pool) => pool.rank_jobs).filter((job) => job > 0));
  const sweeps = [...busy].filter((id) => {
    const job = jobs.peek().get(id);
    return job !== undefined && runsOf(job) > 1;
  });
  const runs = (await Promise.all(sweeps.map(runsUnderWay))).flat();
  return { pools, places: placesOf(pools, jobs.peek(), runs) };
}

export function ClusterView() {
  const answer = useSignal<Answer | null>(null);
  const fault = useSignal('');
  useEffect(() => {
    let timer = 0;
    let closed = false;
    const round = async () => {
      try {
        answer.value = await load();
        fault.value = '';
      } catch (error) {
        fault.value = messageOf(error);
      }
      if (!closed) timer = window.setTimeout(round, intervalMs);
    };
    void round();
    return () => {
      closed = true;
      clearTimeout(timer);
    };
  }, []);
  if (answer.value === null) return <Empty title={fault.value ? 'Not live' : 'Loading the pools…'}>{fault.value}</Empty>;
  const { pools, places } = answer.value;
  if (pools.length === 0) {
    return (
      <Empty title="No pool is attached">
        <p>
          Jobs wait until one comes: <code>pipewright up</code> starts one on this machine,{' '}
          <code>pipewright pool start --slurm</code> asks Slurm for one.
        </p>
      </Empty>
    );
  }
  const ranks = pools.reduce((sum, pool) => sum + pool.rank_hosts.length, 0);
  const busy = pools.reduce((sum, pool) => sum + pool.rank_jobs.filter((job) => job > 0).length, 0);
  const waiting = [...jobs.value.values()].filter((job) => stateOf(job.state) === 'QUEUED').length;
  return (
    <div class="cluster">
      <h1 class="visually-hidden">Cluster</h1>
      <dl class="totals">
        <Total name="Pools" value={pools.length} />
        <Total name="Ranks" value={ranks} />
        <Total name="Busy" value={busy} />
        <Total name="Idle" value={ranks - busy} />
        <Total name="Jobs waiting" value={waiting} />
      </dl>
      {pools.map((pool) => (
        <Pool key={pool.name} pool={pool} places={places.filter((place) => place.pool === pool.name)} />
      ))}
    </div>
  );
}

function Total({ name, value }: { name: string; value: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Pool({ pool, places }: { pool: PoolInfo; places: Place[] }) {
  const silent = now.value - num(pool.heartbeat_unix_ms);
  const attached = pool.state === 'attached';
  const leaseMs = num(pool.lease_ends_unix_ms) - now.value;
  const where = pool.slurm_job ? `Slurm job ${pool.slurm_job}` : pool.local ? 'on the daemon’s machine' : 'attached from elsewhere';
  return (
    <section class="pool" aria-label={`Pool ${pool.name}`}>
      <header>
        <h2>{pool.name}</h2>
        <span class={attached ? 'state succeeded' : 'state queued'}>{pool.state}</span>
        <span class="hint">{where}</span>
        <span class="spring" />
        {attached && (
          <span class={silent > silenceMs ? 'warning' : 'hint'}>
            heartbeat {formatAge(silent)} ago · up {formatAge(now.value - num(pool.attached_unix_ms))}
          </span>
        )}
        {pool.state === 'away' && leaseMs > 0 && (
          <span class="warning">waited for · its runs start again in {formatAge(leaseMs)}</span>
        )}
      </header>
      <Ranks pool={pool} />
      {places.length > 0 && <Places places={places} />}
    </section>
  );
}

function Ranks({ pool }: { pool: PoolInfo }) {
  const hosts = [...new Set(pool.rank_hosts)];
  return (
    <div class="hosts">
      {hosts.map((host) => (
        <div key={host} class="host">
          <h3>{host}</h3>
          <ul class="ranks" aria-label={`Ranks on ${host}`}>
            {pool.rank_hosts.map((each, rank) => {
              const job = pool.rank_jobs[rank] ?? 0;
              return each !== host ? null : (
                <li key={rank} class={job > 0 ? 'busy' : 'idle'}>
                  <span class="rank">{rank}</span>
                  {job > 0 ? <a href={formatRoute('jobs', { job: String(job) })}>job {job}</a> : <span>idle</span>}
                </li>
              );
            })}
          </ul>
        </div>
      ))}
    </div>
  );
}

function Places({ places }: { places: Place[] }) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Runs on this pool">
      <table>
        <thead>
          <tr>
            <th scope="col">Run</th>
            <th scope="col">State</th>
            <th scope="col">Ranks</th>
            <th scope="col">Progress</th>
          </tr>
        </thead>
        <tbody>
          {places.map((place) => (
            <tr key={`${place.job}.${place.run}`}>
              <td>
                <a href={formatRoute('curves', { runs: place.run > 0 || place.many ? `${place.job}.${place.run}` : String(place.job) })}>
                  {place.job}
                  {place.many ? ` run ${place.run}` : ''} · {nameOfJob(place.job)}
                </a>
              </td>
              <td>
                <StateMark state={place.state as State} />
              </td>
              <td>{place.ranks.join(', ')}</td>
              <td>
                <ProgressBar progress={place.progress} label={`Progress of run ${place.job}.${place.run}`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function nameOfJob(id: number): string {
  const job = jobs.value.get(id);
  return job ? nameOf(job) : '';
}
