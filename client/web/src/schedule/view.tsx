// The schedule that a run followed: who computed what when, and what it cost.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { parseItem } from '../curves/items';
import { jobs } from '../jobs/store';
import { ApiError, get, getText, messageOf } from '../lib/api';
import { formatCount, nameOf, runsOf, tickUnitOf, type TickUnit } from '../lib/format';
import { Empty } from '../lib/parts';
import { adjust, route } from '../lib/route';
import { isFinal, num, stateOf, type Int64, type Job } from '../lib/wire';
import { Gantt } from './chart';
import { StageTable, type Summary } from './stages';
import {
  parseReads,
  parseShape,
  parseTimeline,
  readingsOf,
  rowActions,
  type Reading,
  type RowActions,
  type Shape,
  type Timeline,
} from './timeline';

/// What a browser can hold and go through without a pause.
const timelineBytesMax = 40e6;

/// A timeline, and its actions by row.
export interface Traced {
  timeline: Timeline;
  rows: RowActions[];
}

export interface RunSchedule {
  shape: Shape;
  measured: Traced;
  /// Of a run on the real clock.
  planned?: Traced;
  /// The later of the ends of both.
  end: number;
  readings: Map<number, Reading>;
  summary: Summary;
  unit: TickUnit;
}

function traced(text: string, shape: Shape): Traced {
  const timeline = parseTimeline(text, shape);
  return { timeline, rows: rowActions(timeline) };
}

async function load(job: number, run: number): Promise<RunSchedule> {
  const path = `/v1/jobs/${job}/runs/${run}`;
  const { files } = await get<{ files: { name: string; bytes: Int64 }[] }>(`${path}/files`);
  const bytesOf = (name: string) => num(files.find((file) => file.name === name)?.bytes);
  const planBytes = bytesOf('planned_timeline.csv');
  const hasPlan = planBytes > 0;
  const bytes = bytesOf('timeline.csv') + (hasPlan ? planBytes : 0);
  if (!(bytes > 0)) throw new Error('this run has no timeline');
  if (bytes > timelineBytesMax) {
    throw new Error(
      `its timeline has ${formatCount(bytes / 1e6)} MB, more than a browser shows: pipewright export has it as a file, pipewright plan --format svg draws a part`,
    );
  }
  const text = (name: string) => getText(`${path}/files/${name}`);
  const [{ spec }, measuredText, scheduleText, summaryText, planText] = await Promise.all([
    get<Job>(`/v1/jobs/${job}`),
    text('timeline.csv'),
    text('schedule.csv'),
    text('summary.json'),
    hasPlan ? text('planned_timeline.csv') : '',
  ]);
  const shape = parseShape(scheduleText);
  const measured = traced(measuredText, shape);
  const planned = hasPlan ? traced(planText, shape) : undefined;
  return {
    shape,
    measured,
    ...(planned && { planned }),
    end: Math.max(measured.timeline.makespan, planned?.timeline.makespan ?? 0),
    readings: readingsOf(measured.timeline, parseReads(scheduleText)),
    summary: JSON.parse(summaryText) as Summary,
    unit: tickUnitOf(spec),
  };
}

export function ScheduleView() {
  const { query } = route.value;
  const ended = [...jobs.value.values()].filter((job) => isFinal(stateOf(job.state))).sort((a, b) => b.id - a.id);
  const key = query.run ?? (ended[0] ? String(ended[0].id) : '');
  const item = parseItem(key);
  const job = item ? jobs.value.get(item.job) : undefined;
  const state = job ? stateOf(job.state) : undefined;
  const shown = useSignal<{ key: string; run: RunSchedule } | null>(null);
  const fault = useSignal<{ key: string; message: string } | null>(null);
  useEffect(() => {
    if (!item) return;
    let closed = false;
    load(item.job, item.run ?? 0)
      .then((run) => {
        if (closed) return;
        shown.value = { key, run };
        fault.value = null;
      })
      .catch((error: unknown) => {
        if (closed) return;
        const waits = error instanceof ApiError && error.status === 409;
        fault.value = { key, message: waits ? 'It has not ended: a run’s timeline comes with its end.' : messageOf(error) };
      });
    return () => {
      closed = true;
    };
  }, [key, state]);
  if (!item) {
    return (
      <Empty title={query.run ? `'${query.run}' is no run` : 'No schedule to show yet'}>
        <p>When a run has ended, who computed what when is drawn here.</p>
      </Empty>
    );
  }
  const run = shown.value?.key === key ? shown.value.run : null;
  return (
    <div class="schedule">
      <h1 class="visually-hidden">Schedule</h1>
      <div class="controls">
        <label>
          Job
          <select value={String(item.job)} onChange={(event) => adjust({ run: event.currentTarget.value, zoom: undefined })}>
            {!ended.some((each) => each.id === item.job) && <option value={String(item.job)}>{item.job}</option>}
            {ended.slice(0, 500).map((each) => (
              <option key={each.id} value={String(each.id)}>
                {each.id} · {nameOf(each)}
              </option>
            ))}
          </select>
        </label>
        {job && runsOf(job) > 1 && (
          <label>
            run
            <input
              class="short"
              type="number"
              min={0}
              max={runsOf(job) - 1}
              value={item.run ?? 0}
              onChange={(event) => adjust({ run: `${item.job}.${event.currentTarget.value}`, zoom: undefined })}
            />
          </label>
        )}
      </div>
      {fault.value?.key === key && !run && <p class="fault">{fault.value.message}</p>}
      {!run && fault.value?.key !== key && <p class="hint">Loading…</p>}
      {run && <Gantt run={run} key={key} />}
      {run && <StageTable run={run} />}
    </div>
  );
}
