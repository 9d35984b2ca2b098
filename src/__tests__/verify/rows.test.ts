import { expect, test } from 'vitest';
import * as files from '../../verify/sources/files.ts';
import { SourceError } from '../../verify/sources/files.ts';
import { type PayloadLine, payloadLine, readPayload } from '../../verify/sources/forms.ts';
import { numberedRows, PayloadCursor } from '../../verify/sources/rows.ts';

/** A line as far as its position is concerned; 0 stands for one that is no row. */
function line(position: number): string {
  return position === 0 ? 'nothing' : `{"outcome":"ok","position":${position},"process":"p"}`;
}

async function number(claims: readonly number[], payloads: readonly (PayloadLine | undefined)[] = []) {
  const cursor = new PayloadCursor(one(payloads.map((payload) => payload && payloadLine(payload))));
  const extra: number[] = [];
  const rows = [];
  for await (const page of numberedRows(one(claims.map(line)), cursor, (after) => extra.push(after)))
    rows.push(...page);
  return { positions: rows.map(({ position }) => position), rows, extra, cursor };
}

async function* one<T>(item: T): AsyncGenerator<T> {
  yield item;
}

const COUNTED = [1, 2, 3, 4, 5, 6, 7, 8, 9];

test.each<[what: string, claims: number[], positions: number[], extra: number[]]>([
  ['all rows', COUNTED, COUNTED, []],
  ['a row that is missing', [1, 2, 4, 5, 6], [1, 2, 4, 5, 6], []],
  ['many rows that are missing', [1, 2, 900, 901], [1, 2, 900, 901], []],
  ['the first row missing', [2, 3, 4], [2, 3, 4], []],
  ['two rows swapped', [1, 3, 2, 4, 5], [1, 2, 3, 4, 5], []],
  ['a row with another number', [1, 2, 77, 4, 5], [1, 2, 3, 4, 5], []],
  ['a row that is none', [1, 2, 0, 4, 5], [1, 2, 3, 4, 5], []],
  ['a row doubled', [1, 2, 2, 3, 4], [1, 2, 3, 4], [2]],
  ['two rows doubled', [1, 2, 1, 2, 3, 4], [1, 2, 3, 4], [2, 2]],
  ['a row put in', [1, 2, 99, 3, 4], [1, 2, 3, 4], [2]],
  ['a line put in that is no row', [1, 2, 0, 3, 4], [1, 2, 3, 4], [2]],
  ['the last row with another number', [1, 2, 50], [1, 2, 50], []],
  ['no row at all', [0, 0], [1, 2], []],
])(
  'of a file with %s, each line gets the position it would have in a table',
  async (_, claims, positions, extra) => {
    const found = await number(claims);

    expect(found.positions).toEqual(positions);
    expect(found.extra).toEqual(extra);
  },
);

test('payloads lie beside the rows they belong to, and the others are named', async () => {
  const payload = (position: number) => ({ position, salt: 's', body: `b${position}` });

  const { rows, cursor } = await number(
    [1, 2, 3],
    [payload(1), undefined, payload(3), payload(2), payload(3), payload(8)],
  );

  expect(rows.map((row) => row.payload?.body)).toEqual(['b1', undefined, 'b3']);
  expect(cursor.strays).toEqual([8]);
  // Counted from 1: one that is none, and two that are misplaced.
  expect(cursor.unreadable).toEqual([2, 4, 5]);
});

test('a payload is read only as it is written', () => {
  const salt = '0123456789abcdef'.repeat(2);
  const odd = [
    { position: 7, salt, body: '{"a":"Θ\\n\\"","position":1,"salt":"x"}' },
    { position: 7, salt, body: '' },
    { position: 7, salt: 'short "', body: '","position":7,"salt":"' },
  ];

  for (const payload of odd) expect(readPayload(payloadLine(payload))).toEqual(payload);
  for (const text of [
    `{"body":"a","position":07,"salt":"${salt}"}`,
    `{"body":"a","position":0,"salt":"${salt}"}`,
    `{"body":"a", "position":7,"salt":"${salt}"}`,
    `{"body":"\\u0061","position":7,"salt":"${salt}"}`,
    `{"body":"\\ud800","position":7,"salt":"${salt}"}`,
    `{"body":"a","body":"b","position":7,"salt":"${salt}"}`,
    `{"body":"a","more":1,"position":7,"salt":"${salt}"}`,
    `{"body":"a","position":7,"salt":"${salt}"} `,
    `{"body":1,"position":7,"salt":"${salt}"}`,
    'null',
    '',
  ])
    expect(readPayload(text), text).toBeUndefined();
});

async function linesOf(chunks: readonly (string | Uint8Array)[], bytesMax?: number): Promise<unknown[]> {
  async function* stream() {
    for (const chunk of chunks) yield Buffer.from(chunk);
  }
  const lines = [];
  for await (const page of files.readLines(stream(), 'a file', bytesMax)) lines.push(...page);
  return lines;
}

test('lines are found across chunks, and one that is not UTF-8 spoils no other', async () => {
  expect(await linesOf(['a\nb', 'c\n', '\n', 'Θ\n'])).toEqual(['a', 'bc', '', 'Θ']);
  expect(await linesOf([Buffer.from([0x61, 0x0a, 0xff, 0x0a, 0x62, 0x0a])])).toEqual(['a', undefined, 'b']);
  expect(await linesOf([])).toEqual([]);
});

test('a line that does not end, or does not end in time, is refused', async () => {
  await expect(linesOf(['a\nb'])).rejects.toThrow(SourceError);
  await expect(linesOf(['aaaa', 'aaaa', 'aaaa\n'], 10)).resolves.toHaveLength(1);
  await expect(linesOf(['aaaa', 'aaaa', 'aaaa', 'a\n'], 10)).rejects.toThrow('longer than 10 bytes');
});
