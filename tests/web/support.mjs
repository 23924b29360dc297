// A real daemon with a pool of MPI ranks, and a real browser that looks at its page.
import assert from 'node:assert/strict';
import { spawn, execFile } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const fromPage = createRequire(path.join(root, 'client/web/package.json'));
const { chromium } = fromPage('playwright-core');

const build = process.env.PIPEWRIGHT_BINARY_DIR ?? path.join(root, 'build/release');
const binaries = path.join(build, 'bin');
const chromiumPath = process.env.PIPEWRIGHT_CHROMIUM ?? '/usr/bin/chromium';
export const shotsFolder = path.join(build, 'tests/web-screenshots');

/// Generous: the machine may be busy.
export const patience = 60_000;

export async function until(what, check, deadline = patience) {
  const end = Date.now() + deadline;
  for (;;) {
    const answer = await check();
    if (answer) return answer;
    assert.ok(Date.now() < end, `not within ${deadline / 1000} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/// The daemon of one data folder. What it starts is ended by its own pid.
export class Cluster {
  static async start(ranks = 2) {
    const cluster = new Cluster();
    cluster.folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pipewright-web-'));
    cluster.data = path.join(cluster.folder, 'data');
    cluster.ranks = ranks;
    try {
      await cluster.startDaemon(0);
    } catch (error) {
      await cluster.close();
      throw error;
    }
    return cluster;
  }

  async startDaemon(port) {
    const record = path.join(this.data, 'daemon.json');
    fs.rmSync(record, { force: true });
    fs.mkdirSync(this.data, { recursive: true, mode: 0o700 });
    const log = fs.openSync(path.join(this.folder, 'daemon.log'), 'a');
    const words = ['--data-dir', this.data, '--port', String(port), '--ranks', String(this.ranks)];
    this.daemon = spawn(path.join(binaries, 'pipewrightd'), words, { stdio: ['ignore', log, log] });
    fs.closeSync(log);
    this.ended = new Promise((resolve) => this.daemon.once('exit', resolve));
    await until('the daemon listens', () => fs.existsSync(record) && fs.readFileSync(record, 'utf8').includes('url'));
    this.url = JSON.parse(fs.readFileSync(record, 'utf8')).url;
    this.token = fs.readFileSync(path.join(this.data, 'token'), 'utf8').trim();
    await until('the pool is attached', async () => {
      const { pools } = await this.get('/v1/pools');
      return pools.some((pool) => pool.state === 'attached');
    });
  }

  /// SIGKILL, as when the machine takes it away.
  async kill() {
    this.daemon.kill('SIGKILL');
    await this.ended;
  }

  async restart() {
    await this.startDaemon(Number(new URL(this.url).port));
  }

  async close() {
    if (this.daemon && this.daemon.exitCode === null && this.daemon.signalCode === null) {
      this.daemon.kill('SIGTERM');
      const timer = setTimeout(() => this.daemon.kill('SIGKILL'), 30_000);
      await this.ended;
      clearTimeout(timer);
    }
    fs.rmSync(this.folder, { recursive: true, force: true });
  }

  async ask(target, options = {}) {
    const headers = { Authorization: `Bearer ${this.token}`, ...options.headers };
    const reply = await fetch(this.url + target, { ...options, headers });
    assert.ok(reply.ok, `${target}: ${reply.status} ${reply.ok ? '' : await reply.text()}`);
    return reply;
  }
  async get(target) {
    return (await this.ask(target)).json();
  }
  async text(target) {
    return (await this.ask(target)).text();
  }

  async submit(yaml) {
    const options = { method: 'POST', headers: { 'Content-Type': 'application/yaml' }, body: yaml };
    return (await (await this.ask('/v1/jobs', options)).json()).id;
  }
  async waitFor(id, state = 'JOB_STATE_SUCCEEDED', deadline = 4 * patience) {
    return until(`job ${id} is ${state}`, async () => {
      const job = await this.get(`/v1/jobs/${id}`);
      assert.ok(job.state !== 'JOB_STATE_FAILED' || state === job.state, job.message);
      return job.state === state && job;
    }, deadline);
  }

  async cli(...words) {
    const { stdout } = await promisify(execFile)(path.join(binaries, 'pipewright'), [...words, '--data-dir', this.data]);
    return stdout.trim();
  }
}

/// A job of two stages on Nesterov's quadratic.
export function quadraticJob({ name = 'a test', microbatches = 400, more = '' } = {}) {
  return `name: ${JSON.stringify(name)}
objective:
  quadratic: {generate: {kind: tridiagonal, examples: 40, parameters: 16, seed: 0}, batch_size: 5}
schedule:
  pipedream: {stages: 2, microbatches: ${microbatches}}
optimizer: {sgd: {learning_rate: 0.001}}
${more}`;
}

/// Takes several seconds, and shows many points meanwhile.
export function longJob(name = 'long', microbatches = 60_000) {
  return `name: ${name}
objective:
  quadratic: {generate: {kind: tridiagonal, examples: 600, parameters: 512, seed: 0}, batch_size: 5}
schedule:
  pipedream: {stages: 2, microbatches: ${microbatches}}
optimizer: {sgd: {learning_rate: 0.005}}
observe: {objective: {every_ticks: ${Math.max(1, Math.round(microbatches / 1000))}}}
`;
}

export class Browser {
  static async start() {
    const browser = new Browser();
    browser.chromium = await chromium.launch({ executablePath: chromiumPath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    return browser;
  }

  /// A tab of its own session. What goes wrong in it is in `page.faults`.
  async open(address, { width = 1440, height = 900, dark = false } = {}) {
    const context = await this.chromium.newContext({
      viewport: { width, height },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: 'reduce',
      acceptDownloads: true,
    });
    context.setDefaultTimeout(patience);
    const page = await context.newPage();
    page.faults = [];
    page.on('pageerror', (error) => page.faults.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') page.faults.push(message.text());
    });
    page.on('dialog', (dialog) => dialog.accept());
    await page.goto(address);
    return page;
  }

  /// With the token, at a view: "#/curves?runs=1".
  async openView(cluster, view = '#/jobs', options = {}) {
    const page = await this.open(`${cluster.url}/#token=${cluster.token}`, options);
    await page.locator('nav').waitFor();
    await show(page, view);
    return page;
  }

  async close() {
    await this.chromium.close();
  }
}

export async function show(page, view) {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, view);
}

/// Until nothing moves in the page any more: two pictures in a row are the same. A view that is alive
/// may never stand; then after some pictures it is as good as it gets.
export async function stands(page, most = 12) {
  let last = null;
  for (let i = 0; i < most; ++i) {
    const picture = await page.screenshot();
    if (last?.equals(picture)) return;
    last = picture;
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  }
}

/// Moves the pointer over an element, to where `place` says for its box.
export async function pointAt(page, element, place) {
  const box = await element.boundingBox();
  if (!box) return;
  const [x, y] = place(box);
  await page.mouse.move(box.x + x - 1, box.y + y);
  await page.mouse.move(box.x + x, box.y + y);
}

/// How many points the page has of a curve.
export async function pointsOf(page, run) {
  const shown = page.locator(`[data-run="${run}"] [data-points]`);
  return (await shown.count()) === 0 ? 0 : Number(await shown.first().getAttribute('data-points'));
}

export async function download(page, button) {
  const coming = page.waitForEvent('download');
  await button.click();
  return fs.readFileSync(await (await coming).path());
}

/// What the page shows, as it exports it: [x, value] of each curve.
export async function shownPoints(page) {
  const text = (await download(page, page.getByRole('button', { name: 'CSV' }))).toString();
  const curves = new Map();
  for (const line of text.trim().split('\n').slice(1)) {
    const match = /^("(?:[^"]|"")*"|[^,]*),([^,]*),([^,]*)$/.exec(line);
    const name = match[1].replace(/^"|"$/g, '').replaceAll('""', '"');
    if (!curves.has(name)) curves.set(name, []);
    curves.get(name).push([Number(match[2]), Number(match[3])]);
  }
  return curves;
}

/// The columns of a file of a run.
export async function storedPoints(cluster, id, x = 'tick', file = 'objective.csv') {
  const lines = (await cluster.text(`/v1/jobs/${id}/files/${file}`)).trim().split('\n');
  const names = lines[0].split(',');
  const [ix, iy] = [names.indexOf(x), names.indexOf('value')];
  return lines.slice(1).map((line) => line.split(',')).map((cells) => [Number(cells[ix]), Number(cells[iy])]);
}

export async function keepShot(page, name) {
  fs.mkdirSync(shotsFolder, { recursive: true });
  await page.screenshot({ path: path.join(shotsFolder, `${name}.png`) });
}
