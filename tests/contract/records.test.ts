import { expect } from 'vitest';
import { sha256 } from '../driver/audit-file.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { toolsMissing } from '../driver/surface.ts';
import { proves } from './proves.ts';

const noTrail = await toolsMissing(
  'task_create',
  'thought_record',
  'thought_record_list',
  'audit_session_start',
);

interface Thought {
  readonly thought_id: string;
  readonly task_id: string;
  readonly type: string;
  readonly content: string;
  readonly hash: string;
  readonly previous_hash: string | null;
  readonly recorded_at: string;
  readonly recorded_by: string;
}

proves(
  ['ids.global', 'ids.sequence'],
  'ids count globally with four digits, sequences per project',
  async ({ colibri }) => {
    const server = await colibri.start();

    const tasks = [];
    for (const project of ['one', 'two', 'one'])
      tasks.push(await data(server, 'task_create', { title: 'a', project }));
    const thoughts = [];
    for (const task_id of ['T-0001', 'T-0003'])
      thoughts.push(await data(server, 'thought_record', { task_id, type: 'plan', content: 'c' }));
    const session = await data(server, 'audit_session_start', { task_id: 'T-0002', auditor_id: 'me' });

    expect(tasks).toMatchObject([
      { task_id: 'T-0001', sequence: 1 },
      { task_id: 'T-0002', sequence: 1 },
      { task_id: 'T-0003', sequence: 2 },
    ]);
    expect(thoughts).toMatchObject([{ thought_id: 'Θ-0001' }, { thought_id: 'Θ-0002' }]);
    expect(session).toMatchObject({ session_id: 'A-0001' });
  },
  { unless: noTrail },
);

proves(
  ['ids.global', 'write.rolled-back'],
  'a call that is refused uses up no id',
  async ({ colibri }) => {
    const server = await colibri.start();

    await server.call('task_create', { title: 'a', project: 'one', parent_id: 'T-0099' });
    await server.call('task_create', { title: '', project: 'one' });

    expect(await data(server, 'task_create', { title: 'a', project: 'one' })).toMatchObject({
      task_id: 'T-0001',
      sequence: 1,
    });
  },
  { unless: noTrail },
);

proves(
  'ids.global',
  'ids go on where they were after a restart',
  async ({ colibri }) => {
    const first = await colibri.start();
    await first.call('task_create', { title: 'a', project: 'one' });
    await first.closeInput();

    const second = await colibri.start();

    expect(await data(second, 'task_create', { title: 'b', project: 'one' })).toMatchObject({
      task_id: 'T-0002',
      sequence: 2,
    });
  },
  { unless: noTrail },
);

proves(
  ['thoughts.chain', 'thoughts.hash'],
  'thoughts chain per task, each hash made of the six fields in their order',
  async ({ colibri }) => {
    const server = await colibri.start({ clientName: 'agent "Ω" \u2028' });
    for (const title of ['a', 'b']) await server.call('task_create', { title, project: 'demo' });
    for (const [i, task_id] of ['T-0001', 'T-0002', 'T-0001', 'T-0001', 'T-0002'].entries()) {
      await server.call('thought_record', { task_id, type: 'analysis', content: `thought ${i} "é😀\\\n` });
    }

    for (const [task_id, count] of [
      ['T-0001', 3],
      ['T-0002', 2],
    ] as const) {
      const { thoughts } = (await data(server, 'thought_record_list', { task_id })) as {
        thoughts: Thought[];
      };
      let previous_hash: string | null = null;
      for (const thought of thoughts) {
        const { type, content, recorded_at, recorded_by } = thought;
        expect(thought.previous_hash).toBe(previous_hash);
        expect(thought.hash).toBe(
          sha256(JSON.stringify({ task_id, type, content, previous_hash, recorded_at, recorded_by })),
        );
        previous_hash = thought.hash;
      }
      expect(thoughts).toHaveLength(count);
    }
  },
  { unless: noTrail },
);

proves(
  ['times.utc', 'actor.client'],
  'every record names its actor and a time between the two rows of its call',
  async ({ colibri }) => {
    const server = await colibri.start({ clientName: 'agent seven' });

    const task = await data(server, 'task_create', { title: 'a', project: 'demo' });
    const update = await data(server, 'task_update', { task_id: 'T-0001', priority: 'high' });
    const thought = await data(server, 'thought_record', { task_id: 'T-0001', type: 'plan', content: 'c' });

    const { calls } = colibri.readAudit();
    const recorded = [
      [task.created_by, task.created_at],
      [update.updated_by, update.updated_at],
      [thought.recorded_by, thought.recorded_at],
    ];
    for (const [i, [by, at]] of recorded.entries()) {
      expect(by).toBe('agent seven');
      expect(at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      expect(String(at) >= String(calls[i]?.enter.at)).toBe(true);
      expect(String(at) <= String(calls[i]?.exits[0]?.at)).toBe(true);
    }
  },
  { unless: noTrail },
);

async function data(server: ServerProcess, tool: string, args: object): Promise<Record<string, unknown>> {
  const { envelope, error } = await server.call(tool, args);
  expect(error).toBeUndefined();
  return envelope?.data ?? {};
}
