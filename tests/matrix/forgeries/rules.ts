import { formatId, SESSION_RECORDS, SESSIONS, TASKS, THOUGHTS } from '../../../src/log/tables.ts';
import {
  bodyOf,
  type Cells,
  type ForgedLog,
  type ForgedRow,
  type JsonObject,
  must,
  type NewCall,
  object,
} from '../forge.ts';
import * as legal from '../legal.ts';
import { type Forgery, forbidden, malformed, refusable, row, strayText } from './forgery.ts';

// What the rules do not allow, with every hash computed anew and the whole log signed by the owner of the key.

/** A change of a task that the rules do not give. */
function update(
  id: string,
  task: number,
  args: JsonObject,
  cells: Cells,
  columns: string[],
  more: Partial<Forgery> & { result?: JsonObject } = {},
): Forgery {
  const { result, ...others } = more;
  return {
    id,
    holds: 'everywhere',
    forge: (log) =>
      forbidden(
        legal.update(log, task, args, { cells, ...(result !== undefined && { result }) }),
        ...(columns.length === 0 ? ['error_code'] : columns),
      ),
    ...others,
  };
}

/** A new task that the rules do not give. */
function create(
  id: string,
  args: JsonObject,
  deviation: legal.Deviation,
  columns: string[],
  more: Partial<Forgery> = {},
): Forgery {
  return {
    id,
    holds: 'everywhere',
    forge: (log) =>
      forbidden(legal.create(log, args, deviation), ...(columns.length === 0 ? ['error_code'] : columns)),
    ...more,
  };
}

/** T-0011 is taken over from bob, and the answer says otherwise. */
function takeover(id: string, wrong: JsonObject | undefined): Forgery {
  return {
    id,
    holds: 'everywhere',
    forge(log) {
      const legalOne = legal.restarted(log, 11, 'alice');
      const { taken_over_from } = legalOne.result ?? {};
      const result = wrong === undefined ? {} : { taken_over_from: { ...object(taken_over_from), ...wrong } };
      return forbidden(legal.update(log, 11, { takeover: true }, { ...legalOne, result }), 'taken_over_from');
    },
  };
}

const HELD = { held_by: null, held_process: null, held_since: null };

export const RULE_FORGERIES: readonly Forgery[] = [
  update('a move that no transition allows', 8, { status: 'review' }, {}, [], { shownBy: 'T-0008' }),
  update('a pipeline task skips a step', 11, { status: 'PLAN' }, {}, [], { shownBy: 'T-0011' }),
  update('a finished task moves on', 1, { status: 'todo' }, {}, [], { shownBy: 'T-0001' }),
  update('a cancelled task moves on', 7, { status: 'todo' }, {}, [], { shownBy: 'T-0007' }),
  update('a task moves to a status of the other workflow', 8, { status: 'GATHER' }, {}, [], {
    shownBy: 'T-0008',
  }),
  update('a task is set to the status it has', 8, { status: 'backlog' }, {}, [], { shownBy: 'T-0008' }),
  update('finished without a thought', 13, { status: 'done' }, {}, [], { shownBy: 'T-0013' }),
  {
    id: 'a proof-grade task is finished while its session is open',
    holds: 'everywhere',
    shownBy: 'T-0012',
    forge(log) {
      const exit = legal.update(
        log,
        12,
        { status: 'done' },
        {
          besides: (call) => [
            legal.record(log, 4, { kind: 'change', ref: call.position, task_id: 12 }, call),
          ],
        },
      );
      return refusable(exit);
    },
  },
  {
    id: 'a proof-grade task is finished with an unsealed thought',
    holds: 'everywhere',
    shownBy: 'T-0014',
    forge(log) {
      const records = (task: number, kind: string) => (call: NewCall) => [
        legal.record(
          log,
          5,
          { kind, ref: kind === 'thought' ? log.nextId(THOUGHTS) : call.position, task_id: task },
          call,
        ),
      ];
      legal.open(log, 8, { scope: 'deep' });
      legal.create(log, { proof_grade: true, parent_id: 'T-0008' }, { besides: records(14, 'change') });
      const bound = {
        cells: { session_id: 5 },
        result: { session_id: 'A-0005' },
        besides: records(14, 'thought'),
      };
      legal.think(log, 14, {}, bound);
      legal.update(log, 8, { progress: 5 }, { besides: records(8, 'change') });
      legal.seal(log, 5, { task_id: 'T-0008' });
      for (const status of ['todo', 'in_progress', 'review']) legal.update(log, 14, { status });
      return refusable(legal.update(log, 14, { status: 'done' }));
    },
  },
  {
    id: 'a thought on a proof-grade task without a session',
    holds: 'everywhere',
    shownBy: 'T-0014',
    forge(log) {
      legal.create(log, { proof_grade: true });
      return refusable(legal.think(log, 14));
    },
  },
  create('a wrong default: priority', {}, { cells: { priority: 'low' } }, ['priority'], {
    takesReplay: true,
    shownBy: 'T-0014',
  }),
  create('a wrong default: assignee', {}, { cells: { assignee: 'mallory' } }, ['assignee'], {
    takesReplay: true,
  }),
  create(
    'a wrong default: workflow',
    {},
    { cells: { workflow: 'pipeline', status: 'INIT' }, result: { workflow: 'pipeline', status: 'INIT' } },
    ['status', 'workflow'],
    { takesReplay: true },
  ),
  create(
    'a new task that is not at its beginning',
    {},
    { cells: { status: 'todo' }, result: { status: 'todo' } },
    ['status'],
    { shownBy: 'T-0014' },
  ),
  {
    id: 'a default that is not in the arguments',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.create(log);
      delete must(bodyOf(log.enterOf(exit)), 'arguments').workflow;
      return row('malformed', log.enterOf(exit), 'workflow');
    },
    takesReplay: true,
  },
  create(
    'a project that the owner has not named',
    { project: 'other' },
    { outside: { projects: ['core', 'web'] } },
    [],
    { takesReplay: true },
  ),
  create('a parent that does not exist', { parent_id: 'T-0900' }, {}, [], { takesReplay: true }),
  create('a dependency that does not exist', { depends_on: ['T-0900'] }, {}, [], { takesReplay: true }),
  create('a new task that waits for its parent', { parent_id: 'T-0008', depends_on: ['T-0008'] }, {}, [], {
    takesReplay: true,
  }),
  update('a cycle of dependencies', 2, { depends_on: ['T-0001'] }, {}, [], { takesReplay: true }),
  update('a task that waits for itself', 8, { depends_on: ['T-0008'] }, {}, [], { takesReplay: true }),
  {
    id: 'a change of a task that does not exist',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.update(log, 8, { progress: 5 });
      log.argsOf(exit).task_id = 'T-0900';
      return refusable(exit);
    },
  },
  {
    id: 'an id is skipped',
    holds: 'everywhere',
    forge: (log) =>
      row(
        'forbidden',
        legal.create(log, {}, { cells: { id: 15 }, result: { task_id: 'T-0015' } }),
        'effects',
      ),
  },
  create('an id is given again', {}, { cells: { id: 8 }, result: { task_id: 'T-0008' } }, ['effects'], {}),
  create('a sequence is skipped', {}, { cells: { sequence: 99 }, result: { sequence: 99 } }, ['sequence'], {
    takesReplay: true,
  }),
  {
    id: 'a sequence of another project',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      const exit = legal.create(log, { project: 'new' }, { cells: { sequence: 7 }, result: { sequence: 7 } });
      return forbidden(exit, 'sequence');
    },
  },
  create('made by another than the actor', {}, { cells: { created_by: 'mallory' } }, ['created_by'], {
    takesReplay: true,
  }),
  create(
    'made at another time than the call',
    {},
    { cells: { created_at: '2026-01-01T00:00:00.000Z' } },
    ['created_at'],
    { shownBy: 'T-0014' },
  ),
  update('changed by another than the actor', 8, { progress: 5 }, { updated_by: 'mallory' }, ['updated_by'], {
    takesReplay: true,
  }),
  update(
    'changed at another time than the call',
    8,
    { progress: 5 },
    { updated_at: '2026-01-01T00:00:00.000Z' },
    ['updated_at'],
  ),
  update('moved by another than the actor', 8, { status: 'todo' }, { status_by: 'mallory' }, ['status_by'], {
    takesReplay: true,
  }),
  update(
    'moved at another time than the call',
    8,
    { status: 'todo' },
    { status_since: '2026-01-01T00:00:00.000Z' },
    ['status_since'],
    { takesReplay: true },
  ),
  update(
    'a task of which nobody took hold is held',
    8,
    { status: 'todo' },
    { held_by: 'alice' },
    ['held_by'],
    { takesReplay: true },
  ),
  {
    id: 'a task is held by another than the actor',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      legal.update(log, 8, { status: 'todo' });
      return forbidden(
        legal.update(log, 8, { status: 'in_progress' }, { cells: { held_by: 'mallory' } }),
        'held_by',
      );
    },
  },
  {
    id: 'a task is held by another process than the caller’s',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      legal.update(log, 8, { status: 'todo' });
      return forbidden(
        legal.update(log, 8, { status: 'in_progress' }, { cells: { held_process: 'a.b.1.c' } }),
        'held_process',
      );
    },
  },
  {
    id: 'a hold goes on after the task left',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      legal.update(log, 8, { status: 'todo' });
      const {
        held_by = null,
        held_process = null,
        held_since = null,
      } = log.written(legal.update(log, 8, { status: 'in_progress' }), TASKS).row;
      const held: Cells = { held_by, held_process, held_since };
      return forbidden(legal.update(log, 8, { status: 'review' }, { cells: held }), ...Object.keys(HELD));
    },
  },
  {
    id: 'a task moves although another holds it',
    holds: 'everywhere',
    shownBy: 'T-0011',
    forge(log) {
      const seen = { outside: { holder: { present: false } } };
      const taken_over_from = legal.former(log, 11, false);
      return refusable(
        legal.update(log, 11, { status: 'ANALYZE' }, { ...seen, result: { taken_over_from } }),
      );
    },
  },
  {
    id: 'a task moves in a second process of its holder',
    holds: 'everywhere',
    shownBy: 'T-0011',
    forge(log) {
      const seen = { actor: 'bob', outside: { holder: { present: true } } };
      const result = { taken_over_from: legal.former(log, 11) };
      return refusable(legal.update(log, 11, { status: 'ANALYZE' }, { ...seen, result }));
    },
  },
  {
    id: 'a takeover that does not say whether the holder was there',
    holds: 'everywhere',
    shownBy: 'T-0011',
    forge(log) {
      const result = { taken_over_from: legal.former(log, 11) };
      return forbidden(legal.update(log, 11, { takeover: true }, { result }), 'result_hash');
    },
  },
  takeover('a takeover from another than the holder', { held_by: 'mallory' }),
  takeover('a takeover from a holder that was seen earlier', { last_seen: '2026-01-01T00:00:00.000Z' }),
  takeover('a takeover from a holder that was not as it was seen', { present: true }),
  takeover('a takeover that nobody is told of', undefined),
  {
    id: 'a takeover by another than the actor',
    holds: 'everywhere',
    shownBy: 'T-0011',
    forge: (log) =>
      forbidden(
        legal.update(
          log,
          11,
          { takeover: true },
          { ...legal.restarted(log, 11, 'alice'), cells: { held_by: 'mallory' } },
        ),
        'held_by',
      ),
  },
  update('a takeover of a task that nobody holds', 8, { takeover: true }, {}, [], { shownBy: 'T-0008' }),
  {
    id: 'a holder is refused as if another held it',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      legal.update(log, 8, { status: 'todo' });
      legal.update(log, 8, { status: 'in_progress' });
      const args = { task_id: 'T-0008', status: 'review' };
      return row('forbidden', legal.refuse(log, 'task_update', args, 'ERR_TASK_HELD'), 'error_code');
    },
  },
  {
    id: 'a person holds a task with a process',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      legal.update(log, 8, { status: 'todo' });
      const held = { source: 'cli', cells: { held_process: log.last.fields.process } } as const;
      return forbidden(legal.update(log, 8, { status: 'in_progress' }, held), 'held_process');
    },
  },
  {
    id: 'finished with less than all progress',
    holds: 'everywhere',
    shownBy: 'T-0013',
    forge(log) {
      legal.think(log, 13);
      return forbidden(
        legal.update(log, 13, { status: 'done' }, { cells: { progress: 70 }, result: { progress: 70 } }),
        'progress',
      );
    },
  },
  {
    id: 'a task goes on and keeps its reason to wait',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      legal.update(log, 8, { status: 'todo' });
      const { row: blocked } = log.written(
        legal.update(log, 8, { status: 'blocked', blocked_reason: 'Rain.' }),
        TASKS,
      );
      const exit = legal.update(
        log,
        8,
        { status: 'todo' },
        { cells: { blocked_reason: blocked.blocked_reason ?? null } },
      );
      return forbidden(exit, 'blocked_reason');
    },
  },
  outsideSchema('blocked without a reason', { status: 'blocked' }, 'blocked_reason', (log) =>
    legal.update(log, 8, { status: 'todo' }),
  ),
  outsideSchema('more progress than there is', { progress: 150 }, 'progress'),
  outsideSchema('a priority that there is not', { priority: 'urgent' }, 'priority'),
  outsideSchema('a change of nothing', {}, 'body'),
  outsideSchema('an argument that no tool takes', { progress: 5, comment: 'x' }, 'comment'),
  outsideSchema('dependencies that are no list', { depends_on: 5 }, 'depends_on'),
  outsideSchema('an assignee without a name', { assignee: '' }, 'assignee'),
  {
    id: 'a task that is a number',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      const exit = legal.update(log, 8, { progress: 5 });
      log.argsOf(exit).task_id = 8;
      return row('malformed', log.enterOf(exit), 'task_id');
    },
  },
  seenOutside('projects that are one text', { projects: 'a web b' }, (log, outside) =>
    legal.create(log, {}, { outside }),
  ),
  seenOutside('a repository that is a text', { git: 'trunk' }, (log, outside) =>
    legal.think(log, 8, {}, { outside }),
  ),
  seenOutside('skills that are a number', { skills: 5 }, (log, outside) =>
    legal.open(log, 8, {}, { outside }),
  ),
  seenOutside('something that nobody looks at', { weather: 'rain' }, (log, outside) =>
    legal.update(log, 8, { progress: 5 }, { outside }),
  ),
  update('a result without the warning that is due', 8, { progress: 100 }, {}, ['warnings'], {
    takesReplay: true,
  }),
  create('a result that the rule does not give', {}, { result: { created_by: 'mallory' } }, ['created_by'], {
    takesReplay: true,
  }),
  create('a result with something besides', {}, { result: { comment: 'x' } }, ['comment'], {
    takesReplay: true,
  }),
  {
    id: 'a refusal though the rule allows it',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) =>
      forbidden(
        legal.refuse(log, 'task_update', { task_id: 'T-0008', status: 'todo' }, 'ERR_INVALID_TRANSITION'),
        'error_code',
      ),
  },
  {
    id: 'a refusal with another code than the rule’s',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) =>
      forbidden(
        legal.refuse(log, 'task_update', { task_id: 'T-0008', status: 'review' }, 'ERR_WRITEBACK_REQUIRED'),
        'error_code',
      ),
  },
  {
    id: 'an effect is missing',
    holds: 'everywhere',
    shownBy: 'T-0008',
    forge(log) {
      const exit = legal.update(log, 8, { progress: 5 });
      exit.patch = (fields) => void Object.assign(fields, { effects: [] });
      const { position } = log.versions(TASKS, 8).at(-2) ?? {};
      const altered = row('altered', Number(position), 'position', 'progress', 'updated_at');
      return [forbidden(exit, 'effects'), { ...altered, record: 'T-0008' }];
    },
  },
  {
    id: 'an effect is missing and so is what it did',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.update(log, 8, { progress: 5 });
      const found = forbidden(exit, 'effects');
      exit.writes = [];
      return found;
    },
  },
  {
    id: 'an effect too many',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      const exit = legal.update(
        log,
        8,
        { progress: 5 },
        {
          besides: (call) => [
            { table: TASKS, row: { ...log.state(TASKS, 7), progress: 5, position: call.position } },
          ],
        },
      );
      return { ...forbidden(exit, 'effects'), record: 'T-0007' };
    },
  },
  {
    id: 'an effect of another table than the tool writes',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.update(
        log,
        8,
        { progress: 5 },
        {
          besides: (call) => [
            { table: SESSIONS, row: { ...log.state(SESSIONS, 3), auditor_id: 'x', position: call.position } },
          ],
        },
      );
      return { ...forbidden(exit, 'effects'), record: 'A-0003' };
    },
  },
  {
    id: 'an effect that follows another row than it says',
    holds: 'everywhere',
    shownBy: 'T-0008',
    forge(log) {
      const exit = legal.update(log, 8, { progress: 5 });
      exit.patch = (fields) => void Object.assign(object((fields.effects as unknown[])[0]), { previous: 1 });
      return row('forbidden', exit, 'effects');
    },
  },
  {
    id: 'a row of state that is older than its effect',
    holds: 'everywhere',
    shownBy: 'T-0008',
    forge(log) {
      const exit = legal.update(log, 8, { progress: 5 });
      log.edit((db) => db.prepare('UPDATE tasks SET progress = 0 WHERE id = 8').run());
      return { kind: 'altered', record: 'T-0008', columns: ['progress'], position: exit.fields.position };
    },
  },
  {
    id: 'a thought is written a second time',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.think(
        log,
        8,
        {},
        {
          besides: (call) => [
            {
              table: THOUGHTS,
              row: { ...log.state(THOUGHTS, 1), branch: 'x', position: call.position },
              isFixed: true,
            },
          ],
        },
      );
      const { position } = log.versions(THOUGHTS, 1)[0] ?? {};
      return [
        { ...row('altered', Number(position), 'branch', 'position'), record: 'Θ-0001' },
        row('forbidden', exit, 'effects'),
      ];
    },
  },
  {
    id: 'a session is sealed twice',
    holds: 'everywhere',
    shownBy: 'A-0001',
    forge: (log) => refusable(legal.seal(log, 1)),
  },
  {
    id: 'a session without records is sealed',
    holds: 'everywhere',
    forge(log) {
      legal.open(log, 8);
      return malformed(legal.seal(log, 5));
    },
  },
  sealed('a seal with another root', { merkle_root: 'b'.repeat(64) }, ['merkle_root']),
  sealed('a seal with another number of leaves', { leaf_count: 99 }, ['leaf_count']),
  sealed('a seal with another depth', { tree_depth: 1 }, ['tree_depth']),
  {
    id: 'a seal in the effect that is not that of the row',
    holds: 'everywhere',
    shownBy: 'A-0003',
    forge(log) {
      const exit = legal.seal(log, 3);
      exit.patch = (fields) =>
        void Object.assign(object((fields.effects as unknown[])[0]), {
          seal: { leaf_count: 1, merkle_root: 'b'.repeat(64) },
        });
      return forbidden(exit, 'seal');
    },
  },
  {
    id: 'a seal in an effect that seals nothing',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.update(log, 8, { progress: 5 });
      exit.patch = (fields) =>
        void Object.assign(object((fields.effects as unknown[])[0]), {
          seal: { leaf_count: 1, merkle_root: 'b'.repeat(64) },
        });
      return row('forbidden', exit, 'effects');
    },
  },
  {
    id: 'a seal of one task that covers all',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.seal(log, 3, { task_id: 'T-0009' }, { cells: { sealed_task_id: null } });
      return forbidden(exit, 'leaf_count', 'merkle_root', 'sealed_task_id', 'tree_depth');
    },
  },
  {
    id: 'a session is opened beside an open one',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      const exit = legal.open(log, 9);
      // Sealed at once: the index of the table lets no two be open.
      const sealed = legal.seal(log, 3);
      return sealed.writes.length === 0 ? [] : refusable(exit);
    },
  },
  {
    id: 'a record is added to a finalised session',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.update(
        log,
        6,
        { progress: 5 },
        {
          besides: (call) => [legal.record(log, 2, { kind: 'change', ref: call.position, task_id: 6 }, call)],
        },
      );
      return { ...forbidden(exit, 'effects'), record: 'R-0019' };
    },
  },
  {
    id: 'a record is missing from an open session',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) => ({ ...forbidden(legal.update(log, 9, { progress: 5 }), 'effects'), record: 'R-0019' }),
  },
  {
    id: 'a record of another call',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.update(
        log,
        9,
        { progress: 5 },
        {
          besides: (call) => [legal.record(log, 3, { kind: 'change', ref: 3, task_id: 9 }, call)],
        },
      );
      return { ...forbidden(exit, 'ref'), record: 'R-0019' };
    },
  },
  {
    id: 'a thought is bound to a session that does not cover it',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) =>
      forbidden(
        legal.think(log, 8, {}, { cells: { session_id: 3 }, result: { session_id: 'A-0003' } }),
        'session_id',
      ),
  },
  {
    id: 'a thought names a finalised session',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) =>
      refusable(
        legal.think(
          log,
          6,
          { session_id: 'A-0002' },
          { cells: { session_id: 2 }, result: { session_id: 'A-0002' } },
        ),
      ),
  },
  thought('a thought with another hash', { hash: 'e'.repeat(64) }, ['hash']),
  thought('a thought that follows another', { previous_hash: 'e'.repeat(64) }, ['previous_hash']),
  {
    id: 'a thought at another time than the call',
    holds: 'everywhere',
    forge: (log) =>
      forbidden(
        legal.think(
          log,
          2,
          {},
          {
            cells: { recorded_at: '2026-01-01T00:00:00.000Z' },
            result: { recorded_at: '2026-01-01T00:00:00.000Z' },
          },
        ),
        'hash',
        'recorded_at',
      ),
  },
  {
    id: 'a thought by another than the actor',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) =>
      forbidden(
        legal.think(log, 2, {}, { cells: { recorded_by: 'mallory' }, result: { recorded_by: 'mallory' } }),
        'hash',
        'recorded_by',
      ),
  },
  {
    id: 'a thought on another branch than was seen',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) => forbidden(legal.think(log, 8, {}, { cells: { branch: 'main' } }), 'branch'),
  },
  {
    id: 'a claimed branch that is called observed',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) =>
      forbidden(
        legal.think(log, 8, { branch: 'main' }, { cells: { observed: '["branch","commit_sha"]' } }),
        'observed',
      ),
  },
  {
    id: 'a commit that was not seen',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) =>
      forbidden(legal.think(log, 8, {}, { cells: { commit_sha: 'a'.repeat(40) } }), 'commit_sha'),
  },
  {
    id: 'a session under other skills than were in force',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) => forbidden(legal.open(log, 8, {}, { cells: { skills: '[]' } }), 'skills'),
  },
  {
    id: 'a session of another auditor than was asked for',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) => forbidden(legal.open(log, 8, {}, { cells: { auditor_id: 'mallory' } }), 'auditor_id'),
  },
  {
    id: 'a session on a task that does not exist',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) => refusable(legal.open(log, 900)),
  },
  {
    id: 'an owner’s act with an effect',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.adopt(log);
      exit.writes = [
        { table: TASKS, row: { ...log.state(TASKS, 8), progress: 5, position: exit.fields.position } },
      ];
      return forbidden(exit, 'effects');
    },
  },
  {
    id: 'an owner’s act over MCP',
    holds: 'everywhere',
    forge: (log) => row('forbidden', log.enterOf(legal.adopt(log, 'mcp')), 'source'),
  },
  {
    id: 'an owner’s act with another result',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      const exit = legal.adopt(log);
      log.resultOf(exit).adopted_rows = 3;
      return forbidden(exit, 'adopted_rows');
    },
  },
  {
    id: 'a tool that no rules know has written',
    holds: 'everywhere',
    forge(log) {
      const exit = log.append({
        tool: 'task_delete',
        actor: 'alice',
        args: { task_id: 'T-0008' },
        result: {},
      });
      exit.writes = [
        { table: TASKS, row: { ...log.state(TASKS, 8), progress: 5, position: exit.fields.position } },
      ];
      return [row('forbidden', log.enterOf(exit), 'tool'), forbidden(exit, 'effects'), row('stray', exit)];
    },
  },
  {
    id: 'a tool that there is not has answered',
    holds: 'everywhere',
    forge: (log) =>
      row('forbidden', log.enterOf(legal.read(log, 'task_peek', { task_id: 'T-0001' })), 'tool'),
  },
  ...['constructor', '__proto__'].map(
    (tool): Forgery => ({
      id: `a tool called ${tool} has answered`,
      holds: 'everywhere',
      forge: (log) => row('forbidden', log.enterOf(legal.read(log, tool, {})), 'tool'),
    }),
  ),
  {
    id: 'effects in another order than they were written',
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      const exit = legal.update(
        log,
        9,
        { progress: 5 },
        {
          besides: (call) => [legal.record(log, 3, { kind: 'change', ref: call.position, task_id: 9 }, call)],
        },
      );
      exit.writes.reverse();
      return forbidden(exit, 'effects');
    },
  },
  {
    id: 'an effect on an id with a zero too many',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.update(log, 8, { progress: 5 });
      exit.patch = (fields) =>
        void Object.assign(object((fields.effects as unknown[])[0]), { id: 'T-00008' });
      return malformed(exit);
    },
  },
  {
    id: 'a title longer than a title can be',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) => row('malformed', log.enterOf(legal.create(log, { title: 'x'.repeat(257) })), 'title'),
  },
  {
    id: 'a thought that says nothing',
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) => row('malformed', log.enterOf(legal.think(log, 8, { content: '  ' })), 'content'),
  },
  {
    id: 'a call that wrote is called a read',
    holds: 'everywhere',
    forge(log) {
      const exit = log.exit('task_update', 'ok', { task_id: 'T-0007' });
      for (const one of [log.enterOf(exit), exit]) one.fields.tool = 'task_get';
      return [forbidden(exit, 'effects'), row('stray', exit)];
    },
  },
];

/** A change of T-0008 whose arguments no server would have taken. */
function outsideSchema(
  id: string,
  args: JsonObject,
  argument: string,
  before: (log: ForgedLog) => unknown = () => undefined,
): Forgery {
  return {
    id,
    holds: 'everywhere',
    takesReplay: true,
    forge(log) {
      before(log);
      return row('malformed', log.enterOf(legal.update(log, 8, args)), argument);
    },
  };
}

/** A call that was told from outside what nobody can have told it. */
function seenOutside(
  id: string,
  outside: JsonObject,
  call: (log: ForgedLog, outside: JsonObject) => ForgedRow,
): Forgery {
  return {
    id: `seen outside: ${id}`,
    holds: 'everywhere',
    takesReplay: true,
    forge: (log) => row('malformed', call(log, outside), 'body'),
  };
}

/** A seal of A-0003 that is not that of its records. */
function sealed(id: string, cells: Cells, columns: string[]): Forgery {
  return {
    id,
    holds: 'everywhere',
    shownBy: 'A-0003',
    forge(log) {
      const exit = legal.seal(log, 3);
      log.contentHashes();
      const write = log.written(exit, SESSIONS);
      write.isFixed = true;
      Object.assign(write.row, cells);
      Object.assign(log.resultOf(exit), cells);
      return forbidden(exit, ...columns);
    },
  };
}

/** A second thought on T-0002 that is not linked as it must be. */
function thought(id: string, cells: Cells, columns: string[]): Forgery {
  return {
    id,
    holds: 'everywhere',
    shownBy: 'T-0002',
    forge(log) {
      const exit = legal.think(log, 2);
      log.contentHashes();
      const write = log.written(exit, THOUGHTS);
      write.isFixed = true;
      Object.assign(write.row, cells);
      Object.assign(log.resultOf(exit), cells);
      return forbidden(exit, ...columns);
    },
  };
}

/** A row of each table that a legal call writes, and each of its columns with another value: the argument that does not produce the row. */
const OTHER: Readonly<Record<string, Cells>> = {
  tasks: {
    ...{
      project: 'old',
      description: 'd',
      workflow: 'pipeline',
      status: 'cancelled',
      progress: 3,
      priority: 'high',
      type: 'doc',
    },
    ...{
      proof_grade: 1,
      assignee: 'x',
      labels: '["x"]',
      estimate_hours: 2,
      parent_id: 2,
      depends_on: '[2]',
      updated_by: 'x',
    },
    ...{ held_since: '2026-01-01T00:00:00.000Z', position: 3, title: 't', blocked_reason: 'b' },
    ...{ title_call: 3, description_call: 3, blocked_reason_call: 3 },
  },
  thoughts: {
    task_id: 3,
    type: 'risk',
    content: 'c',
    tests_run: 't',
    blockers: 'b',
    metadata: '{}',
    observed: '[]',
    call: 3,
    position: 3,
  },
  sessions: {
    ...{
      task_id: 2,
      scope: 'deep',
      status: 'closed',
      started_at: '2026-01-01T00:00:00.000Z',
      started_by: 'x',
    },
    ...{
      reason: 'r',
      call: 3,
      sealed_task_id: 8,
      finalized_at: '2026-01-01T00:00:00.000Z',
      finalized_by: 'x',
      position: 3,
    },
  },
  session_records: { session_id: 1, task_id: 8, kind: 'thought', position: 3 },
};

const CALLS = {
  tasks: (log: ForgedLog) => legal.create(log),
  thoughts: (log: ForgedLog) => legal.think(log, 8),
  sessions: (log: ForgedLog) => legal.open(log, 8),
  session_records: (log: ForgedLog) =>
    legal.update(
      log,
      9,
      { progress: 5 },
      {
        besides: (call) => [legal.record(log, 3, { kind: 'change', ref: call.position, task_id: 9 }, call)],
      },
    ),
} as const;

/** Columns that a thought's own hash is made of. */
const HASHED: ReadonlySet<string> = new Set(['thoughts.task_id', 'thoughts.type', 'thoughts.content']);

const TABLES = {
  tasks: TASKS,
  thoughts: THOUGHTS,
  sessions: SESSIONS,
  session_records: SESSION_RECORDS,
} as const;

/** Each column once, with a value that the arguments do not give. */
export const ARGUMENT_FORGERIES: readonly Forgery[] = (
  ['tasks', 'thoughts', 'sessions', 'session_records'] as const
).flatMap((name) =>
  Object.entries(OTHER[name] ?? {}).map(([column, value]): Forgery => {
    const table = TABLES[name];
    return {
      id: `arguments that do not give ${name}.${column}`,
      holds: 'everywhere',
      takesReplay: true,
      forge(log) {
        const exit = CALLS[name](log);
        const { row: cells } = log.written(exit, table);
        const isText = table.texts.includes(column);
        const other = isText ? log.addText(String(value)) : (value ?? null);
        cells[column] = other;
        const found = {
          ...forbidden(exit, column, ...(HASHED.has(`${name}.${column}`) ? ['hash'] : [])),
          record: formatId(table, Number(cells.id)),
        };
        return isText ? [found, strayText(String(other))] : found;
      },
    };
  }),
);
