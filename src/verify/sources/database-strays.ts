import { STATE_TABLES, type StateTable } from '../../log/tables.ts';
import type { Report } from '../finding.ts';
import type { Walked } from '../source.ts';
import type { FromTable, Noting } from './database.ts';

/** As many strays of one table are named. */
const NAMED_MAX = 1_000;

/** Rows that the log does not speak of: the walk came to every one that it does speak of, so counting finds them. */
export async function checkStrays(
  from: FromTable,
  walked: Walked,
  report: Report,
  noting: Noting,
): Promise<void> {
  await noting('actions', report, () => checkActions(from, walked, report));
  await noting('action_payloads', report, () => checkPayloads(from, walked, report));
  await noting('texts', report, () => checkTexts(from, walked, report));
  for (const table of STATE_TABLES)
    await noting(table.name, report, () => checkState(from, table, walked, report));
  await noting('log', report, () => checkLog(from, report));
}

async function countOf(from: FromTable, table: string): Promise<number> {
  return (await from(table).get<{ count: number }>(`SELECT count(*) AS count FROM ${table}`))?.count ?? 0;
}

/** Rows that the walk did not come to: before the first position, where numbers are not exact, or where no search leads. */
async function checkActions(from: FromTable, walked: Walked, report: Report): Promise<void> {
  const stray = await from('actions').all<{ position: string }>(
    `SELECT CAST(position AS TEXT) AS position FROM actions WHERE position < 1 OR position > ? LIMIT ${NAMED_MAX}`,
    Number.MAX_SAFE_INTEGER,
  );
  for (const { position } of stray) {
    const message = `There is an audit row at position ${position}, where none can be.`;
    report({ kind: 'stray', table: 'actions', record: `#${position}`, message });
  }
  const hidden = (await countOf(from, 'actions')) - stray.length - walked.rows;
  if (hidden <= 0 || walked.isLost(Number.MAX_SAFE_INTEGER)) return;
  const message = `There are ${hidden} more audit rows than positions lead to.`;
  report({ kind: 'stray', table: 'actions', record: 'rows', message });
}

async function checkPayloads(from: FromTable, walked: Walked, report: Report): Promise<void> {
  const count = await countOf(from, 'action_payloads');
  if (count === walked.payloads || walked.isLost(Number.MAX_SAFE_INTEGER)) return;
  const stray = await from('action_payloads').all<{ position: string; number: number }>(
    `SELECT CAST(position AS TEXT) AS position, CAST(position AS REAL) AS number FROM action_payloads p
     WHERE NOT EXISTS (SELECT 1 FROM actions a WHERE a.position = p.position) LIMIT ${NAMED_MAX}`,
  );
  const unasked = stray.filter(({ number }) => !walked.isLost(number));
  for (const { position } of unasked) {
    const message = `There is a payload at position ${position} that no audit row speaks of.`;
    report({ kind: 'stray', table: 'action_payloads', record: `#${position}`, message });
  }
  const hidden = count - stray.length - walked.payloads;
  if (hidden <= 0) return;
  const message = `There are ${hidden} more payloads than positions lead to.`;
  report({ kind: 'stray', table: 'action_payloads', record: 'rows', message });
}

/** Each text is named by the arguments of one call. Which ones are not is looked up only where the numbers differ. */
async function checkTexts(from: FromTable, walked: Walked, report: Report): Promise<void> {
  const count = await countOf(from, 'texts');
  if (count === walked.texts || walked.texts === undefined || !walked.isComplete) return;
  const named = await namedDigests(from);
  const unnamed: string[] = [];
  for (let last = ''; ; ) {
    const page = await from('texts').all<{ digest: string }>(
      'SELECT digest FROM texts WHERE digest > ? ORDER BY digest LIMIT 500',
      last,
    );
    for (const { digest } of page) {
      if (!named.has(digest) && unnamed.length < NAMED_MAX) unnamed.push(String(digest).slice(0, 16));
    }
    const next = page.at(-1)?.digest;
    if (next === undefined || next <= last) break;
    last = next;
  }
  // A text that is missing may be there under another digest: that it is missing was said.
  if (unnamed.length <= walked.badTexts.size && unnamed.length > 0) return;
  for (const record of unnamed)
    report({ kind: 'stray', table: 'texts', record, message: `The text ${record} belongs to no call.` });
  if (unnamed.length > 0) return;
  const message = `${walked.texts} texts are named by calls and ${count} are there: one is named twice, or was put in where no search leads.`;
  report({ kind: 'stray', table: 'texts', record: 'rows', message });
}

const DIGESTS = /[0-9a-f]{64}/g;

async function namedDigests(from: FromTable): Promise<Set<string>> {
  const named = new Set<string>();
  for (let last = 0; ; ) {
    const page = await from('action_payloads').all<{ position: number; body: string }>(
      'SELECT position, body FROM action_payloads WHERE position > ? AND position <= ? ORDER BY position LIMIT 500',
      last,
      Number.MAX_SAFE_INTEGER,
    );
    for (const { body } of page) for (const [digest] of String(body).matchAll(DIGESTS)) named.add(digest);
    const next = page.at(-1)?.position;
    if (next === undefined || next <= last) return named;
    last = next;
  }
}

/** Every row that the log made was found, so that the others are those too many. */
async function checkState(from: FromTable, table: StateTable, walked: Walked, report: Report): Promise<void> {
  const made = walked.created.get(table.name) ?? 0;
  const stray = await from(table.name).all<{ id: string; position: number }>(
    `SELECT CAST(id AS TEXT) AS id, CAST(position AS REAL) AS position FROM ${table.name} WHERE id < 1 OR id > ? LIMIT ${NAMED_MAX}`,
    made,
  );
  for (const { id, position } of stray) {
    const record = `${table.prefix}-${id.padStart(4, '0')}`;
    if (walked.isLost(position) || walked.found.has(record)) continue;
    const message = `${record} is in ${table.name}, but no audit row wrote it.`;
    report({ kind: 'unexplained', table: table.name, record, columns: ['id'], message });
  }
}

async function checkLog(from: FromTable, report: Report): Promise<void> {
  const rows = await from('log').all<{ id: number }>('SELECT id FROM log');
  if (rows.length === 0 || (rows.length === 1 && rows[0]?.id === 1)) return;
  report({
    kind: 'stray',
    table: 'log',
    record: 'log',
    message: 'The log must have one name, in row 1 of log.',
  });
}
