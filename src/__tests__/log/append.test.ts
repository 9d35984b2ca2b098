import { describe, expect, test } from 'vitest';
import { treeRoot } from '../../integrity/tree.ts';
import { type Head, type HeadKeeper, openAppending, readHead, UNSIGNED } from '../../log/append.ts';
import { openScratch, pastTriggers } from '../storage/scratch.ts';
import { ENTER_ROW, payloads, verifiedRows } from './log-rows.ts';
import { NEW_YEAR, stillClock } from './still-clock.ts';

const DAY_MS = 86_400_000;
const iso = (ms: number) => new Date(ms).toISOString();
const headAt = (at: string): Head => ({ position: 1, chainHash: '', at });

describe('the time of the next row', () => {
  test.each<[what: string, last: string, now: number, time: string]>([
    ['now, where the last row is older', iso(NEW_YEAR), NEW_YEAR + 1, iso(NEW_YEAR + 1)],
    ['now, where the last row is of the same moment', iso(NEW_YEAR), NEW_YEAR, iso(NEW_YEAR)],
    ['the last time, where the clock is behind it', iso(NEW_YEAR), NEW_YEAR - 1, iso(NEW_YEAR)],
    ['the last time, where it is a day ahead', iso(NEW_YEAR), NEW_YEAR - DAY_MS, iso(NEW_YEAR)],
    [
      'now, where it is more than a day ahead',
      iso(NEW_YEAR),
      NEW_YEAR - DAY_MS - 1,
      iso(NEW_YEAR - DAY_MS - 1),
    ],
    ['now, in an empty log', '', NEW_YEAR, iso(NEW_YEAR)],
    ['now, behind a time that is none', 'tomorrow', NEW_YEAR, iso(NEW_YEAR)],
    ['now, behind a time of another form', '2026-01-01T00:00:01Z', NEW_YEAR, iso(NEW_YEAR)],
    [
      'now, behind a day that the month does not have',
      '2026-02-29T00:00:00.000Z',
      Date.UTC(2026, 1, 28),
      '2026-02-28T00:00:00.000Z',
    ],
  ])('is %s', async (_, last, now, time) => {
    const engine = await openScratch();
    const keeper = { ...UNSIGNED, open: () => Promise.resolve(headAt(last)) };
    const next = engine.write(async (tx) =>
      (await openAppending(tx, { keeper, clock: stillClock(now), process: 'p' })).next(),
    );

    expect((await next).at).toBe(time);
  });
});

describe('what is appended', () => {
  test('continues behind the head, each row behind the one before', async () => {
    const engine = await openScratch();

    const positions = await engine.write(async (tx) => {
      const appending = await openAppending(tx, { keeper: UNSIGNED, clock: stillClock(), process: 'p' });
      const made = [appending.append(ENTER_ROW), appending.append({ ...ENTER_ROW, sequence_no: 1 })];
      await appending.close(false);
      return made;
    });
    const more = await engine.write(async (tx) => {
      const appending = await openAppending(tx, { keeper: UNSIGNED, clock: stillClock(), process: 'q' });
      const made = appending.append(ENTER_ROW);
      await appending.close(false);
      return made;
    });

    expect([...positions, more]).toEqual([1, 2, 3]);
    expect((await verifiedRows(engine)).map(({ sequence_no, process }) => [sequence_no, process])).toEqual([
      [1, 'p'],
      [1, 'p'],
      [3, 'q'],
    ]);
  });

  test('says beforehand where it will stand and when', async () => {
    const engine = await openScratch();

    const promised = await engine.write(async (tx) => {
      const appending = await openAppending(tx, { keeper: UNSIGNED, clock: stillClock(), process: 'p' });
      appending.append(ENTER_ROW);
      const next = appending.next();
      appending.append({ ...ENTER_ROW, at: next.at });
      await appending.close(false);
      return next;
    });

    expect((await verifiedRows(engine))[1]).toMatchObject(promised);
  });

  test('is handed to the keeper with the hashes of its rows, in order', async () => {
    const engine = await openScratch();
    const kept: string[][] = [];
    const keeper: HeadKeeper = {
      open: readHead,
      close: async (_tx, _head, hashes) => void kept.push([...hashes]),
    };

    await engine.write(async (tx) => {
      const appending = await openAppending(tx, { keeper, clock: stillClock(), process: 'p' });
      for (let i = 0; i < 3; i += 1) appending.append(ENTER_ROW);
      await appending.close(false);
    });
    const stored = await engine.read((tx) =>
      tx.all<{ content_hash: string }>('SELECT content_hash FROM audit_rows ORDER BY position'),
    );

    expect(kept).toEqual([stored.map(({ content_hash }) => content_hash)]);
  });

  test('and taken back says nothing of when its actor was seen', async () => {
    const engine = await openScratch();
    const clock = stillClock();

    await engine.write(async (tx) => {
      const appending = await openAppending(tx, { keeper: UNSIGNED, clock, process: 'p' });
      const taken = appending.savepoint(async () => {
        appending.append(ENTER_ROW);
        throw new Error('no');
      });
      await expect(taken).rejects.toThrow('no');
      clock.set(NEW_YEAR + 1);
      appending.append(ENTER_ROW);
      await appending.close(false);
    });

    const seen = await engine.read((tx) => tx.all('SELECT last_seen FROM processes'));
    expect(seen).toEqual([{ last_seen: iso(NEW_YEAR + 1) }]);
  });

  test('is not signed where nothing was appended', async () => {
    const engine = await openScratch();
    const keeper: HeadKeeper = { open: readHead, close: () => Promise.reject(new Error('asked to sign')) };

    await engine.write(async (tx) =>
      (await openAppending(tx, { keeper, clock: stillClock(), process: 'p' })).close(true),
    );

    expect(await engine.read((tx) => tx.all('SELECT * FROM processes'))).toEqual([]);
  });

  test('fills a block, whose root is stored with its last row', async () => {
    const engine = await openScratch();

    await engine.write(async (tx) => {
      const appending = await openAppending(tx, { keeper: UNSIGNED, clock: stillClock(), process: 'p' });
      for (let i = 0; i < 257; i += 1) appending.append(ENTER_ROW);
      await appending.close(false);
    });
    const [hashes, blocks] = await engine.read(async (tx) => [
      await tx.all<{ content_hash: string }>('SELECT content_hash FROM audit_rows WHERE position <= 256'),
      await tx.all('SELECT block, hash FROM log_blocks'),
    ]);

    expect(blocks).toEqual([{ block: 0, hash: treeRoot(hashes.map(({ content_hash }) => content_hash)) }]);
  });

  test.each([
    ['gone', 'DELETE FROM actions WHERE position = 9'],
    ['damaged', "UPDATE actions SET content = x'00' WHERE position = 9"],
  ])('goes on past a block of which a row is %s', async (_, damage) => {
    const engine = await openScratch();
    const appendRows = (count: number) =>
      engine.write(async (tx) => {
        const appending = await openAppending(tx, { keeper: UNSIGNED, clock: stillClock(), process: 'p' });
        for (let i = 0; i < count; i += 1) appending.append(ENTER_ROW);
        await appending.close(false);
      });
    await appendRows(250);
    await engine.write((tx) => pastTriggers(tx, () => tx.run(damage)));

    await appendRows(300);

    const [last, blocks] = await engine.read(async (tx) => [
      await tx.get('SELECT max(position) AS position FROM actions'),
      await tx.all('SELECT block FROM log_blocks'),
    ]);
    expect(last).toEqual({ position: 550 });
    expect(blocks).toEqual([{ block: 1 }]);
  });

  test.each(['actions', 'action_payloads'])(
    'is an error, and no row, where a trigger swallows what goes into %s',
    async (table) => {
      const engine = await openScratch();
      const appended = engine.write(async (tx) => {
        // Planted before, it would be found by the next transaction.
        await tx.run(`CREATE TRIGGER planted BEFORE INSERT ON ${table} BEGIN SELECT RAISE(IGNORE); END`);
        const appending = await openAppending(tx, { keeper: UNSIGNED, clock: stillClock(), process: 'p' });
        const position = appending.append(ENTER_ROW);
        appending.keep('action_payloads', position, '0'.repeat(32), '{}');
        await appending.close(false);
      });

      await expect(appended).rejects.toThrow(`0 rows changed instead of 1: INSERT INTO ${table}`);
      expect(await verifiedRows(engine)).toEqual([]);
      expect(await payloads(engine)).toEqual(new Map());
    },
  );
});
