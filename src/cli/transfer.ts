import type { Config } from '../config.ts';
import { copyLog } from '../log/copy.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { assertDatabase, openStorage } from '../storage/open.ts';
import { PathMemory } from '../trust/key-folder.ts';
import { keyId } from '../trust/opening.ts';
import { type LogView, readView } from '../trust/own-log.ts';
import { DatabaseSource } from '../verify/sources/database.ts';
import { ShortReads } from '../verify/sources/short-reads.ts';
import { command, UsageError } from './command.ts';
import { check, folderOf } from './evidence.ts';
import { configAt, type OwnerStages, transferredTo, withDatabase, withOwner } from './open.ts';
import type { Output } from './output.ts';
import { personOf } from './person.ts';

/** Moves a log to another database, on the record of both. */
export const transfer = command({
  name: 'transfer',
  usage: '--to URL|FILE',
  summary: 'move the log to a team’s database, or back to a file',
  details:
    'Copies the whole log: the same rows, hashes, signatures and checkpoints, so that every earlier proof, certificate and anchor stays valid. The log ends here with the row owner_transfer and continues there with owner_receive; nothing more is added here. The target database must be empty. Servers can keep running: their calls are then refused, and the message says where the log went. If the transfer is interrupted, run the same command again. To cancel it instead, give --to the database that the log came from. Texts that were erased stay erased.',
  options: {
    to: { value: 'URL|FILE', help: 'where the log goes: postgres://… or the path of a new file' },
  },
  async run({ values, out, config }) {
    if (values.to === undefined) throw new UsageError('Say where the log goes with --to URL or --to FILE.');
    const target = configAt(config, values.to);
    assertDatabase(config);
    const source = await withDatabase(config, placeOf);
    const rows = await (source.to === undefined ? begin : goOn)(config, target, source, out);
    const said = isSame(config, target)
      ? `The log continues in ${config.dbPath}.`
      : `The log was transferred from ${config.dbPath} to ${target.dbPath}: ${rows} audit rows.`;
    return out.data({ from: config.dbPath, to: target.dbPath, rows }, () => {
      out.line(out.paint('green', said));
      if (!isSame(config, target)) out.line(nextSteps(config, target));
    });
  },
});

/** What a database holds, as far as a transfer is concerned. */
interface Place extends LogView {
  /** Where its log went. */
  readonly to: string | undefined;
}

async function placeOf(storage: StorageEngine): Promise<Place> {
  return await storage.read(async (tx) => {
    const view = await readView(tx);
    return { ...view, to: await transferredTo(tx, view) };
  });
}

/** Ends the log here, then does the rest. Everything that may stand in the way is looked at first. */
async function begin(config: Config, target: Config, { origin, last }: Place, out: Output): Promise<number> {
  if (isSame(config, target)) throw new UsageError(`The log is already in ${config.dbPath}.`);
  if (origin === undefined || last.position === 0)
    throw new UsageError(`${config.dbPath} has no signed log to transfer.`);
  if (config.server !== undefined && target.server === undefined) await requireVouched(config, origin);
  await withOwner(config, out, async ({ call, signer }) => {
    const { refused } = signer.state();
    if (refused !== undefined)
      throw new Error(`Nothing was transferred: the log cannot be signed. ${refused}`);
    await withTarget(target, async (storage) => requireEmpty(target, await storage.read(readView), origin));
    const answer = await call('owner_transfer', { to: target.dbPath }, personOf(config));
    if (!answer.ok) throw new Error(`Nothing was transferred: ${answer.error.message}`);
  });
  return await goOn(config, target, await withDatabase(config, placeOf), out);
}

/** Does what is left to do of a transfer that was begun: it may have been interrupted anywhere. Answers how many rows there are. */
async function goOn(config: Config, target: Config, source: Place, out: Output): Promise<number> {
  const { to, last, origin = '' } = source;
  const isTakenBack = isSame(config, target);
  if (!isTakenBack && to !== target.dbPath)
    throw new UsageError(
      `The log was transferred to ${to}, or a transfer to it was started. To finish it, name that database with --to. To take the log back, name ${config.dbPath}.`,
    );
  const note = requireOwnEnd(config, target, source);
  if (!isTakenBack) await copyInto(config, target, source, out);
  const there = await withDatabase(target, placeOf);
  if (there.to !== undefined) await receive(target, isTakenBack ? (to ?? '') : config.dbPath, out);
  if (!isTakenBack) new PathMemory(config.configDir, config.dbId).noteTransferred(origin, note);
  return last.position;
}

/**
 * The signed head that the log ends with. It goes on under the key that signed it, which the log knows; in a team's database
 * any machine that has joined may go on.
 */
function requireOwnEnd(config: Config, target: Config, { origin, heads, last }: Place): string {
  const folder = folderOf(config, origin);
  const own = folder?.verifierKey();
  const end = heads.find(({ size }) => size === last.position);
  if (folder === undefined || own === undefined || end === undefined)
    throw new Error(`The last rows of ${config.dbPath} are not signed. Run "colibri verify" to see why.`);
  // The others gave their word for what they signed; it stays, and one key signs a file from now on.
  if (target.server === undefined) for (const { key } of heads) if (key !== own) folder.retire(key);
  if (end.key === own) folder.noteJoined();
  else if (target.server === undefined || !folder.hasJoined)
    throw new UsageError(
      `Another machine started this transfer, with the key ${keyId(end.key)}. Finish it there.`,
    );
  return end.checkpoint;
}

/** Copies everything, unless it is there already: the copy is made in one transaction, so that it is whole or not there. */
async function copyInto(config: Config, target: Config, source: Place, out: Output): Promise<void> {
  await withTarget(target, async (storage) => {
    const there = await storage.read(readView);
    if (there.origin === source.origin && (await holdsEnd(storage, source))) return;
    requireEmpty(target, there, source.origin);
    await out.progress('copying', (onProgress) =>
      withDatabase(config, (from) => copyLog(from, storage, onProgress)),
    );
    await storage.sync();
  });
}

async function holdsEnd(storage: StorageEngine, { last }: Place): Promise<boolean> {
  const sql = 'SELECT chain_hash AS hash FROM audit_rows WHERE position = ?';
  const row = await storage.read((tx) => tx.get<{ hash: string }>(sql, last.position));
  return row?.hash === last.chainHash;
}

/** The first row of the log at its new place. */
async function receive(target: Config, from: string, out: Output): Promise<void> {
  const record = async ({ call, signer }: OwnerStages) => {
    const { refused } = signer.state();
    if (refused !== undefined)
      throw new Error(`The log is now in ${target.dbPath}, but it cannot be signed. ${refused}`);
    const answer = await call('owner_receive', { from }, personOf(target));
    if (!answer.ok) throw new Error(answer.error.message);
  };
  await withOwner(target, out, record, true);
}

async function withTarget<T>(target: Config, work: (storage: StorageEngine) => Promise<T>): Promise<T> {
  const storage = await openStorage(target, {});
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

const isSame = (one: Config, other: Config) => one.dbId === other.dbId;

function requireEmpty(target: Config, there: LogView, origin: string | undefined): void {
  const { dbPath, configDir, dbId } = target;
  if (there.origin !== undefined || there.last.position > 0 || there.heads.length > 0)
    throw new UsageError(
      `${dbPath} already contains a log. Name an empty database, or a file that does not exist.`,
    );
  const before = new PathMemory(configDir, dbId).otherThan(origin);
  if (before !== undefined)
    throw new UsageError(`${dbPath} used to hold the log ${before}. Choose another target.`);
}

/** In a file, every key but those that are vouched for is a stranger's. */
async function requireVouched(config: Config, origin: string): Promise<void> {
  const own = folderOf(config, origin)?.verifierKey();
  const { verdict } = await withDatabase(config, (storage) =>
    ShortReads.run(storage, (tx) => check(new DatabaseSource(storage, tx), undefined)),
  );
  if (verdict.checkpointed.some(({ key, vouched }) => vouched && key === own)) return;
  const id = own === undefined ? 'KEY' : keyId(own);
  throw new UsageError(
    `Nobody has vouched for the key of this machine, and in a file it would count as unknown. Run "colibri trust ${id}" on a machine whose key is vouched for, or transfer the log from there.`,
  );
}

function nextSteps({ dbPath }: Config, target: Config): string {
  const setting =
    target.server === undefined
      ? `In the entry of every client on this machine, set COLIBRI_DB_PATH to ${target.dbPath} and remove COLIBRI_DATABASE_URL.`
      : `In the entry of every client, on every machine, set COLIBRI_DATABASE_URL to the URL of ${target.dbPath} and remove COLIBRI_DB_PATH.`;
  return `${setting} Calls of clients that still use ${dbPath} are refused.`;
}
