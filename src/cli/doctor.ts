import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { systemClock } from '../clock.ts';
import { type Config, readConfig } from '../config.ts';
import { createSkillRegistry } from '../domains/skills/registry.ts';
import { asError } from '../errors.ts';
import { oldCopyNote } from '../log/transfer.ts';
import { openFolders, readWhole, target } from '../private-files.ts';
import { NoLogYet, type StorageEngine, UnusableStorage } from '../storage/engine.ts';
import { reach, storageRuntime } from '../storage/open.ts';
import { readView } from '../trust/own-log.ts';
import { signability } from '../trust/signer.ts';
import { shellQuote } from '../untrusted.ts';
import { isObject } from '../verify/rules/payloads.ts';
import { members } from '../verify/sources/forms.ts';
import { command } from './command.ts';
import { transferredTo, withDatabase } from './open.ts';
import type { Output } from './output.ts';
import { lookForTrouble, ROWS_ASIDE_MAX } from './trouble.ts';

/** One thing that was checked: fine, worth knowing, or wrong with a remedy. */
type Check = ReturnType<typeof ok>;

const checked = (state: keyof typeof MARKS) => (what: string, found: string, fix?: string) => {
  return { what, state, found, ...(fix !== undefined && { fix }) };
};
const [ok, note, wrong] = [checked('ok'), checked('note'), checked('wrong')];

const MARKS = { ok: ['green', '✓'], note: ['yellow', '•'], wrong: ['red', '✗'] } as const;
const NAME_WIDTH = 10;
const INDENT = ' '.repeat(NAME_WIDTH + 2);

/** What is configured, what was found, what is wrong, and how to fix it. */
export const doctor = command({
  name: 'doctor',
  usage: '',
  summary: 'show what is configured, what was found, what is wrong, and how to fix it',
  async run({ out }) {
    const checks: Check[] = [];
    for await (const check of examine(out)) checks.push(check);
    const printChecks = () => {
      for (const { what, state, found, fix } of checks) {
        const [colour, mark] = MARKS[state];
        const begin = `${out.paint(colour, mark)} ${what.padEnd(NAME_WIDTH)}`;
        for (const [i, line] of found.split('\n').entries())
          out.line(`${i === 0 ? begin : INDENT} ${line}`, NAME_WIDTH + 3);
        if (fix !== undefined) out.line(`${INDENT} ${out.paint('bold', '→')} ${fix}`, NAME_WIDTH + 5);
      }
    };
    return out.data(checks, printChecks, !checks.some(({ state }) => state === 'wrong'));
  },
});

async function* examine(out: Output): AsyncGenerator<Check> {
  const runtime = await checkRuntime();
  yield runtime;
  let config: Config;
  try {
    config = readConfig();
  } catch (error) {
    yield wrong('settings', asError(error).message, 'correct the variables named here');
    return;
  }
  const { mode, workflow, agentId = 'as the client names itself', warnings, workspace } = config;
  yield ok('settings', `mode ${mode}, workflow ${workflow}, actor ${agentId}`);
  if (config.agentId?.toLowerCase() === OWN_NAME)
    yield note(
      'settings',
      `COLIBRI_AGENT_ID is ${OWN_NAME}, the name of this server; set the agent's own name`,
    );
  for (const warning of warnings) yield note('settings', warning);
  yield ok('workspace', workspace);
  yield checkClient(config);
  yield* await checkSkills(config);
  // Without SQLite there is nothing more to say of the database.
  if (runtime.state === 'ok') yield* checkDatabase(config, out);
}

async function checkRuntime(): Promise<Check> {
  try {
    return ok('runtime', `Node ${process.versions.node}, ${await storageRuntime()}`);
  } catch (error) {
    return wrong('runtime', `Node ${process.versions.node}. ${asError(error).message}`);
  }
}

/** Everything that is not in force is named: an answer to an agent has no room for all of it. */
async function checkSkills({ skillsDirs, workspace }: Config): Promise<Check[]> {
  const { skills, skipped } = await createSkillRegistry({ roots: skillsDirs, workspace }).list();
  const present = skillsDirs.filter((folder) => existsSync(folder)).join(', ');
  return [
    present === ''
      ? note('skills', `none found in ${skillsDirs.join(', ')}`)
      : ok('skills', `${skills.length} in force, from ${present}`),
    ...skipped.map(({ path, reason }) => note('skills', `${path}: ${reason}`)),
  ];
}

/** Claude Code’s file, because it is in the project; other clients keep theirs elsewhere. */
function checkClient({ workspace, isProject }: Config): Check {
  const path = join(workspace, '.mcp.json');
  if (!isProject) return note('client', 'this folder is not in a project; run "colibri init" to make it one');
  const absent = `${path} does not exist; "colibri init" writes it, for other clients with --client NAME`;
  if (!existsSync(path)) return note('client', absent);
  const args = argumentsIn(path);
  if (args === undefined) return note('client', `${path} does not start Colibri; "colibri init" adds it`);
  const missing = args.find((arg) => isAbsolute(arg) && !existsSync(arg));
  if (missing === undefined) return ok('client', path);
  const fix = 'build Colibri there, or run "colibri init" again';
  return wrong('client', `${path} starts ${missing}, which does not exist`, fix);
}

/** The arguments in the entry `colibri` of a client’s file. The file is the user’s and may hold anything. */
function argumentsIn(path: string): string[] | undefined {
  const { mcpServers } = members(readWhole(path, undefined, true)?.toString('utf8') ?? '');
  const entry = isObject(mcpServers) ? mcpServers.colibri : undefined;
  if (!isObject(entry)) return undefined;
  return Array.isArray(entry.args) ? entry.args.filter((arg) => typeof arg === 'string') : [];
}

async function* checkDatabase(config: Config, out: Output): AsyncGenerator<Check> {
  const { dbPath, server } = config;
  try {
    if (server !== undefined)
      return yield* await withDatabase(config, (storage) => checkLog(storage, config, undefined, out));
    const size = reach(dbPath)?.size;
    if (size === undefined && config.dbProblem === undefined)
      yield note('database', `${chosen(config)} does not exist yet; the first start creates it`);
    else yield* await withDatabase(config, (storage) => checkLog(storage, config, size ?? 0, out));
    yield* checkFolder(config);
  } catch (error) {
    if (error instanceof NoLogYet) return yield note('database', error.message);
    // The message about an unusable file already says what to do.
    const isSaid = error instanceof UnusableStorage || server !== undefined;
    const fix = isSaid ? undefined : 'restore a good copy, or point COLIBRI_DB_PATH at another file';
    yield wrong('database', asError(error).message, fix);
  }
}

const ROOM_BYTES_MIN = 64 * 1024 * 1024;

function* checkFolder({ dbPath, configDir }: Config): Generator<Check> {
  let folder = dirname(dbPath);
  while (!existsSync(folder)) folder = dirname(folder);
  try {
    accessSync(folder, constants.W_OK);
  } catch {
    const fix = 'make it writable by this user, or set COLIBRI_DB_PATH';
    yield wrong('folder', `${folder} cannot be written`, fix);
  }
  const { bavail, bsize } = statfsSync(folder);
  const room = bavail * bsize;
  if (room < ROOM_BYTES_MIN) {
    const fix = 'free some space: writes are refused on a full disk';
    yield wrong('disk', `only ${Math.floor(room / 1024 / 1024)} MB are free`, fix);
  }
  const mode = target(dbPath)?.mode ?? 0;
  if (process.platform !== 'win32' && (mode & 0o077) !== 0)
    yield wrong('privacy', `${dbPath} can be read by others`, `chmod 600 ${shellQuote(dbPath)}`);
  for (const { folder, isOurs } of openFolders(dbPath, configDir)) {
    const found = `${folder} is open to other users`;
    yield isOurs
      ? note('privacy', `${found}; the next start closes it`)
      : wrong('privacy', found, `chmod 700 ${shellQuote(folder)}`);
  }
}

/** Which database is used, and why this one. */
const chosen = ({ dbPath, dbReason }: Config) => `${dbPath} (${dbReason})`;

async function checkLog(
  storage: StorageEngine,
  config: Config,
  bytes: number | undefined,
  out: Output,
): Promise<Check[]> {
  const { origin, last, heads } = await storage.read(readView);
  const movedTo = await storage.read((tx) => transferredTo(tx));
  // What the signer checks before it goes on.
  const { folder, refused } = await signability(storage, config);
  const { trouble, unverified } = await lookForTrouble(config, storage, out, ROWS_ASIDE_MAX);
  const { schemaVersion, engine } = storage.facts;
  const { means, weakness } = storage.acknowledged ?? {};
  const signed = Math.max(0, ...heads.map(({ size }) => size));
  return [
    ok(
      'database',
      `${chosen(config)}, schema ${schemaVersion}, ${bytes === undefined ? engine : `${bytes} bytes`}`,
    ),
    ...(means === undefined ? [] : [ok('server', `a call that was answered is ${means}`)]),
    ...(weakness === undefined ? [] : [wrong('server', weakness.risk, weakness.remedy)]),
    last.position === 0
      ? note('log', 'empty')
      : ok('log', `${origin ?? 'without a name'}, ${last.position} rows, signed through ${signed}`),
    ...(folder === undefined ? [] : [ok('key', folder)]),
    ...(movedTo === undefined ? [] : [wrong('log', oldCopyNote(movedTo))]),
    ...(refused === undefined || movedTo !== undefined ? [] : [wrong('signing', `refused: ${refused}`)]),
    // What a refusal says need not be said twice.
    ...(trouble === undefined || refused !== undefined ? [] : [wrong('records', trouble)]),
    ...(unverified === undefined
      ? []
      : [note('records', `not verified; "colibri verify" checks all ${unverified} rows`)]),
    ...(await checkActors(storage, last.position)),
  ];
}

/** How far back the log is searched for agents: far enough for a day's work of several. */
const RECENT_ROWS = 5_000;
/** OpenAI's and Mastra's clients call themselves what their configuration calls the server. */
const OWN_NAME = 'colibri';

/** Names that say less than they seem to: one that several running processes have, and our own. */
async function checkActors(storage: StorageEngine, newest: number): Promise<Check[]> {
  // A machine that joins a team's log does so under our own name.
  const sql = `SELECT actor, process, max(at) AS at FROM audit_rows
    WHERE position > ? AND source = 'mcp' AND tool <> 'key_join' GROUP BY actor, process ORDER BY actor`;
  const running = new Map<string, number>();
  await storage.read(async (tx) => {
    const since = Math.max(0, newest - RECENT_ROWS);
    for (const { actor, process, at } of await tx.all(sql, since)) {
      // A damaged row may hold anything.
      if (typeof actor !== 'string' || typeof process !== 'string' || typeof at !== 'string') continue;
      const isGone = await storage.isGone(tx, process, systemClock.now() - Date.parse(at));
      running.set(actor, (running.get(actor) ?? 0) + (isGone ? 0 : 1));
    }
  });
  const fix = 'give each its own COLIBRI_AGENT_ID; docs/guides/several-agents.md shows how';
  return [...running].flatMap(([actor, count]) => [
    ...(count > 1 ? [note('agents', `${count} running processes are recorded as ${actor}`, fix)] : []),
    ...(actor.toLowerCase() === OWN_NAME
      ? [note('agents', `an agent is recorded as ${OWN_NAME}, which is the name of this server`, fix)]
      : []),
  ]);
}
