import { L, littleEndian, modPower, P } from '../../integrity/ed25519-point.ts';
import { sha512 } from './sha2.ts';

// Ed25519 as RFC 8032 5.1.7 checks it, in plain JavaScript: not every browser has it, none has it on a page without
// https, and WebCrypto answers later, where the verifier wants to know now. It handles no secrets, so nothing leaks by time.

/** The curve's d, -121665/121666 in the field. */
const D =
  37_095_705_934_669_439_343_138_083_508_754_565_189_542_113_879_843_219_016_388_785_533_085_940_283_555n;

/** A point as X/Z and Y/Z, with T = XY/Z. This one is the neutral one. */
const ZERO = { x: 0n, y: 1n, z: 1n, t: 0n };
type Point = Readonly<typeof ZERO>;
/** The point with y = 4/5 and an even x. */
const BASE = /* @__PURE__ */ pointOf(mod(4n * modPower(5n, P - 2n)), 0n) ?? ZERO;

/** Whether 64 bytes are the signature of a message under a public key of 32 bytes. */
export function verifyEd25519(message: Uint8Array, publicKey: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const encoded = littleEndian(publicKey);
  const key = pointOf(encoded % 2n ** 255n, encoded >> 255n);
  const s = littleEndian(signature.subarray(32));
  if (key === undefined || s >= L) return false;
  const r = signature.subarray(0, 32);
  const challenge = littleEndian(sha512(Buffer.concat([r, publicKey, message]))) % L;
  const minusKey = { ...key, x: P - key.x, t: P - key.t };
  return encode(sumOf(s, BASE, challenge, minusKey)) === littleEndian(r);
}

/** a·A + b·B, bit by bit from the top. */
function sumOf(a: bigint, pointA: Point, b: bigint, pointB: Point): Point {
  const [bitsA = '', bitsB = ''] = [a, b].map((scalar) => scalar.toString(2).padStart(256, '0'));
  const both = add(pointA, pointB);
  let sum = ZERO;
  for (let i = 0; i < bitsA.length; i += 1) {
    sum = add(sum, sum);
    const [hasA, hasB] = [bitsA[i] === '1', bitsB[i] === '1'];
    if (hasA || hasB) sum = add(sum, hasA && hasB ? both : hasA ? pointA : pointB);
  }
  return sum;
}

/** Holds for any two points of the curve, for one with itself too (RFC 8032 5.1.4). */
function add(p: Point, q: Point): Point {
  const a = ((p.y - p.x) * (q.y - q.x)) % P;
  const b = ((p.y + p.x) * (q.y + q.x)) % P;
  const c = ((2n * p.t * q.t) % P) * D;
  const d = 2n * p.z * q.z;
  const [e, f, g, h] = [b - a, (d - c) % P, (d + c) % P, b + a];
  return { x: (e * f) % P, y: (g * h) % P, z: (f * g) % P, t: (e * h) % P };
}

/** The point with this y and the x that is odd or even, unless there is none (RFC 8032 5.1.3). */
function pointOf(y: bigint, odd: bigint): Point | undefined {
  if (y >= P) return undefined;
  const [u, v] = [mod(y * y - 1n), mod(D * y * y + 1n)];
  let x = mod(u * v ** 3n * modPower(mod(u * v ** 7n), (P - 5n) / 8n));
  if (mod(v * x * x) !== u) x = mod(x * modPower(2n, (P - 1n) / 4n));
  if (mod(v * x * x) !== u || (x === 0n && odd === 1n)) return undefined;
  if (x % 2n !== odd) x = P - x;
  return { x, y, z: 1n, t: mod(x * y) };
}

function encode({ x, y, z }: Point): bigint {
  const inverse = modPower(mod(z), P - 2n);
  return mod(y * inverse) | ((mod(x * inverse) % 2n) << 255n);
}

function mod(value: bigint): bigint {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}
