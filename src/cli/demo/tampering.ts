import { sha256Hex } from '../../integrity/digest.ts';
import { loadDriver } from '../../storage/sqlite/driver.ts';

/** One way to cheat with the file, as somebody who holds it could. */
export interface Tampering {
  readonly title: string;
  /** What the verifier must call it. */
  readonly finding: string;
  /** Statements, or statements made from what is there. */
  readonly sql: readonly string[];
  readonly rewrite?: (text: string) => string;
}

/** Whoever holds the file can drop a trigger; that is why triggers are no proof. */
const UNLOCK = [
  'DROP TRIGGER actions_no_update',
  'DROP TRIGGER actions_no_delete',
  'DROP TRIGGER thoughts_no_update',
];
const LOCK = [
  "CREATE TRIGGER actions_no_update BEFORE UPDATE ON actions BEGIN SELECT RAISE(ABORT, 'actions is append-only'); END",
  "CREATE TRIGGER actions_no_delete BEFORE DELETE ON actions BEGIN SELECT RAISE(ABORT, 'actions is append-only'); END",
  "CREATE TRIGGER thoughts_no_update BEFORE UPDATE ON thoughts BEGIN SELECT RAISE(ABORT, 'thoughts is append-only'); END",
];

export const TAMPERINGS: readonly Tampering[] = [
  {
    title: 'a thought is edited afterwards',
    finding: 'altered',
    sql: ["UPDATE thoughts SET content = 'All tests passed.' WHERE id = 1"],
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

/** Cheats with a copy of the database. */
export async function tamper(path: string, { sql, rewrite }: Tampering): Promise<void> {
  const db = (await loadDriver()).open(path, { readOnly: false });
  try {
    for (const statement of [...UNLOCK, ...sql]) db.exec(statement);
    if (rewrite !== undefined) rewriteHistory(db, rewrite);
    for (const statement of LOCK) db.exec(statement);
  } finally {
    db.close();
  }
}

/** What a plain hash chain cannot see: every later hash is recomputed, so the chain is whole again. */
function rewriteHistory(
  db: { prepare(sql: string): { all(): object[]; run(...params: (string | number)[]): unknown } },
  rewrite: (text: string) => string,
): void {
  const rows = db.prepare('SELECT position, text FROM actions ORDER BY position').all() as {
    position: number;
    text: string;
  }[];
  let link = '0'.repeat(64);
  for (const { position, text } of rows) {
    // The first row names the log; a clever forger leaves it as it is.
    const changed = position === 1 ? text : rewrite(text);
    const content = sha256Hex(changed);
    link = sha256Hex(content + link);
    db.prepare('UPDATE actions SET text = ?, content_hash = ?, chain_hash = ? WHERE position = ?').run(
      changed,
      content,
      link,
      position,
    );
  }
}
