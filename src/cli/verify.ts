import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../config.ts';
import { PathMemory } from '../trust/path-memory.ts';
import { existingFile, readAgainst, readKey } from './brought.ts';
import { command, UsageError } from './command.ts';
import { showVerified, type Verified } from './verdict.ts';
import { verifyBundle, verifyProof } from './verify-carried.ts';
import { type ToVerify, verifyDatabase } from './verify-database.ts';

/** Checks everything and says how far it can be trusted, and by whom. */
export const verify = command({
  name: 'verify',
  usage: '[DB|BUNDLE|PROOF] [--against CHECKPOINT] [--key VKEY] [--ca FILE]',
  summary: 'check every record, hash and signature, and say how far they reach',
  details:
    'By default it checks the configured database, while servers may go on writing. It changes nothing. A bundle or a proof is checked with the key that this user has for its log, if there is one; its anchors are looked up in the repository of the workspace and under the authorities you named, and those that are not found are listed with what to do. Exit 1 when anything is wrong. An unanchored tail is normal: "colibri anchor" shortens it.',
  options: {
    against: {
      type: 'string',
      value: 'CHECKPOINT',
      help: 'a checkpoint kept elsewhere: a note file, a .tlog-proof, or the text itself',
    },
    key: { type: 'string', value: 'VKEY', help: 'the verifier key you trust, or a file that holds it' },
    ca: {
      type: 'string',
      value: 'FILE',
      help: 'for a bundle or a proof: the certificate of the time-stamping authority you trust, in PEM',
    },
  },
  positionals: [0, 1],
  async run({ values: { key, against, ca }, positionals: [given], out, config: readConfig }) {
    const config = readConfig();
    const path = given === undefined ? config.dbPath : resolve(given);
    const kind = kindOf(path, config);
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
    return showVerified(await VERIFIERS[kind](toVerify), out);
  },
});

type Kind = Verified['what'];

const VERIFIERS: Readonly<Record<Kind, (given: ToVerify) => Promise<Verified>>> = {
  database: verifyDatabase,
  bundle: verifyBundle,
  proof: verifyProof,
};

const HEAD_BYTES = 4_096;

/** A bundle is a folder or a zip, a proof begins with its format or is JSON, a database with SQLite's header. */
function kindOf(path: string, config: Config): Kind {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) {
    if (new PathMemory(config.configDir, path).seen().length > 0) return 'database';
    throw new UsageError(
      `There is nothing at ${path}. Name a database, a bundle or a proof, or nothing for the configured database.`,
    );
  }
  if (stat.isDirectory()) return 'bundle';
  const head = readHead(path);
  if (head.startsWith('SQLite format 3\0') || path === config.dbPath || path.endsWith('.db'))
    return 'database';
  if (head.startsWith('PK\u0003\u0004') || head.startsWith('PK\u0005\u0006')) return 'bundle';
  if (/^(?:c2sp\.org\/tlog-proof@|old \d|\s*\{)/.test(head)) return 'proof';
  throw new UsageError(
    `${path} is not a database, a bundle or a proof. To compare a checkpoint, use --against.`,
  );
}

function readHead(path: string): string {
  const fd = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(HEAD_BYTES);
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, HEAD_BYTES, 0));
  } finally {
    closeSync(fd);
  }
}
