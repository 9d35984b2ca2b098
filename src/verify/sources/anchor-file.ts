import { exactText } from '../../integrity/digest.ts';

// Files in anchors/ are named by the SHA-256 of their bytes, so that a changed byte shows whatever the sums say: commits as
// git keeps them, and answers of time-stamping authorities. This module also runs in the page and asks Node for nothing.

export type AnchorKind = 'git' | 'tsr';

/** What an anchor says of a checkpoint. Nothing here shows that anybody else has it. */
export interface AnchorText {
  /** The reference that a commit was made for, where its message says so. */
  readonly ref?: string;
  /** The time that a token or a commit claims, in ISO 8601. */
  readonly time?: string;
}

/** An anchor that somebody hands over: it is whole and speaks of a checkpoint that is there. Nothing shows that anybody else has it. */
export interface CarriedAnchor extends AnchorText {
  readonly kind: AnchorKind;
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The checkpoint it speaks of, and the audit rows that this one claims to cover. */
  readonly note: string;
  readonly size: number;
}

const KINDS: Readonly<Record<string, AnchorKind>> = { commit: 'git', tsr: 'tsr' };

export function anchorFile(kind: AnchorKind, digest: string): string {
  return `anchors/${digest}.${kind === 'git' ? 'commit' : 'tsr'}`;
}

/** The kind of anchor that a file of this name holds, if its bytes have this digest. */
export function readAnchorName(name: string, digest: string): AnchorKind | undefined {
  const kind = KINDS[name.slice(name.lastIndexOf('.') + 1)];
  return kind !== undefined && name === anchorFile(kind, digest) ? kind : undefined;
}

/** The bytes whose digest is a commit's id: SHA-1 in most repositories, SHA-256 in some. */
export function commitPreimage(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const header = new TextEncoder().encode(`commit ${bytes.length}\0`);
  const whole = new Uint8Array(header.length + bytes.length);
  whole.set(header);
  whole.set(bytes, header.length);
  return whole;
}

/** The digest a repository uses, as the names of trees and parents in its commits tell. */
export function commitAlgorithm(bytes: Uint8Array): 'SHA-1' | 'SHA-256' {
  const [tree] = (exactText(bytes.subarray(0, 100)) ?? '').split('\n');
  return tree?.length === 'tree '.length + 64 ? 'SHA-256' : 'SHA-1';
}

/** What an anchor says, if it is about this checkpoint: a commit ends with the note, a token holds the note's SHA-256. */
export function readAnchor(
  kind: AnchorKind,
  bytes: Uint8Array,
  note: string,
  noteDigest: string,
): AnchorText | undefined {
  return kind === 'git' ? readCommit(bytes, note) : readStamp(bytes, noteDigest);
}

function readCommit(bytes: Uint8Array, note: string): AnchorText | undefined {
  const text = exactText(bytes);
  if (text?.endsWith(`\n\n${note}`) !== true) return undefined;
  const message = text.slice(text.indexOf('\n\n') + 2);
  const ref = /^colibri checkpoint at \d+ audit rows on (refs\/[\w./-]{1,200})\n/.exec(message)?.[1];
  const seconds = /^committer .* (\d{1,12}) [+-]\d{4}$/m.exec(text)?.[1];
  return { ...(ref !== undefined && { ref }), ...timeOf(Number(seconds) * 1_000) };
}

/** `YYYYMMDDhhmmss`, a fraction perhaps, `Z`: how DER writes a GeneralizedTime behind its tag and its length. */
const TIME = /(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.\d{1,6})?Z/;
const TIME_TAG = 0x18;
/** Between the digest and the time stands a serial number only (RFC 3161, 2.4.2). */
const TIME_BYTES_MAX = 200;

function readStamp(bytes: Uint8Array, noteDigest: string): AnchorText | undefined {
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
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
