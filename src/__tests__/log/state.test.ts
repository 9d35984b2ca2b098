import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import {
  columnMarks,
  describeEffect,
  formatId,
  insertState,
  nextId,
  notFound,
  parseId,
  type StateTable,
  updateState,
} from '../../log/state.ts';
import { STATE_TABLES } from '../../log/tables.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { aCall } from '../middleware/a-tool.ts';
import { openScratch } from '../storage/scratch.ts';

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

const THINGS: StateTable = { name: 'things', noun: 'thing', prefix: 'X', createdBy: 'thing_make' };

interface Thing extends Record<string, string | number | null> {
  id: number;
  name: string;
  note: string | null;
  size: number;
}

async function withThings(): Promise<StorageEngine> {
  const engine = await openScratch();
  await engine.write((tx) =>
    tx.run(
      `CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT NOT NULL, note TEXT, size REAL NOT NULL,
         salt TEXT NOT NULL, position INTEGER NOT NULL) STRICT`,
    ),
  );
  return engine;
}

const stored = (engine: StorageEngine) =>
  engine.read(async (tx) =>
    (await tx.all<Thing>('SELECT * FROM things ORDER BY id')).map((row) => ({ ...row })),
  );

describe('an id', () => {
  test.each([
    [1, 'X-0001'],
    [9_999, 'X-9999'],
    [10_000, 'X-10000'],
    [Number.MAX_SAFE_INTEGER, 'X-9007199254740991'],
  ])('of %i is written %s', (id, text) => {
    expect(formatId(THINGS, id)).toBe(text);
    expect(parseId(THINGS, text)).toBe(id);
  });

  test('is read back as it was written, in every table', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...STATE_TABLES),
        fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        (table, id) => {
          expect(parseId(table, formatId(table, id))).toBe(id);
        },
      ),
    );
  });

  test('belongs to one table', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...STATE_TABLES),
        fc.constantFrom(...STATE_TABLES),
        fc.integer({ min: 1, max: 99_999 }),
        (one, other, id) => {
          fc.pre(one !== other);

          expect(parseId(other, formatId(one, id))).toBeUndefined();
        },
      ),
    );
  });

  test.each([
    '',
    'X',
    'X-',
    'X-0',
    'X-0000',
    'X-1',
    'X-00001',
    'x-0001',
    'X-0001 ',
    ' X-0001',
    'X-000１',
    'X--001',
    'X-1e+3',
    'X-0x01',
    'X-1.00',
    'X-00001.0',
    'X-9007199254740992',
    'XX-0001',
    'X_0001',
  ])('is not %j', (text) => {
    expect(parseId(THINGS, text)).toBeUndefined();
  });

  test('is any text only when that text is how it would be written', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^X-[0-9]{0,6}$/)), (text) => {
        const id = parseId(THINGS, text);

        expect(id === undefined ? text : formatId(THINGS, id)).toBe(text);
      }),
    );
  });
});

describe('nextId', () => {
  test('is 1 in an empty table and one more than the largest otherwise', async () => {
    const engine = await withThings();

    const ids = await engine.write(async (tx) => {
      const first = await nextId(tx, THINGS);
      await insertState(tx, aCall(), THINGS, { id: 41, name: 'a', note: null, size: 1 });
      return [first, await nextId(tx, THINGS)];
    });

    expect(ids).toEqual([1, 42]);
  });
});

describe('an effect', () => {
  test('of an insert is the digest of the row as it is stored, every column of it', async () => {
    const engine = await withThings();
    const call = aCall({ position: 7 });

    await engine.write((tx) => insertState(tx, call, THINGS, { id: 1, name: 'é', note: null, size: 1.5 }));
    const [row] = await stored(engine);

    expect(row).toEqual({ id: 1, name: 'é', note: null, size: 1.5, position: 7, salt: call.salt() });
    expect(call.effects).toEqual([
      {
        table: 'things',
        id: 'X-0001',
        hash: sha256(`{"id":1,"name":"é","note":null,"position":7,"salt":"${call.salt()}","size":1.5}`),
        columns: expect.stringMatching(/^[0-9a-f]{24}$/),
      },
    ]);
  });

  test('of an update is the digest of the whole row, changed or not', async () => {
    const engine = await withThings();
    await engine.write((tx) =>
      insertState(tx, aCall({ position: 2 }), THINGS, { id: 1, name: 'before', note: 'kept', size: 1 }),
    );
    const call = aCall({ position: 4 });

    const returned = await engine.write(async (tx) => {
      const before = await tx.get<Thing>('SELECT * FROM things WHERE id = 1');
      if (before === undefined) throw new Error('it is not there');
      return await updateState(tx, call, THINGS, before, { name: 'after', note: null });
    });
    const [row] = await stored(engine);

    expect(row).toMatchObject({ name: 'after', note: null, size: 1, position: 4 });
    expect({ ...returned }).toEqual(row);
    expect(call.effects).toEqual([describeEffect(THINGS, row as Thing)]);
    expect(call.effects[0]?.hash).toBe(sha256(canonicalJson(row)));
  });

  test('is one for each row, the last word of the call', async () => {
    const engine = await withThings();
    const call = aCall();

    await engine.write(async (tx) => {
      await insertState(tx, call, THINGS, { id: 1, name: 'first', note: null, size: 1 });
      await insertState(tx, call, THINGS, { id: 2, name: 'other', note: null, size: 1 });
      const before = await tx.get<Thing>('SELECT * FROM things WHERE id = 1');
      if (before !== undefined) await updateState(tx, call, THINGS, before, { name: 'last' });
    });
    const rows = await stored(engine);

    expect(call.effects).toEqual(rows.map((row) => describeEffect(THINGS, row)));
  });

  test('is none where the row has vanished', async () => {
    const engine = await withThings();
    const call = aCall();
    const before: Thing = { id: 9, name: 'never', note: null, size: 1 };

    const updated = engine.write((tx) => updateState(tx, call, THINGS, before, { name: 'x' }));

    await expect(updated).rejects.toThrow('things 9 vanished');
    expect(call.effects).toEqual([]);
  });

  test('changes when any column does', () => {
    const row: Thing = { id: 1, name: 'a', note: 'b', size: 1, position: 2, salt: '5a' };
    const known = describeEffect(THINGS, row);

    for (const column of Object.keys(row)) {
      const changed = describeEffect(THINGS, { ...row, [column]: column === 'id' ? 2 : 'changed' });

      expect(changed.hash).not.toBe(known.hash);
    }
  });

  test('does not depend on the order of the columns', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.stringMatching(/^[a-z]{1,6}$/),
          fc.oneof(fc.string(), fc.integer(), fc.constant(null)),
        ),
        (columns) => {
          const row = { ...columns, id: 1 };
          const reversed = Object.fromEntries(Object.entries(row).reverse()) as typeof row;

          expect(describeEffect(THINGS, reversed)).toEqual(describeEffect(THINGS, row));
        },
      ),
    );
  });
});

describe('the marks of the columns', () => {
  const row = { id: 1, name: 'a', salt: '5a', position: 2 };

  test('are four digits each, by name, so that a changed column can be named', () => {
    const marks = columnMarks(row);
    const changed = columnMarks({ ...row, name: 'b' });

    expect(marks).toEqual(
      ['id', 'name', 'position', 'salt'].map((column) =>
        sha256(`5a\n${column}\n${JSON.stringify(row[column as keyof typeof row])}`).slice(0, 4),
      ),
    );
    expect(marks.map((mark, i) => mark === changed[i])).toEqual([true, false, true, true]);
  });

  test('are all others under another salt', () => {
    const marks = columnMarks(row);

    expect(columnMarks({ ...row, salt: '5b' }).filter((mark, i) => mark === marks[i])).toEqual([]);
  });
});

describe('notFound', () => {
  const said = async (engine: StorageEngine, text: string) =>
    await engine.read((tx) => notFound(tx, THINGS, 'ERR_TASK_NOT_FOUND', text, 'thing_id'));

  test('names the nearest that exist', async () => {
    const engine = await withThings();
    await engine.write(async (tx) => {
      for (const id of [1, 2, 3, 4, 8, 9, 10]) {
        await insertState(tx, aCall(), THINGS, { id, name: 'a', note: null, size: 1 });
      }
    });

    const error = await said(engine, 'X-0006');

    expect(error.code).toBe('ERR_TASK_NOT_FOUND');
    expect(error.message).toContain('no thing "X-0006" (thing_id)');
    expect([...(error.details.nearest as string[])].sort()).toEqual([
      'X-0002',
      'X-0003',
      'X-0004',
      'X-0008',
      'X-0009',
    ]);
  });

  test.each(['nonsense', '', `X-${'9'.repeat(30)}`, "X-1'; DROP TABLE things"])(
    'survives %j',
    async (text) => {
      const engine = await withThings();

      const error = await said(engine, text);

      expect(error.message).toContain('There is none yet: thing_make makes one.');
      expect(error.details.nearest).toEqual([]);
    },
  );
});
