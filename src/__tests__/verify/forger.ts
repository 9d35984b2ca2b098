import type { Database } from '../../../tests/driver/database.ts';
import { anyRowText } from '../../../tests/driver/row-text.ts';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import { saltedDigest, sha256Hex } from '../../integrity/digest.ts';
import { Frontier } from '../../integrity/tree.ts';
import { type AuditRow, chainHash, GENESIS, UNSAID } from '../../log/row.ts';
import { parseId, rowHash, STATE_TABLES, type StateTable } from '../../log/tables.ts';
import type { Finding } from '../../verify/finding.ts';
import { tampered } from './tamper.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer I)[] ? Writable<I>[] : T[K] };
type Row = Writable<AuditRow> & Record<string, unknown>;

// biome-ignore lint/suspicious/noExplicitAny: a forger writes whatever it likes.
type Facts = Record<string, any>;

/** A whole log in memory, for whoever owns the key and wants to change history. */
export interface ForgedLog {
  readonly rows: Row[];
  /** Bodies by position. */
  readonly bodies: Map<number, { salt: string; body: Facts }>;
  /** Rows of state by table and id. */
  readonly state: Record<string, Map<number, Facts>>;
  row(position: number): Row;
  body(position: number): Facts;
}

/** Changes a log and recomputes every digest and link behind the change, as the owner of the key could. */
export async function forged(path: string, change: (log: ForgedLog) => void): Promise<Finding[]> {
  return await tampered(path, (db) => {
    const log = readLog(db);
    change(log);
    writeLog(db, log);
  });
}

function readLog(db: Database): ForgedLog {
  const all = <T>(sql: string) => db.prepare(sql).all() as T[];
  const rows = all<{ text: string }>('SELECT text FROM actions ORDER BY position').map(
    ({ text }) => ({ ...structuredClone(UNSAID), ...JSON.parse(text) }) as Row,
  );
  const bodies = new Map(
    all<{ position: number; salt: string; body: string }>('SELECT * FROM action_payloads').map(
      ({ position, salt, body }) => [position, { salt, body: JSON.parse(body) }],
    ),
  );
  const state: ForgedLog['state'] = {};
  for (const { name } of STATE_TABLES)
    state[name] = new Map(all<{ id: number }>(`SELECT * FROM ${name}`).map((row) => [row.id, row]));
  const row = (position: number) => rows.find((one) => one.position === position)!;
  return { rows, bodies, state, row, body: (position) => bodies.get(position)!.body };
}

const columnsOf = (table: StateTable) => [...table.facts, ...table.derived];

function writeLog(db: Database, { rows, bodies, state }: ForgedLog): void {
  db.exec('DELETE FROM actions; DELETE FROM action_payloads; DELETE FROM log_blocks');
  for (const table of STATE_TABLES) {
    for (const [id, row] of state[table.name]!)
      db.prepare(
        `UPDATE ${table.name} SET ${columnsOf(table)
          .map((column) => `${column} = ?`)
          .join(', ')} WHERE id = ?`,
      ).run(...columnsOf(table).map((column) => row[column]), id);
  }
  let link = GENESIS;
  let block = new Frontier();
  for (const row of rows) {
    const kept = bodies.get(row.position);
    if (kept !== undefined) {
      const body = canonicalJson(kept.body);
      const digest = /^[0-9a-f]{32}$/.test(kept.salt) ? saltedDigest(kept.salt, body) : null;
      if (digest !== null) {
        if (row.stage === 'enter') row.args_hash = digest;
        else row.result_hash = digest;
      }
      db.prepare('INSERT INTO action_payloads VALUES (?, ?, ?)').run(row.position, kept.salt, body);
    }
    for (const effect of row.effects) {
      const table = STATE_TABLES.find(({ name }) => name === effect.table);
      const now = table === undefined ? undefined : state[table.name]!.get(parseId(table, effect.id) ?? 0);
      if (table !== undefined && now?.position === row.position) effect.hash = rowHash(table, now);
    }
    const text = anyRowText(row);
    const content_hash = sha256Hex(text);
    const chain_hash = chainHash(content_hash, link);
    db.prepare('INSERT INTO actions (position, text, content, chain) VALUES (?, ?, ?, ?)').run(
      row.position,
      text,
      Buffer.from(content_hash, 'hex'),
      Buffer.from(chain_hash, 'hex'),
    );
    link = chain_hash;
    block.add(content_hash);
    if (block.size === 256) {
      db.prepare('INSERT INTO log_blocks VALUES (?, ?)').run(row.position / 256 - 1, block.root());
      block = new Frontier();
    }
  }
}
