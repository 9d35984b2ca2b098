import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readPeriod } from '../../src/cli/dates.ts';
import { displayWidth } from '../../src/cli/text.ts';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';

// Issue 18: daily commands without JSON, through the same five stages, under the person's own name (P1, P2, P6, P8).

const PERSIAN = 'گزارش هفتگی را بنویس';
const CHINESE = '发布第二版的说明并通知所有的客户和合作伙伴';
const GERMAN = 'Die Übergabe der Schlüssel an die Werkstatt ausführlich beschreiben';

let colibri: Playground;
const run = (...args: string[]) => runColibri(colibri, args);

beforeAll(async () => {
  colibri = new Playground();
  writeFileSync(colibri.path('home', '.gitconfig'), '[user]\n\tname = Robin Doe\n');
  mkdirSync(colibri.path('data'));
});

afterAll(async () => {
  expect(await colibri.dispose()).toEqual([]);
});

describe('a task from its beginning to its end', () => {
  test('add makes a task and prints its id; the flags are the fields of the tool', async () => {
    const flags = ['--priority', 'high', '--label', 'web', '--label', 'money', '--estimate', '3.5'];

    const made = await run('add', GERMAN, '--project', 'website', ...flags);
    const second = await run('add', CHINESE, '--depends-on', 't-1', '--json');

    expect(made).toMatchObject({ code: 0, stdout: `T-0001 added to website, in backlog: ${GERMAN}\n` });
    // The only project there is.
    expect(JSON.parse(second.stdout)).toMatchObject({ task_id: 'T-0002', created_by: 'Robin Doe' });
    expect(JSON.parse((await run('show', 'T-1', '--json')).stdout)).toMatchObject({
      record: { labels: ['web', 'money'], estimate_hours: 3.5, priority: 'high', project: 'website' },
    });
  });

  test('a wrong value is refused by the tool itself, and a wrong option by the command', async () => {
    expect(await run('add', 'x', '--estimate', 'long')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('estimate_hours'),
    });
    expect(await run('add', 'x', '--colour', 'red')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--colour'),
    });
  });

  test('done takes no step for you but says which one is next', async () => {
    const early = await run('done', 'T-0001', '--because', 'too early');
    await run('move', 'T-0001', 'todo');
    await run('move', 'T-0001', 'in-progress');
    const moved = await run('move', 'T-0001', 'review');
    const unexplained = await run('done', 'T-0001');
    const ended = await run('done', 'T-0001', '--because', 'The keys are handed over.');

    expect(early).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('The reason was not recorded.\nNext: colibri move T-0001 todo'),
    });
    expect(moved.stdout).toBe('T-0001: in_progress → review\n');
    expect(unexplained).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Next: colibri done T-0001 --because "WHY"'),
    });
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining('review → done') });
    // The reason that came too early was not recorded.
    expect(
      JSON.parse((await run('call', 'thought_record_list', '{"task_id":"T-0001"}')).stdout),
    ).toMatchObject({
      data: { thought_count: 1, thoughts: [{ content: 'The keys are handed over.', type: 'decision' }] },
    });
  });

  test('done of a task that somebody else holds names a step that is not refused', async () => {
    const shared = new Playground();
    const as = (name: string, ...args: string[]) =>
      runColibri(shared, args, { env: { COLIBRI_AGENT_ID: name } });
    await as('ada', 'add', 'Paint the door', '--project', 'house');
    for (const status of ['todo', 'in-progress']) await as('ada', 'move', 'T-1', status);

    const refused = await as('bob', 'done', 'T-1');
    const [, step = ''] = /^Next: colibri (.*) \(ada holds it\)$/m.exec(refused.stderr) ?? [];
    const moved = await as('bob', ...step.split(' '));

    expect(step).toBe('move T-0001 review --takeover');
    expect(moved).toMatchObject({ code: 0, stdout: expect.stringContaining('in_progress → review') });
    expect(await shared.dispose()).toEqual([]);
  });

  test('done knows the last step of a pipeline, and move its words', async () => {
    await run('add', 'Survey', '--project', 'website', '--workflow', 'pipeline');
    for (const status of ['gather', 'analyze', 'plan', 'apply', 'verify']) await run('move', 'T-3', status);

    expect(await run('done', 'T-3', '--because', 'Seen.')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('VERIFY → DONE'),
    });
  });

  test('think and assign record what they say; blocking needs a reason', async () => {
    const thought = await runColibri(
      colibri,
      ['think', 'T-2', '-', '--type', 'risk', '--commit', 'abc1234'],
      {
        input: 'Line one\nLine two\n',
      },
    );
    await run('assign', 'T-2', 'bob');
    await run('move', 'T-2', 'todo');
    const blocked = await run('move', 'T-2', 'blocked');

    expect(thought.stdout).toBe('Θ-0003 recorded on T-0002: risk\n');
    expect(JSON.parse((await run('show', 'TH-3', '--json')).stdout)).toMatchObject({
      record: { content: 'Line one\nLine two', commit_sha: 'abc1234', recorded_by: 'Robin Doe' },
    });
    expect(blocked).toMatchObject({ code: 1, stderr: expect.stringContaining('blocked_reason') });
    expect((await run('move', 'T-2', 'blocked', '--reason', 'no key')).code).toBe(0);
    expect((await run('list', '--assignee', 'bob')).stdout).toMatch(/T-0002 .*\(blocked: no key\)/);
  });

  test('every call has its two rows, is marked as coming from the command line, and verifies', async () => {
    const { rows } = colibri.readAudit();

    expect(new Set(rows.map(({ source }) => source))).toEqual(new Set(['cli']));
    expect(new Set(rows.map(({ actor }) => actor))).toEqual(new Set(['Robin Doe']));
    expect((await run('verify')).code).toBe(0);
  });
});

describe('the name of the person', () => {
  const actorOf = async (env: Readonly<Record<string, string>>, cwd?: string) => {
    const { stdout } = await runColibri(colibri, ['add', 'x', '--project', 'names', '--json'], {
      env,
      ...(cwd !== undefined && { cwd }),
    });
    return (JSON.parse(stdout) as { created_by: string }).created_by;
  };

  test('is the one that was set, else the user’s git name, else the login', async () => {
    expect(await actorOf({ COLIBRI_AGENT_ID: 'ada' })).toBe('ada');
    expect(await actorOf({})).toBe('Robin Doe');
    expect(await actorOf({ HOME: colibri.path('config') })).toBe(userInfo().username);
  });

  test('is told to whoever takes a task over, with the status only where it stays', async () => {
    const { stdout } = await run('add', 'Hand over', '--project', 'names', '--json');
    const { task_id } = JSON.parse(stdout) as { task_id: string };
    const asAda = (...args: string[]) => runColibri(colibri, args, { env: { COLIBRI_AGENT_ID: 'ada' } });
    for (const status of ['todo', 'in-progress']) await run('move', task_id, status);

    const taken = await asAda('move', task_id, 'in-progress', '--takeover');
    const back = await run('move', task_id, 'review', '--takeover');

    expect(taken.stdout).toBe(`${task_id}: in_progress, taken over from Robin Doe\n`);
    expect(back.stdout).toBe(`${task_id}: in_progress → review, taken over from ada\n`);
  });

  test('is never what a repository says, nor a name that acts on a terminal', async () => {
    const repository = colibri.path('foreign');
    mkdirSync(repository);
    spawnSync('git', ['init', '-q'], { cwd: repository });
    spawnSync('git', ['config', 'user.name', 'mallory'], { cwd: repository });
    const home = colibri.path('odd-home');
    mkdirSync(home);
    writeFileSync(`${home}/.gitconfig`, '[user]\n\tname = "a\\tb\u001b[31m"\n');

    expect(await actorOf({}, repository)).toBe('Robin Doe');
    expect(await actorOf({ HOME: home })).toBe('ab[31m');
  });
});

describe('list and search', () => {
  test('filter, say what they left out, and give data whole', async () => {
    const many = Array.from({ length: 60 }, (_, i) => `Step ${i + 1}`);
    const server = await colibri.start({ clientName: 'ada' });
    for (const title of many) await server.call('task_create', { title, project: 'many' });
    await server.closeInput();

    const open = await run('list', '--project', 'many');
    const all = await run('list', '--project', 'many', '--all');
    const few = await run('list', '--project', 'many', '--limit', '5');
    const data = JSON.parse((await run('list', '--project', 'many', '--json')).stdout) as { tasks: object[] };
    const website = await run('list', '--project', 'website');

    expect(open.stdout.match(/T-\d+/g)).toHaveLength(50);
    expect(open.stdout).toContain('10 more tasks: --limit 60 or --all shows them.');
    expect(all.stdout.match(/T-\d+/g)).toHaveLength(60);
    expect(few.stdout).toContain('55 more tasks');
    expect(data.tasks).toHaveLength(60);
    expect(website.stdout).toContain('2 finished or cancelled: --all shows them.');
    expect((await run('list', '--project', 'nowhere')).stderr).toContain('There is no project "nowhere"');
    expect((await run('list', '--status', 'dome')).stderr).toContain('Did you mean done?');
    expect((await run('list', '--since', '1h', '--project', 'website', '--all')).stdout).toContain('T-0001');
    expect((await run('list', '--until', 'yesterday')).stdout).toBe('No task matches.\n');
  });

  test('search finds words of any script, finished tasks too, and ids as agents see them', async () => {
    await run('add', `${PERSIAN} 👨‍👩‍👧‍👦`, '--project', 'website');

    expect((await run('search', 'schlüssel')).stdout).toContain('T-0001');
    expect((await run('search', '第二版')).stdout).toContain('T-0002');
    expect((await run('search', 'هفتگی')).stdout).toContain('👨‍👩‍👧‍👦');
    expect(JSON.parse((await run('search', 'werkstatt', '--json')).stdout)).toMatchObject({
      tasks: [{ task_id: 'T-0001', labels: ['web', 'money'], proof_grade: false }],
      total_count: 1,
    });
  });

  test('search finds thoughts by their words, in any case and script, on the tasks that the filters choose', async () => {
    const found = async (...args: string[]) => {
      const said = JSON.parse((await run('search', ...args, '--json')).stdout);
      const [tasks, thoughts] = [said.tasks, said.thoughts] as { task_id: string; thought_id: string }[][];
      return [tasks?.map(({ task_id }) => task_id), thoughts?.map(({ thought_id }) => thought_id)];
    };
    const add = (text: string) => run('think', 'T-2', text, '--type', 'decision', '--json');
    const [first = '', second = ''] = [
      await add('Die ÜBERGABE zuerst'),
      await add(`${CHINESE} ${'x'.repeat(400)}`),
    ].map(({ stdout }) => JSON.parse(stdout).thought_id as string);
    const people = await run('search', 'die', 'zuerst');

    expect(await found('übergabe', 'die', 'zuerst')).toEqual([[], [first]]);
    expect(await found('übergabe')).toEqual([['T-0001'], [first]]);
    expect(await found('第二版')).toEqual([['T-0002'], [second]]);
    expect(await found('übergabe', 'zuerst', '--project', 'website')).toEqual([[], [first]]);
    expect(await found('übergabe', 'zuerst', '--until', 'yesterday')).toEqual([[], []]);
    expect(people.stdout).toMatch(
      /^id +task +type +age +by +content\nΘ-\d+ +T-0002 +decision +0m +Robin Doe +Die ÜBERGABE/,
    );
    expect((await run('search', 'x'.repeat(99))).stdout).toMatch(/xxx…\n$/);
    expect((await run('search', 'no such word')).stdout).toBe('No task and no thought matches.\n');
    // By an id, as people write it.
    expect(await found('t-2')).toEqual([['T-0002'], []]);
    expect(await found(first.replace('Θ-000', 'th-'))).toEqual([[], [first]]);
    expect(await found('A-999')).toEqual([[], []]);
  });

  test.each([80, 140])('in %d columns every line fits and no word of a title is lost', async (columns) => {
    const { stdout } = await runColibri(colibri, ['list', '--all', '--project', 'website'], {
      env: { COLUMNS: String(columns) },
    });

    expect(stdout.split('\n').filter((line) => displayWidth(line) > columns)).toEqual([]);
    expect(stdout.replaceAll(/\s/g, '')).toContain(CHINESE);
    for (const word of GERMAN.split(' ')) expect(stdout).toContain(word);
  });

  test('CSV is RFC 4180, and a formula in a title is only text', async () => {
    const hostile = '=HYPERLINK("http://x"),\nsecond line';
    await run('add', hostile, '--project', 'csv', '--label', '@cmd');

    const { stdout } = await run('list', '--csv', '--project', 'csv');

    const [head = '', ...rest] = stdout.split('\r\n');
    expect(head.split(',').slice(0, 3)).toEqual(['id', 'priority', 'status']);
    expect(rest.join('\r\n')).toContain(`"'=HYPERLINK(""http://x""),\nsecond line",'@cmd,`);
    expect(stdout.endsWith('\r\n')).toBe(true);
  });

  test('a program hears on the other channel what its list leaves out', async () => {
    await run('add', 'Left out', '--project', 'quiet');
    const id = JSON.parse((await run('search', 'left out', '--json')).stdout).tasks[0].task_id;
    await run('think', id, 'unheard-of reason');
    await run('move', id, 'cancelled');
    const thought = await run('search', 'unheard-of', '--csv');

    expect(thought).toMatchObject({ code: 0, stderr: '1 thought found as well: --json shows it.\n' });
    for (const form of ['--json', '--csv'])
      expect((await run('list', '--project', 'quiet', form)).stderr).toBe(
        '1 finished or cancelled: --all shows it.\n',
      );
  });
});

test('sessions lists open and sealed ones with their task', async () => {
  await run('call', 'audit_session_start', '{"task_id":"T-0002","auditor_id":"carol","reason":"why"}');
  await run('think', 'T-2', 'Recorded in the session');
  const open = await run('sessions', '--open');
  await run('call', 'merkle_finalize', '{"session_id":"A-0001"}');
  const sealed = await run('sessions', '--json');

  expect(open.stdout).toMatch(/A-0001 +open +\d+m +Robin Doe +carol +1 +T-0002/);
  expect(JSON.parse(sealed.stdout)).toMatchObject({
    sessions: [{ session_id: 'A-0001', task_id: 'T-0002', auditor_id: 'carol', leaf_count: 1, skills: [] }],
  });
  expect((await run('sessions', '--open')).stdout).toBe('No session matches.\n');
});

describe('times', () => {
  const now = Date.parse('2026-03-10T15:30:00.000Z');
  const since = (text: string) => readPeriod({ since: text }, now).since;

  test('are ISO, a day by name, or so long ago', () => {
    expect(since('today')).toBe('2026-03-10T00:00:00.000Z');
    expect(since('yesterday')).toBe('2026-03-09T00:00:00.000Z');
    expect(since('3d')).toBe('2026-03-07T15:30:00.000Z');
    expect(since('2w')).toBe('2026-02-24T15:30:00.000Z');
    expect(since('12h')).toBe('2026-03-10T03:30:00.000Z');
    expect(since('2026-01-31T12:00+01:00')).toBe('2026-01-31T11:00:00.000Z');
    // A day counts to its end.
    expect(readPeriod({ until: 'yesterday' }, now).until).toBe('2026-03-09T23:59:59.999Z');
    expect(readPeriod({ until: '2026-01-31' }, now).until).toBe('2026-01-31T23:59:59.999Z');
  });

  test.each(['', 'tomorrow', '3', '3m', '-3d', '2026-02-30', '99999d', '3D'])('%j is none', (text) => {
    expect(() => since(text)).toThrow(/--since takes a time such as/);
  });
});

describe('what a newcomer met', () => {
  let website: Playground;
  const call = (...args: string[]) => runColibri(website, args);

  beforeAll(() => {
    website = new Playground();
    mkdirSync(website.path('data'));
  });

  afterAll(async () => {
    expect(await website.dispose()).toEqual([]);
  });

  test('verify before the first call says how to begin', async () => {
    expect(await call('verify')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('The first call creates it'),
    });
  });

  test('a secret is not shown again, and whoever typed it is told', async () => {
    const secret = `ghp_${'a1B2'.repeat(9)}`;

    const made = await call('add', `Try ${secret}`, '--project', 'web');
    const noted = await call('think', 'T-0001', `It is ${secret}`, '--json');
    const called = await call('call', 'task_update', `{"task_id":"T-0001","title":"Not ${secret}"}`);

    expect(made.stdout).toBe('T-0001 added to web, in backlog: Try [redacted: GitHub token]\n');
    for (const { code, stdout, stderr } of [made, noted, called]) {
      expect(code).toBe(0);
      expect(stdout + stderr).not.toContain(secret);
      expect(stderr).toContain('Colibri does not store secrets');
    }
  });

  test('done of a proof-grade task names the call that comes first, each time', async () => {
    await call('add', 'To be proved', '--project', 'web', '--proof-grade');
    for (const status of ['todo', 'in_progress', 'review']) await call('move', 'T-0002', status);

    const open = await call('done', 'T-0002', '--because', 'it is true');
    const next = (stderr: string) => /^Next: colibri (call) (\w+) '([^']+)'$/m.exec(stderr)?.slice(1) ?? [];
    const opened = await call(...next(open.stderr));
    const unsealed = await call('done', 'T-0002', '--because', 'it is true');
    const sealed = await call(...next(unsealed.stderr));
    const done = await call('done', 'T-0002');

    expect([open.code, unsealed.code]).toEqual([1, 1]);
    expect(next(open.stderr)[1]).toBe('audit_session_start');
    expect(next(unsealed.stderr).slice(1)).toEqual(['merkle_finalize', '{"session_id":"A-0001"}']);
    expect([opened.code, sealed.code, done.code]).toEqual([0, 0, 0]);
  });

  test('done names a takeover where an agent of the same name holds the task', async () => {
    const me = { COLIBRI_AGENT_ID: 'robin' };
    await call('add', 'Held by an agent', '--project', 'web');
    const server = await website.start({ env: me });
    for (const status of ['todo', 'in_progress'])
      await server.call('task_update', { task_id: 'T-0003', status });

    const early = await runColibri(website, ['done', 'T-0003'], { env: me });
    const [, command = ''] = /Next: colibri (.*) \(/.exec(early.stderr) ?? [];
    const taken = await runColibri(website, command.split(' '), { env: me });
    await server.closeInput();

    expect(command).toBe('move T-0003 review --takeover');
    expect(taken.code).toBe(0);
  });

  test('what checkpoint prints as JSON is taken by verify, as a key and to compare', async () => {
    const kept = website.path('kept.json');
    writeFileSync(kept, (await call('checkpoint', '--json')).stdout);
    await call('export', '-o', website.path('bundle'));
    const bundle = website.path('bundle');

    const compared = await call('verify', '--against', kept);
    const trusted = await call('verify', bundle, '--key', kept);
    const missing = await call('verify', bundle, '--key', website.path('nowhere.key'));
    const proof = website.path('proof.json');
    await call('prove', 'T-0001', '-o', proof);
    const itself = await call('verify', proof, '--key', proof);

    expect(compared).toMatchObject({ code: 0, stdout: expect.stringContaining('Nothing is wrong.') });
    expect(trusted).toMatchObject({ code: 0, stdout: expect.stringContaining('Nothing is wrong.') });
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining('neither a file nor') });
    expect(itself).toMatchObject({ code: 2, stderr: expect.stringContaining('There is no verifier key in') });
  });

  test('a log that was transferred refuses a new task by saying where it is, and nothing else', async () => {
    const to = website.path('moved.db');
    await call('transfer', '--to', to);

    const { code, stderr } = await call('add', 'too late');

    expect(code).toBe(1);
    expect(stderr).toContain(`transferred to ${to}`);
    expect(stderr).not.toContain('there is no database');
  });
});

test('outside a project a call says where it goes, and makes no database there that nobody named', async () => {
  const nowhere = colibri.path('nowhere');
  mkdirSync(nowhere);
  const outside = { cwd: nowhere, env: { COLIBRI_DB_PATH: '', GIT_CEILING_DIRECTORIES: colibri.folder } };

  const refused = await runColibri(colibri, ['call', 'task_list'], outside);
  mkdirSync(colibri.path('share', 'colibri', '.colibri'), { recursive: true });
  const made = await runColibri(colibri, ['add', 'x', '--project', 'y'], {
    env: { COLIBRI_DB_PATH: colibri.path('share', 'colibri', '.colibri', 'colibri.db') },
  });
  const noted = await runColibri(colibri, ['add', 'x'], outside);

  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('colibri init') });
  expect(made.code).toBe(0);
  expect(noted).toMatchObject({ code: 0, stderr: expect.stringContaining('so this goes to') });
});

describe('completion', () => {
  const complete = async (...words: string[]) => {
    const { stdout } = await run('completion', 'bash');
    const quoted = words.map((word) => `'${word}'`).join(' ');
    const script = `${stdout}\nCOMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _colibri; echo "\${COMPREPLY[@]}"`;
    return spawnSync('bash', ['-c', script], { encoding: 'utf8' }).stdout.trim().split(' ');
  };

  test('of bash knows commands, options, and words that an option or an argument can be', async () => {
    expect(await complete('colibri', 's')).toEqual([
      'serve-mcp',
      'search',
      'show',
      'sessions',
      'stats',
      'serve',
    ]);
    expect(await complete('colibri', 'list', '--ass')).toEqual(['--assignee']);
    expect(await complete('colibri', 'add', 'x', '--priority', 'c')).toEqual(['critical']);
    expect(await complete('colibri', 'move', 'T-1', 'rev')).toEqual(['review']);
    expect(await complete('colibri', 'init', '--client', 'cu')).toEqual(['cursor']);
    // Files only where one can be meant.
    expect(await complete('colibri', 'list', '--project', 'pack')).toEqual(['']);
    expect(await complete('colibri', 'verify', '--key', 'package.j')).toEqual(['package.json']);
  });

  const hasShell = (shell: string) => spawnSync(shell, ['--version']).status === 0;
  /** The script of a shell in a file, and what the shell says when it runs these lines. */
  const inShell = async (shell: string, lines: (script: string) => string) => {
    const path = colibri.path(`completion.${shell}`);
    writeFileSync(path, (await run('completion', shell)).stdout);
    const args = shell === 'zsh' ? ['-f', '-c'] : ['--no-config', '-c'];
    const env = { ...colibri.environment, TERM: 'dumb' };
    return spawnSync(shell, [...args, lines(path)], { encoding: 'utf8', env, timeout: 20_000 }).stdout;
  };

  test.skipIf(!hasShell('fish'))('of fish does the same (skipped where there is no fish)', async () => {
    const ask = (words: string) =>
      inShell('fish', (script) => `source ${script}; complete -C '${words}'`).then((text) =>
        text
          .trimEnd()
          .split('\n')
          .map((line) => line.split('\t')[0]),
      );

    expect(await ask('colibri se')).toEqual(['search', 'serve', 'serve-mcp', 'sessions']);
    expect(await ask('colibri list --ass')).toEqual(['--assignee']);
    expect(await ask('colibri add x --priority c')).toEqual(['critical']);
    expect(await ask('colibri move T-1 rev')).toEqual(['review']);
    expect(await ask('colibri init --client cu')).toEqual(['cursor']);
    expect(await ask('colibri list --project pack')).toEqual(['']);
    expect(await ask('colibri verify --key package.j')).toEqual(['package.json']);
  });

  test.skipIf(!hasShell('zsh'))('of zsh does the same (skipped where there is no zsh)', async () => {
    // A shell on a terminal of its own, and the key that a person presses.
    const ask = (words: string, wanted: string) =>
      inShell(
        'zsh',
        (script) => `zmodload zsh/zpty; zpty shell zsh -f -i
          zpty -w shell "autoload -U compinit; compinit -u -D; source ${script}; echo rea''dy"
          zpty -r -m shell said '*ready*'
          zpty -w -n shell $'${words}\\t'
          zpty -r -m shell said '*${wanted}*' && print -r -- "$said"`,
      );

    expect(await ask('colibri sta', 'stats')).toContain('colibri stats');
    expect(await ask('colibri list --ass', 'assignee')).toContain('colibri list --assignee');
    expect(await ask('colibri move T-1 rev', 'review')).toContain('colibri move T-1 review');
  });

  test('there is none of other shells', async () => {
    expect((await run('completion', 'tcsh')).code).toBe(2);
  });
});
