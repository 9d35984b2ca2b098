import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../config.ts';
import { asError } from '../errors.ts';
import { readStart, target } from '../private-files.ts';
import type { Address } from '../storage/address.ts';
import { ForeignSchema, NoLogYet, type StorageEngine } from '../storage/engine.ts';
import { assertDatabase, isLocked, openStorage, storageRuntime } from '../storage/open.ts';
import { PathMemory } from '../trust/key-folder.ts';
import { keyIn } from '../trust/opening.ts';
import { readView } from '../trust/own-log.ts';
import { type Finding, rowFinding } from '../verify/finding.ts';
import { damagedSource } from '../verify/sources/carried.ts';
import { checkProvedRow } from '../verify/sources/part.ts';
import { existingFile, readAgainst, readKey } from './brought.ts';
import { command, UsageError, type Values } from './command.ts';
import { check, checkDatabase, collectEvidence, outsideFinding, ownKey } from './evidence.ts';
import { serverNamed } from './open.ts';
import type { Output } from './output.ts';
import { showVerified, type ToVerify, type Verified } from './verdict.ts';
import { verifyBundle, verifyProof } from './verify-carried.ts';

/** What the user trusts and holds a file against. */
export const TRUST_OPTIONS = {
  against: {
    value: 'CHECKPOINT',
    help: 'a checkpoint you kept: a note file, a .tlog-proof, or the text itself',
  },
  key: { value: 'VKEY', help: 'the verifier key you trust, or a file that contains it' },
  ca: { value: 'FILE', help: 'for a bundle or proof: the certificate of the authority you trust, as PEM' },
} as const;

/** Checks everything and says how far it can be trusted, and by whom. */
export const verify = command({
  name: 'verify',
  usage: '[DB|URL|BUNDLE|PROOF] [--against CHECKPOINT] [--key VKEY] [--ca FILE] [--require-vouched]',
  summary: 'check every record, hash and signature, and say up to which row each holds',
  details:
    'By default it checks the configured database, even while servers write. It changes nothing. A bundle or a proof is checked with this user’s key for its log, if there is one. Its anchors are looked up in the workspace’s repository and under the authorities you named; anchors that are not found are listed with what to do. Exit 1 if anything is wrong. An unanchored tail is normal; "colibri anchor" shortens it.',
  options: {
    ...TRUST_OPTIONS,
    'require-vouched': {
      help: 'exit 1 if any rows are signed only by keys that nobody has vouched for; always so for a bundle or a proof with --key',
    },
  },
  positionals: [0, 1],
  async run({ values, positionals: [given], out, config }) {
    const server = given === undefined ? config.server : serverNamed(given);
    if (server !== undefined) return await verifyFile(server.shown, values, onServer(config, server), out);
    return await verifyFile(given === undefined ? config.dbPath : resolve(given), values, config, out);
  },
});

type Trusted = Values<typeof TRUST_OPTIONS> & { readonly 'require-vouched'?: boolean | undefined };

/** Verifies whatever is at a path and prints what came of it. Answers the exit code. */
export async function verifyFile(
  path: string,
  trusted: Trusted,
  config: Config,
  out: Output,
): Promise<number> {
  const { key, against, ca } = trusted;
  const isOnServer = config.server !== undefined && path === config.dbPath;
  const kind = isOnServer ? 'database' : kindOf(path, config);
  if (kind === 'database' && ca !== undefined)
    throw new UsageError(
      '--ca goes with a bundle or a proof. For a database, name the authority once: colibri anchor --tsr FILE --ca FILE.',
    );
  const toVerify = {
    config,
    path,
    out,
    key: key === undefined ? undefined : readKey(key),
    against: against === undefined ? undefined : readAgainst(against),
    authority: ca === undefined ? undefined : existingFile(ca),
  };
  const verified = await VERIFIERS[kind](toVerify);
  // That a log is a team's is only claimed by what is carried: whoever brings the key wants it to vouch for all of it.
  const isStrict = trusted['require-vouched'] === true || (kind !== 'database' && key !== undefined);
  return showVerified(isStrict ? withVouched(verified) : verified, toVerify);
}

/** The same, with a finding where the newest rows rest on keys that joined by themselves only. */
function withVouched(verified: Verified): Verified {
  const { verdict, findings } = verified;
  if (verdict === undefined) return verified;
  const vouched = Math.max(0, ...verdict.checkpointed.flatMap((one) => (one.vouched ? one.through : [])));
  if (vouched >= verdict.checkpointedThrough) return verified;
  const message = `The audit rows after row ${vouched} are signed only by keys that nobody has vouched for. "colibri trust KEY" vouches for a key.`;
  return { ...verified, findings: [...findings, rowFinding('foreign', vouched + 1, message)] };
}

/** The settings, for a database that was named on the command line. */
function onServer(config: Config, server: Address): Config {
  return { ...config, server, dbPath: server.shown, dbId: server.id };
}

type Kind = Verified['what'];

const VERIFIERS: Readonly<Record<Kind, (given: ToVerify) => Promise<Verified>>> = {
  database: verifyDatabase,
  bundle: verifyBundle,
  proof: verifyProof,
};

const HEAD_BYTES = 4_096;

/** A bundle is a folder or a zip, a proof begins with its format or is JSON, a database with SQLite's header. */
function kindOf(path: string, config: Config): Kind {
  const stat = reachable(path);
  if (stat === undefined) {
    if (new PathMemory(config.configDir, path).seen().length > 0) return 'database';
    throw new UsageError(
      path === config.dbPath
        ? whyNoDatabase(config)
        : `There is nothing at ${path}. Name a database, a bundle or a proof, or leave it out to check the configured database.`,
    );
  }
  if (stat.isDirectory()) return 'bundle';
  const head = readStart(path, HEAD_BYTES, true)?.toString('latin1') ?? '';
  if (head.startsWith('SQLite format 3\0') || path === config.dbPath || path.endsWith('.db'))
    return 'database';
  if (head.startsWith('PK\u0003\u0004') || head.startsWith('PK\u0005\u0006')) return 'bundle';
  if (/^(?:c2sp\.org\/tlog-proof@|\s*\{)/.test(head)) return 'proof';
  throw new UsageError(
    `${path} is not a database, a bundle or a proof. To compare a checkpoint, use --against.`,
  );
}

function whyNoDatabase(config: Config): string {
  try {
    assertDatabase(config);
  } catch (error) {
    return asError(error).message;
  }
  // It has just been made.
  return `There was nothing at ${config.dbPath} a moment ago. Repeat the command.`;
}

/** Nothing was verified of what cannot be looked at, so that is no verdict. */
function reachable(path: string) {
  try {
    return target(path);
  } catch (error) {
    throw new UsageError(`${path} cannot be reached (${asError(error).message}).`);
  }
}

/** Verifies a database and compares it with everything known about it elsewhere. Never changes a byte of it. */
export async function verifyDatabase(given: ToVerify): Promise<Verified> {
  const { config, path } = given;
  const place = path === config.dbPath ? config : { dbPath: path };
  if (config.server === undefined && !existsSync(path)) {
    const before = new PathMemory(config.configDir, path).seen().join(', ');
    const message = `The database ${path} was the log ${before} and is gone.`;
    return await unreadable(outsideFinding('missing', path, message));
  }
  // A SQLite that is missing says nothing about the file.
  if (config.server === undefined) await storageRuntime();
  let storage: StorageEngine;
  try {
    storage = await openStorage(place, { readOnly: true });
  } catch (thrown) {
    if (isLocked(thrown))
      throw new Error(
        config.server === undefined
          ? `${path} is locked by another process and was not verified. Try again when it is free.`
          : asError(thrown).message,
      );
    const before = new PathMemory(config.configDir, place === config ? config.dbId : path).seen().join(', ');
    if (thrown instanceof NoLogYet && before !== '') {
      const message = `The database ${path} was the log ${before} and is now empty.`;
      return await unreadable(outsideFinding('missing', path, message));
    }
    if (thrown instanceof ForeignSchema) return await unreadable(...thrown.problems);
    const message = `${path} cannot be read: ${asError(thrown).message}`;
    return await unreadable({ kind: 'damaged', table: 'file', record: path, message });
  }
  try {
    return await verifyOpened(storage, given);
  } finally {
    await storage.close();
  }
}

async function verifyOpened(storage: StorageEngine, given: ToVerify): Promise<Verified> {
  const { config, path, against, out } = given;
  const origin = await readOrigin(storage, config, path);
  const outside = collectEvidence(config, path, origin);
  const evidence = [...outside.evidence, against ?? []].flat();
  const key = keyIn(given.key) ?? ownKey(config, origin);
  const { verdict, findings } = await checkDatabase(storage, key, evidence, out);
  const proved = against === undefined ? [] : await storage.read((tx) => checkProvedRow(tx, against));
  const all = [...outside.findings, ...findings, ...proved];
  const { remarks, anchors } = outside;
  return { what: 'database', findings: all, verdict, remarks, anchors };
}

/** The name the log gives itself. Where damage hides it, the one remembered for the path. */
async function readOrigin(storage: StorageEngine, config: Config, path: string): Promise<string | undefined> {
  try {
    return (await storage.read(readView)).origin;
  } catch {
    // Whatever it is, the verifier meets it too and reports it.
    return new PathMemory(config.configDir, path === config.dbPath ? config.dbId : path).seen()[0];
  }
}

async function unreadable(...findings: readonly Finding[]): Promise<Verified> {
  const { verdict } = await check(damagedSource(findings[0]?.message ?? ''), undefined);
  return { what: 'database', findings, verdict: { ...verdict, root: '', remarks: [] } };
}
