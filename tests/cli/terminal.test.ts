import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createOutput } from '../../src/cli/output.ts';
import { displayWidth, toWidth } from '../../src/cli/text.ts';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { NODE } from '../driver/server-process.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const ESCAPE = '\u001b[';

const CHINESE = '我们先发布第二版，然后再写说明。';
const UNSPACED = `${CHINESE.repeat(20)}\n\n  - second line\nthird line`;

let colibri: Playground;

beforeAll(async () => {
  colibri = new Playground();
  const server = await colibri.start({ clientName: 'ada' });
  const title = 'Write the release notes for the second version of the product';
  await server.call('task_create', { title, project: 'website', priority: 'critical' });
  await server.call('task_create', { title: '発表の準備をする人を決めて連絡する', project: 'website' });
  await server.call('task_create', { title: 'Survey', project: 'research', workflow: 'pipeline' });
  await server.call('task_update', { task_id: 'T-0001', status: 'todo', assignee: 'bob' });
  await server.call('thought_record', {
    task_id: 'T-0001',
    type: 'decision',
    content: 'Because. '.repeat(100),
  });
  await server.call('thought_record', { task_id: 'T-0001', type: 'plan', content: UNSPACED });
  await server.call('task_update', { task_id: 'T-0002', status: 'done' });
  await server.closeInput();
});

afterAll(async () => {
  expect(await colibri.dispose()).toEqual([]);
});

/** Lines that could have been broken and were not. A path or a hash stays whole. */
function tooWide(text: string, columns: number): string[] {
  return text.split('\n').filter((line) => displayWidth(line) > columns && /\S\s+\S/.test(line));
}

describe.each([40, 60, 80])('in %d columns', (columns) => {
  test.each([
    ['--help'],
    ['anchor', '--help'],
    ['board'],
    ['board', '--all'],
    ['log'],
    ['show', 'T-0001'],
    ['show', 'TH-1'],
    ['doctor'],
  ])('colibri %s %s keeps its lines within', async (...args) => {
    const { code, stdout } = await runColibri(colibri, args, { env: { COLUMNS: String(columns) } });

    expect(code).toBe(0);
    expect(tooWide(stdout, columns)).toEqual([]);
  });
});

test('show breaks text without spaces where it may be broken, and keeps the line breaks of a text', async () => {
  const { stdout } = await runColibri(colibri, ['show', 'TH-2'], { env: { COLUMNS: '60' } });
  const lines = stdout.split('\n');

  expect(lines.filter((line) => displayWidth(line) > 60 && /[我们]/u.test(line))).toEqual([]);
  expect(lines.filter((line) => /^\s*[，。]/u.test(line))).toEqual([]);
  expect(stdout.replaceAll(/\s/g, '')).toContain(CHINESE.repeat(20));
  expect(stdout).toMatch(/\n\n {10,}- second line\n {8,}third line\n/);
});

test('a character that is many characters is measured and cut as one, wherever in a text it is', () => {
  for (const [c, width] of [
    ['👨‍👩‍👧‍👦', 2],
    ['👍🏽', 2],
    ['🇫🇷', 2],
    ['e\u0301', 1],
  ] as const)
    for (let before = 0; before < 12; before += 1) {
      const text = 'x'.repeat(before) + c.repeat(600);

      expect(displayWidth(text)).toBe(before + width * 600);
      expect(toWidth(text, before + width * 500)).toBe(
        `${'x'.repeat(before)}${c.repeat(499)}…${' '.repeat(width - 1)}`,
      );
    }
});

test('through a pipe nothing is broken or cut off, and nothing is coloured', async () => {
  const { stdout } = await runColibri(colibri, ['log']);

  expect(stdout).toContain('Because. '.repeat(99));
  expect(stdout).not.toContain(ESCAPE);
});

test('board draws a column for each status where there is room, and for each that is used where there is less', async () => {
  const board = async (columns: string) =>
    (await runColibri(colibri, ['board', '--project', 'website'], { env: { COLUMNS: columns } })).stdout;

  const [wide = ''] = (await board('100')).split('\n');
  const narrow = await board('40');
  const narrowest = await board('20');

  expect(wide.trim().split(/ {2,}/)).toEqual([
    'backlog 1',
    'todo 1',
    'in_progress 0',
    'blocked 0',
    'review 0',
  ]);
  expect(narrow).toMatch(/^backlog 1 +todo 1\n/);
  expect(narrow).toContain('empty: in_progress, blocked, review');
  expect(narrowest).toMatch(/^backlog 1 +todo 1\n─+ +─+\nT-0002 \d+m +T-0001/);
});

test('board says what it leaves out, and where tasks are when there are none', async () => {
  const empty = await runColibri(colibri, ['board', '--project', 'elsewhere']);
  const server = await colibri.start();
  await server.call('task_update', { task_id: 'T-0003', status: 'CANCELLED' });
  await server.closeInput();

  expect(empty.stdout).toBe(
    'There are no tasks in project elsewhere. Projects with tasks: research, website.\n',
  );
  expect((await runColibri(colibri, ['board'])).stdout).toContain('1 CANCELLED: --all shows it');
});

test('an unknown id is a mistake of whoever typed it, and the newest one is named', async () => {
  expect(await runColibri(colibri, ['show', 'T-99'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/There is no task T-0099 in .*\. The newest is T-0003\./),
  });
  expect(await runColibri(colibri, ['show', 'A-1'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('There is no session yet.'),
  });
  expect((await runColibri(colibri, ['prove', 'T-0099'])).code).toBe(2);
});

test('help for a command can be asked both ways, and a slip in an option is guessed', async () => {
  const asked = await runColibri(colibri, ['help', 'log']);

  expect(asked).toEqual(await runColibri(colibri, ['log', '--help']));
  expect(await runColibri(colibri, ['log', '--folow'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Did you mean --follow?'),
  });
});

test('init makes a project of a folder that belongs to none', async () => {
  const folder = colibri.path('fresh');
  mkdirSync(folder);

  const { code, stdout } = await runColibri(colibri, ['init'], { cwd: folder });

  expect(code).toBe(0);
  expect(stdout).toContain(`${folder}/.mcp.json starts Colibri`);
  expect(stdout).toContain(`${folder}/.colibri is ready`);
});

const hasScript = spawnSync('script', ['--version']).status === 0;

describe.skipIf(!hasScript)('on a terminal (skipped where there is no script(1))', () => {
  const onTerminal = (command: string, env: Readonly<Record<string, string>> = {}, input = '') =>
    spawnSync('script', ['-qec', `stty cols 50; ${NODE} ${CLI} ${command}`, '/dev/null'], {
      cwd: colibri.folder,
      env: { ...colibri.environment, TERM: 'xterm', ...env },
      encoding: 'utf8',
      input,
    });

  test('colibri alone explains itself, as wide as the terminal', () => {
    const { status, stdout } = onTerminal('');

    expect(status).toBe(0);
    expect(stdout).toContain('people:');
    expect(tooWide(stdout.replaceAll('\r', ''), 50)).toEqual([]);
  });

  test('a long log goes through the pager of the user, with colours and as wide as the terminal', () => {
    const { stdout } = onTerminal('log', { PAGER: 'sed s/^/paged:/' });
    const lines = stdout.replaceAll('\r', '').trimEnd().split('\n');

    expect(lines.filter((line) => !line.startsWith('paged:'))).toEqual([]);
    expect(stdout).toContain(ESCAPE);
    expect(lines.filter((line) => displayWidth(line.slice('paged:'.length)) > 50)).toEqual([]);
    // What was left out is said there, in its colour.
    const shortened = onTerminal('log -n 1', { PAGER: 'cat' }).stdout;
    expect(shortened.split(`${ESCAPE}2m`).at(-1)).toMatch(/^\d+ earlier calls: --limit \d+ or --all/);
    expect(shortened).not.toContain('u{1b}');
    // It has the user's own settings, and less is told how the text is encoded, whatever the locale.
    const settings = onTerminal('log', { PAGER: 'printenv LC_ALL LESSCHARSET', LC_ALL: 'fa_IR.UTF-8' });
    expect(settings.stdout.split('\r\n')).toEqual(['fa_IR.UTF-8', 'utf-8', '']);
    // Without one it is printed as it is.
    expect(onTerminal('log', { PAGER: '' }).stdout).toContain('T-0003 Survey');
    expect(onTerminal('log', { PAGER: '/nowhere/pager' }).stdout).toContain('T-0003 Survey');
  });

  test('erase asks, and takes nothing but yes', () => {
    const [no, yes] = ['y\n', 'yes\n'].map((input) => onTerminal('erase TH-1 --reason old', {}, input));

    expect(no).toMatchObject({ status: 2, stdout: expect.stringContaining('Nothing was erased.') });
    expect(no?.stdout).toContain('Erase for good?');
    expect(yes).toMatchObject({ status: 0, stdout: expect.stringContaining('Θ-0001 is erased: 1 text') });
  });

  test('there is colour, and none with NO_COLOR or on a dumb terminal', () => {
    expect(onTerminal('board').stdout).toContain(ESCAPE);
    expect(onTerminal('board', { NO_COLOR: '' }).stdout).toContain(ESCAPE);
    expect(onTerminal('board', { NO_COLOR: '1' }).stdout).not.toContain(ESCAPE);
    expect(onTerminal('board', { TERM: 'dumb' }).stdout).not.toContain(ESCAPE);
  });
});

test('a terminal that tells no width, as under script, is written to as one of 80 columns', () => {
  const [stdin, screen] = [new PassThrough(), new PassThrough()];
  const stdout = Object.assign(screen, { isTTY: true, columns: 0 });

  const out = createOutput({ json: false, colour: false, stdin, stdout, stderr: stdout });
  out.error('a sentence of more than ten columns');

  expect(out.width).toBe(80);
  expect(String(screen.read())).toBe('a sentence of more than ten columns\n');
});
