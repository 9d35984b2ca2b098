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
      'SELECT sum(length(CAST(body AS BLOB))) AS bytes FROM action_payloads',
    );
    const tables = await tx
      .all<{ name: string; bytes: number }>('SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name')
      .catch(() => undefined);
    const sumOf = (wanted: (name: string) => boolean) =>
      (tables ?? []).filter(({ name }) => wanted(name)).reduce((sum, table) => sum + table.bytes, 0);
    const isLog = (name: string) =>
      /^(actions|log_blocks|open_calls)|_(actions|log_blocks|open_calls)_/.test(name);
    const isPayload = (name: string) => name.includes('action_payloads');
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
