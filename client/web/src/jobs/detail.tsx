// All about one job: how it stands, what it was asked to do, its log.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get, messageOf } from '../lib/api';
import { now } from '../lib/dom';
import { formatCount, formatDuration, formatTicks, formatValue, nameOf, runsOf, tickUnitOf } from '../lib/format';
import { StateMark } from '../lib/parts';
import { adjust, formatRoute } from '../lib/route';
import { isFinal, num, stateOf, type EventList, type Job } from '../lib/wire';
import { cancelJob } from './actions';
import { linkToResult } from './table';

export function JobDetail({ job }: { job: Job }) {
  const state = stateOf(job.state);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !document.querySelector('dialog[open]')) adjust({ job: undefined });
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <aside class="detail" aria-label={`Job ${job.id}`}>
      <header>
        <h2>{nameOf(job)}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => adjust({ job: undefined })}>
          ✕
        </button>
      </header>
      <p>
        Job {job.id} <StateMark state={state} />
      </p>
      {job.message && <p class={state === 'FAILED' ? 'fault' : 'remark'}>{job.message}</p>}
      <div class="buttons">
        <a class="button" href={linkToResult(job)}>
          {runsOf(job) > 1 ? 'Sweep' : 'Curve'}
        </a>
        {isFinal(state) && runsOf(job) === 1 && (
          <a class="button" href={formatRoute('schedule', { run: String(job.id) })}>
            Schedule
          </a>
        )}
        {!isFinal(state) && (
          <button type="button" class="danger" onClick={() => void cancelJob(job)}>
            Cancel
          </button>
        )}
      </div>
      <Facts job={job} />
      <h3>Asked for</h3>
      <pre class="spec" tabIndex={0} aria-label="What the job was asked to do">
        {specText(job)}
      </pre>
      <h3>Log</h3>
      <Log job={job} />
    </aside>
  );
}

function Facts({ job }: { job: Job }) {
  const started = num(job.started_unix_ms);
  const ended = num(job.ended_unix_ms);
  const unit = tickUnitOf(job.spec);
  const facts: [string, string][] = [
    ['Submitted', new Date(num(job.submitted_unix_ms)).toLocaleString()],
    ['By', job.user ?? ''],
    ['Took', started > 0 ? formatDuration((ended > 0 ? ended : now.value) - started) : ''],
    ['Pool', job.pool ? `${job.pool}, rank${job.ranks.length === 1 ? '' : 's'} ${job.ranks.join(', ')}` : ''],
    ['Attempt', job.attempt > 1 ? String(job.attempt) : ''],
    ['Latest', job.objective_last === undefined ? '' : formatValue(num(job.objective_last))],
    ['Best', job.objective_best === undefined ? '' : formatValue(num(job.objective_best))],
    ['Updates', job.progress ? `${formatCount(num(job.progress.updates_done))} of ${formatCount(num(job.progress.updates_total))}` : ''],
    ['Time', job.progress && num(job.progress.ticks_total) > 0 ? `${formatTicks(num(job.progress.ticks_done), unit)} of ${formatTicks(num(job.progress.ticks_total), unit)}` : ''],
  ];
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== '' && !value.endsWith(' of 0'))
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

function plain(value: unknown, indent = ''): string {
  if (value === null || typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[${value.map((item) => plain(item)).join(', ')}]`;
  return Object.entries(value)
    .map(([key, item]) => {
      const nested = item !== null && typeof item === 'object' && !Array.isArray(item);
      return `\n${indent}${key}:${nested ? plain(item, indent + '  ') : ' ' + plain(item)}`;
    })
    .join('');
}

function specText(job: Job): string {
  const { objective, schedule, optimizer, more, name: _, ...rest } = job.spec;
  const asFile = {
    objective: { [objective?.kind ?? '']: objective?.parameters ?? {} },
    schedule: { [schedule?.kind ?? '']: schedule?.parameters ?? {} },
    optimizer: { [optimizer?.kind ?? '']: optimizer?.parameters ?? {} },
    ...rest,
    ...(more ?? {}),
  };
  return plain(asFile).trim();
}

const linesMax = 200;

function Log({ job }: { job: Job }) {
  const lines = useSignal<{ severity: string; text: string; time: number }[] | null>(null);
  const fault = useSignal('');
  const state = stateOf(job.state);
  useEffect(() => {
    let current = true;
    const load = async () => {
      try {
        const list: EventList = await get(`/v1/jobs/${job.id}/events?kind=log&limit=10000`);
        if (!current) return;
        lines.value = list.events.slice(-linesMax).map((event) => ({
          severity: (event.log?.severity ?? '').replace('SEVERITY_', '').toLowerCase(),
          text: event.log?.text ?? '',
          time: num(event.time_unix_ms),
        }));
      } catch (error) {
        fault.value = messageOf(error);
      }
    };
    void load();
    return () => {
      current = false;
    };
  }, [job.id, state]);
  if (fault.value) return <p class="fault">{fault.value}</p>;
  if (lines.value === null) return <p class="hint">Loading…</p>;
  if (lines.value.length === 0) return <p class="hint">It says nothing.</p>;
  return (
    <ol class="log">
      {lines.value.map((line, i) => (
        <li key={i} class={line.severity}>
          <time>{new Date(line.time).toLocaleTimeString()}</time> {line.text}
        </li>
      ))}
    </ol>
  );
}
