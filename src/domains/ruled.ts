import { ColibriError } from '../errors.ts';
import { formatId, SESSIONS, type StateTable, TASKS } from '../log/tables.ts';
import type { Reader, Transaction } from '../storage/engine.ts';
import type { WritingContext } from '../tool.ts';
import { applyRows } from './apply.ts';
import { transactionLookup } from './lookup.ts';
import { settleAsync, type WritingRule } from './rule.ts';

/** The handler of a tool that writes by a rule: what it needs is fetched, the rule decides, what it wrote is stored. */
export function ruled<R extends object>({ rule, texts }: WritingRule<R>) {
  return {
    texts,
    async handle(args: Readonly<Record<string, unknown>>, call: WritingContext, tx: Transaction): Promise<R> {
      const known = new Map(call.texts.map(({ digest, text }) => [digest, text]));
      try {
        const { rows, result } = await settleAsync(rule(args as never, call), transactionLookup(tx, known));
        call.effects.push(...(await applyRows(tx, rows)));
        return result;
      } catch (error) {
        throw await withNearest(tx, error);
      }
    },
  };
}

const NOT_FOUND: Readonly<Record<string, StateTable>> = {
  ERR_TASK_NOT_FOUND: TASKS,
  ERR_SESSION_NOT_FOUND: SESSIONS,
};

/** For an id that leads nowhere: the existing ones nearest to it, so that the next try can be right. */
async function withNearest(tx: Reader, error: unknown): Promise<unknown> {
  if (!(error instanceof ColibriError)) return error;
  const table = NOT_FOUND[error.code];
  const { id, field } = error.details;
  if (table === undefined || typeof id !== 'string' || typeof field !== 'string') return error;
  return await notFound(tx, table, id, field);
}

export async function notFound(
  tx: Reader,
  table: StateTable,
  text: string,
  field: string,
): Promise<ColibriError> {
  const wanted = Number(/\d{1,15}/.exec(text)?.[0] ?? Number.MAX_SAFE_INTEGER);
  const rows = await tx.all<{ id: number }>(
    `SELECT id FROM (SELECT id FROM ${table.name} WHERE id <= ? ORDER BY id DESC LIMIT 3) AS below
     UNION SELECT id FROM (SELECT id FROM ${table.name} WHERE id > ? ORDER BY id LIMIT 2) AS above ORDER BY id`,
    wanted,
    wanted,
  );
  const nearest = rows.map(({ id }) => formatId(table, id));
  const hint =
    nearest.length === 0
      ? `There is none yet: ${table.createdBy} makes one.`
      : `The nearest are: ${nearest.join(', ')}.`;
  const code = table === TASKS ? 'ERR_TASK_NOT_FOUND' : 'ERR_SESSION_NOT_FOUND';
  return new ColibriError(code, `There is no ${table.noun} ${JSON.stringify(text)} (${field}). ${hint}`, {
    field,
    id: text,
    nearest,
  });
}
