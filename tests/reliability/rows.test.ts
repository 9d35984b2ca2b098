import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

type Place = string | { readonly file: string; readonly test: string };

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const ROWS = JSON.parse(readFileSync(new URL('rows.json', import.meta.url), 'utf8')) as Record<
  string,
  readonly Place[]
>;
const ALL = Array.from({ length: 41 }, (_, i) => `R${i + 1}`);

/** Rows that a file names where the name of a test begins. What was measured for a row is no test of it. */
function rowsNamedIn(file: string): Set<string> {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const names = text.matchAll(/(?<!figure\()['"`]((?:R\d+, )*R\d+)(?::|['"`],)/g);
  return new Set([...names].flatMap(([, rows = '']) => rows.split(', ')));
}

test('the table has every row of the battery, and a test for each', () => {
  expect(Object.keys(ROWS)).toEqual(ALL);
  expect(Object.entries(ROWS).filter(([, places]) => places.length === 0)).toEqual([]);
});

test('every file of the table holds a test that names its row, or the test the table names', () => {
  const missing = Object.entries(ROWS).flatMap(([row, places]) =>
    places.filter((place) =>
      typeof place === 'string'
        ? !rowsNamedIn(place).has(row)
        : !readFileSync(join(ROOT, place.file), 'utf8').includes(place.test),
    ),
  );

  expect(missing).toEqual([]);
});

test('every test that names a row is in the table', () => {
  const files = ['src/__tests__', 'tests'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.test.ts'))
      .map((file) => join(folder, file).replaceAll('\\', '/')),
  );
  const unlisted = files.flatMap((file) =>
    [...rowsNamedIn(file)].filter((row) => !ROWS[row]?.includes(file)).map((row) => `${row} in ${file}`),
  );

  expect(files.length).toBeGreaterThan(50);
  expect(unlisted).toEqual([]);
});
