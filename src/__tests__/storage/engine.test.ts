import { existsSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { ColibriError } from '../../errors.ts';
import { LIMITS } from '../../limits.ts';
import type { Reader, StorageEngine, Transaction } from '../../storage/engine.ts';
import { createNoStorage } from '../../storage/engine.ts';
import { openSqlite } from '../../storage/sqlite/engine.ts';
import { SCHEMA_VERSION } from '../../storage/sqlite/schema.ts';
import { trials } from '../tasks/trials.ts';
import { availableDrivers } from './drivers.ts';
import { openScratch, scratchFolder, scratchPath } from './scratch.ts';

// Any table will do; this one is the smallest.
const ADD = 'INSERT INTO open_calls (position, process) VALUES (?, ?)';
const add = (tx: Transaction, position: number, process = 'x') => tx.run(ADD, position, process);

/** What a transaction may be asked to do. */
const STEPS = ['insert', 'change', 'run', 'read'] as const;
const STEP = fc.constantFrom(...STEPS);

/** Takes a step. Every row gets the position behind those that were seen, which a read must find. */
async function take(step: (typeof STEPS)[number], tx: Transaction, seen: number[]): Promise<void> {
  if (step === 'read') return expect(await positionsIn(tx)).toEqual(seen);
  const position = (seen.at(-1) ?? 0) + 1;
  seen.push(position);
  if (step === 'insert') await tx.insert('open_calls', ['position', 'process'], [[position, 'p']]);
  else await tx[step](ADD, position, 'p');
}

const positionsIn = async (tx: Reader): Promise<unknown[]> =>
  (await tx.lists('SELECT position FROM open_calls ORDER BY position')).flat();

const count = async (tx: Reader): Promise<number> =>
  (await tx.get<{ n: number }>('SELECT count(*) AS n FROM open_calls'))?.n ?? -1;

const counted = (engine: StorageEngine): Promise<number> => engine.read(count);

function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe.each(await availableDrivers())('a file through %s', (_, driver) => {
  const openFile = (path?: string) => openScratch(path, { driver });

  describe('write', () => {
    test('commits when the work resolves, and gives back its value', async () => {
      const path = scratchPath();
      const engine = await openFile(path);

      const value = await engine.write(async (tx) => {
        await add(tx, 1);
        return 'done';
      });
      await engine.close();

      expect(value).toBe('done');
      expect(await counted(await openFile(path))).toBe(1);
    });

    test('takes everything back when the work rejects, and passes the error on', async () => {
      const engine = await openFile();
      const error = new ColibriError('ERR_TASK_NOT_FOUND', 'No.');

      const failed = engine.write(async (tx) => {
        await add(tx, 1);
        await add(tx, 2);
        throw error;
      });

      await expect(failed).rejects.toBe(error);
      expect(await counted(engine)).toBe(0);
    });

    test('takes everything back when a statement fails half-way', async () => {
      const engine = await openFile();
      await engine.write((tx) => add(tx, 1));

      const failed = engine.write(async (tx) => {
        await add(tx, 2);
        await add(tx, 1);
      });

      await expect(failed).rejects.toThrow(/UNIQUE/);
      expect(await counted(engine)).toBe(1);
    });

    test('goes on after a failure', async () => {
      const engine = await openFile();
      await engine.write(() => Promise.reject(new Error('no'))).catch(() => undefined);

      await engine.write((tx) => add(tx, 1));

      expect(await counted(engine)).toBe(1);
    });

    test('runs one at a time, in the order asked', async () => {
      const engine = await openFile();
      const order: string[] = [];

      await Promise.all(
        ['a', 'b', 'c'].map((name) =>
          engine.write(async () => {
            order.push(`${name} begins`);
            await sleep(2);
            order.push(`${name} ends`);
          }),
        ),
      );

      expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
    });

    test('sees its own rows before they are committed, and nobody else does', async () => {
      const engine = await openFile();

      const seen = await engine.write(async (tx) => {
        await add(tx, 1);
        return { inside: await count(tx), outside: await counted(engine) };
      });

      expect(seen).toEqual({ inside: 1, outside: 0 });
    });
  });

  describe('read', () => {
    test('sees one moment, whatever is written meanwhile, and stops no writer', async () => {
      const engine = await openFile();
      const [begun, written] = [gate(), gate()];

      const reading = engine.read(async (tx) => {
        const before = await count(tx);
        begun.open();
        await written.opened;
        return [before, await count(tx)];
      });
      await begun.opened;
      await engine.write((tx) => add(tx, 1));
      written.open();

      expect(await reading).toEqual([0, 0]);
      expect(await counted(engine)).toBe(1);
    });

    test('takes its moment when it begins, not at its first statement', async () => {
      const engine = await openFile();
      const { opened, open } = gate();
      const begun = gate();

      const reading = engine.read(async (tx) => {
        begun.open();
        await opened;
        return await count(tx);
      });
      await begun.opened;
      await engine.write((tx) => add(tx, 1));
      open();

      expect(await reading).toBe(0);
    });

    test('does not wait for a writer that is not done', async () => {
      const engine = await openFile();
      const { opened, open } = gate();

      const writing = engine.write(async (tx) => {
        await add(tx, 1);
        await opened;
      });
      const seen = await counted(engine);
      open();
      await writing;

      expect(seen).toBe(0);
    });

    test('cannot write', async () => {
      const engine = await openFile();

      const written = engine.read((tx) => add(tx as Transaction, 1));

      await expect(written).rejects.toThrow();
      expect(await counted(engine)).toBe(0);
    });

    test('may be many at once, and after a failed one', async () => {
      const engine = await openFile();
      await expect(engine.read(() => Promise.reject(new Error('no')))).rejects.toThrow('no');

      const seen = await Promise.all(Array.from({ length: 10 }, () => counted(engine)));

      expect(seen).toEqual(Array.from({ length: 10 }, () => 0));
    });
  });

  describe('two engines on one file', () => {
    test('lose no write to each other', async () => {
      const path = scratchPath();
      const engines = [await openFile(path), await openFile(path)];
      await engines[0]?.write((tx) => add(tx, 1, '0'));
      const increment = async (tx: Transaction) => {
        const row = await tx.get<{ process: string }>('SELECT process FROM open_calls');
        await sleep(0);
        await tx.run('UPDATE open_calls SET process = ?', String(Number(row?.process) + 1));
      };

      await Promise.all(
        engines.flatMap((engine) => Array.from({ length: 20 }, () => engine.write(increment))),
      );
      const row = await engines[1]?.read((tx) => tx.get('SELECT process FROM open_calls'));

      expect(row).toMatchObject({ process: '40' });
    });

    test('wait for each other instead of failing', async () => {
      const path = scratchPath();
      const [one, other] = [await openFile(path), await openFile(path)];
      const { opened, open } = gate();
      const begun = gate();

      const first = one.write(async (tx) => {
        begun.open();
        await opened;
        await add(tx, 1);
      });
      await begun.opened;
      const second = other.write(count);
      await sleep(30);
      open();
      await first;

      expect(await second).toBe(1);
    });

    test('see each other’s rows as soon as they are committed', async () => {
      const path = scratchPath();
      const [one, other] = [await openFile(path), await openFile(path)];

      await one.write((tx) => add(tx, 1));

      expect(await counted(other)).toBe(1);
    });

    test('may be closed one before the other', async () => {
      const path = scratchPath();
      const [one, other] = [await openFile(path), await openFile(path)];
      await one.write((tx) => add(tx, 1));

      await one.close();
      await other.write((tx) => add(tx, 2));
      await other.sync();

      expect(await counted(other)).toBe(2);
    });
  });

  describe('sync', () => {
    test('resolves for everybody who asks, together or one after the other', async () => {
      const engine = await openFile();
      await engine.write((tx) => add(tx, 1));

      await Promise.all([engine.sync(), engine.sync(), engine.sync()]);
      await engine.write((tx) => add(tx, 2));

      await expect(Promise.all([engine.sync(), engine.sync()])).resolves.toEqual([undefined, undefined]);
    });

    test('has something to sync in a file that was only opened', async () => {
      const path = scratchPath();
      await (await openSqlite({ path, driver })).close();
      const engine = await openFile(path);

      await expect(engine.sync()).resolves.toBeUndefined();
    });

    test('that fails leaves everybody uncertain, and tells the owner', async () => {
      const path = scratchPath();
      const onUncertain = vi.fn();
      const engine = await openScratch(path, { driver, onUncertain });
      rmSync(`${path}-wal`);

      const ends = await Promise.allSettled([engine.sync(), engine.sync()]);

      expect(ends.map((end) => end.status === 'rejected' && (end.reason as ColibriError).code)).toEqual([
        'ERR_STORAGE_UNCERTAIN',
        'ERR_STORAGE_UNCERTAIN',
      ]);
      expect(onUncertain).toHaveBeenCalledTimes(1);
      expect(onUncertain.mock.calls[0]?.[0]).toBeInstanceOf(ColibriError);
    });
  });

  describe('a full disk', () => {
    test('is ERR_STORAGE_FULL with nothing written; reading goes on, and writing when there is room', async () => {
      const engine = await openFile();
      await engine.write(async (tx) => {
        const row = await tx.get<{ page_count: number }>('PRAGMA page_count');
        await tx.get(`PRAGMA max_page_count = ${row?.page_count}`);
      });

      const failed = engine.write(async (tx) => {
        await add(tx, 1);
        await add(tx, 2, 'x'.repeat(200_000));
      });

      await expect(failed).rejects.toMatchObject({ code: 'ERR_STORAGE_FULL' });
      expect(await counted(engine)).toBe(0);
      await engine.write((tx) => tx.get('PRAGMA max_page_count = 1000000'));
      await engine.write((tx) => add(tx, 2, 'x'.repeat(200_000)));
      expect(await counted(engine)).toBe(1);
    });
  });

  describe('a savepoint', () => {
    test('takes back what was written in it, and no more; its error is passed on', async () => {
      const engine = await openFile();

      const kept = await engine.write(async (tx) => {
        await add(tx, 1);
        await expect(
          tx.savepoint(async () => {
            await add(tx, 2);
            await tx.savepoint(() => add(tx, 3));
            throw new Error('as planned');
          }),
        ).rejects.toThrow('as planned');
        return await tx.savepoint(async () => {
          await add(tx, 4);
          return 'kept';
        });
      });

      expect(kept).toBe('kept');
      const rows = await engine.read((tx) => tx.lists('SELECT position FROM open_calls ORDER BY position'));
      expect(rows).toEqual([[1], [4]]);
    });

    test('takes back what it wrote, whether that was sent to SQLite or still waited', async () => {
      const parts = fc.array(fc.tuple(fc.boolean(), fc.array(STEP, { maxLength: 5 })), { maxLength: 6 });
      const property = fc.asyncProperty(parts, async (given) => {
        const engine = await openFile(':memory:');
        let kept: number[] = [];

        await engine.write(async (tx) => {
          for (const [fails, steps] of given) {
            const seen = [...kept];
            const work = tx.savepoint(async () => {
              for (const step of steps) await take(step, tx, seen);
              if (fails) throw new Error('as planned');
            });
            await (fails ? expect(work).rejects.toThrow('as planned') : work);
            if (!fails) kept = seen;
          }
        });

        expect(await engine.read(positionsIn)).toEqual(kept);
        await engine.close();
      });
      await fc.assert(property, trials('savepoints', 200));
    });

    test('a row that waits and cannot be stored takes the whole transaction with it', async () => {
      const engine = await openFile();
      await engine.write((tx) => add(tx, 1));

      const failed = engine.write(async (tx) => {
        await tx.savepoint(() => tx.insert('open_calls', ['position', 'process'], [[1, 'p']]));
        await tx.savepoint(() => positionsIn(tx)).catch(() => undefined);
        await tx.savepoint(() => tx.insert('open_calls', ['position', 'process'], [[2, 'p']]));
      });

      await expect(failed).rejects.toThrow('open_calls.position');
      expect(await engine.read(positionsIn)).toEqual([1]);
    });

    test('of a disk that is full takes the whole transaction with it, whoever catches the error', async () => {
      const engine = await openFile();
      await engine.write(async (tx) => {
        const row = await tx.get<{ page_count: number }>('PRAGMA page_count');
        await tx.get(`PRAGMA max_page_count = ${row?.page_count}`);
      });
      let after: unknown;

      const failed = engine.write(async (tx) => {
        await add(tx, 1);
        await tx.savepoint(() => add(tx, 2, 'x'.repeat(200_000))).catch(() => undefined);
        after = await add(tx, 3).catch((error: unknown) => error);
      });

      await expect(failed).rejects.toMatchObject({ code: 'ERR_STORAGE_FULL' });
      expect(after).toBeInstanceOf(Error);
      expect(await counted(engine)).toBe(0);
      await engine.write((tx) => tx.get('PRAGMA max_page_count = 1000000'));
      await engine.write((tx) => add(tx, 4));
      expect(await counted(engine)).toBe(1);
    });
  });

  describe('the log', () => {
    /** One commit of a megabyte, and the look that follows it. */
    const writeMegabyte = async (engine: StorageEngine, position: number) => {
      await engine.write((tx) => add(tx, position, 'x'.repeat(1_000_000)));
      await engine.sync();
    };

    test('is merged once it is long and nobody writes for a moment', async () => {
      const path = scratchPath();
      const engine = await openFile(path);
      for (let i = 1; i <= 7; i += 1) await writeMegabyte(engine, i);
      await engine.write((tx) => add(tx, 8));

      await vi.waitFor(() => expect(statSync(path).size).toBeGreaterThan(7_000_000), 10_000);

      expect(await counted(engine)).toBe(8);
    });

    test('is merged by a commit when it is overdue, and written over then', async () => {
      const path = scratchPath();
      const engine = await openFile(path);
      let longest = 0;
      for (let i = 1; i <= 60; i += 1) {
        await writeMegabyte(engine, i);
        longest = Math.max(longest, statSync(`${path}-wal`).size);
      }

      expect(longest).toBeLessThan(LIMITS.logBytesOverdue + 2_000_000);
      expect(await counted(engine)).toBe(60);
    });

    test('is merged by a commit while another process is busy', async () => {
      const path = scratchPath();
      const [engine, other] = [await openFile(path), await openFile(path)];
      let longest = 0;
      for (let i = 1; i <= 40; i += 2) {
        await writeMegabyte(engine, i);
        await writeMegabyte(other, i + 1);
        longest = Math.max(longest, statSync(`${path}-wal`).size);
      }

      expect(longest).toBeLessThan(LIMITS.logBytesMax + 3_000_000);
      expect(await counted(engine)).toBe(40);
    });
  });

  describe('close', () => {
    test('waits for the write that runs, and merges the log into the one file', async () => {
      const path = scratchPath();
      const engine = await openFile(path);
      const writing = engine.write(async (tx) => {
        await sleep(10);
        await add(tx, 1);
      });

      await engine.close();
      await writing;

      expect(existsSync(`${path}-wal`)).toBe(false);
      expect(await counted(await openFile(path))).toBe(1);
    });

    test('waits for whoever waits for the disk', async () => {
      const onUncertain = vi.fn();
      const engine = await openScratch(scratchPath(), { driver, onUncertain });
      await engine.write((tx) => add(tx, 1));
      const running = engine.sync();
      await Promise.all([undefined, undefined]);
      const queued = engine.sync();

      await engine.close();

      await expect(Promise.all([running, queued])).resolves.toEqual([undefined, undefined]);
      expect(onUncertain).not.toHaveBeenCalled();
    });

    test('may be asked for twice', async () => {
      const engine = await openFile();

      await engine.close();

      await expect(engine.close()).resolves.toBeUndefined();
    });
  });

  test('facts say what is open', async () => {
    const path = scratchPath();

    const { facts } = await openFile(path);

    expect(facts).toEqual({
      path,
      schemaVersion: SCHEMA_VERSION,
      engine: `SQLite ${driver.sqliteVersion} (${driver.name})`,
      journal: 'wal',
      writable: true,
    });
    expect(Object.isFrozen(facts)).toBe(true);
  });

  describe('where the file cannot be written', () => {
    /** The tests may run as root, whom no permission stops; so the driver refuses in its place. */
    const refusing = {
      ...driver,
      open(path: string, options: { readonly readOnly: boolean }) {
        if (!options.readOnly) throw Object.assign(new Error('not yours'), { code: 'EACCES' });
        return driver.open(path, options);
      },
    };

    test('reading is enough for whoever said so', async () => {
      const path = scratchPath();
      await (await openFile(path)).write((tx) => add(tx, 1));

      const engine = await openScratch(path, { driver: refusing, readingIsEnough: true });

      expect(engine.facts).toMatchObject({ writable: false, schemaVersion: SCHEMA_VERSION });
      expect(await counted(engine)).toBe(1);
      await expect(engine.write((tx) => add(tx, 2))).rejects.toThrow();
      expect(await counted(engine)).toBe(1);
    });

    test('it is not opened for anybody else', async () => {
      const path = scratchPath();
      await openFile(path);

      await expect(openScratch(path, { driver: refusing })).rejects.toThrow('not yours');
    });
  });

  describe('in memory', () => {
    test('everything works and nothing is on the disk', async () => {
      const folder = scratchFolder();
      const engine = await openScratch(':memory:', { driver });

      await engine.write((tx) => add(tx, 1));
      await engine.sync();

      expect(await counted(engine)).toBe(1);
      expect(engine.facts).toMatchObject({ path: ':memory:', journal: 'memory', writable: true });
      expect(existsSync(join(folder, ':memory:'))).toBe(false);
      expect(existsSync(':memory:')).toBe(false);
    });

    test('a failed write is taken back', async () => {
      const engine = await openScratch(':memory:', { driver });

      await engine
        .write(async (tx) => {
          await add(tx, 1);
          throw new Error('no');
        })
        .catch(() => undefined);

      expect(await counted(engine)).toBe(0);
    });
  });
});

describe('no storage', () => {
  test('runs work that asks for nothing', async () => {
    const storage = createNoStorage();

    expect(await storage.read(async () => 1)).toBe(1);
    expect(await storage.write((tx) => tx.savepoint(async () => 2))).toBe(2);
    await expect(storage.sync()).resolves.toBeUndefined();
    await expect(storage.close()).resolves.toBeUndefined();
  });

  test('refuses every statement', async () => {
    const storage = createNoStorage();

    await expect(storage.read((tx) => tx.get('SELECT 1'))).rejects.toThrow('no database');
    await expect(storage.read((tx) => tx.all('SELECT 1'))).rejects.toThrow('no database');
    await expect(storage.write((tx) => tx.run('SELECT 1'))).rejects.toThrow('no database');
  });
});
