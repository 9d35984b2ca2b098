import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import {
  type AuditFields,
  canonical,
  saltedSha256,
  sha256,
  UNSAID,
  withDatabase,
} from '../driver/audit-file.ts';
import { runColibri } from '../driver/command-line.ts';
import { openDatabase } from '../driver/database.ts';
import { modernMeta } from '../driver/era.ts';
import type { Playground } from '../driver/playground.ts';
import { stateFindings } from '../driver/state-file.ts';
import { toolsMissing } from '../driver/surface.ts';
import { proves } from './proves.ts';

const noTasks = await toolsMissing('task_create', 'task_update', 'task_get');
const noThoughts = await toolsMissing('task_create', 'thought_record', 'audit_session_start');

const TASK = { title: 'a task', project: 'demo' };
const DAY_MS = 86_400_000;
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const FIELDS = [
  'actor',
  'args_hash',
  'at',
  'correlation_id',
  'duration_ms',
  'effects',
  'error_code',
  'outcome',
  'position',
  'process',
  'repaired',
  'result_hash',
  'rules',
  'schema_valid',
  'sequence_no',
  'source',
  'stage',
  'tool',
];

proves(
  ['path.order', 'log.pairs', 'log.positions', 'log.outcomes', 'exit.facts'],
  'every call leaves one enter and one exit row, pings and failures included',
  async ({ colibri }) => {
    const server = await colibri.start();

    await server.call('server_ping');
    await server.call('server_health', { no: 1 });
    await server.call('nowhere', {});
    await server.call('server_ping', {});

    const { rows, findings } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(
      rows.map(({ position, stage, tool, outcome, error_code }) => [
        position,
        stage,
        tool,
        outcome,
        error_code,
      ]),
    ).toEqual([
      [1, 'enter', 'server_ping', 'running', null],
      [2, 'exit', 'server_ping', 'ok', null],
      [3, 'enter', 'server_health', 'running', null],
      [4, 'exit', 'server_health', 'rejected', 'INVALID_PARAMS'],
      [5, 'enter', 'nowhere', 'running', null],
      [6, 'exit', 'nowhere', 'rejected', expect.any(String)],
      [7, 'enter', 'server_ping', 'running', null],
      [8, 'exit', 'server_ping', 'ok', null],
    ]);
    for (let i = 0; i < rows.length; i += 2) {
      const [enter, exit] = [rows[i] as AuditFields, rows[i + 1] as AuditFields];
      expect(enter.correlation_id).toMatch(UUID_V4);
      expect(exit.correlation_id).toBe(enter.correlation_id);
      expect(exit.sequence_no).toBe(enter.sequence_no);
      expect(exit.duration_ms).toBeGreaterThanOrEqual(0);
      expect(enter.duration_ms).toBeNull();
      expect(exit.result_hash === null).toBe(exit.outcome !== 'ok');
    }
    expect(new Set(rows.map((row) => row.correlation_id)).size).toBe(4);
  },
);

proves('path.order', 'health names the five stages in their order', async ({ colibri }) => {
  const server = await colibri.start();

  const { envelope } = await server.call('server_health');

  expect(envelope?.data?.middleware).toMatchObject({
    stages: ['tool-lock', 'schema-validate', 'audit-enter', 'dispatch', 'audit-exit'],
  });
});

proves(
  ['log.text', 'log.chain', 'log.fields', 'json.canonical'],
  'text, content_hash and chain_hash follow from each other, by hand',
  async ({ colibri }) => {
    const server = await colibri.start();
    for (let i = 0; i < 5; i += 1) await server.call('server_ping');

    const { entries } = colibri.readAudit();

    let previous = '0000000000000000000000000000000000000000000000000000000000000000';
    for (const { text, row, content_hash, chain_hash } of entries) {
      expect(Object.keys(row).sort()).toEqual(FIELDS);
      expect(text).toBe(canonical(JSON.parse(text)));
      expect(text).not.toMatch(/:(?:null|\[\])[,}]/);
      expect(content_hash).toBe(createHash('sha256').update(Buffer.from(text, 'utf8')).digest('hex'));
      expect(`${content_hash}${previous}`).toMatch(/^[0-9a-f]{128}$/);
      expect(chain_hash).toBe(createHash('sha256').update(`${content_hash}${previous}`).digest('hex'));
      previous = chain_hash;
    }
    expect(entries).toHaveLength(10);
  },
);

proves('log.fields', 'the columns of the view say what the text says', async ({ colibri }) => {
  const server = await colibri.start();
  await server.call('server_ping', null);
  await server.call('server_ping', { no: 1 });

  const rows = withDatabase(colibri.dbPath, (db) =>
    db
      .prepare('SELECT v.*, content, chain FROM audit_rows v JOIN actions USING (position) ORDER BY position')
      .all(),
  ) as Record<string, unknown>[];

  for (const row of rows) {
    const { text, content, chain, content_hash, chain_hash, schema_valid, effects, repaired, ...columns } =
      row;
    const {
      schema_valid: valid,
      effects: listed,
      repaired: notes,
      ...said
    } = { ...UNSAID, ...JSON.parse(String(text)) } as AuditFields;
    expect(columns).toEqual(said);
    expect(schema_valid).toBe(valid ? 1 : 0);
    expect([effects, repaired].map((list) => JSON.parse(String(list ?? '[]')))).toEqual([listed, notes]);
    expect([content, chain].map((bytes) => (bytes as Uint8Array).length)).toEqual([32, 32]);
    expect([content_hash, chain_hash]).toEqual(
      [content, chain].map((bytes) => Buffer.from(bytes as Uint8Array).toString('hex')),
    );
  }
});

proves('times.utc', 'every stored time is ISO-8601 in UTC with milliseconds', async ({ colibri }) => {
  const server = await colibri.start();
  const { envelope } = await server.call('server_ping');

  const times = [...colibri.readAudit().rows.map((row) => row.at), String(envelope?.data?.timestamp)];

  for (const time of times) {
    expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Math.abs(Date.parse(time) - Date.now())).toBeLessThan(60_000);
  }
});

proves(
  'times.never-back',
  'a row is never earlier than the last one stored, though the clock is',
  async ({ colibri }) => {
    await aServerThatPings(colibri);
    const ahead = new Date(Date.now() + DAY_MS / 2).toISOString();
    appendByHand(colibri.dbPath, ahead);

    await aServerThatPings(colibri);

    const { rows, findings } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(rows.slice(2).map((row) => row.at)).toEqual([ahead, ahead, ahead]);
  },
);

proves(
  'times.never-back',
  'a row that says more than a day ahead of the clock is no lower bound for what follows',
  async ({ colibri }) => {
    await aServerThatPings(colibri);
    appendByHand(colibri.dbPath, '2199-01-01T00:00:00.000Z');

    await aServerThatPings(colibri);

    const { rows, findings } = colibri.readAudit();
    expect(findings).toEqual(['row 4: time runs backwards']);
    for (const { at } of rows.slice(3)) expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(60_000);
  },
);

proves(
  ['rejected.pair', 'unknown.pair', 'log.salted'],
  'rejected input and unknown tools leave a hash and not the arguments',
  async ({ colibri }) => {
    const server = await colibri.start();
    const secret = 'sk-live-51H8xyzSECRET';

    await server.call('server_ping', { token: secret });
    await server.call('no_such_tool', { token: secret });
    await server.call('no_such_tool');

    const { rows, payloads } = colibri.readAudit();
    expect(rows.filter((row) => row.stage === 'enter')).toMatchObject([
      { schema_valid: false, args_hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      { schema_valid: false, args_hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
      { schema_valid: false, args_hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    ]);
    expect(JSON.stringify([rows, ...payloads.values()])).not.toContain(secret);
    expect(server.stderr).not.toContain(secret);
  },
);

proves(
  'log.erasable',
  'nothing left in the log lets a rejected secret be guessed back',
  async ({ colibri }) => {
    const server = await colibri.start();
    const args = { pin: '4711' };
    await server.call('server_ping', args);

    const [enter] = colibri.readAudit().rows;
    const known = Object.values(enter ?? {}).filter((value) => typeof value === 'string');
    const guesses = known.flatMap((salt) => [salt + canonical(args), canonical(args) + salt]);
    const asBytes = known.map((salt) => saltedSha256(salt, canonical(args)));

    expect([...[canonical(args), ...guesses].map(sha256), ...asBytes]).not.toContain(enter?.args_hash);
  },
);

proves(
  ['log.salted', 'log.erasable'],
  'the digests are those of salt and body beside the row, each salt its own',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);
    await server.call('task_create', TASK);
    await server.call('task_get', { task_id: 'T-0001' });

    const { rows, payloads } = colibri.readAudit();
    const enters = rows.filter((row) => row.stage === 'enter');
    for (const { position, args_hash } of enters) {
      const payload = payloads.get(position);
      expect(saltedSha256(payload?.salt ?? '', payload?.body ?? '')).toBe(args_hash);
    }
    const written = rows[1] as AuditFields;
    const result = payloads.get(written.position);
    expect(saltedSha256(result?.salt ?? '', result?.body ?? '')).toBe(written.result_hash);
    expect(JSON.parse(result?.body ?? '')).toEqual({
      outside: {},
      result: expect.objectContaining({ task_id: 'T-0001' }),
    });
    expect(new Set([...payloads.values()].map(({ salt }) => salt)).size).toBe(payloads.size);
    expect(rows[0]?.args_hash).not.toBe(rows[2]?.args_hash);
    // What was read is committed to, and the salt of that is kept nowhere.
    expect(rows[5]).toMatchObject({ tool: 'task_get', result_hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(payloads.has(6)).toBe(false);
  },
  { unless: noTasks },
);

proves(
  ['log.complete', 'log.texts'],
  'what is kept of a call has defaults written in, and a digest in the place of each text',
  async ({ colibri }) => {
    const server = await colibri.start({ env: { COLIBRI_WORKFLOW: 'pipeline' } });
    await server.call('task_create', { ...TASK, labels: ['a'], description: 'long' });
    await server.call('task_create', TASK);
    await server.call('thought_record', {
      task_id: 'T-0001',
      type: 'risk',
      content: 'c',
      tests_run: ['one', 'two'],
      metadata: { b: 1, a: 2 },
    });

    const { payloads, texts, findings } = colibri.readAudit();
    const kept = (position: number) =>
      JSON.parse(payloads.get(position)?.body ?? '') as Record<string, string>;
    const textOf = (digest: string | undefined) => texts.get(digest ?? '')?.text;

    const { title, description, ...facts } = kept(1);
    expect(facts).toEqual({ project: 'demo', labels: ['a'], workflow: 'pipeline' });
    expect([textOf(title), textOf(description)]).toEqual([TASK.title, 'long']);
    // The same words again are another digest.
    expect(textOf(kept(3).title)).toBe(TASK.title);
    expect(kept(3).title).not.toBe(title);
    const { content, tests_run, metadata } = kept(5);
    expect([content, tests_run, metadata].map(textOf)).toEqual(['c', '["one","two"]', '{"a":2,"b":1}']);
    expect(texts.size).toBe(6);
    expect(findings).toEqual([]);
  },
  { unless: noTasks },
);

proves(
  ['log.complete', 'exit.facts'],
  'a refused write keeps what it was refused with',
  async ({ colibri }) => {
    const server = await colibri.start({ env: { COLIBRI_PROJECTS: 'demo,other' } });
    const { error } = await server.call('task_create', { ...TASK, project: 'dmeo' });

    const { rows, payloads } = colibri.readAudit();

    expect(JSON.parse(payloads.get(2)?.body ?? '')).toEqual({
      error: { code: 'ERR_PROJECT_NOT_FOUND', message: error?.message },
      outside: { projects: ['demo', 'other'] },
    });
    expect(rows[1]).toMatchObject({ outcome: 'error', result_hash: expect.stringMatching(/^[0-9a-f]{64}$/) });
  },
  { unless: noTasks },
);

proves(
  'log.one-time',
  'every time that a call writes is the time of its exit row',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);
    await server.call('task_update', { task_id: 'T-0001', status: 'todo' });
    await server.call('task_update', { task_id: 'T-0001', status: 'in_progress' });
    await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'me' });
    await server.call('thought_record', { task_id: 'T-0001', type: 'risk', content: 'c' });
    await server.call('merkle_finalize', { session_id: 'A-0001' });

    const at = colibri.readAudit().calls.map(({ exits }) => exits[0]?.at);
    const [task, thought, session] = withDatabase(colibri.dbPath, (db) =>
      ['tasks', 'thoughts', 'sessions'].map((table) => db.prepare(`SELECT * FROM ${table}`).get()),
    );

    const moved = { status_since: at[2], held_since: at[2] };
    expect(task).toMatchObject({ created_at: at[0], updated_at: at[2], ...moved });
    expect(thought).toMatchObject({ recorded_at: at[4] });
    expect(session).toMatchObject({ started_at: at[3], finalized_at: at[5] });
  },
  { unless: noThoughts },
);

proves(
  ['log.erasable', 'log.texts'],
  'erasing a text with its salt leaves the log sound and in use',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', { ...TASK, description: 'sk-live-51H8xyzSECRET' });
    await server.closeInput();

    const before = colibri.readAudit().rows;
    const { code } = await runColibri(colibri, ['erase', 'T-0001', '--reason', 'a key', '--yes']);
    await aServerThatPings(colibri);

    const { findings, rows } = colibri.readAudit();
    expect(code).toBe(0);
    expect(findings).toEqual([]);
    expect(stateFindings(colibri.dbPath)).toEqual([]);
    expect(rows.slice(0, 2)).toEqual(before);
    expect(rows).toHaveLength(6);
  },
  { unless: noTasks },
);

proves(
  ['log.effects', 'exit.facts', 'json.canonical'],
  'an exit row lists each row written, with the digest of all that is not counted from others, and who wrote it before',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);
    await server.call('task_update', { task_id: 'T-0001', status: 'todo' });

    const { rows } = colibri.readAudit();
    const [created, updated] = rows.filter((row) => row.stage === 'exit');
    const { unmet, is_final, queue, ...facts } = withDatabase(colibri.dbPath, (db) => {
      const columns = (db.pragma('table_info(tasks)') as { name: string }[]).map(({ name }) => name);
      return db.prepare(`SELECT ${columns.join()} FROM tasks`).get() as Record<string, unknown>;
    });

    expect(created?.effects).toMatchObject([{ table: 'tasks', id: 'T-0001', previous: 0 }]);
    expect(updated?.effects).toEqual([
      {
        table: 'tasks',
        id: 'T-0001',
        hash: sha256(canonical({ ...facts, table: 'tasks' })),
        previous: created?.position,
      },
    ]);
    expect(created?.effects[0]?.hash).not.toBe(updated?.effects[0]?.hash);
    expect([unmet, is_final, queue]).toEqual([0, 0, 1]);
    for (const row of rows.filter(({ stage }) => stage === 'enter')) expect(row.effects).toEqual([]);
  },
  { unless: noTasks },
);

proves(
  'thoughts.effects',
  'every row a thought writes is listed, with all columns in its digest',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);
    await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'me' });
    await server.call('thought_record', {
      task_id: 'T-0001',
      type: 'risk',
      content: 'c',
      branch: 'main',
      metadata: { a: 1 },
    });

    const { effects } = colibri.readAudit().rows.at(-1) as AuditFields;
    const thought = withDatabase(colibri.dbPath, (db) =>
      db.prepare('SELECT * FROM thoughts').get(),
    ) as object;

    expect(effects.find(({ table }) => table === 'thoughts')).toMatchObject({
      id: 'Θ-0001',
      hash: sha256(canonical({ ...thought, table: 'thoughts' })),
    });
    expect(effects.map(({ table, previous }) => [table, previous])).toEqual([
      ['thoughts', 0],
      ['session_records', 0],
    ]);
  },
  { unless: noThoughts },
);

proves('log.seat-belt', 'triggers refuse to change or delete an audit row', async ({ colibri }) => {
  await aServerThatPings(colibri);
  const db = openDatabase(colibri.dbPath);
  colibri.onDispose(() => db.close());

  for (const sql of [
    "UPDATE actions SET text = '{}' WHERE position = 1",
    'UPDATE actions SET position = 9 WHERE position = 1',
    'DELETE FROM actions WHERE position = 2',
    'DELETE FROM actions',
  ]) {
    expect(() => db.exec(sql)).toThrow('append-only');
  }
});

proves(
  'log.seat-belt',
  'triggers refuse to change or delete a thought',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', TASK);
    await server.call('thought_record', { task_id: 'T-0001', type: 'risk', content: 'c' });
    await server.closeInput();
    const db = openDatabase(colibri.dbPath);
    colibri.onDispose(() => db.close());

    for (const sql of ["UPDATE thoughts SET content = 'x'", 'DELETE FROM thoughts']) {
      expect(() => db.exec(sql)).toThrow('append-only');
    }
  },
  { unless: noThoughts },
);

proves(
  ['actor.configured', 'config.agent-id'],
  'COLIBRI_AGENT_ID is the actor, whatever the client calls itself',
  async ({ colibri }) => {
    const server = await colibri.start({
      env: { COLIBRI_AGENT_ID: 'agent seven' },
      clientName: 'someone else',
    });

    await server.call('server_ping');

    expect(colibri.readAudit().rows.map((row) => row.actor)).toEqual(['agent seven', 'agent seven']);
  },
);

proves(
  'actor.client',
  'the actor is the name of the handshake, or the one that comes with each modern request',
  async ({ colibri }) => {
    const legacy = await colibri.start({ clientName: 'old client' });
    await legacy.call('server_ping');
    const modern = colibri.spawn();
    await modern.callModern('server_ping', {}, modernMeta({ clientName: 'first agent' }));
    await modern.callModern('server_ping', {}, modernMeta({ clientName: 'second agent' }));

    const actors = colibri.readAudit().rows.map((row) => row.actor);

    expect([...new Set(actors)]).toEqual(['old client', 'first agent', 'second agent']);
  },
);

proves('actor.unknown', 'a client without a name is unknown', async ({ colibri }) => {
  const silent = colibri.spawn();
  await silent.call('server_ping');
  const nameless = await colibri.start({ clientName: '  ' });
  await nameless.call('server_ping');
  const modern = colibri.spawn();
  await modern.callModern('server_ping', {}, modernMeta({ clientName: undefined }));

  expect(new Set(colibri.readAudit().rows.map((row) => row.actor))).toEqual(new Set(['unknown']));
});

proves(
  'actor.any-name',
  'no name keeps a call out of the log, not even one cut inside a character',
  async ({ colibri }) => {
    const names = [
      'x'.repeat(5_000),
      `${'a'.repeat(127)}😀`,
      '😀'.repeat(200),
      '\ud800',
      'a\u0000b',
      '"\\\u2028\n',
    ];

    for (const name of names) {
      const server = await colibri.start({ clientName: name });
      await server.call('server_ping');
      await server.closeInput();
    }

    const { rows, findings } = colibri.readAudit();
    expect(findings).toEqual([]);
    expect(rows).toHaveLength(2 * names.length);
    for (const { actor } of rows) {
      expect(actor.length).toBeLessThanOrEqual(128);
      expect(actor.isWellFormed()).toBe(true);
    }
  },
);

proves(
  'log.process',
  'rows of one process name it alike, rows of another differently',
  async ({ colibri }) => {
    await aServerThatPings(colibri);
    await aServerThatPings(colibri);

    const processes = colibri.readAudit().rows.map((row) => row.process);

    expect(processes[0]).toBe(processes[1]);
    expect(processes[2]).toBe(processes[3]);
    expect(processes[0]).not.toBe(processes[2]);
  },
);

proves(
  ['lock.fifo', 'read.one-commit'],
  'calls sent together are served and recorded in their order, one after the other',
  async ({ colibri }) => {
    const server = await colibri.start();
    const tools = Array.from({ length: 60 }, (_, i) => (i % 3 === 0 ? 'server_health' : 'server_ping'));

    await Promise.all(tools.map((tool) => server.call(tool)));

    const answered = server.messages.slice(1).map((message) => message.id);
    expect(answered).toEqual([...answered].sort((a, b) => Number(a) - Number(b)));
    const { rows } = colibri.readAudit();
    expect(rows.map((row) => row.tool)).toEqual(tools.flatMap((tool) => [tool, tool]));
    expect(rows.map((row) => row.stage)).toEqual(tools.flatMap(() => ['enter', 'exit']));
  },
);

proves(
  ['lock.released', 'lock.fifo'],
  'a call that fails leaves the way free for the next',
  async ({ colibri }) => {
    const server = await colibri.start();

    const answers = await Promise.all([
      server.call('server_ping', { no: 1 }),
      server.call('nowhere'),
      server.call('task_get', { task_id: 'T-0404' }),
      server.call('server_ping'),
    ]);

    expect(answers.map(({ envelope }) => envelope?.ok)).toEqual([false, undefined, true, true]);
  },
  { unless: noTasks },
);

async function aServerThatPings(colibri: Playground): Promise<void> {
  const server = await colibri.start();
  await server.call('server_ping');
  await server.closeInput();
}

/** One more row behind the last, as a process with a wrong clock would have written it. */
function appendByHand(path: string, at: string): void {
  const db = openDatabase(path);
  const last = db
    .prepare('SELECT position, text, chain_hash FROM audit_rows ORDER BY position DESC LIMIT 1')
    .get() as {
    position: number;
    text: string;
    chain_hash: string;
  };
  const text = canonical({ ...(JSON.parse(last.text) as AuditFields), position: last.position + 1, at });
  const hash = sha256(text);
  db.prepare('INSERT INTO actions (position, text, content, chain) VALUES (?, ?, ?, ?)').run(
    last.position + 1,
    text,
    Buffer.from(hash, 'hex'),
    Buffer.from(sha256(hash + last.chain_hash), 'hex'),
  );
  db.close();
}
