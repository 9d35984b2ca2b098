import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Config } from '../config.ts';
import { asError } from '../errors.ts';
import { parseVerifierKey, type VerifierKey } from '../integrity/note-key.ts';
import { PathMemory } from '../log/log-folder.ts';
import { readIfPresent } from '../log/private-files.ts';
import { readAgainst } from './against.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';
import { printable } from './text.ts';
import { countOf, printFindings, printRanges } from './verdict.ts';
import { checkBundle, checkProof } from './verify-carried.ts';
import { type DatabaseVerdict, verifyFile } from './verify-file.ts';

/** Reads everything back and says how far it can be trusted, and by whom. */
export const verify: Command = {
  name: 'verify',
  usage: '[DB|BUNDLE|PROOF] [--against CHECKPOINT] [--key VKEY] [--ca FILE]',
  summary: 'check every record, hash and signature, and say how far they reach',
  details:
    'Without an argument it checks the configured database; servers may go on writing. It changes nothing. A bundle or a proof is held against the key that this user knows of its log, where one is known; its anchors are looked up in the repository of the workspace and under the authorities that were named, and those that are not found are named with what to do. Exit 1 when anything is wrong. An unanchored tail is normal: "colibri anchor" shortens it.',
  options: {
    against: {
      type: 'string',
      value: 'CHECKPOINT',
      help: 'a checkpoint kept elsewhere: a note file, a .tlog-proof, or the text itself',
    },
    key: { type: 'string', value: 'VKEY', help: 'the verifier key to believe, or a file that holds it' },
    ca: {
      type: 'string',
      value: 'FILE',
      help: 'of a bundle or a proof: the certificate of the time-stamping authority you trust, in PEM',
    },
  },
  positionals: [0, 1],
  async run(invocation) {
    const config = invocation.config();
    const { key, against } = invocation.values;
    const path = invocation.positionals[0] === undefined ? config.dbPath : resolve(invocation.positionals[0]);
    const trustedKey = typeof key === 'string' ? readKey(key) : undefined;
    const kept = typeof against === 'string' ? readAgainst(against) : undefined;
    switch (kindOf(path, config)) {
      case 'database':
        if (invocation.values.ca !== undefined)
          throw new UsageError(
            '--ca goes with a bundle or a proof. For a database name the authority once: colibri anchor --tsr FILE --ca FILE.',
          );
        return show(
          await verifyFile({
            config,
            path,
            trustedKey: trustedKey?.parsed,
            against: kept,
            out: invocation.out,
          }),
          invocation,
        );
      case 'bundle':
        return await checkBundle(path, { key: trustedKey?.text, against: kept?.note }, invocation);
      case 'proof':
        return await checkProof(path, { key: trustedKey?.text, against: kept?.note }, invocation);
    }
  },
};

const HEAD_BYTES = 4_096;

/** A bundle is a folder or a zip, a proof begins with its own name or is JSON, a database says so itself. */
function kindOf(path: string, config: Config): 'database' | 'bundle' | 'proof' {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) {
    if (typeof new PathMemory(config.configDir, path).read() === 'string') return 'database';
    throw new UsageError(
      `There is nothing at ${path}. Name a database, a bundle or a proof; without a name it is the configured database.`,
    );
  }
  if (stat.isDirectory()) return 'bundle';
  const head = readHead(path);
  if (head.startsWith('SQLite format 3\0') || path === config.dbPath || path.endsWith('.db'))
    return 'database';
  if (head.startsWith('PK\u0003\u0004') || head.startsWith('PK\u0005\u0006')) return 'bundle';
  if (/^(?:c2sp\.org\/tlog-proof@|old \d|\s*\{)/.test(head)) return 'proof';
  throw new UsageError(
    `${path} is no database, no bundle and no proof. To compare a checkpoint, use --against.`,
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

function readKey(given: string): { text: string; parsed: VerifierKey } {
  const text = (isFile(given) ? (readIfPresent(given) ?? '') : given).trim();
  try {
    return { text, parsed: parseVerifierKey(text) };
  } catch (error) {
    throw new UsageError(
      `--key is no verifier key (${asError(error).message}). It looks like name+id+base64; "colibri checkpoint --json" prints this log's.`,
    );
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    return false;
  }
}

function show(verdict: DatabaseVerdict, { out }: Invocation): number {
  const { ranges, findings, against } = verdict;
  const ok = findings.length === 0;
  out.data(
    {
      ok,
      what: 'database',
      path: verdict.path,
      origin: verdict.origin,
      size: verdict.size,
      root: verdict.root,
      intact_through: ranges.intactThrough,
      checkpointed_through: ranges.checkpointedThrough,
      anchored_through: ranges.anchoredThrough,
      anchored_by: ranges.anchoredBy,
      unanchored_tail: ranges.unanchoredTail,
      key: verdict.keyFrom,
      checkpoints: verdict.judged.map(({ source, where, size, root, status, message }) => ({
        source,
        where,
        size,
        root,
        status,
        message,
      })),
      ...(against !== undefined && { against }),
      remarks: verdict.remarks,
      findings,
    },
    () => {
      printFindings(findings, out);
      if (!ok) out.line();
      printRanges(ranges, verdict.size, out);
      if (against !== undefined)
        out.line(`against               ${against.verdict}: ${printable(against.message)}`);
      for (const remark of verdict.remarks) out.line(out.paint('yellow', printable(remark)));
      out.line(ok ? out.paint('green', 'Nothing is wrong.') : out.paint('red', countOf(findings)));
    },
  );
  return ok ? EXIT.fine : EXIT.found;
}
