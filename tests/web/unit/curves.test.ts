import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvOf } from 'page/curves/export';
import { formatPairs, parseItem, parseItems, parsePairs } from 'page/curves/items';
import { append, drawnValue, emptyLine, extended, indexBefore, joined, lineOf, mappedX, nearestIndex, type Line } from 'page/curves/line';
import { proportional, sinceStart, storedAxis } from 'page/curves/mapping';
import { bandOf, smoothed, studentT975 } from 'page/curves/smooth';
import { parseSettings, smoothingWidth } from 'page/curves/settings';
import { logTicks } from 'page/lib/ticks';
import type { SeriesBucket, SeriesData } from 'page/lib/wire';

function line(xs: number[], ys: number[]): Line {
  const made = emptyLine();
  xs.forEach((x, i) => append(made, x, ys[i] as number));
  return made;
}

function data(part: Partial<SeriesData>): SeriesData {
  return { from: '0', to: '9', count: '0', raw: true, points: [], width: '0', buckets: [], next_sequence: '1', ...part };
}

function bucket(part: Partial<SeriesBucket>): SeriesBucket {
  return { begin: '0', count: '3', not_finite: '0', first_x: '0', last_x: '9', last: 2, min: 1, min_x: '4', max: 5, max_x: '2', ...part };
}

test('raw points come in the order of x, wherever they stood', () => {
  const made = lineOf(data({ points: [{ x: '3', value: 30 }, { x: '1', value: 10 }, { x: '2', value: 'NaN' }] }));
  assert.deepEqual(made.xs, [1, 2, 3]);
  assert.deepEqual(made.ys, [10, NaN, 30]);
  assert.deepEqual(made.faults, [{ x: 2, y: 10 }]);
});

test('of a bucket the extremes and the last value are drawn, at their own x', () => {
  const made = lineOf(data({ raw: false, buckets: [bucket({})] }));
  assert.deepEqual(made.xs, [2, 4, 9]);
  assert.deepEqual(made.ys, [5, 1, 2]);
  assert.equal(made.raw, false);
});

test('a value that is an extreme and the last one too is drawn once', () => {
  const made = lineOf(data({ raw: false, buckets: [bucket({ min_x: '9', min: 1, last: 1, max: 5, max_x: '9' })] }));
  assert.deepEqual(made.ys, [1, 5, 1]);
  const single = lineOf(data({ raw: false, buckets: [bucket({ count: '1', min: 2, min_x: '9', max: 2, max_x: '9' })] }));
  assert.deepEqual(single.ys, [2]);
});

test('a bucket without finite values is a gap, and one that ends finite shows the gap before', () => {
  const none = { min: undefined, max: undefined };
  const made = lineOf(data({ raw: false, buckets: [bucket({}), { ...bucket({ begin: '10', last_x: '19', last: 'NaN', not_finite: '3' }), ...none }] }));
  assert.ok(Number.isNaN(made.ys[made.ys.length - 1]));
  assert.deepEqual(made.faults, [{ x: 19, y: 2 }]);
  const healed = lineOf(data({ raw: false, buckets: [bucket({}), bucket({ begin: '10', not_finite: '1', min_x: '12', max_x: '14', last_x: '19' })] }));
  assert.deepEqual(healed.faults, [{ x: 10, y: 2 }]);
  assert.equal(healed.ys[healed.ys.length - 1], 2);
});

test('live points go on behind a line, or between its last ones', () => {
  assert.deepEqual(extended(line([1, 2], [1, 2]), [{ x: 4, y: 4 }, { x: 3, y: 3 }]).xs, [1, 2, 3, 4]);
  assert.deepEqual(extended(line([1, 3], [1, 3]), [{ x: 2, y: 2 }, { x: 4, y: 4 }]).ys, [1, 2, 3, 4]);
});

test('a gap is told once, however long', () => {
  assert.deepEqual(line([1, 2, 3, 4], [1, Infinity, NaN, 4]).faults, [{ x: 2, y: 1 }]);
});

test('places are found in a line', () => {
  assert.equal(nearestIndex([], 3), -1);
  assert.equal(nearestIndex([1, 5, 9], 6.9), 1);
  assert.equal(nearestIndex([1, 5, 9], 7), 1);
  assert.equal(nearestIndex([1, 5, 9], 7.1), 2);
  assert.equal(nearestIndex([1, 5, 9], -4), 0);
  assert.equal(indexBefore([1, 5, 9], 0), -1);
  assert.equal(indexBefore([1, 5, 9], 5), 1);
  assert.equal(indexBefore([1, 5, 9], 100), 2);
});

test('another unit of x moves the faults too', () => {
  const scaled = mappedX(line([1, 2], [1, NaN]), (x) => 2 * x + 10);
  assert.deepEqual(scaled.xs, [12, 14]);
  assert.deepEqual(scaled.faults, [{ x: 14, y: 1 }]);
});

test('smoothing keeps a constant and is not drawn towards the start', () => {
  assert.deepEqual(smoothed(line([0, 1, 5, 7], [3, 3, 3, 3]), 2).ys, [3, 3, 3, 3]);
  assert.equal(smoothed(line([0, 1], [8, 0]), 1).ys[0], 8);
});

test('smoothing weighs by distance: exp(-d / width), normalised', () => {
  const w = Math.exp(-0.5);
  const ys = smoothed(line([0, 1], [8, 2]), 2).ys;
  assert.ok(Math.abs((ys[1] as number) - (8 * w + 2) / (w + 1)) < 1e-12);
});

test('smoothing starts anew behind a gap', () => {
  const ys = smoothed(line([0, 1, 2], [100, NaN, 1]), 5).ys;
  assert.deepEqual(ys, [100, NaN, 1]);
});

test("Student's t is that of the tables, and the normal one in the end", () => {
  assert.equal(studentT975(4), 2.7764);
  assert.ok(Math.abs(studentT975(40) - 2.0211) < 2e-4);
  assert.ok(Math.abs(studentT975(120) - 1.9799) < 2e-4);
  assert.ok(Math.abs(studentT975(100000) - 1.96) < 1e-3);
});

test('a band is the mean and its confidence interval', () => {
  const band = bandOf([line([0, 1], [1, 2]), line([0, 1], [3, 4]), line([0, 1], [5, 6])]);
  assert.deepEqual(band.mean.ys, [3, 4]);
  const half = (4.3027 * 2) / Math.sqrt(3);
  assert.ok(Math.abs((band.high.ys[0] as number) - 3 - half) < 1e-12);
  assert.ok(Math.abs((band.low.ys[1] as number) - 4 + half) < 1e-12);
});

test('in a band a line keeps its value until its next point, and behind its end', () => {
  const band = bandOf([line([0, 2], [10, 20]), line([0, 1, 3], [0, 2, 4])]);
  assert.deepEqual(band.mean.xs, [0, 1, 2, 3]);
  assert.deepEqual(band.mean.ys, [5, 6, 11, 12]);
});

test('a band ends before the first value that is not finite', () => {
  const band = bandOf([line([0, 1, 2], [1, 1, 1]), line([0, 1, 2], [1, NaN, 1])]);
  assert.deepEqual(band.mean.xs, [0]);
});

test('curves are named by job, run and group', () => {
  assert.deepEqual(parseItem('12'), { key: '12', job: 12, run: 0 });
  assert.deepEqual(parseItem('12.0'), { key: '12', job: 12, run: 0 });
  assert.deepEqual(parseItem('12.3'), { key: '12.3', job: 12, run: 3 });
  assert.deepEqual(parseItem('12g4'), { key: '12g4', job: 12, group: 4 });
  for (const wrong of ['', '0', 'a', '1.', '1.2.3', '-1', '1g', '1 2']) assert.equal(parseItem(wrong), null, wrong);
  assert.deepEqual(parseItems('1,1.0,2,x').map((item) => item.key), ['1', '2']);
});

test('names survive the address, commas and all', () => {
  const names = new Map([['1', 'a, b: 100 %'], ['2.3', 'plain']]);
  assert.deepEqual(parsePairs(formatPairs(names)), names);
  assert.equal(parsePairs('1:50 % off').get('1'), '50 % off');
});

test('nonsense in the address is as if it were not there', () => {
  const settings = parseSettings({ runs: '1,x', series: 'nothing', x: 'miles', smooth: '1000', zoom: '5,3', ylog: '0' });
  assert.deepEqual([settings.items.length, settings.series, settings.axis, settings.smoothing, settings.range, settings.yLog],
    [1, 'objective', 'tick', 0, null, false]);
});

test('the slider goes from nothing to a fifth of the curve', () => {
  assert.equal(smoothingWidth(0, 1000), 0);
  assert.ok(Math.abs(smoothingWidth(1, 1000) - 0.5) < 1e-9);
  assert.ok(Math.abs(smoothingWidth(100, 1000) - 200) < 1e-9);
});

test('CSV quotes names, and numbers read back', () => {
  const base = { key: '1', color: '', dash: [], width: 1, alpha: 1, aside: false, faults: [] };
  const text = csvOf([{ ...base, label: 'a "b", c', xs: [1, 2, 3], ys: [0.1, NaN, 1e-300] }], 'tick', 'objective', (x) => x > 1);
  assert.equal(text, 'curve,tick,objective\n"a ""b"", c",2,nan\n"a ""b"", c",3,1e-300\n');
});

test('updates and microbatches go side by side', () => {
  const progress = { ticks_done: '0', ticks_total: '0', updates_done: '0', updates_total: '800', microbatches_done: '0', microbatches_total: '400' };
  const map = proportional('microbatch', 'objective', progress);
  assert.deepEqual([map.forth(800), map.back(400)], [400, 800]);
  assert.equal(proportional('updates', 'last_stage_loss', progress).forth(400), 800);
  assert.equal(proportional('updates', 'objective', progress).forth(7), 7);
  assert.equal(proportional('microbatch', 'objective', undefined).forth(7), 7);
});

test('wall time is that of each point, from the beginning of its run', () => {
  const { forth, back } = sinceStart(1000);
  assert.deepEqual([1000, 1250, 6000].map(forth), [0, 0.25, 5]);
  assert.deepEqual([0, 0.25, 5].map(back), [1000, 1250, 6000]);
  assert.equal(storedAxis('time', 'last_stage_loss'), 'time');
});

test('points that came together are all in the columns of a plot', () => {
  const [xs, a, b] = joined([
    { xs: [1, 2, 2, 2, 5], ys: [10, 9, 8, 7, null] },
    { xs: [2, 3], ys: [4, 3] },
  ]);
  const no = undefined;
  assert.deepEqual(xs, [1, 2, 2, 2, 3, 5]);
  assert.deepEqual(a, [10, 9, 8, 7, no, null]);
  assert.deepEqual(b, [no, 4, no, no, 3, no]);
  assert.deepEqual(joined([]), [[]]);
});

test('marks of a log axis are there for any range', () => {
  assert.deepEqual(logTicks(0.5, 30), [0.5, 1, 2, 5, 10, 20]);
  assert.deepEqual(logTicks(1, 1000), [1, 10, 100, 1000]);
  const many = logTicks(1, 1e300);
  assert.ok(many.length >= 5 && many.length <= 12, String(many));
});

test('on a log axis a band ends at its floor, and other lines have gaps', () => {
  assert.deepEqual([-1, 0, 0.01, 3].map((y) => drawnValue(y, true, 0.1)), [0.1, 0.1, 0.1, 3]);
  assert.deepEqual([-1, 0, 3, NaN].map((y) => drawnValue(y, true, undefined)), [NaN, NaN, 3, NaN]);
  assert.equal(drawnValue(-1, false, 0.1), -1);
});
