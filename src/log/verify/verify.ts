import type { StorageEngine } from '../../storage/engine.ts';
import { STATE_TABLES } from '../tables.ts';
import type { Report } from './finding.ts';
import { checkIndexes, checkOpenCalls } from './indexes.ts';
import { checkPayloads, checkPayloadsBeyond } from './payloads.ts';
import { LogWalk } from './rows.ts';
import { checkEffects, checkTable } from './state.ts';

export interface Verified {
  /** Audit rows read. */
  readonly size: number;
  /** RFC 6962 root over their content hashes. */
  readonly root: string;
  /** No finding speaks of a position up to here. */
  readonly intactThrough: number;
  readonly findings: number;
}

export interface VerifyOptions {
  readonly report: Report;
  /** Rows read so far and rows there are. */
  readonly onProgress?: (done: number, total: number) => void;
  /** Called between pages, so that others get their turn. */
  readonly breathe?: () => Promise<void>;
}

/**
 * Reads the whole database back and names everything that is wrong. A second reader: it shares the hash functions with
 * the writer and nothing else. Works on one snapshot, a page at a time, and never changes anything.
 */
export async function verifyDatabase(storage: StorageEngine, options: VerifyOptions): Promise<Verified> {
  const breathe = options.breathe ?? (() => Promise.resolve());
  let findings = 0;
  let firstBad = Number.POSITIVE_INFINITY;
  const report: Report = (finding) => {
    findings += 1;
    if (finding.position !== undefined) firstBad = Math.min(firstBad, finding.position);
    options.report(finding);
  };

  return await storage.read(async (tx) => {
    for (const message of await storage.selfCheck(tx))
      report({ kind: 'schema', table: 'sqlite_schema', record: 'schema', message });
    const total = (await tx.get<{ count: number }>('SELECT count(*) AS count FROM actions'))?.count ?? 0;
    const walk = new LogWalk(report);
    for (let rows = await walk.next(tx); rows !== undefined; rows = await walk.next(tx)) {
      await checkPayloads(tx, rows, report);
      await checkEffects(tx, STATE_TABLES, rows, report);
      options.onProgress?.(walk.position, total);
      await breathe();
    }
    await walk.checkBlocksBeyond(tx);
    await checkPayloadsBeyond(tx, walk.position, report);
    await checkOpenCalls(tx, walk.open, report);
    for (const table of STATE_TABLES) await checkTable(tx, table, report, breathe);
    await checkIndexes(tx, report);
    return { ...walk.head, intactThrough: Math.min(walk.position, firstBad - 1), findings };
  });
}
