import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placesOf } from 'page/cluster/places';
import { firstEndingAfter, inFlight, kinds, parseReads, parseShape, parseTimeline, readingsOf, rowActions, rowName, sameAction, spentUntil } from 'page/schedule/timeline';
import { numericKeys, sweepLines, sweepOfRuns, sweepOfTable } from 'page/sweeps/points';
import { groupRuns } from 'page/lib/runs';
import { axisUnit, formatTicks, tickUnitOf } from 'page/lib/format';
import type { Job, JobSpec, PoolInfo, Run } from 'page/lib/wire';

// PipeDream, 2 stages, cap 2, 3 microbatches, unit time: F0 F1 . B0 F2 B1 . B2 over . F0 B0 F1 B1 F2 B2
const timelineText = `stage,kind,microbatch,replica,start,end
0,F,0,0,0,1
0,F,1,0,1,2
1,F,0,0,1,2
1,B,0,0,2,3
1,U,0,0,3,3
0,B,0,0,3,4
0,U,0,0,4,4
1,F,1,0,3,4
0,F,2,0,4,5
1,B,1,0,4,5
1,U,1,0,5,5
0,B,1,0,5,6
0,U,1,0,6,6
1,F,2,0,5,6
1,B,2,0,6,7
1,U,2,0,7,7
0,B,2,0,7,8
0,U,2,0,8,8
`;

const twoStages = { stages: 2, replicas: 1, spread: false };

test('a timeline is read as columns', () => {
  const timeline = parseTimeline(timelineText, twoStages);
  assert.deepEqual([timeline.count, timeline.rows, timeline.replicas, timeline.makespan], [18, 2, 1, 8]);
  assert.equal(kinds[timeline.kind[3] as number], 'B');
  assert.throws(() => parseTimeline('tick,value\n', twoStages), /no timeline/);
  assert.throws(() => parseTimeline('stage,kind,microbatch,replica,start,end\n0,X,0,0,0,1\n', twoStages), /line 2/);
});

test('replicas that are spread have rows of their own', () => {
  const shape = parseShape(
    '# pipewright schedule version=1 name=local_sgd stages=2 microbatches=4 updates=8 replicas=2 placement=spread local_steps=2 blocks=all delay_max=0 seed=0\n0,F,0,0,0,\n',
  );
  assert.deepEqual(shape, { stages: 2, replicas: 2, spread: true });
  assert.throws(() => parseShape('stage,kind\n'), /no schedule/);
  const spread = 'stage,kind,microbatch,replica,start,end\n0,F,0,0,0,1\n0,F,1,1,0,1\n1,F,0,0,1,2\n1,F,1,1,1,2\n';
  const timeline = parseTimeline(spread, shape);
  assert.deepEqual([...timeline.row.slice(0, 4)], [0, 2, 1, 3]);
  assert.deepEqual(rowActions(timeline).map((row) => row.busy), [1, 1, 1, 1]);
  assert.deepEqual([0, 1, 2, 3].map((row) => rowName(row, shape)), ['0 of r0', '1 of r0', '0 of r1', '1 of r1']);
  // In one place all replicas of a stage share a row.
  const together = parseTimeline(spread, { ...shape, spread: false });
  assert.deepEqual([together.rows, ...together.row.slice(0, 4)], [2, 0, 0, 1, 1]);
  assert.throws(() => parseTimeline(spread, twoStages), /line 3/);
});

test('an action is found again in another timeline', () => {
  const planned = parseTimeline(timelineText, twoStages);
  const measured = parseTimeline('stage,kind,microbatch,replica,start,end\n0,F,1,0,3,5\n0,U,1,0,5,5\n1,B,7,0,6,7\n', twoStages);
  const rows = rowActions(planned);
  assert.deepEqual([0, 1, 2].map((action) => sameAction(planned, rows, measured, action)), [1, 12, -1]);
});

test('what a tick is follows from the job', () => {
  const unit = (spec: object) => tickUnitOf({ name: '', clock: 'virtual', seed: 0, ...spec } as JobSpec);
  assert.equal(unit({}), 'ticks');
  assert.equal(unit({ cost: { forward: 1 }, link: { latency: '0ms' }, more: { shuffle: true } }), 'ticks');
  assert.equal(unit({ cost: { forward: '250us', stragglers: [] } }), 'ns');
  assert.equal(unit({ link: { bandwidth: '10Gbit/s' } }), 'ns');
  assert.equal(unit({ more: { tick: '1ms' } }), 'ns');
  assert.equal(unit({ more: { sweep: { 'link.latency': [0, '5ms'] } } }), 'ns');
  assert.equal(unit({ clock: 'real' }), 'ns');
  assert.deepEqual([1, 1234567].map((ticks) => formatTicks(ticks, 'ticks')), ['1 tick', '1,234,567 ticks']);
  assert.deepEqual([0, 999, 1500, 2.5e6, 3e9].map((ns) => formatTicks(ns, 'ns')), ['0 ns', '999 ns', '1.5 us', '2.5 ms', '3 s']);
  assert.deepEqual(axisUnit(5e6, 'ns'), { size: 1e6, name: 'ms' });
});

test('steady staleness of stage s is S - 1 - s', () => {
  const timeline = parseTimeline(timelineText, twoStages);
  const readings = readingsOf(timeline, new Map());
  const of = (row: number, microbatch: number) =>
    [...readings].find(([i]) => timeline.row[i] === row && timeline.microbatch[i] === microbatch)?.[1];
  assert.deepEqual(of(0, 0), { version: 0, staleness: 0, delay: NaN });
  assert.deepEqual(of(0, 1), { version: 0, staleness: 1, delay: NaN });
  assert.deepEqual(of(0, 2), { version: 1, staleness: 1, delay: NaN });
  for (const microbatch of [0, 1, 2]) assert.equal(of(1, microbatch)?.staleness, 0);
});

test('a forward of RPD reads what its schedule says', () => {
  const reads = parseReads('# pipewright schedule version=1\n0,F,0,0,3,0\n1,F,2,0,3,1\n0,B,0,0,3,\n');
  assert.deepEqual([...reads], [['0,0', 0], ['1,2', 1]]);
  // Updates 0 and 1 are of stage 1; the forward of update 2 reads what was after one update.
  const timeline = parseTimeline(`stage,kind,microbatch,replica,start,end
1,F,0,0,0,1
1,U,0,0,1,1
1,F,1,0,1,2
1,U,1,0,2,2
1,F,2,0,2,3
1,U,2,0,3,3
`, twoStages);
  const readings = readingsOf(timeline, new Map([['1,0', 0], ['1,1', 1], ['1,2', 1]]));
  assert.deepEqual(readings.get(4), { version: 1, staleness: 1, delay: 1 });
});

test('a microbatch is in flight from its first start to its last end, and a sync is none', () => {
  const flight = inFlight(parseTimeline(timelineText + '0,SYNC,0,0,8,8\n', twoStages));
  assert.deepEqual(flight.time, [0, 1, 4, 6, 8]);
  assert.deepEqual(flight.count, [1, 2, 2, 1, 0]);
  assert.equal(flight.most, 2);
});

test('what takes time is a bar, and busy time is its sum', () => {
  const timeline = parseTimeline(timelineText, twoStages);
  const rows = rowActions(timeline);
  assert.deepEqual(rows.map((row) => [row.bars.length, row.marks.length, row.busy]), [[6, 3, 6], [6, 3, 6]]);
  const bars = rows[0]?.bars as Int32Array;
  assert.equal(firstEndingAfter(timeline, bars, 2), 2);
  assert.equal(firstEndingAfter(timeline, bars, 1.5), 1);
  assert.equal(firstEndingAfter(timeline, bars, 100), 6);
});

test('how the time until a moment was spent', () => {
  const timeline = parseTimeline(timelineText, twoStages);
  const [stage0, stage1] = rowActions(timeline) as [ReturnType<typeof rowActions>[0], ReturnType<typeof rowActions>[0]];
  assert.deepEqual(spentUntil(timeline, stage0, 0), { forward: 0, busy: 0 });
  assert.deepEqual(spentUntil(timeline, stage0, 1.5), { forward: 1.5, busy: 1.5 });
  assert.deepEqual(spentUntil(timeline, stage0, 2.5), { forward: 2, busy: 2 });
  assert.deepEqual(spentUntil(timeline, stage0, 3.5), { forward: 2, busy: 2.5 });
  assert.deepEqual(spentUntil(timeline, stage1, 99), { forward: 3, busy: 6 });
});

const table = JSON.stringify({
  runs: [
    { run: 0, swept: { lr: 0.1 }, outcome: 'succeeded' },
    { run: 1, swept: { lr: 0.1 }, outcome: 'succeeded' },
    { run: 2, swept: { lr: 0.2 }, outcome: 'succeeded' },
    { run: 3, swept: { lr: 0.2 }, outcome: 'diverged' },
  ],
  groups: [
    { point: 0, swept: { lr: 0.1 }, runs: 2, objective_last: { mean: 3, low: 2, high: 4 }, tail_mean: { mean: 3.5 }, stable: true },
    { point: 1, swept: { lr: 0.2 }, runs: 2, objective_last: null, tail_mean: null, stable: false },
  ],
  best: { by_final: { point: 0, value: 3, edges: [{ key: 'lr', value: 0.1, side: 'low', values: 2 }] }, by_tail_mean_of_stable: null },
  warnings: ['on the edge'],
});

test("the daemon's table is taken as it is", () => {
  const sweep = sweepOfTable(table, 'objective_last');
  assert.deepEqual(sweep.points.map((point) => [point.value, point.low, point.outcome]), [[3, 2, 'succeeded'], [NaN, NaN, 'diverged']]);
  assert.deepEqual(sweep.best, { point: 0, value: 3, edges: ['lr'] });
  assert.equal(sweepOfTable(table, 'tail_mean').best, null);
  assert.deepEqual(numericKeys(sweep.points), ['lr']);
});

function run(number: number, lr: number, state: string, last?: number, message = ''): Run {
  return {
    job: 1, number, state: `JOB_STATE_${state}`, message, attempt: 1, started_unix_ms: '0', ended_unix_ms: '0', pool: 'local', ranks: [number],
    summary_json: '', swept: [{ path: 'a.lr', value: lr }, { path: 'a.cap', value: 2 }], seed: '0', ...(last === undefined ? {} : { objective_last: last }),
  };
}

test('while runs go on only points count that are whole: the mean of some would flatter', () => {
  const sweep = sweepOfRuns([
    run(0, 0.1, 'SUCCEEDED', 2), run(1, 0.1, 'SUCCEEDED', 4), run(2, 0.2, 'SUCCEEDED', 1), run(3, 0.2, 'RUNNING', 1),
    run(4, 0.3, 'SUCCEEDED', 1, 'diverged at tick 7'), run(5, 0.3, 'SUCCEEDED', 1),
  ]);
  assert.deepEqual(sweep.points.map((point) => point.value), [3, NaN, NaN]);
  assert.deepEqual(sweep.points.map((point) => point.outcome), ['succeeded', 'open', 'diverged']);
  assert.equal(sweep.best?.point, 0);
  assert.deepEqual(numericKeys(sweep.points), ['a.lr']);
});

test('points are joined along one key', () => {
  const point = (index: number, lr: number, cap: number) =>
    ({ index, swept: { lr, cap }, runs: 1, value: 1, low: 1, high: 1, stable: null, outcome: 'succeeded' as const });
  const lines = sweepLines([point(0, 0.2, 1), point(1, 0.1, 1), point(2, 0.1, 2)], 'lr', (path) => path);
  assert.deepEqual(lines.map((line) => [line.label, line.points.map((each) => each.index)]), [['cap 1', [1, 0]], ['cap 2', [2]]]);
});

test('runs that differ in their seeds only are one point', () => {
  const groups = groupRuns([run(0, 0.1, 'SUCCEEDED'), run(1, 0.1, 'SUCCEEDED'), run(2, 0.2, 'SUCCEEDED')]);
  assert.deepEqual(groups.map((group) => group.runs.map((each) => each.number)), [[0, 1], [2]]);
});

test('which run is where', () => {
  const pool = { name: 'local', rank_hosts: ['a', 'a', 'b', 'b'], rank_jobs: [7, 7, 0, 9] } as PoolInfo;
  const single = { id: 7, state: 'JOB_STATE_RUNNING', progress: { runs: { total: 1 } } } as Job;
  const many = { id: 9, state: 'JOB_STATE_RUNNING', progress: { runs: { total: 5 } } } as Job;
  const places = placesOf([pool], new Map([[7, single], [9, many]]), [{ ...run(4, 1, 'RUNNING'), job: 9, ranks: [3] }]);
  assert.deepEqual(places.map((place) => [place.job, place.run, place.ranks]), [[7, 0, [0, 1]], [9, 4, [3]]]);
});
