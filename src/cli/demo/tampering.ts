import { sha256Hex } from '../../integrity/digest.ts';
import { chainHash, GENESIS } from '../../log/row.ts';
import { loadDriver } from '../../storage/sqlite/driver.ts';

/** One way to change the file that anybody who can write to it has. */
export interface Tampering {
  readonly title: string;
  /** The kind of finding that the verifier must report. */
  readonly finding: string;
  readonly sql: readonly string[];
  /** Applied to the text of every audit row; all hashes are then recomputed. */
  readonly rewrite?: (text: string) => string;
}

export const TAMPERINGS: readonly Tampering[] = [
  {
    title: 'a thought is edited afterwards',
    finding: 'altered',
    sql: [
      "UPDATE texts SET text = 'All tests passed.' WHERE digest = (SELECT content FROM thoughts WHERE id = 1)",
    ],
  },
  {
    title: 'one audit row is deleted',
    finding: 'missing',
    sql: ['DELETE FROM actions WHERE position = 7', 'DELETE FROM action_payloads WHERE position = 7'],
  },
  {
    title: 'the newest calls are cut off',
    finding: 'cut-tail',
    sql: [
      'DELETE FROM actions WHERE position > (SELECT max(position) - 4 FROM actions)',
      'DELETE FROM action_payloads WHERE position > (SELECT max(position) FROM actions)',
    ],
  },
  {
    title: 'history is rewritten and every hash recomputed',
    finding: 'rewritten',
    sql: [],
    rewrite: (text) => text.replaceAll('"actor":"demo-agent"', '"actor":"someone-else"'),
  },
];

/** Tampers with a copy of the database. */
export async function tamper(path: string, { sql, rewrite }: Tampering): Promise<void> {
  const db = (await loadDriver()).open(path, { readOnly: false });
  try {
    // Whoever can write to the file can drop its triggers and put them back: they are no proof.
    const triggers = rowsOf(db, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'");
    for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
    for (const statement of sql) db.exec(statement);
    if (rewrite !== undefined) rewriteHistory(db, rewrite);
    for (const trigger of triggers) db.exec(String(trigger.sql));
  } finally {
    db.close();
  }
}

interface Database {
  prepare(sql: string): { all(): object[]; run(...params: (string | number)[]): unknown };
}

/** Every later hash is recomputed, so the hash chain holds again. Only a signed head shows the difference. */
function rewriteHistory(db: Database, rewrite: (text: string) => string): void {
  const update = db.prepare(
    'UPDATE actions SET text = ?, content_hash = ?, chain_hash = ? WHERE position = ?',
  );
  let link = GENESIS;
  for (const { position, text } of rowsOf(db, 'SELECT position, text FROM actions ORDER BY position')) {
    const changed = rewrite(String(text));
    const content = sha256Hex(changed);
    link = chainHash(content, link);
    update.run(changed, content, link, Number(position));
  }
}

function rowsOf(db: Database, sql: string): Record<string, unknown>[] {
  return db
    .prepare(sql)
    .all()
    .map((row) => ({ ...row }));
}
