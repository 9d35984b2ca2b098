import type { Clock } from '../../clock.ts';
import { TASKS } from '../../log/tables.ts';
import type { Reader } from '../../storage/engine.ts';
import type { CallContext } from '../../tool.ts';
import type { TaskRow } from '../facts.ts';
import { erasedAmong, lastSeen, shown } from '../lookup.ts';
import { given, pick } from '../records.ts';
import type { SeenHolder } from '../rule.ts';
import { IN_ORDER } from './reads.ts';

// What a reader sees of holders. What is allowed is decided by the rules, which look for themselves.

/** Who looks, when, and after how long a silent holder counts as gone. */
export interface Looker extends Pick<CallContext, 'actor' | 'process' | 'at'> {
  readonly leaseMinutes: number;
}

/** Somebody who only looks, and holds nothing. */
export function onlooker({ now }: Pick<Clock, 'now'>, leaseMinutes: number): Looker {
  return { actor: '', process: '', at: new Date(now()).toISOString(), leaseMinutes };
}

/** A holder as it is shown to agents and people. */
export async function viewHolder(
  tx: Reader,
  { held_by, held_process, held_since }: Pick<TaskRow, 'held_by' | 'held_process' | 'held_since'>,
  looker: Looker,
) {
  if (held_by === null || held_since === null) return undefined;
  const seen = await seeHolder(tx, { held_by, held_process }, looker);
  return { held_by, since: held_since, ...given(seen, 'last_seen'), ...pick(seen, 'present', 'abandoned') };
}

/** Whose tasks they are: a name and the process that serves it; from the command line there is none. */
interface Holder {
  readonly held_by: string;
  readonly held_process: string | null;
}

interface SeenNow extends SeenHolder {
  /** Its process is gone, or has made no call for as long as the lease. A person at the command line has no lease. */
  readonly abandoned: boolean;
}

/** What is seen of a holder now. The one who asks is there. */
async function seeHolder(tx: Reader, holder: Holder, looker: Looker): Promise<SeenNow> {
  const { held_by, held_process } = holder;
  if (held_process === null) return { present: true, abandoned: false };
  const isOurs = held_process === looker.process;
  if (isOurs && held_by === looker.actor) return { present: true, last_seen: looker.at, abandoned: false };
  const present = isOurs || (await tx.isPresent(held_process));
  const last_seen = await lastSeen(tx, held_by, held_process);
  const silentMs = Date.parse(looker.at) - Date.parse(last_seen ?? looker.at);
  return { present, last_seen, abandoned: !present || silentMs > looker.leaseMinutes * 60_000 };
}

type Columns = 'id' | 'title' | 'status' | 'priority' | 'assignee' | 'estimate_hours' | 'parent_id';

/** A task with what is seen of its holder. */
export interface HeldTask extends Pick<TaskRow, Columns> {
  readonly unmet: number;
  readonly held_by: string;
  readonly held_since: string;
  /** 1 if the owner has erased its title. */
  readonly erased: number;
  readonly seen: SeenNow;
}

/**
 * The tasks that the looker holds, those of them that are in the pipeline, and those of others that are abandoned; of each
 * at most `limit`, the oldest of each holder first, in the pipeline the most urgent. A name whose process is gone is an
 * agent that was restarted: its tasks are its own.
 */
export async function heldTasks(
  tx: Reader,
  project: string | undefined,
  looker: Looker,
  limit: number,
): Promise<Record<'yours' | 'piped' | 'abandoned', HeldTask[]>> {
  const [yours, piped, abandoned]: [HeldTask[], HeldTask[], HeldTask[]] = [[], [], []];
  const own = async (holder: Holder, seen: SeenNow) => {
    const held = await tasksOf(tx, holder, { project, limit, seen });
    if (held.length === 0) return;
    yours.push(...held.slice(0, limit - yours.length));
    // Asked for by itself: of more tasks than `limit`, the most urgent of the pipeline need not be among the oldest.
    piped.push(...(await tasksOf(tx, holder, { project, limit, seen, isPiped: true })));
  };
  await own({ held_by: looker.actor, held_process: null }, { present: true, abandoned: false });
  for await (const holder of holders(tx)) {
    const seen = await seeHolder(tx, holder, looker);
    const isSame = holder.held_by === looker.actor;
    if (isSame && (holder.held_process === looker.process || !seen.present)) await own(holder, seen);
    else if (seen.abandoned)
      abandoned.push(...(await tasksOf(tx, holder, { project, limit: limit - abandoned.length, seen })));
  }
  return { yours, piped, abandoned };
}

/** Every process that holds a task, with the name it holds it under. From one to the next, whatever number each holds. */
async function* holders(tx: Reader): AsyncGenerator<Holder & { readonly held_process: string }> {
  for (let last = { held_by: '', held_process: '' }; ; ) {
    const next = await tx.get<typeof last>(NEXT_HOLDER, last.held_by, last.held_process);
    if (next === undefined) return;
    yield next;
    last = next;
  }
}

const NEXT_HOLDER = `SELECT held_by, held_process FROM tasks WHERE held_by IS NOT NULL AND (held_by, held_process) > (?, ?)
  ORDER BY held_by, held_process LIMIT 1`;

async function tasksOf(
  tx: Reader,
  { held_by, held_process }: Holder,
  { project, limit, seen, isPiped = false }: Wanted,
): Promise<HeldTask[]> {
  if (limit <= 0) return [];
  const process = held_process === null ? 'held_process IS NULL' : 'held_process = ?';
  const rows = await tx.all<Omit<HeldTask, 'seen'>>(
    `SELECT ${HELD} FROM tasks WHERE held_by = ? AND ${process}${project === undefined ? '' : ' AND project = ?'}
     ${isPiped ? `AND workflow = 'pipeline' ${IN_ORDER}` : 'ORDER BY id'} LIMIT ?`,
    held_by,
    ...(held_process === null ? [] : [held_process]),
    ...(project === undefined ? [] : [project]),
    limit,
  );
  return rows.map((row) => ({ ...row, seen }));
}

interface Wanted {
  readonly project: string | undefined;
  readonly limit: number;
  readonly seen: SeenNow;
  readonly isPiped?: boolean;
}

const HELD = `id, ${shown(TASKS, 'title')}, status, priority, assignee, estimate_hours, parent_id, unmet, held_by, held_since,
  ${erasedAmong(TASKS, 'title')}`;
