// Who may look: the token, and what is done to keep it and the page safe.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { Browser, Cluster, quadraticJob, show, until } from './support.mjs';

let cluster, browser;
before(async () => {
  cluster = await Cluster.start(1);
  browser = await Browser.start();
});
after(async () => {
  await browser?.close();
  await cluster?.close();
});

test('the link carries the token, and the address loses it at once', async () => {
  const link = await cluster.cli('web');
  assert.equal(link, `${cluster.url}/#token=${cluster.token}`);
  const requests = [];
  const page = await browser.open('about:blank');
  page.on('request', (request) => requests.push(request.url()));
  page.on('websocket', (socket) => requests.push(socket.url()));
  await page.goto(link);
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  const id = await cluster.submit(quadraticJob());
  await cluster.waitFor(id);
  await show(page, `#/curves?runs=${id}`);
  await page.getByText('latest').waitFor();
  assert.ok(!page.url().includes(cluster.token), page.url());
  assert.ok(requests.some((url) => url.startsWith('ws:')), 'the stream was opened');
  for (const url of requests.slice(1)) assert.ok(!url.includes(cluster.token), url);
  await page.goBack();
  await page.goBack().catch(() => {});
  assert.ok(!page.url().includes(cluster.token), 'the history does not have it either');
  assert.deepEqual(page.faults, []);
  assert.ok(!fs.readFileSync(path.join(cluster.folder, 'daemon.log'), 'utf8').includes(cluster.token));
});

test('the token is kept for the tab, and not beyond it', async () => {
  const page = await browser.openView(cluster);
  await page.reload();
  await page.locator('nav').waitFor();
  const kept = await page.evaluate(() => [JSON.stringify(localStorage), document.cookie, JSON.stringify(sessionStorage)]);
  assert.ok(!kept[0].includes(cluster.token) && !kept[1].includes(cluster.token));
  assert.ok(kept[2].includes(cluster.token));
  const other = await browser.open(cluster.url);
  await other.getByRole('button', { name: 'Open' }).waitFor();
});

test('without a token the page asks for it, with a wrong one it says so', async () => {
  const page = await browser.open(`${cluster.url}/#/cluster`);
  await page.getByText('This page needs the token').waitFor();
  assert.equal(await page.getByRole('alert').count(), 0);
  await page.getByLabel('Token').fill('wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('does not accept that token').waitFor();
  await page.getByLabel('Token').fill(cluster.token);
  await page.keyboard.press('Enter');
  // Where the address wanted to go.
  await page.getByRole('region', { name: 'Pool local' }).waitFor();
});

test('markup in the name of a job stays text', async () => {
  const name = '<img src=x onerror="window.hacked=1"><b>bold</b><script>window.hacked=2</script>';
  const id = await cluster.submit(quadraticJob({ name }));
  await cluster.waitFor(id);
  const page = await browser.openView(cluster, `#/jobs?job=${id}`);
  await page.getByRole('link', { name }).waitFor();
  await page.getByRole('heading', { name }).waitFor();
  const views = [
    [`#/curves?runs=${id}`, `[data-run="${id}"] [data-points]`],
    [`#/schedule?run=${id}`, '.gantt canvas'],
    ['#/cluster', '.pool'],
    ['#/sweeps', '.empty'],
  ];
  for (const [view, ready] of views) {
    await show(page, view);
    await page.locator(ready).first().waitFor();
  }
  await show(page, `#/curves?runs=${id}`);
  await page.getByText('latest').waitFor();
  assert.equal(await page.getByRole('textbox', { name: `Name of curve ${id}` }).inputValue(), name);
  await page.locator('.u-over').hover();
  await page.locator('.tooltip').getByText(name).waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator('img[src="x"], .frame b b, .frame script').count(), 0);
});

test('the policy lets nothing run but the page itself', async () => {
  const page = await browser.openView(cluster);
  const violations = await page.evaluate(async () => {
    const seen = [];
    document.addEventListener('securitypolicyviolation', (event) => seen.push(event.effectiveDirective));
    const script = document.createElement('script');
    try {
      script.textContent = 'window.hacked = 3';
      document.body.append(script);
    } catch {
      seen.push('trusted-types');
    }
    const style = document.createElement('div');
    style.setAttribute('style', 'color: red');
    document.body.append(style);
    try {
      await fetch('https://example.invalid/');
    } catch {
      // As it should be.
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
    return seen;
  });
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.ok(violations.includes('connect-src'), String(violations));
  assert.ok(violations.some((each) => each.startsWith('style-src')), String(violations));
  assert.ok(violations.some((each) => /script-src|trusted-types/.test(each)), String(violations));
});

test('a daemon that goes away is told, and its return', async () => {
  const page = await browser.openView(cluster);
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await cluster.kill();
  await page.getByRole('status').getByText('Not live').waitFor();
  await cluster.restart();
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await until('the list is complete again', async () => (await page.locator('[data-job]').count()) >= 2);
});
