import { defineConfig } from 'vitest/config';

// Contract tests start real server processes and wait for them more than they work: three keep two cores busy.
export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
    // A battery of its own: npm run test:postgres. Its load, with small numbers, always runs.
    exclude: ['tests/postgres/!(load).test.ts'],
    globalSetup: ['tests/driver/set-up.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 3,
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
