import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { type NewRow, openAppending, UNSIGNED } from '../../log/append.ts';
import { type AuditRow, parseAuditText } from '../../log/row.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { stillClock } from './still-clock.ts';

/** The beginning of a call, for tests that need a row and do not care which. */
export const ENTER_ROW: NewRow = {
  stage: 'enter',
  tool: 'server_ping',
  actor: 'ada',
  source: 'mcp',
  correlation_id: 'c',
  schema_valid: true,
  args_hash: null,
  outcome: 'running',
  error_code: null,
  duration_ms: null,
  result_hash: null,
  effects: [],
  repaired: [],
};

/** Adds rows in one commit, without a call around them. */
export async function appendRows(
  storage: StorageEngine,
  rows: readonly NewRow[],
  process = 'p',
): Promise<void> {
  await storage.write(async (tx) => {
    const appending = await openAppending(tx, { keeper: UNSIGNED, clock: stillClock(), process });
    for (const row of rows) appending.append(row);
    await appending.close(false);
  });
}

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

/** The digest of a text under a salt, with nothing of Colibri's own: 16 bytes, then the text. */
export function saltedSha256(salt: string | undefined, text: string | undefined): string {
  return createHash('sha256')
    .update(Buffer.from(salt ?? '', 'hex'))
    .update(text ?? '', 'utf8')
    .digest('hex');
}

/** Every audit row, after every hash was computed again from the stored text with nothing of Colibri's own. */
export async function verifiedRows(storage: StorageEngine): Promise<AuditRow[]> {
  const stored = await storage.read((tx) =>
    tx.all<{ position: number; text: string; content_hash: string; chain_hash: string }>(
      'SELECT position, text, content_hash, chain_hash FROM audit_rows ORDER BY position',
    ),
  );
  let chain = '0'.repeat(64);
  for (const [i, row] of stored.entries()) {
    chain = sha256(sha256(row.text) + chain);
    expect({ ...row, text: undefined }).toEqual({
      position: i + 1,
      content_hash: sha256(row.text),
      chain_hash: chain,
      text: undefined,
    });
  }
  const rows = stored.map((row) => parseAuditText(row.text));
  expect(rows.map((row) => row.position)).toEqual(stored.map((row) => row.position));
  return rows;
}

/** What lies beside the rows, by position. */
export async function payloads(storage: StorageEngine): Promise<Map<number, { salt: string; body: string }>> {
  const rows = await storage.read((tx) =>
    tx.all<{ position: number; salt: string; body: string }>(
      'SELECT position, salt, body FROM action_payloads',
    ),
  );
  return new Map(rows.map(({ position, salt, body }) => [position, { salt, body }]));
}

export const openCalls = async (storage: StorageEngine): Promise<number[]> =>
  (await storage.read((tx) => tx.all<{ position: number }>('SELECT position FROM open_calls'))).map(
    ({ position }) => position,
  );

/** The index of calls by task, in pairs. */
export const taskCalls = async (storage: StorageEngine): Promise<[task: number, position: number][]> =>
  (
    await storage.read((tx) =>
      tx.all<{ task_id: number; position: number }>(
        'SELECT task_id, position FROM task_calls ORDER BY position',
      ),
    )
  ).map(({ task_id, position }) => [task_id, position]);
