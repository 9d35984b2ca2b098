import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CatalogueDeps, catalogue } from '../catalogue.ts';
import { COMMANDS } from '../cli/commands.ts';
import { systemClock } from '../clock.ts';
import { VARIABLES } from '../config.ts';
import { ERRORS } from '../errors.ts';
import { UNSIGNED } from '../log/append.ts';
import { createAuditLog } from '../log/audit-log.ts';
import { composeCall } from '../middleware/compose.ts';
import { loadDriver } from '../storage/sqlite/driver.ts';
import { openSqlite } from '../storage/sqlite/engine.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Markdown that people read: the root's and everything below docs/. */
const pages = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
].sort();

const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');
const missingIn = (text: string, names: readonly string[]) =>
  names.filter((name) => !text.includes(`\`${name}\``));

const readme = read('README.md');
const toolNames = catalogue(stubDeps()).map((tool) => tool.name);

describe('the reference', () => {
  test('is what the code says', () => {
    const { status, stderr } = spawnSync(process.execPath, ['scripts/reference.mjs', '--check'], {
      cwd: ROOT,
      encoding: 'utf8',
    });

    expect(stderr).toBe('');
    expect(status).toBe(0);
  });

  test('has a section for every tool, and the README names each', () => {
    const headings = headingsOf(read('docs', 'reference', 'tools.md'));

    expect(toolNames.filter((name) => !headings.includes(name))).toEqual([]);
    expect(missingIn(readme, toolNames)).toEqual([]);
  });

  test('names every error code', () => {
    expect(missingIn(read('docs', 'reference', 'errors.md'), Object.keys(ERRORS))).toEqual([]);
  });

  test('names every variable', () => {
    expect(missingIn(read('docs', 'reference', 'environment.md'), Object.keys(VARIABLES))).toEqual([]);
  });

  test('names no tool, code or variable that does not exist', () => {
    const known = [...toolNames, ...Object.keys(ERRORS), ...Object.keys(VARIABLES)];
    const strange = pages.flatMap((page) =>
      [
        ...read(page).matchAll(
          /`((?:task|thought|audit|merkle|skill|server)_[a-z_]+|ERR_[A-Z_]+|COLIBRI_[A-Z_]+)`/g,
        ),
      ]
        .map(([, name = '']) => name)
        .filter((name) => !known.includes(name) && !NAMES_OF_OTHER_THINGS.includes(name))
        .map((name) => `${page}: ${name}`),
    );

    expect(strange).toEqual([]);
  });
});

/** They look like a tool and are a table, a column or a field. */
const NAMES_OF_OTHER_THINGS = [
  ...['task_id', 'task_labels', 'task_dependencies', 'task_words', 'task_words_data', 'task_words_idx'],
  ...['task_words_content', 'task_words_config', 'task_terms', 'task_calls'],
  ...['thought_id', 'thought_count', 'thought_trail', 'audit_rows'],
];

describe('the page on the database', () => {
  const page = read('docs', 'reference', 'database.md');
  const sections = new Map(
    page.split(/^#{2,3} /m).map((section) => [section.slice(0, section.indexOf('\n')), section]),
  );

  test('has every table with exactly its columns', async () => {
    const tables = await readTables();
    const documented = Object.fromEntries(
      [...tables.keys()].map((table) => [table, columnsIn(sections.get(table) ?? '')]),
    );

    expect(documented).toEqual(Object.fromEntries(tables));
  });

  test('names the tables SQLite keeps for itself', async () => {
    expect(missingIn(page, await readTableNames('shadow'))).toEqual([]);
  });
});

describe('every page', () => {
  const targets = pages.flatMap((page) => linksIn(page).map((link) => ({ page, ...link })));

  test('links to files that are there', () => {
    const dead = targets.filter(({ file }) => !existsSync(join(ROOT, file)));

    expect(dead.map(({ page, text }) => `${page}: ${text}`)).toEqual([]);
  });

  test('links to headings that are there', () => {
    const dead = targets.filter(
      ({ file, anchor }) => anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).includes(anchor),
    );

    expect(dead.map(({ page, text }) => `${page}: ${text}`)).toEqual([]);
  });

  test('shows JSON that is JSON', () => {
    const broken = pages.flatMap((page) =>
      [...read(page).matchAll(/^```json\n(.*?)^```/gms)]
        .filter(([, json = '']) => !isJson(json))
        .map(([, json = '']) => `${page}: ${json.slice(0, 60)}`),
    );

    expect(broken).toEqual([]);
  });

  test('names no folder of a machine', () => {
    const found = pages.flatMap((page) =>
      [...read(page).matchAll(/(?<![\w.~/])\/(?!home\/you\b)(?:home|root|work|tmp|Users|opt|var)\/\S*/g)].map(
        ([path]) => `${page}: ${path}`,
      ),
    );

    expect(found).toEqual([]);
  });

  test('is reached from the README, by way of docs/README.md', () => {
    const reached = new Set(['README.md']);
    for (const page of reached)
      for (const { file } of linksIn(page)) if (pages.includes(file)) reached.add(file);

    expect(pages.filter((page) => !reached.has(page))).toEqual([]);
  });
});

describe('the README', () => {
  test('shows commands that exist', () => {
    const known = COMMANDS.map((command) => command.name);
    const shown = [...readme.matchAll(/`(?:colibri|node dist\/cli\.js) ([a-z-]+)/g)].map(
      ([, name = '']) => name,
    );

    expect(shown.filter((name) => !known.includes(name))).toEqual([]);
  });

  test('shows scripts that exist', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const shown = ['README.md', 'CONTRIBUTING.md'].flatMap((page) =>
      [...read(page).matchAll(/npm (?:run ([a-z:]+)|(test|start)\b)/g)].map(
        ([, run, own]) => run ?? own ?? '',
      ),
    );

    expect(shown.length).toBeGreaterThan(5);
    expect(shown.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
  });
});

describe('lists that are kept by hand', () => {
  test('the page on dependencies has a line for each package, and none too many', () => {
    const manifest = JSON.parse(read('package.json')) as Record<string, Record<string, string> | undefined>;
    const used = ['dependencies', 'optionalDependencies', 'devDependencies'].flatMap((kind) =>
      Object.keys(manifest[kind] ?? {}),
    );
    const listed = [...read('docs', 'dependencies.md').matchAll(/^\| `([^`]+)` \|/gm)].map(
      ([, name = '']) => name,
    );

    expect(listed.sort()).toEqual(used.sort());
  });

  test('the list of decisions has a line for each page, with its title', () => {
    const files = readdirSync(join(ROOT, 'docs', 'adr')).filter((name) => /^\d{4}-/.test(name));
    const lines = files.map((file) => {
      const [, number, title] = /^# (\d+)\. (.+)$/m.exec(read('docs', 'adr', file)) ?? [];
      return `| ${number} | [${title}](${file}) |`;
    });
    const index = read('docs', 'adr', 'README.md');

    expect(lines.filter((line) => !index.includes(line))).toEqual([]);
    expect(new Set(files.map((file) => file.slice(0, 4))).size).toBe(files.length);
  });

  test('the table of folders has a line for each folder and file of src', () => {
    const plan = read('docs', 'ARCHITECTURE.md');
    const entries = readdirSync(join(ROOT, 'src'), { withFileTypes: true }).map((entry) =>
      entry.isDirectory() ? `${entry.name}/` : entry.name,
    );

    expect(missingIn(plan, entries)).toEqual([]);
  });
});

const python = spawnSync('python3', ['-c', 'import sqlite3; print(sqlite3.sqlite_version)'], {
  encoding: 'utf8',
});

describe.skipIf(python.status !== 0)('the verifier in Python', () => {
  let folder = '';
  let path = '';

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'colibri-docs-'));
    path = join(folder, 'colibri.db');
    await writeStory(path);
  });

  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  const verify = (file: string) =>
    spawnSync('python3', [join(ROOT, 'docs', 'verify-database.py'), file], { encoding: 'utf8' });

  test('finds nothing wrong in a database as it was written', () => {
    const { stdout, status } = verify(path);

    expect(stdout).toMatch(
      /^note: nothing in this log was ever signed\n\d+ audit rows, root [0-9a-f]{64}, signed through 0: nothing is wrong\n$/,
    );
    expect(status).toBe(0);
  });

  test.each<[what: string, change: string, finding: string | RegExp]>([
    [
      'a column of a task',
      "UPDATE tasks SET assignee = 'eve' WHERE id = 1",
      'T-0001: it is not as #12 left it',
    ],
    ['what a thought says', "UPDATE texts SET text = 'no' WHERE text = 'another'", /^#\d+: .*text/],
    ['a thought', "UPDATE thoughts SET branch = 'x' WHERE id = 1", 'Θ-0001: it is not as #8 left it'],
    [
      'an audit row',
      "UPDATE actions SET text = replace(text, 'ana', 'eve') WHERE position = 3",
      '#3: content_hash is not the hash of the row',
    ],
    [
      'the hash of an audit row',
      "UPDATE actions SET content = x'00' WHERE position = 3",
      '#3: content_hash is not the hash of the row',
    ],
    [
      'a link between audit rows',
      'UPDATE actions SET chain = content WHERE position = 3',
      '#3: chain_hash does not follow from the row before',
    ],
    ['an audit row that is gone', 'DELETE FROM actions WHERE position = 3', '#4: row 3 was due here'],
    [
      'a payload',
      "UPDATE action_payloads SET body = '{}' WHERE position = 1",
      '#1: its payload is not the one that the row holds the digest of',
    ],
    [
      'a sealed root',
      "UPDATE sessions SET merkle_root = iif(merkle_root LIKE '0%', '1', '0') || substr(merkle_root, 2)",
      'A-0001: it is not as #14 left it',
    ],
    [
      'a record that is gone',
      'DELETE FROM session_records WHERE id = 1',
      'R-0001: a call wrote it and it is gone',
    ],
    [
      'a row nobody wrote',
      "INSERT INTO session_records VALUES (9, 1, 1, 'thought', 1, 1)",
      'R-0009: no call wrote it',
    ],
  ])('finds %s', async (_, change, finding) => {
    const tampered = await tamper(path, change);

    const { stdout, status } = verify(tampered);

    expect(stdout.split('\n')).toContainEqual(expect.stringMatching(finding));
    expect(stdout).not.toContain('schema');
    expect(status).toBe(1);
  });
});

/** Plays one governed task through the real stages into a file. */
async function writeStory(path: string): Promise<void> {
  const storage = await openSqlite({ path });
  const sink = createAuditLog({ storage, clock: systemClock, process: 'docs', keeper: UNSIGNED });
  const { call } = composeCall({
    tools: new Map(catalogue(stubDeps()).map((tool) => [tool.name, tool])),
    clock: systemClock,
    source: 'mcp',
    admission: { mode: 'FULL', degraded: () => undefined },
    log: () => undefined,
    ready: async () => ({ storage, sink }),
  });
  const task = { task_id: 'T-0001' };
  const calls: [tool: string, args: object][] = [
    [
      'task_create',
      { title: 'Ünïcode " \\ \u001f 🙂 \u2028', project: 'p', estimate_hours: 1e-7, labels: ['a'] },
    ],
    ['task_update', { ...task, status: 'todo', progress: 33.3, estimate_hours: 0.000_01 }],
    ['audit_session_start', { ...task, auditor_id: 'ana' }],
    [
      'thought_record',
      { ...task, type: 'decision', content: 'one\n\t"two" \u2028', metadata: { b: [1.5], a: null } },
    ],
    ['thought_record', { ...task, type: 'risk', content: 'another' }],
    ['task_update', { ...task, estimate_hours: 999.5 }],
    ['merkle_finalize', { session_id: 'A-0001' }],
    ['task_list', { search: 'unicode' }],
    ['task_create', { titel: 'refused' }],
  ];
  const answers = [];
  for (const [tool, args] of calls) answers.push(await call(tool, args, 'ana'));
  await storage.close();
  expect(answers.map(({ ok }) => ok)).toEqual([...Array<boolean>(8).fill(true), false]);
}

/** A copy of the database, changed behind Colibri's back with the triggers out of the way. */
async function tamper(path: string, change: string): Promise<string> {
  const copy = `${path}.tampered`;
  copyFileSync(path, copy);
  const db = (await loadDriver()).open(copy, { readOnly: false });
  const triggers = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all() as {
    name: string;
    sql: string;
  }[];
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
  db.exec(change);
  for (const { sql } of triggers) db.exec(sql);
  db.close();
  return copy;
}

/** Answers to everything with itself: tools are only listed here, or need none of it. */
function stubDeps(): CatalogueDeps {
  const known: Record<string, unknown> = {
    tasks: { project: undefined, projects: undefined, workflow: 'kanban' },
    trail: {
      gitEvidence: async () => undefined,
    },
    proof: { skillsInForce: async () => [] },
  };
  return new Proxy(known, { get: (deps, name) => deps[String(name)] ?? {} }) as unknown as CatalogueDeps;
}

async function readTables(): Promise<Map<string, string[]>> {
  const storage = await openSqlite({ path: ':memory:' });
  const tables = await storage.read(async (tx) => {
    const found = new Map<string, string[]>();
    for (const table of await readNames(tx, ['table', 'virtual', 'view'])) {
      // 1 marks the hidden columns of a full-text table; generated ones have 2.
      const columns = await tx.all<{ name: string }>(
        'SELECT name FROM pragma_table_xinfo(?) WHERE hidden <> 1',
        table,
      );
      found.set(
        table,
        columns.map(({ name }) => name),
      );
    }
    return found;
  });
  await storage.close();
  return tables;
}

async function readTableNames(type: 'shadow'): Promise<string[]> {
  const storage = await openSqlite({ path: ':memory:' });
  const names = await storage.read((tx) => readNames(tx, [type]));
  await storage.close();
  return names;
}

type Reader = Parameters<Parameters<Awaited<ReturnType<typeof openSqlite>>['read']>[0]>[0];

async function readNames(tx: Reader, types: readonly string[]): Promise<string[]> {
  const rows = await tx.all<{ name: string; type: string }>(
    "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  );
  return rows.filter(({ type }) => types.includes(type)).map(({ name }) => name);
}

function columnsIn(section: string): string[] {
  return [...section.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name = '']) => name);
}

interface Link {
  readonly text: string;
  /** From the root, as in `pages`. */
  readonly file: string;
  readonly anchor: string | undefined;
}

/** Links within the repository. What stands in code is no link. */
function linksIn(page: string): Link[] {
  const prose = read(page)
    .replace(/^```.*?^```/gms, '')
    .replace(/(?<!\[)`[^`\n]*`(?!\])/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((text) => {
      const [path = '', anchor] = text.split('#');
      const file = path === '' ? page : relative(ROOT, resolve(ROOT, dirname(page), path));
      return { text, file: file.split('/').join(sep), anchor };
    });
}

function headingsOf(text: string): string[] {
  return [...text.replace(/^```.*?^```/gms, '').matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) =>
    heading.trim(),
  );
}

/** As GitHub makes them: lower case, no punctuation but hyphens and underscores, blanks to hyphens. */
function anchorsOf(page: string): string[] {
  return headingsOf(read(page)).map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
