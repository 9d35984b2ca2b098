// Run by verify.mjs as a process of its own, so that its memory is its own: node verify-database.mjs PATH verify|hash
import { hash } from 'node:crypto';
import type { StorageEngine } from '../src/storage/engine.ts';
import { openSqlite } from '../src/storage/sqlite/engine.ts';
import { DatabaseSource } from '../src/verify/sources/database.ts';
import { verify } from '../src/verify/verify.ts';

const PAGE = 2_000;

const [path = '', what = ''] = process.argv.slice(2);
const storage = await openSqlite({ path, readOnly: true });
const work = new Map<string, (engine: StorageEngine) => Promise<object>>([
  ['verify', verifyAll],
  ['hash', hashAlone],
]);
const measured = await work.get(what)?.(storage);
await storage.close();
process.stdout.write(`${JSON.stringify(measured)}\n`);

/** Everything: rows, payloads, texts, replay, state, heads, structure and derived tables. */
async function verifyAll(engine: StorageEngine) {
  let findings = 0;
  let heap = 0;
  const began = performance.now();
  const { size, replayedThrough } = await engine.read((tx) =>
    verify(new DatabaseSource(engine, tx), {
      report: () => {
        findings += 1;
      },
      onProgress: (done) => {
        if (done % 50_000 < 500) heap = Math.max(heap, process.memoryUsage().heapUsed);
      },
      now: Date.now(),
      keys: { trusted: [] },
    }),
  );
  const ms = performance.now() - began;
  if (replayedThrough !== size) throw new Error(`replayed ${replayedThrough} of ${size} rows`);
  const written = await engine.read((tx) =>
    tx.get<{ count: number }>('SELECT count(*) AS count FROM task_calls'),
  );
  return { rows: size, written: 2 * (written?.count ?? 0), ms, findings, heap_mb: heap / 1_000_000 };
}

/** One hash over the text of each row, and one over each payload, with the reading not counted. */
async function hashAlone(engine: StorageEngine) {
  return await engine.read(async (tx) => {
    const timeOf = async (sql: string) => {
      let [rows, ms, after] = [0, 0, 0];
      for (;;) {
        const page = await tx.all<{ position: number; bytes: string }>(sql, after, PAGE);
        if (page.length === 0) return { rows, ms };
        const began = performance.now();
        for (const { bytes } of page) hash('sha256', bytes, 'hex');
        ms += performance.now() - began;
        rows += page.length;
        after = page.at(-1)?.position ?? after;
      }
    };
    const text = await timeOf(
      'SELECT position, text AS bytes FROM actions WHERE position > ? ORDER BY position LIMIT ?',
    );
    const payload = await timeOf(
      'SELECT position, salt || body AS bytes FROM action_payloads WHERE position > ? ORDER BY position LIMIT ?',
    );
    return { rows: text.rows, text_ms: text.ms, payload_ms: payload.ms };
  });
}
