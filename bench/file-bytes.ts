import { openSqlite } from '../src/storage/sqlite/engine.ts';

export interface Bytes {
  /** Arguments and results that are kept, without what SQLite adds. */
  readonly payload: number;
  /** Pages of the file by what they hold, where SQLite can say so. */
  readonly pages?: { readonly log: number; readonly payloads: number; readonly state: number };
}

/** What a database spends its bytes on. */
export async function bytesOf(path: string): Promise<Bytes> {
  const storage = await openSqlite({ path, readOnly: true });
  const bytes = await storage.read(async (tx) => {
    const found = await tx.get<{ bytes: number | null }>(
      `SELECT (SELECT coalesce(sum(length(CAST(body AS BLOB))), 0) FROM action_payloads)
         + (SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM texts) AS bytes`,
    );
    const tables = await tx
      .all<{ name: string; bytes: number }>('SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name')
      .catch(() => undefined);
    const sumOf = (wanted: (name: string) => boolean) =>
      (tables ?? []).filter(({ name }) => wanted(name)).reduce((sum, table) => sum + table.bytes, 0);
    const isLog = (name: string) =>
      /^(actions|log|log_heads|log_blocks|checkpoints|open_calls|processes|task_calls)$/.test(name);
    const isPayload = (name: string) => name === 'action_payloads' || name === 'texts';
    return {
      payload: found?.bytes ?? 0,
      ...(tables !== undefined && {
        pages: {
          log: sumOf(isLog),
          payloads: sumOf(isPayload),
          state: sumOf((name) => !isLog(name) && !isPayload(name)),
        },
      }),
    };
  });
  await storage.close();
  return bytes;
}
