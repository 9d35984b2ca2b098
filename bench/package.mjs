import { spawnSync } from 'node:child_process';
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const OWN_MAX = 2;
const INSTALLED_MAX = 40;
const PACKAGES_MAX = 20;
const MB = 1_000_000;

/** What `npm install` puts on a disk: the package itself, and everything it brings. */
export function packageSize() {
  const folder = mkdtempSync(join(tmpdir(), 'colibri-package-'));
  try {
    npm(['pack', '--ignore-scripts', '--pack-destination', folder], root);
    const [tarball] = readdirSync(folder);
    writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
    npm(['install', '--no-audit', '--no-fund', '--loglevel=error', join(folder, tarball)], folder);
    const modules = join(folder, 'node_modules');
    const { packages } = JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8'));
    const own = bytesIn(join(modules, 'colibri-mcp')) / MB;
    const installed = bytesIn(modules) / MB;
    const download = lstatSync(join(folder, tarball)).size / MB;
    return {
      rows: [
        row(
          'package-own',
          'the package itself, unpacked',
          'MB',
          own,
          OWN_MAX,
          `${download.toFixed(2)} MB to download`,
        ),
        row('package-installed', 'everything npm installs with it', 'MB', installed, INSTALLED_MAX),
        row(
          'package-count',
          'packages that npm installs, itself included',
          'packages',
          Object.keys(packages).length,
          PACKAGES_MAX,
        ),
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function row(id, what, unit, value, limit, note) {
  return { id, what, unit, p50: value, value, bar: `at most ${limit} ${unit}`, limit, ...(note && { note }) };
}

function bytesIn(path) {
  const stat = lstatSync(path);
  if (!stat.isDirectory()) return stat.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesIn(join(path, name)), 0);
}

function npm(args, cwd) {
  const { status, stderr } = spawnSync('npm', args, {
    cwd,
    encoding: 'utf8',
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error(`npm ${args[0]} failed: ${stderr.slice(-500)}`);
}
