// Curves while their runs go on: growing, across a crash of the daemon, over a slow network.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Browser, Cluster, download, longJob, patience, pointsOf, quadraticJob, show, shownPoints, storedPoints, until } from './support.mjs';

let cluster, browser;
before(async () => {
  cluster = await Cluster.start(2);
  browser = await Browser.start();
});
after(async () => {
  await browser?.close();
  await cluster?.close();
});

async function submitFromPage(page, text) {
  await page.getByRole('banner').getByRole('button', { name: 'Submit a job' }).click();
  await page.getByRole('textbox', { name: 'Job file' }).fill(text);
  await page.getByRole('dialog').getByRole('button', { name: 'Submit', exact: true }).click();
}

test('a job is submitted from the page, and its curve grows', async () => {
  const page = await browser.openView(cluster);
  await submitFromPage(page, longJob('from the page', 30_000));
  await page.waitForURL(/#\/curves\?runs=1$/);
  const counts = new Set();
  await until('it has grown several times', async () => counts.add(await pointsOf(page, '1')).size > 3);
  await page.locator('.legend').getByText('succeeded').waitFor({ timeout: 4 * patience });
  const stored = await storedPoints(cluster, 1);
  await until('all points are there', async () => (await pointsOf(page, '1')) === stored.length);
  assert.deepEqual((await shownPoints(page)).get('from the page'), stored);
  assert.deepEqual(page.faults, []);
});

test("the server's complaint stands at its line, and the text is kept", async () => {
  const page = await browser.openView(cluster);
  const wrong = quadraticJob().replace('microbatches', 'microbatch');
  await submitFromPage(page, wrong);
  const alert = page.getByRole('alert');
  await alert.getByText('Line 5:').waitFor();
  assert.match(await alert.textContent(), /microbatch.*did you mean 'microbatches'/s);
  assert.equal(await page.locator('.numbers .bad').textContent(), '5');
  const editor = page.getByRole('textbox', { name: 'Job file' });
  assert.equal(await editor.inputValue(), wrong);
  const selected = () => editor.evaluate((area) => area.value.slice(area.selectionStart, area.selectionEnd));
  await until('the line is selected', async () => (await selected()) === wrong.split('\n')[4]);
  await editor.fill(wrong.replace('microbatch:', 'microbatches:'));
  await alert.waitFor({ state: 'detached' });
  await page.getByRole('dialog').getByRole('button', { name: 'Submit', exact: true }).click();
  await page.waitForURL(/#\/curves\?runs=\d+$/);
});

test('a file that is dropped on the page is put into the dialog', async () => {
  const page = await browser.openView(cluster);
  const transfer = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], 'job.yaml', { type: 'application/yaml' }));
    return data;
  }, quadraticJob({ name: 'dropped' }));
  await page.dispatchEvent('.frame', 'drop', { dataTransfer: transfer });
  await page.getByRole('dialog').waitFor();
  assert.match(await page.getByRole('textbox', { name: 'Job file' }).inputValue(), /dropped/);
});

test('the daemon is killed and started again while somebody watches: no gap, no repeat', async () => {
  // Its pool goes on while the daemon is away: it must not be at its end before the second crash.
  const id = await cluster.submit(longJob('across a crash', 250_000));
  const page = await browser.openView(cluster, `#/curves?runs=${id}`);
  for (const round of [1, 2]) {
    const before = await pointsOf(page, String(id));
    await until(`points come, round ${round}`, async () => (await pointsOf(page, String(id))) > before + 20);
    await cluster.kill();
    await page.getByRole('status').getByText('Not live').waitFor();
    await page.locator('.legend').getByText('not live').waitFor();
    await cluster.restart();
    await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  }
  const job = await cluster.waitFor(id);
  assert.equal(job.attempt, 1, 'its pool went on with it');
  const stored = await storedPoints(cluster, id);
  await until('all points are there', async () => (await pointsOf(page, String(id))) === stored.length);
  assert.deepEqual((await shownPoints(page)).get('across a crash'), stored);
});

test('over a slow network the page comes, follows, and ends with every point', async () => {
  const page = await browser.open('about:blank');
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('Network.enable');
  await devtools.send('Network.emulateNetworkConditions', { offline: false, latency: 400, downloadThroughput: 50e3, uploadThroughput: 20e3 });
  const id = await cluster.submit(longJob('slowly', 20_000));
  await page.goto(`${cluster.url}/#token=${cluster.token}`);
  await page.locator('nav').waitFor();
  await show(page, `#/curves?runs=${id}`);
  await until('points come', async () => (await pointsOf(page, String(id))) > 0, 2 * patience);
  await cluster.waitFor(id);
  const stored = await storedPoints(cluster, id);
  await until('all points are there', async () => (await pointsOf(page, String(id))) === stored.length, 2 * patience);
  assert.deepEqual((await shownPoints(page)).get('slowly'), stored);
});

test('a job is cancelled from the list', async () => {
  const id = await cluster.submit(longJob('not wanted', 3_000_000));
  const page = await browser.openView(cluster);
  await page.getByRole('button', { name: `Cancel job ${id}` }).click();
  await page.locator(`[data-job="${id}"]`).getByText('cancelled').waitFor();
  assert.equal((await cluster.get(`/v1/jobs/${id}`)).state, 'JOB_STATE_CANCELLED');
});

test('a diverged run says so, and where', async () => {
  const id = await cluster.submit(quadraticJob({ name: 'too fast', microbatches: 4000 }).replace('0.001', '50'));
  await cluster.waitFor(id);
  const page = await browser.openView(cluster, `#/curves?runs=${id}&series=last_stage_loss`);
  await page.locator('.legend').getByText(/diverged at tick \d+/).waitFor();
  await until('the loss is there', async () => (await pointsOf(page, String(id))) > 0);
  const csv = (await download(page, page.getByRole('button', { name: 'CSV' }))).toString();
  assert.match(csv, /,nan\n$/);
});
