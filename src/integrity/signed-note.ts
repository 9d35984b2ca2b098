import { sign, verify } from 'node:crypto';
import { decodeBase64, isNoteText } from './c2sp-text.ts';
import { isUsableSignature } from './ed25519-point.ts';
import { isKeyName, type NoteSigner, type VerifierKey } from './note-key.ts';
import { exactText } from './utf8.ts';

export const NOTE_BYTES_MAX = 1_000_000;
export const NOTE_SIGNATURES_MAX = 100;

export type NoteFault = 'malformed' | 'bad-signature' | 'no-known-key' | 'ambiguous-key';

/** Why a note is not to be believed. */
export class NoteError extends Error {
  override readonly name = 'NoteError';
  readonly fault: NoteFault;

  constructor(fault: NoteFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

interface NoteSignature {
  readonly name: string;
  readonly id: string;
  /** Key id and signature together, as the note spells them. */
  readonly base64: string;
}

/**
 * Opens a C2SP signed note written by a stranger, or throws `NoteError`. It answers the text with at least one signature
 * that was checked; signatures by keys nobody named are passed over. One bad signature by a known key condemns the note,
 * whatever the others say.
 */
export function openNote(note: Uint8Array | string, keys: readonly VerifierKey[]) {
  const { text, signatures } = splitNote(note);
  const verified = new Map<string, NoteSignature>();
  for (const signature of signatures) {
    const label = `${signature.name} ${signature.id}`;
    const key = findKey(keys, signature);
    // As in Go's note.Open only the first signature of a key counts; repeats are dropped unread.
    if (key === undefined || verified.has(label)) continue;
    requireSignature(text, signature, key);
    verified.set(label, signature);
  }
  if (verified.size === 0) throw new NoteError('no-known-key', 'no signature is by a known key');
  return { text, verified: [...verified.values()] };
}

/** The signed note of a text, which must end in a newline. */
export function signNote(text: string, signer: NoteSigner): string {
  if (!text.endsWith('\n')) throw malformed('the text does not end in a newline');
  if (!isNoteText(text)) throw malformed('the text holds a control character or a lone surrogate');
  const signature = sign(null, Buffer.from(text), signer.privateKey);
  const base64 = Buffer.concat([Buffer.from(signer.id, 'hex'), signature]).toString('base64');
  const note = `${text}\n${SIGNATURE_MARK}${signer.name} ${base64}\n`;
  if (Buffer.byteLength(note) > NOTE_BYTES_MAX) throw malformed('the note is too large');
  return note;
}

/** An em dash and a space. */
const SIGNATURE_MARK = '\u2014 ';

function splitNote(note: Uint8Array | string): { text: string; signatures: readonly NoteSignature[] } {
  if (Buffer.byteLength(note) > NOTE_BYTES_MAX) throw malformed('the note is too large');
  const whole = exactText(note);
  if (whole === undefined || !isNoteText(whole)) throw malformed('the note is not plain UTF-8 text');
  const blank = whole.lastIndexOf('\n\n');
  if (blank < 0) throw malformed('no blank line separates text and signatures');
  const lines = whole.slice(blank + 2).split('\n');
  if (lines.pop() !== '' || lines.length === 0) throw malformed('no signature line ends the note');
  if (lines.length > NOTE_SIGNATURES_MAX) throw malformed('the note has too many signatures');
  return { text: whole.slice(0, blank + 1), signatures: lines.map(parseSignature) };
}

function parseSignature(line: string): NoteSignature {
  const [name = '', base64 = '', ...rest] = line.slice(SIGNATURE_MARK.length).split(' ');
  const bytes = decodeBase64(base64);
  const wellFormed = line.startsWith(SIGNATURE_MARK) && rest.length === 0 && isKeyName(name);
  if (!wellFormed || bytes === undefined || bytes.length < 5)
    throw malformed('a signature line is malformed');
  return { name, id: bytes.toString('hex', 0, 4), base64 };
}

function findKey(keys: readonly VerifierKey[], { name, id }: NoteSignature): VerifierKey | undefined {
  const [key, second] = keys.filter((known) => known.name === name && known.id === id);
  if (second !== undefined) throw new NoteError('ambiguous-key', `two known keys are ${name}+${id}`);
  return key;
}

function requireSignature(text: string, signature: NoteSignature, key: VerifierKey): void {
  const bytes = Buffer.from(signature.base64, 'base64').subarray(4);
  // Length, R and S are checked here because libraries differ in what they make of odd ones.
  if (isUsableSignature(bytes) && verify(null, Buffer.from(text), key.publicKey, bytes)) return;
  throw new NoteError('bad-signature', `the signature by ${signature.name}+${signature.id} is not valid`);
}

function malformed(message: string): NoteError {
  return new NoteError('malformed', message);
}
