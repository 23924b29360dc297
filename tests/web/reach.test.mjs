// For everybody: by keyboard alone, with a screen reader, in both themes.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { Browser, Cluster, fromPage, longJob, pointsOf, quadraticJob, show, stands, until } from './support.mjs';

const sweep = `name: a sweep
objective:
  quadratic: {generate: {kind: random, examples: 40, parameters: 16, seed: 0}, batch_size: 4}
schedule:
  pipedream: {stages: 2, microbatches: 100}
optimizer: {sgd: {learning_rate: 0.01}}
sweep: {optimizer.sgd.learning_rate: [0.01, 0.02, 0.04]}
`;

let cluster, browser;
before(async () => {
  cluster = await Cluster.start(2);
  browser = await Browser.start();
});
after(async () => {
  await browser?.close();
  await cluster?.close();
});

/// What has the focus, in words.
const focused = (page) =>
  page.evaluate(() => {
    const at = document.activeElement;
    return `${at?.tagName} ${at?.getAttribute('aria-label') ?? at?.textContent?.trim().slice(0, 40) ?? ''}`;
  });

async function tabTo(page, pattern, most = 60) {
  for (let i = 0; i < most; ++i) {
    await page.keyboard.press('Tab');
    if (pattern.test(await focused(page))) return;
  }
  assert.fail(`Tab does not lead to ${pattern}; it is at ${await focused(page)}`);
}

test('a job is submitted, found and cancelled with the keyboard alone', async () => {
  const page = await browser.openView(cluster);
  await tabTo(page, /BUTTON Submit/);
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, 'none', 'what has the focus is seen');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  assert.match(await focused(page), /TEXTAREA Job file/);
  await page.keyboard.insertText(longJob('typed', 3_000_000));
  await page.keyboard.press('Control+Enter');
  await page.waitForURL(/#\/curves\?runs=1$/);
  await until('it grows', async () => (await pointsOf(page, '1')) > 2);
  await tabTo(page, /^A Jobs/);
  await page.keyboard.press('Enter');
  await page.locator('[data-job="1"]').waitFor();
  await page.keyboard.press('/');
  assert.match(await focused(page), /INPUT Search jobs/);
  await page.keyboard.type('typed');
  await tabTo(page, /BUTTON Cancel job 1/);
  await page.keyboard.press('Enter');
  await page.locator('[data-job="1"]').getByText('cancelled').waitFor();
});

test('Escape leaves the dialog and gives the focus back', async () => {
  const page = await browser.openView(cluster);
  await tabTo(page, /BUTTON Submit/);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.match(await focused(page), /BUTTON Submit/);
});

test('axe finds no serious fault in any view, dark or light, wide or narrow', async () => {
  const axe = fs.readFileSync(fromPage.resolve('axe-core/axe.min.js'), 'utf8');
  const single = await cluster.submit(quadraticJob());
  const many = await cluster.submit(sweep);
  await cluster.waitFor(single);
  await cluster.waitFor(many);
  const views = ['#/jobs', `#/jobs?job=${single}`, `#/curves?runs=${single},${many}.1`, '#/curves', `#/schedule?run=${single}`, `#/sweeps?job=${many}`, '#/cluster'];
  const faults = [];
  for (const options of [{}, { dark: true }, { width: 390, height: 844 }]) {
    const page = await browser.openView(cluster, '#/jobs', options);
    const check = async (where) => {
      // The policy of the page forbids what is not its own; this comes through the debugger.
      const results = await page.evaluate(`${axe}; axe.run(document, {resultTypes: ['violations']})`);
      for (const violation of results.violations) {
        if (!['serious', 'critical'].includes(violation.impact)) continue;
        for (const node of violation.nodes) faults.push(`${where} ${JSON.stringify(options)}: ${violation.id} ${node.target} ${node.failureSummary}`);
      }
    };
    for (const view of views) {
      await show(page, view);
      await stands(page);
      await check(view);
    }
    await page.getByRole('button', { name: 'Submit' }).first().click();
    await page.getByRole('dialog').waitFor();
    await check('the dialog');
    await page.context().close();
  }
  const asked = await browser.open(cluster.url);
  await asked.getByLabel('Token').waitFor();
  const results = await asked.evaluate(`${axe}; axe.run(document)`);
  faults.push(...results.violations.filter((each) => ['serious', 'critical'].includes(each.impact)).map((each) => `token: ${each.id}`));
  assert.deepEqual(faults, []);
});
