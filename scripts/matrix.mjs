// The whole matrix: every forgery over every source, the page in Chromium, and the same logs again on Node 20, 22 and 24.
// usage: npm run test:matrix [-- --figures FILE] [-- -t PATTERN]
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({ options: { figures: { type: 'string' }, t: { type: 'string', short: 't' } } });
const kept = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'colibri-matrix-'));
const figures = values.figures === undefined ? {} : { COLIBRI_TEST_FIGURES: values.figures };
const env = { ...process.env, COLIBRI_TEST_FULL: '1', COLIBRI_MATRIX_KEEP: kept, ...figures };

/** Those that the package `node` of the registry provides; 20 strips no types, and has judged them already if it ran the tests. */
const OTHERS = [22, 24];

try {
  const chosen = values.t === undefined ? [] : ['-t', values.t];
  const passed = [
    run('npx', ['vitest', 'run', 'tests/matrix/matrix.test.ts', ...chosen]),
    ...OTHERS.map((version) =>
      run('npx', ['--yes', '--package', `node@${version}`, 'node', 'tests/matrix/judge-again.ts', kept]),
    ),
  ];
  process.exitCode = passed.every(Boolean) ? 0 : 1;
} finally {
  rmSync(kept, { recursive: true, force: true });
}

function run(program, args) {
  return spawnSync(program, args, { cwd: root, stdio: 'inherit', env }).status === 0;
}
