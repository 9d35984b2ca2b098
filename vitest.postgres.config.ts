import { defineConfig } from 'vitest/config';
import base from './vitest.config.ts';

// The contract on PostgreSQL: every file but these, which are about something that a database on a server does not have.
const ABOUT_FILES: Readonly<Record<string, string>> = {
  'boot.test.ts': 'what lies at the path of a file',
  'cold-start.test.ts': 'how long a start takes with a file; bench/ measures the other',
  'disk.test.ts': 'a disk that is full or fails below the file',
  'worktrees.test.ts': 'which file the worktrees of a repository share',
  'tamper-*.test.ts': 'copies of a file; tests/postgres/tamper.test.ts changes every column on a server',
  'tasks-tamper.test.ts': 'copies of a file; tests/postgres/tamper.test.ts changes every column on a server',
  'regression/H1-*.test.ts': 'a file in a repository of strangers',
  'regression/H2-*.test.ts':
    'the schema of a file; tests/postgres/tamper.test.ts plants triggers on a server',
  'regression/H3-*.test.ts': 'a file that is no longer at its path',
  'regression/H5-*.test.ts': 'links in the place of a file',
  'regression/H6-*.test.ts': 'pipes in the place of a file',
  'regression/H7-*.test.ts': 'a file that a stranger made',
  'regression/H8-*.test.ts': 'the rights of files',
  'regression/S2-*.test.ts': 'a machine without SQLite',
  'regression/V4-*.test.ts': 'a bit in a page of a file',
  'regression/V7-*.test.ts': 'copies of a file on several versions of Node',
  'regression/V11-*.test.ts': 'a link in the place of the folder of a file',
};

export default defineConfig({
  test: {
    ...base.test,
    // The week is also a person's day: the daily commands, a report and the live page.
    include: ['tests/postgres/*.test.ts', 'tests/contract/**/*.test.ts', 'tests/browser/week.test.ts'],
    exclude: Object.keys(ABOUT_FILES).map((name) => `tests/contract/${name}`),
    globalSetup: ['tests/driver/set-up.ts', 'tests/driver/postgres-setup.ts'],
    setupFiles: ['tests/driver/postgres-skips.ts'],
    // Most of them start many programs, on a machine that may be busy: whoever waits for ever is found late, but found.
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
