import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import {
  formatId,
  parseId,
  rowHash,
  rowText,
  STATE_TABLES,
  type StateTable,
  TASKS,
} from '../../log/tables.ts';
import { openScratch } from '../storage/scratch.ts';

const sha256 = (text: string) => createHash('sha256').update(text, 'utf8').digest('hex');

const each = test.each(STATE_TABLES.map((table) => [table.name, table] as const));

/** A row in which every column has another value. */
const aRow = (table: StateTable): Record<string, string | number> =>
  Object.fromEntries([...table.facts, ...table.derived].map((column, i) => [column, i]));

describe('an id', () => {
  test.each([
    [1, 'T-0001'],
    [9_999, 'T-9999'],
    [10_000, 'T-10000'],
    [Number.MAX_SAFE_INTEGER, 'T-9007199254740991'],
  ])('of %i is written %s', (id, text) => {
    expect(formatId(TASKS, id)).toBe(text);
    expect(parseId(TASKS, text)).toBe(id);
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
    'T',
    'T-',
    'T-0',
    'T-0000',
    'T-1',
    'T-00001',
    't-0001',
    'T-0001 ',
    ' T-0001',
    'T-000１',
    'T--001',
    'T-1e+3',
    'T-0x01',
    'T-1.00',
    'T-00001.0',
    'T-9007199254740992',
    'TT-0001',
    'T_0001',
  ])('is not %j', (text) => {
    expect(parseId(TASKS, text)).toBeUndefined();
  });

  test('is any text only when that text is how it would be written', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^T-[0-9]{0,6}$/)), (text) => {
        const id = parseId(TASKS, text);

        expect(id === undefined ? text : formatId(TASKS, id)).toBe(text);
      }),
    );
  });
});

describe('what is hashed of a row', () => {
  each('of %s is the canonical JSON of its facts and the name of its table', (_, table) => {
    const text = rowText(table, aRow(table));

    expect(canonicalJson(JSON.parse(text))).toBe(text);
    expect(Object.keys(JSON.parse(text) as object).sort()).toEqual([...table.facts, 'table'].sort());
    expect(JSON.parse(text)).toMatchObject({ table: table.name });
    expect(rowHash(table, aRow(table))).toBe(sha256(text));
  });

  each('of %s changes with every fact and with no derived column', (_, table) => {
    const row = aRow(table);
    const known = rowHash(table, row);

    for (const column of table.facts)
      expect(rowHash(table, { ...row, [column]: 'other' }), column).not.toBe(known);
    for (const column of table.derived)
      expect(rowHash(table, { ...row, [column]: 'other' }), column).toBe(known);
  });

  each('of %s does not depend on the order of its columns', (_, table) => {
    const row = aRow(table);
    const reversed = Object.fromEntries(Object.entries(row).reverse());

    expect(rowHash(table, reversed)).toBe(rowHash(table, row));
  });
});

describe('the tables of state and the schema', () => {
  each('of %s agree: every stored column is a fact or derived, and not both', async (_, table) => {
    const engine = await openScratch();

    const columns = await engine.read((tx) =>
      tx.all<{ name: string; hidden: number }>(
        `SELECT name, hidden FROM pragma_table_xinfo('${table.name}')`,
      ),
    );
    const stored = columns.filter(({ hidden }) => hidden === 0).map(({ name }) => name);

    expect([...table.facts, ...table.derived].sort()).toEqual(stored.sort());
  });

  each('of %s: texts are facts, and facts are in the order of canonical JSON', (_, table) => {
    expect(table.facts).toEqual([...table.facts].sort());
    expect(table.facts).toEqual(expect.arrayContaining([...table.texts, 'id', 'position']));
  });

  each('of %s: a table is append-only exactly where the schema refuses a change', async (_, table) => {
    const engine = await openScratch();

    const triggers = await engine.read((tx) =>
      tx.all("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name = ?", `${table.name}_no_update`),
    );

    expect(triggers).toHaveLength(table.appendOnly ? 1 : 0);
  });
});
