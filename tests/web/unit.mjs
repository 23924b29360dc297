// The pure functions of the page: bundles unit/*.test.ts with what they test, and runs them in Node.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const { buildSync } = createRequire(path.join(here, '../../client/web/package.json'))('esbuild');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pipewright-web-unit-'));
try {
  const names = fs.readdirSync(path.join(here, 'unit')).filter((name) => name.endsWith('.test.ts'));
  buildSync({
    entryPoints: names.map((name) => path.join(here, 'unit', name)),
    alias: { page: path.join(here, '../../client/web/src') },
    nodePaths: [path.join(here, '../../client/web/node_modules')],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    outdir: folder,
    logLevel: 'warning',
  });
  const files = names.map((name) => path.join(folder, name.replace(/\.ts$/, '.mjs')));
  process.exitCode = spawnSync(process.execPath, ['--test', ...files], { stdio: 'inherit' }).status ?? 1;
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}
