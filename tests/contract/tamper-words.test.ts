import { expect, test } from 'vitest';
import { Playground } from '../driver/playground.ts';
import { seededRandom } from '../driver/random.ts';
import { FULL } from '../driver/tier.ts';
import { GrowingIndex } from '../tamper/word-index.ts';

const ROUNDS = FULL ? 400 : 10;
const CHANGES = [
  'DELETE FROM task_words_idx',
  `UPDATE task_words_idx SET term = CAST(term || x'ff' AS BLOB)`,
  'UPDATE task_words_idx SET pgno = pgno + 1000000',
  'UPDATE task_words_idx SET segid = segid + 1000',
  'UPDATE task_words_idx SET pgno = pgno - 1 + 2 * (pgno % 2 = 0)',
];

test('R18: a word index that grows and merges gives no false alarm, and each lost way into it is told', async () => {
  const colibri = new Playground();
  const index = new GrowingIndex(colibri.path('words.db'), seededRandom('word index'));
  const alarms: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    index.grow(FULL ? 50 : 150);
    alarms.push(...(await index.complaints()));
  }
  const ways = index.db
    .prepare(
      'SELECT segid, hex(term) AS term, pgno FROM task_words_idx WHERE pgno > 3 ORDER BY random() LIMIT 4',
    )
    .all() as { segid: number; term: string; pgno: number }[];

  const missed: string[] = [];
  for (const { segid, term, pgno } of ways) {
    for (const change of CHANGES) {
      const saving = index.db.prepare('SELECT * FROM task_words_idx').raw();
      saving.setReadBigInts(true);
      const saved = saving.all() as (bigint | Uint8Array)[][];
      index.db.exec(`${change} WHERE segid = ${segid} AND term = x'${term}'`);
      if ((await index.complaints()).length === 0) missed.push(`${change}: ${segid} ${term} ${pgno}`);
      index.db.exec('DELETE FROM task_words_idx');
      for (const row of saved) index.db.prepare('INSERT INTO task_words_idx VALUES (?, ?, ?)').run(...row);
    }
  }
  const healed = await index.complaints();
  index.db.close();
  await colibri.dispose();

  expect(alarms).toEqual([]);
  expect(ways.length).toBeGreaterThan(3);
  expect(missed).toEqual([]);
  expect(healed).toEqual([]);
}, 300_000);
