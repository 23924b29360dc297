import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rowsInSight, rowsOf, type Filter } from 'page/jobs/rows';
import { formatAge, formatCount, formatDuration, formatSizes, formatValue, fractionDone, timeLeft } from 'page/lib/format';
import { formatRoute, parseRoute } from 'page/lib/route';
import { lineOfFault } from 'page/lib/submit';
import { linearTicks, logTicks } from 'page/lib/ticks';
import type { Job } from 'page/lib/wire';

test('values have six digits, and say what is not finite', () => {
  assert.equal(formatValue(0.1), '0.1');
  assert.equal(formatValue(123456.7), '123457');
  assert.equal(formatValue(-0.00001234), '−1.234e−5');
  assert.equal(formatValue(1e14), '1e14');
  assert.equal(formatValue(NaN), 'NaN');
  assert.equal(formatValue(-Infinity), '−∞');
});

test('counts and times are as short as they can be', () => {
  assert.deepEqual([0, 999, 9999, 12345, 1234567, 2e9].map(formatCount), ['0', '999', '9999', '12.35k', '1.235M', '2G']);
  assert.deepEqual([400, 12_000, 200_000, 7_500_000, 270_000_000].map(formatDuration), ['0.4 s', '12 s', '3 min 20 s', '2 h 05 min', '3 d 3 h']);
  assert.equal(formatDuration(9_990), '10 s');
  assert.deepEqual([0, 61_000, 7_200_000, 864_000_000].map(formatAge), ['0 s', '1 min', '2 h', '10 d']);
});

const counts = { total: 1, under_way: 0, succeeded: 0, failed: 0, cancelled: 0 };
function job(part: Partial<Job> & { name?: string } = {}): Job {
  const { name = '', ...rest } = part;
  return {
    id: 1, state: 'JOB_STATE_QUEUED', message: '', attempt: 0, submitted_unix_ms: '1000', started_unix_ms: '0', ended_unix_ms: '0',
    last_sequence: '1', pool: '', ranks: [], summary_json: '',
    spec: { name, clock: 'virtual', seed: '0', objective: { kind: 'quadratic' }, schedule: { kind: 'pipedream', parameters: { stages: 4 } } },
    ...rest,
  };
}

test('progress is that of the clock, of a sweep that of its runs', () => {
  const progress = { ticks_done: '25', ticks_total: '100', updates_done: '0', updates_total: '0', microbatches_done: '0', microbatches_total: '0' };
  assert.equal(fractionDone(progress), 0.25);
  assert.equal(fractionDone({ ...progress, runs: { ...counts, total: 10, succeeded: 2, failed: 1 } }), 0.3);
  assert.ok(Number.isNaN(fractionDone(undefined)));
  const running = job({ state: 'JOB_STATE_RUNNING', started_unix_ms: '1000', progress });
  assert.equal(timeLeft(running, 2000), 3000);
  assert.ok(Number.isNaN(timeLeft({ ...running, state: 'JOB_STATE_SUCCEEDED' }, 2000)));
});

test('sizes of a schedule are S, R and H', () => {
  assert.equal(formatSizes({ kind: 'local_sgd', parameters: { stages: 4, replicas: 2, local_steps: 5 } }), 'S4 R2 H5');
  assert.equal(formatSizes({ kind: 'pipedream', parameters: { stages: 4 } }), 'S4');
  assert.equal(formatSizes(undefined), '');
});

const all: Filter = { text: '', state: '', sort: 'id', descending: true };
const list = [
  job({ id: 1, name: 'slow run', state: 'JOB_STATE_SUCCEEDED', objective_best: 0.5 }),
  job({ id: 2, name: 'Fast', state: 'JOB_STATE_RUNNING', objective_best: 'NaN' }),
  job({ id: 3, name: 'middle', state: 'JOB_STATE_FAILED' }),
  job({ id: 4, name: 'best', state: 'JOB_STATE_CANCELLED', objective_best: 0.1 }),
];
const ids = (filter: Partial<Filter>) => rowsOf(list, { ...all, ...filter }).map((each) => each.id);

test('jobs are searched by all words, in what a row shows', () => {
  assert.deepEqual(ids({ text: 'RUN slow' }), [1]);
  assert.deepEqual(ids({ text: 's4 pipedream' }), [4, 3, 2, 1]);
  assert.deepEqual(ids({ text: 'nothing' }), []);
  assert.deepEqual(ids({ state: 'active' }), [2]);
  assert.deepEqual(ids({ state: 'FAILED' }), [3]);
});

test('what has no number stands last in both orders', () => {
  assert.deepEqual(ids({ sort: 'best', descending: false }), [4, 1, 3, 2]);
  assert.deepEqual(ids({ sort: 'best', descending: true }), [1, 4, 3, 2]);
  assert.deepEqual(ids({ sort: 'name', descending: false }), [4, 2, 3, 1]);
  assert.deepEqual(ids({ sort: 'state', descending: false }), [2, 3, 4, 1]);
});

test('only the rows in sight are drawn', () => {
  assert.deepEqual(rowsInSight(10_000, 40, 4000, 800), { first: 92, end: 128 });
  assert.deepEqual(rowsInSight(3, 40, 0, 800), { first: 0, end: 3 });
  assert.deepEqual(rowsInSight(3, 40, 9000, 800), { first: 3, end: 3 });
});

test('the address says what is shown', () => {
  const hash = formatRoute('curves', { runs: '1,2.3', names: '1:a & b', zoom: undefined, x: '' });
  assert.equal(hash, '#/curves?runs=1,2.3&names=1:a%20%26%20b');
  assert.deepEqual(parseRoute(hash), { view: 'curves', query: { runs: '1,2.3', names: '1:a & b' } });
  assert.equal(parseRoute('#/elsewhere').view, 'jobs');
  assert.equal(parseRoute('').view, 'jobs');
});

test("the line of the daemon's complaint is found", () => {
  assert.equal(lineOfFault("schedule.pipedream: 'stages' is missing (job file:4:)"), 4);
  assert.equal(lineOfFault('job file:12:3: not YAML'), 12);
  assert.equal(lineOfFault('the disk is full'), null);
});

test('axes have round marks', () => {
  assert.deepEqual(linearTicks(0, 100, 5), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(linearTicks(-0.31, 0.32, 6), [-0.2, 0, 0.2]);
  assert.deepEqual(logTicks(0.5, 2000), [1, 10, 100, 1000]);
  assert.deepEqual(logTicks(1.5, 9), [2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual(linearTicks(5, 5, 4), [5]);
});
