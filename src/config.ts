import { existsSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import * as z from 'zod';
import { asError, ColibriError, didYouMean } from './errors.ts';
import { findWorktree } from './git-folder.ts';
import { LIMITS } from './limits.ts';
import { MODES } from './modes.ts';
import { redactText } from './secrets.ts';
import { type Address, parseAddress } from './storage/address.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** What a program needs to know of this user and machine, all of them full paths; and how far up git may look. */
const PASSED_ON = [
  ...['HOME', 'XDG_CONFIG_HOME', 'USERPROFILE', 'APPDATA', 'SystemRoot', 'TMPDIR', 'TEMP'],
  'GIT_CEILING_DIRECTORIES',
];

/**
 * The environment of a program that is started from here: little of our own, and what is set. Others could make git
 * work elsewhere (`GIT_DIR`) or run something (`GIT_SSH`). A program is never looked for in the current folder, nor where
 * npm puts those of the project.
 */
export function childEnvironment(changes: Environment = {}): Record<string, string | undefined> {
  const isMeant = (folder: string) => isAbsolute(folder) && !folder.split(/[\\/]/).includes('node_modules');
  const PATH = (process.env.PATH ?? '').split(delimiter).filter(isMeant).join(delimiter);
  const passed = PASSED_ON.filter((name) => isAbsolute(process.env[name] ?? ''));
  return { PATH, ...Object.fromEntries(passed.map((name) => [name, process.env[name]])), ...changes };
}

/** The environment of a command of this installation, and of the desktop that is asked to show a file: the user's own. */
export function sameEnvironment(): Record<string, string | undefined> {
  return { ...process.env, PATH: childEnvironment().PATH };
}

/** The version of this installation. package.json is one folder above both `src/` and `dist/`. */
export function packageVersion(): string {
  try {
    const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
    return (JSON.parse(text) as { version: string }).version;
  } catch (error) {
    throw new Error(`Failed to read package.json version: ${asError(error).message}`, { cause: error });
  }
}

/** Everything the environment decides, read once and frozen. */
export type Config = ReturnType<typeof readConfig>;

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const SLUG = '1 to 64 characters from a-z, 0-9 and -';

export const projectName = z.string().regex(/^[a-z0-9-]{1,64}$/, `a project is ${SLUG}`);

/** A setting that takes one of a few words. */
function oneOf<const W extends readonly [string, ...string[]]>(words: W, otherwise: W[number]) {
  return { takes: words.join(', '), otherwise, schema: z.enum(words).default(otherwise) };
}

/** A URL in the place of a path would become a folder called `postgres:`. A drive has one letter. */
const IS_URL = /^[a-z][a-z0-9+.-]+:\/\//i;

/** Each variable with what it does and what it takes; docs/reference/environment.md is generated from here. */
export const VARIABLES = {
  COLIBRI_MODE: { means: 'which tools are available and where records are kept', ...oneOf(MODES, 'FULL') },
  COLIBRI_WORKSPACE: {
    means: 'the project folder',
    takes: 'an absolute path',
    otherwise: 'the project that the client names, or the nearest folder with .git or .colibri',
    schema: z.string().refine(isAbsolute).optional(),
  },
  COLIBRI_DB_PATH: {
    means: 'database file; a relative path starts at the workspace',
    takes: 'a path',
    otherwise: '.colibri/colibri.db in the workspace; in a git worktree, that of the main worktree',
    schema: z
      .string()
      .refine((path) => !IS_URL.test(path))
      .optional(),
  },
  COLIBRI_DATABASE_URL: {
    means: 'a team’s PostgreSQL database, instead of a file',
    takes:
      'postgres://USER:PASSWORD@HOST:PORT/DATABASE, with several hosts separated by commas and ?sslmode= as in libpq',
    otherwise: 'none',
    schema: z
      .string()
      .transform(parseAddress)
      .refine((address) => address !== undefined)
      .optional(),
  },
  COLIBRI_PROJECT: {
    means: 'default project for tools whose `project` is optional',
    takes: `a project name: ${SLUG}`,
    otherwise: 'none',
    schema: projectName.optional(),
  },
  COLIBRI_PROJECTS: {
    means: 'the only projects that are allowed',
    takes: `project names separated by commas, each ${SLUG}`,
    otherwise: 'any',
    schema: z
      .string()
      .transform((list) => list.split(',').map((name) => name.trim()))
      .pipe(z.array(projectName))
      .optional(),
  },
  COLIBRI_WORKFLOW: {
    means: 'default workflow of new tasks',
    ...oneOf(['kanban', 'pipeline'], 'kanban'),
  },
  COLIBRI_AGENT_ID: {
    means: 'the actor in every record',
    takes: `1 to ${LIMITS.actorCharsMax} characters`,
    otherwise: 'the name the client gives itself; on the command line, the user’s git name or the login',
    schema: z
      .string()
      .max(LIMITS.actorCharsMax)
      .refine((text) => text.isWellFormed() && text.trim() !== '' && !/\p{Cc}/u.test(text))
      .optional(),
  },
  COLIBRI_LEASE_MINUTES: {
    means: 'how long a holder may be silent before its task counts as abandoned',
    takes: 'whole minutes, 1 to 10080',
    otherwise: '30',
    schema: z
      .stringFormat('minutes', /^\d{1,5}$/)
      .transform(Number)
      .pipe(z.int().min(1).max(10_080))
      .default(30),
  },
  COLIBRI_SKILLS_DIR: {
    means: 'skill folders, separated as in PATH',
    takes: 'paths',
    // Those in the home folder only when named: what governs a project should not depend on who works on it.
    otherwise: '.agents/skills, then .claude/skills, in the workspace',
    schema: z.string().default([join('.agents', 'skills'), join('.claude', 'skills')].join(delimiter)),
  },
  COLIBRI_STARTUP_TIMEOUT_MS: {
    means: 'time limit for the start',
    takes: 'whole milliseconds, 1 to 600000',
    otherwise: '30000',
    schema: z
      .stringFormat('milliseconds', /^\d{1,6}$/)
      .transform(Number)
      .pipe(z.int().min(1).max(600_000))
      .default(30_000),
  },
  COLIBRI_LOG_LEVEL: { means: 'how much goes to stderr', ...oneOf(LOG_LEVELS, 'info') },
} as const satisfies Record<string, { means: string; takes: string; otherwise: string; schema: z.ZodType }>;

type Variable = keyof typeof VARIABLES;

/** Reads the environment. Names every wrong variable at once, with what it was and what is allowed, then gives up. */
export function readConfig(env: Environment = process.env, cwd: string = process.cwd()) {
  const shown = (name: string) => JSON.stringify(redactText(env[name] ?? '').slice(0, 64));
  const complaints = Object.keys(env)
    .filter((name) => name.startsWith('AMS_') && env[name])
    .map((name) => `${name} is ${shown(name)}, but Colibri reads COLIBRI_* variables only. Unset it.`);
  const read = <N extends Variable>(name: N) => readVariable(env, name, complaints);

  const workspace = read('COLIBRI_WORKSPACE') ?? findWorkspace(env, cwd);
  const server = read('COLIBRI_DATABASE_URL');
  const named = read('COLIBRI_DB_PATH');
  const file =
    named === undefined
      ? defaultDatabase(workspace)
      : { dbPath: resolve(workspace, named), dbReason: 'COLIBRI_DB_PATH names it' };
  const names = read('COLIBRI_PROJECTS');
  const paths = read('COLIBRI_SKILLS_DIR').split(delimiter).filter(Boolean);
  const config = Object.freeze({
    mode: read('COLIBRI_MODE'),
    workspace,
    /** False where no project folder was found and the per-user data folder is used instead. */
    isProject: workspace !== userFolder(env, 'data'),
    /** A file; or how the database on a server is called, without saying where it is. */
    ...(server === undefined ? file : { dbPath: server.shown, dbReason: 'COLIBRI_DATABASE_URL names it' }),
    /** Whether the database is where it is because nobody named another place. */
    isDefaultPath: named === undefined && server === undefined,
    /** Tells the database from others. */
    dbId: server?.id ?? file.dbPath,
    server,
    /** Files that belong to the database are kept beside this path. */
    besideDb: server === undefined ? file.dbPath : besideOf(workspace, server),
    project: read('COLIBRI_PROJECT'),
    /** When set, only these projects exist. */
    projects: names && Object.freeze(names),
    workflow: read('COLIBRI_WORKFLOW'),
    agentId: read('COLIBRI_AGENT_ID'),
    leaseMinutes: read('COLIBRI_LEASE_MINUTES'),
    skillsDirs: Object.freeze(paths.map((path) => resolve(workspace, path))),
    startupTimeoutMs: read('COLIBRI_STARTUP_TIMEOUT_MS'),
    logLevel: read('COLIBRI_LOG_LEVEL'),
    /** Per-user folder for keys and what was last signed; never inside a workspace. */
    configDir: userFolder(env, 'config'),
    /** Names that look like a setting but are none. */
    warnings: Object.freeze(Object.keys(env).flatMap(warnOfUnknown)),
  });
  const { project, projects } = config;
  if (project !== undefined && projects?.includes(project) === false)
    complaints.push(
      `COLIBRI_PROJECT is "${project}", which COLIBRI_PROJECTS (${projects.join(',')}) does not list.`,
    );
  if (env.COLIBRI_DATABASE_URL && env.COLIBRI_DB_PATH)
    complaints.push('COLIBRI_DATABASE_URL and COLIBRI_DB_PATH are both set. Unset one of them.');
  if (complaints.length > 0) {
    // A wrong mode has a code of its own, where it is all that is wrong.
    const onlyMode = complaints.every((complaint) => complaint.startsWith('COLIBRI_MODE is'));
    const code = onlyMode ? 'ERR_INVALID_MODE' : 'ERR_CONFIG_INVALID';
    throw new ColibriError(code, complaints.join('\n'), { complaints });
  }
  return config;
}

/** Where the files are kept that belong to a database on a server. */
export function besideOf(workspace: string, { database }: Address): string {
  return resolve(workspace, '.colibri', database.replace(/\W/g, '_'));
}

function readVariable<N extends Variable>(env: Environment, name: N, complaints: string[]) {
  // Clients that fill in a form send an empty text for a field left blank.
  const text = env[name] || undefined;
  const { schema, takes } = VARIABLES[name];
  const { success, data } = schema.safeParse(text);
  if (!success) complaints.push(`${name} is ${shownValue(name, text)}; allowed: ${takes}.${remedyFor(name)}`);
  // Where there is a complaint, nobody sees what was read.
  return (success ? data : schema.parse(undefined)) as z.output<(typeof VARIABLES)[N]['schema']>;
}

/** A URL may hold a password, and says where a database is. */
function shownValue(name: Variable, text = ''): string {
  if (name === 'COLIBRI_DATABASE_URL') return 'not understood';
  return name === 'COLIBRI_DB_PATH' ? 'a URL' : JSON.stringify(redactText(text));
}

function remedyFor(name: Variable): string {
  return name === 'COLIBRI_DB_PATH' ? ' Name a database on a server with COLIBRI_DATABASE_URL.' : '';
}

function warnOfUnknown(name: string): string[] {
  if (!/^COLIBRI_(?!TEST_)/.test(name) || Object.hasOwn(VARIABLES, name)) return [];
  return [`${name} is not a setting of Colibri and was ignored.${didYouMean(name, Object.keys(VARIABLES))}`];
}

/**
 * The folder whose work is governed: the one the client names, else the nearest at or above the working directory that
 * holds `.colibri` or `.git`, else a per-user folder, because desktop clients start servers in `/`.
 */
function findWorkspace(env: Environment, cwd: string): string {
  const named = env.CLAUDE_PROJECT_DIR;
  if (named !== undefined && isAbsolute(named)) return named;
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.colibri')) || existsSync(join(folder, '.git'))) return folder;
    if (dirname(folder) === folder) return userFolder(env, 'data');
  }
}

/** The database of a workspace for which none is named, why it is this one, and why it must not be created if that is so. */
function defaultDatabase(workspace: string): { dbPath: string; dbReason: string; dbProblem?: string } {
  const pathIn = (folder: string) => join(folder, '.colibri', 'colibri.db');
  const dbPath = pathIn(workspace);
  const worktree = findWorktree(workspace);
  if (worktree.kind === 'none') return { dbPath, dbReason: 'the default in the workspace' };
  if (worktree.kind === 'linked') {
    const unused = existsSync(dbPath) ? `; ${dbPath} is not used` : '';
    const dbReason = `this is a git worktree, and all worktrees of a repository share one database${unused}`;
    return { dbPath: pathIn(worktree.folder), dbReason };
  }
  const dbReason = `the default in the workspace, not shared with other worktrees: ${worktree.reason}`;
  if (worktree.kind === 'alone' || existsSync(dbPath)) return { dbPath, dbReason };
  const remedy = 'Run "git worktree repair" in the main worktree, or set COLIBRI_DB_PATH.';
  const dbProblem = `The database of this git worktree was not found: ${worktree.reason}. ${remedy} Nothing was created at ${dbPath}.`;
  return { dbPath, dbReason, dbProblem };
}

/** Where a user's programs keep what is theirs. */
export interface UserFolders {
  readonly home: string;
  /** For settings: what is in `~/.config` on Linux. */
  readonly settings: string;
}

export function userFolders(env: Environment = process.env): UserFolders {
  return { home: homeFolder(env), settings: dirname(userFolder(env, 'config')) };
}

/**
 * The platform's per-user folder for settings or for data. A variable that is empty or relative would lead into the
 * workspace, and one below /proc (`/proc/self/cwd`) somewhere else for each process.
 */
function userFolder(env: Environment, kind: 'config' | 'data'): string {
  const home = () => homeFolder(env);
  const isConfig = kind === 'config';
  if (process.platform === 'darwin') return join(home(), 'Library', 'Application Support', 'colibri');
  if (process.platform === 'win32')
    return join(
      full(isConfig ? env.APPDATA : env.LOCALAPPDATA) ?? join(home(), 'AppData', 'Local'),
      'colibri',
    );
  const base = full(isConfig ? env.XDG_CONFIG_HOME : env.XDG_DATA_HOME);
  return join(base ?? join(home(), ...(isConfig ? ['.config'] : ['.local', 'share'])), 'colibri');
}

/** The name under which the user logged in; empty for a user without an entry, as in some containers. */
export function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    return '';
  }
}

function homeFolder(env: Environment): string {
  return full(env.HOME) ?? homeOnRecord(env.HOME);
}

function full(path = ''): string | undefined {
  return isAbsolute(path) && !resolve(path).startsWith('/proc/') ? path : undefined;
}

/** What the system knows, whatever the environment says. */
function homeOnRecord(named = ''): string {
  try {
    const { homedir } = userInfo();
    if (isAbsolute(homedir)) return homedir;
  } catch {
    // A user without an entry, as in some containers.
  }
  const complaint = `HOME is ${JSON.stringify(named)}; allowed: an absolute path. This user has no home folder on record.`;
  throw new ColibriError('ERR_CONFIG_INVALID', complaint, { complaints: [complaint] });
}
