// Screenshots of every view at 1440 and 390 pixels, kept in tests/web-screenshots of the build folder,
// and what can be checked of their looks: nothing is wider than the window.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Browser, Cluster, keepShot, longJob, pointAt, pointsOf, quadraticJob, show, stands, until } from './support.mjs';

const sweep = `name: learning rates of RPD
objective:
  quadratic: {generate: {kind: random, examples: 200, parameters: 64, seed: 0}, batch_size: 5}
schedule:
  rpd: {stages: 4, updates: 500, delay_max: 8}
optimizer: {sgd: {learning_rate: 0.01}}
sweep: {schedule.rpd.delay_max: [0, 8, 64], optimizer.sgd.learning_rate: {log2: [-8, -4]}}
repeats: 3
`;
const pipedream = longJob('PipeDream on Nesterov’s quadratic', 4000).replace('stages: 2', 'stages: 4');
const localSgd = pipedream
  .replace('PipeDream', 'LocalSGD')
  .replace('pipedream: {stages: 4,', 'local_sgd: {stages: 4, replicas: 4, local_steps: 5,');
const small = `name: a small schedule
objective:
  quadratic: {generate: {kind: random, examples: 40, parameters: 16, seed: 0}, batch_size: 4}
schedule:
  local_sgd: {stages: 4, replicas: 4, local_steps: 3, microbatches: 36}
optimizer: {sgd: {learning_rate: 0.01}}
`;

let cluster, browser, pd, local, many, tiny, running;
before(async () => {
  cluster = await Cluster.start(4);
  browser = await Browser.start();
  for (let i = 0; i < 12; ++i) await cluster.submit(quadraticJob({ name: `try ${i}`, microbatches: 50 + i }));
  pd = await cluster.submit(pipedream);
  local = await cluster.submit(localSgd);
  many = await cluster.submit(sweep);
  tiny = await cluster.submit(small);
  for (const id of [pd, local, many, tiny]) await cluster.waitFor(id);
  // In real time: it outlasts this file, however fast the machine is.
  running = await cluster.submit(quadraticJob({ name: 'a long one', microbatches: 4000, more: 'clock: real\ncost: {forward: 1s, backward: 1s}\n' }));
  await cluster.waitFor(running, 'JOB_STATE_RUNNING');
});
after(async () => {
  await browser?.close();
  await cluster?.close();
});

const shots = () => [
  ['jobs', '#/jobs', '[data-job]'],
  ['job', `#/jobs?job=${pd}`, '.detail .facts'],
  ['curves', `#/curves?runs=${pd},${local}&smooth=30`, '[data-points]'],
  ['curves-band', `#/curves?runs=${many}g8,${many}g9&ylog=1`, '[data-points]'],
  ['curves-empty', '#/curves', '.empty'],
  ['schedule', `#/schedule?run=${tiny}`, '.gantt canvas'],
  ['schedule-long', `#/schedule?run=${pd}`, '.gantt canvas'],
  ['sweeps', `#/sweeps?job=${many}`, '.sweep-plot'],
  ['cluster', '#/cluster', '.pool table'],
];

for (const [width, height] of [[1440, 900], [390, 844]]) {
  for (const dark of [false, true]) {
    test(`every view at ${width} pixels, ${dark ? 'dark' : 'light'}`, async () => {
      const page = await browser.openView(cluster, '#/jobs', { width, height, dark });
      for (const [name, view, ready] of shots()) {
        await show(page, view);
        await page.locator(ready).first().waitFor();
        await stands(page);
        await keepShot(page, `${name}-${width}${dark ? '-dark' : ''}`);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${name}: ${wide} pixels wide in a window of ${width}`);
      }
      await page.getByRole('button', { name: 'Submit' }).first().click();
      await page.getByRole('dialog').getByRole('button', { name: 'Example' }).click();
      await keepShot(page, `submit-${width}${dark ? '-dark' : ''}`);
      const editor = page.getByRole('textbox', { name: 'Job file' });
      await editor.fill((await editor.inputValue()).replace('stages', 'stagse'));
      await page.getByRole('dialog').getByRole('button', { name: 'Submit', exact: true }).click();
      await page.getByRole('alert').waitFor();
      await keepShot(page, `submit-fault-${width}${dark ? '-dark' : ''}`);
      // The server refused it, which browsers log.
      assert.deepEqual(page.faults.filter((fault) => !/status of 400/.test(fault)), []);
      await page.context().close();
    });
  }
}

test('the tooltip names the values of all runs at the place', async () => {
  const page = await browser.openView(cluster, `#/curves?runs=${pd},${local}`);
  await until('both are there', async () => (await pointsOf(page, String(pd))) > 0 && (await pointsOf(page, String(local))) > 0);
  await until('it has both, one of them as the nearest', async () => {
    await pointAt(page, page.locator('.u-over'), (box) => [box.width / 2, box.height / 2]);
    const rows = await page.locator('.tooltip .row').count();
    return rows === 2 && (await page.locator('.tooltip .nearest').count()) === 1;
  });
  await keepShot(page, 'tooltip-1440');
});

test('the Gantt chart tells the staleness of a read', async () => {
  const id = await cluster.submit(quadraticJob({ name: 'staleness', microbatches: 20 }));
  await cluster.waitFor(id);
  const page = await browser.openView(cluster, `#/schedule?run=${id}`);
  const told = /F2 on stage 0\n4 ticks to 5 ticks\nreads version 1\nstaleness at its update: 1 version\n2 in flight/;
  await until('F2 of stage 0 is told', async () => {
    // Two stages, 20 microbatches: 42 ticks from pixel 64 on; F2 of stage 0 is in tick 4.
    await pointAt(page, page.locator('.gantt canvas'), (box) => [64 + (4.5 * (box.width - 64)) / 42, 26 + 15]);
    const tooltip = page.locator('.gantt .tooltip');
    return (await tooltip.count()) === 1 && told.test(await tooltip.innerText());
  });
});

test('the cluster shows which run is where', async () => {
  const page = await browser.openView(cluster, '#/cluster');
  const pool = page.getByRole('region', { name: 'Pool local' });
  await pool.getByRole('link', { name: `job ${running}` }).first().waitFor();
  await until('it is on two ranks', async () => (await pool.getByRole('link', { name: `job ${running}`, exact: true }).count()) === 2);
  await pool.getByRole('cell', { name: 'running' }).waitFor();
});

test('the best point of a sweep is marked, and so is the edge of the grid', async () => {
  const page = await browser.openView(cluster, `#/sweeps?job=${many}`);
  const summary = JSON.parse((await cluster.get(`/v1/jobs/${many}`)).summary_json);
  const best = summary.best.by_final;
  await page.locator('.sweep-plot .best').waitFor();
  // The largest learning rate of the grid is the best one.
  assert.deepEqual(best.edges.map((edge) => edge.key), ['optimizer.sgd.learning_rate']);
  assert.equal(await page.locator('.sweep-plot .best .edge').textContent(), 'on the edge of learning_rate');
  const row = await page.locator('tr.best').innerText();
  assert.ok(row.includes(String(best.swept['optimizer.sgd.learning_rate'])), row);
});
