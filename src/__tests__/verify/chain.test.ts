import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../tests/driver/database.ts';
import { systemClock } from '../../clock.ts';
import type { ChainReport, Subject } from '../../domains/trail/tools.ts';
import { verifyChain } from '../../verify/chain.ts';
import { freshBench, tellStory } from './history.ts';
import { inTampered, settleFile } from './tamper.ts';

let path = '';

beforeAll(async () => {
  const bench = await freshBench();
  await tellStory(bench);
  await bench.close();
  path = bench.path;
  settleFile(path);
});

const TASK: Subject = { kind: 'task', id: 2 };
const SEALED: Subject = { kind: 'session', id: 1 };
const OPEN: Subject = { kind: 'session', id: 2 };

async function reportOn(subject: Subject, sql: string | ((db: Database) => void) = ''): Promise<ChainReport> {
  const change = typeof sql === 'string' ? (db: Database) => void db.exec(sql) : sql;
  const options = { trace: true, pause: async () => undefined, clock: systemClock };
  return await inTampered(path, change, (storage) => storage.read((tx) => verifyChain(tx, subject, options)));
}

test.each([
  [TASK, 2],
  [{ kind: 'task', id: 1 }, 1],
  [SEALED, 3],
  [OPEN, 1],
] as const)('nothing is wrong with %o, which has %i records', async (subject, total) => {
  const report = await reportOn(subject);

  expect(report).toMatchObject({ broken: [], score: 100, total });
  expect(report.trace).toHaveLength(total);
});

// T-0002 is made at 4, thinks at 24 and 40, moves at 26; A-0001 begins at 18 and ends at 32.
test.each([
  [
    TASK,
    'the exit row of an update',
    `UPDATE actions SET text = replace(text, '"actor":"ada"', '"actor":"eve"') WHERE position = 26`,
  ],
  [
    TASK,
    'the enter row of an update',
    `UPDATE actions SET text = replace(text, '"actor":"ada"', '"actor":"eve"') WHERE position = 25`,
  ],
  [TASK, 'a content hash', `UPDATE actions SET content = x'${'a'.repeat(64)}' WHERE position = 26`],
  [TASK, 'a chain hash', `UPDATE actions SET chain = x'${'a'.repeat(64)}' WHERE position = 25`],
  [TASK, 'a lost enter row', 'DELETE FROM actions WHERE position = 25'],
  [TASK, 'a lost exit row', 'DELETE FROM actions WHERE position = 26'],
  [TASK, 'a lost call', 'DELETE FROM actions WHERE position IN (25, 26)'],
  [
    TASK,
    'a lost call that the index does not name',
    'DELETE FROM actions WHERE position IN (25, 26); DELETE FROM task_calls WHERE position = 26',
  ],
  [TASK, 'lost arguments', 'DELETE FROM action_payloads WHERE position = 25'],
  [
    TASK,
    'another answer',
    "UPDATE action_payloads SET body = replace(body, 'GATHER', 'ANALYZE') WHERE position = 26",
  ],
  [TASK, 'a status', "UPDATE tasks SET status = 'DONE' WHERE id = 2"],
  [TASK, 'a thought that is gone', 'DELETE FROM thoughts WHERE id = 3'],
  [TASK, 'the first thought that is gone', 'DELETE FROM thoughts WHERE id = 2'],
  [TASK, 'a thought of another task now', 'UPDATE thoughts SET task_id = 3, chain_position = 9 WHERE id = 3'],
  [
    TASK,
    'a thought that nobody recorded',
    `INSERT INTO thoughts SELECT 9, task_id, session_id, type, content, tests_run, blockers, metadata, call, hash, '${'c'.repeat(64)}', 3, recorded_at, recorded_by, branch, commit_sha, observed, 40 FROM thoughts WHERE id = 3`,
  ],
  [TASK, 'a text', "UPDATE texts SET text = 'else' WHERE text = 'child thought'"],
  [SEALED, 'a record that is gone', 'DELETE FROM session_records WHERE id = 2'],
  [SEALED, 'a record of another session now', 'UPDATE session_records SET session_id = 2 WHERE id = 1'],
  [SEALED, 'a root', `UPDATE sessions SET merkle_root = '${'b'.repeat(64)}' WHERE id = 1`],
  [SEALED, 'a lost seal', 'DELETE FROM actions WHERE position IN (31, 32)'],
  [OPEN, 'a record of an open session that is gone', 'DELETE FROM session_records WHERE id = 4'],
  [OPEN, 'a record taken out of an open session', 'UPDATE session_records SET session_id = 1 WHERE id = 4'],
] as const)('in %o, %s is found', async (subject, _name, sql) => {
  const report = await reportOn(subject, sql);

  expect(report.broken.map((link) => `${link.record}: ${link.what}`)).not.toEqual([]);
  expect(report.score).toBeLessThan(100);
});

test.each([
  ['thoughts', 2, 'Θ-0002', TASK],
  ['sessions', 1, 'A-0001', SEALED],
  ['session_records', 2, 'R-0002', SEALED],
  ['tasks', 2, 'T-0002', TASK],
] as const)(
  'any other value in a column of %s is found with record and column',
  async (table, id, record, subject) => {
    const columns = await inTampered(
      path,
      () => undefined,
      (storage) =>
        storage.read((tx) =>
          tx.all<{ name: string; type: string }>('SELECT name, type FROM pragma_table_info(?)', table),
        ),
    );
    for (const { name, type } of columns.filter(
      ({ name }) => !['id', 'unmet', 'is_final', 'queue'].includes(name),
    )) {
      const value = type === 'TEXT' ? `coalesce(${name}, '') || 'x'` : `coalesce(${name}, 0) + 1000`;
      const report = await reportOn(subject, `UPDATE ${table} SET ${name} = ${value} WHERE id = ${id}`);

      const named = report.broken
        .filter((link) => link.record === record)
        .flatMap((link) => link.columns ?? []);
      expect.soft(report.broken.length, name).toBeGreaterThan(0);
      if (!['position', 'task_id', 'session_id'].includes(name)) expect.soft(named, name).toContain(name);
    }
  },
);
