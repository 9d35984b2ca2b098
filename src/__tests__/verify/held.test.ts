import { expect, test } from 'vitest';
import { sha256Hex } from '../../integrity/digest.ts';
import { rowText, SESSION_RECORDS, TASKS, THOUGHTS } from '../../log/tables.ts';
import { textLine } from '../../verify/sources/forms.ts';
import { HeldState, HeldTexts } from '../../verify/sources/held.ts';

function held(lines: readonly string[]): Uint8Array {
  return Buffer.from(lines.map((line) => `${line}\n`).join(''));
}

const TEXTS = Array.from({ length: 1_000 }, (_, i) => ({
  digest: sha256Hex(`${i}`),
  salt: 's',
  text: `Θ ${i}`,
})).sort((a, b) => (a.digest < b.digest ? -1 : 1));

test('each of many texts is found by its digest', () => {
  const texts = new HeldTexts(held(TEXTS.map(textLine)));

  const found = texts.find(TEXTS.map(({ digest }) => digest));

  expect(TEXTS.filter(({ digest, text }) => found.get(digest)?.text !== text)).toEqual([]);
  expect(texts.length).toBe(1_000);
  expect(texts.find([sha256Hex('another'), '', 'x'])).toEqual(new Map());
  expect(new HeldTexts(held([])).find([sha256Hex('0')])).toEqual(new Map());
});

test('a text that is not written as texts are is not found', () => {
  const [text] = TEXTS;
  const line = textLine(text ?? { digest: '', salt: '', text: '' });

  for (const odd of [
    line.replace(',', ', '),
    line.replace('"text"', '"more":1,"text"'),
    line.slice(0, -1),
    'x',
  ])
    expect(new HeldTexts(held([odd])).find([text?.digest ?? '']), odd).toEqual(new Map());
});

test('of texts in another order at least one is not found', () => {
  const lines = TEXTS.slice(0, 9).map(textLine);
  for (let i = 0; i + 1 < lines.length; i += 1) {
    const [one = '', other = ''] = lines.slice(i, i + 2);
    const texts = new HeldTexts(held(lines.with(i, other).with(i + 1, one)));

    expect(texts.find(TEXTS.slice(0, 9).map(({ digest }) => digest)).size).toBeLessThan(9);
  }
});

const LINES = [
  rowText(TASKS, { id: 1, labels: '["\\",\\"id\\":9,"]', project: ',"id":9,' }),
  rowText(TASKS, { id: 3, project: '"table":"thoughts"' }),
  rowText(THOUGHTS, { id: 1 }),
  rowText(SESSION_RECORDS, { id: 1 }),
];

test('a row of state is found by its table and its id, whatever its columns say', () => {
  const state = new HeldState(held(LINES));

  expect(state.find(TASKS, [1, 2, 3])).toEqual(
    new Map([
      [1, LINES[0]],
      [3, LINES[1]],
    ]),
  );
  expect(state.find(THOUGHTS, [1])).toEqual(new Map([[1, LINES[2]]]));
  expect(state.unasked(SESSION_RECORDS)).toEqual([1]);
  expect(state.unasked(TASKS)).toEqual([]);
  expect(state.faults).toEqual([]);
});

test.each<[what: string, lines: (string | undefined)[], kind: string]>([
  ['there twice', [LINES[0], LINES[0]], 'stray'],
  ['behind a later one', [LINES[1], LINES[0]], 'stray'],
  ['of an earlier table', [LINES[2], LINES[0]], 'stray'],
  ['of no table', [LINES[0]?.replace('"tasks"', '"texts"')], 'malformed'],
  ['without an id', [LINES[0]?.replace('"id":1', '"id":null')], 'malformed'],
  ['nothing', [''], 'malformed'],
])('a row that is %s is named once', (_, lines, kind) => {
  const { faults } = new HeldState(held(lines.map((line) => line ?? '')));

  expect(faults.map((finding) => finding.kind)).toEqual([kind]);
});
