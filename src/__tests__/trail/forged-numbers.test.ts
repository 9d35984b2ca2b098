import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Database, openDatabase } from '../../../tests/driver/database.ts';
import { proofTools } from '../../domains/proof/tools.ts';
import type { ChainReport } from '../../domains/trail/tools.ts';
import { listThoughts } from '../../domains/trail/tools.ts';
import { LIMITS } from '../../limits.ts';
import type { Reader, StorageEngine, Transaction } from '../../storage/engine.ts';
import { verifyChain } from '../../verify/chain.ts';
import type { Finding } from '../../verify/finding.ts';
import { stillClock } from '../log/still-clock.ts';
import { aCall } from '../middleware/a-tool.ts';
import { openScratch, scratchFolder } from '../storage/scratch.ts';
import { openBench } from '../tasks/bench.ts';
import { findingsOf } from '../tasks/findings.ts';

// Whoever holds the file can store numbers that no reader of it can count exactly. A walk must end all the same.

/** Far beyond what a number counts exactly: hundreds of neighbours are all read as the same one. */
const BEYOND = 2n ** 62n;

/** A task with three thoughts in an open session, closed, and then changed by another program. */
async function forged(change: (db: Database) => void = () => undefined): Promise<StorageEngine> {
  const folder = scratchFolder();
  const bench = await openBench(folder);
  await bench.call('task_create', { title: 'a', project: 'p' });
  await bench.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'ada' });
  for (const content of ['one', 'two', 'three'])
    await bench.call('thought_record', { task_id: 'T-0001', type: 'plan', content });
  await bench.close();
  const db = openDatabase(join(folder, 'colibri.db'));
  db.pragma('foreign_keys = OFF');
  const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
    name: string;
    sql: string;
  }[];
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  change(db);
  for (const { sql } of triggers) db.exec(sql);
  db.close();
  return await openScratch(join(folder, 'colibri.db'));
}

/** Copies a row `count` times; the column in `counting` counts on from a number in each copy. */
function multiply(
  db: Database,
  table: string,
  count: number,
  counting: Readonly<Record<string, bigint>>,
): void {
  const columns = (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name);
  const values = columns.map((name) => (name in counting ? `${counting[name]} + n` : name));
  db.exec(
    `WITH RECURSIVE c (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n + 1 < ${count})
     INSERT INTO ${table} (${columns.join(', ')}) SELECT ${values.join(', ')} FROM c, (SELECT * FROM ${table} LIMIT 1)`,
  );
}

/** Verifies the only task or session, and fails the test instead of going on for ever. */
async function walked(storage: StorageEngine, kind: 'task' | 'session'): Promise<ChainReport> {
  let [now, pauses] = [Date.now(), 0];
  const clock = { ...stillClock(Date.now()), monotonic: () => (now += LIMITS.sliceMsMax) };
  const pause = async () => {
    pauses += 1;
    if (pauses > 1_000) throw new Error('the walk does not end');
  };
  return await storage.read((tx) => verifyChain(tx, { kind, id: 1 }, { trace: false, pause, clock }));
}

function kindsOf(findings: readonly Finding[], table: string): string[] {
  return [...new Set(findings.filter((finding) => finding.table === table).map(({ kind }) => kind))];
}

test('nothing is wrong with what was left', async () => {
  const storage = await forged();

  expect(await findingsOf(storage)).toEqual([]);
});

test.each([
  ['actions', 'stray', { position: BEYOND }],
  ['thoughts', 'unexplained', { id: BEYOND, chain_position: 10n }],
  ['session_records', 'unexplained', { id: BEYOND }],
])(
  'thousands of rows of %s with numbers that are read alike are found, and the verifier ends',
  async (table, kind, counting) => {
    const storage = await forged((db) => multiply(db, table, 2_500, counting));

    const findings = await findingsOf(storage);

    expect(kindsOf(findings, table)).toContain(kind);
    expect(findings.filter(({ record }) => record.includes(String(BEYOND)))).not.toEqual([]);
  },
);

test.each(['0', '-1', '-9223372036854775808'])(
  'an audit row before the first, at %s, is found',
  async (position) => {
    const storage = await forged((db) =>
      db.exec(
        `INSERT INTO actions (position, text, content, chain) SELECT ${position}, text, content, chain FROM actions WHERE position = 1`,
      ),
    );

    expect(await findingsOf(storage)).toContainEqual(
      expect.objectContaining({ kind: 'stray', table: 'actions', record: `#${position}` }),
    );
  },
);

test('a walk over thoughts whose places are read alike ends and names them', async () => {
  const storage = await forged((db) => multiply(db, 'thoughts', 1_000, { id: 10n, chain_position: BEYOND }));

  const { broken } = await walked(storage, 'task');

  expect(broken.map(({ record }) => record)).toContain('Θ-0010');
});

test('a thought put far below the first is found from its task', async () => {
  const storage = await forged((db) =>
    db.exec('UPDATE thoughts SET chain_position = -9223372036854775808 WHERE id = 3'),
  );

  const { broken } = await walked(storage, 'task');

  expect(broken.map(({ record }) => record)).toContain('Θ-0003');
});

test.each([BEYOND, -BEYOND - 2_000n])(
  'a walk over session records that all read as %s ends and says that something is wrong',
  async (id) => {
    const storage = await forged((db) => {
      multiply(db, 'session_records', 1_000, { id });
      db.exec('DELETE FROM session_records WHERE id = 3');
    });

    const { broken } = await walked(storage, 'session');

    expect(broken.map(({ record }) => record)).toContain('R-0003');
  },
);

test('the root of a session with such records is refused instead of computed for ever', async () => {
  const storage = await forged((db) => multiply(db, 'session_records', 5_000, { id: BEYOND }));
  const merkleRoot = proofTools({ skillsInForce: async () => [] }).find(({ name }) => name === 'merkle_root');

  const root = storage.read(async (tx) =>
    merkleRoot?.handle({ session_id: 'A-0001' }, aCall(), tx as Transaction),
  );

  await expect(root).rejects.toThrow('audit_verify_chain');
});

test('a character moved from the kept arguments to their salt is found, although the digest is the same', async () => {
  const storage = await forged((db) =>
    db.exec(
      'UPDATE action_payloads SET salt = salt || substr(body, 1, 1), body = substr(body, 2) WHERE position = 1',
    ),
  );

  expect(await findingsOf(storage)).toEqual([
    expect.objectContaining({ kind: 'altered', table: 'action_payloads', record: '#1', columns: ['salt'] }),
  ]);
});

test('a character moved from the salt to the kept arguments is found too', async () => {
  const storage = await forged((db) =>
    db.exec(
      'UPDATE action_payloads SET body = substr(salt, -1) || body, salt = substr(salt, 1, length(salt) - 1) WHERE position = 1',
    ),
  );

  expect(kindsOf(await findingsOf(storage), 'action_payloads')).toEqual(['altered']);
});

test('an audit row that was changed is one finding: the thought it wrote is not said to be forged', async () => {
  const storage = await forged((db) =>
    db.exec(
      `UPDATE actions SET text = replace(text, '"actor":"ada"', '"actor":"eve"') WHERE position = (SELECT position FROM thoughts WHERE id = 2)`,
    ),
  );

  const findings = await findingsOf(storage);

  expect(findings).toEqual([expect.objectContaining({ kind: 'altered', table: 'actions', record: '#8' })]);
});

test('counting all thoughts of a task reads an index and no row', async () => {
  const storage = await forged();
  const plans: string[] = [];

  await storage.read(async (tx) => {
    const explaining: Reader = {
      get: async (sql, ...params) => {
        const steps = await tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, ...params);
        plans.push(steps.map(({ detail }) => detail).join('; '));
        return await tx.get(sql, ...params);
      },
      all: (sql, ...params) => tx.all(sql, ...params),
      lists: (sql, ...params) => tx.lists(sql, ...params),
      isPresent: (process) => tx.isPresent(process),
      dialect: tx.dialect,
    };
    return await listThoughts(explaining, { task: 1, session: undefined, type: undefined }, 1, 0);
  });

  expect(plans).toEqual([expect.stringContaining('COVERING INDEX thoughts_by_task')]);
});

test('a type still filters, and is counted', async () => {
  const storage = await forged();
  const list = (type: string | undefined) =>
    storage.read((tx) => listThoughts(tx, { task: 1, session: undefined, type }, 2, 0));

  expect(await list('plan')).toMatchObject({ count: 3, thoughts: [{ id: 1 }, { id: 2 }] });
  expect(await list('risk')).toEqual({ count: 0, thoughts: [] });
  expect((await list(undefined)).count).toBe(3);
});

test.each<[what: string, change: string, score: number]>([
  ['nothing', 'UPDATE thoughts SET type = type', 100],
  ['one record of three', "UPDATE thoughts SET branch = 'x' WHERE id = 2", 66.66],
  ['one record in two ways', "UPDATE thoughts SET branch = 'x', recorded_by = 'y' WHERE id = 2", 66.66],
  ['every record', "UPDATE thoughts SET branch = 'x'", 0],
])('a score counts records that something was found against: %s', async (_, change, score) => {
  const storage = await forged((db) => db.exec(change));

  expect((await walked(storage, 'task')).score).toBe(score);
});

test.each<[what: string, turnMs: number, pauses: boolean]>([
  ['when a slice has lasted long enough', LIMITS.sliceMsMax, true],
  ['and not before', 0, false],
])('a walk pauses %s', async (_, turnMs, pauses) => {
  const storage = await forged();
  let [now, paused] = [0, 0];
  const clock = { ...stillClock(Date.now()), monotonic: () => (now += turnMs) };
  const pause = async () => {
    paused += 1;
  };

  await storage.read((tx) => verifyChain(tx, { kind: 'task', id: 1 }, { trace: false, pause, clock }));

  expect(paused > 0).toBe(pauses);
});
