import { ColibriError } from '../errors.ts';
import type { Reader } from '../storage/engine.ts';
import { visibleLine } from '../untrusted.ts';
import type { AuditRow } from './row.ts';

// A log goes on in another database once the owner has transferred it there. What it leaves behind ends with the row
// that says so.

/** Whether this row ends what is here: the owner has transferred the log. */
export function isTransfer({ stage, tool, outcome }: Partial<AuditRow>): boolean {
  return tool === 'owner_transfer' && stage === 'exit' && outcome === 'ok';
}

/** Whether this row is the one that may follow a transfer: with it, the log goes on at its new place. */
export function isReceipt({ stage, tool }: Pick<AuditRow, 'stage' | 'tool'>): boolean {
  return tool === 'owner_receive' && stage === 'enter';
}

/** What is said of a place whose name cannot be read. */
const ELSEWHERE = 'another database';

/** Nothing may be added: the log goes on elsewhere. */
export class TransferredError extends ColibriError {
  constructor(to = ELSEWHERE) {
    const sentence = `The log was transferred to ${to}, and nothing is added to it here. ${useIt(to)} If the transfer was interrupted, run "colibri transfer" once more.`;
    super('ERR_INIT_FAILED', sentence, { reason: 'transferred', to });
  }
}

/** What is said of a database that is read although its log has moved on. */
export function oldCopyNote(to: string): string {
  return `The log was transferred to ${to}. This is the old copy, which no longer changes. ${useIt(to)}`;
}

function useIt(to: string): string {
  return isOnServer(to)
    ? 'Set COLIBRI_DATABASE_URL to the URL of that database, and unset COLIBRI_DB_PATH.'
    : 'Set COLIBRI_DB_PATH to that file, and unset COLIBRI_DATABASE_URL.';
}

/** Whether a name of a place is that of a database on a server. */
function isOnServer(name: string): boolean {
  return name.startsWith('postgres:');
}

/** Where the log that ends with the row at this position was transferred to. */
export async function destinationOf(tx: Reader, position: number): Promise<string> {
  const sql = 'SELECT body FROM action_payloads WHERE position = ?';
  const row = await tx.get<{ body: string }>(sql, position);
  return namedIn(row?.body ?? '') ?? ELSEWHERE;
}

/** Hostile input enters here: anybody may have changed what is stored. */
function namedIn(body: string): string | undefined {
  try {
    const { result }: { readonly result?: { readonly to?: unknown } } = JSON.parse(body);
    return typeof result?.to === 'string' ? visibleLine(result.to) : undefined;
  } catch {
    return undefined;
  }
}
