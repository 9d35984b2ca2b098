// Run by verify.mjs as a process of its own, so that its memory is its own: node verify-database.mjs PATH log|verify|hash
import { hash } from 'node:crypto';
import { LogWalk } from '../src/log/verify/rows.ts';
import { verifyDatabase } from '../src/log/verify/verify.ts';
import type { StorageEngine } from '../src/storage/engine.ts';
import { openSqlite } from '../src/storage/sqlite/engine.ts';

const PAGE = 2_000;

const [path = '', what = ''] = process.argv.slice(2);
const storage = await openSqlite({ path, readOnly: true });
const work = new Map<string, (engine: StorageEngine) => Promise<object>>([
  ['log', walkLog],
  ['verify', verify],
  ['hash', hashAlone],
]);
const measured = await work.get(what)?.(storage);
await storage.close();
// Kilobytes on Linux and on macOS alike, as libuv gives it.
const peak_mb = (process.resourceUsage().maxRSS * 1024) / 1_000_000;
process.stdout.write(`${JSON.stringify({ ...measured, peak_mb })}\n`);

/** The audit rows alone: form, content hash, chain, tree, order, and that each call ends once. */
async function walkLog(engine: StorageEngine) {
  let findings = 0;
  const began = performance.now();
  const walk = new LogWalk(() => {
    findings += 1;
  });
  await engine.read(async (tx) => {
    while ((await walk.next(tx)) !== undefined);
  });
  return { rows: walk.head.size, ms: performance.now() - began, findings };
}

async function verify(engine: StorageEngine) {
  let findings = 0;
  const began = performance.now();
  const { size } = await verifyDatabase(engine, {
    report: () => {
      findings += 1;
    },
  });
  return { rows: size, ms: performance.now() - began, findings };
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
