import {
  type Checkpoint,
  formatDecimal,
  hashFromBase64,
  hashToBase64,
  parseDecimal,
  parseTlogProof,
} from '../../integrity/checkpoint.ts';
import { exactText, sha256Hex } from '../../integrity/digest.ts';
import { verifyConsistency, verifyInclusion } from '../../integrity/proof-verifier.ts';
import { FormatError, parseVerifierKey } from '../../integrity/signed-note.ts';
import { leafHash } from '../../integrity/tree.ts';
import { openCheckpoint } from '../../trust/opening.ts';
import { auditRow } from '../finding.ts';
import { SourceError } from './files.ts';
import { isText, members } from './forms.ts';

// Files that prove one thing and bring neither a key nor the rest of the log along: a .tlog-proof out of a bundle, and a
// consistency proof as C2SP tlog-witness writes it.

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

/** A proof that was taken apart. `kept` is the checkpoint that it is held against. */
interface Parsed {
  readonly checkpoint: string;
  check(head: Checkpoint, kept: Checkpoint | undefined): { readonly subject: string; readonly line: string };
}

const KINDS: readonly (readonly [beginning: string, parse: (text: string) => Parsed])[] = [
  ['c2sp.org/tlog-proof@', rowProof],
  ['old ', consistencyProof],
];

/** Whether a file is one of these, by how it begins. */
export function isProofFile(text: string): boolean {
  return KINDS.some(([beginning]) => text.startsWith(beginning));
}

/** Checks such a file. Throws a SourceError that says what it fails to show. Hostile input enters here. */
export function checkProofFile(text: string, { keyOf, against }: ProofKeys): ProofVerdict {
  try {
    const parsed = KINDS.find(([beginning]) => text.startsWith(beginning))?.[1](text);
    if (parsed === undefined) throw new SourceError('it is not a proof');
    const { checkpoint, check } = parsed;
    const key = keyOf(checkpoint.slice(0, Math.max(0, checkpoint.indexOf('\n'))));
    if (key === undefined)
      throw new SourceError('there is no key, so no signature can be checked: give one with --key');
    const head = open(checkpoint, key);
    const said = check(head, against === undefined ? undefined : open(against, key));
    return { ...said, origin: head.origin, size: head.size, key };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new SourceError(`the proof does not hold: ${why}`, { cause });
  }
}

function open(note: string, key: string): Checkpoint {
  const head = openCheckpoint(note, [parseVerifierKey(key)]);
  if (head.size === 0) throw new SourceError('the checkpoint is of no rows at all');
  return head;
}

/** A proof out of a bundle carries its audit row along. It is of one size, and another can only be compared with the whole log. */
function rowProof(text: string): Parsed {
  const { index, proof, extra, checkpoint } = parseTlogProof(text);
  const row = members(exactText(extra ?? new Uint8Array()));
  const check = ({ size, root }: Checkpoint, kept: Checkpoint | undefined) => {
    if (extra === undefined || row.position !== index + 1)
      throw new SourceError('it carries no audit row along, or another one, so there is nothing it proves');
    verifyInclusion({ index, size, leafHash: leafHash(sha256Hex(extra)), root, proof });
    if (kept !== undefined && kept.size !== size)
      throw new SourceError(
        `the checkpoint you gave is of ${kept.size} rows and the proof's of ${size}: only a bundle of the whole log can compare them`,
      );
    if (kept !== undefined && kept.root !== root)
      throw new SourceError(`the checkpoint you gave is of another history of the same ${size} rows`);
    const subject = auditRow(index + 1);
    const [stage, tool, actor, at] = [row.stage, row.tool, row.actor, row.at].map((value) =>
      isText(value) ? value : '?',
    );
    return { subject, line: `${subject} is in the signed log: ${stage} of ${tool} by ${actor} at ${at}` };
  };
  return { checkpoint, check };
}

/** No tree with a safe size needs more hashes. */
const HASHES_MAX = 63;

/** The log at the newer size begins with the log of an older checkpoint, kept elsewhere. */
function consistencyProof(text: string): Parsed {
  const blank = text.indexOf('\n\n');
  const [first = '', ...lines] = text.slice(0, Math.max(0, blank)).split('\n');
  const old = parseDecimal(first.slice('old '.length));
  if (blank < 0 || old === undefined) throw new FormatError('it does not begin with an old size and hashes');
  if (lines.length > HASHES_MAX) throw new FormatError('it has too many hashes');
  const proof = lines.map((line) => {
    const hash = hashFromBase64(line);
    if (hash === undefined) throw new FormatError('a line is not the base64 of 32 bytes');
    return hash;
  });
  const check = ({ size, root }: Checkpoint, kept: Checkpoint | undefined) => {
    if (kept === undefined)
      throw new SourceError(
        'there is no older checkpoint to go on from: give the one you kept with --against',
      );
    if (kept.size !== old)
      throw new SourceError(
        `the checkpoint you gave is of ${kept.size} rows, and the proof goes on from ${old}`,
      );
    verifyConsistency({ size1: old, size2: size, root1: kept.root, root2: root, proof });
    const line = `the log of ${size} audit rows begins with the ${old} of the checkpoint you gave`;
    return { subject: `${old}`, line };
  };
  return { checkpoint: text.slice(blank + 2), check };
}

export function formatConsistency(old: number, proof: readonly string[], checkpoint: string): string {
  return `${[`old ${formatDecimal(old)}`, ...proof.map(hashToBase64)].join('\n')}\n\n${checkpoint}`;
}
