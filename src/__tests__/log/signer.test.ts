import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../clock.ts';
import type { Diagnostics } from '../../diagnostics.ts';
import { appendRow, readHead } from '../../log/append.ts';
import { createSigner, type LogSigner } from '../../log/signer.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { openSqlite } from '../../storage/sqlite/engine.ts';
import { exclusively } from '../../storage/sqlite/exclusive.ts';
import { ENTER_ROW } from './log-rows.ts';

const QUIET: Diagnostics = { error() {}, warn() {}, info() {}, debug() {} };

let folder: string;
let storage: StorageEngine;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'colibri-signer-'));
  storage = await openSqlite({ path: join(folder, 'colibri.db') });
});

afterEach(async () => {
  await storage.close();
  rmSync(folder, { recursive: true, force: true });
});

function signerOn(engine: StorageEngine): LogSigner {
  return createSigner({
    storage: engine,
    dbPath: join(folder, 'colibri.db'),
    configDir: join(folder, 'config'),
    diagnostics: QUIET,
    exclusively,
  });
}

async function addRow(): Promise<void> {
  await storage.write(async (tx) => void (await appendRow(tx, await readHead(tx), ENTER_ROW, systemClock)));
}

describe('the signer', () => {
  test('a process that signs while another checks is no cut tail', async () => {
    const first = signerOn(storage);
    await first.check();
    await addRow();
    await first.sign(false);
    // The snapshot is taken, and only then the other process signs further rows.
    const late: StorageEngine = {
      ...engineOf(storage),
      read: (work) =>
        storage.read(async (tx) => {
          await addRow();
          await first.sign(false);
          return await work(tx);
        }),
    };
    const second = signerOn(late);

    await second.check();

    expect(second.state().refused).toBeUndefined();
  });

  test('rows are on the disk before they are vouched for, also those that came while signing began', async () => {
    const steps: string[] = [];
    const watched: StorageEngine = {
      ...engineOf(storage),
      read: (work) => {
        steps.push('read');
        return storage.read(work);
      },
      sync: async () => {
        steps.push('sync');
        await storage.sync();
      },
    };
    const signer = signerOn(watched);
    await signer.check();
    await addRow();

    await signer.sign(false);

    expect(steps.lastIndexOf('sync')).toBeGreaterThan(steps.lastIndexOf('read'));
  });

  test('a row that is written at once does not come before the look at an empty log', async () => {
    const signer = signerOn(storage);
    const checked = signer.check();
    await addRow();
    await checked;

    await signer.sign(false);

    expect(signer.state()).toMatchObject({ refused: undefined, signedThrough: 1 });
  });

  test('nothing new is not signed again, and the newest checkpoint stays', async () => {
    const signer = signerOn(storage);
    await signer.check();
    await addRow();
    const once = await signer.sign(false);

    expect(await signer.sign(true)).toBe(once);
    expect(signer.newest()).toBe(once);
  });
});

/** A class instance has its methods on the prototype: spreading it would lose them. */
function engineOf(engine: StorageEngine): StorageEngine {
  return {
    read: (work) => engine.read(work),
    write: (work) => engine.write(work),
    sync: () => engine.sync(),
    selfCheck: (tx) => engine.selfCheck(tx),
    close: () => engine.close(),
    facts: engine.facts,
  };
}
