import { expect, test } from 'vitest';
import { seededRandom } from '../driver/random.ts';
import { FULL } from '../driver/tier.ts';
import { Bench } from '../tamper/bench.ts';
import { findingsAt } from '../tamper/copies.ts';
import { dumpOf } from '../tamper/dump.ts';
import { tablesOfSchema } from '../tamper/schema.ts';
import { proving } from './proves.ts';

const FLIPS = FULL ? 1_500 : 40;
const TABLES = tablesOfSchema();

/** What a reader gets: every value, or that the file cannot be read. */
type Seen = ReadonlyMap<string, string> | 'unreadable';

test(proving(
  'detect.bits',
  `R14: of ${FLIPS} flipped bits anywhere in the closed file, none changes a value unreported`,
), async () => {
  const random = seededRandom('R14');
  const bench = await Bench.open();
  const { length } = bench.copies.bytes;
  const places = Array.from(
    { length: FLIPS },
    () => [random.between(0, length - 1), random.between(0, 7)] as const,
  );

  const { missed, ...counts } = await flipEach(bench.copies, places);
  await bench.close();

  console.error(`R14: ${JSON.stringify({ bytes: length, flips: FLIPS, ...counts, missed })}`);
  expect(missed).toEqual([]);
}, 600_000);

test(proving(
  'detect.bits',
  'R14: of all bits that SQLite keeps before a row of the log, and of its page, none changes a value unreported',
), async () => {
  const bench = await Bench.open();
  const { bytes } = bench.copies;
  // The last row of a block, and of the log, are where a walk that goes back would never end.
  const last = Number(bench.rows(tableOf(bench, 'actions')).at(-1)?.position);
  const rows = FULL ? [100, 101, 200, 255, 256, 257, 290, last] : [256];
  const places = rows.flatMap((position) => {
    const row = startOfRow(bytes, position);
    const page = row - (row % PAGE_BYTES);
    return [
      ...bitsOf(row - CELL_START_BYTES, CELL_START_BYTES),
      ...bitsOf(page, FULL ? PAGE_START_BYTES : 0),
    ];
  });

  const { missed, ...counts } = await flipEach(bench.copies, places);
  await bench.close();

  console.error(`R14: ${JSON.stringify({ flips: places.length, ...counts, missed })}`);
  expect(counts.reported + counts.refused).toBeGreaterThan(places.length / 2);
  expect(missed).toEqual([]);
}, 600_000);

test.each([
  ['actions', 100],
  ['actions', 256],
  ['action_payloads', 101],
] as const)(
  proving(
    'detect.inserted',
    'R19: a second row of %s at %i or behind, put where no search comes upon it, is found',
  ),
  async (name, from) => {
    const bench = await Bench.open();
    const { bytes } = bench.copies;
    const found = bench
      .rows(tableOf(bench, name))
      .map((row) => ({
        position: Number(row.position),
        start: name === 'actions' ? startOfRow(bytes, Number(row.position)) : bytes.indexOf(String(row.salt)),
      }))
      .find(({ position, start }) => position >= from && roomIn(bytes, start) > CELL_START_BYTES);
    const { position, start } = found ?? { position: 0, start: 0 };
    const forged = withSecondRow(bytes, start, position, name === 'actions' ? 4 : 3);

    const findings = await bench.copies.ofBytes(forged, findingsAt);
    await bench.close();

    expect(findings).toContainEqual(expect.objectContaining({ table: name }));
  },
);

/** Adds a row of nothing but its position behind the one that has it, as a page of SQLite holds it. */
/** Bytes between the pointers to the cells of a page and the cells. */
function roomIn(bytes: Buffer, row: number): number {
  const page = row - (row % PAGE_BYTES);
  return bytes.readUInt16BE(page + 5) - 8 - 2 * bytes.readUInt16BE(page + 3);
}

function withSecondRow(bytes: Buffer, row: number, position: number, columns: number): Buffer {
  const forged = Buffer.from(bytes);
  const page = forged.subarray(row - (row % PAGE_BYTES), row - (row % PAGE_BYTES) + PAGE_BYTES);
  const key = position < 128 ? [position] : [0x80 | (position >> 7), position & 127];
  const cell = Buffer.from([columns + 1, ...key, columns + 1, ...Array<number>(columns).fill(0)]);
  const [cells, content] = [page.readUInt16BE(3), page.readUInt16BE(5) - cell.length];
  const pointers = Array.from({ length: cells }, (_, i) => page.readUInt16BE(8 + 2 * i));
  const index = pointers.findIndex(
    (at) => at < row % PAGE_BYTES && (row % PAGE_BYTES) - at <= CELL_START_BYTES,
  );
  expect(index).toBeGreaterThanOrEqual(0);
  expect(content).toBeGreaterThan(8 + 2 * (cells + 1));
  cell.copy(page, content);
  for (const [i, at] of pointers.toSpliced(index + 1, 0, content).entries())
    page.writeUInt16BE(at, 8 + 2 * i);
  page.writeUInt16BE(cells + 1, 3);
  page.writeUInt16BE(content, 5);
  return forged;
}

function tableOf(bench: Bench, name: string) {
  const table = bench.tables.find((one) => one.name === name);
  if (table === undefined) throw new Error(`there is no table ${name}`);
  return table;
}

type Place = readonly [offset: number, bit: number];

const PAGE_BYTES = 4_096;
/** Length and position of the cell, length of its header, a type for each of four columns. */
const CELL_START_BYTES = 12;
/** Header of the page and where its first cells are. */
const PAGE_START_BYTES = 20;

function startOfRow(bytes: Buffer, position: number): number {
  return bytes.lastIndexOf('{"actor":', bytes.indexOf(`"position":${position},`));
}

function bitsOf(from: number, count: number): Place[] {
  return Array.from({ length: 8 * count }, (_, i) => [from + (i >> 3), i & 7] as const);
}

async function flipEach(copies: Bench['copies'], places: readonly Place[]) {
  const before = await copies.ofBytes(copies.bytes, see);
  const counts = { harmless: 0, reported: 0, refused: 0, told_though_harmless: 0 };
  const missed: string[] = [];
  for (const [offset, bit] of places) {
    const flipped = Buffer.from(copies.bytes);
    flipped[offset] = (flipped[offset] ?? 0) ^ (1 << bit);
    const changed = changedBetween(before, await copies.ofBytes(flipped, see));
    const verdict = await copies.ofBytes(flipped, judge);
    if (verdict === 'crashed' || (verdict === 'sound' && changed.length > 0))
      missed.push(
        `bit ${bit} of byte ${offset}: ${changed.join(', ')} changed, and the verifier says ${verdict}`,
      );
    else if (verdict === 'refused') counts.refused += 1;
    else if (changed.length > 0) counts.reported += 1;
    else if (verdict === 'reported') counts.told_though_harmless += 1;
    else counts.harmless += 1;
  }
  return { ...counts, missed };
}

function see(path: string): Seen {
  try {
    return dumpOf(path, TABLES);
  } catch {
    return 'unreadable';
  }
}

function changedBetween(before: Seen, after: Seen): string[] {
  if (before === 'unreadable') throw new Error('the board cannot be read');
  if (after === 'unreadable') return ['what can be read'];
  return [...before.keys()].filter((table) => before.get(table) !== after.get(table));
}

/** A mistake of the program is no report; a file that is refused is. */
async function judge(path: string): Promise<'sound' | 'reported' | 'refused' | 'crashed'> {
  try {
    return (await findingsAt(path)).length > 0 ? 'reported' : 'sound';
  } catch (error) {
    return error instanceof TypeError || error instanceof RangeError ? 'crashed' : 'refused';
  }
}
