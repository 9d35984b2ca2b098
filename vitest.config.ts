import { defineConfig } from 'vitest/config';

// Contract tests start real server processes: two workers keep a two-core machine honest.
export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'tests/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 2,
  },
});
