import { execFile, spawnSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { CLIENTS } from '../../src/cli/clients.ts';
import { COMMANDS, COMMON } from '../../src/cli/commands.ts';

import { APPLICATION_ID, SCHEMA_VERSION } from '../../src/storage/sqlite/schema.ts';
import { openDatabase } from '../driver/database.ts';
import { NODE } from '../driver/server-process.ts';

/*
 * What the README and the guides show is run here, page by page, each in a home of its own.
 *
 *   ```sh        commands; the block must succeed
 *   ```console   `$ command`, then what it prints. It must succeed, unless `$ echo $?` behind it shows how it ends.
 *                `…` stands for anything within a line, a line of it alone for any lines. Times, hashes, signatures and
 *                version numbers are compared by their form; the folder /home/you is wherever the test plays.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const CLI = join(ROOT, 'dist', 'cli.js');

const PAGES = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs', 'guides')).map((name) => `docs/guides/${name}`),
];

/** Blocks that this test does not run, with the reason and with what is checked instead. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'colibri serve': 'stays until it is told to go; tests/cli/serve.test.ts runs it',
  'npx -y colibri-mcp init': 'needs the registry; tests/ship runs it from the packed tarball',
  'npm install --global colibri-mcp': 'needs the registry; tests/ship installs the packed tarball',
  'npx -y colibri-mcp demo':
    'needs the registry; `colibri demo` is run below, and from the packed tarball in tests/ship',
  'npm ci && npm run demo': 'would build under this test; `colibri demo` is run below',
  'npm ci && npm test': 'runs this very test',
  'npm ci && npm run build && npm install --global .':
    'would change the installed packages under this test; the scripts are checked to exist',
  'npm ci && npm run mcpb': 'needs the registry; tests/ship makes, unpacks and starts the bundle',
  'docker build -t colibri-mcp .\ndocker run -i --rm --user "$(id -u):$(id -g)" -v "$PWD:/workspace" -v "$HOME/.config/colibri:/config/colibri" colibri-mcp':
    'needs a container engine; tests/ship builds the image where there is one',
  'git pull && npm ci && npm run build': 'needs a remote and the network; the scripts are checked to exist',
};

/** Pages whose commands need a richer log, and the test that runs them. */
const RUN_ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/guides/auditing.md': 'tests/contract/bundle.test.ts',
  'docs/guides/team.md': 'tests/contract/postgres.test.ts',
};

/** What is there before the first command of a page. */
const SCENES: Readonly<Record<string, (folder: string) => void>> = {
  'docs/guides/upgrading.md': (folder) => makeOlderFile(join(folder, '.colibri')),
};

interface Step {
  readonly command: string;
  readonly exit: number;
  /** Undefined where the page shows none. */
  readonly output: string | undefined;
}

interface Outcome {
  readonly exit: number;
  readonly output: string;
}

const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'colibri-pages-')));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe.concurrent.each(PAGES.filter((page) => !Object.hasOwn(RUN_ELSEWHERE, page)))('%s', (page) => {
  test('shows commands that do what it says', { timeout: 240_000 }, async () => {
    const steps = stepsOf(read(page));

    const outcomes = await play(page, steps);

    for (const [i, { command, exit, output }] of steps.entries()) {
      const outcome = outcomes[i] ?? { exit: Number.NaN, output: 'was never reached' };
      const said = `${page}: ${command}\n${outcome.output}`;
      expect(outcome.exit, said).toBe(exit);
      if (output !== undefined)
        expect(matches(output, outcome.output) ? output : outcome.output, said).toBe(output);
    }
  });
});

test('nothing is left out of the run without need', () => {
  const shown = PAGES.flatMap((page) => blocksOf(read(page)).map(({ body }) => body.trim()));

  expect(Object.keys(NOT_RUN).filter((command) => !shown.includes(command))).toEqual([]);
  for (const [page, place] of Object.entries(RUN_ELSEWHERE)) {
    expect(PAGES).toContain(page);
    expect(read(place)).toContain(page.slice(page.lastIndexOf('/') + 1));
  }
});

test('scripts that are only named exist', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = Object.keys(NOT_RUN).flatMap((command) =>
    [...command.matchAll(/npm run (\w+)/g)].map(([, script = '']) => script),
  );

  expect(new Set(named)).toEqual(new Set(['build', 'demo', 'mcpb']));
  expect(Object.keys(scripts)).toEqual(expect.arrayContaining([...named]));
});

test('the demo goes as told, and each tampering is caught under its own name', () => {
  const home = join(scratch, 'demo');
  mkdirSync(home);
  const { status, stdout } = spawnSync(NODE, [CLI, 'demo', '--json'], {
    cwd: home,
    env: { PATH: process.env.PATH, HOME: home, TMPDIR: home },
    encoding: 'utf8',
  });

  const demo = JSON.parse(stdout) as { report: string; steps: { fine: boolean; text: string }[] };
  expect(status).toBe(0);
  expect(demo.steps.filter(({ fine }) => !fine)).toEqual([]);
  expect(demo.steps.flatMap(({ text }) => /^found: ([a-z-]+)/.exec(text)?.[1] ?? [])).toEqual([
    'altered',
    'rewritten',
  ]);
  expect(readFileSync(demo.report, 'utf8')).toContain('<title>');
});

test('the README names every client that init writes for', () => {
  const names = CLIENTS.map((client) => `\`${client.name}\``);

  expect(names.filter((name) => !read('README.md').includes(name))).toEqual([]);
});

test.each(PAGES)('%s names commands and options that exist', (page) => {
  const spans = [...read(page).matchAll(/`colibri ([a-z-]+)([^`]*)`/g)];
  const wrong = spans.filter(([, name, rest = '']) => {
    const command = COMMANDS.find((candidate) => candidate.name === name);
    const options = { ...command?.options, ...COMMON };
    return command === undefined || [...rest.matchAll(/--([a-z-]+)/g)].some(([, o = '']) => !(o in options));
  });

  expect(wrong.map(([span]) => span)).toEqual([]);
});

/** Plays a page in one shell, so that a `cd` or a variable lasts, and splits what comes by a mark after each step. */
async function play(page: string, steps: readonly Step[]): Promise<Outcome[]> {
  const home = join(scratch, page.replaceAll(/\W/g, '-'));
  const project = join(home, 'website');
  mkdirSync(project, { recursive: true });
  mkdirSync(join(home, 'bin'));
  writeFileSync(join(home, 'bin', 'colibri'), `#!/bin/sh\nexec "${NODE}" "${CLI}" "$@"\n`);
  chmodSync(join(home, 'bin', 'colibri'), 0o755);
  // Who the pages are about.
  writeFileSync(join(home, '.gitconfig'), '[user]\n\tname = robin\n');
  SCENES[page]?.(project);
  const mark = (i: number) => `--- step ${i} ended with`;
  const script = [
    'exec 2>&1',
    ...steps.map(({ command }, i) => `${command}\nprintf '\\n${mark(i)} %s\\n' "$?"`),
  ].join('\n');
  writeFileSync(join(home, 'script.sh'), `${script}\n`);
  const env = { PATH: `${join(home, 'bin')}:${process.env.PATH}`, HOME: home, TMPDIR: home, LANG: 'C.UTF-8' };
  const text = await new Promise<string>((resolve) => {
    execFile('sh', [join(home, 'script.sh')], { cwd: project, env }, (_, stdout) => resolve(stdout));
  });
  const outcomes: Outcome[] = [];
  let rest = text.replaceAll(home, '/home/you');
  for (let i = 0; ; i += 1) {
    const [output, after] = splitAt(rest, `\n${mark(i)} `);
    if (after === undefined) break;
    const [exit = '', next] = splitAt(after, '\n');
    outcomes.push({ exit: Number(exit), output: output.replace(/\n$/, '') });
    rest = next ?? '';
  }
  return outcomes;
}

function splitAt(text: string, mark: string): [before: string, after: string | undefined] {
  const at = text.indexOf(mark);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + mark.length)];
}

interface Block {
  readonly language: string;
  readonly body: string;
}

/** Fenced blocks of commands, those inside a list moved to the left. */
function blocksOf(page: string): Block[] {
  return [...page.matchAll(/^( *)```(sh|console)\n([\s\S]*?)^ *```$/gm)].map(
    ([, indent = '', language = '', body = '']) => ({
      language,
      body: body.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    }),
  );
}

function stepsOf(page: string): Step[] {
  return blocksOf(page).flatMap(({ language, body }) => {
    if (Object.hasOwn(NOT_RUN, body.trim())) return [];
    if (language === 'sh') return [{ command: `( set -e\n${body})`, exit: 0, output: undefined }];
    return body.split(/^\$ /m).slice(1).reduce(addStep, []);
  });
}

function addStep(steps: readonly Step[], text: string): Step[] {
  const [command, rest = ''] = splitAt(text, '\n');
  const output = rest.trimEnd();
  const last = steps.at(-1);
  return command === 'echo $?' && last !== undefined
    ? [...steps.slice(0, -1), { ...last, exit: Number(output) }]
    : [...steps, { command, exit: 0, output }];
}

function matches(shown: string, real: string): boolean {
  const pattern = formOf(shown)
    .split('\n')
    .map((line) => (line === '…' ? '(?:.*\\n)*.*' : line.split('…').map(escapeForm).join('.*')))
    .join('\n');
  return new RegExp(`^${pattern}$`).test(formOf(real).trimEnd());
}

function escapeForm(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}

/** What differs from one run to the next, reduced to its kind. */
function formOf(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{3})?Z/g, '<time>')
    .replaceAll(/\b[0-9a-f]{12,64}\b/g, '<hash>')
    .replaceAll(/[A-Za-z0-9+/]{43,}={0,2}/g, '<base64>')
    .replaceAll(/\b\d+\.\d+\.\d+\b/g, '<version>')
    .replaceAll(/\b\dm\b/g, '<age>');
}

/** A file as an earlier build would leave it: it says so itself, and has tables. */
function makeOlderFile(folder: string): void {
  mkdirSync(folder, { mode: 0o700 });
  const db = openDatabase(join(folder, 'colibri.db'));
  db.exec('CREATE TABLE actions (position INTEGER PRIMARY KEY) STRICT');
  db.pragma(`application_id = ${APPLICATION_ID}`);
  db.pragma(`user_version = ${SCHEMA_VERSION - 1}`);
  db.close();
  chmodSync(join(folder, 'colibri.db'), 0o600);
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}
