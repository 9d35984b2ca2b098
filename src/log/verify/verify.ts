import type { Reader, StorageEngine } from '../../storage/engine.ts';
import { STATE_TABLES } from '../tables.ts';
import { DamageError, noticingDamage } from './damage.ts';
import type { Report } from './finding.ts';
import { checkIndexes, checkOpenCalls } from './indexes.ts';
import { PayloadWalk } from './payloads.ts';
import { LogWalk } from './rows.ts';
import { StateWalk } from './state.ts';
import { checkWordIndex } from './word-index.ts';

export interface Verified {
  /** Audit rows read. */
  readonly size: number;
  /** RFC 6962 root over their content hashes. */
  readonly root: string;
  /** No finding speaks of a position up to here. */
  readonly intactThrough: number;
  readonly findings: number;
  /** Whether the log was read to its end. Past damage nobody can say how long it is. */
  readonly complete: boolean;
  /** Roots at the sizes that were asked for, as far as the log reaches. */
  readonly roots: ReadonlyMap<number, readonly string[]>;
}

export interface VerifyOptions {
  readonly report: Report;
  /** Sizes at which the root is wanted: those of checkpoints that claim to know it. */
  readonly sizes?: readonly number[];
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
    // A copy: a hash in it is a piece of the text of its block, all of which it would keep in memory.
    options.report(structuredClone(finding));
  };

  return await storage.read(async (snapshot) => {
    const tx = noticingDamage(snapshot);
    const walk = new LogWalk(report, options.sizes);
    const payloads = new PayloadWalk(report);
    const state = new StateWalk(report);
    await noted('sqlite_schema', walk, report, () => checkSchema(storage, tx, report));
    const complete = await noted('actions', walk, report, () =>
      walkLog(tx, { walk, payloads, state }, options, breathe),
    );
    if (complete) {
      await noted('actions', walk, report, () => walk.checkBeyond(tx));
      await noted('log_blocks', walk, report, () => walk.checkBlocksBeyond(tx));
      await noted('action_payloads', walk, report, () => payloads.checkRest(tx, walk.position));
      await noted('open_calls', walk, report, () => checkOpenCalls(tx, walk.open, report));
      for (const table of STATE_TABLES)
        await noted(table.name, walk, report, () => state.checkRest(tx, table, breathe));
      await noted('task_words', walk, report, () => checkIndexes(tx, report));
      await noted('task_words_data', walk, report, () => checkWordIndex(tx, report));
    }
    const intactThrough = Math.min(walk.position, firstBad - 1);
    return { ...walk.head, intactThrough, findings, complete, roots: walk.roots };
  });
}

async function checkSchema(storage: StorageEngine, tx: Reader, report: Report): Promise<void> {
  for (const message of await storage.selfCheck(tx))
    report({ kind: 'schema', table: 'sqlite_schema', record: 'schema', message });
}

async function walkLog(
  tx: Reader,
  { walk, payloads, state }: { walk: LogWalk; payloads: PayloadWalk; state: StateWalk },
  { onProgress }: VerifyOptions,
  breathe: () => Promise<void>,
): Promise<void> {
  const total = (await tx.get<{ count: number }>('SELECT count(*) AS count FROM actions'))?.count ?? 0;
  for (let rows = await walk.next(tx); rows !== undefined; rows = await walk.next(tx)) {
    await payloads.follow(tx, rows);
    await state.follow(tx, STATE_TABLES, rows);
    onProgress?.(walk.position, total);
    await breathe();
  }
}

/** Runs one part of the verification. A part of the file that cannot be read is a finding; whether it could is the answer. */
async function noted(
  table: string,
  walk: LogWalk,
  report: Report,
  part: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await part();
    return true;
  } catch (error) {
    if (!(error instanceof DamageError)) throw error;
    const position = walk.position + 1;
    const message = `The file is damaged and ${table} cannot be read: ${error.message}.`;
    report({ kind: 'damaged', table, record: table, message, ...(table === 'actions' && { position }) });
    return false;
  }
}
