import { asError } from '../errors.ts';
import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { parseVerifierKey, type VerifierKey } from '../integrity/note-key.ts';
import { verifyConsistency, verifyInclusion } from '../integrity/proof-verifier.ts';
import { openNote } from '../integrity/signed-note.ts';
import { parseTlogProof } from '../integrity/tlog-proof.ts';
import { leafHash } from '../integrity/tree.ts';
import { auditRow, type Report } from '../log/verify/finding.ts';

/** Says what a key, a checkpoint or a proof fails to show. The message is a whole sentence. */
export class TrustError extends Error {
  override readonly name = 'TrustError';
}

/** The key to open checkpoints with. One that was pinned must be the one the bundle brings along. */
export function trustKey(own: string | undefined, pinned: string | undefined): VerifierKey {
  const text = own ?? pinned;
  if (text === undefined) throw new TrustError('There is no key, so no signature can be checked.');
  if (pinned !== undefined && own !== undefined && own.trim() !== pinned.trim())
    throw new TrustError('The key is not the one you trust: this was signed by somebody else.');
  return sentence('The key cannot be used', () => parseVerifierKey(text.trim()));
}

/** The head in a signed note, after its signature and its origin were checked. */
export function openCheckpoint(note: Uint8Array | string, key: VerifierKey, what: string): Checkpoint {
  const head = sentence(`${what} is not to be believed`, () => parseCheckpoint(openNote(note, [key]).text));
  if (head.origin !== key.name || head.size === 0)
    throw new TrustError(`${what} is of the log ${head.origin}, or of no rows at all.`);
  return head;
}

/** Checks one tlog-proof text: the row is in the log that the checkpoint signs. */
export function checkTlogProof(
  text: string,
  claim: { readonly position: number; readonly contentHash: string; readonly checkpoint: string },
  head: Checkpoint,
): void {
  const { position, contentHash, checkpoint } = claim;
  const what = `The proof of audit row ${position} does not hold`;
  const parsed = sentence(what, () => parseTlogProof(text));
  if (parsed.index !== position - 1 || parsed.checkpoint !== checkpoint)
    throw new TrustError(`${what}: it is for another row or another checkpoint.`);
  if (parsed.extra !== undefined && sha256Hex(parsed.extra) !== contentHash)
    throw new TrustError(`${what}: it carries another row along.`);
  checkInclusion(position, contentHash, parsed.proof, head);
}

export function checkInclusion(
  position: number,
  contentHash: string,
  proof: readonly string[],
  { size, root }: Checkpoint,
): void {
  sentence(`The proof of audit row ${position} does not hold`, () =>
    verifyInclusion({ index: position - 1, size, leafHash: leafHash(contentHash), root, proof }),
  );
}

export function checkConsistency(before: Checkpoint, proof: readonly string[], after: Checkpoint): void {
  const [{ size: size1, root: root1 }, { size: size2, root: root2 }] = [before, after];
  sentence(`The log of ${size2} rows does not begin with the ${size1} of the checkpoint you gave`, () =>
    verifyConsistency({ size1, size2, root1, root2, proof }),
  );
}

/** Runs a check on a stranger's file; whatever it throws becomes a finding, and the answer undefined. */
export function attempt<T>(
  report: Report,
  place: { readonly table: string; readonly record?: string; readonly position?: number },
  check: () => T,
): T | undefined {
  try {
    return check();
  } catch (thrown) {
    const { message } = asError(thrown);
    const record = place.record ?? (place.position === undefined ? place.table : auditRow(place.position));
    report({ kind: 'altered', ...place, record, message });
    return undefined;
  }
}

function sentence<T>(what: string, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    throw new TrustError(`${what}: ${asError(cause).message}.`, { cause });
  }
}
