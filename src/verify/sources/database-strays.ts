import { STATE_TABLES, type StateTable } from '../../log/tables.ts';
import { inPages, type Parts, type Rest } from './database-cells.ts';
import { NAMED_MAX, reportStrayTexts, strayPayload, strayState } from './strays.ts';

/** Rows that the log does not speak of, by table: the walk came to every one that it does speak of, so counting finds them. */
export const STRAYS: Parts = {
  actions: checkActions,
  action_payloads: checkPayloads,
  texts: checkTexts,
  ...Object.fromEntries(STATE_TABLES.map((table) => [table.name, (rest: Rest) => checkState(table, rest)])),
  log: checkLog,
};

async function countOf(from: Rest['from'], table: string): Promise<number> {
  return (await from(table).get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`))?.count ?? 0;
}

/** Rows that the walk did not come to: before the first position, where numbers are not exact, or where no search leads. */
async function checkActions({ from, walked, report }: Rest): Promise<void> {
  const stray = await from('actions').all<{ position: string }>(
    `SELECT CAST(position AS TEXT) AS position FROM actions WHERE position < 1 OR position > ? LIMIT ${NAMED_MAX}`,
    Number.MAX_SAFE_INTEGER,
  );
  for (const { position } of stray) {
    const message = `There is an audit row at position ${position}, where none can be.`;
    report({ kind: 'stray', table: 'actions', record: `#${position}`, message });
  }
  const hidden = (await countOf(from, 'actions')) - stray.length - walked.rows;
  if (hidden > 0 && !walked.isLost(Number.MAX_SAFE_INTEGER))
    report(hiddenRows('actions', 'audit rows', hidden));
}

async function checkPayloads({ from, walked, report }: Rest): Promise<void> {
  const count = await countOf(from, 'action_payloads');
  if (count === walked.payloads || walked.isLost(Number.MAX_SAFE_INTEGER)) return;
  const stray = await from('action_payloads').all<{ position: string; number: number }>(
    `SELECT CAST(position AS TEXT) AS position, CAST(position AS DOUBLE PRECISION) AS number FROM action_payloads p
     WHERE NOT EXISTS (SELECT 1 FROM actions a WHERE a.position = p.position) LIMIT ${NAMED_MAX}`,
  );
  for (const { position, number } of stray) if (!walked.isLost(number)) report(strayPayload(position));
  const hidden = count - stray.length - walked.payloads;
  if (hidden > 0) report(hiddenRows('action_payloads', 'payloads', hidden));
}

function hiddenRows(table: string, what: string, count: number) {
  const message = `There are ${count} more ${what} than positions account for.`;
  return { kind: 'stray', table, record: 'rows', message } as const;
}

async function checkTexts({ from, walked, report }: Rest): Promise<void> {
  const columnOf = async function* (table: string, key: string, column: string) {
    const select = `SELECT ${key}, ${column} AS value FROM ${table} WHERE`;
    for await (const { value } of inPages<{ value: unknown }>(from(table), select, key)) yield String(value);
  };
  const there = {
    count: await countOf(from, 'texts'),
    digests: () => columnOf('texts', 'id', 'digest'),
    bodies: () => columnOf('action_payloads', 'position', 'body'),
  };
  await reportStrayTexts(there, walked, report);
}

/** Every row that the log made was found, so that the others are those too many. */
async function checkState(table: StateTable, { from, walked, report }: Rest): Promise<void> {
  const made = walked.created.get(table.name) ?? 0;
  const stray = await from(table.name).all<{ id: string; position: number }>(
    `SELECT CAST(id AS TEXT) AS id, CAST(position AS DOUBLE PRECISION) AS position FROM ${table.name} WHERE id < 1 OR id > ? LIMIT ${NAMED_MAX}`,
    made,
  );
  for (const { id, position } of stray) {
    const record = `${table.prefix}-${id.padStart(4, '0')}`;
    if (!walked.isLost(position) && !walked.found.has(record)) report(strayState(table.name, record));
  }
}

async function checkLog({ from, report }: Rest): Promise<void> {
  const rows = await from('log').all<{ id: number }>('SELECT id FROM log');
  if (rows.length === 0 || (rows.length === 1 && rows[0]?.id === 1)) return;
  const message = 'The log must have one name, in row 1 of log.';
  report({ kind: 'stray', table: 'log', record: 'log', message });
}
