import { type Checkpoint, parseTlogProof } from '../../integrity/checkpoint.ts';
import { exactText, sha256Hex } from '../../integrity/digest.ts';
import { verifyInclusion } from '../../integrity/proof-verifier.ts';
import { FormatError, parseVerifierKey } from '../../integrity/signed-note.ts';
import { leafHash } from '../../integrity/tree.ts';
import { headIn, openCheckpoint } from '../../trust/opening.ts';
import { auditRow } from '../finding.ts';
import { isText, members } from './forms.ts';

/** Whether a file is a .tlog-proof out of a bundle, by how it begins. */
export function isProofFile(text: string): boolean {
  return text.startsWith('c2sp.org/tlog-proof@');
}

/**
 * Checks a .tlog-proof, which brings its audit row along but neither a key nor the rest of the log: `keyOf` gives the
 * verifier key, in its text form, that is believed for a log, `against` is a signed checkpoint kept elsewhere. Throws an
 * Error that says what the proof fails to show. `line` may quote the log: escape it before it is printed. Hostile input
 * enters here.
 */
export function checkProofFile(
  text: string,
  keyOf: (origin: string) => string | undefined,
  against?: string,
) {
  const { index, proof, extra, checkpoint } = parseTlogProof(text);
  const key = keyOf(headIn(checkpoint)?.origin ?? '');
  if (key === undefined)
    throw new FormatError('there is no key, so no signature can be checked: give one with --key');
  const { origin, size, root } = open(checkpoint, key);
  const row = members(exactText(extra ?? new Uint8Array()));
  if (extra === undefined || row.position !== index + 1)
    throw new FormatError('it contains no audit row, or the wrong one, so it proves nothing');
  verifyInclusion({ index, size, leafHash: leafHash(sha256Hex(extra)), root, proof });
  const kept = against === undefined ? { size, root } : open(against, key);
  if (kept.size !== size)
    throw new FormatError(
      `the checkpoint you gave covers ${kept.size} rows, and the proof's covers ${size}: only a bundle of the whole log can compare them`,
    );
  if (kept.root !== root)
    throw new FormatError(`the checkpoint you gave belongs to another history of the same ${size} rows`);
  const subject = auditRow(index + 1);
  const [stage, tool, actor, at] = [row.stage, row.tool, row.actor, row.at].map((value) =>
    isText(value) ? value : '?',
  );
  const line = `${subject} is in the signed log: ${stage} of ${tool} by ${actor} at ${at}`;
  return { subject, origin, size, line, key };
}

function open(note: string, key: string): Checkpoint {
  const head = openCheckpoint(note, [parseVerifierKey(key)]);
  if (head.size === 0) throw new FormatError('the checkpoint covers no rows');
  return head;
}

/** Whether a tlog-proof leads from a row, which it carries, to the root of one of these checkpoints. */
export function isProofOf(
  position: number,
  contentHash: string,
  text: string | undefined,
  fitting: ReadonlySet<string | undefined>,
): boolean {
  try {
    const { index, proof, extra = new Uint8Array(), checkpoint } = parseTlogProof(text ?? '');
    const head = headIn(checkpoint);
    if (index !== position - 1 || !fitting.has(checkpoint) || head === undefined) return false;
    return sha256Hex(extra) === contentHash && isIncluded(index, proof, contentHash, head);
  } catch {
    return false;
  }
}

/** Whether a proof leads from a row to the root of a head. */
export function isIncluded(
  index: number,
  proof: readonly string[],
  contentHash: string,
  { size, root }: { readonly size: number; readonly root: string },
): boolean {
  try {
    verifyInclusion({ index, size, leafHash: leafHash(contentHash), root, proof });
    return true;
  } catch {
    return false;
  }
}
