import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Booted, bootStorage } from '../boot.ts';
import { wiredTools } from '../catalogue.ts';
import { systemClock } from '../clock.ts';
import { besideOf, type Config, packageVersion, VARIABLES } from '../config.ts';
import { createDiagnostics, type Diagnostics } from '../diagnostics.ts';
import { ownerTools } from '../domains/owner/tools.ts';
import { ColibriError } from '../errors.ts';
import { destinationOf, oldCopyNote } from '../log/transfer.ts';
import { type BatchFigures, composeCall } from '../middleware/compose.ts';
import { capabilitiesFor } from '../modes.ts';
import { redactedNote } from '../secrets.ts';
import { type Address, parseAddress } from '../storage/address.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { assertDatabase, openStorage, storageRuntime } from '../storage/open.ts';
import type { Tool } from '../tool.ts';
import { type LogView, readView } from '../trust/own-log.ts';
import type { LogSigner } from '../trust/signer.ts';
import { EXIT, UsageError } from './command.ts';
import type { Output } from './output.ts';
import { personOf } from './person.ts';

/** The server that was named on the command line; undefined for a path. What may hold a password is never taken for one. */
export function serverNamed(given: string): Address | undefined {
  const server = parseAddress(given);
  // However it is misspelt: quotes and blanks around it, another scheme, or the words of a connection string.
  if (server === undefined && /^[\s'"]*\w+:\/\/|\b(?:host|password)\s*=/i.test(given))
    throw new UsageError(`The URL is not understood; allowed: ${VARIABLES.COLIBRI_DATABASE_URL.takes}.`);
  return server;
}

/** The settings, for a database that was named on the command line: a URL or a file. */
export function configAt(config: Config, given: string): Config {
  const server = serverNamed(given);
  const { dbProblem: _, ...others } = config;
  if (server === undefined) {
    const dbPath = resolve(given);
    return { ...others, server, dbPath, dbId: dbPath, besideDb: dbPath, isDefaultPath: false };
  }
  const besideDb = besideOf(config.workspace, server);
  return { ...others, server, dbPath: server.shown, dbId: server.id, besideDb, isDefaultPath: false };
}

type Work<Given, T> = (given: Given) => Promise<T>;

/**
 * Runs `work` on the configured database, and says first if its log has moved: what is there then is an old copy. Commands
 * that go through here read and never write.
 */
export async function withLog<T>(config: Config, out: Output, work: Work<StorageEngine, T>): Promise<T> {
  return await withDatabase(config, async (storage) => {
    // What cannot be read is for the command to say.
    const to = await storage.read((tx) => transferredTo(tx)).catch(() => undefined);
    if (to !== undefined) out.error(oldCopyNote(to));
    return await work(storage);
  });
}

/** Where the log went, if it is no longer the one that goes on. */
export async function transferredTo(tx: Reader, view?: LogView): Promise<string | undefined> {
  const { last } = view ?? (await readView(tx));
  return last.isTransferred === true ? await destinationOf(tx, last.position) : undefined;
}

/** The same without a word about it. */
export async function withDatabase<T>(config: Config, work: Work<StorageEngine, T>): Promise<T> {
  const storage = await openStorage(config, { readOnly: true });
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

/** The projects that have a task. */
export async function readProjects(tx: Reader): Promise<string[]> {
  const found = await tx.all<{ project: string }>('SELECT DISTINCT project FROM tasks ORDER BY project');
  return found.map(({ project }) => project);
}

/**
 * Outside a project, and where no database was named, a person's call goes to the per-user folder. It says so; and it
 * does not make a database there that nobody would look for.
 */
function sayWhere({ isProject, isDefaultPath, dbPath, mode }: Config, out: Output): void {
  if (isProject || !isDefaultPath || capabilitiesFor(mode).database !== 'file') return;
  if (!existsSync(dbPath))
    throw new UsageError('This folder is not in a project. Run "colibri init" here, or set COLIBRI_DB_PATH.');
  out.error(`This folder is not in a project, so this goes to ${dbPath}. Run "colibri init" to make it one.`);
}

/** The five stages on the configured database, for a person at the command line. */
export type Stages = Pick<Booted, 'storage' | 'signer' | 'degraded'> & {
  readonly call: ReturnType<typeof composeCall>['call'];
};

/** Opens the database as the server does and runs `work` with the same five stages, on tools of the caller's choice. */
async function withStages<T>(
  config: Config,
  diagnostics: Diagnostics,
  toolsOf: (booted: Booted, figures: BatchFigures) => readonly Tool[],
  work: Work<Stages, T>,
  receives = false,
): Promise<T> {
  const onUncertain = (error: Error) => {
    diagnostics.error(error.message);
    process.exitCode = EXIT.uncertain;
  };
  const booted = await bootStorage({ config, clock: systemClock, diagnostics, onUncertain, receives });
  const { opened, storage, signer } = booted;
  try {
    const tools = new Map<string, Tool>();
    const { call, figures } = composeCall({
      tools,
      clock: systemClock,
      source: 'cli',
      log: diagnostics.error,
      admission: { mode: config.mode, degraded: () => booted.degraded },
      ready: () => Promise.resolve(booted),
    });
    for (const tool of toolsOf(booted, figures)) tools.set(tool.name, tool);
    return await work({
      call,
      storage,
      signer,
      ...(booted.degraded !== undefined && { degraded: booted.degraded }),
    });
  } finally {
    await signer?.stop();
    await opened?.close();
  }
}

/** Runs `work` with the fourteen tools that agents have. */
export async function withTools<T>(config: Config, out: Output, work: Work<Stages, T>): Promise<T> {
  sayWhere(config, out);
  // Only what went wrong: a command says the rest itself.
  const diagnostics = createDiagnostics((...parts) => out.error(parts.join(' ')), 'error');
  const toolsOf = (booted: Booted, figures: BatchFigures) =>
    wiredTools(config, systemClock, packageVersion(), () => booted, figures);
  return await withStages(config, diagnostics, toolsOf, work);
}

export type OwnerStages = Stages & {
  readonly signer: LogSigner;
  /** Makes a call of the owner and answers its data. Throws why it was refused. */
  act(tool: string, args: object): Promise<unknown>;
};

/**
 * Runs `work` with the owner's acts on a database that is there and whose log can be signed. Only with `receives` is that
 * one whose log was transferred.
 */
export async function withOwner<T>(
  config: Config,
  out: Output,
  work: Work<OwnerStages, T>,
  receives = false,
): Promise<T> {
  if (capabilitiesFor(config.mode).database !== 'file')
    throw new UsageError(`Nothing is signed in mode ${config.mode}. Unset COLIBRI_MODE for this command.`);
  assertDatabase(config);
  if (config.server === undefined) await storageRuntime();
  const failures: string[] = [];
  const diagnostics = createDiagnostics((...parts) => failures.push(parts.join(' ')), 'error');
  const run = async (stages: Stages) => {
    const { signer, degraded } = stages;
    if (degraded !== undefined) throw new Error(degraded);
    if (signer === undefined)
      throw new Error([...failures, `${config.dbPath} cannot be written, so nothing was signed.`].join('\n'));
    // Why the log is not signed is part of the command's own answer.
    const { refused } = signer.state();
    for (const failure of failures)
      if (refused === undefined || !failure.includes(refused)) out.error(failure);
    const act: OwnerStages['act'] = async (tool, args) => {
      const answer = await stages.call(tool, args, personOf(config), (notes) =>
        out.error(redactedNote(notes)),
      );
      if (!answer.ok) throw new Error(answer.error.message);
      return answer.data;
    };
    return await work({ ...stages, signer, act });
  };
  return await withStages(config, diagnostics, ownerTools, run, receives);
}

/** Reads for a command that goes on until `signal`. While the database cannot be reached, it waits and tries again. */
export async function untilRead<T>(
  read: () => Promise<T>,
  signal: AbortSignal | undefined,
  out: Output,
): Promise<T> {
  for (let isSaid = false; ; isSaid = true) {
    try {
      return await read();
    } catch (error) {
      const isAway = error instanceof ColibriError && error.code === 'ERR_STORAGE_BUSY';
      if (!isAway || signal?.aborted !== false) throw error;
      if (!isSaid) out.error('The database cannot be read at the moment. Trying again until it can.');
    }
    await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
  }
}

const RETRY_MS = 500;

/** From now on, Ctrl-C, SIGTERM and a closed output stop the command, and it can still close its files. */
export function untilStopped(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
  process.stdout.once('error', () => stop.abort());
  return stop.signal;
}
