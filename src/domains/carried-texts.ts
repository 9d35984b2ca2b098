import { parseId, TASKS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import type { NamedText } from '../storage/text-ids.ts';
import { listIn } from '../untrusted.ts';
import { type Erasable, isTextOf } from './owner/rules.ts';
import { RULES } from './rules.ts';

/** A text that a call carried, there or erased. */
export interface CarriedText extends NamedText {
  readonly field: string;
  /** Whether the call wrote the record, or was refused. */
  readonly isWritten: boolean;
}

interface EndedCall {
  readonly enter: number;
  readonly tool: string;
  readonly rules: number;
  readonly outcome: string;
  readonly effects: string | null;
  readonly body: string;
}

const ENDED = `SELECT x.sequence_no AS enter, x.tool, x.rules, x.outcome, x.effects, e.body`;
const PAYLOADS = `JOIN action_payloads e ON e.position = x.sequence_no`;
const OF_A_TASK = `${ENDED} FROM task_calls c JOIN audit_rows x ON x.position = c.position ${PAYLOADS}
  WHERE c.task_id = ? ORDER BY c.position`;
const OF_A_CALL = `${ENDED} FROM audit_rows x ${PAYLOADS}
  WHERE x.position > ? AND x.sequence_no = ? AND x.stage = 'exit' ORDER BY x.position LIMIT 1`;

/** Every text that erasing this takes, in the order of the calls that carried them. */
export async function carriedTexts(tx: Reader, erasable: Erasable): Promise<CarriedText[]> {
  const { record, task_id } = erasable;
  const position = Number(record.slice(1));
  const calls = record.startsWith('#')
    ? await tx.all<EndedCall>(OF_A_CALL, position, position)
    : await tx.all<EndedCall>(OF_A_TASK, parseId(TASKS, task_id ?? '') ?? 0);
  return calls.flatMap(({ enter, tool, rules, outcome, effects, body }) => {
    const args = JSON.parse(body) as Readonly<Record<string, unknown>>;
    const [first] = outcome === 'ok' ? (listIn(effects ?? '[]') as { id: string }[]) : [];
    const wrote = first?.id;
    const task = args.task_id ?? (tool === TASKS.createdBy ? wrote : undefined);
    const call = { position: enter, tool, task: typeof task === 'string' ? task : undefined, wrote };
    if (!isTextOf(erasable, call)) return [];
    const fields = (RULES[rules]?.[tool]?.texts ?? []).filter((field) => args[field] !== undefined);
    return fields.map((field) => ({
      ...{ call: enter, digest: String(args[field]), field, isWritten: wrote !== undefined },
    }));
  });
}

/** Those that are still there, wherever that is. It looks at all texts, which an erasure may. */
export async function erasableTexts(tx: Reader, erasable: Erasable): Promise<CarriedText[]> {
  const carried = await carriedTexts(tx, erasable);
  const present = new Set<string>();
  for (let i = 0; i < carried.length; i += PAGE) {
    const digests = carried.slice(i, i + PAGE).map(({ digest }) => digest);
    const sql = `SELECT digest FROM texts WHERE digest IN (${digests.map(() => '?').join(', ')})`;
    for (const { digest } of await tx.all<{ digest: string }>(sql, ...digests)) present.add(digest);
  }
  return carried.filter(({ digest }) => present.has(digest));
}

const PAGE = 400;
