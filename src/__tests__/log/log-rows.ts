import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import type { NewRow } from '../../log/append.ts';
import type { AuditRow } from '../../log/row.ts';
import type { StorageEngine } from '../../storage/engine.ts';

/** The beginning of a call, for tests that need a row and do not care which. */
export const ENTER_ROW: NewRow = {
  stage: 'enter',
  tool: 'server_ping',
  actor: 'ada',
  correlation_id: 'c',
  schema_valid: true,
  args_hash: null,
  outcome: 'running',
  error_code: null,
  duration_ms: null,
  result_hash: null,
  effects: [],
  process: 'p',
  repaired: [],
};

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

/** Every audit row, after every hash was computed again from the stored text with nothing of Colibri's own. */
export async function verifiedRows(storage: StorageEngine): Promise<AuditRow[]> {
  const stored = await storage.read((tx) =>
    tx.all<{ position: number; text: string; content_hash: string; chain_hash: string }>(
      'SELECT position, text, content_hash, chain_hash FROM actions ORDER BY position',
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
  const rows = stored.map((row) => JSON.parse(row.text) as AuditRow);
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
