/// <reference lib="dom" />
import { sha256Hex } from '../sha256.ts';

/** What stands for `node:crypto` in the browser: SHA-256 in plain JavaScript, Ed25519 through WebCrypto. */
export function hash(_algorithm: string, data: string | Uint8Array): string {
  return sha256Hex(data);
}

/** The raw bytes of an Ed25519 public key, as base64url. */
interface RawKey {
  readonly x: string;
}

export function createPublicKey({ key }: { readonly key: RawKey }): RawKey {
  return key;
}

/** This browser cannot check Ed25519 signatures. Nothing is known about them then, neither good nor bad. */
export class NoEd25519 extends Error {}

/** A signature was met that is still being checked. */
class Unsettled extends Error {
  readonly settle: () => Promise<void>;

  constructor(settle: () => Promise<void>) {
    super('a signature is still being checked');
    this.settle = settle;
  }
}

const known = new Map<string, boolean>();

/**
 * Node's `verify` answers at once and WebCrypto does not. So this one answers what is known by now and otherwise
 * stops its caller: `settled` runs the caller again when the answer is there.
 */
export function verify(_algorithm: null, data: Uint8Array, key: RawKey, signature: Uint8Array): boolean {
  const question = [key.x, sha256Hex(signature), sha256Hex(data)].join(' ');
  const answer = known.get(question);
  if (answer !== undefined) return answer;
  throw new Unsettled(async () => {
    known.set(question, await verifyInBrowser(Uint8Array.from(data), key, Uint8Array.from(signature)));
  });
}

/** Runs `work`, which may check signatures, until all of them are checked. */
export async function settled<T>(work: () => T): Promise<T> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof Unsettled)) throw error;
      await error.settle();
    }
  }
}

async function verifyInBrowser(
  data: Uint8Array<ArrayBuffer>,
  { x }: RawKey,
  signature: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  let key: CryptoKey;
  try {
    const jwk = { kty: 'OKP', crv: 'Ed25519', x };
    key = await crypto.subtle.importKey('jwk', jwk, { name: 'Ed25519' }, false, ['verify']);
  } catch (cause) {
    throw new NoEd25519('this browser cannot check Ed25519 signatures', { cause });
  }
  return await crypto.subtle.verify({ name: 'Ed25519' }, key, signature, data);
}

// The page signs nothing and makes no keys.
function never(): never {
  throw new Error('not in the browser');
}

export { never as createHash, never as createPrivateKey, never as generateKeyPairSync, never as sign };
