import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type CommandOptions, runColibri, StayingCommand } from '../driver/command-line.ts';
import { openDatabase } from '../driver/database.ts';
import type { Playground } from '../driver/playground.ts';
import { filesAt, readAt } from '../driver/postgres.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { until } from '../driver/server-process.ts';
import { judgeByPython } from '../matrix/sources.ts';
import { proves } from './proves.ts';

// colibri erase, from the command line, on a log that the built server made.

const REASON = 'They asked to be forgotten.';

/** Texts with words that are nowhere else. Long ones lie on overflow pages, and the index keeps every word. */
const SECRET = {
  title: 'Quokkabert lives in Zwolleham',
  later: 'Vexillumgram instead of Narwhaltop',
  description: `Plimsollkey ${'Jabberfill '.repeat(600)} Glockenend`,
  refused: 'Refusedtitle Brimborion',
  content: 'Thoughtful Gloubiboulga',
  metadata: { where: 'Metadatatown', keys: ['Listedword'] },
  retried: 'Thoughtless Carambouille',
};

const OF_TASK = [
  'Quokkabert',
  'Zwolleham',
  'Vexillumgram',
  'Plimsollkey',
  'Jabberfill',
  'Glockenend',
  'Brimborion',
];
const OF_THOUGHT = ['Gloubiboulga', 'Metadatatown', 'Listedword', 'Carambouille'];

/** T-0001 with everything that is secret, among neighbours that make pages split. */
async function leaveSecrets(server: ServerProcess): Promise<void> {
  const task = { project: 'web' };
  await server.call('task_create', { ...task, title: SECRET.title, description: SECRET.description });
  for (let i = 0; i < 40; i += 1)
    await server.call('task_create', {
      ...task,
      title: `Neighbour ${i}`,
      description: 'Harmless. '.repeat(i),
    });
  await server.call('task_update', { task_id: 'T-0001', title: SECRET.later });
  await server.call('task_update', { task_id: 'T-0001', status: 'done', title: SECRET.refused });
  const thought = { task_id: 'T-0001', type: 'plan', content: SECRET.content, metadata: SECRET.metadata };
  await server.call('thought_record', { ...thought, session_id: 'A-0009', content: SECRET.retried });
  await server.call('thought_record', thought);
  await server.call('thought_record', { task_id: 'T-0001', type: 'risk', content: 'Nobody knows.' });
}

/** Words that are in any file of the database, in any case: the index keeps them in small letters. */
function wordsLeft(colibri: Playground, words: readonly string[]): string[] {
  const paths = colibri.isOnFile ? filesIn(join(colibri.dbPath, '..')) : filesAt(colibri.dbPath);
  const bytes = paths.map((path) => readFileSync(path, 'latin1').toLowerCase());
  return words.filter((word) => bytes.some((text) => text.includes(word.toLowerCase())));
}

/** Somebody who has read the texts and goes on seeing them as they were. */
function olderReader(colibri: Playground): { release(): void } {
  if (!colibri.isOnFile) return readAt(colibri.dbPath, 'texts');
  const reader = openDatabase(colibri.dbPath, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM texts').get();
  return { release: () => reader.close() };
}

function filesIn(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []));
}

const erase = (colibri: Playground, ids: readonly string[], options: CommandOptions = {}) =>
  runColibri(colibri, ['erase', ...ids, '--reason', REASON, '--yes', '--json'], {
    ...options,
    env: { COLIBRI_AGENT_ID: 'olga', ...options.env },
  });

const answer = async (server: ServerProcess, tool: string, args: object) =>
  (await server.call(tool, args)).envelope?.data;

const verified = async (colibri: Playground, ...args: string[]) => {
  const { code, stdout } = await runColibri(colibri, ['verify', ...args, '--json']);
  return { code, ...(JSON.parse(stdout) as { erased: unknown; findings: unknown[] }) };
};

proves(
  ['erase.bytes', 'erase.calls', 'erase.shown', 'erase.on-record'],
  'a task and a thought are erased beside a running server, which goes on',
  async ({ colibri }) => {
    const server = await colibri.start();
    await leaveSecrets(server);
    expect(wordsLeft(colibri, [...OF_TASK, ...OF_THOUGHT])).toEqual([...OF_TASK, ...OF_THOUGHT]);

    const { code, stdout } = await erase(colibri, ['T-0001', 'th-1']);

    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      code: 0,
      purged: true,
      erased: [
        { record: 'T-0001', texts: 6 },
        { record: 'Θ-0001', texts: 2 },
      ],
    });
    expect(wordsLeft(colibri, [...OF_TASK, ...OF_THOUGHT])).toEqual([]);
    // The server that had the file open all along.
    const task = await answer(server, 'task_get', { task_id: 'T-0001' });
    expect(task).toMatchObject({ title: '[erased]', description: '[erased]', erased: true });
    const listed = await answer(server, 'task_list', { limit: 1 });
    expect(listed).toMatchObject({ tasks: [{ title: '[erased]', erased: true }] });
    for (const word of ['quokkabert', 'vexillumgram', 'jabberfill']) {
      const found = await answer(server, 'task_list', { search: word });
      expect(found).toMatchObject({ tasks: [] });
    }
    const trail = await answer(server, 'thought_record_list', { task_id: 'T-0001', verify_chain: true });
    expect(trail).toMatchObject({
      chain_valid: true,
      thoughts: [{ content: '[erased]', erased: true }, { content: 'Nobody knows.' }],
    });
    expect(JSON.stringify(trail)).not.toMatch(/metadata|Listedword/);
    await server.call('task_update', { task_id: 'T-0001', status: 'todo' });
    const next = await answer(server, 'task_next_actions', { limit: 1 });
    expect(next).toMatchObject({ next_actions: [{ task_id: 'T-0001', title: '[erased]', erased: true }] });
    const chain = await answer(server, 'audit_verify_chain', { task_id: 'T-0001' });
    expect(chain).toMatchObject({ chain_valid: true, integrity_score: 100 });
    const acts = colibri
      .readAudit()
      .rows.filter(({ tool, stage }) => tool === 'owner_erase' && stage === 'exit');
    expect(acts).toMatchObject([
      { actor: 'olga', source: 'cli', outcome: 'ok' },
      { actor: 'olga', source: 'cli', outcome: 'ok' },
    ]);
    // A title that is given later is shown, and searched, again.
    await server.call('task_update', { task_id: 'T-0001', title: 'Renamed for good' });
    const renamed = await answer(server, 'task_list', { search: 'renamed' });
    expect(renamed).toMatchObject({ tasks: [{ task_id: 'T-0001', title: 'Renamed for good' }] });
    expect(await answer(server, 'task_get', { task_id: 'T-0001' })).toMatchObject({ erased: true });
    expect(await verified(colibri)).toMatchObject({ code: 0, findings: [] });
  },
);

proves(
  ['erase.verifies', 'erase.honest'],
  'bundles and certificates made before keep the text, those made after do not, and all verify',
  async ({ colibri }) => {
    const server = await colibri.start();
    await leaveSecrets(server);
    await server.closeInput();
    const [before, after] = [colibri.path('before'), colibri.path('after')];
    const proof = (name: string) => colibri.path(`${name}.json`);
    await runColibri(colibri, ['export', '-o', before]);
    await runColibri(colibri, ['prove', 'T-0001', '-o', proof('T-before')]);
    mkdirSync(colibri.path('vault'));
    await runColibri(colibri, ['obsidian', '--vault', colibri.path('vault')]);
    const note = () => readFileSync(colibri.path('vault', 'Colibri', 'Tasks', 'T-0001.md'), 'utf8');
    expect(note()).toContain('Vexillumgram');

    const { stdout } = await runColibri(colibri, ['erase', 'T-0001', 'Θ-0001', '--reason', REASON, '--yes']);

    for (const what of ['bundles', 'backups', 'git', 'Obsidian', 'snapshots', 'guess'])
      expect(stdout).toContain(what);
    expect(stdout).toContain('The thoughts on T-0001 keep their texts: Θ-0001, Θ-0002');
    await runColibri(colibri, ['export', '-o', after]);
    await runColibri(colibri, ['prove', 'T-0001', '-o', proof('T-after')]);
    await runColibri(colibri, ['prove', 'TH-1', '-o', proof('TH-after')]);
    const report = colibri.path('report.html');
    await runColibri(colibri, ['report', '-o', report]);
    await runColibri(colibri, ['obsidian', '--vault', colibri.path('vault')]);
    expect(note()).toContain('T-0001 \\[erased');
    const told = { by: expect.any(String), because: REASON, texts: expect.any(Array) };
    const erased = [
      { record: 'T-0001', ...told },
      { record: 'Θ-0001', ...told },
    ];
    expect(await verified(colibri, before)).toMatchObject({ code: 0, findings: [], erased: [] });
    expect(await verified(colibri, proof('T-before'))).toMatchObject({ code: 0, findings: [] });
    for (const path of [colibri.dbPath, after, proof('T-after')])
      expect(await verified(colibri, path)).toMatchObject({ code: 0, findings: [], erased });
    expect(await verified(colibri, proof('TH-after'))).toMatchObject({ code: 0, erased: erased.slice(1) });
    // Python reads no database on a server.
    const scripts = ['verify-bundle.py', 'verify-database.py'] as const;
    for (const script of scripts.slice(0, colibri.isOnFile ? 2 : 1)) {
      const file = script === 'verify-bundle.py' ? after : colibri.dbPath;
      const python = await judgeByPython(script, file);
      expect(python.isSound, python.output).toBe(true);
      expect(python.output).toContain(`because: ${REASON}`);
    }
    const shown = await Promise.all(
      [
        ['show', 'T-0001'],
        ['show', 'TH-1'],
        ['log', '--all'],
        ['board', '--all'],
      ].map((args) => runColibri(colibri, args)),
    );
    const files = filesIn(after).map((path) => readFileSync(path, 'utf8'));
    const texts = [
      ...files,
      note(),
      ...['T-after', 'TH-after'].map((name) => readFileSync(proof(name), 'utf8')),
    ];
    for (const text of [...texts, readFileSync(report, 'utf8'), ...shown.map((one) => one.stdout)])
      expect([...OF_TASK, ...OF_THOUGHT].filter((word) => text.includes(word))).toEqual([]);
    expect(shown[0]).toMatchObject({ code: 0, stdout: expect.stringContaining(`because ${REASON}`) });
    expect(shown[1]).toMatchObject({ code: 0, stdout: expect.stringContaining('[erased]') });
    const people = await runColibri(colibri, ['verify']);
    expect(people.stdout).toMatch(/T-0001 was erased by .+ because: They asked to be forgotten\./);
  },
);

proves(
  'erase.bytes',
  'the word that somebody searched for stays with that call, and the command says so',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', { title: 'Ask Quokkabert', project: 'web' });
    await server.call('task_list', { search: 'quokkabert' });

    const { code, stdout } = await erase(colibri, ['T-0001']);

    expect(code).toBe(0);
    const { limits } = JSON.parse(stdout) as { limits: string[] };
    expect(limits).toContain('Calls that searched for words from it keep those words in their arguments.');
    expect(wordsLeft(colibri, ['ask quokkabert', 'quokkabert'])).toEqual(['quokkabert']);
  },
);

proves(
  ['erase.verifies', 'log.erasable'],
  'the hash of an erased thought is what it was, and can be confirmed by whoever guesses the text',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', { title: 'a task', project: 'web' });
    await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: 'Guess me.' });
    const data = await answer(server, 'thought_record', { task_id: 'T-0001', type: 'plan', content: 'On.' });
    await server.closeInput();

    await erase(colibri, ['TH-1']);

    const db = openDatabase(colibri.dbPath, { readOnly: true });
    const thought = db.prepare('SELECT * FROM thoughts WHERE id = 1').get() as Record<string, string>;
    const salts = db.prepare('SELECT count(*) FROM texts WHERE digest = ?').pluck().get(thought.content);
    db.close();
    expect(salts).toBe(0);
    expect(data).toMatchObject({ previous_hash: thought.hash });
    const { type, previous_hash, recorded_at, recorded_by } = thought;
    const fields = { task_id: 'T-0001', type, content: 'Guess me.', previous_hash, recorded_at, recorded_by };
    expect(createHash('sha256').update(JSON.stringify(fields)).digest('hex')).toBe(thought.hash);
  },
);

proves(
  ['erase.interrupted', 'erase.bytes'],
  'a kill at any moment leaves a sound log, and the same command finishes it',
  async ({ colibri }) => {
    const server = await colibri.start();
    // Once in the middle of the purge, which a reader makes wait; else after some time, which may be any moment.
    const waits = [undefined, 150, 250, 350, 450];
    const words = waits.map((_, i) => `Killword${i}x`);
    for (const word of words)
      await server.call('task_create', { title: word, project: 'web', description: `${word} `.repeat(500) });
    await server.closeInput();

    for (const [i, waitMs] of waits.entries()) {
      const [id, word] = [`T-000${i + 1}`, words[i] ?? ''];
      const reader = waitMs === undefined ? olderReader(colibri) : undefined;
      const running = new StayingCommand(colibri, ['erase', id, '--reason', REASON, '--yes']);
      if (waitMs === undefined)
        await until(
          () => isOnRecord(colibri),
          20_000,
          () => `not erased: ${running.stderr}`,
        );
      else await new Promise((resolve) => setTimeout(resolve, waitMs));
      await running.ended('SIGKILL');
      reader?.release();
      const half = await verified(colibri);
      const again = await erase(colibri, [id]);

      expect(half).toMatchObject({ code: 0, findings: [] });
      expect(again.code, again.stderr).toBe(0);
      expect(wordsLeft(colibri, [word])).toEqual([]);
    }
    const { code, stdout } = await erase(colibri, ['T-0001']);
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      ...{ code: 0, erased: [], purged: true },
      already: [{ record: 'T-0001', because: REASON }],
    });
    const { erased, findings } = await verified(colibri);
    expect(findings).toEqual([]);
    expect(erased).toMatchObject(words.map((_, i) => ({ record: `T-000${i + 1}` })));
  },
  { timeoutMs: 120_000, concurrent: true },
);

function isOnRecord(colibri: Playground): boolean {
  const db = openDatabase(colibri.dbPath, { readOnly: true });
  try {
    return db.prepare('SELECT count(*) FROM erased_texts').pluck().get() !== 0;
  } finally {
    db.close();
  }
}

proves(
  'erase.readers',
  'a reader of an older state is waited for; then the command says so, and run again it ends',
  async ({ colibri }) => {
    const server = await colibri.start();
    await leaveSecrets(server);
    const reader = olderReader(colibri);

    const { code, stdout } = await erase(colibri, ['T-0001']);
    const task = await answer(server, 'task_get', { task_id: 'T-0001' });
    reader.release();
    const again = await erase(colibri, ['T-0001']);

    expect({ code, ...JSON.parse(stdout) }).toMatchObject({
      ...{ code: 1, purged: false, erased: [{ record: 'T-0001' }] },
      problem: expect.stringContaining('still reads an older state'),
      remedy: expect.stringContaining('run the same command again'),
    });
    expect(task).toMatchObject({ title: '[erased]' });
    expect(again.code).toBe(0);
    expect(wordsLeft(colibri, OF_TASK)).toEqual([]);
    expect(await verified(colibri)).toMatchObject({ code: 0, findings: [] });
  },
  { concurrent: true },
);

proves(
  ['erase.calls', 'erase.on-record'],
  'a session and a refused call about no task are erased by their own names',
  async ({ colibri }) => {
    const server = await colibri.start();
    await server.call('task_create', { title: 'a task', project: 'web' });
    await server.call('task_create', { title: 'Brimborion', project: 'web', parent_id: 'T-0404' });
    await server.call('audit_session_start', {
      task_id: 'T-0001',
      auditor_id: 'eve',
      reason: 'Gloubiboulga',
    });
    await server.closeInput();

    const { code, stderr } = await erase(colibri, ['A-0001', 'a-1', '#4', '#3']);

    expect(code, stderr).toBe(0);
    expect(wordsLeft(colibri, ['Brimborion', 'Gloubiboulga'])).toEqual([]);
    const { erased } = await verified(colibri);
    expect(erased).toMatchObject([{ record: 'A-0001' }, { record: '#3' }]);
    const wrote = await erase(colibri, ['#1']);
    expect(wrote).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Erase that record instead: colibri erase T-0001'),
    });
  },
);

proves(
  ['erase.refused', 'log.seat-belt'],
  'nothing is erased without a reason, a yes, a record, the key, or against the triggers',
  async ({ colibri }) => {
    const no = await runColibri(colibri, ['erase', 'T-0001', '--reason', REASON, '--yes']);
    expect(no).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/There is no (database|Colibri log)/),
    });
    expect(existsSync(colibri.dbPath)).toBe(false);
    const server = await colibri.start();
    await server.call('task_create', { title: SECRET.title, project: 'web' });
    await server.call('audit_session_start', { task_id: 'T-0001', auditor_id: 'eve' });
    await server.closeInput();
    const run = (...args: string[]) => runColibri(colibri, ['erase', ...args]);
    const reason = ['--reason', REASON];

    const refusals = await Promise.all(
      [
        [['T-0001', '--yes'], 'Give the reason with --reason'],
        [['T-0001', '--reason', '  ', '--yes'], 'Give the reason with --reason'],
        [['T-0001', '--reason', `Because of ${SECRET.title}.`, '--yes'], 'contains the text'],
        [['T-0001', '--reason', 'x'.repeat(2_001), '--yes'], 'at most 2000'],
        [['T-0001', ...reason], 'Nothing was erased.'],
        [['T-0002', ...reason, '--yes'], 'There is no task T-0002'],
        [['TH-1', ...reason, '--yes'], 'There is no thought Θ-0001'],
        [['A-0001', ...reason, '--yes'], 'A-0001 has no text to erase'],
        [['#99', ...reason, '--yes'], 'There is no audit row 99'],
        [['title', ...reason, '--yes'], 'is not an id'],
        [[...reason, '--yes'], 'usage: colibri erase'],
      ].map(async ([args, message]) => ({ message: String(message), ...(await run(...(args ?? []))) })),
    );
    const stranger = { XDG_CONFIG_HOME: colibri.path('stranger') };
    const keyless = colibri.isOnFile && (await erase(colibri, ['T-0001'], { env: stranger }));
    const readOnly = await erase(colibri, ['T-0001'], { env: { COLIBRI_MODE: 'READONLY' } });
    const testing = await erase(colibri, ['T-0001'], { env: { COLIBRI_MODE: 'TEST' } });

    for (const { code, stderr, message } of refusals) {
      expect(stderr).toContain(message);
      expect(code).toBe(2);
    }
    // A team’s log has a key of every machine.
    if (colibri.isOnFile)
      expect(keyless).toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing was erased') });
    expect(readOnly).toMatchObject({ code: 1, stderr: expect.stringContaining('TOOL_NOT_ADMITTED') });
    expect(testing).toMatchObject({ code: 2, stderr: expect.stringContaining('COLIBRI_MODE') });
    const db = openDatabase(colibri.dbPath);
    expect(() => db.exec('DELETE FROM texts')).toThrow('only the owner erases a text');
    expect(() => db.exec("UPDATE texts SET text = ''")).toThrow('never changes');
    db.close();
    expect(wordsLeft(colibri, ['Quokkabert'])).toEqual(['Quokkabert']);
    expect(await verified(colibri)).toMatchObject({ erased: [] });
  },
);
