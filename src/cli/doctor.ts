import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { type Config, readConfig } from '../config.ts';
import { asError } from '../errors.ts';
import { parseCheckpoint } from '../integrity/checkpoint.ts';
import { LogFolder, originOf, PathMemory } from '../log/log-folder.ts';
import { isGone } from '../log/process-identity.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { loadDriver } from '../storage/sqlite/driver.ts';
import { UnusableFileError } from '../storage/sqlite/engine.ts';
import { type Command, EXIT } from './command.ts';
import { OlderSchemaError, withDatabase } from './open.ts';
import { ProofDesk } from './proof-status.ts';
import { readSignedHeads } from './signed-heads.ts';

/** One thing looked at: fine, worth knowing, or wrong with a way out. */
interface Check {
  readonly what: string;
  readonly state: 'ok' | 'note' | 'wrong';
  readonly found: string;
  readonly fix?: string;
}

const NAME_WIDTH = 10;
const ROOM_BYTES_MIN = 64 * 1024 * 1024;

/** What is configured, found and wrong, and how to mend it. */
export const doctor: Command = {
  name: 'doctor',
  usage: '',
  summary: 'what is configured, found, wrong, and how to fix it',
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
  return [{ what: 'skills', state: 'note', found: `there are none; looked in ${skillsDirs.join(', ')}` }];
}

/** Claude Code’s file, because it lies in the project; where other clients keep theirs, each user decides. */
function checkClient({ workspace, isProject }: Config): Check {
  const path = join(workspace, '.mcp.json');
  const note = (found: string): Check => ({ what: 'client', state: 'note', found });
  if (!isProject) return note('this folder belongs to no project; "colibri init" makes it one');
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

/** What the entry `colibri` of a client’s file hands to its command. The file is the user’s and may hold anything. */
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
        found: `${config.dbPath} does not exist yet; the first start makes it`,
      },
      ...checkFolder(config),
    ];
  }
  try {
    return await withDatabase(config, undefined, async (storage) => [
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
    if (error instanceof OlderSchemaError) return [{ what: 'database', state: 'note', found }];
    // Such a file is named together with what to do about it.
    return error instanceof UnusableFileError
      ? [{ what: 'database', state: 'wrong', found }]
      : [
          {
            what: 'database',
            state: 'wrong',
            found,
            fix: 'put a good copy back, or point COLIBRI_DB_PATH at another file',
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
      fix: `make it writable for this user, or set COLIBRI_DB_PATH`,
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
  return problems.map((found) => ({
    what: 'schema',
    state: 'wrong' as const,
    found,
    fix: 'colibri verify tells more; put a good copy back',
  }));
}

async function checkLog(storage: StorageEngine, config: Config): Promise<Check[]> {
  const heads = await readSignedHeads(config, storage);
  return await storage.read(async (tx) => {
    const first = await tx.get<{ content_hash: string }>(
      'SELECT content_hash FROM actions WHERE position = 1',
    );
    if (first === undefined) return [{ what: 'log', state: 'note', found: 'empty' }];
    const rows =
      (await tx.get<{ position: number }>('SELECT max(position) AS position FROM actions'))?.position ?? 0;
    const folder = new LogFolder(config.configDir, originOf(first.content_hash));
    const open = await tx.all<{ process: string }>('SELECT process FROM open_calls');
    const dead = open.filter(({ process }) => isGone(process, Number.MAX_SAFE_INTEGER)).length;
    const signed = await (await ProofDesk.open(tx, heads)).signedThrough();
    return [
      {
        what: 'log',
        state: 'ok',
        found: `${folder.origin}, ${rows} rows, signed through ${signed}`,
      },
      folder.exists
        ? { what: 'key', state: 'ok' as const, found: folder.path }
        : {
            what: 'key',
            state: 'wrong' as const,
            found: `this user has no key for ${folder.origin}`,
            fix: 'bring the key folder along, or colibri checkpoint --adopt',
          },
      ...checkMemory(config, folder, rows),
      ...(dead > 0
        ? [
            {
              what: 'calls',
              state: 'note' as const,
              found: `${dead} call(s) of a process that is gone; the next start records them as crashed`,
            },
          ]
        : []),
    ];
  });
}

/** What the signer would refuse, as far as one look can tell. `colibri verify` looks at everything. */
function checkMemory(config: Config, folder: LogFolder, rows: number): Check[] {
  const wrong = (found: string): Check[] => [
    {
      what: 'signing',
      state: 'wrong',
      found,
      fix: 'put the newest copy back; "colibri checkpoint --adopt" goes on without it, and says what is given up',
    },
  ];
  const seen = new PathMemory(config.configDir, config.dbPath).read();
  if (typeof seen === 'string' && seen !== folder.origin)
    return wrong(`refused: this path held the log ${seen} before`);
  if (!folder.exists) return [];
  const signed = signedSize(folder.lastSigned());
  if (signed === undefined)
    return wrong(`refused: ${join(folder.path, 'last-signed')} is missing or damaged`);
  return signed > rows
    ? wrong(`refused: ${signed} rows were signed and ${rows} are here, so this is an older copy or was cut`)
    : [];
}

function signedSize(note: string | undefined): number | undefined {
  try {
    return note === undefined ? undefined : parseCheckpoint(note.slice(0, note.indexOf('\n\n') + 1)).size;
  } catch {
    return undefined;
  }
}
