import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { type Config, readConfig } from '../config.ts';
import { asError } from '../errors.ts';
import { isGone } from '../log/process-identity.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { loadDriver } from '../storage/sqlite/driver.ts';
import { UnusableFileError } from '../storage/sqlite/file.ts';
import { readView, signability } from '../trust/own-log.ts';
import { type Command, EXIT } from './command.ts';
import { withDatabase } from './open.ts';
import { printable } from './text.ts';

/** One thing that was checked: fine, worth knowing, or wrong with a remedy. */
interface Check {
  readonly what: string;
  readonly state: 'ok' | 'note' | 'wrong';
  readonly found: string;
  readonly fix?: string;
}

const NAME_WIDTH = 10;
const ROOM_BYTES_MIN = 64 * 1024 * 1024;

/** What is configured, what was found, what is wrong, and how to fix it. */
export const doctor: Command = {
  name: 'doctor',
  usage: '',
  summary: 'show what is configured, what was found, what is wrong, and how to fix it',
  options: {},
  positionals: [0, 0],
  async run({ out }) {
    const checks = await examine();
    out.data(checks, () => {
      for (const { what, state, found, fix } of checks) {
        const mark = {
          ok: out.paint('green', '✓'),
          note: out.paint('yellow', '•'),
          wrong: out.paint('red', '✗'),
        }[state];
        for (const [i, line] of found.split('\n').entries())
          out.line(
            `${i === 0 ? `${mark} ${what.padEnd(NAME_WIDTH)}` : ' '.repeat(NAME_WIDTH + 2)} ${line}`,
            NAME_WIDTH + 3,
          );
        if (fix !== undefined)
          out.line(`${' '.repeat(NAME_WIDTH + 2)} ${out.paint('bold', '→')} ${fix}`, NAME_WIDTH + 5);
      }
    });
    return checks.some((check) => check.state === 'wrong') ? EXIT.found : EXIT.fine;
  },
};

async function examine(): Promise<Check[]> {
  const checks: Check[] = [await checkRuntime()];
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    return [
      ...checks,
      {
        what: 'settings',
        state: 'wrong',
        found: asError(error).message,
        fix: 'correct the variables named here',
      },
    ];
  }
  checks.push({
    what: 'settings',
    state: 'ok',
    found: `mode ${config.mode}, workflow ${config.workflow}, actor ${config.agentId ?? 'as the client names itself'}`,
  });
  for (const warning of config.warnings) checks.push({ what: 'settings', state: 'note', found: warning });
  checks.push({ what: 'workspace', state: 'ok', found: config.workspace });
  checks.push(checkClient(config), ...checkSkills(config), ...(await checkDatabase(config)));
  return checks;
}

async function checkRuntime(): Promise<Check> {
  try {
    const driver = await loadDriver();
    return {
      what: 'runtime',
      state: 'ok',
      found: `Node ${process.versions.node}, SQLite ${driver.sqliteVersion} (${driver.name})`,
    };
  } catch (error) {
    return {
      what: 'runtime',
      state: 'wrong',
      found: asError(error).message,
      fix: 'use Node 22.13 or newer, or run npm install again',
    };
  }
}

function checkSkills({ skillsDirs }: Config): Check[] {
  const present = skillsDirs.filter((folder) => existsSync(folder));
  if (present.length > 0) return present.map((found) => ({ what: 'skills', state: 'ok', found }));
  return [{ what: 'skills', state: 'note', found: `none found in ${skillsDirs.join(', ')}` }];
}

/** Claude Code’s file, because it is in the project; other clients keep theirs elsewhere. */
function checkClient({ workspace, isProject }: Config): Check {
  const path = join(workspace, '.mcp.json');
  const note = (found: string): Check => ({ what: 'client', state: 'note', found });
  if (!isProject) return note('this folder is not in a project; "colibri init" makes it one');
  if (!existsSync(path))
    return note(`${path} does not exist; "colibri init" writes it, and prints what other clients need`);
  const args = argumentsIn(path);
  if (args === undefined) return note(`${path} does not start Colibri; "colibri init" adds it`);
  const missing = args.find((arg) => isAbsolute(arg) && !existsSync(arg));
  return missing === undefined
    ? { what: 'client', state: 'ok', found: path }
    : {
        what: 'client',
        state: 'wrong',
        found: `${path} starts ${missing}, which does not exist`,
        fix: 'build Colibri there, or run "colibri init" again',
      };
}

/** The arguments in the entry `colibri` of a client’s file. The file is the user’s and may hold anything. */
function argumentsIn(path: string): string[] | undefined {
  try {
    const { mcpServers } = JSON.parse(readFileSync(path, 'utf8')) as {
      mcpServers?: { colibri?: { args?: unknown } };
    };
    if (mcpServers?.colibri === undefined) return undefined;
    const { args } = mcpServers.colibri;
    return Array.isArray(args) ? args.filter((arg) => typeof arg === 'string') : [];
  } catch {
    return undefined;
  }
}

async function checkDatabase(config: Config): Promise<Check[]> {
  if (!existsSync(config.dbPath)) {
    return [
      {
        what: 'database',
        state: 'note',
        found: `${config.dbPath} does not exist yet; the first start creates it`,
      },
      ...checkFolder(config),
    ];
  }
  try {
    return await withDatabase(config, async (storage) => [
      {
        what: 'database',
        state: 'ok',
        found: `${config.dbPath}, schema ${storage.facts.schemaVersion}, ${statSync(config.dbPath).size} bytes`,
      },
      ...checkFolder(config),
      ...(await checkSchema(storage)),
      ...(await checkLog(storage, config)),
    ]);
  } catch (error) {
    const found = asError(error).message;
    // This message already says what to do.
    return error instanceof UnusableFileError
      ? [{ what: 'database', state: 'wrong', found }]
      : [
          {
            what: 'database',
            state: 'wrong',
            found,
            fix: 'restore a good copy, or point COLIBRI_DB_PATH at another file',
          },
        ];
  }
}

function checkFolder(config: Config): Check[] {
  let folder = dirname(config.dbPath);
  while (!existsSync(folder)) folder = dirname(folder);
  const checks: Check[] = [];
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    checks.push({
      what: 'folder',
      state: 'wrong',
      found: `${folder} cannot be written`,
      fix: 'make it writable for this user, or set COLIBRI_DB_PATH',
    });
  }
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < ROOM_BYTES_MIN) {
    checks.push({
      what: 'disk',
      state: 'wrong',
      found: `only ${Math.floor((bavail * bsize) / 1024 / 1024)} MB are free`,
      fix: 'free some space: writes are refused on a full disk',
    });
  }
  if (
    existsSync(config.dbPath) &&
    process.platform !== 'win32' &&
    (statSync(config.dbPath).mode & 0o077) !== 0
  ) {
    checks.push({
      what: 'privacy',
      state: 'wrong',
      found: `${config.dbPath} can be read by others`,
      fix: `chmod 600 ${config.dbPath}`,
    });
  }
  return checks;
}

async function checkSchema(storage: StorageEngine): Promise<Check[]> {
  const problems = await storage.read((tx) => storage.selfCheck(tx));
  return problems.map(({ message }) => ({
    what: 'schema',
    state: 'wrong' as const,
    found: message,
    fix: 'colibri verify shows details; restore a good copy',
  }));
}

async function checkLog(storage: StorageEngine, config: Config): Promise<Check[]> {
  const { view, open } = await storage.read(async (tx) => ({
    view: await readView(tx),
    open: await tx.all<{ process: string }>('SELECT process FROM open_calls'),
  }));
  const { origin, last, heads } = view;
  const signing = await checkSigning(storage, config);
  if (last.position === 0) return [{ what: 'log', state: 'note', found: 'empty' }, ...signing];
  const signed = Math.max(0, ...heads.map(({ size }) => size));
  const found = `${printable(origin ?? 'without a name')}, ${last.position} rows, signed through ${signed}`;
  return [
    { what: 'log', state: 'ok', found },
    ...signing,
    ...checkOpenCalls(open.map(({ process }) => process)),
  ];
}

/** What the signer checks before it goes on. `colibri verify` checks everything. */
async function checkSigning(storage: StorageEngine, config: Config): Promise<Check[]> {
  const { folder, refused } = await signability(storage, config);
  if (refused !== undefined)
    return [{ what: 'signing', state: 'wrong', found: `refused: ${printable(refused)}` }];
  return folder === undefined ? [] : [{ what: 'key', state: 'ok', found: folder }];
}

function checkOpenCalls(processes: readonly string[]): Check[] {
  const dead = processes.filter((process) => isGone(process, Number.MAX_SAFE_INTEGER)).length;
  const found = `${dead} call(s) of a process that is gone; the next start records them as crashed`;
  return dead === 0 ? [] : [{ what: 'calls', state: 'note', found }];
}
