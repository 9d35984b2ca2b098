import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FULL } from '../driver/tier.ts';
import { Bench, unnoticed } from '../tamper/bench.ts';
import { forbiddenValues, otherValues, spread } from '../tamper/changes.ts';
import { tablesOfSchema, WORD_PAGES } from '../tamper/schema.ts';
import { proving } from './proves.ts';

const TABLES = tablesOfSchema();
const WHOLE = TABLES.filter(({ name }) => !WORD_PAGES.includes(name));
let bench: Bench;
let tried = 0;

beforeAll(async () => {
  bench = await Bench.open();
});

afterAll(async () => {
  console.error(`R18: ${tried} values tried in ${TABLES.length} tables`);
  await bench?.close();
});

test('R18: nothing is found in what the server left, and no table of it is empty', async () => {
  const untouched = await bench.copies.after((db) =>
    db.exec('CREATE TABLE x (y); INSERT INTO x VALUES (1); DROP TABLE x'),
  );

  expect(untouched).toEqual([]);
  expect(bench.tables).toEqual(TABLES);
  expect(TABLES.filter((table) => bench.rows(table).length === 0).map(({ name }) => name)).toEqual([]);
  const actions = TABLES.find(({ name }) => name === 'actions');
  expect(actions && bench.rows(actions).length).toBeGreaterThan(300);
});

/** All of them in the full tier; otherwise a different one from column to column. */
function oneOf<T>(all: readonly T[], turn: number): readonly T[] {
  return FULL || all.length === 0 ? all : all.slice(turn % all.length).slice(0, 1);
}

describe.each(WHOLE)('R18: in $name', (table) => {
  const rows = () => {
    const all = spread(bench.rows(table));
    return FULL ? all : all.slice(all.length >> 1).slice(0, 1);
  };

  test(proving(
    ['detect.column', 'detect.names'],
    'any other value of any column is found, with table and record',
  ), async () => {
    const tamperings = rows().flatMap((row) =>
      table.stored.flatMap((column, i) => oneOf(otherValues(table, column, row), i)),
    );

    const missed = await unnoticed(table, tamperings, (tampering) => bench.tamper(table, tampering));

    tried += tamperings.length;
    expect(tamperings.length).toBeGreaterThanOrEqual(table.stored.length);
    expect(missed).toEqual([]);
  }, 300_000);

  test.runIf(table.isStrict)(
    'another type and NULL are found where STRICT and NOT NULL were taken away for a moment',
    async () => {
      const tamperings = rows().flatMap((row) =>
        table.stored.flatMap((column, i) => oneOf(forbiddenValues(table, column, row), i)),
      );

      const missed = await unnoticed(table, tamperings, ({ change }) =>
        bench.copies.afterLifting(table.name, change),
      );

      tried += tamperings.length;
      expect(missed).toEqual([]);
    },
    300_000,
  );

  test('a generated column cannot be written', async () => {
    for (const { name } of table.columns.filter(({ isGenerated }) => isGenerated)) {
      const change = bench.copies.after((db) => db.exec(`UPDATE ${table.name} SET ${name} = NULL`));
      await expect(change, name).rejects.toThrow(/generated column/);
    }
  });
});
