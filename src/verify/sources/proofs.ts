import {
  FormatError,
  formatDecimal,
  hashFromBase64,
  hashToBase64,
  parseDecimal,
} from '../../integrity/c2sp-text.ts';
import { type Checkpoint, parseCheckpoint } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { parseVerifierKey, type VerifierKey } from '../../integrity/note-key.ts';
import { verifyConsistency, verifyInclusion } from '../../integrity/proof-verifier.ts';
import { openNote } from '../../integrity/signed-note.ts';
import { parseTlogProof } from '../../integrity/tlog-proof.ts';
import { leafHash } from '../../integrity/tree.ts';
import { exactText } from '../../integrity/utf8.ts';
import { auditRow } from '../finding.ts';
import { SourceError } from './files.ts';
import { isText, members } from './forms.ts';

// Files that prove one thing and bring neither a key nor the rest of the log along: a .tlog-proof out of a bundle, and a
// consistency proof as C2SP tlog-witness writes it.

/** That the log at a signed size goes on from the log at an older size. */
export interface Consistency {
  readonly old: number;
  readonly proof: readonly string[];
  /** The signed note of the newer size. */
  readonly checkpoint: string;
}

/** What whoever checks a proof brings along. */
export interface ProofKeys {
  /** The verifier key, in its text form, that is believed for a log of this name. */
  readonly keyOf: (origin: string) => string | undefined;
  /** The text of a signed checkpoint kept elsewhere. */
  readonly against?: string | undefined;
}

export interface ProofVerdict {
  readonly subject: string;
  readonly origin: string;
  readonly size: number;
  /** What it proves, as a sentence. It may quote the log: escape it before it is printed. */
  readonly line: string;
  readonly key: string;
}

const CHECKS: readonly (readonly [
  beginning: string,
  check: (text: string, keys: ProofKeys) => ProofVerdict,
])[] = [
  ['c2sp.org/tlog-proof@', checkRowProof],
  ['old ', checkConsistencyProof],
];

/** Whether a file is one of these, by how it begins. */
export function isProofFile(text: string): boolean {
  return CHECKS.some(([beginning]) => text.startsWith(beginning));
}

/** Checks such a file. Throws a SourceError that says what it fails to show. Hostile input enters here. */
export function checkProofFile(text: string, keys: ProofKeys): ProofVerdict {
  const check = CHECKS.find(([beginning]) => text.startsWith(beginning))?.[1];
  if (check === undefined) throw new SourceError('this is no proof');
  return orSay('the proof does not hold', () => check(text, keys));
}

/** A proof out of a bundle carries its audit row along. */
function checkRowProof(text: string, keys: ProofKeys): ProofVerdict {
  const { index, proof, extra, checkpoint } = parseTlogProof(text);
  const { key, head } = openWith(checkpoint, keys);
  const row = members(exactText(extra ?? new Uint8Array()));
  if (extra === undefined || row.position !== index + 1)
    throw new SourceError('it carries no audit row along, or another one, so there is nothing it proves');
  const { size, root, origin } = head;
  verifyInclusion({ index, size, leafHash: leafHash(sha256Hex(extra)), root, proof });
  compare(head, keys, key);
  const subject = auditRow(index + 1);
  const [stage, tool, actor, at] = [row.stage, row.tool, row.actor, row.at].map((value) =>
    isText(value) ? value : '?',
  );
  const line = `${subject} is in the signed log: ${stage} of ${tool} by ${actor} at ${at}`;
  return { subject, origin, size, line, key };
}

/** The log at the newer size begins with the log that an older checkpoint, kept elsewhere, speaks of. */
function checkConsistencyProof(text: string, keys: ProofKeys): ProofVerdict {
  const { old, proof, checkpoint } = parseConsistency(text);
  const { key, head } = openWith(checkpoint, keys);
  if (keys.against === undefined)
    throw new SourceError('there is no older checkpoint to go on from: give the one you kept with --against');
  const kept = openCheckpoint(keys.against, key);
  if (kept.size !== old)
    throw new SourceError(
      `the checkpoint you gave is of ${kept.size} rows, and the proof goes on from ${old}`,
    );
  verifyConsistency({ size1: old, size2: head.size, root1: kept.root, root2: head.root, proof });
  const line = `the log of ${head.size} audit rows begins with the ${old} of the checkpoint you gave`;
  return { subject: `${old}`, origin: head.origin, size: head.size, line, key };
}

/** A proof speaks of one size only; another can be compared with the whole log and not with it. */
function compare(head: Checkpoint, { against }: ProofKeys, key: string): void {
  if (against === undefined) return;
  const given = openCheckpoint(against, key);
  if (given.size === head.size && given.root === head.root) return;
  throw new SourceError(
    given.size === head.size
      ? `the checkpoint you gave is of another history of the same ${head.size} rows`
      : `the checkpoint you gave is of ${given.size} rows and the proof's of ${head.size}: only a bundle of the whole log can compare them`,
  );
}

function openWith(
  checkpoint: string,
  { keyOf }: ProofKeys,
): { readonly key: string; readonly head: Checkpoint } {
  const key = keyOf(checkpoint.slice(0, Math.max(0, checkpoint.indexOf('\n'))));
  if (key === undefined)
    throw new SourceError('there is no key, so no signature can be checked: give one with --key');
  return { key, head: openCheckpoint(checkpoint, key) };
}

function openCheckpoint(note: string, keyText: string): Checkpoint {
  const key: VerifierKey = parseVerifierKey(keyText);
  const head = parseCheckpoint(openNote(note, [key]).text);
  if (head.origin !== key.name || head.size === 0)
    throw new SourceError('the checkpoint is of another log than the key, or of no rows at all');
  return head;
}

function orSay<T>(what: string, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    throw new SourceError(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

export function formatConsistency({ old, proof, checkpoint }: Consistency): string {
  return `${[`old ${formatDecimal(old)}`, ...proof.map(hashToBase64)].join('\n')}\n\n${checkpoint}`;
}

/** No tree with a safe size needs more. */
const HASHES_MAX = 63;

/** Takes the text of a stranger apart. It checks the form only. */
function parseConsistency(text: string): Consistency {
  const blank = text.indexOf('\n\n');
  const [first = '', ...lines] = text.slice(0, Math.max(0, blank)).split('\n');
  const old = first.startsWith('old ') ? parseDecimal(first.slice('old '.length)) : undefined;
  if (blank < 0 || old === undefined) throw new FormatError('it does not begin with an old size and hashes');
  if (lines.length > HASHES_MAX) throw new FormatError('it has too many hashes');
  const proof = lines.map((line) => {
    const hash = hashFromBase64(line);
    if (hash === undefined) throw new FormatError('a line is not the base64 of 32 bytes');
    return hash;
  });
  return { old, proof, checkpoint: text.slice(blank + 2) };
}
