import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { withDatabase } from '../driver/audit-file.ts';
import type { Playground } from '../driver/playground.ts';
import { proves } from './proves.ts';
import { openTrail, type TrailDesk, treeRoot } from './trail-desk.ts';

/** The position of the last audit row: after a call it is the exit row of that call. */
function lastRow(colibri: Playground): string {
  return `#${colibri.readAudit().entries.at(-1)?.position}`;
}

/** Does something to a task and names the record that comes of it. */
async function change(colibri: Playground, desk: TrailDesk, task_id: string, to: object): Promise<string> {
  await desk.tasks.update(task_id, to);
  return lastRow(colibri);
}

async function child(colibri: Playground, desk: TrailDesk, parent_id: string): Promise<string> {
  await desk.tasks.create({ parent_id });
  return lastRow(colibri);
}

async function thought(desk: TrailDesk, task_id: string, session_id?: string): Promise<string> {
  const { thought_id } = await desk.think(task_id, 'why', session_id === undefined ? {} : { session_id });
  return thought_id;
}

proves(
  ['proof.records.order', 'proof.root', 'proof.root.open', 'proof.root.final', 'proof.seal-in-log'],
  'a session holds the thoughts and changes of its task while it is open, in the order written, under their RFC 6962 root',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create({ title: 'watched' });
    await desk.tasks.create({ title: 'other' });
    await thought(desk, 'T-0001');
    await change(colibri, desk, 'T-0001', { progress: 5 });
    await desk.open('T-0001');
    const expected: string[] = [];
    const note = async (record: Promise<string>) => expected.push(await record);

    await note(thought(desk, 'T-0001'));
    await note(change(colibri, desk, 'T-0001', { status: 'todo' }));
    await thought(desk, 'T-0002');
    await change(colibri, desk, 'T-0002', { title: 'renamed' });
    await note(change(colibri, desk, 'T-0001', { title: 'renamed', priority: 'high' }));
    await desk.tasks.refused('task_update', { task_id: 'T-0001', status: 'done' });
    await desk.tasks.get('T-0001');
    await note(thought(desk, 'T-0001', 'A-0001'));
    await note(change(colibri, desk, 'T-0001', { status: 'blocked', blocked_reason: 'rain' }));
    const soFar = await desk.ok('merkle_root', { session_id: 'A-0001' });
    expected.push((await desk.think('T-0001', 'the last one')).thought_id);
    const lastAt = colibri.readAudit().rows.at(-1)?.at;
    const before = await desk.ok('merkle_root', { session_id: 'A-0001' });
    const sealed = await desk.ok('merkle_finalize', { session_id: 'A-0001' });
    const exit = colibri.readAudit().rows.at(-1);
    await thought(desk, 'T-0001');
    await change(colibri, desk, 'T-0001', { status: 'todo' });
    const after = await desk.ok('merkle_root', { session_id: 'A-0001' });

    const hashes = await desk.hashesOf(colibri, expected);
    expect(await desk.recordsOf('A-0001')).toEqual(expected);
    expect((await desk.verify({ session_id: 'A-0001' })).trace).toEqual(
      expected.map((record, i) => ({ position: i + 1, record, hash: hashes[i] })),
    );
    expect(soFar).toMatchObject({ is_finalized: false, merkle_root: treeRoot(hashes.slice(0, -1)) });
    expect(before).toMatchObject({ is_finalized: false, merkle_root: treeRoot(hashes), as_of: lastAt });
    expect(sealed).toMatchObject({ merkle_root: treeRoot(hashes), leaf_count: 6, frozen: true });
    expect(after).toEqual({
      session_id: 'A-0001',
      merkle_root: sealed.merkle_root,
      is_finalized: true,
      as_of: sealed.finalized_at,
    });
    expect(exit).toMatchObject({
      tool: 'merkle_finalize',
      outcome: 'ok',
      effects: [
        {
          table: 'sessions',
          id: 'A-0001',
          seal: { merkle_root: sealed.merkle_root, leaf_count: sealed.leaf_count },
        },
      ],
    });
  },
);

proves(
  ['proof.records.deep', 'proof.records.several', 'proof.root'],
  'a deep session follows all descendants, a shallow one none, and one task may be in several',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create({ title: 'root' });
    await desk.tasks.create({ title: 'child', parent_id: 'T-0001' });
    await desk.tasks.create({ title: 'elsewhere' });
    await desk.open('T-0001', { scope: 'deep' });
    await desk.open('T-0002', { scope: 'shallow' });
    await desk.open('T-0003', { scope: 'deep' });
    const sessions: Record<string, string[]> = { 'A-0001': [], 'A-0002': [], 'A-0003': [] };
    const note = async (record: Promise<string>, ...ids: string[]) => {
      const name = await record;
      for (const id of ids) sessions[id]?.push(name);
    };

    await note(thought(desk, 'T-0001'), 'A-0001');
    await note(thought(desk, 'T-0002'), 'A-0001', 'A-0002');
    await note(change(colibri, desk, 'T-0002', { status: 'todo' }), 'A-0001', 'A-0002');
    await note(child(colibri, desk, 'T-0002'), 'A-0001');
    await note(thought(desk, 'T-0004'), 'A-0001');
    await note(thought(desk, 'T-0004', 'A-0001'), 'A-0001');
    await note(change(colibri, desk, 'T-0004', { progress: 3 }), 'A-0001');
    await note(child(colibri, desk, 'T-0004'), 'A-0001');
    await note(thought(desk, 'T-0005'), 'A-0001');
    await note(thought(desk, 'T-0003'), 'A-0003');
    await desk.open('T-0005');
    sessions['A-0004'] = [];
    await note(change(colibri, desk, 'T-0005', { title: 'deepest' }), 'A-0001', 'A-0004');
    await note(thought(desk, 'T-0002', 'A-0001'), 'A-0001', 'A-0002');
    for (const session_id of ['A-0002', 'A-0001'])
      expect((await desk.ok('merkle_finalize', { session_id })).leaf_count).toBe(
        sessions[session_id]?.length,
      );
    await note(change(colibri, desk, 'T-0005', { title: 'still' }), 'A-0004');

    expect(sessions['A-0001']).toHaveLength(11);
    for (const [session_id, expected] of Object.entries(sessions)) {
      expect(await desk.recordsOf(session_id), session_id).toEqual(expected);
      const { merkle_root } = await desk.ok('merkle_root', { session_id });
      expect(merkle_root, session_id).toBe(treeRoot(await desk.hashesOf(colibri, expected)));
    }
  },
);

proves(
  ['proof.depth', 'proof.root'],
  'tree_depth counts levels, and each size has its RFC 6962 root',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    const depths: Record<number, number> = { 1: 1, 2: 2, 3: 3, 4: 3, 5: 4, 7: 4, 8: 4, 9: 5, 16: 5, 17: 6 };

    for (const [leaves, depth] of Object.entries(depths)) {
      const task_id = await desk.tasks.create();
      const session_id = await desk.open(task_id);
      const thoughts = await Promise.all(Array.from({ length: Number(leaves) }, () => desk.think(task_id)));
      const sealed = await desk.ok('merkle_finalize', { session_id });
      expect(sealed).toMatchObject({
        tree_depth: depth,
        leaf_count: Number(leaves),
        merkle_root: treeRoot(thoughts.map(({ hash }) => hash)),
      });
    }
  },
);

proves(
  'proof.finalize.task',
  'with task_id only the records of that task are sealed, and verification knows it',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create();
    await desk.tasks.create({ parent_id: 'T-0001' });
    await desk.open('T-0001', { scope: 'deep' });
    await thought(desk, 'T-0001');
    const first = await thought(desk, 'T-0002');
    await change(colibri, desk, 'T-0001', { progress: 1 });
    const second = await change(colibri, desk, 'T-0002', { progress: 2 });

    const sealed = await desk.ok('merkle_finalize', { session_id: 'A-0001', task_id: 'T-0002' });

    const root = treeRoot(await desk.hashesOf(colibri, [first, second]));
    expect(sealed).toMatchObject({ leaf_count: 2, tree_depth: 2, merkle_root: root });
    expect(await desk.recordsOf('A-0001')).toEqual([first, second]);
    expect((await desk.ok('merkle_root', { session_id: 'A-0001' })).merkle_root).toBe(root);
  },
);

proves(
  ['proof.start.fields', 'proof.start.one', 'proof.pattern-b'],
  'audit_session_start takes its fields within their limits, one open session a task',
  async ({ colibri }) => {
    const desk = await openTrail(colibri, { clientName: 'grace' });
    const noneYet = await desk.refused('audit_session_start', { task_id: 'T-0001', auditor_id: 'ada' });
    for (let i = 0; i < 4; i += 1) await desk.tasks.create();
    const start = async (args: object) => await desk.ok('audit_session_start', args);

    const least = await start({ task_id: 'T-0001', auditor_id: 'a' });
    const most = await start({
      task_id: 'T-0002',
      auditor_id: 'ä'.repeat(128),
      reason: 'r'.repeat(2_000),
      scope: 'deep',
    });
    const second = await desk.refused('audit_session_start', { task_id: 'T-0001', auditor_id: 'b' });
    const unknown = await desk.refused('audit_session_start', { task_id: 'T-0009', auditor_id: 'b' });
    for (const [field, value] of [
      ['auditor_id', undefined],
      ['auditor_id', ''],
      ['auditor_id', ' '],
      ['auditor_id', 'a'.repeat(129)],
      ['reason', ''],
      ['reason', 'r'.repeat(2_001)],
      ['scope', 'wide'],
      ['task_id', undefined],
      ['task_id', 'T'.repeat(33)],
      ['auditor', 'ada'],
    ] as const) {
      const args = { task_id: 'T-0003', auditor_id: 'ada', [field]: value };
      expect.soft(await desk.rejected('audit_session_start', args)).toContain(field);
    }
    await thought(desk, 'T-0001');
    await desk.ok('merkle_finalize', { session_id: 'A-0001' });
    const again = await start({ task_id: 'T-0001', auditor_id: 'c', scope: 'shallow' });

    expect(least).toMatchObject({
      session_id: 'A-0001',
      task_id: 'T-0001',
      auditor_id: 'a',
      scope: 'shallow',
    });
    expect(most).toMatchObject({ session_id: 'A-0002', auditor_id: 'ä'.repeat(128), scope: 'deep' });
    expect(noneYet).toMatchObject({
      code: 'ERR_TASK_NOT_FOUND',
      message: expect.stringContaining('task_create'),
    });
    expect(unknown).toMatchObject({ code: 'ERR_TASK_NOT_FOUND', message: expect.stringContaining('T-0004') });
    expect(second).toMatchObject({
      code: 'ERR_SESSION_EXISTS',
      message: expect.stringMatching(/A-0001.*merkle_finalize/),
      details: { session_id: 'A-0001', started_by: 'grace', started_at: least.started_at },
    });
    expect(again.session_id).toBe('A-0003');
  },
);

proves(
  ['proof.finalize.errors', 'proof.root.open', 'proof.pattern-b', 'proof.frozen'],
  'seal and root say what is wrong with a session and what to do',
  async ({ colibri }) => {
    const desk = await openTrail(colibri);
    await desk.tasks.create();
    await desk.tasks.create();
    const noneYet = await desk.refused('merkle_root', { session_id: 'A-0001' });
    await desk.open('T-0001');
    const ofRoot = [await desk.refused('merkle_root', { session_id: 'A-0001' })];
    const ofSeal = [await desk.refused('merkle_finalize', { session_id: 'A-0001' })];
    await desk.think('T-0001');

    ofRoot.push(await desk.refused('merkle_root', { session_id: 'A-0002' }));
    ofRoot.push(await desk.refused('merkle_root', { session_id: 'T-0001' }));
    ofSeal.push(await desk.refused('merkle_finalize', { session_id: 'A-0002' }));
    ofSeal.push(await desk.refused('merkle_finalize', { session_id: 'A-0001', task_id: 'T-0009' }));
    ofSeal.push(await desk.refused('merkle_finalize', { session_id: 'A-0001', task_id: 'T-0002' }));
    const { finalized_at, merkle_root } = await desk.ok('merkle_finalize', { session_id: 'A-0001' });
    ofSeal.push(await desk.refused('merkle_finalize', { session_id: 'A-0001' }));
    ofSeal.push(await desk.refused('merkle_finalize', { session_id: 'A-0001', task_id: 'T-0001' }));
    for (const tool of ['merkle_root', 'merkle_finalize'] as const) {
      expect(await desk.rejected(tool, {})).toContain('session_id');
      expect(await desk.rejected(tool, { session_id: 'A'.repeat(33) })).toContain('session_id');
      expect(await desk.rejected(tool, { session_id: 'A-0001', session: 'A-0001' })).toContain('session');
    }
    expect(await desk.rejected('merkle_root', { session_id: 'A-0001', task_id: 'T-0001' })).toContain(
      'task_id',
    );

    expect(noneYet.message).toContain('audit_session_start');
    expect(ofRoot).toMatchObject([
      { code: 'ERR_NOT_FINALIZED', message: expect.stringMatching(/Record a thought/) },
      { code: 'ERR_SESSION_NOT_FOUND', message: expect.stringContaining('A-0001') },
      { code: 'ERR_SESSION_NOT_FOUND', message: expect.stringContaining('A-0001') },
    ]);
    expect(ofSeal).toMatchObject([
      { code: 'ERR_NO_RECORDS', message: expect.stringContaining('thought_record') },
      { code: 'ERR_SESSION_NOT_FOUND', message: expect.stringContaining('A-0001') },
      { code: 'ERR_TASK_NOT_FOUND', message: expect.stringContaining('T-0002') },
      { code: 'ERR_NO_RECORDS', message: expect.stringMatching(/T-0002.*thought_record/) },
      {
        code: 'ERR_ALREADY_FINALIZED',
        message: expect.stringContaining('merkle_root'),
        details: { session_id: 'A-0001', finalized_at, merkle_root },
      },
      { code: 'ERR_ALREADY_FINALIZED' },
    ]);
  },
);

proves(
  'proof.start.skills',
  'a session records the skills in force when it began, as skill_list shows them',
  async ({ colibri }) => {
    const skills = colibri.path('skills');
    const write = (name: string, text: string) => {
      mkdirSync(join(skills, name), { recursive: true });
      writeFileSync(
        join(skills, name, 'SKILL.md'),
        `---\nname: ${name}\ndescription: ${text}\n---\n${text}\n`,
      );
    };
    write('review', 'How to review.');
    write('deploy', 'How to deploy.');
    const desk = await openTrail(colibri, { env: { COLIBRI_SKILLS_DIR: skills } });
    await desk.tasks.create();
    await desk.tasks.create();
    const inForce = async () => {
      const { skills } = await desk.tasks.other('skill_list', {});
      return (skills as { name: string; digest: string }[]).map(({ name, digest }) => ({ name, digest }));
    };
    const recorded = (id: number): unknown =>
      withDatabase(colibri.dbPath, (db) =>
        JSON.parse(db.prepare('SELECT skills FROM sessions WHERE id = ?').pluck().get(id) as string),
      );

    await desk.open('T-0001');
    const before = await inForce();
    write('review', 'How to review differently.');
    await desk.open('T-0002');
    const after = await inForce();

    expect(before).toHaveLength(2);
    expect(after).not.toEqual(before);
    expect(recorded(1)).toEqual(before);
    expect(recorded(2)).toEqual(after);
  },
);
