// Packages that are measured or measured with, installed from npm into a temporary folder: they are no dependency.
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { progress } from './progress.mjs';

const INSTALL_MS_MAX = 600_000;

/** The folder a package was installed into, if it was. */
export function installedFolder(name, version) {
  const folder = join(cache(), `${name.replaceAll('/', '+')}@${version}`);
  return existsSync(join(folder, 'complete')) ? folder : undefined;
}

/** Installs exactly that version, once; the folder stays for the next run. Throws what npm said where it cannot. */
export function install(name, version) {
  const found = installedFolder(name, version);
  if (found !== undefined) return found;
  const folder = join(cache(), `${name.replaceAll('/', '+')}@${version}`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  progress(`npm install ${name}@${version}`);
  const { status, stderr, error } = spawnSync(
    'npm',
    ['install', '--no-audit', '--no-fund', '--loglevel=error', '--save-exact', `${name}@${version}`],
    { cwd: folder, encoding: 'utf8', timeout: INSTALL_MS_MAX, shell: process.platform === 'win32' },
  );
  if (status !== 0) throw new Error(`npm install failed: ${complaint(stderr) || error?.message || status}`);
  const actual = JSON.parse(readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8')).version;
  if (actual !== version) throw new Error(`npm installed ${actual} instead of ${version}`);
  writeFileSync(join(folder, 'complete'), '');
  return folder;
}

/** A folder of this user alone: what lies in it is run. */
function cache() {
  const { uid, username } = userInfo();
  const folder = join(tmpdir(), `colibri-bench-npm-${uid === -1 ? username : uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (!found.isDirectory() || (uid !== -1 && found.uid !== uid))
    throw new Error(`${folder} belongs to somebody else`);
  return folder;
}

/** What npm complains about, without where it keeps its own log of it. */
const complaint = (text) =>
  text
    ?.split('\n')
    .filter((line) => line.startsWith('npm error') && !line.includes('complete log'))
    .map((line) => line.replace(/^npm error (notarget )?/, ''))
    .join(' ')
    .slice(0, 300);
