import { treeRoot } from '../../integrity/tree.ts';
import { formatId, SESSION_RECORDS, SESSIONS, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Walked } from '../source.ts';
import { isCount, isText } from './forms.ts';
import type { HeldState } from './held.ts';
import { type SealedRecord, type SealFacts, sealBegin, sealEnd, sealRecord } from './seal.ts';

/** A sealed session as the rows of state show it. */
export interface ShownSeal {
  readonly facts: SealFacts;
  /** Where one of these is complete, so are the records: the session, or the task of a shallow one. */
  readonly coveredBy: readonly string[];
  /** Its records as far as they are there, in order. */
  readonly records: readonly SealedRecord[];
  /** One of them cannot be read, which is said elsewhere: nobody can tell what the seal must be. */
  readonly isTorn: boolean;
}

/** The sealed sessions of a source. A row that is not as the log left it is for the rules to name; here it is passed over. */
export function* shownSeals(state: HeldState, walked: Walked): Generator<ShownSeal> {
  const bySession = new Map<unknown, SealedRecord[]>();
  const torn = new Set<unknown>();
  for (const id of state.ids(SESSION_RECORDS)) {
    const row = state.row(SESSION_RECORDS, id);
    const record = row === undefined ? undefined : readRecord(row, state, walked);
    if (row !== undefined && record === undefined) torn.add(row.session_id);
    if (row === undefined || record === undefined) continue;
    const records = bySession.get(row.session_id);
    if (records === undefined) bySession.set(row.session_id, [record]);
    else records.push(record);
  }
  for (const id of state.ids(SESSIONS)) {
    const row = state.row(SESSIONS, id) ?? {};
    const facts = readFacts(id, row);
    if (facts === undefined) continue;
    const isShallow = row.scope === 'shallow' && isCount(row.task_id);
    const coveredBy = [facts.session_id, ...(isShallow ? [formatId(TASKS, Number(row.task_id))] : [])];
    const only = facts.sealed_task_id;
    const records = (bySession.get(id) ?? []).filter(({ task_id }) => only === null || task_id === only);
    yield { facts, coveredBy, records, isTorn: torn.has(id) || walked.found.has(facts.session_id) };
  }
}

/** The text that the seal file of a session must have. */
export function sealText({ facts, records }: ShownSeal): string {
  const shown = records.map((record, i) => sealRecord(record, i === 0));
  return `${sealBegin(facts)}${shown.join('')}${sealEnd(facts)}`;
}

/**
 * Whether these hashes can be the leaves under a seal of which not all records are shown: they give its root, and those
 * that are shown are among them in their order. Of what is complete the rules compare the root themselves.
 */
export function isSealOver(
  { facts, records, coveredBy }: ShownSeal,
  hashes: readonly string[],
  complete: ReadonlySet<string>,
): boolean {
  let found = 0;
  for (const hash of hashes) if (hash === records[found]?.hash) found += 1;
  if (found !== records.length || hashes.length !== facts.leaf_count) return false;
  return coveredBy.some((id) => complete.has(id)) || treeRoot(hashes) === facts.merkle_root;
}

function readFacts(id: number, row: Readonly<Record<string, unknown>>): SealFacts | undefined {
  const { status, merkle_root, leaf_count, tree_depth, position, sealed_task_id } = row;
  if (status !== 'finalized' || !isText(merkle_root)) return undefined;
  if (!isCount(leaf_count) || !isCount(tree_depth) || !isCount(position)) return undefined;
  if (sealed_task_id !== null && !isCount(sealed_task_id)) return undefined;
  return {
    session_id: formatId(SESSIONS, id),
    merkle_root,
    leaf_count,
    tree_depth,
    position,
    sealed_task_id,
  };
}

function readRecord(
  { kind, ref, task_id }: Readonly<Record<string, unknown>>,
  state: HeldState,
  { contentHashAt }: Walked,
): SealedRecord | undefined {
  if ((kind !== 'thought' && kind !== 'change') || !isCount(ref) || !isCount(task_id)) return undefined;
  const hash = kind === 'thought' ? state.row(THOUGHTS, ref)?.hash : contentHashAt(ref);
  return isText(hash) ? { kind, ref, task_id, hash } : undefined;
}
