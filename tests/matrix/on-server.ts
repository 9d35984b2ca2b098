import { parseAddress } from '../../src/storage/address.ts';
import { openPostgres } from '../../src/storage/postgres/engine.ts';
import { indexedWords } from '../../src/storage/postgres/words.ts';
import { namedText } from '../../src/storage/text-ids.ts';
import { DatabaseSource } from '../../src/verify/sources/database.ts';
import { ShortReads } from '../../src/verify/sources/short-reads.ts';
import { type Database, openDatabase } from '../driver/database.ts';
import { type Cluster, NO_POSTGRES, rowsAt, runAt, startCluster } from '../driver/postgres.ts';
import { sqlLiteral } from '../driver/postgres-database.ts';
import { type Judgement, judge, judged, type Place, remembered } from './sources.ts';

/** A database on a server that takes over what files hold, one after the other, whatever that is. */
export class ServerDatabase {
  readonly #cluster: Cluster;
  readonly #url: string;
  readonly #columns = new Map<string, string[]>();

  private constructor(cluster: Cluster, url: string) {
    this.#cluster = cluster;
    this.#url = url;
    const sql = `SELECT table_name AS table, column_name AS name FROM information_schema.columns
      JOIN pg_class ON relname = table_name AND relkind = 'r' WHERE table_schema = 'colibri' AND is_generated = 'NEVER'`;
    for (const { table, name } of rowsAt(url, sql) as { table: string; name: string }[])
      this.#columns.set(table, [...(this.#columns.get(table) ?? []), name]);
  }

  /** Undefined where PostgreSQL is not installed. */
  static async open(): Promise<ServerDatabase | undefined> {
    if (NO_POSTGRES !== undefined) return undefined;
    const cluster = await startCluster();
    const url = await cluster.createDatabase();
    await (await openPostgres({ address: addressOf(url) })).close();
    return new ServerDatabase(cluster, url);
  }

  /** What is found in the rows of a file once they are on the server. */
  async judge(place: Place): Promise<Judgement> {
    judged.server += 1;
    this.#takeOver(place.dbPath);
    const storage = await openPostgres({ address: addressOf(this.#url), readOnly: true });
    try {
      return await ShortReads.run(storage, (tx) =>
        judge(new DatabaseSource(storage, tx), place, remembered(place)),
      );
    } finally {
      await storage.close();
    }
  }

  /** Every table as the file has it; only the words of tasks are those that belong to their texts. */
  #takeOver(path: string): void {
    const db = openDatabase(path, { readOnly: true });
    try {
      const statements = [...this.#columns].map(([table, names]) => {
        const rows = table === 'task_words' ? wordsOf(db) : rowsOf(db, table, names);
        const values = rows.map((row) => `(${row.map(sqlLiteral).join(', ')})`);
        const insert = `INSERT INTO ${table} (${names.join(', ')}) VALUES ${values.join(', ')};`;
        return values.length === 0 ? '' : insert;
      });
      const tables = [...this.#columns.keys()].join(', ');
      runAt(this.#url, `BEGIN; TRUNCATE ${tables}; ${statements.join('\n')} COMMIT`, true);
    } finally {
      db.close();
    }
  }

  stop(): Promise<void> {
    return this.#cluster.stop();
  }
}

type Value = Parameters<typeof sqlLiteral>[0];

function rowsOf(db: Database, table: string, names: readonly string[]): Value[][] {
  const rows = db.prepare(`SELECT ${names.join(', ')} FROM ${table}`).all() as Record<string, Value>[];
  return rows.map((row) => names.map((name) => row[name] ?? null));
}

function wordsOf(db: Database): Value[][] {
  const sql = `SELECT t.id, ${namedText('t.title_call', 't.title')} AS title,
    ${namedText('t.description_call', 't.description')} AS description FROM tasks t`;
  const tasks = db.prepare(sql).all() as { id: number; title: string; description: string }[];
  return tasks.map(({ id, title, description }) => [id, indexedWords([title, description])]);
}

function addressOf(url: string) {
  const address = parseAddress(url);
  if (address === undefined) throw new Error('not a URL');
  return address;
}
