import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openSqlite } from '../../src/storage/sqlite/engine.ts';
import type { Finding } from '../../src/verify/finding.ts';
import { DatabaseSource } from '../../src/verify/sources/database.ts';
import { verify } from '../../src/verify/verify.ts';
import { type Database, openDatabase } from '../driver/database.ts';

export type Cells = Readonly<Record<string, bigint | number | string | Uint8Array | null>>;
export type Change = (db: Database) => void;

/** What the verifier finds, on a connection that may only read, with nothing known but what is in the file. */
export async function findingsAt(path: string): Promise<Finding[]> {
  const storage = await openSqlite({ path, readOnly: true });
  try {
    const findings: Finding[] = [];
    const options = {
      report: (finding: Finding) => void findings.push(finding),
      now: Date.now(),
      keys: { trusted: [] },
    };
    await storage.read((tx) => verify(new DatabaseSource(storage, tx), options));
    return findings;
  } finally {
    await storage.close();
  }
}

/** Copies of one file, each changed once by another program. The file itself stays as it was. */
export class Copies {
  readonly bytes: Buffer;
  readonly #folder: string;
  #made = 0;

  constructor(bytes: Buffer, folder: string) {
    this.bytes = bytes;
    this.#folder = folder;
  }

  /** Findings in a copy that was changed with every trigger out of the way and put back as it was. */
  async after(change: Change): Promise<Finding[]> {
    return await this.#inCopy(this.bytes, (path) => {
      withoutTriggers(path, change);
      return findingsAt(path);
    });
  }

  /** Findings in a copy whose tables took any type and NULL for a moment. Their definitions are put back too. */
  async afterLifting(table: string, change: Change): Promise<Finding[]> {
    return await this.#inCopy(this.bytes, (path) => {
      const sql = replaceDefinition(path, table, (text) =>
        text
          .replace(') STRICT, WITHOUT', ') WITHOUT')
          .replace(/\) STRICT$/, ')')
          .replaceAll(' NOT NULL', ''),
      );
      withoutTriggers(path, change);
      replaceDefinition(path, table, () => sql);
      return findingsAt(path);
    });
  }

  /** Findings in a copy after a script that leaves the schema as it likes. */
  async afterScript(sql: string): Promise<Finding[]> {
    return await this.#inCopy(this.bytes, (path) => {
      const db = openUnguarded(path);
      try {
        db.exec(sql);
      } finally {
        db.close();
      }
      return findingsAt(path);
    });
  }

  /** What somebody sees in a copy of other bytes. */
  async ofBytes<T>(bytes: Buffer, look: (path: string) => T | Promise<T>): Promise<T> {
    return await this.#inCopy(bytes, look);
  }

  async #inCopy<T>(bytes: Buffer, work: (path: string) => T | Promise<T>): Promise<T> {
    this.#made += 1;
    const path = join(this.#folder, `copy-${this.#made}.db`);
    writeFileSync(path, bytes);
    try {
      return await work(path);
    } finally {
      for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
    }
  }
}

function withoutTriggers(path: string, change: Change): void {
  const db = openUnguarded(path);
  try {
    const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
      name: string;
      sql: string;
    }[];
    db.exec('BEGIN');
    for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
    const before = changesOf(db);
    change(db);
    if (changesOf(db) === before) throw new Error('this changes nothing');
    for (const { sql } of triggers) db.exec(sql);
    db.exec('COMMIT');
  } finally {
    db.close();
  }
}

/** Nothing between the program and the file; durability is not the matter here. */
export function openUnguarded(path: string): Database {
  const db = openDatabase(path, { readBigInts: true });
  db.pragma('synchronous = OFF');
  db.pragma('foreign_keys = OFF');
  db.pragma('ignore_check_constraints = ON');
  return db;
}

function changesOf(db: Database): unknown {
  return db.prepare('SELECT total_changes()').pluck().get();
}

/** Edits the text of a definition in place and returns what stood there. */
function replaceDefinition(path: string, table: string, edit: (sql: string) => string): string {
  const db = openUnguarded(path);
  try {
    const sql = db.prepare('SELECT sql FROM sqlite_schema WHERE name = ?').pluck().get(table) as string;
    db.pragma('writable_schema = ON');
    db.prepare('UPDATE sqlite_schema SET sql = ? WHERE name = ?').run(edit(sql), table);
    return sql;
  } finally {
    db.close();
  }
}
