import { existsSync, lstatSync, rmdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { userFolders } from '../config.ts';
import { asError } from '../errors.ts';
import {
  isThere,
  makeDataFolder,
  makePrivateFolder,
  namesIn,
  oddity,
  readText,
  replaceFile,
} from '../private-files.ts';
import { storageRuntime } from '../storage/open.ts';
import { checkpointsInGit } from '../trust/anchors-git.ts';
import { PathMemory } from '../trust/key-folder.ts';
import { headIn } from '../trust/opening.ts';
import { ProgramError } from '../trust/programs.ts';
import { isObject } from '../verify/rules/payloads.ts';
import { CLIENTS, type Client, checkoutPath, ENTRY_NAME, type Entry, pathsOf, startFor } from './clients.ts';
import { command, UsageError } from './command.ts';
import { readJson, withoutValue, withValue } from './json-text.ts';
import type { Output } from './output.ts';
import { tableText, withoutTable, withTable } from './toml-text.ts';

const NAMES = CLIENTS.map(({ name }) => name).join(', ');
const [CLAUDE_CODE] = CLIENTS;

/** Connects the project's clients to Colibri. */
export const init = command({
  name: 'init',
  usage: '[--client NAME,…] [--print | --remove]',
  summary: 'connect a client: write or merge its configuration, and keep .colibri/ out of git',
  details: `Clients: ${NAMES}. Default: claude-code. The project is the nearest folder, from this one upwards, that contains .git or .colibri; if there is none, it is this folder. Other entries, comments and their order do not change. Before a file is changed, a copy is saved in .colibri/backup, or in the configuration folder if the file is outside the project.`,
  options: {
    client: {
      value: 'NAME',
      help: 'one or more clients, separated by commas',
      choices: CLIENTS.map(({ name }) => name),
    },
    print: { help: 'print the entry for the client’s file, and write nothing' },
    remove: { help: 'remove the entry' },
  },
  async run(given) {
    const { values, out } = given;
    // A client must not be set up for a server that cannot run here.
    await storageRuntime();
    const clients = named(values.client);
    if (values.print === true) return printSnippets(clients, out);
    const { workspace: found, isProject, configDir, dbPath } = given.config;
    // A folder that is not in a project becomes one now.
    const workspace = isProject ? found : process.cwd();
    // In a git worktree, the folder is that of the main worktree.
    const used = dirname(dbPath);
    const folder = isProject && basename(used) === '.colibri' ? used : join(workspace, '.colibri');
    const change = values.remove === true ? removed : merged;
    // Whatever is refused is refused before anything is written.
    const changes = clients.map((client) => change(client, workspace));
    const isForProject = clients.some((client) => client.of === 'project');
    if (isForProject && values.remove !== true) makeDataFolder(folder);
    for (const changed of changes)
      write(changed, changed.client.of === 'project' ? folder : configDir, workspace);
    const done = changes.map(({ path, said }) => `${path} ${said}`);
    if (values.remove === true)
      return out.data({ workspace, done }, () => {
        for (const line of done) out.line(`${out.paint('green', '✓')} ${line}`, 2);
        out.line(
          `The log in ${folder} and the keys in ${configDir} stay, with a copy of each changed file. Keep them or delete them.`,
        );
      });
    if (isForProject) done.push(`${folder} is ready and kept out of git`);
    const notes = [...new Set([...clients.flatMap((client) => client.note ?? []), ...checkoutNote()])];
    const lost = isForProject
      ? tellLost(configDir, isProject ? dbPath : join(folder, 'colibri.db'), workspace)
      : undefined;
    if (lost !== undefined) notes.push(lost);
    return out.data({ workspace, done, notes }, () => {
      for (const line of done) out.line(`${out.paint('green', '✓')} ${line}`, 2);
      for (const note of notes) out.line(`${out.paint('yellow', '•')} ${note}`, 2);
      if (values.client === undefined) {
        out.line();
        out.line(`Other clients: "colibri init --client NAME" with ${NAMES}.`);
      }
    });
  },
});

/** What it means that a database which was signed here, or in another copy of the project, is not here; undefined where none was. */
function tellLost(configDir: string, dbPath: string, workspace: string): string | undefined {
  if (existsSync(dbPath)) return undefined;
  const [before] = new PathMemory(configDir, dbPath).seen();
  if (before === undefined) return tellLogOfOthers(dbPath, workspace);
  return `The database ${dbPath} was the log ${before} and is gone. If that was a mistake, restore it from a backup before the first call. Otherwise the first call starts a new log, and nothing in it is signed until you accept the loss: colibri checkpoint --adopt.`;
}

/** A copy of a project has the checkpoints that are in its repository, but not the database, which git does not keep. */
function tellLogOfOthers(dbPath: string, workspace: string): string | undefined {
  const [head] = checkpointsIn(workspace).flatMap(({ note }) => headIn(note) ?? []);
  if (head === undefined) return undefined;
  return `The git repository contains checkpoints of the log ${head.origin}, the newest over ${head.size} audit rows, but there is no database at ${dbPath}. A checkpoint is not a backup. If you want to continue that log, put its database there, or name it with COLIBRI_DB_PATH, before the first call. Otherwise the first call starts a new log, and those checkpoints prove nothing about it.`;
}

/** Without git, nobody can say what the repository contains. */
function checkpointsIn(folder: string) {
  try {
    return checkpointsInGit(folder) ?? [];
  } catch (error) {
    if (error instanceof ProgramError) return [];
    throw error;
  }
}

/** What has to be said where the entry holds only here. */
function checkoutNote(): string[] {
  const path = checkoutPath();
  if (path === undefined) return [];
  return [
    `The entry starts this checkout (${path}), so it works only on this machine: do not commit it for others. If you install Colibri from npm, it writes "npx -y colibri-mcp" instead.`,
  ];
}

function named(list: string | undefined): Client[] {
  if (list === undefined) return CLAUDE_CODE === undefined ? [] : [CLAUDE_CODE];
  return list.split(',').map((word) => {
    const client = CLIENTS.find(({ name }) => name === word.trim());
    if (client === undefined) throw new UsageError(`There is no client "${word.trim()}". Clients: ${NAMES}.`);
    return client;
  });
}

function printSnippets(clients: readonly Client[], out: Output): number {
  const snippets = clients.map((client) => ({
    client: client.name,
    file: client.files(userFolders())[0] ?? '',
    snippet: snippetFor(client, checkoutPath()),
  }));
  return out.data(snippets.length === 1 ? snippets[0] : snippets, () => {
    for (const { snippet } of snippets) out.verbatim(snippet);
  });
}

/** What a client's file holds with nothing but Colibri in it. */
export function snippetFor(client: Client, checkout?: string): string {
  const entry = client.entry(startFor(client, checkout));
  const path = [client.key, ENTRY_NAME];
  if (client.format === 'toml') return tableText(path, entry);
  return withValue('{}', path, entry);
}

interface Change {
  readonly client: Client;
  readonly path: string;
  readonly before: string | undefined;
  /** Undefined where the file goes. */
  readonly after: string | undefined;
  readonly mode: number | undefined;
  readonly said: string;
}

/** A client's file with the entry added and everything else kept. One that cannot be understood is not touched. */
function merged(client: Client, workspace: string): Change {
  const { path, before, mode } = current(client, workspace);
  const entry = client.entry(startFor(client, checkoutPath()));
  const at = [client.key, ENTRY_NAME];
  const snippet = `"colibri init --client ${client.name} --print" prints the entry to add.`;
  const after = understood(path, () => {
    if (client.format === 'toml') return withTable(before ?? '', at, entry);
    const existing = readJson(before ?? '', client.format === 'jsonc');
    const servers = isObject(existing) ? (existing[client.key] ?? {}) : undefined;
    if (!isObject(servers)) return undefined;
    const old = servers[ENTRY_NAME];
    const wanted = isObject(old) ? combined(old, entry) : entry;
    return isDeepStrictEqual(old, wanted) ? before : withValue(before ?? '', at, wanted);
  });
  if (after === undefined)
    throw new UsageError(`${path} has "${client.key}" in a form that Colibri does not change. ${snippet}`);
  const said = before === after ? 'already starts Colibri' : `starts Colibri for ${readers(client)}`;
  return { client, path, before, after, mode, said };
}

const readers = ({ name, title }: Client) =>
  name === CLAUDE_CODE?.name ? `${title} and every client that reads it` : title;

/** What a person added to the entry stays: more variables, a time limit. */
function combined(old: Entry, entry: Entry): Entry {
  const parts = Object.entries(entry).map(([key, value]) => {
    const before = old[key];
    return [key, isObject(value) && isObject(before) ? { ...value, ...before } : value];
  });
  return { ...old, ...Object.fromEntries(parts) };
}

/** A client's file without the entry. One that holds nothing else goes altogether. */
function removed(client: Client, workspace: string): Change {
  const { path, before, mode } = current(client, workspace);
  const at = [client.key, ENTRY_NAME];
  const after = understood(path, () => {
    if (before === undefined) return undefined;
    if (client.format === 'toml') return withoutTable(before, at);
    readJson(before, client.format === 'jsonc');
    return withoutValue(before, at);
  });
  if (before === after) return { client, path, before, after, mode, said: 'does not start Colibri' };
  const isEmpty = after === undefined || isBare(after, client);
  const said = isEmpty ? 'contained nothing else and was deleted' : 'no longer starts Colibri';
  return { client, path, before, after: isEmpty ? undefined : after, mode, said };
}

/** Nothing is left but the key, and no comment: that file was made here. */
function isBare(text: string, { format, key }: Client): boolean {
  return format === 'toml' ? text.trim() === '' : text.replaceAll(/\s/g, '') === `{"${key}":{}}`;
}

function understood<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { message } = asError(error);
    const what = message === 'nested too deeply' ? `is ${message}` : `cannot be understood (${message})`;
    throw new UsageError(`${path} ${what}. Fix it, then run this again; nothing was changed.`);
  }
}

/** The file as it is. Below the project, neither it nor its folder may be a link: what is behind may be any file. */
function current(
  client: Client,
  workspace: string,
): { path: string; before: string | undefined; mode: number | undefined } {
  const paths = pathsOf(client, workspace, userFolders());
  const path = paths.find(isThere) ?? paths[0] ?? '';
  const parent = dirname(path);
  const oddParent = client.of === 'project' && parent !== workspace ? oddity(parent) : undefined;
  const odd = oddity(path, true);
  if (odd !== undefined || (oddParent !== undefined && oddParent !== 'a folder')) {
    const what = odd === undefined ? `${parent} is ${oddParent}` : `${path} is ${odd}`;
    throw new UsageError(
      `${what} and was left as it is. "colibri init --client ${client.name} --print" prints the entry to add.`,
    );
  }
  const stat = lstatSync(path, { throwIfNoEntry: false });
  const before = stat && readText(path);
  if (stat !== undefined && before === undefined)
    throw new UsageError(
      `${path} cannot be read, or is too large. Fix it, then run this again; nothing was changed.`,
    );
  return { path, before, mode: stat && stat.mode & 0o777 };
}

/** A copy of what was there first. It may hold secrets of other servers, so it is the owner's alone and never in git. */
function write({ client, path, before, after, mode }: Change, backupIn: string, workspace: string): void {
  if (before === after) return;
  if (before !== undefined) {
    if (client.of === 'project') makeDataFolder(backupIn);
    const backup = join(backupIn, 'backup');
    makePrivateFolder(backup);
    replaceFile(join(backup, `${client.name}-${basename(path)}`), before);
  }
  const parent = dirname(path);
  if (after === undefined) {
    rmSync(path, { force: true });
    if (parent !== workspace && client.of === 'project' && namesIn(parent).length === 0) rmdirSync(parent);
    return;
  }
  if (!isThere(parent)) makePrivateFolder(parent, false);
  replaceFile(path, after, true, mode);
}
