import { setTimeout as sleep } from 'node:timers/promises';
import { type AuditSink, type CallSink, inTurn } from './audit-sink.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import type { Diagnostics } from './diagnostics.ts';
import { joiningTools } from './domains/owner/tools.ts';
import { READING_TOOLS } from './domains/rules.ts';
import { asError, ColibriError } from './errors.ts';
import { LIMITS } from './limits.ts';
import { readHead, UNSIGNED } from './log/append.ts';
import { createAuditLog, recoverOpenCalls } from './log/audit-log.ts';
import { destinationOf, TransferredError } from './log/transfer.ts';
import { type Backing, composeCall } from './middleware/compose.ts';
import { capabilitiesFor } from './modes.ts';
import { makePrivateFolder, openFolders } from './private-files.ts';
import { redactText } from './secrets.ts';
import { createNoStorage, NoEngineError, type StorageEngine } from './storage/engine.ts';
import { isLocked, openStorage } from './storage/open.ts';
import { processIdentity } from './storage/process-identity.ts';
import { LogSigner } from './trust/signer.ts';
import { shellQuote } from './untrusted.ts';

/** What boot ends with. A database that cannot be opened is an end too: the server stays up and says why. */
export interface Booted extends Backing {
  readonly opened?: StorageEngine;
  readonly degraded?: string;
  /** Another process has the database for itself: worth another try. */
  readonly isLocked?: boolean;
  /** Absent where nothing is signed: no database, one in memory, or one that cannot be written. */
  readonly signer?: LogSigner | undefined;
}

interface BootDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly diagnostics: Diagnostics;
  readonly onUncertain: (error: ColibriError) => void;
  /** Of a process that stays: says when it stops. */
  readonly stopping?: AbortSignal | undefined;
  /** What the try before this one came to. */
  readonly before?: Booted | undefined;
  /** To go on with a log that was transferred here, which nothing else may. */
  readonly receives?: boolean;
}

/** Open, recover. Never starts over on an empty file where there is one it cannot read. */
export async function bootStorage(deps: BootDeps): Promise<Booted> {
  const nowhere = createNoStorage();
  const without = { storage: nowhere, sink: createStderrSink(deps, nowhere) };
  if (capabilitiesFor(deps.config.mode).database === 'none') return without;
  try {
    return await withDatabase(deps);
  } catch (thrown) {
    const { dbPath } = deps.config;
    const { message } = asError(thrown);
    const saysAll =
      thrown instanceof NoEngineError || thrown instanceof TransferredError || message.includes(dbPath);
    const said = saysAll ? message : `${dbPath} cannot be opened (${message}). ${REMEDY}`;
    const locked = `${dbPath} is locked by another process. Colibri keeps trying until it is free. If this continues, look for a suspended process.`;
    // A server that cannot be reached may be there again later, too.
    const waiting = deps.config.server === undefined ? locked : `${message} Colibri keeps trying.`;
    const reason = isLocked(thrown)
      ? waiting
      : thrown instanceof TransferredError
        ? message
        : `${said} Then start Colibri again.`;
    if (reason !== deps.before?.degraded) deps.diagnostics.error(`degraded: ${reason}`);
    return { ...without, degraded: reason, isLocked: isLocked(thrown) };
  }
}

const REMEDY =
  'Check that its folder exists, is writable and has free space, and that no suspended process holds it. "colibri doctor" has the details.';

async function withDatabase(deps: BootDeps): Promise<Booted> {
  const { config, clock, diagnostics, onUncertain } = deps;
  const { mode, dbPath, dbId, configDir, server } = config;
  let live = false;
  const inMemory = capabilitiesFor(mode).database === 'memory';
  if (!inMemory && server === undefined) closeFolders(config, diagnostics);
  const process = processIdentity();
  const opened = await openStorage(inMemory ? { dbPath: ':memory:' } : config, {
    process,
    readingIsEnough: mode === 'READONLY',
    // While booting, a damaged file is a reason to stay up degraded, not to end.
    onUncertain: (error) => {
      if (live) onUncertain(error);
    },
  });
  try {
    // A log that cannot be read must not be found out by the first call.
    await opened.read(async (tx) => {
      const { position, isTransferred } = await readHead(tx);
      if (isTransferred === true && deps.receives !== true)
        throw new TransferredError(await destinationOf(tx, position));
    });
    if (!opened.facts.writable) {
      diagnostics.warn(`${dbPath} cannot be written: calls are served and recorded on stderr only`);
      return { storage: opened, opened, sink: createStderrSink(deps, opened) };
    }
    const place = { storage: opened, dbPath, dbId, configDir };
    const signer = inMemory ? undefined : new LogSigner({ ...place, diagnostics, clock, process });
    await signer?.start();
    // The signer watches its storage: only what was really committed may leave the process.
    const storage = signer?.storage ?? opened;
    const log = { storage, clock, process, keeper: signer ?? UNSIGNED };
    const sink = createAuditLog(log);
    signer?.onJoin(joiner({ storage, sink, signer }, deps));
    await signer?.join();
    const explain = async (ownAreOver = false) => {
      const explained = await recoverOpenCalls(log, READING_TOOLS, ownAreOver);
      if (explained > 0)
        diagnostics.warn(`${explained} call(s) of a process that died were recorded as crashed`);
    };
    // Nothing may come before the row that receives a log. A try before this one may have begun to join, and ended nothing.
    if (deps.receives !== true) await explain(deps.before !== undefined);
    live = true;
    if (storage.isShared === true) void explainNowAndThen(explain, deps);
    return { storage, opened: storage, sink, signer };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Where machines share a database, one that is gone for good leaves its open calls to the others, and nobody may start for days. */
async function explainNowAndThen(explain: () => Promise<void>, { stopping, diagnostics }: BootDeps) {
  while (stopping?.aborted === false) {
    await sleep(LIMITS.explainEveryMs, undefined, { ref: false });
    if (stopping.aborted) return;
    await explain().catch((thrown: unknown) =>
      diagnostics.warn(`open calls of other machines were not looked at: ${asError(thrown).message}`),
    );
  }
}

/** Records that the key of this machine joins a team's log, as a call like any other. */
function joiner(backing: Backing, { clock, diagnostics, config }: BootDeps) {
  const { call } = composeCall({
    tools: new Map(joiningTools().map((tool) => [tool.name, tool])),
    clock,
    source: 'mcp',
    log: diagnostics.error,
    admission: { mode: 'FULL', degraded: () => undefined },
    ready: () => Promise.resolve(backing),
  });
  return async (key: string) => {
    const answer = await call('key_join', { key }, redactText(config.agentId ?? 'colibri'));
    if (!answer.ok) {
      const sentence = `The key of this machine could not join the log: ${answer.error.message}`;
      // A server that fails over at this moment is worth another try.
      const isBusy = answer.error.message.includes('ERR_STORAGE_BUSY');
      throw isBusy ? new ColibriError('ERR_STORAGE_BUSY', sentence) : new Error(sentence);
    }
    diagnostics.warn(
      `the key of this machine joined the log; on another machine, vouch for it: colibri trust ${key}`,
    );
  };
}

/** Says which folders other users can get into, and closes those that are Colibri's. */
function closeFolders({ dbPath, configDir }: Config, { warn }: Diagnostics): void {
  for (const { folder, isOurs } of openFolders(dbPath, configDir)) {
    const remedy = isOurs ? 'it is closed now' : `run chmod 700 ${shellQuote(folder)}`;
    warn(`${folder} is open to other users: ${remedy}`);
    if (isOurs) makePrivateFolder(folder);
  }
}

/** Where calls are written down when there is no database to write them to. Arguments stay out of it: it is plain text. */
function createStderrSink({ diagnostics, clock }: BootDeps, storage: StorageEngine): CallSink {
  const sink: AuditSink = {
    // One line a call is enough here, and only the exit knows how it ended.
    enter: () => undefined,
    exit({ tool, correlationId, outcome, errorCode, durationMs, entered }) {
      const call = { tool, actor: entered.actor, correlationId, outcome, errorCode, durationMs };
      // Whatever the level is set to: this line is the call's only record.
      diagnostics.error('call', JSON.stringify(call));
    },
  };
  return inTurn(sink, storage, clock);
}
