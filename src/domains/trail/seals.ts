import { isHash } from '../../integrity/digest.ts';
import { EMPTY_ROOT, Frontier, treeDepth } from '../../integrity/tree.ts';
import type { AuditRow } from '../../log/row.ts';
import { SESSIONS } from '../../log/tables.ts';
import type { Report } from '../../log/verify/finding.ts';
import type { Reader } from '../../storage/engine.ts';
import { type StoredSession, sessionId, sessionLeaves } from './sessions.ts';

const PAGE = 500;

/**
 * Recomputes the root of every sealed session from its records. That a session is as the log left it says nothing of
 * whether the root was ever right: whoever forges one and recomputes every hash after it leaves a log that agrees with
 * itself, but not with its records.
 */
export async function checkSeals(tx: Reader, report: Report): Promise<void> {
  for (let after = 0; ; ) {
    const page = await tx.all<StoredSession>(
      `SELECT * FROM ${SESSIONS.name} WHERE id > ? AND status = 'finalized' ORDER BY id LIMIT ?`,
      after,
      PAGE,
    );
    for (const session of page) await checkSeal(tx, session, report);
    after = page.at(-1)?.id ?? after;
    if (page.length < PAGE) return;
  }
}

async function checkSeal(tx: Reader, session: StoredSession, report: Report): Promise<void> {
  const record = sessionId(session);
  const base = { kind: 'altered', table: SESSIONS.name, record, position: session.position } as const;
  const tree = await treeOver(tx, session);
  const { merkle_root, leaf_count, tree_depth } = session;
  if (merkle_root !== tree.root() || leaf_count !== tree.size || tree_depth !== treeDepth(tree.size)) {
    const message = `The seal of ${record} is forged: its ${tree.size} records do not give the root it names.`;
    const columns = ['merkle_root', 'leaf_count', 'tree_depth'];
    report({ ...base, columns, message, expected: tree.root(), actual: String(merkle_root) });
    return;
  }
  const logged = await sealInLog(tx, session);
  if (logged?.merkle_root === merkle_root && logged.leaf_count === leaf_count) return;
  const message = `The seal of ${record} in audit row ${session.position} is not the one of the session.`;
  report({ ...base, message, expected: merkle_root ?? '', actual: logged?.merkle_root ?? '' });
}

async function treeOver(tx: Reader, session: StoredSession): Promise<Frontier> {
  const tree = new Frontier();
  for (let after = 0; ; ) {
    const page = await sessionLeaves(tx, session.id, session.sealed_task_id, after, PAGE);
    // A record that is gone gives another root.
    for (const { hash } of page) tree.add(hash !== null && isHash(hash) ? hash : EMPTY_ROOT);
    after = page.at(-1)?.id ?? after;
    if (page.length < PAGE) return tree;
  }
}

async function sealInLog(tx: Reader, session: StoredSession) {
  const row = await tx.get<{ text: string }>('SELECT text FROM actions WHERE position = ?', session.position);
  const { effects } = JSON.parse(row?.text ?? '{"effects":[]}') as Pick<AuditRow, 'effects'>;
  return effects.find(({ id }) => id === sessionId(session))?.seal;
}
