import { statfsSync } from 'node:fs';
import { defineConfig } from 'vitest/config';

const MEMORY = '/dev/shm';
const MEMORY_BYTES_MIN = 4 * 2 ** 30;

// Contract tests start real server processes and wait for them more than they work: four keep two cores busy.
export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
    // A battery of its own: npm run test:postgres. Its load, with small numbers, always runs.
    exclude: ['tests/postgres/!(load).test.ts'],
    globalSetup: ['tests/driver/set-up.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 4,
    env: scratch(),
    // The modules of the product are loaded once per worker, not once per file: a twentieth of the time of the suite.
    isolate: false,
    // `npm run coverage`. What ends the process, and what starts as a program of its own, counts too: both are reached in-process.
    coverage: {
      include: ['src/server.ts'],
      reporter: ['text'],
      thresholds: { statements: 100, functions: 100, lines: 100, branches: 90 },
    },
  },
});

/**
 * Where tests make their folders: in memory where there is enough of it, since a disk takes milliseconds for each sync and
 * there are several in a call. What is called, and in which order, is the same. The long tier runs on the disk.
 */
function scratch(): Record<string, string> {
  if (process.env.COLIBRI_TEST_FULL === '1' || process.env.TMPDIR !== undefined) return {};
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize < MEMORY_BYTES_MIN ? {} : { TMPDIR: MEMORY };
  } catch {
    return {};
  }
}
