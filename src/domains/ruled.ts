import { ColibriError } from '../errors.ts';
import { formatId, parseId, SESSIONS, type StateTable, TASKS } from '../log/tables.ts';
import type { Reader, Transaction } from '../storage/engine.ts';
import type { WritingContext } from '../tool.ts';
import { applyRows } from './apply.ts';
import type { SessionRow } from './facts.ts';
import { idsFrom, SELECT_SESSION, transactionLookup } from './lookup.ts';
import { notFound } from './records.ts';
import { settleAsync, type WritingRule } from './rule.ts';

/** The handler of a tool that writes by a rule: what it needs is fetched, the rule decides, what it wrote is stored. */
export function ruled<R extends object>({ rule, texts }: WritingRule<R>) {
  return {
    effect: 'writes' as const,
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

/** The session with this id, or an error that names the nearest there are. */
export async function requireSession(tx: Reader, text: string): Promise<SessionRow> {
  return await requireRow(tx, SESSIONS, text, (id) =>
    tx.get<SessionRow>(`${SELECT_SESSION} WHERE id = ?`, id),
  );
}

/** What `find` gives for the number inside an id, or an error that names the nearest ids there are. */
export async function requireRow<T>(
  tx: Reader,
  table: StateTable,
  text: string,
  find: (id: number) => Promise<T | undefined>,
): Promise<T> {
  const id = parseId(table, text);
  const row = id === undefined ? undefined : await find(id);
  if (row !== undefined) return row;
  throw await withNearest(tx, notFound(table, text));
}

/** For an id that leads nowhere: the existing ones nearest to it, so that the next try can be right. */
async function withNearest(tx: Reader, error: unknown): Promise<unknown> {
  if (!(error instanceof ColibriError)) return error;
  const table = [TASKS, SESSIONS].find(({ noun }) => error.code === `ERR_${noun.toUpperCase()}_NOT_FOUND`);
  const { id, field } = error.details;
  if (table === undefined || typeof id !== 'string' || typeof field !== 'string') return error;
  const wanted = Number(/\d{1,15}/.exec(id)?.[0] ?? Number.MAX_SAFE_INTEGER);
  const numbers = await idsFrom(
    tx,
    `SELECT id FROM (SELECT id FROM ${table.name} WHERE id <= ? ORDER BY id DESC LIMIT 3) AS below
     UNION SELECT id FROM (SELECT id FROM ${table.name} WHERE id > ? ORDER BY id LIMIT 2) AS above ORDER BY id`,
    wanted,
    wanted,
  );
  const nearest = numbers.map((number) => formatId(table, number));
  const hint =
    nearest.length === 0
      ? `There is none yet: ${table.createdBy} makes one.`
      : `The nearest are: ${nearest.join(', ')}.`;
  return new ColibriError(error.code, `${error.message} ${hint}`, { field, id, nearest });
}
