import { beforeAll, expect, test } from 'vitest';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import type { FindingKind } from '../../verify/finding.ts';
import { type ForgedLog, forged } from './forger.ts';
import { freshBench, tellStory } from './history.ts';
import { settleFile } from './tamper.ts';

let path = '';

beforeAll(async () => {
  const bench = await freshBench();
  await tellStory(bench);
  await bench.close();
  path = bench.path;
  settleFile(path);
});

test('a log that is only written again is sound', async () => {
  expect(await forged(path, () => undefined)).toEqual([]);
});

type Forgery = readonly [
  name: string,
  change: (log: ForgedLog) => void,
  kind: FindingKind,
  record: string,
  columns?: readonly string[],
];

const task = (log: ForgedLog, id: number) => log.state.tasks!.get(id)!;
/** Changes what the writer only reads. */
const set = (target: object, values: object) => void Object.assign(target, values);
/** T-0003 as row 44 left it. */
const undoLast = (log: ForgedLog) =>
  Object.assign(task(log, 3), {
    status: 'todo',
    blocked_reason: null,
    blocked_reason_call: null,
    position: 44,
    queue: 1,
    ...Object.fromEntries(['status_since', 'updated_at'].map((column) => [column, log.row(44).at])),
  });
const thought = (log: ForgedLog, id: number) => log.state.thoughts!.get(id)!;

// Positions are those of the story: see history.ts.
const FORGERIES: readonly Forgery[] = [
  ['an extra field', (log) => set(log.row(3), { extra: 1 }), 'malformed', '#3'],
  ['an enter row with outcome ok', (log) => set(log.row(3), { outcome: 'ok' }), 'malformed', '#3'],
  ['an unknown outcome', (log) => set(log.row(4), { outcome: 'fine' as never }), 'malformed', '#4'],
  ['a negative duration', (log) => set(log.row(4), { duration_ms: -1 }), 'malformed', '#4'],
  ['an error without a code', (log) => set(log.row(8), { error_code: null }), 'malformed', '#8'],
  ['a time that is not one', (log) => set(log.row(48), { at: 'tomorrow' }), 'malformed', '#48'],
  [
    'a day that does not exist',
    (log) => set(log.row(48), { at: '2026-02-30T00:00:00.000Z' }),
    'malformed',
    '#48',
  ],
  [
    'a time that goes backwards',
    (log) => set(log.row(48), { at: new Date(Date.parse(log.row(47).at) - 5_000).toISOString() }),
    'malformed',
    '#48',
    ['at'],
  ],
  [
    'another actor at the end of a call',
    (log) => set(log.row(48), { actor: 'mallory' }),
    'unpaired',
    '#48',
    ['actor'],
  ],
  [
    'another tool at the end of a call',
    (log) => set(log.row(48), { tool: 'task_list' }),
    'unpaired',
    '#48',
    ['tool'],
  ],
  [
    'another correlation id',
    (log) => set(log.row(48), { correlation_id: log.row(50).correlation_id }),
    'unpaired',
    '#48',
    ['correlation_id'],
  ],
  [
    'a call that ends twice',
    (log) =>
      void Object.assign(log.row(50), {
        sequence_no: 47,
        tool: 'task_get',
        correlation_id: log.row(47).correlation_id,
      }),
    'unpaired',
    '#50',
    ['sequence_no'],
  ],
  [
    'an effect of a reading call',
    (log) => log.row(48).effects.push({ ...log.row(46).effects[0]!, previous: 46 }),
    'forbidden',
    'T-0003',
    ['effects'],
  ],
  [
    'a result hash of a refused read',
    (log) => set(log.row(52), { result_hash: log.row(50).result_hash }),
    'malformed',
    '#52',
    ['result_hash'],
  ],
  [
    'a salt of another length',
    (log) => set(log.bodies.get(45)!, { salt: `${log.bodies.get(45)!.salt}00` }),
    'altered',
    '#45',
    ['salt'],
  ],
  ['a body with a field too many', (log) => set(log.body(46), { more: 1 }), 'malformed', '#46', ['body']],
  [
    'a move that no transition allows',
    (log) => {
      log.body(45).status = 'done';
      log.body(46).result.status = 'done';
      Object.assign(task(log, 3), { status: 'done' });
    },
    'forbidden',
    'T-0003',
    ['error_code'],
  ],
  [
    'another creator',
    (log) => set(task(log, 3), { created_by: 'mallory' }),
    'forbidden',
    'T-0003',
    ['created_by'],
  ],
  [
    'a wrong default',
    (log) => set(task(log, 3), { assignee: 'mallory' }),
    'forbidden',
    'T-0003',
    ['assignee'],
  ],
  [
    'a different time',
    (log) => set(task(log, 3), { updated_at: log.row(45).at.replace(/...Z$/, '000Z') }),
    'forbidden',
    'T-0003',
    ['updated_at'],
  ],
  [
    'an argument that does not produce the row',
    (log) => set(log.body(43), { status: 'cancelled' }),
    'forbidden',
    'T-0003',
  ],
  [
    'a thought whose hash is another',
    (log) => set(thought(log, 3), { hash: 'a'.repeat(64) }),
    'forbidden',
    'Θ-0003',
    ['hash'],
  ],
  [
    'a second thought without a previous hash',
    (log) => set(thought(log, 3), { previous_hash: null }),
    'forbidden',
    'Θ-0003',
    ['previous_hash'],
  ],
  [
    'a place in the chain that was skipped',
    (log) => set(thought(log, 3), { chain_position: 7 }),
    'forbidden',
    'Θ-0003',
    ['chain_position'],
  ],
  [
    'a thought of another author',
    (log) => set(thought(log, 4), { recorded_by: 'mallory' }),
    'forbidden',
    'Θ-0004',
    ['recorded_by'],
  ],
  [
    'a root that is not that of the records',
    (log) => {
      log.state.sessions!.get(1)!.merkle_root = 'b'.repeat(64);
      log.row(32).effects[0]!.seal = { leaf_count: 3, merkle_root: 'b'.repeat(64) };
      log.body(32).result.merkle_root = 'b'.repeat(64);
    },
    'forbidden',
    'A-0001',
    ['merkle_root'],
  ],
  [
    'a seal in the row that is not that of the session',
    (log) => set(log.row(32).effects[0]!, { seal: { leaf_count: 9, merkle_root: 'b'.repeat(64) } }),
    'forbidden',
    'A-0001',
    ['seal'],
  ],
  [
    'a refusal that the rules do not give',
    (log) => {
      undoLast(log);
      Object.assign(log.row(46), { outcome: 'error', error_code: 'ERR_TASK_NOT_FOUND', effects: [] });
      log.bodies.get(46)!.body = { outside: {}, error: { code: 'ERR_TASK_NOT_FOUND', message: 'no' } };
    },
    'forbidden',
    '#46',
    ['error_code'],
  ],
  [
    'another code',
    (log) => {
      log.row(42).error_code = 'ERR_PROOF_REQUIRED';
      log.body(42).error.code = 'ERR_PROOF_REQUIRED';
    },
    'forbidden',
    '#42',
    ['error_code'],
  ],
  ['another result', (log) => set(log.body(38).result, { progress: 3 }), 'forbidden', 'T-0001', ['progress']],
  [
    'an effect that skips its predecessor',
    (log) => set(log.row(46).effects[0]!, { previous: 28 }),
    'forbidden',
    '#46',
    ['effects'],
  ],
  ['a record left out', (log) => void log.row(58).effects.pop(), 'forbidden', 'R-0004', ['effects']],
  [
    'labels that were not sorted out',
    (log) => set(task(log, 3), { labels: canonicalJson(['z', 'z']) }),
    'forbidden',
    'T-0003',
    ['labels'],
  ],
  ['an instance of newer rules', (log) => set(log.row(58), { rules: 9 }), 'newer-rules', '#58'],
];

test.each(FORGERIES.map((forgery) => ({ name: forgery[0], forgery })))(
  'found: $name',
  async ({ forgery: [, change, kind, record, columns] }) => {
    const findings = await forged(path, change);

    const [first] = findings;
    expect(findings.map((f) => `${f.kind} ${f.record} ${f.columns ?? ''}: ${f.message}`)).toHaveLength(1);
    expect(first).toMatchObject({ kind, record, ...(columns !== undefined && { columns }) });
  },
);
