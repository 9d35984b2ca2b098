import { SESSION_RECORDS, SESSIONS, type StateTable, TASKS, tableNamed } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import type { SessionRow, TaskRow } from './facts.ts';
import type { AsyncLookup, HashedThought, NewestThought } from './rule.ts';
import { thoughtHash } from './thought-hash.ts';

/** Answers a rule from a transaction. `texts` are those of the call, by digest: a thought's hash is made of its text. */
export function transactionLookup(tx: Reader, texts: ReadonlyMap<string, string>): AsyncLookup {
  return {
    task: (id) => tx.get<TaskRow>(`SELECT ${columnsOf(TASKS)} FROM tasks WHERE id = ?`, id),
    existing: async (ids) => {
      if (ids.length === 0) return [];
      const rows = await tx.all<{ id: number }>(`SELECT id FROM tasks WHERE id IN (${marks(ids)})`, ...ids);
      return rows.map(({ id }) => id);
    },
    awaitedBy: (ids) => awaitedBy(tx, ids),
    unmet: (task, dependsOn) => unmet(tx, task, dependsOn),
    session: (id) => tx.get<SessionRow>(`SELECT ${columnsOf(SESSIONS)} FROM sessions WHERE id = ?`, id),
    openSession: (task) =>
      tx.get<SessionRow>(
        `SELECT ${columnsOf(SESSIONS)} FROM sessions WHERE task_id = ? AND status = 'open'`,
        task,
      ),
    coveringSessions: (task) => coveringSessions(tx, task),
    newestThought: (task) => newestThought(tx, task),
    unsealedThoughts: (task) => unsealedThoughts(tx, task),
    leaves: (session, onlyTask) => leaves(tx, session, onlyTask),
    thoughtHash: (thought) => Promise.resolve(hashOf(thought, texts)),
    nextId: async (name) =>
      ((await tx.get<{ id: number | null }>(`SELECT max(id) AS id FROM ${tableNamed(name).name}`))?.id ?? 0) +
      1,
    nextSequence: async (project) =>
      ((
        await tx.get<{ sequence: number | null }>(
          'SELECT max(sequence) AS sequence FROM tasks WHERE project = ?',
          project,
        )
      )?.sequence ?? 0) + 1,
  };
}

/** Named, not *: a derived or generated column must not slip into a row that is hashed. */
export function columnsOf(table: StateTable, alias = ''): string {
  return table.facts.map((column) => `${alias}${column}`).join(', ');
}

export function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

function hashOf(thought: HashedThought, texts: ReadonlyMap<string, string>): string {
  const content = texts.get(thought.content);
  if (content === undefined) throw new Error('the text of a thought is not among those of its call');
  return thoughtHash({ ...thought, content });
}

async function awaitedBy(tx: Reader, ids: readonly number[]): Promise<Map<number, number[]>> {
  const found = new Map<number, number[]>(ids.map((id) => [id, []]));
  if (ids.length === 0) return found;
  const rows = await tx.all<{ task: number; id: number }>(
    `SELECT task_id AS task, depends_on AS id FROM task_dependencies WHERE task_id IN (${marks(ids)})
     UNION SELECT parent_id AS task, id FROM tasks WHERE parent_id IN (${marks(ids)}) ORDER BY task, id`,
    ...ids,
    ...ids,
  );
  for (const { task, id } of rows) found.get(task)?.push(id);
  return found;
}

async function unmet(tx: Reader, task: number, dependsOn: readonly number[] | null): Promise<number> {
  if (dependsOn === null)
    return (await tx.get<{ unmet: number }>('SELECT unmet FROM tasks WHERE id = ?', task))?.unmet ?? 0;
  const row = await tx.get<{ count: number }>(
    `SELECT count(*) AS count FROM tasks WHERE is_final = 0 AND (parent_id = ? OR id IN (${marks(dependsOn)}))`,
    task,
    ...dependsOn,
  );
  return row?.count ?? 0;
}

async function coveringSessions(tx: Reader, task: number): Promise<SessionRow[]> {
  if ((await tx.get("SELECT 1 AS found FROM sessions WHERE status = 'open' LIMIT 1")) === undefined)
    return [];
  return await tx.all<SessionRow>(
    `WITH RECURSIVE above (id, distance) AS (
       SELECT CAST(? AS INTEGER), 0
       UNION ALL
       SELECT t.parent_id, above.distance + 1 FROM tasks t JOIN above ON t.id = above.id WHERE t.parent_id IS NOT NULL
     )
     SELECT ${columnsOf(SESSIONS, 's.')} FROM sessions s JOIN above ON s.task_id = above.id
     WHERE s.status = 'open' AND (above.distance = 0 OR s.scope = 'deep') ORDER BY s.id`,
    task,
  );
}

/** A record of a finalized session is sealed unless the seal was of another task only. */
const SEALED = `EXISTS (
  SELECT 1 FROM session_records r JOIN sessions s ON s.id = r.session_id
  WHERE r.kind = 'thought' AND r.ref = t.id AND s.status = 'finalized'
    AND (s.sealed_task_id IS NULL OR s.sealed_task_id = r.task_id)
)`;

async function newestThought(tx: Reader, task: number): Promise<NewestThought | undefined> {
  const row = await tx.get<{ id: number; hash: string; chain_position: number; sealed: number }>(
    `SELECT t.id, t.hash, t.chain_position, ${SEALED} AS sealed
     FROM thoughts t WHERE t.task_id = ? ORDER BY t.chain_position DESC LIMIT 1`,
    task,
  );
  return row === undefined ? undefined : { ...row, sealed: row.sealed === 1 };
}

async function unsealedThoughts(tx: Reader, task: number): Promise<number> {
  const sql = `SELECT count(*) AS count FROM thoughts t WHERE t.task_id = ? AND NOT ${SEALED}`;
  return (await tx.get<{ count: number }>(sql, task))?.count ?? 0;
}

const LEAVES_PAGE = 2_000;

async function leaves(tx: Reader, session: number, onlyTask: number | null): Promise<string[]> {
  const hashes: string[] = [];
  for (let after = 0; ; ) {
    const page = await sessionLeaves(tx, session, onlyTask, after, LEAVES_PAGE);
    for (const { id, hash } of page) {
      if (hash === null)
        throw new Error(`record ${id} of session ${session} is damaged; audit_verify_chain tells more`);
      hashes.push(hash);
      after = id;
    }
    if (page.length < LEAVES_PAGE) return hashes;
  }
}

/** A record of a session with the hash that is its leaf. A missing hash means that the record itself is gone. */
export interface Leaf {
  readonly id: number;
  readonly kind: 'thought' | 'change';
  readonly ref: number;
  readonly task_id: number;
  readonly hash: string | null;
}

/** The session's records in the order written, a page at a time. */
export async function sessionLeaves(
  tx: Reader,
  session: number,
  onlyTask: number | null,
  after: number,
  limit: number,
): Promise<Leaf[]> {
  return await tx.all<Leaf>(
    `SELECT r.id, r.kind, r.ref, r.task_id,
       CASE r.kind WHEN 'thought' THEN (SELECT hash FROM thoughts WHERE id = r.ref)
                   ELSE (SELECT content_hash FROM actions WHERE position = r.ref) END AS hash
     FROM ${SESSION_RECORDS.name} r
     WHERE r.session_id = ? AND r.id > ? AND r.task_id = coalesce(?, r.task_id) ORDER BY r.id LIMIT ?`,
    session,
    after,
    onlyTask,
    limit,
  );
}
