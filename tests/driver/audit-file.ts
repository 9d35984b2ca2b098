import { createHash } from 'node:crypto';
import { type Database, openDatabase } from './database.ts';

/** One audit row as the file holds it: the text, what the text says, and the two hashes. */
interface AuditEntry {
  readonly position: number;
  readonly text: string;
  readonly content_hash: string;
  readonly chain_hash: string;
  readonly row: AuditFields;
}

export interface AuditFields {
  readonly position: number;
  readonly sequence_no: number;
  readonly stage: 'enter' | 'exit';
  readonly tool: string;
  readonly actor: string;
  readonly source: 'mcp' | 'cli';
  readonly correlation_id: string;
  readonly at: string;
  readonly rules: number;
  readonly schema_valid: boolean;
  readonly args_hash: string | null;
  readonly outcome: 'running' | 'ok' | 'error' | 'rejected' | 'denied' | 'crashed';
  readonly error_code: string | null;
  readonly duration_ms: number | null;
  readonly result_hash: string | null;
  readonly effects: readonly AuditEffect[];
  readonly process: string;
  readonly repaired: readonly string[];
}

export interface AuditEffect {
  readonly table: string;
  readonly id: string;
  readonly hash: string;
  readonly previous: number;
  readonly seal?: { readonly leaf_count: number; readonly merkle_root: string };
}

interface Payload {
  readonly position: number;
  readonly salt: string;
  readonly body: string;
}

/** What the second reader found: it shares no line with the server. */
export interface AuditFile {
  readonly entries: readonly AuditEntry[];
  readonly rows: readonly AuditFields[];
  readonly payloads: ReadonlyMap<number, Payload>;
  readonly texts: ReadonlyMap<string, KeptText>;
  /** Everything wrong with positions, texts, digests and links. Empty for a sound log. */
  readonly findings: readonly string[];
  /** Enter and exit row of each call, in the order they were begun. */
  readonly calls: readonly AuditCall[];
}

/** A free text, under its digest. */
interface KeptText {
  readonly digest: string;
  readonly salt: string;
  readonly text: string;
}

/** What a row leaves out of its text. */
export const UNSAID = {
  args_hash: null,
  duration_ms: null,
  effects: [],
  error_code: null,
  repaired: [],
  result_hash: null,
};

interface AuditCall {
  readonly enter: AuditFields;
  readonly exits: readonly AuditFields[];
}

export function readAuditFile(path: string): AuditFile {
  return withDatabase(path, (db) => {
    const entries = db
      .prepare('SELECT position, text, content_hash, chain_hash FROM audit_rows ORDER BY position')
      .all()
      .map((entry) => ({
        ...(entry as AuditEntry),
        row: { ...UNSAID, ...JSON.parse((entry as AuditEntry).text) } as AuditFields,
      }));
    const payloads = db.prepare('SELECT position, salt, body FROM action_payloads').all() as Payload[];
    const texts = db.prepare('SELECT digest, salt, text FROM texts').all() as KeptText[];
    const rows = entries.map((entry) => entry.row);
    return {
      entries,
      rows,
      payloads: new Map(payloads.map((payload) => [payload.position, payload])),
      texts: new Map(texts.map((text) => [text.digest, text])),
      findings: [...findingsOf(entries), ...digestFindings(rows, payloads, texts)],
      calls: callsIn(rows),
    };
  });
}

function callsIn(rows: readonly AuditFields[]): AuditCall[] {
  const exits = new Map<number, AuditFields[]>();
  for (const row of rows.filter(({ stage }) => stage === 'exit')) {
    exits.set(row.sequence_no, [...(exits.get(row.sequence_no) ?? []), row]);
  }
  return rows
    .filter(({ stage }) => stage === 'enter')
    .map((enter) => ({ enter, exits: exits.get(enter.sequence_no) ?? [] }));
}

/** Opens the file for reading, whatever the server is doing with it. */
export function withDatabase<T>(path: string, read: (db: Database) => T): T {
  const db = openDatabase(path, { readOnly: true });
  try {
    return db.transaction(() => read(db))();
  } finally {
    db.close();
  }
}

function findingsOf(entries: readonly AuditEntry[]): string[] {
  const findings: string[] = [];
  let previous = '0'.repeat(64);
  entries.forEach((entry, i) => {
    const at = `row ${entry.position}`;
    if (entry.position !== i + 1) findings.push(`${at}: position ${i + 1} was due`);
    if (entry.row.position !== entry.position) findings.push(`${at}: its text says ${entry.row.position}`);
    if (canonical(JSON.parse(entry.text)) !== entry.text) findings.push(`${at}: its text is not canonical`);
    if (sha256(entry.text) !== entry.content_hash)
      findings.push(`${at}: content_hash is not that of its text`);
    if (sha256(entry.content_hash + previous) !== entry.chain_hash)
      findings.push(`${at}: chain_hash does not follow`);
    if (i > 0 && entry.row.at < (entries[i - 1] as AuditEntry).row.at)
      findings.push(`${at}: time runs backwards`);
    previous = entry.chain_hash;
  });
  return findings;
}

/** Payloads against the digests in their rows, and texts against their own. */
function digestFindings(
  rows: readonly AuditFields[],
  payloads: readonly Payload[],
  texts: readonly KeptText[],
): string[] {
  const findings: string[] = [];
  for (const { position, salt, body } of payloads) {
    const row = rows[position - 1];
    const told = row?.stage === 'enter' ? row.args_hash : row?.result_hash;
    if (saltedSha256(salt, body) !== told) findings.push(`payload ${position}: not what its row says`);
  }
  for (const { digest, salt, text } of texts)
    if (saltedSha256(salt, text) !== digest) findings.push(`text ${digest}: not what its digest says`);
  return findings;
}

/** SHA-256 of the 16 bytes of the salt and the text. */
export function saltedSha256(salt: string, text: string): string {
  if (!/^[0-9a-f]{32}$/.test(salt)) return `not a salt: ${salt}`;
  return createHash('sha256').update(Buffer.from(salt, 'hex')).update(text, 'utf8').digest('hex');
}

export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

/** RFC 8785 for what JSON.parse returns. Written here again on purpose. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(',')}}`;
}
