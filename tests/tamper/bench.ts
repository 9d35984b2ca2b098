import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Finding } from '../../src/verify/finding.ts';
import { openDatabase } from '../driver/database.ts';
import { Playground } from '../driver/playground.ts';
import { leaveBoard } from './board.ts';
import { rowsOf, type Tampering } from './changes.ts';
import { type Cells, Copies, openUnguarded } from './copies.ts';
import { DIGEST_SHOWN, type Table, tablesIn } from './schema.ts';

/** One board, closed, and what can be read from it. */
export class Bench {
  readonly copies: Copies;
  readonly tables: readonly Table[];
  readonly #rows: ReadonlyMap<string, Cells[]>;
  readonly #colibri: Playground;

  static async open(): Promise<Bench> {
    const colibri = new Playground();
    try {
      return new Bench(colibri, await leaveBoard(colibri));
    } catch (error) {
      await colibri.dispose();
      throw error;
    }
  }

  private constructor(colibri: Playground, path: string) {
    this.#colibri = colibri;
    // Hundreds of files that live for milliseconds: where there is a folder in memory, there.
    const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
    const folder = mkdtempSync(join(parent, 'colibri-test-'));
    colibri.onDispose(() => rmSync(folder, { recursive: true, force: true }));
    this.copies = new Copies(readFileSync(path), folder);
    const schema = openDatabase(path, { readOnly: true });
    this.tables = tablesIn(schema);
    schema.close();
    const db = openUnguarded(path);
    this.#rows = new Map(this.tables.map((table) => [table.name, rowsOf(db, table)]));
    db.close();
  }

  rows(table: Table): Cells[] {
    return this.#rows.get(table.name) ?? [];
  }

  /**
   * Findings after a change. SQLite computes generated columns at each change and refuses what they cannot be made of, and
   * a text in the place of bytes; that is no protection, so such a table is loosened first.
   */
  async tamper(table: Table, { change }: Tampering): Promise<Finding[]> {
    const isChecked = table.columns.some(({ isGenerated, type }) => isGenerated || type === 'BLOB');
    return await (isChecked ? this.copies.afterLifting(table.name, change) : this.copies.after(change));
  }

  async close(): Promise<void> {
    expect(await this.#colibri.dispose()).toEqual([]);
  }
}

/** Tries each tampering on a copy of its own and returns those that nobody would hear of. */
export async function unnoticed(
  table: Table,
  tamperings: readonly Tampering[],
  tried: (tampering: Tampering) => Promise<Finding[]>,
): Promise<string[]> {
  const missed: string[] = [];
  for (const tampering of tamperings) {
    try {
      const findings = await tried(tampering);
      const problem = problemWith(table, tampering, findings);
      if (problem !== undefined) missed.push(`${tampering.what}: ${problem}`);
    } catch (error) {
      missed.push(`${tampering.what}: ${error}`);
    }
  }
  return missed;
}

function problemWith(table: Table, { records }: Tampering, findings: readonly Finding[]): string | undefined {
  if (findings.length === 0) return 'nothing is found';
  // Where a head is gone, nothing says whose it was: the rows it covered are named.
  if (table.name === 'log_heads' && findings.some(({ kind }) => kind === 'foreign')) return undefined;
  // Where a kept checkpoint is gone, the row that filed it is named.
  if (findings.some(({ kind, table: of }) => of === 'checkpoints' && of === table.name && kind === 'missing'))
    return undefined;
  // People call a row of actions an audit row; the tables behind the word index go by the name of the index.
  const names = [
    table.name,
    table.name.replace(/^(task_words)_.*/, '$1'),
    ...(table.name === 'actions' ? ['audit row'] : []),
  ];
  const ofTable = findings.filter((finding) =>
    names.some((name) => finding.table === name || finding.message.includes(name)),
  );
  if (ofTable.length === 0) return `no finding names the table: ${findings[0]?.message}`;
  if (records.every((record) => record === undefined)) return undefined;
  // A text that no call named has no other name than its digest; one that a call named goes by the call.
  const ofRecord = ofTable.some(
    ({ record, expected }) => records.includes(record) || records.includes(expected?.slice(0, DIGEST_SHOWN)),
  );
  return ofRecord ? undefined : `no finding names the record: ${ofTable[0]?.record} ${ofTable[0]?.message}`;
}
