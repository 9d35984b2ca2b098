import { commitRows, type LogWriter } from './append.ts';
import { closeCall, indexCall } from './audit-log.ts';
import { isGone } from './process-identity.ts';
import { parseAuditText } from './row.ts';

/**
 * Explains every call that was begun and can no longer end: one exit row `crashed` each. Its effects were in the
 * transaction that never committed, so there are none. Returns how many were explained.
 */
export async function recoverOpenCalls(writer: LogWriter): Promise<number> {
  return await commitRows(writer, async (appending) => {
    const { tx } = appending;
    const open = await tx.all<{ process: string; text: string; body: string | null }>(
      `SELECT o.process, a.text, p.body FROM open_calls o JOIN actions a ON a.position = o.position
       LEFT JOIN action_payloads p ON p.position = o.position ORDER BY o.position`,
    );
    let explained = 0;
    for (const { process, text, body } of open) {
      const { position, sequence_no, at, ...entered } = parseAuditText(text);
      if (!isGone(process, writer.clock.now() - Date.parse(at))) continue;
      await closeCall(tx, position);
      const { tool, actor, source, correlation_id, schema_valid } = entered;
      const call = { tool, actor, source, correlation_id, schema_valid };
      const end = await appending.append({ ...call, stage: 'exit', sequence_no, outcome: 'crashed' });
      if (body !== null) await indexCall(tx, JSON.parse(body), end);
      explained += 1;
    }
    return explained;
  });
}
