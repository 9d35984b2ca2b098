import { expect, test } from 'vitest';
import { sha256Hex } from '../../integrity/digest.ts';
import { rowText, SESSION_RECORDS, TASKS, THOUGHTS } from '../../log/tables.ts';
import type { Finding } from '../../verify/finding.ts';
import { textLine } from '../../verify/sources/forms.ts';
import { HeldState, readTexts } from '../../verify/sources/held.ts';

async function* pages<T>(...lists: T[][]): AsyncGenerator<T[]> {
  yield* lists;
}

async function texts(...lines: string[]) {
  const faults: Finding[] = [];
  const found = await readTexts(pages(lines.slice(0, 3), lines.slice(3)), faults);
  return { found, faults: faults.map(({ kind }) => kind) };
}

async function held(...lines: string[]) {
  const faults: Finding[] = [];
  const state = new HeldState();
  await state.read(pages(lines), faults);
  return { state, faults: faults.map(({ kind }) => kind) };
}

const TEXTS = Array.from({ length: 1_000 }, (_, i) => ({
  digest: sha256Hex(`${i}`),
  id: 8 + i,
  salt: 's',
  text: `Θ ${i}`,
}));

test('each of many texts is read', async () => {
  const { found, faults } = await texts(...TEXTS.map(textLine));

  expect(TEXTS.filter(({ id, text }) => found.get(id)?.text !== text)).toEqual([]);
  expect(found.size).toBe(1_000);
  expect(faults).toEqual([]);
});

test('a text that is not written as texts are is named and not read', async () => {
  const [text] = TEXTS;
  const line = textLine(text ?? { digest: '', id: 0, salt: '', text: '' });

  for (const odd of [
    line.replace(',', ', '),
    line.replace('"text"', '"more":1,"text"'),
    line.slice(0, -1),
    'x',
  ])
    expect(await texts(odd), odd).toEqual({
      found: new Map(),
      faults: ['malformed'],
    });
});

test('texts in another order, or appears twice, are named', async () => {
  const [a = '', b = '', c = ''] = TEXTS.map(textLine);

  for (const lines of [
    [a, c, b],
    [b, a, c],
    [a, a, b, c],
  ])
    expect((await texts(...lines)).faults).toEqual(['malformed']);
});

const LINES = [
  rowText(TASKS, { id: 1, labels: '["\\",\\"id\\":9,"]', project: ',"id":9,' }),
  rowText(TASKS, { id: 3, project: '"table":"thoughts"' }),
  rowText(THOUGHTS, { id: 1 }),
  rowText(SESSION_RECORDS, { id: 1 }),
];

test('a row of state is found by its table and its id, whatever its columns say', async () => {
  const { state, faults } = await held(...LINES);

  expect(state.find(TASKS, [1, 2, 3])).toEqual(
    new Map([
      [1, LINES[0]],
      [3, LINES[1]],
    ]),
  );
  expect(state.find(THOUGHTS, [1])).toEqual(new Map([[1, LINES[2]]]));
  expect(state.unasked(SESSION_RECORDS)).toEqual([1]);
  expect(state.unasked(TASKS)).toEqual([]);
  expect(faults).toEqual([]);
});

test.each<[what: string, lines: (string | undefined)[], kind: string]>([
  ['appears twice', [LINES[0], LINES[0]], 'stray'],
  ['behind a later one', [LINES[1], LINES[0]], 'stray'],
  ['of an earlier table', [LINES[2], LINES[0]], 'stray'],
  ['of no table', [LINES[0]?.replace('"tasks"', '"texts"')], 'malformed'],
  ['without an id', [LINES[0]?.replace('"id":1', '"id":null')], 'malformed'],
  ['nothing', [''], 'malformed'],
])('a row that is %s is named once', async (_, lines, kind) => {
  const { faults } = await held(...lines.map((line) => line ?? ''));

  expect(faults).toEqual([kind]);
});
