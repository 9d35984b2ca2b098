import { sha256Hex } from '../../integrity/digest.ts';
import type { Reader } from '../../storage/engine.ts';
import { isStoredAs, mayHideBytes } from './bytes.ts';
import { auditRow, type Report } from './finding.ts';
import type { ReadRow } from './rows.ts';

interface Payload {
  readonly position: number;
  readonly salt: string;
  readonly body: string;
}

/** Follows the log and checks what lies beside its rows: each kept body against its digest, none missing, none too many. */
export class PayloadWalk {
  readonly #report: Report;
  /** Payloads read so far. */
  #read = 0;

  constructor(report: Report) {
    this.#report = report;
  }

  async follow(tx: Reader, rows: readonly ReadRow[]): Promise<void> {
    const [first, last] = [rows[0], rows.at(-1)];
    if (first === undefined || last === undefined) return;
    const kept = await tx.all<Payload>(
      'SELECT position, salt, body FROM action_payloads WHERE position BETWEEN ? AND ?',
      first.at,
      last.at,
    );
    const byPosition = new Map(kept.map((payload) => [payload.position, payload]));
    // Two of one position: the count in the end tells of it.
    this.#read += byPosition.size;
    for (const { at, row } of rows) {
      const digest = row.stage === 'enter' ? row.args_hash : row.result_hash;
      const payload = byPosition.get(at);
      byPosition.delete(at);
      if (isKept(row)) checkOne(at, digest, payload, this.#report);
      else if (payload !== undefined) stray(at, this.#report);
      if (typeof payload?.body === 'string' && mayHideBytes(payload.body))
        await checkBytes(tx, payload, this.#report);
    }
    for (const position of byPosition.keys()) stray(position, this.#report);
  }

  /** After the log has ended: payloads beyond its last row, and such as no search by position comes upon. */
  async checkRest(tx: Reader, end: number): Promise<void> {
    const beyond = await tx.all<{ position: number }>(
      'SELECT CAST(position AS REAL) AS position FROM action_payloads WHERE position > ? OR position < 1 LIMIT 1000',
      end,
    );
    for (const { position } of beyond) stray(position, this.#report);
    const found = await tx.get<{ count: number }>('SELECT count(*) AS count FROM action_payloads');
    const hidden = (found?.count ?? 0) - beyond.length - this.#read;
    if (hidden <= 0) return;
    const message = `There are ${hidden} more payloads than positions lead to.`;
    this.#report({ kind: 'stray', table: 'action_payloads', record: 'rows', message });
  }
}

/** Arguments are kept unless they were refused; results are kept of calls that changed something. */
function isKept({ stage, schema_valid, outcome, effects }: ReadRow['row']): boolean {
  return stage === 'enter' ? schema_valid : outcome === 'ok' && effects.length > 0;
}

function checkOne(
  position: number,
  digest: string | null,
  payload: Payload | undefined,
  report: Report,
): void {
  const table = 'action_payloads';
  if (payload === undefined) {
    report({
      kind: 'missing',
      table,
      record: auditRow(position),
      position,
      message: `What audit row ${position} was called with or answered is gone.`,
    });
    return;
  }
  const actual = sha256Hex(`${payload.salt}${payload.body}`);
  const columns = oddColumns(payload);
  if (actual === digest && columns.length === 0) return;
  report({
    kind: 'altered',
    table,
    record: auditRow(position),
    position,
    columns: columns.length === 0 ? ['salt', 'body'] : columns,
    message: `What lies beside audit row ${position} is not what its digest says.`,
    expected: digest ?? '',
    actual,
  });
}

async function checkBytes(tx: Reader, { position, body }: Payload, report: Report): Promise<void> {
  const table = 'action_payloads';
  if (await isStoredAs(tx, { table, key: 'position', id: position, column: 'body', text: body })) return;
  const message = `The bytes beside audit row ${position} are no text in UTF-8.`;
  report({ kind: 'altered', table, record: auditRow(position), position, columns: ['body'], message });
}

const SALT = /^[0-9a-f]{32}$/;

/**
 * Columns that are not of their form, whatever the digest says: salt and body are hashed as one text, so that a character
 * moved from one to the other, or a blob in place of a text, would leave it as it was.
 */
function oddColumns({ salt, body }: Payload): string[] {
  return [
    ...(typeof salt === 'string' && SALT.test(salt) ? [] : ['salt']),
    ...(typeof body === 'string' ? [] : ['body']),
  ];
}

function stray(position: number, report: Report): void {
  report({
    kind: 'stray',
    table: 'action_payloads',
    record: auditRow(position),
    position,
    message: `There is a payload at position ${position} that no audit row speaks of.`,
  });
}
