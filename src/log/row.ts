import type { CallOutcome } from '../audit-sink.ts';
import { canonicalJson } from '../integrity/canonical-json.ts';
import { sha256Hex } from '../integrity/digest.ts';
import type { Effect } from '../tool.ts';

/** The version of the rules that this build writes by. The verifier keeps every released one. */
export const RULES_VERSION = 1;

/** Which door a call came through. */
export type CallSource = 'mcp' | 'cli';

/** One audit row: every field present, null where it has nothing to say. */
export interface AuditRow {
  readonly position: number;
  /** Position of the call's enter row; the two rows of a call share it. */
  readonly sequence_no: number;
  readonly stage: 'enter' | 'exit';
  readonly tool: string;
  readonly actor: string;
  readonly source: CallSource;
  readonly correlation_id: string;
  readonly at: string;
  readonly rules: number;
  readonly schema_valid: boolean;
  readonly args_hash: string | null;
  readonly outcome: 'running' | CallOutcome;
  readonly error_code: string | null;
  readonly duration_ms: number | null;
  readonly result_hash: string | null;
  readonly effects: readonly Effect[];
  readonly process: string;
  readonly repaired: readonly string[];
}

/** The row as it is stored. `text` is hashed as it stands and never serialised again. */
export interface StoredRow {
  readonly position: number;
  readonly text: string;
  readonly content_hash: string;
  readonly chain_hash: string;
}

/** The chain hash before the first row. */
export const GENESIS = '0'.repeat(64);

export function storeRow(row: AuditRow, previousChainHash: string): StoredRow {
  const text = canonicalJson(row);
  const content_hash = sha256Hex(text);
  return {
    position: row.position,
    text,
    content_hash,
    chain_hash: chainHash(content_hash, previousChainHash),
  };
}

/** Both hashes as 64 hex characters each, one after the other. */
export function chainHash(contentHash: string, previousChainHash: string): string {
  return sha256Hex(contentHash + previousChainHash);
}
