// The paper's comparison: PipeDream and LocalSGD over each other, over every axis.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Browser, Cluster, download, pointsOf, show, shownPoints, storedPoints, until } from './support.mjs';

const problem = `objective:
  quadratic: {generate: {kind: tridiagonal, examples: 600, parameters: 512, seed: 0}, batch_size: 5}
observe: {objective: {every_ticks: 1}}
`;
const pipedream = `name: PipeDream
${problem}schedule:
  pipedream: {stages: 16, microbatches: 600}
optimizer: {sgd: {learning_rate: 0.00390625}}
`;
const localSgd = `name: LocalSGD
${problem}schedule:
  local_sgd: {stages: 16, replicas: 16, local_steps: 5, microbatches: 600}
optimizer: {sgd: {learning_rate: 0.03125}}
`;
const repeated = `name: seeds
objective:
  quadratic: {generate: {kind: random, examples: 200, parameters: 64, seed: 0}, batch_size: 5}
schedule:
  rpd: {stages: 4, updates: 400, delay_max: 8}
optimizer: {sgd: {learning_rate: 0.01}}
repeats: 4
`;
const withTheory = `name: theory
objective:
  quadratic: {generate: {kind: random, examples: 60, parameters: 16, seed: 0}, batch_size: 5}
schedule:
  rpd: {stages: 2, updates: 300, delay_max: 4}
optimizer: {sgd: {learning_rate: 0.001}}
observe: {theory: true}
`;

let cluster, browser, page, pd, local;
before(async () => {
  cluster = await Cluster.start(2);
  browser = await Browser.start();
  pd = await cluster.submit(pipedream);
  local = await cluster.submit(localSgd);
  await cluster.waitFor(pd);
  await cluster.waitFor(local);
  page = await browser.openView(cluster);
});
after(async () => {
  await browser?.close();
  await cluster?.close();
});

const both = async () => (await pointsOf(page, String(pd))) > 0 && (await pointsOf(page, String(local))) > 0;

test('runs are ticked in the list and drawn over each other', async () => {
  await page.getByRole('checkbox', { name: `Overlay job ${pd}` }).check();
  await page.getByRole('checkbox', { name: `Overlay job ${local}` }).check();
  await page.getByRole('button', { name: 'Overlay 2' }).click();
  await until('both are there', both);
  const curves = await shownPoints(page);
  assert.deepEqual(curves.get('PipeDream'), await storedPoints(cluster, pd));
  assert.deepEqual(curves.get('LocalSGD'), await storedPoints(cluster, local));
});

test('the same over updates, microbatches and wall time', async () => {
  const axis = page.getByRole('combobox', { name: 'x axis' });
  await axis.selectOption('updates');
  await until('both are there', both);
  const updates = await storedPoints(cluster, pd, 'updates');
  assert.deepEqual((await shownPoints(page)).get('PipeDream'), updates);
  await axis.selectOption('microbatch');
  await until('both are there', both);
  // 16 stages: every microbatch is 16 block updates.
  assert.deepEqual((await shownPoints(page)).get('PipeDream'), updates.map(([x, y]) => [x / 16, y]));
  await axis.selectOption('time');
  await until('both are there', both);
  const seconds = (await shownPoints(page)).get('PipeDream');
  // Each point at the time at which the daemon took it.
  const { started_unix_ms: started } = await cluster.get(`/v1/jobs/${pd}`);
  const { events } = await cluster.get(`/v1/jobs/${pd}/events?kind=point&limit=10000`);
  const taken = events.filter(({ point }) => point.series === 'SERIES_OBJECTIVE');
  assert.deepEqual(seconds, taken.map((event) => [(Number(event.time_unix_ms) - Number(started)) / 1000, Number(event.point.value)]));
  await axis.selectOption('tick');
});

test('zoom, names, colours and what is hidden stand in the address: a link shows the same', async () => {
  await until('both are there', both);
  const plot = page.locator('.u-over');
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + box.width * 0.25, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.getByText('Zoomed: does not follow.').waitFor();
  await page.getByRole('textbox', { name: `Name of curve ${pd}` }).fill('a, b: <i>PD</i>');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: /Colour of a, b/ }).click();
  await page.getByRole('button', { name: 'Hide LocalSGD' }).click();
  await page.getByRole('checkbox', { name: 'log y' }).uncheck();
  await until('the zoom is in the address', () => /zoom=\d/.test(page.url()));
  const shown = await shownPoints(page);
  assert.deepEqual([...shown.keys()], ['a, b: <i>PD</i>']);
  const xs = shown.get('a, b: <i>PD</i>').map(([x]) => x);
  const last = (await storedPoints(cluster, local)).at(-1)[0];
  assert.ok(xs[0] > 0.2 * last && xs.at(-1) < 0.55 * last, `${xs[0]} to ${xs.at(-1)} of ${last}`);
  const other = await browser.openView(cluster, new URL(page.url()).hash);
  await until('it is there', async () => (await pointsOf(other, String(pd))) > 0);
  assert.deepEqual(await shownPoints(other), shown);
  assert.equal(await other.getByRole('checkbox', { name: 'log y' }).isChecked(), false);
  await other.context().close();
});

test('plus, minus, arrows and 0 zoom, pan and reset', async () => {
  await page.getByRole('group', { name: /^Plot/ }).focus();
  const zoomOf = () => /zoom=([^&]*)/.exec(page.url())?.[1];
  const before = zoomOf();
  await page.keyboard.press('ArrowRight');
  await until('it has moved', () => zoomOf() !== before);
  await page.keyboard.press('0');
  await until('it shows all', () => zoomOf() === undefined);
  await page.keyboard.press('+');
  await until('it is nearer', () => zoomOf() !== undefined);
  await page.keyboard.press('0');
  await until('it shows all', () => zoomOf() === undefined);
});

test('what is shown is saved as CSV, SVG and PNG', async () => {
  await page.getByRole('button', { name: 'Hide LocalSGD' }).click();
  const svg = (await download(page, page.getByRole('button', { name: 'SVG' }))).toString();
  assert.match(svg, /^<svg /);
  assert.ok(svg.includes('a, b: &lt;i&gt;PD&lt;/i&gt;') && svg.includes('LocalSGD') && svg.includes('Simulated time'));
  // Not in the page itself, whose policy lets nothing be parsed.
  const blank = await browser.open('about:blank');
  const faults = await blank.evaluate((text) => new DOMParser().parseFromString(text, 'image/svg+xml').querySelectorAll('parsererror').length, svg);
  assert.equal(faults, 0);
  const png = await download(page, page.getByRole('button', { name: 'PNG' }));
  assert.deepEqual([...png.subarray(0, 8)], [137, 80, 78, 71, 13, 10, 26, 10]);
  assert.ok(png.readUInt32BE(16) >= 1900, 'fine enough for print');
});

test('smoothing leaves the raw line faint behind', async () => {
  await show(page, `#/curves?runs=${pd}&smooth=60&series=last_stage_loss`);
  await until('it is there', async () => (await pointsOf(page, String(pd))) === 600);
  const csv = (await download(page, page.getByRole('button', { name: 'CSV' }))).toString();
  assert.equal(csv.split('\n').length, 2 + 2 * 600);
});

test('repeats are drawn as a band, in the numbers of Student', async () => {
  const id = await cluster.submit(repeated);
  await cluster.waitFor(id);
  await show(page, `#/curves?runs=${id}g0`);
  const band = await until('it is there', async () => (await pointsOf(page, `${id}g0`)) > 0 && shownPoints(page));
  const [mean] = [...band.values()];
  const finals = [];
  for (let run = 0; run < 4; ++run) finals.push((await cluster.get(`/v1/jobs/${id}/runs/${run}`)).objective_last);
  const average = finals.reduce((sum, each) => sum + each, 0) / 4;
  const spread = Math.sqrt(finals.reduce((sum, each) => sum + (each - average) ** 2, 0) / 3);
  // The lines of low, high and mean have one name; each ends with its value at the last tick.
  const perLine = mean.length / 3;
  const [low, high, middle] = [1, 2, 3].map((k) => mean[k * perLine - 1][1]);
  assert.ok(Math.abs(middle / average - 1) < 1e-12);
  assert.ok(Math.abs((high - low) / 2 / ((3.1824 * spread) / 2) - 1) < 1e-9);
});

test('the bound of theory stands over the mean of the squared gradient', async () => {
  const id = await cluster.submit(withTheory);
  await cluster.waitFor(id);
  await show(page, `#/curves?runs=${id}&series=gradient_norm_sq_mean`);
  const curves = await until('both are there', async () => (await pointsOf(page, String(id))) > 0 && shownPoints(page));
  const stored = (await cluster.get(`/v1/jobs/${id}/events?kind=point&limit=10000`)).events.map((event) => event.point);
  const of = (series) => stored.filter((point) => point.series === series).map((point) => [Number(point.tick), Number(point.value)]);
  assert.deepEqual(curves.get('theory'), of('SERIES_GRADIENT_NORM_SQ_MEAN'));
  const bound = of('SERIES_BOUND').map(([x, y]) => [x, Number.isFinite(y) ? y : NaN]);
  assert.ok(bound.length > 0);
  assert.deepEqual(curves.get('theory: bound'), bound);
  assert.deepEqual(page.faults, []);
});
