import type { Clock } from '../clock.ts';
import type { StorageEngine, Transaction } from '../storage/engine.ts';
import { appendRow, readHead } from './append.ts';
import { closeCall } from './audit-log.ts';
import { isGone } from './process-identity.ts';
import type { AuditRow } from './row.ts';

/**
 * Explains every call that was begun and can no longer end: one exit row `crashed` each. Its effects were in the
 * transaction that never committed, so there are none. Returns how many were explained.
 */
export async function recoverOpenCalls(
  storage: StorageEngine,
  clock: Clock,
  process: string,
): Promise<number> {
  return await storage.write(async (tx) => {
    const open = await tx.all<{ position: number; process: string; text: string }>(
      'SELECT o.position, o.process, a.text FROM open_calls o JOIN actions a ON a.position = o.position ORDER BY o.position',
    );
    let explained = 0;
    for (const call of open) {
      const entered = JSON.parse(call.text) as AuditRow;
      if (!isGone(call.process, clock.now() - Date.parse(entered.at))) continue;
      await explain(tx, entered, clock, process);
      explained += 1;
    }
    return explained;
  });
}

async function explain(tx: Transaction, entered: AuditRow, clock: Clock, process: string): Promise<void> {
  await closeCall(tx, entered.position);
  await appendRow(
    tx,
    await readHead(tx),
    {
      stage: 'exit',
      sequence_no: entered.sequence_no,
      tool: entered.tool,
      actor: entered.actor,
      correlation_id: entered.correlation_id,
      schema_valid: entered.schema_valid,
      args_hash: null,
      outcome: 'crashed',
      error_code: null,
      duration_ms: null,
      result_hash: null,
      effects: [],
      process,
      repaired: [],
    },
    clock,
  );
}
