import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../clock.ts';
import { type HeadKeeper, type NewRow, openAppending, UNSIGNED } from '../../log/append.ts';
import type { SqlValue, StorageEngine } from '../../storage/engine.ts';
import { openSqlite } from '../../storage/sqlite/engine.ts';
import type { HeadRow } from '../../trust/own-log.ts';
import { LogSigner, type SignerOptions } from '../../trust/signer.ts';
import { pastTriggers, scratchFolder } from '../storage/scratch.ts';

const ROW: NewRow = {
  stage: 'enter',
  tool: 'server_ping',
  actor: 'ada',
  source: 'mcp',
  correlation_id: '00000000-0000-4000-8000-000000000000',
  schema_valid: true,
  args_hash: null,
  outcome: 'running',
  error_code: null,
  duration_ms: null,
  result_hash: null,
  effects: [],
  repaired: [],
};

/** A signer on a database of its own connection, as one server process has it. */
export interface Desk {
  readonly signer: LogSigner;
  readonly storage: StorageEngine;
  readonly errors: string[];
  /** One commit with this many rows, and the fsync after it. */
  append(rows?: number, options?: { keep?: boolean }): Promise<void>;
  /** The same without the fsync. */
  appendOnly(rows?: number): Promise<void>;
  /** A transaction that writes rows, signs them and is rolled back. */
  fail(): Promise<void>;
  close(): Promise<void>;
}

export interface Place {
  readonly dbPath: string;
  readonly configDir: string;
}

export function aPlace(): Place {
  const folder = scratchFolder();
  return { dbPath: join(folder, '.colibri', 'colibri.db'), configDir: join(folder, 'config') };
}

let count = 0;

/** A started signer. */
export async function aDesk(place: Place, options: Partial<SignerOptions> = {}): Promise<Desk> {
  const storage = await openSqlite({ path: place.dbPath });
  const errors: string[] = [];
  const diagnostics = {
    error: (...parts: unknown[]) => void errors.push(parts.join(' ')),
    warn() {},
    info() {},
    debug() {},
  };
  count += 1;
  const process = `process-${count}`;
  const signer = new LogSigner({ storage, ...place, diagnostics, clock: systemClock, process, ...options });
  let isOpen = true;
  const close = async () => {
    if (isOpen) await storage.close();
    isOpen = false;
  };
  onTestFinished(close);
  await signer.start();

  async function write(rows: number, keep: boolean, fail: boolean) {
    await signer.storage.write(async (tx) => {
      await appendRows(tx, signer, rows, keep);
      if (fail) throw new Error('rolled back');
    });
    return signer.committed();
  }
  return {
    signer,
    storage,
    errors,
    async append(rows = 1, { keep = false } = {}) {
      const mark = await write(rows, keep, false);
      await storage.sync();
      signer.durable(mark);
    },
    async appendOnly(rows = 1) {
      await write(rows, false, false);
    },
    async fail() {
      await write(2, false, true).catch(() => undefined);
    },
    close,
  };
}

export async function appendRows(
  tx: Parameters<HeadKeeper['open']>[0],
  keeper: HeadKeeper,
  rows: number,
  keep = false,
) {
  const appending = await openAppending(tx, { keeper, clock: systemClock, process: 'test' });
  for (let i = 0; i < rows; i += 1) appending.append(ROW);
  await appending.close(keep);
}

/** What somebody else's program does who can write the file and has no key. */
export async function appendUnsigned(storage: StorageEngine, rows = 1): Promise<void> {
  await storage.write((tx) => appendRows(tx, UNSIGNED, rows));
}

/** Changes the file as its owner could with any SQLite, past the triggers. */
export async function tamper(
  storage: StorageEngine,
  ...statements: (string | [sql: string, ...params: SqlValue[]])[]
): Promise<void> {
  await storage.write((tx) =>
    pastTriggers(tx, async () => {
      for (const statement of statements) {
        const [sql, ...params] = typeof statement === 'string' ? [statement] : statement;
        await tx.run(sql, ...params);
      }
    }),
  );
}

export const headsIn = (storage: StorageEngine): Promise<HeadRow[]> =>
  storage.read((tx) => tx.all<HeadRow>('SELECT * FROM log_heads ORDER BY size DESC'));

export const rowsIn = async (storage: StorageEngine): Promise<string[]> =>
  (
    await storage.read((tx) =>
      tx.all<{ content_hash: string }>('SELECT content_hash FROM audit_rows ORDER BY position'),
    )
  ).map((row) => row.content_hash);
