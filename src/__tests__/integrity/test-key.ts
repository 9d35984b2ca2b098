import { readFileSync } from 'node:fs';
import { noteSigner } from '../../integrity/signed-note.ts';

/** The vectors of this repository, which `tests/vectors/check.py` reads as well. */
export function readVectors(name: string) {
  return JSON.parse(readFileSync(new URL(`../../../tests/vectors/${name}`, import.meta.url), 'utf8'));
}

/** A signer from an RFC 8032 seed. The prefix is the fixed part of every Ed25519 key in PKCS #8. */
export function signerFromSeed(name: string, seedHex: string) {
  const der = Buffer.from(`302e020100300506032b657004220420${seedHex}`, 'hex');
  const pem = `-----BEGIN PRIVATE KEY-----\n${der.toString('base64')}\n-----END PRIVATE KEY-----\n`;
  return noteSigner(name, pem);
}
