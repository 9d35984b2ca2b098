import { beforeEach } from 'vitest';

// Tests of files of the contract that otherwise run on PostgreSQL: what each is about is not there on a server, or works
// otherwise by decision. By a part of the name of the test.
const FILE = 'it is about the bytes, the folder or the path of a file';
const SQLITE = 'it works with SQLite’s own locks, files or functions';
const NOT_THERE: readonly (readonly [test: string, reason: string])[] = [
  ['a relative database path starts at the workspace', FILE],
  ['an invalid value is exit 1 and named', FILE],
  ['a name that only looks like a setting', FILE],
  ['the client’s project folder is the workspace', FILE],
  ['the nearest folder with .git or .colibri', FILE],
  ['started in / the server keeps to the user’s data folder', FILE],
  ['.colibri keeps itself out of git', FILE],
  ['each folder is 0700 and every file 0600', FILE],
  ['a database that others could read is closed to them', FILE],
  ['TEST serves every tool and leaves nothing on the disk', FILE],
  ['MINIMAL lists ping and health, opens no file', FILE],
  ['no key lies beside the database', FILE],
  ['a sealed session and a clean stop each leave a checkpoint for good', FILE],
  ['in another folder of the same user the log goes on with its key', FILE],
  ['changes no byte of the database, its key folder', FILE],
  ['a damaged file is a finding, wherever the damage is', FILE],
  ['a disk that fills up in the middle of a batch', FILE],
  ['is no domain error in pattern A from every tool', FILE],
  ['one put beside the database is a finding', FILE],
  ['a database that is missing is not one that cannot be reached', FILE],
  [
    'backup makes a verified copy while servers write',
    'a server is backed up with pg_dump; the guide shows how',
  ],
  ['every command that builds on a log notices', 'it makes a backup of a file, too'],
  ['init says what it means that the database was removed', FILE],
  ['eight processes that start at once on', FILE],
  ['the first breath of the first start', FILE],
  ['a log made anew from its first row, with another key', FILE],
  ['an anchor is named with how to check it', FILE],
  ['a token made anew for a rewritten bundle', FILE],
  ['the key that came along is said to have come along', FILE],
  ['split view: of two logs shown under one name', FILE],
  ['of two copies with one key, the one that signs second', FILE],
  ['a record put back as it once was', 'it reads a copy of a file'],
  ['a reader that takes its time does not hold up a writer', SQLITE],
  ['a process that is stopped while it works', 'tests/postgres/load.test.ts stops one that holds the lock'],
  ['that stays locked degrades the server', SQLITE],
  ['a server that waits for a locked file', SQLITE],
  ['verify of a locked file says', SQLITE],
  ['a call that was begun and killed is in the log', SQLITE],
  ['a call of a process that still lives is left to it', SQLITE],
  ['a row that lost its time, its position or its form', SQLITE],
  ['the whole folder of the log is gone', 'a machine without a key joins a team’s log, on the record'],
  [
    'on another machine the log is refused until its folder comes along',
    'another machine joins a team’s log',
  ],
  ['a deleted database is not quietly begun anew', FILE],
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
