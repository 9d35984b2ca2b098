import { exactText, sha256Hex } from '../../integrity/digest.ts';
import { ANCHOR_REF, headIn, TRACKED_REF } from '../../trust/opening.ts';

// Files in anchors/ are named by the SHA-256 of their bytes, so that a changed byte shows whatever the sums say: commits as
// git keeps them, and answers of time-stamping authorities. This module also runs in the page.

type AnchorKind = 'git' | 'tsr';

/** What an anchor says of a checkpoint. Nothing here shows that anybody else has it. */
interface AnchorText {
  /** The id of a commit, computed from its bytes so that it cannot be claimed; absent in a browser that hashes nothing. */
  readonly commit?: string;
  /** The time that a token or a commit claims, in ISO 8601. */
  readonly time?: string;
}

/** An anchor that somebody hands over: it is whole and names a checkpoint that is there. */
export interface CarriedAnchor extends AnchorText {
  readonly kind: AnchorKind;
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The checkpoint it names, and the audit rows that this one claims to cover. */
  readonly note: string;
  readonly size: number;
}

/** How to find out whether somebody else has it. */
export function howToCheck({ kind, commit = 'ID' }: Pick<CarriedAnchor, 'kind' | 'commit'>): string {
  return kind === 'tsr'
    ? 'With the certificate of its authority: colibri verify … --ca FILE, or openssl ts -verify with the checkpoint as data'
    : `In a clone of the repository it was pushed to: git fetch origin ${ANCHOR_REF}:${TRACKED_REF} && git cat-file commit ${commit}`;
}

export function anchorFile(kind: AnchorKind, bytes: Uint8Array): string {
  return `anchors/${sha256Hex(bytes)}.${kind === 'git' ? 'commit' : 'tsr'}`;
}

/**
 * Reads an anchor of one of these checkpoints, or answers what is wrong with it: a commit ends with the note, a token holds
 * the note's SHA-256. More cannot be checked of it alone. Hostile input enters here.
 */
export async function openAnchor(
  name: string,
  bytes: Uint8Array,
  notes: readonly string[],
): Promise<CarriedAnchor | string> {
  const kind = name.endsWith('.commit') ? 'git' : 'tsr';
  if (name !== anchorFile(kind, bytes)) return 'is not what its name says it must be';
  for (const note of notes) {
    const said = kind === 'git' ? await readCommit(bytes, note) : readStamp(bytes, sha256Hex(note));
    if (said !== undefined) return { ...said, kind, name, bytes, note, size: headIn(note)?.size ?? 0 };
  }
  return 'does not name a checkpoint that is there';
}

async function readCommit(bytes: Uint8Array, note: string): Promise<AnchorText | undefined> {
  const text = exactText(bytes);
  if (text?.endsWith(`\n\n${note}`) !== true) return undefined;
  const seconds = /^committer .* (\d{1,12}) [+-]\d{4}$/m.exec(text)?.[1];
  // SHA-1 in most repositories, SHA-256 in some, as the name of its tree tells.
  const algorithm = text.indexOf('\n') === 'tree '.length + 64 ? 'SHA-256' : 'SHA-1';
  const object = Buffer.concat([Buffer.from(`commit ${bytes.length}\0`), bytes]);
  const digest = await globalThis.crypto?.subtle?.digest(algorithm, object);
  const commit = digest && Buffer.from(new Uint8Array(digest)).toString('hex');
  return { ...(commit && { commit }), ...timeOf(Number(seconds) * 1_000) };
}

/** `YYYYMMDDhhmmss`, a fraction perhaps, `Z`: how DER writes a GeneralizedTime behind its tag and its length. */
const TIME = /(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d{1,6})?Z/;
const TIME_TAG = 0x18;
/** Between the digest and the time stands a serial number only (RFC 3161, 2.4.2). */
const TIME_BYTES_MAX = 200;

function readStamp(bytes: Uint8Array, noteDigest: string): AnchorText | undefined {
  const hex = Buffer.from(bytes).toString('hex');
  let at = hex.indexOf(noteDigest);
  while (at % 2 === 1) at = hex.indexOf(noteDigest, at + 1);
  if (at < 0) return undefined;
  const end = at / 2 + noteDigest.length / 2;
  const behind = String.fromCharCode(...bytes.subarray(end, end + TIME_BYTES_MAX));
  const found = TIME.exec(behind);
  if (found === null || behind.charCodeAt(found.index - 2) !== TIME_TAG) return {};
  const [, year, month, day, hour, minute, second] = found;
  return timeOf(Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`));
}

function timeOf(ms: number): { readonly time?: string } {
  return Number.isFinite(ms) && Math.abs(ms) < 8e15 ? { time: new Date(ms).toISOString() } : {};
}
