import { formatId, STATE_TABLES, type StateTable } from '../../log/tables.ts';
import { auditRow, type Finding, type Report } from '../finding.ts';
import type { Walked } from '../source.ts';
import type { PayloadLine } from './forms.ts';
import type { HeldState, HeldTexts } from './held.ts';
import type { PayloadCursor } from './rows.ts';

/** What somebody handed over besides the rows. */
export interface Beside {
  readonly whole: boolean;
  readonly texts: HeldTexts;
  readonly state: HeldState;
  readonly payloads: PayloadCursor;
  /** Reads the payloads once more. */
  readonly again: () => AsyncIterable<readonly (PayloadLine | undefined)[]>;
}

/** As many strays of one kind are named. */
const NAMED_MAX = 1_000;

/** What is there and no row of the log speaks of. Said in the same words as of a database. */
export async function reportStrays(beside: Beside, walked: Walked, report: Report): Promise<void> {
  for (const position of beside.payloads.strays.slice(0, NAMED_MAX))
    if (!walked.isLost(position)) report(strayPayload(position));
  await reportTexts(beside, walked, report);
  for (const finding of beside.state.faults) report(finding);
  for (const table of STATE_TABLES) reportState(table, beside, walked, report);
}

/** Each text is named by the arguments of one call. Which ones are not is looked up only where the numbers differ. */
async function reportTexts({ texts, again }: Beside, walked: Walked, report: Report): Promise<void> {
  if (walked.texts === undefined || texts.length === walked.texts || !walked.isComplete) return;
  const named = new Set<string>();
  for await (const page of again())
    for (const payload of page)
      for (const [digest] of payload?.body.matchAll(/[0-9a-f]{64}/g) ?? []) named.add(digest);
  const unnamed = texts.digests().filter((digest) => !named.has(digest));
  for (const digest of unnamed.sort().slice(0, NAMED_MAX)) report(strayText(digest));
  if (unnamed.length === 0) report(miscountedTexts(walked.texts, texts.length));
}

/** Of a whole log every row that it made was found, so that the others are those too many. */
function reportState(table: StateTable, { whole, state }: Beside, walked: Walked, report: Report): void {
  const made = walked.created.get(table.name) ?? 0;
  const stray = whole
    ? state.ids(table).filter((id) => id > made)
    : walked.isComplete
      ? state.unasked(table)
      : [];
  for (const id of stray.slice(0, NAMED_MAX))
    if (!walked.isLost(Number(state.row(table, id)?.position))) report(strayState(table, id));
}

function strayPayload(position: number): Finding {
  const message = `There is a payload at position ${position} that no audit row speaks of.`;
  return { kind: 'stray', table: 'action_payloads', record: auditRow(position), message };
}

function strayText(digest: string): Finding {
  // What stands there need not be a digest, and is printed.
  const record = /^[0-9a-f]{64}$/.test(digest) ? digest.slice(0, 16) : 'without a digest';
  return { kind: 'stray', table: 'texts', record, message: `The text ${record} belongs to no call.` };
}

function miscountedTexts(named: number, there: number): Finding {
  const message = `${named} texts are named by calls and ${there} are there: one is named twice, or was put in where no search leads.`;
  return { kind: 'stray', table: 'texts', record: 'rows', message };
}

function strayState(table: StateTable, id: number): Finding {
  const record = formatId(table, id);
  const message = `${record} is in ${table.name}, but no audit row wrote it.`;
  return { kind: 'unexplained', table: table.name, record, columns: ['id'], message };
}
