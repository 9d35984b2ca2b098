// npm run release:check [-- STEP ...]: everything that must hold before a version is tagged. Runs every step, or those named, says
// what fails, and exits 1 if anything does.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (path) => readFileSync(`${root}${path}`, 'utf8');
const { version } = JSON.parse(read('package.json'));
const DAYS_MAX = 14;

const STEPS = {
  tree: {
    what: 'the tree is clean',
    check: () => run('git', ['status', '--porcelain']).stdout.trim(),
  },
  changelog: {
    what: `CHANGELOG.md has ${version} with a date, and nothing that is not released`,
    check() {
      const headings = [...read('CHANGELOG.md').matchAll(/^## \[(.+?)\](?: - (\S+))?$/gm)];
      const [, newest, date = ''] = headings[0] ?? [];
      if (newest !== version) return `its newest section is ${newest}`;
      return /^\d{4}-\d\d-\d\d$/.test(date) ? '' : `${version} has no date`;
    },
  },
  check: { what: 'lint, types and unused code', check: () => failureOf('npm', ['run', '--silent', 'check']) },
  bench: {
    what: `every figure of the bench is from a whole run, at most ${DAYS_MAX} days old, and in the document`,
    check() {
      const sections = Object.entries(JSON.parse(read('bench/results.json')));
      const oldest = Date.now() - DAYS_MAX * 86_400_000;
      const stale = sections.filter(([, { at, quick }]) => quick || Date.parse(at) < oldest);
      if (stale.length > 0) return `measure again: ${stale.map(([name]) => name).join(', ')}`;
      return failureOf(process.execPath, ['bench/document.mjs', '--check']);
    },
  },
  test: { what: 'the whole suite', check: () => failureOf('npm', ['test']) },
  coverage: {
    what: 'every line of server.ts is reached',
    check: () => failureOf('npm', ['run', 'coverage']),
  },
  ship: {
    what: 'the tarball installs into an empty folder with an empty home; demo, clients and verify run from it',
    check: () => failureOf('npm', ['run', 'test:ship']),
  },
  size: {
    what: 'sizes',
    check() {
      const { stdout } = run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=error']);
      const [{ size, unpackedSize, files }] = JSON.parse(stdout);
      const kB = (bytes) => `${Math.round(bytes / 1000)} kB`;
      console.log(`  ${kB(size)} packed, ${kB(unpackedSize)} unpacked, ${files.length} files`);
      for (const { path, size: bytes } of files) console.log(`  ${kB(bytes).padStart(8)}  ${path}`);
      return '';
    },
  },
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !Object.hasOwn(STEPS, name));
if (unknown.length > 0)
  throw new Error(`no step "${unknown[0]}"; there are ${Object.keys(STEPS).join(', ')}`);
const failed = Object.entries(STEPS).filter(([name, { what, check }]) => {
  if (asked.length > 0 && !asked.includes(name)) return false;
  console.log(`… ${name}: ${what}`);
  const failure = check();
  console.log(failure === '' ? `✓ ${name}` : `✗ ${name}: ${failure}`);
  return failure !== '';
});
const left = asked.length === 0 ? [] : Object.keys(STEPS).filter((name) => !asked.includes(name));
if (failed.length > 0) console.log(`Not yet: ${failed.map(([name]) => name).join(', ')}.`);
else if (left.length > 0) console.log(`These steps hold. Not checked: ${left.join(', ')}.`);
else console.log(`${version} can be tagged.`);
process.exitCode = failed.length === 0 ? 0 : 1;

function run(program, args, options = {}) {
  const shell = process.platform === 'win32';
  return spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 1e9, shell, ...options });
}

/** What a program said last, where it failed; nothing where it did not. */
function failureOf(program, args) {
  const { status, stdout, stderr } = run(program, args);
  return status === 0
    ? ''
    : `${program} ${args.join(' ')} ended with ${status}\n${`${stdout}${stderr}`.slice(-4_000)}`;
}
