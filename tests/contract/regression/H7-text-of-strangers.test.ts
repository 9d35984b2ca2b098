/// <reference lib="dom" />
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPage, startBrowser, verdictOf } from '../../browser/chromium.ts';
import { runColibri } from '../../driver/command-line.ts';
import {
  type Edit,
  forgeDatabase,
  HOSTILE,
  HOSTILE_GIVEN,
  hostileJson,
} from '../../driver/hostile-database.ts';
import { Playground } from '../../driver/playground.ts';
import { NODE } from '../../driver/server-process.ts';
import { openUnguarded } from '../../tamper/copies.ts';

const CLI = fileURLToPath(new URL('../../../dist/cli.js', import.meta.url));

const ESCAPE = '\u001b';

/** What must not reach a terminal: controls other than line feed and tab, and what reorders or ends lines. */
const RAW = /[^\P{Cc}\n\t]|[\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;

/** Text digests; a hostile one would only hide the text. */
const DIGESTS = [
  'title',
  'description',
  'blocked_reason',
  'content',
  'tests_run',
  'blockers',
  'metadata',
  'reason',
];

/** Values are hostile and everything still finds its counterpart, so that every command gets to show them. */
const hostileValues: Edit = (table, row) => {
  if (table === 'texts') return { text: HOSTILE };
  if (table === 'action_payloads')
    return { body: hostileJson(String(row.body), /^(?:position|title|content)$/) };
  if (table === 'actions') {
    const kept =
      Number(row.position) % 4 < 2 ? /^(?:position|sequence_no|stage|tool|outcome|rules|table|id)$/ : KEYS;
    return { text: hostileJson(String(row.text), kept) };
  }
  if (table === 'session_records' || table === 'thoughts' || table === 'tasks' || table === 'sessions') {
    const texts = Object.entries(row).filter(
      ([name, cell]) => typeof cell === 'string' && ![...DIGESTS, 'kind', 'workflow'].includes(name),
    );
    // One task stays where the board shows it.
    const shown = texts.filter(([name]) => !(name === 'status' && table === 'tasks' && Number(row.id) === 2));
    return Object.fromEntries(shown.map(([name, cell]) => [name, inList(String(cell))]));
  }
  return {};
};

const KEYS = /^(?:position|sequence_no|stage|rules|schema_valid|duration_ms|previous)$/;

function inList(cell: string): string {
  if (!cell.startsWith('[')) return HOSTILE;
  return JSON.stringify([HOSTILE, { name: HOSTILE, digest: HOSTILE, text: HOSTILE, markdown: HOSTILE }]);
}

/** No cell of any table is spared but the keys of rows. */
const hostileEverything: Edit = (_table, row, columns) => {
  const cells = columns.filter((name) => !['id', 'position', 'block', 'size'].includes(name));
  const cellOf = (name: string) => (row[name] instanceof Uint8Array ? null : `${HOSTILE}${row[name]}`);
  return Object.fromEntries(cells.map((name) => [name, cellOf(name)]));
};

const ALL = [
  'board --all',
  'log --all',
  'show T-1',
  'show TH-1',
  'show A-1',
  'list --all',
  'search First',
  'sessions',
  'stats --all',
  'anchor --list',
  'doctor',
  'verify',
  'checkpoint',
  'prove T-1 -o -',
  'export -o OUT',
  'report -o OUT.html',
  'obsidian --vault VAULT',
  'call task_get {"task_id":"T-0001"}',
  'call thought_record_list {"task_id":"T-0001"}',
  'call audit_verify_chain {"session_id":"A-0001"}',
];

/** By what is hostile: texts that an honest server was given, or what somebody put into its file. */
const COMMANDS = {
  given: [
    'board',
    'list',
    'sessions',
    'stats',
    'log',
    'show TH-1',
    'prove T-1 -o -',
    'verify',
    'call task_get {"task_id":"T-0001"}',
  ],
  values: ALL,
  everything: ['show T-1', 'show TH-1', 'show A-1', 'verify', 'doctor', 'obsidian --vault VAULT'],
  schema: ['doctor', 'verify', 'call server_health', 'board'],
  malformed: ['doctor', 'verify', 'call server_health'],
};
type Variant = keyof typeof COMMANDS;
const RUNS = Object.entries(COMMANDS).flatMap(([variant, lines]) =>
  lines.map((line) => [variant as Variant, line] as const),
);

let colibri: Playground;
const dbOf = (variant: Variant) =>
  variant === 'given' ? colibri.dbPath : colibri.path(variant, 'colibri.db');
const vaultOf = (variant: Variant) => colibri.path(`vault-${variant}`);

beforeAll(async () => {
  colibri = new Playground();
  const skill = colibri.path('.agents', 'skills', 'careful');
  mkdirSync(skill, { recursive: true });
  writeFileSync(
    join(skill, 'SKILL.md'),
    '---\nname: careful\ndescription: works with care\n---\nWith care.\n',
  );
  const server = await colibri.start({ clientName: 'ada' });
  const call = async (tool: string, args: object) => void (await server.call(tool, args));
  for (const title of ['First', 'Second'])
    await call('task_create', {
      title: `${title} ${HOSTILE_GIVEN}`.slice(0, 250),
      project: 'con',
      labels: ['x'],
    });
  await call('task_update', { task_id: 'T-0002', depends_on: ['T-0001'], description: HOSTILE_GIVEN });
  await call('audit_session_start', { task_id: 'T-0001', auditor_id: 'eve', reason: HOSTILE_GIVEN });
  await call('thought_record', { task_id: 'T-0001', type: 'decision', content: HOSTILE_GIVEN });
  await call('merkle_finalize', { session_id: 'A-0001' });
  await call('task_update', { task_id: 'T-0001', status: 'done' });
  await server.closeInput();
  forgeDatabase(colibri.dbPath, dbOf('values'), hostileValues);
  forgeDatabase(colibri.dbPath, dbOf('everything'), hostileEverything);
  forgeDatabase(colibri.dbPath, dbOf('schema'), () => ({}));
  plantNames(dbOf('schema'));
  forgeDatabase(colibri.dbPath, dbOf('malformed'), () => ({}));
  plantMalformed(dbOf('malformed'));
  for (const variant of Object.keys(COMMANDS)) mkdirSync(vaultOf(variant as Variant));
}, 60_000);

afterAll(async () => {
  expect(await colibri.dispose()).toEqual([]);
});

function plantNames(path: string): void {
  const db = openUnguarded(path);
  const name = `"${HOSTILE_GIVEN}`;
  db.exec(`CREATE TABLE ${name} table" (${name}" TEXT)`);
  db.exec(`CREATE INDEX ${name} index" ON tasks (status)`);
  db.exec(`CREATE VIEW ${name} view" AS SELECT 1`);
  db.exec(`CREATE TRIGGER ${name} trigger" AFTER INSERT ON tasks BEGIN SELECT 1; END`);
  db.exec(`ALTER TABLE processes ADD COLUMN ${name}" TEXT`);
  db.close();
}

/** SQLite quotes the name when it refuses to read the schema. */
function plantMalformed(path: string): void {
  const db = openUnguarded(path);
  db.exec('PRAGMA writable_schema = ON');
  db.prepare("INSERT INTO sqlite_schema VALUES ('table', ?, ?, 0, ?)").run(
    HOSTILE,
    HOSTILE,
    `CREATE TABEL ${HOSTILE}`,
  );
  db.close();
}

function placed(args: readonly string[], variant: Variant, form: string): string[] {
  return args.map((arg) =>
    arg.replace('VAULT', vaultOf(variant)).replace(/^OUT/, colibri.path(`out-${variant}${form}`)),
  );
}

const run = (variant: Variant, args: readonly string[]) =>
  runColibri(colibri, args, { env: { COLIBRI_DB_PATH: dbOf(variant) } });

/** What a command printed, on both channels. */
function expectHarmless(...results: readonly { stdout: string; stderr: string }[]): void {
  for (const { stdout, stderr } of results) {
    expect(RAW.exec(stdout + stderr)?.[0]).toBeUndefined();
    // A line of ours that only a stranger wrote.
    expect(stdout + stderr).not.toMatch(/^FORGED$/m);
  }
}

test.each(RUNS)(
  'H7: hostile %s: colibri %s prints nothing that acts, as text and as JSON',
  async (variant, line) => {
    const args = line.split(' ');

    const [text, json] = await Promise.all([
      run(variant, placed(args, variant, '')),
      run(variant, [...placed(args, variant, '-json'), '--json']),
    ]);

    expectHarmless(text, json);
    const lines = args[0] === 'log' ? json.stdout.split('\n') : [json.stdout];
    for (const part of lines) if (part !== '') expect(() => JSON.parse(part) as unknown).not.toThrow();
  },
);

test('H7: JSON gives back exactly the text that was recorded', async () => {
  const { stdout } = await run('given', ['show', 'TH-1', '--json']);

  expect((JSON.parse(stdout) as { record: { content: string } }).record.content).toBe(HOSTILE_GIVEN);
});

test('H7: the server says why it cannot open a database, and the names in it do nothing', async () => {
  const server = await colibri.start({ env: { COLIBRI_DB_PATH: dbOf('malformed') } });
  await server.stderrHolds('FORGED');
  await server.closeInput();

  expectHarmless({ stdout: '', stderr: server.stderr });
});

describe('H7: a bundle and a certificate', () => {
  const inside = (value: unknown): unknown => {
    if (typeof value === 'string') return /^[\dTAΘ#-]+$/u.test(value) ? value : HOSTILE;
    if (Array.isArray(value)) return value.map(inside);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, inside(member)]));
  };
  const hostileLine = (line: string) =>
    line.startsWith('{') ? JSON.stringify(inside(JSON.parse(line))) : line;
  const hostileFile = (text: string) => text.split('\n').map(hostileLine).join('\n');
  const verified = (path: string) =>
    Promise.all([run('given', ['verify', path]), run('given', ['verify', path, '--json'])]);

  test('of a log with hostile texts verify, and show nothing that acts', async () => {
    const [bundle, certificate] = [colibri.path('honest'), colibri.path('honest.json')];
    await run('given', ['export', '-o', bundle]);
    await run('given', ['prove', 'T-1', '-o', certificate]);

    for (const path of [bundle, certificate]) {
      const results = await verified(path);
      expect(results.map(({ code }) => code)).toEqual([0, 0]);
      expectHarmless(...results);
    }
    expect(readFileSync(certificate, 'utf8')).not.toMatch(RAW);
  });

  test('whose every text is hostile are refused, and show nothing that acts', async () => {
    const [bundle, forged] = [colibri.path('bundle'), colibri.path('forged')];
    await run('given', ['export', '-o', bundle]);
    const lines = ['log.jsonl', 'payloads.jsonl', 'texts.jsonl', 'state.jsonl'];
    const groups = [['bundle.json'], lines, ['checkpoint', 'keys'], [`${HOSTILE_GIVEN.slice(0, 60)}.txt`]];
    for (const [i, names] of groups.entries()) {
      cpSync(bundle, `${forged}-${i}`, { recursive: true });
      for (const name of names) {
        const path = join(`${forged}-${i}`, name);
        writeFileSync(path, /json/.test(name) ? hostileFile(readFileSync(path, 'utf8')) : `${HOSTILE}\n`);
      }
    }
    const certificate = colibri.path('forged.json');
    await run('given', ['prove', 'T-1', '-o', colibri.path('true.json')]);
    const whole = JSON.parse(readFileSync(colibri.path('true.json'), 'utf8')) as Record<string, object>;
    const files = { ...whole.files, [HOSTILE]: [HOSTILE], 'anchors/x': HOSTILE };
    writeFileSync(certificate, JSON.stringify({ ...whole, subject: HOSTILE, files }, null, 2));

    for (const path of [...groups.map((_, i) => `${forged}-${i}`), certificate]) {
      const results = await verified(path);
      expect(results.map(({ code }) => code)).toEqual([1, 1]);
      expectHarmless(...results);
    }
  });
});

test('H7: the names of folders, skills and programs in a workspace do nothing', async () => {
  const folder = colibri.path(`w\u001b[2J\u009b31m\u202e\nFORGED`);
  mkdirSync(join(folder, '.agents', 'skills', 'x\u001b[2J\u202e'), { recursive: true });
  writeFileSync(
    join(folder, '.agents', 'skills', 'x\u001b[2J\u202e', 'SKILL.md'),
    `---\nname: ${JSON.stringify(HOSTILE)}\n---\n`,
  );
  mkdirSync(join(folder, '.git'));
  const mcpServers = { colibri: { command: 'node', args: [`/${HOSTILE_GIVEN}`] } };
  writeFileSync(join(folder, '.mcp.json'), JSON.stringify({ mcpServers }));
  const env = { COLIBRI_DB_PATH: join(folder, 'colibri.db') };
  const inFolder = (...args: string[]) => runColibri(colibri, args, { cwd: folder, env });

  expectHarmless(
    await inFolder('call', 'skill_list'),
    await inFolder('doctor'),
    await inFolder('doctor', '--json'),
    await inFolder('verify', HOSTILE_GIVEN),
    await inFolder('verify', '--against', HOSTILE_GIVEN),
    await inFolder('board', '--project', HOSTILE_GIVEN),
    await inFolder('export', '-o', 'OUT'),
    await inFolder(HOSTILE_GIVEN),
    await inFolder('init'),
  );
});

const hasScript = spawnSync('script', ['--version']).status === 0;

test.skipIf(!hasScript)(
  'H7: on a terminal no text brings a colour of its own (skipped without script(1))',
  () => {
    for (const command of ['log --all', 'show T-1', 'board --all', 'verify']) {
      const { stdout } = spawnSync(
        'script',
        ['-qec', `stty cols 100; ${NODE} ${CLI} ${command}`, '/dev/null'],
        {
          cwd: colibri.folder,
          env: { ...colibri.environment, COLIBRI_DB_PATH: dbOf('values'), TERM: 'xterm', PAGER: '' },
          encoding: 'utf8',
        },
      );
      // Ours: the colours and their end, the erasure of the bar, and the terminal's returns.
      const rest = stdout
        .split(ESCAPE)
        .map((part) => part.replace(/^\[(?:(?:[012]|3[1-6])m|K)/, ''))
        .join('')
        .replaceAll('\r', '');

      expect(stdout).toContain(`${ESCAPE}[0m`);
      expect(stdout).not.toContain(`${ESCAPE}[32mFORGED`);
      expect(RAW.exec(rest)?.[0]).toBeUndefined();
    }
  },
);

describe('H7: a vault', () => {
  test.each(['given', 'values', 'everything'] as const)(
    'has nothing alive in it, from a database with hostile text (%s)',
    async (variant) => {
      await run(variant, ['obsidian', '--vault', vaultOf(variant)]);
      const folder = join(vaultOf(variant), 'Colibri');
      const notes = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
        path.endsWith('.md'),
      );

      expect(notes.length).toBeGreaterThanOrEqual(3);
      for (const path of notes) {
        const text = readFileSync(join(folder, path), 'utf8');
        const [, front = '', body = ''] = text.split(/^---\n/m);
        expect(RAW.exec(text)?.[0]).toBeUndefined();
        expect(text.match(/^---$/gm)).toHaveLength(2);
        expect(text.replace(/\[\[T-\d{4,}\]\]/g, '')).not.toContain('[[');
        expect(text).not.toMatch(/```|~~~|`\$?=|<%|::|(?<!https?):\/\//);
        expect(Object.keys(load(front) as object)).toEqual(
          expect.arrayContaining(['colibri', 'id', 'intact']),
        );
        expect(JSON.stringify(load(front)).replaceAll('\\\\', '\\')).not.toMatch(/(?<!\\)[`<$]|%%|::/);
        // Whatever is not escaped is ours: headings, callouts, emphasis, hashes in code and references of blocks.
        const ours = body
          .replace(/\\[^\w\s]/g, '')
          .replace(/^#{1,3} /gm, '')
          .replace(
            /\[\[T-\d{4,}\]\]|`(?:[0-9a-f]+|gone)`|\*\*|> \[!(?:warning|success|danger)\]| \^th-\d+$/gm,
            '',
          );
        expect(ours).not.toMatch(/[`<*#|%$^~=[\]{}]/);
        expect(ours.replaceAll(/^> ?/gm, '')).not.toContain('>');
      }
    },
  );
});

test('H7: what needs no escape stays as it was written', async () => {
  const words = ['می‌خواهم', 'שלום!\u200f', '👨‍👩‍👧‍👦', '中文', 'naïve'];
  const title = words.join(' ');
  const server = await colibri.start();
  const made = await server.call('task_create', { title, project: 'con', assignee: 'snake_case' });
  await server.closeInput();
  expect(JSON.stringify(made)).toMatch(/T-\d+/);
  const id = /T-\d+/.exec(JSON.stringify(made))?.[0] ?? '';

  const shown = await run('given', ['show', id]);
  const json = await run('given', ['show', id, '--json']);
  await run('given', ['obsidian', '--vault', vaultOf('given')]);
  const note = readFileSync(join(vaultOf('given'), 'Colibri', 'Tasks', `${id}.md`), 'utf8');

  for (const text of [shown.stdout, json.stdout, note]) expect(text).toContain(title);
  expect(note).toContain('assignee: "snake_case"');
});

const browser = await startBrowser();
afterAll(async () => {
  if ('context' in browser) await browser.close();
});

test.skipIf(!('context' in browser))(
  'H7: a report shows hostile text and runs none of it (skipped without Chromium)',
  async () => {
    if (!('context' in browser)) return;
    const path = colibri.path('hostile.html');
    for (const variant of ['given', 'values'] as const) {
      await run(variant, ['report', '-o', path]);

      const { page, complaints } = await openPage(browser.context, path);
      await verdictOf(page);
      const found = await page.evaluate(() => ({
        elements: document.querySelectorAll('img, iframe, object, embed, [onerror], body script[src]').length,
        text: document.body.textContent,
      }));
      await page.close();

      expect(complaints).toEqual([]);
      expect(found.elements).toBe(0);
      expect(found.text).toContain('FORGED');
      expect(RAW.exec(found.text.replace(/\{"name".*/, ''))?.[0]).toBeUndefined();
    }
  },
  120_000,
);
