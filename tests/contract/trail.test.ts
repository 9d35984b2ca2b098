import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { RecordInput } from '../../src/domains/trail/schema.ts';
import type { Playground } from '../driver/playground.ts';
import { proves } from './proves.ts';
import { openTrail, type TrailDesk, thoughtHash, treeRoot } from './trail-desk.ts';

const THOUGHT_TYPES = RecordInput.shape.type.options;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const HASH = /^[0-9a-f]{64}$/;

/** Texts that a second implementation of the hash is likely to write differently. */
const HARD_TEXTS = [
  'plain',
  'line one\nline two\r\nline three\ttabbed',
  'quotes " and \\ backslash and \\" both and </script>',
  Array.from({ length: 31 }, (_, code) => String.fromCharCode(code + 1)).join('x'),
  '\u007f \u0080 \u009f \u00a0 \u00ad',
  'Grüße, Ελληνικά, 漢字, 한국어, עברית, العربية',
  '👩‍👩‍👧‍👦 𝒳 \u{10ffff} \u{1f600}',
  '\u2028 \u2029 \ufeff \ufffd \uffff',
  'e\u0301 is not \u00e9',
  '{"task_id":"T-0001","previous_hash":null}',
  ' leading and trailing ',
];

interface ScriptRun {
  readonly code: number;
  readonly output: string;
}

/** Runs the script of its first argument on each list of files, in one process: starting Python is what takes long. */
const RUN_EACH = `
import contextlib, io, json, runpy, sys
script, runs = sys.argv[1], json.loads(sys.argv[2])
for files in runs:
    sys.argv[1:], output = files, io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            runpy.run_path(script)
    except SystemExit as end:
        print(json.dumps({"code": end.code, "output": output.getvalue()}))
`;

/** What the script says of each of these lists of answers. */
function runScript(colibri: Playground, ...runs: readonly (readonly object[])[]): ScriptRun[] {
  const script = fileURLToPath(new URL('../../docs/verify-thoughts.py', import.meta.url));
  const files = runs.map((answers, run) =>
    answers.map((answer, i) => {
      const file = colibri.path(`answer-${run}-${i}.json`);
      writeFileSync(file, JSON.stringify(answer));
      return file;
    }),
  );
  const { stdout, stderr } = spawnSync('python3', ['-c', RUN_EACH, script, JSON.stringify(files)], {
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as ScriptRun);
}

const noPython = spawnSync('python3', ['--version']).status === 0 ? undefined : 'there is no python3 here';
const noGit = spawnSync('git', ['--version']).status === 0 ? undefined : 'there is no git here';

proves('trail.seed-examples', 'the printed examples work as printed', async ({ colibri }) => {
  const desk = await openTrail(colibri, { env: { COLIBRI_AGENT_ID: 'agent-bob' } });
  await desk.tasks.create();
  const first = await desk.think('T-0001', 'Decided to use Zod for input validation...');
  await desk.think('T-0001', 'second');

  const recorded = await desk.ok('thought_record', {
    task_id: 'T-0001',
    type: 'reflection',
    content: 'Completed task_create MCP handler implementation. All tests passing.',
    branch: 'feature/task-create',
    commit_sha: 'a3f7d9b2c',
    tests_run: ['task_create.test.ts'],
    blockers: [],
  });
  const listed = await desk.ok('thought_record_list', { task_id: 'T-0001', verify_chain: true });
  const session = await desk.ok('audit_session_start', {
    task_id: 'T-0001',
    auditor_id: 'agent-auditor',
    reason: 'Proof review before finalization',
    scope: 'deep',
  });
  for (let i = 0; i < 8; i += 1) await desk.think('T-0001', `reviewed ${i}`);
  const verified = await desk.ok('audit_verify_chain', { session_id: 'A-0001' });
  const sealed = await desk.ok('merkle_finalize', { session_id: 'A-0001' });
  const root = await desk.ok('merkle_root', { session_id: 'A-0001' });

  expect(recorded).toEqual({
    thought_id: 'Θ-0003',
    task_id: 'T-0001',
    type: 'reflection',
    hash: expect.stringMatching(HASH),
    previous_hash: expect.stringMatching(HASH),
    recorded_at: expect.stringMatching(INSTANT),
    recorded_by: 'agent-bob',
    chain_position: 3,
  });
  expect(listed).toMatchObject({ task_id: 'T-0001', thought_count: 3, chain_valid: true });
  expect(listed.thoughts[0]).toEqual({
    thought_id: 'Θ-0001',
    task_id: 'T-0001',
    type: 'decision',
    content: 'Decided to use Zod for input validation...',
    hash: first.hash,
    previous_hash: null,
    recorded_at: first.recorded_at,
    recorded_by: 'agent-bob',
    chain_position: 1,
  });
  expect(listed).not.toHaveProperty('invalid_links');
  expect(session).toEqual({
    session_id: 'A-0001',
    task_id: 'T-0001',
    auditor_id: 'agent-auditor',
    started_at: expect.stringMatching(INSTANT),
    scope: 'deep',
  });
  expect(verified).toEqual({
    session_id: 'A-0001',
    chain_valid: true,
    total_records: 8,
    integrity_score: 100,
    broken_links: [],
    verified_at: expect.stringMatching(INSTANT),
  });
  expect(sealed).toEqual({
    session_id: 'A-0001',
    merkle_root: expect.stringMatching(HASH),
    tree_depth: 4,
    leaf_count: 8,
    finalized_at: expect.stringMatching(INSTANT),
    frozen: true,
  });
  expect(root).toEqual({
    session_id: 'A-0001',
    merkle_root: sealed.merkle_root,
    is_finalized: true,
    as_of: sealed.finalized_at,
  });
});

/** A task whose thoughts hold every hard text, all in one sealed session with a change in between. */
async function recordHardTexts(desk: TrailDesk): Promise<void> {
  await desk.tasks.create();
  await desk.open('T-0001');
  for (const [i, content] of HARD_TEXTS.entries()) {
    const type = THOUGHT_TYPES[i % THOUGHT_TYPES.length] ?? 'plan';
    await desk.think('T-0001', content, { type, metadata: { text: content } });
    if (i === 4) await desk.tasks.update('T-0001', { title: content });
  }
}

proves(
  ['trail.hash', 'thoughts.hash'],
  'hash and link of any text can be recomputed from the listing',
  async ({ colibri }) => {
    const desk = await openTrail(colibri, { env: { COLIBRI_AGENT_ID: 'Ada "Ä" \\ 👩‍🔬' } });
    await recordHardTexts(desk);

    const { thoughts, chain_valid } = await desk.ok('thought_record_list', {
      task_id: 'T-0001',
      verify_chain: true,
    });

    expect(chain_valid).toBe(true);
    expect(thoughts.map(({ content }) => content)).toEqual(HARD_TEXTS);
    expect(thoughts.map(({ metadata }) => metadata)).toEqual(HARD_TEXTS.map((text) => ({ text })));
    for (const [i, thought] of thoughts.entries()) {
      expect(thought.hash).toBe(thoughtHash(thought));
      expect(thought.previous_hash).toBe(thoughts[i - 1]?.hash ?? null);
      expect(thought.chain_position).toBe(i + 1);
      expect(thought.recorded_by).toBe('Ada "Ä" \\ 👩‍🔬');
    }
  },
);

proves(
  'trail.script',
  'the script agrees with what the tools answer, page by page and with the sealed root',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await recordHardTexts(desk);
    const pages = [0, 5, 10].map((offset) => ({ task_id: 'T-0001', limit: 5, offset }));

    const lists = await Promise.all(pages.map((page) => desk.ok('thought_record_list', page)));
    const ofSession = await desk.ok('thought_record_list', { session_id: 'A-0001' });
    const sealed = await desk.ok('merkle_finalize', { session_id: 'A-0001' });
    const verified = await desk.verify({ session_id: 'A-0001' });
    const [all, one, envelope] = runScript(
      colibri,
      [...lists, verified, sealed],
      [ofSession],
      [{ ok: true, data: ofSession }],
    );

    expect(all?.output).toContain(`A-0001 12 records, root ${sealed.merkle_root}\n`);
    expect(all?.output).toContain('11 thoughts and 1 sessions');
    expect([all?.code, one?.code, envelope?.code]).toEqual([0, 0, 0]);
    expect(envelope?.output).toContain('11 thoughts');
    expect(treeRoot((verified.trace ?? []).map(({ hash }) => hash))).toBe(sealed.merkle_root);
  },
  { unless: noPython },
);

proves(
  'trail.script',
  'the script refuses every altered answer and names the thought',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await recordHardTexts(desk);
    const list = await desk.ok('thought_record_list', { task_id: 'T-0001' });
    const sealed = await desk.ok('merkle_finalize', { session_id: 'A-0001' });
    const verified = await desk.verify({ session_id: 'A-0001' });
    const third = list.thoughts[2];
    const other = '0'.repeat(64);
    const withThird = (change: object) => ({
      ...list,
      thoughts: list.thoughts.with(2, { ...third, ...change } as (typeof list.thoughts)[number]),
    });
    const trace = verified.trace ?? [];
    const refused: [what: string, says: string, ...answers: object[]][] = [
      ['content', 'Θ-0003', withThird({ content: `${third?.content} ` })],
      ['type', 'Θ-0003', withThird({ type: 'risk' })],
      ['task_id', 'T-0001', withThird({ task_id: 'T-0002' })],
      ['recorded_at', 'Θ-0003', withThird({ recorded_at: list.thoughts[0]?.recorded_at.replace('2', '3') })],
      ['recorded_by', 'Θ-0003', withThird({ recorded_by: 'mallory' })],
      ['previous_hash', 'Θ-0003', withThird({ previous_hash: other })],
      ['hash', 'Θ-0003', withThird({ hash: other })],
      ['a new text with its own hash', 'Θ-0004', withThird({ content: 'new', hash: rehash(third) })],
      ['a missing thought', 'T-0001', { ...list, thoughts: list.thoughts.toSpliced(2, 1) }],
      ['a missing last thought', 'T-0001', { ...list, thoughts: list.thoughts.slice(0, -1) }],
      [
        'a trace hash',
        'A-0001',
        { ...verified, trace: trace.with(1, { ...trace[1]!, hash: other }) },
        sealed,
      ],
      ['no trace hash', 'A-0001', { ...verified, trace: trace.with(1, { ...trace[1]!, hash: '' }) }, sealed],
      ['another order', 'A-0001', { ...verified, trace: trace.toReversed() }, sealed],
      ['a record less', 'A-0001', { ...verified, trace: trace.slice(1) }, sealed],
      ['another root', 'A-0001', verified, { ...sealed, merkle_root: other }],
      ['another count', 'A-0001', verified, { ...sealed, leaf_count: 11 }],
      ['trace and list disagree', 'Θ-0003', withThird({ hash: other }), verified],
    ];

    const runs = runScript(colibri, ...refused.map(([, , ...answers]) => answers));

    for (const [i, [what, says]] of refused.entries()) {
      expect.soft(runs[i]?.code, what).toBe(1);
      expect.soft(runs[i]?.output, what).toContain(says);
    }
    expect(runs).toHaveLength(17);
  },
  { unless: noPython },
);

function rehash(thought: Parameters<typeof thoughtHash>[0] | undefined): string {
  return thought === undefined ? '' : thoughtHash({ ...thought, content: 'new' });
}

proves(
  ['trail.record.fields', 'trail.record.output'],
  'each field is taken up to its limit, stored whole, and refused beyond it',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create();
    const base = { task_id: 'T-0001', type: 'plan', content: 'c' };
    const largest = { a: 'x'.repeat(16_384 - '{"a":""}'.length) };
    const taken: object[] = [
      ...THOUGHT_TYPES.map((type) => ({ type })),
      { content: 'x' },
      { content: 'x'.repeat(5_000) },
      { content: 'é'.repeat(5_000) },
      { branch: 'b'.repeat(512), commit_sha: 'c'.repeat(512) },
      { tests_run: Array.from({ length: 100 }, (_, i) => `test ${i}`) },
      { tests_run: ['t'.repeat(512)], blockers: ['b'.repeat(512)] },
      { blockers: Array.from({ length: 100 }, (_, i) => `blocker ${i}`) },
      { metadata: {} },
      { metadata: { nested: { deep: [1, 2.5, null, true, { '': 'ü' }] }, zero: 0 } },
      { metadata: largest },
    ];
    const refused: [object, RegExp][] = [
      [{ content: '' }, /content/],
      [{ content: ' \n\t\u00a0\u2003' }, /content.*blank/],
      [{ content: 'x'.repeat(5_001) }, /content.*5000/],
      [{ content: 'a\ud800b' }, /content/],
      [{ content: 'a\u0000b' }, /content.*U\+0000/],
      [{ content: 7 }, /content/],
      [{ content: undefined }, /content/],
      [{ type: 'Decision' }, /type/],
      [{ type: 'blocker' }, /type/],
      [{ type: undefined }, /type/],
      [{ task_id: undefined }, /task_id/],
      [{ task_id: '' }, /task_id/],
      [{ task_id: 'T'.repeat(33) }, /task_id/],
      [{ branch: '' }, /branch/],
      [{ branch: ' ' }, /branch/],
      [{ branch: 'b'.repeat(513) }, /branch/],
      [{ commit_sha: 'c'.repeat(513) }, /commit_sha/],
      [{ tests_run: Array.from({ length: 101 }, () => 't') }, /tests_run/],
      [{ tests_run: ['t'.repeat(513)] }, /tests_run/],
      [{ tests_run: [''] }, /tests_run/],
      [{ tests_run: [7] }, /tests_run/],
      [{ blockers: Array.from({ length: 101 }, () => 'b') }, /blockers/],
      [{ blockers: ['b'.repeat(513)] }, /blockers/],
      [{ metadata: { a: `${largest.a}x` } }, /metadata.*16384/],
      [{ metadata: { ä: largest.a } }, /metadata/],
      [{ metadata: { a: '\u0000' } }, /metadata.*U\+0000/],
      [{ metadata: [1] }, /metadata/],
      [{ metadata: 'text' }, /metadata/],
      [{ session_id: '' }, /session_id/],
      [{ session_id: 'A'.repeat(33) }, /session_id/],
      [{ contents: 'c' }, /contents/],
    ];

    for (const fields of taken) await desk.ok('thought_record', { ...base, ...fields });
    for (const [fields, says] of refused)
      expect.soft(await desk.rejected('thought_record', { ...base, ...fields })).toMatch(says);
    const { thoughts, thought_count } = await desk.ok('thought_record_list', { task_id: 'T-0001' });

    expect(thought_count).toBe(taken.length);
    for (const [i, fields] of taken.entries()) expect(thoughts[i]).toMatchObject({ ...base, ...fields });
    expect(thoughts.every((thought, i) => thought.chain_position === i + 1)).toBe(true);
  },
);

proves(
  ['trail.record.output', 'thoughts.chain'],
  'what was not given is not shown, and each task has a chain of its own',
  async ({ colibri }) => {
    const desk = await openTrail(colibri, { clientName: 'grace' });
    await desk.tasks.create();
    await desk.tasks.create();

    const a = await desk.think('T-0001');
    const b = await desk.think('T-0002', 'elsewhere', { tests_run: [], blockers: [] });
    const c = await desk.think('T-0001');
    const { thoughts } = await desk.ok('thought_record_list', { task_id: 'T-0002' });

    expect([a, b, c].map(({ chain_position }) => chain_position)).toEqual([1, 1, 2]);
    expect([a, b, c].map(({ previous_hash }) => previous_hash)).toEqual([null, null, a.hash]);
    expect([a, b, c].map(({ thought_id }) => thought_id)).toEqual(['Θ-0001', 'Θ-0002', 'Θ-0003']);
    expect(a).toHaveProperty('previous_hash', null);
    expect(a).not.toHaveProperty('session_id');
    expect(thoughts).toEqual([{ ...b, content: 'elsewhere' }]);
    expect(b.recorded_by).toBe('grace');
  },
);

proves(
  'trail.record.binding',
  'a thought binds to the named session, else to the open one of its task, else to none',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create();
    await desk.tasks.create({ parent_id: 'T-0001' });
    await desk.open('T-0001', { scope: 'deep' });
    const sessions: (string | undefined)[] = [];
    const record = async (task_id: string, session_id?: string) =>
      sessions.push(
        (await desk.think(task_id, 'x', session_id === undefined ? {} : { session_id })).session_id,
      );

    await record('T-0001');
    await record('T-0001', 'A-0001');
    await record('T-0002');
    await record('T-0002', 'A-0001');
    await desk.open('T-0002');
    await record('T-0002');
    await record('T-0002', 'A-0001');
    await record('T-0002', 'A-0002');
    await desk.ok('merkle_finalize', { session_id: 'A-0002' });
    await record('T-0002');
    const bound = await desk.ok('thought_record_list', { session_id: 'A-0001' });

    expect(sessions).toEqual([
      'A-0001',
      'A-0001',
      undefined,
      'A-0001',
      'A-0002',
      'A-0001',
      'A-0002',
      undefined,
    ]);
    // A listing goes by the records of the session, and a deep one has those of children too.
    expect(bound).toMatchObject({ session_id: 'A-0001', thought_count: 8 });
    expect(bound.thoughts.map(({ thought_id }) => thought_id)).toEqual(
      sessions.map((_, i) => `Θ-000${i + 1}`),
    );
  },
);

proves(
  ['trail.record.errors', 'trail.pattern-a', 'trail.next-step', 'proof.frozen'],
  'thought_record says what is wrong with task and session, and records nothing',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    const thought = { type: 'risk', content: 'c' };
    const nothing = await desk.refused('thought_record', { ...thought, task_id: 'T-0001' });
    for (const title of ['one', 'two']) await desk.tasks.create({ title });
    await desk.tasks.create({ parent_id: 'T-0001' });
    await desk.open('T-0001');
    await desk.open('T-0002');
    await desk.think('T-0002');
    const { finalized_at } = await desk.ok('merkle_finalize', { session_id: 'A-0002' });

    const noTask = await desk.refused('thought_record', { ...thought, task_id: 'T-0009' });
    const noId = await desk.refused('thought_record', { ...thought, task_id: 't-1' });
    const noSession = await desk.refused('thought_record', {
      ...thought,
      task_id: 'T-0001',
      session_id: 'A-0007',
    });
    const elsewhere = await desk.refused('thought_record', {
      ...thought,
      task_id: 'T-0002',
      session_id: 'A-0001',
    });
    const shallow = await desk.refused('thought_record', {
      ...thought,
      task_id: 'T-0003',
      session_id: 'A-0001',
    });
    const closed = await desk.refused('thought_record', {
      ...thought,
      task_id: 'T-0002',
      session_id: 'A-0002',
    });
    const { thought_count } = await desk.ok('thought_record_list', { task_id: 'T-0001' });

    expect(nothing).toMatchObject({
      code: 'ERR_TASK_NOT_FOUND',
      message: expect.stringContaining('task_create'),
    });
    expect(noTask).toMatchObject({
      code: 'ERR_TASK_NOT_FOUND',
      message: expect.stringContaining('T-0003'),
      details: { field: 'task_id', id: 'T-0009', nearest: ['T-0001', 'T-0002', 'T-0003'] },
    });
    expect(noId.code).toBe('ERR_TASK_NOT_FOUND');
    expect(noSession).toMatchObject({
      code: 'ERR_SESSION_NOT_FOUND',
      message: expect.stringContaining('A-0002'),
      details: { field: 'session_id', id: 'A-0007', nearest: ['A-0001', 'A-0002'] },
    });
    for (const refusal of [elsewhere, shallow]) {
      expect(refusal).toMatchObject({
        code: 'ERR_SESSION_NOT_FOUND',
        message: expect.stringMatching(/does not cover .* audit_session_start/),
        details: { session_id: 'A-0001', session_task_id: 'T-0001' },
      });
    }
    expect(closed).toMatchObject({
      code: 'ERR_ALREADY_FINALIZED',
      message: expect.stringContaining('audit_session_start'),
      details: { session_id: 'A-0002', finalized_at },
    });
    expect(thought_count).toBe(0);
  },
);

proves(
  ['proof.grade', 'trail.record.errors', 'trail.next-step'],
  'a proof-grade task takes thoughts only into an open session and ends only with a finalized one',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create({ proof_grade: true });
    const none = await desk.refused('thought_record', { task_id: 'T-0001', type: 'plan', content: 'c' });
    await desk.tasks.move('T-0001', 'todo', 'in_progress', 'review');
    await desk.open('T-0001');
    const { session_id } = await desk.think('T-0001');

    const open = await desk.tasks.refused('task_update', { task_id: 'T-0001', status: 'done' });
    await desk.ok('merkle_finalize', { session_id: 'A-0001' });
    const after = await desk.refused('thought_record', { task_id: 'T-0001', type: 'plan', content: 'c' });
    const done = await desk.tasks.update('T-0001', { status: 'done' });

    expect(none).toMatchObject({
      code: 'ERR_SESSION_REQUIRED',
      message: expect.stringContaining('audit_session_start'),
      details: { task_id: 'T-0001' },
    });
    expect(session_id).toBe('A-0001');
    expect(open.code).toBe('ERR_PROOF_REQUIRED');
    expect(after.code).toBe('ERR_SESSION_REQUIRED');
    expect(done.status).toBe('done');
  },
);

proves(
  ['trail.list.fields', 'trail.list.count'],
  'a listing shows 100 unasked and 500 at most, and counts all that match',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create();
    await desk.open('T-0001');
    const types = (i: number) => (i % 3 === 0 ? 'risk' : 'plan');
    await Promise.all(
      Array.from({ length: 502 }, (_, i) => desk.think('T-0001', `thought ${i}`, { type: types(i) })),
    );
    const list = async (more: object) => await desk.ok('thought_record_list', { task_id: 'T-0001', ...more });

    const unasked = await list({});
    const most = await list({ limit: 500 });
    const one = await list({ limit: 1, offset: 501 });
    const past = await list({ offset: 502 });
    const risks = await list({ type: 'risk', limit: 500, offset: 1 });
    const session = await desk.ok('thought_record_list', { session_id: 'A-0001', limit: 2, offset: 3 });

    expect(unasked.thoughts.map(({ chain_position }) => chain_position)).toEqual(
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
    expect(most.thoughts).toHaveLength(500);
    expect(one.thoughts).toMatchObject([{ chain_position: 502, content: 'thought 501' }]);
    expect(past.thoughts).toEqual([]);
    for (const { thought_count } of [unasked, most, one, past, session]) expect(thought_count).toBe(502);
    expect(risks.thought_count).toBe(168);
    expect(risks.thoughts).toHaveLength(167);
    expect(risks.thoughts.every(({ type }) => type === 'risk')).toBe(true);
    expect(session.thoughts.map(({ thought_id }) => thought_id)).toEqual(['Θ-0004', 'Θ-0005']);
    for (const key of ['chain_valid', 'invalid_links']) expect(unasked).not.toHaveProperty(key);
  },
);

proves(
  ['trail.list.fields', 'trail.list.errors', 'trail.verify.errors', 'trail.pattern-a', 'trail.next-step'],
  'verifying wants exactly one subject, and both reading tools want subjects that exist and each field within its limits',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create();
    await desk.open('T-0001');
    const task = { task_id: 'T-0001' };
    const both = { task_id: 'T-0001', session_id: 'A-0001' };

    for (const tool of ['thought_record_list', 'audit_verify_chain'] as const) {
      await desk.rejected(tool, { task_id: '' });
      await desk.rejected(tool, { session_id: 'A'.repeat(33) });
      await desk.rejected(tool, { ...task, taskid: 'T-0001' });
    }
    for (const args of [{}, both])
      expect(await desk.rejected('audit_verify_chain', args)).toMatch(
        /exactly one of task_id and session_id/,
      );
    for (const wrong of [
      { limit: 0 },
      { limit: 501 },
      { limit: 1.5 },
      { offset: -1 },
      { offset: 0.5 },
      { type: 'thought' },
      { verify_chain: 'yes' },
    ])
      expect(await desk.rejected('thought_record_list', { ...task, ...wrong })).toContain(
        Object.keys(wrong)[0],
      );
    expect(await desk.rejected('audit_verify_chain', { ...task, full_trace: 1 })).toContain('full_trace');
    const errors = [
      await desk.refused('thought_record_list', { task_id: 'T-0002' }),
      await desk.refused('thought_record_list', { session_id: 'A-0002' }),
      await desk.refused('audit_verify_chain', { task_id: 'T-0002' }),
      await desk.refused('audit_verify_chain', { session_id: 'A-0002' }),
      await desk.refused('audit_verify_chain', { session_id: 'T-0001' }),
    ];

    expect(errors).toMatchObject([
      {
        code: 'ERR_TASK_NOT_FOUND',
        message: expect.stringContaining('T-0001'),
        details: { field: 'task_id' },
      },
      { code: 'ERR_SESSION_NOT_FOUND', message: expect.stringContaining('A-0001') },
      { code: 'ERR_NOT_FOUND', message: expect.stringContaining('T-0001'), details: { field: 'task_id' } },
      { code: 'ERR_NOT_FOUND', message: expect.stringContaining('A-0001'), details: { field: 'session_id' } },
      { code: 'ERR_NOT_FOUND', message: expect.stringContaining('A-0001') },
    ]);
    expect((await desk.ok('thought_record_list', { ...task, verify_chain: true })).chain_valid).toBe(true);
    expect(await desk.ok('audit_verify_chain', task)).toMatchObject({
      total_records: 0,
      integrity_score: 100,
    });
  },
);

/** A repository on `main` with one commit; returns its id. */
function makeRepository(folder: string): string {
  const env = {
    PATH: process.env.PATH,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    ...Object.fromEntries(
      ['AUTHOR', 'COMMITTER'].flatMap((who) => [
        [`GIT_${who}_NAME`, 'a'],
        [`GIT_${who}_EMAIL`, 'a@example.org'],
      ]),
    ),
  };
  const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, env, encoding: 'utf8' }).trim();
  mkdirSync(folder);
  git('init', '-q', '-b', 'main');
  git('commit', '-q', '--allow-empty', '-m', 'first');
  return git('rev-parse', 'HEAD');
}

proves(
  'trail.git.observed',
  'what is omitted comes from the repository and is marked, what is claimed is kept',
  async ({ colibri }) => {
    const workspace = colibri.path('workspace');
    const sha = makeRepository(workspace);
    const desk = await openTrail(colibri, { env: { CLAUDE_PROJECT_DIR: workspace } });
    await desk.tasks.create();
    await desk.think('T-0001', 'nothing said');
    await desk.think('T-0001', 'a branch', { branch: 'side' });
    await desk.think('T-0001', 'a commit', { commit_sha: sha.slice(0, 9) });
    await desk.think('T-0001', 'both', { branch: 'side', commit_sha: sha });

    const { thoughts } = await desk.ok('thought_record_list', { task_id: 'T-0001', verify_chain: true });

    expect(thoughts.map(({ branch, commit_sha, observed }) => [branch, commit_sha, observed])).toEqual([
      ['main', sha, ['branch', 'commit_sha']],
      ['side', sha, ['commit_sha']],
      ['main', sha.slice(0, 9), ['branch']],
      ['side', sha, undefined],
    ]);
  },
  { unless: noGit },
);

proves(
  'trail.git.broken',
  'a repository that is broken, or none, leaves branch and commit out',
  async ({ colibri }) => {
    const workspace = colibri.path('workspace');
    makeRepository(workspace);
    const desk = await openTrail(colibri, { env: { CLAUDE_PROJECT_DIR: workspace } });
    await desk.tasks.create();
    const breaks = [
      () => writeFileSync(join(workspace, '.git', 'HEAD'), 'nonsense\u0000\n'),
      () => rmSync(join(workspace, '.git', 'HEAD')),
      () => rmSync(join(workspace, '.git'), { recursive: true }),
      () => writeFileSync(join(workspace, '.git'), 'gitdir: /nowhere/at/all\n'),
      () => writeFileSync(join(workspace, '.git'), ''),
    ];

    for (const breakIt of breaks) {
      breakIt();
      await desk.think('T-0001', 'anyway');
      await desk.think('T-0001', 'claimed', { commit_sha: 'a'.repeat(40), branch: 'b' });
    }
    const { thoughts } = await desk.ok('thought_record_list', { task_id: 'T-0001', verify_chain: true });

    expect(thoughts).toHaveLength(2 * breaks.length);
    for (const thought of thoughts) expect(thought).not.toHaveProperty('observed');
    for (const thought of thoughts.filter(({ content }) => content === 'anyway'))
      expect(Object.keys(thought)).not.toContain('branch');
  },
  { unless: noGit },
);
