import { beforeEach } from 'vitest';

// Tests of files of the contract that otherwise run on PostgreSQL: what each is about is not there on a server, or works
// otherwise by decision. By a part of the name of the test.
const FILE = 'it is about the bytes, the folder or the path of a file';
const SQLITE = 'it works with SQLite’s own locks, files or functions';
const NOT_THERE: readonly (readonly [test: string, reason: string])[] = [
  ['a relative database path starts at the workspace', FILE],
  ['the client’s project folder is the workspace', FILE],
  ['the nearest folder with .git or .colibri', FILE],
  ['started in / the server keeps to the user’s data folder', FILE],
  ['.colibri keeps itself out of git', FILE],
  ['a path that leads nowhere but to itself', FILE],
  ['each folder is 0700 and every file 0600', FILE],
  ['a database that others could read is closed to them', FILE],
  ['in another folder of the same user the log goes on with its key', FILE],
  ['a damaged file is a finding, wherever the damage is', FILE],
  ['a disk that fills up in the middle of a batch', FILE],
  ['is no domain error in pattern A from every tool', 'it puts bytes in the place of a file'],
  ['one put beside the database is a finding', FILE],
  ['a database that is missing is not one that cannot be reached', FILE],
  [
    'backup makes a verified copy while servers write',
    'a server is backed up with pg_dump; the guide shows how',
  ],
  [
    'a backup made before a clean stop is sound where it lies',
    'a server is backed up with pg_dump; the guide shows how',
  ],
  ['init says what it means that the database was removed', FILE],
  [
    'a log made anew from its first row, with another key',
    'it removes a file; tests/postgres/remade.test.ts and tamper.test.ts make a database anew',
  ],
  ['a process that is stopped while it works', 'tests/postgres/load.test.ts stops one that holds the lock'],
  ['that stays locked degrades the server', SQLITE],
  ['tasks are found on both sides of the end of the index', SQLITE],
  ['an index that ends long before the tasks', SQLITE],
  ['a row planted behind the index', SQLITE],
  ['a planted task with a number that nobody can count', SQLITE],
  ['an older log that is brought back under a running server', SQLITE],
  ['a server that waits for a locked file', SQLITE],
  ['verify of a locked file says', SQLITE],
  [
    'a row that lost its time, its position or its form',
    'it edits the bytes of a file; tests/postgres/tamper.test.ts changes rows on a server',
  ],
  ['the whole folder of the log is gone', 'a machine without a key joins a team’s log, on the record'],
  [
    'on another machine the log is refused until its folder comes along',
    'another machine joins a team’s log',
  ],
  ['a deleted database is not quietly begun anew', 'tests/postgres/remade.test.ts drops one on a server'],
  [
    'the head and the name of the log are removed under a running',
    'the row of the name is the lock: without it no call is taken',
  ],
  [
    'a holder in a container that cannot be seen',
    'a user namespace of its own cannot reach the socket; tests/postgres/machines.test.ts',
  ],
];

beforeEach(({ task, skip }) => {
  const [, reason] = NOT_THERE.find(([part]) => task.name.includes(part)) ?? [];
  if (reason !== undefined) skip(reason);
});
