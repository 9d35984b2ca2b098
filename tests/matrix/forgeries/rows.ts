import { TASKS, THOUGHTS } from '../../../src/log/tables.ts';
import type { ForgedLog, ForgedRow, JsonObject } from '../forge.ts';
import { newSalt, object } from '../forge.ts';
import * as legal from '../legal.ts';
import {
  type Forgery,
  forbidden,
  foreign,
  malformed,
  missingSeals,
  refusable,
  row,
  strayText,
} from './forgery.ts';

// The form of rows, their order, pairing, times, payloads and texts.

/** A ping whose rows nothing else depends on. */
function ping(log: ForgedLog): ForgedRow {
  return log.exits('server_ping')[3] ?? log.last;
}

/** Changes one row of a ping as its owner can, and expects it to be called malformed. */
function misshapen(
  id: string,
  stage: 'enter' | 'exit',
  change: JsonObject,
  more: Partial<Forgery> = {},
): Forgery {
  return {
    id,
    holds: 'everywhere',
    forge(log) {
      const target = stage === 'exit' ? ping(log) : log.enterOf(ping(log));
      target.patch = (fields) => void Object.assign(fields, change);
      return malformed(target);
    },
    ...more,
  };
}

/** Makes the two rows of a ping disagree. */
function unpaired(id: string, column: string, value: unknown): Forgery {
  return {
    id,
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      Object.assign(exit.fields, { [column]: value });
      return row('unpaired', exit, column);
    },
  };
}

const UUID = '01234567-89ab-4def-8123-456789abcdef';

export const ROW_FORGERIES: readonly Forgery[] = [
  {
    id: 'V1 a ping rewrites a thought, without the key',
    holds: 'everywhere',
    forge(log) {
      const signed = log.last.fields.position;
      const exit = legal.read(log, 'server_ping', {});
      const before = log.state(THOUGHTS, 1);
      const content = log.addText('I never said that.');
      exit.writes = [
        { table: THOUGHTS, row: { ...before, content, position: exit.fields.position }, isFixed: true },
      ];
      log.sign = 'none';
      const altered = row('altered', Number(before.position), 'content', 'position');
      return [
        { ...altered, record: 'Θ-0001' },
        forbidden(exit, 'effects'),
        foreign(signed + 1, signed + 2),
        strayText(content),
      ];
    },
  },
  {
    id: 'V1 a ping finishes a proof-grade task, without the key',
    holds: 'everywhere',
    forge(log) {
      const signed = log.last.fields.position;
      const exit = legal.read(log, 'server_ping', {});
      const task = { ...log.state(TASKS, 12), status: 'done', progress: 100, created_by: 'mallory' };
      exit.writes = [{ table: TASKS, row: { ...task, position: exit.fields.position } }];
      log.sign = 'none';
      return [forbidden(exit, 'effects'), foreign(signed + 1, signed + 2)];
    },
  },
  {
    id: 'V1 a sealed thought is changed and the session sealed again, without the key',
    holds: 'everywhere',
    forge(log) {
      const signed = log.last.fields.position;
      const ping = legal.read(log, 'server_ping', {});
      const before = log.state(THOUGHTS, 3);
      const content = log.addText('Nothing was proved.');
      ping.writes = [
        { table: THOUGHTS, row: { ...before, content, position: ping.fields.position }, isFixed: true },
      ];
      const again = legal.seal(log, 1);
      log.sign = 'none';
      const altered = row('altered', Number(before.position), 'content', 'position');
      return [
        ...[{ ...altered, record: 'Θ-0003' }, forbidden(ping, 'effects'), refusable(again)],
        ...[foreign(signed + 1, signed + 4), strayText(content)],
      ];
    },
  },
  {
    id: 'V2 a legal call is appended without the key',
    holds: 'everywhere',
    forge(log) {
      const signed = log.last.fields.position;
      legal.read(log);
      log.sign = 'none';
      return foreign(signed + 1, signed + 2);
    },
  },
  {
    id: 'V2 a legal task is made without the key',
    holds: 'everywhere',
    forge(log) {
      const signed = log.last.fields.position;
      legal.create(log);
      log.sign = 'none';
      return foreign(signed + 1, signed + 2);
    },
  },
  {
    id: 'V2 a legal call is appended under a head with the old signature',
    holds: 'database',
    forge(log) {
      const signed = log.last.fields.position;
      legal.read(log);
      log.sign = 'fields';
      const head = {
        kind: 'bad-head',
        record: `the head of key ${log.signer.id}`,
        columns: ['chain_hash', 'frontier', 'size'],
      } as const;
      return [head, foreign(signed + 1, signed + 2)];
    },
  },
  {
    id: 'V3 the text of a thought is changed and its hash is not',
    holds: 'everywhere',
    shownBy: 'Θ-0009',
    forge(log) {
      const exit = log.exit('thought_record', 'ok', { task_id: 'T-0002' });
      const write = log.written(exit, THOUGHTS);
      write.isFixed = true;
      log.replaceText(String(write.row.content), 'Something else.');
      return forbidden(exit, 'hash');
    },
  },
  {
    id: 'V3 the second thought of a task follows none',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.think(log, 2);
      const written = log.written(exit, THOUGHTS);
      const result = log.resultOf(exit);
      exit.patch = () => undefined;
      log.contentHashes();
      written.isFixed = true;
      Object.assign(written.row, { previous_hash: null });
      Object.assign(result, { previous_hash: null });
      return forbidden(exit, 'previous_hash');
    },
  },
  {
    id: 'V3 a thought is the seventh after the first',
    holds: 'everywhere',
    forge: (log) =>
      forbidden(
        legal.think(log, 2, {}, { cells: { chain_position: 7 }, result: { chain_position: 7 } }),
        'chain_position',
      ),
  },
  unpaired('V3 an exit row by another actor', 'actor', 'mallory'),
  unpaired('V3 an exit row with another correlation id', 'correlation_id', UUID),
  unpaired('V3 an exit row of another tool', 'tool', 'server_health'),
  unpaired('an exit row from another source', 'source', 'cli'),
  unpaired('an exit row by another process', 'process', 'ffffff.ffffff.1.x'),
  misshapen('V3 a row at no time', 'exit', { at: 'tomorrow' }),
  misshapen('a row at a time that never was', 'exit', { at: '2026-02-30T00:00:00.000Z' }),
  misshapen('a row at a time without milliseconds', 'exit', { at: '2026-02-03T00:00:00Z' }),
  {
    id: 'V3 time runs backwards',
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      exit.patch = (fields) =>
        void Object.assign(fields, { at: new Date(Date.parse(exit.fields.at) - 3_600_000).toISOString() });
      return row('malformed', exit, 'at');
    },
  },
  misshapen('V3 an enter row that is ok', 'enter', { outcome: 'ok' }),
  misshapen('V3 an outcome nobody knows', 'exit', { outcome: 'fine' }),
  misshapen('V3 a call that took less than no time', 'exit', { duration_ms: -1 }),
  misshapen('V3 a row with a field too many', 'exit', { comment: 'trust me' }),
  misshapen('V3 an error without a code', 'exit', { outcome: 'error', result_hash: null }),
  misshapen('a code without an error', 'exit', { error_code: 'HANDLER_ERROR' }),
  misshapen('a code nobody knows', 'exit', {
    outcome: 'error',
    error_code: 'ERR_MADE_UP',
    result_hash: null,
  }),
  misshapen('a fraction of a millisecond', 'exit', { duration_ms: 0.5 }),
  misshapen('an exit row with arguments', 'exit', { args_hash: 'a'.repeat(64) }),
  misshapen('an exit row with repairs', 'exit', { repaired: ['task_id'] }),
  misshapen('an enter row with a duration', 'enter', { duration_ms: 1 }),
  misshapen('an enter row with a result', 'enter', { result_hash: 'a'.repeat(64) }),
  misshapen('an enter row that begins another call', 'enter', { sequence_no: 1 }),
  misshapen('an enter row without arguments', 'enter', { args_hash: null }),
  misshapen('a correlation id of another version', 'enter', {
    correlation_id: '01234567-89ab-1def-8123-456789abcdef',
  }),
  misshapen('a row from nowhere', 'enter', { source: 'web' }),
  misshapen('a row under no rules', 'enter', { rules: 0 }),
  misshapen('a row by nobody', 'enter', { actor: '' }),
  misshapen('a row of no process', 'exit', { process: '' }),
  misshapen('a tool with a name of 65 letters', 'enter', { tool: 'a'.repeat(65) }),
  misshapen('effects that are no list', 'exit', { effects: {} }),
  misshapen('a rejected call that was valid', 'exit', {
    outcome: 'rejected',
    error_code: 'INVALID_PARAMS',
    result_hash: null,
  }),
  misshapen('a denied call with another code', 'exit', {
    outcome: 'denied',
    error_code: 'HANDLER_ERROR',
    result_hash: null,
  }),
  {
    id: 'a row without a field',
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      exit.patch = (fields) => void Reflect.deleteProperty(fields, 'correlation_id');
      return malformed(exit);
    },
  },
  {
    id: 'a row with a space too many',
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      exit.spell = (text) => text.replace('":', '": ');
      return malformed(exit);
    },
  },
  {
    id: 'a row with a second spelling of a letter',
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      exit.spell = (text) => text.replace('server_ping', 'server\\u005fping');
      return malformed(exit);
    },
  },
  {
    id: 'a row of millions of escapes',
    holds: 'database',
    forge(log) {
      const exit = ping(log);
      exit.spell = (text) => text.replace(/"actor":"[^"]*"/, `"actor":"${'\\\\n'.repeat(2_500_000)}"`);
      return malformed(exit);
    },
  },
  {
    id: 'a row that says another position',
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      const { position } = exit.fields;
      exit.patch = (fields) => void Object.assign(fields, { position: position + 1 });
      return malformed(position);
    },
  },
  {
    id: 'a row under rules that are not written yet',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.read(log);
      for (const one of [log.enterOf(exit), exit]) one.fields.rules = 2;
      return row('newer-rules', log.enterOf(exit));
    },
  },
  {
    id: 'V9 a row fifty places on, without the key',
    holds: 'everywhere',
    forge: (log) => gap(log, log.last.fields.position + 38),
  },
  {
    id: 'V9 a row at a billion, without the key',
    holds: 'everywhere',
    forge: (log) => gap(log, 1_000_000_000),
  },
  {
    id: 'V10 the last row is of the year 9999',
    holds: 'everywhere',
    forge(log) {
      log.last.fields.at = '9999-12-31T23:59:59.999Z';
      return row('malformed', log.last, 'at');
    },
  },
  {
    id: 'V10 a row is of the year 9999, and the next is of today',
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      exit.fields.at = '9999-12-31T23:59:59.999Z';
      return row('malformed', exit, 'at');
    },
  },
  {
    id: 'V10 the last row is of no time, without the key',
    holds: 'everywhere',
    forge(log) {
      const signed = log.last.fields.position;
      const exit = legal.read(log);
      exit.fields.at = 'zzzz';
      log.sign = 'none';
      return [malformed(exit), foreign(signed + 1, signed + 2)];
    },
  },
  {
    id: 'an exit row before its enter row',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.read(log);
      const enter = log.enterOf(exit);
      log.reorder((rows) => [...rows.slice(0, -2), exit, enter]);
      return malformed(exit);
    },
  },
  {
    id: 'a call with two exit rows',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.read(log);
      const position = exit.fields.position + 1;
      log.rows.push({ fields: { ...exit.fields, position }, writes: [] });
      return row('unpaired', position, 'sequence_no');
    },
  },
  {
    id: 'an exit row of a call that was never begun',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.read(log);
      exit.fields.sequence_no = 3;
      return row('unpaired', exit, 'sequence_no');
    },
  },
  {
    id: 'a reading call with an effect',
    holds: 'everywhere',
    shownBy: 'T-0008',
    forge(log) {
      const exit = legal.read(log);
      exit.writes = [
        { table: TASKS, row: { ...log.state(TASKS, 8), progress: 50, position: exit.fields.position } },
      ];
      return forbidden(exit, 'effects');
    },
  },
  {
    id: 'a refused call with an effect',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.refuse(
        log,
        'task_update',
        { task_id: 'T-0008', status: 'done' },
        'ERR_INVALID_TRANSITION',
      );
      exit.writes = [
        { table: TASKS, row: { ...log.state(TASKS, 8), progress: 50, position: exit.fields.position } },
      ];
      return malformed(exit);
    },
  },
  {
    id: 'a crashed call with an effect',
    holds: 'everywhere',
    forge(log) {
      const exit = log.append({
        tool: 'task_update',
        actor: 'alice',
        args: { task_id: 'T-0008', progress: 5 },
        outcome: 'crashed',
      });
      exit.writes = [
        { table: TASKS, row: { ...log.state(TASKS, 8), progress: 5, position: exit.fields.position } },
      ];
      return malformed(exit);
    },
  },
  {
    id: 'a crashed call with a result',
    holds: 'everywhere',
    forge(log) {
      const exit = log.append({
        tool: 'task_update',
        actor: 'alice',
        args: { task_id: 'T-0008', progress: 5 },
        outcome: 'crashed',
      });
      exit.patch = (fields) => void Object.assign(fields, { result_hash: 'a'.repeat(64) });
      return row('malformed', exit, 'result_hash');
    },
  },
  {
    id: 'an effect too many on the enter row',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.read(log);
      const effect = log.exit('task_create').fields.effects[0];
      log.enterOf(exit).patch = (fields) => void Object.assign(fields, { effects: [effect] });
      return malformed(log.enterOf(exit));
    },
  },
  {
    id: 'V5 the salt of arguments takes over their body',
    holds: 'everywhere',
    shownBy: 'T-0009',
    forge(log) {
      const enter = log.enterOf(log.exit('task_update', 'ok', { task_id: 'T-0009' }));
      const { payload } = enter;
      if (payload === undefined) throw new Error('no payload');
      const digest = enter.fields.args_hash;
      payload.salt += Buffer.from(JSON.stringify(payload.body)).toString('hex');
      payload.body = '';
      enter.patch = (fields) => void Object.assign(fields, { args_hash: digest });
      return row('altered', enter, 'salt');
    },
  },
  {
    id: 'a salt in capital letters',
    holds: 'everywhere',
    forge(log) {
      const enter = log.enterOf(log.exit('task_update', 'ok', { task_id: 'T-0009' }));
      if (enter.payload === undefined) throw new Error('no payload');
      const digest = enter.fields.args_hash;
      enter.payload.salt = 'ABCDEF0123456789ABCDEF0123456789';
      enter.patch = (fields) => void Object.assign(fields, { args_hash: digest });
      return row('altered', enter, 'salt');
    },
  },
  {
    id: 'arguments are missing',
    holds: 'everywhere',
    forge(log) {
      const enter = log.enterOf(log.exit('task_update', 'ok', { task_id: 'T-0009' }));
      delete enter.payload;
      return row('missing', enter);
    },
  },
  {
    id: 'a result is missing',
    holds: 'everywhere',
    forge(log) {
      const exit = log.exit('task_update', 'ERR_TASK_NOT_FOUND');
      delete exit.payload;
      return row('missing', exit);
    },
  },
  {
    id: 'a ping with a payload beside its exit row',
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      exit.payload = { salt: newSalt(), body: { outside: {}, result: {} } };
      return row('stray', exit);
    },
  },
  {
    id: 'a rejected call with arguments beside it',
    holds: 'everywhere',
    forge(log) {
      const enter = log.enterOf(log.exit('task_create', 'rejected'));
      enter.payload = { salt: newSalt(), body: { title: 3 } };
      return row('stray', enter);
    },
  },
  {
    id: 'arguments that are not canonical JSON',
    holds: 'everywhere',
    forge(log) {
      const enter = log.enterOf(ping(log));
      enter.payload = { salt: newSalt(), body: '{ }' };
      return row('malformed', enter, 'body');
    },
  },
  {
    id: 'a result where the row tells of an error',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.refuse(
        log,
        'task_update',
        { task_id: 'T-0008', status: 'done' },
        'ERR_INVALID_TRANSITION',
      );
      exit.payload = { salt: newSalt(), body: { outside: {}, result: {} } };
      return row('malformed', exit, 'body');
    },
  },
  {
    id: 'another code beside the row than in it',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.refuse(
        log,
        'task_update',
        { task_id: 'T-0008', status: 'done' },
        'ERR_INVALID_TRANSITION',
      );
      exit.payload = {
        salt: newSalt(),
        body: { outside: {}, error: { code: 'ERR_TASK_NOT_FOUND', message: 'No.' } },
      };
      return row('malformed', exit, 'body');
    },
  },
  {
    id: 'an exit payload with something besides',
    holds: 'everywhere',
    forge(log) {
      const exit = legal.update(log, 8, { progress: 5 });
      object(exit.payload?.body).comment = 'trust me';
      return row('malformed', exit, 'body');
    },
  },
  {
    id: 'a read that was answered without a digest',
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      exit.fields.result_hash = null;
      return row('malformed', exit, 'result_hash');
    },
  },
  {
    id: 'rows are cut off, without the key',
    holds: 'everywhere',
    forge(log) {
      const { position } = log.last.fields;
      log.rows.splice(-2, 2);
      log.sign = 'none';
      log.kept = log.kept.filter(({ size }) => size < position - 1);
      return { kind: 'cut-tail', record: `the head of key ${log.signer.id}`, position: position - 1 };
    },
  },
  {
    id: 'a call is taken out and history signed anew, without the key',
    holds: 'everywhere',
    forge(log) {
      const exit = log.exits('server_ping')[10] ?? log.last;
      log.remove(log.enterOf(exit), exit);
      log.sign = 'none';
      log.kept = [];
      return [
        { kind: 'cut-tail', record: `the head of key ${log.signer.id}`, position: log.rows.length + 1 },
        ...missingSeals(log),
      ];
    },
  },
  {
    id: 'the actor of a call is another, without the key',
    holds: 'everywhere',
    forge(log) {
      const exit = ping(log);
      for (const one of [log.enterOf(exit), exit]) one.fields.actor = 'mallory';
      log.sign = 'none';
      // The kept checkpoints before it still hold: the first that does not says where history was rewritten.
      const before = log.kept.filter(({ size }) => size < exit.fields.position).at(-1)?.size ?? 0;
      const first = log.kept.find(({ size }) => size > before)?.size;
      return {
        kind: 'rewritten',
        record: `the kept checkpoint ${first} of key ${log.signer.id}`,
        position: before + 1,
      };
    },
  },
];

function gap(log: ForgedLog, position: number) {
  const signed = log.last.fields.position;
  const exit = legal.read(log);
  log.rows.splice(-2, 2, exit);
  Object.assign(exit.fields, {
    position,
    sequence_no: position,
    stage: 'enter',
    outcome: 'running',
    duration_ms: null,
    result_hash: null,
  });
  exit.payload = { salt: newSalt(), body: { task_id: 'T-0001' } };
  log.sign = 'none';
  return [row('missing', signed + 1), foreign(signed + 1, position)];
}
