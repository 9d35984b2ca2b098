import { defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

// The contract on PostgreSQL: the files whose tests leave the database to the server.
const FILES = [
  ...['postgres', 'surface', 'tasks', 'tasks-fields', 'tasks-list', 'tasks-next', 'tasks-dependencies'],
  ...['tasks-workflow', 'trail', 'sessions', 'records', 'odd-input', 'hostile'],
];

export default defineConfig({
  test: {
    ...base.test,
    include: ['tests/postgres/*.test.ts', ...FILES.map((name) => `tests/contract/${name}.test.ts`)],
    exclude: [],
    globalSetup: ['tests/driver/postgres-setup.ts'],
    testTimeout: 120_000,
  },
});
