// A run on the real clock: what was measured stands under what was planned.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Browser, Cluster, keepShot, pointAt, stands, until } from './support.mjs';

const real = `name: on the real clock
objective:
  quadratic: {generate: {kind: random, examples: 40, parameters: 16, seed: 0}, batch_size: 4}
schedule:
  pipedream: {stages: 2, microbatches: 12}
optimizer: {sgd: {learning_rate: 0.01}}
cost: {forward: 10ms, backward: 10ms}
link: {latency: 5ms}
clock: real
`;

let cluster, browser, id;
before(async () => {
  cluster = await Cluster.start(2);
  browser = await Browser.start();
  id = await cluster.submit(real);
  await cluster.waitFor(id);
});
after(async () => {
  await browser?.close();
  await cluster?.close();
});

/// The rows of a timeline of the run, and when the last one ends.
async function timelineOf(name) {
  const [head, ...lines] = (await cluster.text(`/v1/jobs/${id}/runs/0/files/${name}`)).trim().split('\n');
  assert.equal(head, 'stage,kind,microbatch,replica,start,end');
  const rows = lines.map((line) => {
    const [stage, kind, microbatch, , start, end] = line.split(',');
    return { stage: Number(stage), kind, microbatch: Number(microbatch), start: Number(start), end: Number(end) };
  });
  return { rows, end: Math.max(...rows.map((row) => row.end)) };
}

const inMs = (ns) => `${Number((ns / 1e6).toPrecision(6))} ms`;

test('the measured timeline stands under the planned one, and both are told with their difference', async () => {
  const [measured, planned] = [await timelineOf('timeline.csv'), await timelineOf('planned_timeline.csv')];
  const of = ({ rows }) => rows.find((row) => row.stage === 1 && row.kind === 'B' && row.microbatch === 5);
  const [plan, is] = [of(planned), of(measured)];
  // Nothing is faster than asked.
  assert.equal(planned.end % 5e6, 0);
  assert.ok(is.start >= plan.start && is.end - is.start >= 10e6);
  const end = Math.max(measured.end, planned.end);
  const page = await browser.openView(cluster, `#/schedule?run=${id}`);
  const chart = page.locator('.gantt canvas');
  const tooltip = page.locator('.gantt .tooltip');
  // Rows of 20 pixels planned, 2 between, 30 measured, 6 to the next stage.
  for (const [what, action, y] of [['planned', plan, 26 + 58 + 10], ['measured', is, 26 + 58 + 22 + 15]]) {
    const lines = await until(`B5 as it was ${what} is told`, async () => {
      await pointAt(page, chart, (box) => [64 + (((action.start + action.end) / 2) * (box.width - 64)) / end, y]);
      const text = (await tooltip.count()) === 1 ? await tooltip.innerText() : '';
      return text.startsWith('B5 on stage 1\n') && text.split('\n');
    });
    assert.equal(lines[1], `planned ${inMs(plan.start)} to ${inMs(plan.end)}`);
    assert.equal(lines[2], `measured ${inMs(is.start)} to ${inMs(is.end)}`);
    assert.match(lines[3], /^starts (.* later|as planned), lasts (.* longer|as planned)$/);
  }
  await keepShot(page, 'schedule-real-1440');
  const totals = await page.locator('.totals').innerText();
  assert.ok(totals.includes(`${inMs(measured.end)}, planned ${inMs(planned.end)}`), totals);
  // By stage: busy and bubble, measured and planned.
  for (const stage of [0, 1]) {
    const cells = await page.getByRole('row', { name: `stage ${stage}` }).getByRole('cell').allInnerTexts();
    const shares = [measured, planned].flatMap(({ rows, end: makespan }) => {
      const busy = rows.filter((row) => row.stage === stage).reduce((sum, row) => sum + row.end - row.start, 0) / makespan;
      return [busy, 1 - busy].map((part) => `${(100 * part).toFixed(1)} %`);
    });
    assert.deepEqual(cells.slice(0, 4), shares);
  }
  assert.deepEqual(page.faults, []);
});

test('both rows fit a phone', async () => {
  const page = await browser.openView(cluster, `#/schedule?run=${id}`, { width: 390, height: 844 });
  await page.locator('.gantt canvas').waitFor();
  await stands(page);
  await keepShot(page, 'schedule-real-390');
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
});
