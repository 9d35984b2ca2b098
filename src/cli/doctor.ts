import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Config, readConfig } from '../config.ts';
import { asError } from '../errors.ts';
import { LogFolder, originOf } from '../log/log-folder.ts';
import { isGone } from '../log/process-identity.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { loadDriver } from '../storage/sqlite/driver.ts';
import { type Command, EXIT } from './command.ts';
import { withDatabase } from './open.ts';
import { proofReach } from './proof-reach.ts';

/** One thing looked at: fine, worth knowing, or wrong with a way out. */
interface Check {
  readonly what: string;
  readonly state: 'ok' | 'note' | 'wrong';
  readonly found: string;
  readonly fix?: string;
}

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
        out.line(`${mark} ${what.padEnd(12)} ${found}`);
        if (fix !== undefined) out.line(`  ${' '.repeat(12)} ${out.paint('bold', '→')} ${fix}`);
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
  checks.push(...checkSkills(config), ...(await checkDatabase(config)));
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

function checkSkills(config: Config): Check[] {
  return config.skillsDirs.map((folder) => ({
    what: 'skills',
    state: existsSync(folder) ? 'ok' : 'note',
    found: existsSync(folder) ? folder : `${folder} does not exist`,
  }));
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
    return [
      {
        what: 'database',
        state: 'wrong',
        found: asError(error).message,
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
    return [
      {
        what: 'log',
        state: 'ok',
        found: `${folder.origin}, ${rows} rows, signed through ${proofReach(config).checkpointed}`,
      },
      folder.exists
        ? { what: 'key', state: 'ok' as const, found: folder.path }
        : {
            what: 'key',
            state: 'wrong' as const,
            found: `this user has no key for ${folder.origin}`,
            fix: 'bring the key folder along, or colibri checkpoint --adopt',
          },
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
