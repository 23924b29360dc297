// What is long: a run of a million points, thousands of jobs. Times are printed, not judged.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Browser, Cluster, patience, pointsOf, quadraticJob, show, shownPoints, until } from './support.mjs';

const points = 1_000_000;
const million = `name: a million
objective:
  quadratic: {generate: {kind: random, examples: 64, parameters: 4, seed: 0, noise: 0.1}, batch_size: 1}
schedule:
  pipedream: {stages: 1, microbatches: ${points}}
optimizer: {sgd: {learning_rate: 0.01}}
observe: {objective: never}
`;
const jobsMany = 3000;

let cluster, browser;
before(async () => {
  cluster = await Cluster.start(1);
  browser = await Browser.start();
});
after(async () => {
  await browser?.close();
  await cluster?.close();
});

/// Frames per second of the window while `act`, a script that sees the number n of the frame, runs in
/// every frame. It comes through the debugger: the policy of the page lets it make no functions.
const framesPerSecond = (page, act, ms = 3000) =>
  page.evaluate(`new Promise((resolve) => {
    const begin = performance.now();
    let n = 0;
    const frame = () => {
      ${act}
      ++n;
      const passed = performance.now() - begin;
      if (passed < ${ms}) requestAnimationFrame(frame);
      else resolve((1000 * n) / passed);
    };
    requestAnimationFrame(frame);
  })`);

test('a run of a million points is drawn, and stays smooth', async (context) => {
  const id = await cluster.submit(million);
  await cluster.waitFor(id, undefined, 10 * patience);
  const page = await browser.openView(cluster);
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  const begin = Date.now();
  await show(page, `#/curves?runs=${id}&series=last_stage_loss&x=microbatch`);
  await page.locator('[data-points]').waitFor();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const firstPaint = Date.now() - begin;
  assert.equal(await pointsOf(page, String(id)), points);
  assert.match(await page.locator('.legend').innerText(), /down-sampled/);
  const wheel = `
    const over = document.querySelector('.u-over');
    const box = over.getBoundingClientRect();
    const at = { clientX: box.left + box.width * 0.6, clientY: box.top + 50, bubbles: true, cancelable: true };
    over.dispatchEvent(new WheelEvent('wheel', { ...at, deltaY: Math.floor(n / 20) % 2 ? 100 : -100 }));`;
  const idle = await framesPerSecond(page, '');
  const zoom = await framesPerSecond(page, wheel);
  const hover = await framesPerSecond(page, `
    const over = document.querySelector('.u-over');
    const box = over.getBoundingClientRect();
    over.dispatchEvent(new MouseEvent('mousemove', { clientX: box.left + (n * 7) % box.width, clientY: box.top + 60, bubbles: true }));`);
  context.diagnostic(`first paint ${firstPaint} ms, ${zoom.toFixed(1)} frames/s zooming, ${hover.toFixed(1)} hovering, ${idle.toFixed(1)} idle`);

  // The detail of a place: every point of it is there.
  await show(page, `#/curves?runs=${id}&series=last_stage_loss&x=microbatch&zoom=500000,500100`);
  const stored = (await cluster.get(`/v1/jobs/${id}/runs/0/series?series=last_stage_loss&x=microbatch&from=500000&to=500100`)).points;
  assert.equal(stored.length, 101);
  await until('the detail has come', async () => ([...(await shownPoints(page)).values()][0]?.length ?? 0) === 101);
  assert.deepEqual([...(await shownPoints(page)).values()][0], stored.map((point) => [Number(point.x), Number(point.value)]));
  assert.deepEqual(page.faults, []);
});

test('thousands of jobs are one list without lag', async (context) => {
  const text = quadraticJob({ name: 'one of many', microbatches: 2 });
  for (let i = 0; i < jobsMany; i += 20) await Promise.all(Array.from({ length: 20 }, () => cluster.submit(text)));
  const page = await browser.openView(cluster);
  const all = jobsMany + 1;
  await page.getByText(`${all} jobs`, { exact: true }).waitFor();
  const rows = await page.locator('.job-rows [role=row]').count();
  assert.ok(rows < 80, `${rows} rows in the document`);
  const scroll = await framesPerSecond(page, `document.querySelector('.table-scroll').scrollTop = n * 220;`);
  context.diagnostic(`${all} jobs: ${scroll.toFixed(1)} frames/s scrolling`);
  await page.getByRole('searchbox', { name: 'Search jobs' }).fill('million');
  await page.getByText(`1 of ${all}`).waitFor();
  await until('only it is in the list', async () => (await page.locator('[data-job]').count()) === 1);
  await page.getByRole('searchbox', { name: 'Search jobs' }).fill('');
  await page.getByRole('button', { name: 'Job', exact: true }).click();
  await page.locator('[data-job="1"]').waitFor();
});
