import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { exactText, sha256Hex } from './digest.ts';
import { isUsablePoint, isUsableSignature } from './ed25519-point.ts';

export const NOTE_BYTES_MAX = 1_000_000;
export const NOTE_SIGNATURES_MAX = 100;

/** A text that is not what its format demands, or not signed as it says. The message tells what is wrong. */
export class FormatError extends Error {
  override readonly name: string = 'FormatError';
}

/** A well-formed note on which nobody who is known has signed. */
export class NoKnownKeyError extends FormatError {
  override readonly name = 'NoKnownKeyError';
}

/**
 * Opens a C2SP signed note written by a stranger, or throws `FormatError`. It answers the text with at least one signature
 * that was checked; signatures by keys nobody named are passed over. One bad signature by a known key condemns the note,
 * whatever the others say.
 */
export function openNote(note: Uint8Array | string, keys: readonly VerifierKey[]) {
  const { text, signatures } = splitNote(note);
  const verified = new Map<string, (typeof signatures)[number]>();
  for (const signature of signatures) {
    const { name, id } = signature;
    const [key, second] = keys.filter((known) => known.name === name && known.id === id);
    if (second !== undefined) throw new FormatError(`two known keys are ${name}+${id}`);
    // As in Go's note.Open only the first signature of a key counts; repeats are dropped unread.
    if (key === undefined || verified.has(`${name} ${id}`)) continue;
    const bytes = Buffer.from(signature.base64, 'base64').subarray(4);
    // Length, R and S are checked here because libraries differ in what they make of odd ones.
    if (!isUsableSignature(bytes) || !verify(null, Buffer.from(text), key.publicKey, bytes))
      throw new FormatError(`the signature by ${name}+${id} is not valid`);
    verified.set(`${name} ${id}`, signature);
  }
  if (verified.size === 0) throw new NoKnownKeyError('no signature is by a known key');
  return { text, verified: [...verified.values()] };
}

/** The signed note of a text, which must end in a newline. */
export function signNote(text: string, signer: NoteSigner): string {
  if (!text.endsWith('\n')) throw new FormatError('the text does not end in a newline');
  if (!isNoteText(text)) throw new FormatError('the text holds a control character or a lone surrogate');
  const signature = sign(null, Buffer.from(text), signer.privateKey);
  const base64 = Buffer.concat([Buffer.from(signer.id, 'hex'), signature]).toString('base64');
  const note = `${text}\n${SIGNATURE_MARK}${signer.name} ${base64}\n`;
  if (Buffer.byteLength(note) > NOTE_BYTES_MAX) throw new FormatError('the note is too large');
  return note;
}

/** An em dash and a space. */
const SIGNATURE_MARK = '\u2014 ';

function splitNote(note: Uint8Array | string) {
  if (Buffer.byteLength(note) > NOTE_BYTES_MAX) throw new FormatError('the note is too large');
  const whole = exactText(note);
  if (whole === undefined || !isNoteText(whole)) throw new FormatError('the note is not plain UTF-8 text');
  const blank = whole.lastIndexOf('\n\n');
  if (blank < 0) throw new FormatError('no blank line separates text and signatures');
  const lines = whole.slice(blank + 2).split('\n');
  if (lines.pop() !== '' || lines.length === 0) throw new FormatError('no signature line ends the note');
  if (lines.length > NOTE_SIGNATURES_MAX) throw new FormatError('the note has too many signatures');
  return { text: whole.slice(0, blank + 1), signatures: lines.map(parseSignature) };
}

/** Key id and signature are together in `base64`, as the note spells them. */
function parseSignature(line: string) {
  const [name = '', base64 = '', ...rest] = line.slice(SIGNATURE_MARK.length).split(' ');
  const bytes = decodeBase64(base64);
  const wellFormed = line.startsWith(SIGNATURE_MARK) && rest.length === 0 && isKeyName(name);
  if (!wellFormed || bytes === undefined || bytes.length < 5)
    throw new FormatError('a signature line is malformed');
  return { name, id: bytes.toString('hex', 0, 4), base64 };
}

/** A public key that someone decided to trust, under the name it signs with. Its `id` names it and proves nothing. */
export type VerifierKey = Readonly<ReturnType<typeof parseVerifierKey>>;

/** The signature type of plain Ed25519, the first byte of every encoded key here. */
const ED25519_TYPE = 0x01;

/**
 * Reads `name+id+base64(type, key)`, the C2SP text form of a verifier key. This is where a key is registered,
 * so this is where weak ones are refused: on a point of small order Node 20 and Node 24 disagree.
 */
export function parseVerifierKey(text: string) {
  // Base64 may hold a plus sign itself, so only the first two of them separate.
  const [, name, id, base64] = /^([^+]*)\+([^+]*)\+(.*)$/s.exec(text) ?? [];
  if (name === undefined || base64 === undefined) throw new FormatError('a verifier key is name+id+key');
  const encoded = decodeBase64(base64);
  if (encoded?.length !== 33 || encoded[0] !== ED25519_TYPE)
    throw new FormatError('not an Ed25519 verifier key');
  if (id !== keyId(name, encoded)) throw new FormatError('the key id does not belong to this name and key');
  const point = encoded.subarray(1);
  if (!isUsablePoint(point)) throw new FormatError('the public key is a weak or malformed point');
  const key = { kty: 'OKP', crv: 'Ed25519', x: point.toString('base64url') };
  return { name, id, publicKey: createPublicKey({ format: 'jwk', key }) };
}

/** The text form of an Ed25519 public key under a name. */
export function formatVerifierKey(name: string, publicKey: KeyObject): string {
  const { crv, x } = publicKey.export({ format: 'jwk' });
  if (crv !== 'Ed25519' || x === undefined) throw new FormatError('not an Ed25519 key');
  const encoded = Buffer.concat([Buffer.of(ED25519_TYPE), Buffer.from(x, 'base64url')]);
  return `${name}+${keyId(name, encoded)}+${encoded.toString('base64')}`;
}

function keyId(name: string, encodedKey: Uint8Array): string {
  if (!isKeyName(name)) throw new FormatError('a key name is not empty and holds no space and no plus');
  return sha256Hex(Buffer.concat([Buffer.from(`${name}\n`), encodedKey])).slice(0, 8);
}

/** A fresh key: the private half as PKCS #8 PEM, to be kept apart, and the public half to be handed out. */
export function generateNoteKey(name: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const privateKeyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { privateKeyPem, verifierKey: formatVerifierKey(name, publicKey) };
}

export type NoteSigner = ReturnType<typeof noteSigner>;

/** The signer for a key that `generateNoteKey` made. `verifierKey` is its public half in the form that others register. */
export function noteSigner(name: string, privateKeyPem: string) {
  const privateKey = createPrivateKey(privateKeyPem);
  const verifierKey = formatVerifierKey(name, createPublicKey(privateKey));
  return { name, id: parseVerifierKey(verifierKey).id, privateKey, verifierKey };
}

const NAME_MARKS = /[+\p{White_Space}]/u;

/** Whether a key may have this name: something, without spaces of any script and without a plus sign. */
export function isKeyName(name: string): boolean {
  return name !== '' && !NAME_MARKS.test(name) && isNoteText(name);
}

/** Whether a text may be part of a note: well-formed, and no control character but the newline. */
export function isNoteText(text: string): boolean {
  return text.isWellFormed() && !CONTROL.test(text);
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for.
const CONTROL = /[\x00-\x09\x0b-\x1f]/;

/** The bytes of standard base64, or nothing unless the text is the only spelling of those bytes. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // Node skips what it does not understand; encoding again shows whether it skipped anything.
  return bytes.toString('base64') === text ? bytes : undefined;
}
