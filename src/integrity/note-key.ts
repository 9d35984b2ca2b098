import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { decodeBase64, encodeBase64, FormatError, isNoteText } from './c2sp-text.ts';
import { sha256Hex } from './digest.ts';
import { isUsablePoint } from './ed25519-point.ts';

/** A public key that someone decided to trust, under the name it signs with. */
export interface VerifierKey {
  readonly name: string;
  /** The first four bytes of the key's digest, as eight hex digits. It names the key and proves nothing. */
  readonly id: string;
  readonly publicKey: KeyObject;
}

export type NoteSigner = ReturnType<typeof noteSigner>;

/** The signature type of plain Ed25519, the first byte of every encoded key here. */
const ED25519_TYPE = 0x01;

/**
 * Reads `name+id+base64(type, key)`, the C2SP text form of a verifier key. This is where a key is registered,
 * so this is where weak ones are refused: on a point of small order Node 20 and Node 24 disagree.
 */
export function parseVerifierKey(text: string): VerifierKey {
  // Base64 may hold a plus sign itself, so only the first two of them separate.
  const [, name, id, base64] = /^([^+]*)\+([^+]*)\+(.*)$/s.exec(text) ?? [];
  if (name === undefined || base64 === undefined) throw new FormatError('a verifier key is name+id+key');
  requireKeyName(name);
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
  requireKeyName(name);
  const encoded = encodeKey(publicKey);
  return `${name}+${keyId(name, encoded)}+${encodeBase64(encoded)}`;
}

/** A fresh key: the private half as PKCS #8 PEM, to be kept apart, and the public half to be handed out. */
export function generateNoteKey(name: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const privateKeyPem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return { privateKeyPem, verifierKey: formatVerifierKey(name, publicKey) };
}

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

function requireKeyName(name: string): void {
  if (!isKeyName(name)) throw new FormatError('a key name is not empty and holds no space and no plus');
}

function keyId(name: string, encodedKey: Uint8Array): string {
  return sha256Hex(Buffer.concat([Buffer.from(`${name}\n`), encodedKey])).slice(0, 8);
}

function encodeKey(publicKey: KeyObject): Buffer {
  const { crv, x } = publicKey.export({ format: 'jwk' });
  if (crv !== 'Ed25519' || x === undefined) throw new FormatError('not an Ed25519 key');
  return Buffer.concat([Buffer.of(ED25519_TYPE), Buffer.from(x, 'base64url')]);
}
