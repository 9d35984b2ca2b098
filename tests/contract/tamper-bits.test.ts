import { expect, test } from 'vitest';
import { seededRandom } from '../driver/random.ts';
import { FULL } from '../driver/tier.ts';
import { Bench } from '../tamper/bench.ts';
import { findingsAt } from '../tamper/copies.ts';
import { dumpOf } from '../tamper/dump.ts';
import { tablesOfSchema } from '../tamper/schema.ts';
import { proving } from './proves.ts';

const FLIPS = FULL ? 1_500 : 200;
const TABLES = tablesOfSchema();

/** What a reader gets: every value, or that the file cannot be read. */
type Seen = ReadonlyMap<string, string> | 'unreadable';

test(proving(
  'detect.bits',
  `R14: of ${FLIPS} flipped bits anywhere in the closed file, none changes a value unreported`,
), async () => {
  const random = seededRandom('R14');
  const bench = await Bench.open();
  const { bytes } = bench.copies;
  const before = await bench.copies.ofBytes(bytes, see);
  const counts = { harmless: 0, reported: 0, refused: 0, told_though_harmless: 0 };
  const missed: string[] = [];

  for (let i = 0; i < FLIPS; i += 1) {
    const [offset, bit] = [random.between(0, bytes.length - 1), random.between(0, 7)];
    const flipped = Buffer.from(bytes);
    flipped[offset] = (flipped[offset] ?? 0) ^ (1 << bit);
    const changed = changedBetween(before, await bench.copies.ofBytes(flipped, see));
    const verdict = await bench.copies.ofBytes(flipped, judge);
    if (verdict === 'crashed' || (verdict === 'sound' && changed.length > 0))
      missed.push(
        `bit ${bit} of byte ${offset}: ${changed.join(', ')} changed, and the verifier says ${verdict}`,
      );
    else if (verdict === 'refused') counts.refused += 1;
    else if (changed.length > 0) counts.reported += 1;
    else if (verdict === 'reported') counts.told_though_harmless += 1;
    else counts.harmless += 1;
  }
  await bench.close();

  console.error(`R14: ${JSON.stringify({ bytes: bytes.length, flips: FLIPS, ...counts, missed })}`);
  expect(missed).toEqual([]);
}, 600_000);

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
