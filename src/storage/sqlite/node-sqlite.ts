import { pathToFileURL } from 'node:url';
import type { SqlValue } from '../engine.ts';
import { resultOfNumber, type SqliteConnection, type SqliteDriver } from './driver.ts';

/** The part of `node:sqlite` that is used. Written out because the types of Node 20 do not have it. */
interface NodeSqlite {
  readonly DatabaseSync: new (
    path: string | URL,
    options: { readOnly: boolean; timeout?: number },
  ) => NodeDatabase;
}

interface NodeDatabase {
  exec(sql: string): void;
  prepare(sql: string): {
    get(...params: readonly SqlValue[]): object | undefined;
    all(...params: readonly SqlValue[]): object[];
    run(...params: readonly SqlValue[]): { changes: number | bigint };
  };
  close(): void;
}

/** SQLite as Node brings it: no native build, so nothing to compile and nothing to block. */
export function nodeSqliteDriver(): SqliteDriver {
  const library = process.getBuiltinModule?.('node:sqlite' as 'node:fs') as unknown as NodeSqlite | undefined;
  if (library === undefined) throw new Error(`Node ${process.versions.node} has no node:sqlite`);
  return {
    name: 'node:sqlite',
    sqliteVersion: process.versions.sqlite ?? versionOf(library),
    open: (path, { readOnly }) => connect(new library.DatabaseSync(path, { readOnly, timeout: 0 })),
    openUnchanging: (path) =>
      connect(
        new library.DatabaseSync(new URL(`${pathToFileURL(path).href}?immutable=1`), { readOnly: true }),
      ),
    resultCode(error) {
      if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number')
        return undefined;
      return resultOfNumber(error.errcode);
    },
  };
}

function connect(db: NodeDatabase): SqliteConnection {
  return {
    exec: (sql) => db.exec(sql),
    prepare(sql) {
      const statement = db.prepare(sql);
      return {
        get: (...params) => statement.get(...params),
        all: (...params) => statement.all(...params),
        run: (...params) => ({ changes: Number(statement.run(...params).changes) }),
      };
    },
    close: () => db.close(),
  };
}

function versionOf(library: NodeSqlite): string {
  const db = new library.DatabaseSync(':memory:', { readOnly: false });
  const row = db.prepare('SELECT sqlite_version() AS version').get() as { version: string };
  db.close();
  return row.version;
}
