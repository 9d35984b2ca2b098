import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { openDatabase } from '../driver/database.ts';
import type { Random } from '../driver/random.ts';

/** A project with a log, its key folder, and things beside them that nobody may touch. */
export class Surroundings {
  readonly project: string;
  readonly others: string;
  readonly #root: string;
  readonly #kept: string;

  constructor(root: string) {
    this.#root = join(root, 'world');
    this.#kept = join(root, 'kept');
    this.project = join(this.#root, 'project');
    this.others = join(this.#root, 'others');
    for (const folder of ['project', 'others', 'home', 'config', 'share', 'out', 'vault', 'tmp'])
      mkdirSync(join(this.#root, folder), { recursive: true, mode: 0o700 });
    for (const name of ['letter', 'colibri.db', 'config'])
      writeFileSync(join(this.others, name), `${name} of somebody else\n`.repeat(20));
  }

  get env(): Readonly<Record<string, string>> {
    const at = (name: string) => join(this.#root, name);
    return {
      PATH: process.env.PATH ?? '',
      ...{ HOME: at('home'), XDG_CONFIG_HOME: at('config'), XDG_DATA_HOME: at('share'), TMPDIR: at('tmp') },
      COLIBRI_DB_PATH: join(this.project, '.colibri', 'colibri.db'),
    };
  }

  path(...parts: readonly string[]): string {
    return join(this.#root, ...parts);
  }

  /** What comes after it starts from here again. */
  keep(): void {
    cpSync(this.#root, this.#kept, { recursive: true, verbatimSymlinks: true });
  }

  restore(): void {
    rmSync(this.#root, { recursive: true, force: true });
    cpSync(this.#kept, this.#root, { recursive: true, verbatimSymlinks: true });
  }

  /** The places that somebody else may change, each with its files and folders: git's are by far the most. */
  places(): string[][] {
    return ['project/.colibri', 'project/.git', 'config', 'project/.mcp.json']
      .map((place) => entriesIn(this.path(place)))
      .filter((entries) => entries.length > 0);
  }

  /** What lies outside the places that Colibri may write to, with contents and modes. */
  untouchable(): string {
    const seen = [this.others, this.path('home')].flatMap((folder) =>
      [folder, ...entriesIn(folder)].map((path) => `${path} ${digestOf(path)}`),
    );
    const inProject = readdirSync(this.project).filter((name) => !OURS.includes(name));
    return [...seen, ...inProject, ...readdirSync(this.#root)].sort().join('\n');
  }
}

/** What Colibri may write in a project. */
const OURS = ['.git', '.colibri', '.mcp.json'];

/** Links are entries, never followed. */
function entriesIn(folder: string): string[] {
  const stat = lstatSync(folder, { throwIfNoEntry: false });
  if (stat?.isDirectory() !== true) return stat === undefined ? [] : [folder];
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return lstatSync(path).isDirectory() ? [path, ...entriesIn(path)] : [path];
  });
}

function digestOf(path: string): string {
  const stat = lstatSync(path);
  const held = stat.isSymbolicLink() ? readlinkSync(path) : stat.isFile() ? readFileSync(path) : '';
  return `${stat.mode.toString(8)} ${stat.isFile() ? stat.nlink : ''} ${createHash('sha256').update(held).digest('hex')}`;
}

type Mutation = (path: string, random: Random, world: Surroundings) => void;

const BYTES_MAX = 65_536;
/** More than a Buffer or a string can hold; it takes no room on the disk. */
const HUGE_BYTES = 4 * 1_073_741_824;

/** What somebody else may do to a file or folder. */
const MUTATIONS: Readonly<Record<string, Mutation>> = {
  gone: (path) => rmSync(path, { recursive: true, force: true }),
  'another byte': onFile((path, random) => {
    const bytes = readFileSync(path);
    for (let i = random.between(1, 4); i > 0 && bytes.length > 0; i -= 1)
      bytes[random.between(0, bytes.length - 1)] = random.between(0, 255);
    writeFileSync(path, bytes);
  }),
  cut: onFile((path, random) => truncateSync(path, random.between(0, lstatSync(path).size))),
  empty: onFile((path) => truncateSync(path, 0)),
  longer: onFile((path, random) => writeFileSync(path, randomBytes(random), { flag: 'a' })),
  'random bytes': instead((path, random) => writeFileSync(path, randomBytes(random))),
  huge: instead((path) => {
    writeFileSync(path, 'x');
    truncateSync(path, HUGE_BYTES);
  }),
  'a folder': instead((path) => mkdirSync(join(path, 'inside'), { recursive: true })),
  'a pipe': instead((path) => void spawnSync('mkfifo', [path])),
  'a link to a device': instead((path, random) =>
    symlinkSync(random.pick(['/dev/zero', '/dev/full', '/dev/tty']), path),
  ),
  'a link to a file of somebody else': instead((path, random, { others }) =>
    symlinkSync(join(others, random.pick(readdirSync(others))), path),
  ),
  'a link to a folder of somebody else': instead((path, _, { others }) => symlinkSync(others, path)),
  'a link to itself': instead((path) => symlinkSync(basename(path), path)),
  'a link to nothing': instead((path, _, { others }) => symlinkSync(join(others, 'not-there'), path)),
  'a copy of another': instead((path, random, world) => {
    const files = world
      .places()
      .flat()
      .filter((other) => other !== path && lstatSync(other).isFile());
    if (files.length > 0) cpSync(random.pick(files), path);
  }),
  'moved away, with a link to it': (path) => {
    const away = join(dirname(path), `.${basename(path)}-away`);
    renameSync(path, away);
    symlinkSync(away, path);
  },
  'open to everybody': (path) => lstatSync(path).isSymbolicLink() || chmodSync(path, 0o777),
  'readable by nobody': (path) => lstatSync(path).isSymbolicLink() || chmodSync(path, 0),
  'a second name of it': onFile((path) => linkSync(path, `${path}-second`)),
  'files that ours are named after': (path, random, { others, project }) => {
    const folder = lstatSync(path).isDirectory() ? path : dirname(path);
    const name = random.pick(['-wal', '-shm', '-journal', '.lock', '.tmp', '.checkpoint', '.anchors']);
    const planted = join(random.oneIn(2) ? folder : join(project, '.colibri'), `colibri.db${name}`);
    if (random.oneIn(2)) symlinkSync(join(others, 'letter'), planted);
    else writeFileSync(planted, randomBytes(random));
  },
};

function onFile(change: Mutation): Mutation {
  return (path, random, world) => {
    if (lstatSync(path).isFile()) change(path, random, world);
  };
}

function instead(make: Mutation): Mutation {
  return (path, random, world) => {
    rmSync(path, { recursive: true, force: true });
    make(path, random, world);
  };
}

function randomBytes(random: Random): Buffer {
  return Buffer.from(Array.from({ length: random.between(0, BYTES_MAX) }, () => random.between(0, 255)));
}

/** Names of settings by which git could be made to start a program. Each leaves a mark where it is started. */
const GIT_PROGRAMS =
  `core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy core.alternateRefsCommand
  diff.external sequence.editor gpg.program gpg.ssh.program gpg.ssh.defaultKeyCommand credential.helper alias.log
  alias.cat-file filter.evil.clean filter.evil.smudge filter.evil.process diff.evil.textconv diff.evil.command
  merge.evil.driver remote.origin.uploadpack remote.origin.receivepack remote.origin.vcs uploadpack.packObjectsHook
  interactive.diffFilter pager.log trailer.evil.command init.templateDir`.split(/\s+/);

function plantInGit(world: Surroundings, random: Random): string {
  const mark = world.path('others', 'started');
  const name = random.pick(GIT_PROGRAMS);
  const set = (key: string, value: string) =>
    spawnSync('git', ['config', '-f', join(world.project, '.git', 'config'), key, value], { env: world.env });
  set(name, `touch ${mark} #`);
  if (random.oneIn(2)) {
    set('core.repositoryformatversion', '1');
    set('extensions.partialClone', 'origin');
    set('remote.origin.promisor', 'true');
    set('remote.origin.url', random.pick([world.others, `ext::touch ${mark}`, `ssh://host${world.others}`]));
  }
  const hook = join(world.project, '.git', 'hooks', 'reference-transaction');
  mkdirSync(dirname(hook), { recursive: true });
  writeFileSync(hook, `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 });
  const attributes = join(world.project, '.git', 'info', 'attributes');
  mkdirSync(dirname(attributes), { recursive: true });
  writeFileSync(attributes, '* filter=evil diff=evil merge=evil\n');
  return `git: ${name}`;
}

/** What somebody else may do to the database with SQL. */
const STATEMENTS = [
  'CREATE TRIGGER planted BEFORE INSERT ON thoughts BEGIN SELECT RAISE(IGNORE); END',
  'CREATE TRIGGER planted BEFORE INSERT ON actions BEGIN SELECT RAISE(IGNORE); END',
  "CREATE TRIGGER planted AFTER INSERT ON tasks BEGIN UPDATE tasks SET priority = 'low' WHERE id = new.id; END",
  `DROP TABLE task_labels; CREATE VIEW task_labels AS
   WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS label, x AS task_id FROM n`,
  'DROP VIEW audit_rows; CREATE VIEW audit_rows AS SELECT * FROM actions',
  'ALTER TABLE tasks ADD COLUMN kind TEXT GENERATED ALWAYS AS (hex(zeroblob(900000000))) VIRTUAL',
  'CREATE TABLE planted (x); ANALYZE',
  'DROP TRIGGER actions_no_delete; DELETE FROM actions WHERE position > 3',
  "DROP TRIGGER texts_no_update; UPDATE texts SET text = char(27) || '[2J' || char(0, 8238, 155)",
  "UPDATE tasks SET project = char(27) || ']0;owned' || char(7), labels = '[1,{}]', depends_on = '[\"x\"]'",
  'UPDATE tasks SET id = id + 9007199254740992, parent_id = id',
  "INSERT INTO action_payloads VALUES (99999, 'x', replace(hex(zeroblob(500000)), '0', '[')) ",
  'DELETE FROM log_heads',
  'DELETE FROM log_heads; DELETE FROM log',
  "UPDATE log_heads SET checkpoint = checkpoint || char(10) || 'x', size = 4611686018427387904",
  "UPDATE processes SET process = '../../others', last_seen = 'zzzz'",
  'DELETE FROM task_words',
  'PRAGMA journal_mode = DELETE',
  'PRAGMA user_version = 4',
  'PRAGMA application_id = 1',
  'PRAGMA page_size = 65536; PRAGMA journal_mode = DELETE; VACUUM',
];

function plantInDatabase(world: Surroundings, random: Random): string {
  const sql = random.pick(STATEMENTS);
  const db = openDatabase(join(world.project, '.colibri', 'colibri.db'));
  try {
    db.exec(sql);
  } finally {
    db.close();
  }
  return `SQL: ${sql}`;
}

/** Does one to three things to the surroundings, and says which. */
export function mutate(world: Surroundings, random: Random): string[] {
  return Array.from({ length: random.between(1, 3) }, () => {
    const path = random.pick(random.pick(world.places()));
    const name = random.pick(Object.keys(MUTATIONS));
    try {
      if (random.oneIn(4)) return plantInGit(world, random);
      if (random.oneIn(3)) return plantInDatabase(world, random);
      MUTATIONS[name]?.(path, random, world);
    } catch (error) {
      // What an earlier one did may stand in the way of a later one.
      return `${name}: ${path}: ${String(error)}`;
    }
    return `${name}: ${path.slice(world.path().length)}`;
  });
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly isLate: boolean;
  /** The programs that were started, where strace is there to tell. */
  readonly started: readonly string[];
}

/** Runs a program to its end, or to the end of its time, with everything that it starts. */
export async function runWithin(
  msMax: number,
  [program = '', ...args]: readonly string[],
  { cwd, env, input = '', trace }: { cwd: string; env: NodeJS.ProcessEnv; input?: string; trace?: string },
): Promise<Ended> {
  const traced = trace === undefined ? [] : ['strace', '-f', '-qq', '-e', 'trace=execve', '-o', trace];
  const [first = program, ...rest] = [...traced, program, ...args];
  const child = spawn(first, rest, { cwd, env, detached: true });
  const out = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    out.stderr += text;
  });
  child.stdin.on('error', () => undefined).end(input);
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }, msMax);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  const lines = trace === undefined ? [] : readFileSync(trace, 'utf8').split('\n');
  const started = lines.flatMap((line) => /execve\("([^"]*)".*= 0$/.exec(line)?.[1] ?? []);
  return { code, ...out, isLate, started };
}
