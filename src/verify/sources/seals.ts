import { treeRoot } from '../../integrity/tree.ts';
import { formatId, SESSION_RECORDS, SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Walked } from '../source.ts';
import { isCount, isText } from './forms.ts';
import type { HeldState } from './held.ts';

/** A sealed session as the rows of state show it. */
export interface ShownSeal {
  readonly session: string;
  /** Of the exit row that sealed it. */
  readonly position: number;
  readonly root: string;
  readonly leaves: number;
  /** Where one of these is complete, so are the records: the session, or the task of a shallow one. */
  readonly coveredBy: readonly string[];
  /** The hashes of its records as far as they are there, in order. */
  readonly hashes: readonly string[];
  /** One of them cannot be read, which is said elsewhere: nobody can tell what the seal must be. */
  readonly isTorn: boolean;
}

/** The sealed sessions of a source. A row that is not as the log left it is for the rules to name; here it is passed over. */
export function* shownSeals(state: HeldState, walked: Walked): Generator<ShownSeal> {
  const bySession = new Map<unknown, { readonly task: unknown; readonly hash: unknown }[]>();
  for (const id of state.ids(SESSION_RECORDS)) {
    const { session_id, kind, ref, task_id } = state.row(SESSION_RECORDS, id) ?? {};
    const number = isCount(ref) ? ref : 0;
    const hash = kind === 'thought' ? state.row(THOUGHTS, number)?.hash : walked.contentHashAt(number);
    const records = bySession.get(session_id) ?? [];
    records.push({ task: task_id, hash });
    bySession.set(session_id, records);
  }
  for (const id of state.ids(SESSIONS)) {
    const row = state.row(SESSIONS, id) ?? {};
    const { status, merkle_root: root, leaf_count: leaves, position, sealed_task_id: only, task_id } = row;
    if (status !== 'finalized' || !isText(root) || !isCount(leaves) || !isCount(position)) continue;
    const session = formatId(SESSIONS, id);
    const isShallow = row.scope === 'shallow' && isCount(task_id);
    const records = (bySession.get(id) ?? []).filter(({ task }) => only === null || task === only);
    const hashes = records.map(({ hash }) => hash).filter(isText);
    yield {
      ...{ session, position, root, leaves, hashes },
      coveredBy: [session, ...(isShallow ? [formatId(TASKS, task_id)] : [])],
      isTorn: hashes.length < records.length || walked.found.has(session),
    };
  }
}

/**
 * Whether these hashes can be the leaves under a seal. Of a whole log they are those of its records. Else they give its
 * root, and those that are shown are among them in their order; of what is complete the rules compare the root themselves.
 */
export function isSealOver(
  { hashes, leaves, root, coveredBy }: ShownSeal,
  listed: readonly string[],
  complete: ReadonlySet<string> | undefined,
): boolean {
  let found = 0;
  for (const hash of listed) if (hash === hashes[found]) found += 1;
  if (found !== hashes.length) return false;
  if (complete === undefined) return listed.length === found;
  return listed.length === leaves && (coveredBy.some((id) => complete.has(id)) || treeRoot(listed) === root);
}
