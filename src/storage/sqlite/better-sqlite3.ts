import { readFileSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import type { SqliteConnection, SqliteDriver, SqliteResult } from './driver.ts';

const BY_NAME: readonly (readonly [prefix: string, result: SqliteResult])[] = [
  ['SQLITE_BUSY', 'busy'],
  ['SQLITE_LOCKED', 'busy'],
  ['SQLITE_FULL', 'full'],
  ['SQLITE_IOERR', 'io'],
  ['SQLITE_CORRUPT', 'corrupt'],
  ['SQLITE_NOTADB', 'not-a-database'],
  ['SQLITE_CANTOPEN', 'cannot-open'],
  ['SQLITE_READONLY', 'read-only'],
];

/** SQLite for Node 20, from a native module. Version 13 of it crashes there. */
export async function betterSqlite3Driver(): Promise<SqliteDriver> {
  const { default: Sqlite } = await import('better-sqlite3');
  const probe = new Sqlite(':memory:');
  const { version } = probe.prepare('SELECT sqlite_version() AS version').get() as { version: string };
  probe.close();
  return {
    name: 'better-sqlite3',
    sqliteVersion: version,
    open: (path, { readOnly }) => connect(new Sqlite(path, { readonly: readOnly, timeout: 0 })),
    openUnchanging: (path) => connect(new Sqlite(withoutLog(readFileSync(path)))),
    resultCode(error) {
      if (!(error instanceof Sqlite.SqliteError)) return undefined;
      return BY_NAME.find(([prefix]) => error.code.startsWith(prefix))?.[1] ?? 'other';
    },
  };
}

/** The bytes of a database that says it has no write-ahead log: in memory it can have none. */
function withoutLog(bytes: Buffer): Buffer {
  bytes[18] = 1;
  bytes[19] = 1;
  return bytes;
}

function connect(db: Database): SqliteConnection {
  return {
    exec: (sql) => {
      db.exec(sql);
    },
    prepare(sql) {
      const statement = db.prepare(sql);
      return {
        get: (...params) => statement.get(...params) as object | undefined,
        all: (...params) => statement.all(...params) as object[],
        run: (...params) => statement.run(...params),
      };
    },
    close: () => {
      db.close();
    },
  };
}
