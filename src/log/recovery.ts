import type { Clock } from '../clock.ts';
import type { StorageEngine, Transaction } from '../storage/engine.ts';
import { Appending } from './append.ts';
import { closeCall, indexCall } from './audit-log.ts';
import type { HeadKeeper } from './head.ts';
import { isGone } from './process-identity.ts';
import { type AuditRow, parseAuditText } from './row.ts';

export interface RecoveryOptions {
  readonly storage: StorageEngine;
  readonly clock: Clock;
  readonly process: string;
  readonly keeper: HeadKeeper;
}

/**
 * Explains every call that was begun and can no longer end: one exit row `crashed` each. Its effects were in the
 * transaction that never committed, so there are none. Returns how many were explained.
 */
export async function recoverOpenCalls({
  storage,
  clock,
  process,
  keeper,
}: RecoveryOptions): Promise<number> {
  return await storage.write(async (tx) => {
    const open = await tx.all<{ process: string; text: string; body: string | null }>(
      `SELECT o.process, a.text, p.body FROM open_calls o JOIN actions a ON a.position = o.position
       LEFT JOIN action_payloads p ON p.position = o.position ORDER BY o.position`,
    );
    const crashed = open
      .map((call) => ({ ...call, entered: parseAuditText(call.text) }))
      .filter(({ process: owner, entered }) => isGone(owner, clock.now() - Date.parse(entered.at)));
    if (crashed.length === 0) return 0;
    const appending = await Appending.open(tx, keeper, clock, process);
    for (const { entered, body } of crashed) await explain(tx, appending, entered, body);
    await appending.close(false);
    return crashed.length;
  });
}

async function explain(
  tx: Transaction,
  appending: Appending,
  entered: AuditRow,
  body: string | null,
): Promise<void> {
  await closeCall(tx, entered.position);
  const { tool, actor, source, correlation_id, schema_valid } = entered;
  const position = await appending.append({
    stage: 'exit',
    sequence_no: entered.sequence_no,
    tool,
    actor,
    source,
    correlation_id,
    schema_valid,
    args_hash: null,
    outcome: 'crashed',
    error_code: null,
    duration_ms: null,
    result_hash: null,
    effects: [],
    repaired: [],
  });
  if (body !== null) await indexCall(tx, JSON.parse(body), position);
}
