import { sha512 } from './sha512.ts';

// Ed25519 as RFC 8032 5.1.7 checks it, in plain JavaScript: not every browser has it, none has it on a page without
// https, and WebCrypto answers later, where the verifier wants to know now. It handles no secrets, so nothing leaks by time.

/** The prime of the field and the order of the base point. */
const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;
const D = /* @__PURE__ */ mod(-121_665n * power(121_666n, P - 2n));

/** A point as X/Z and Y/Z, with T = XY/Z. */
interface Point {
  readonly x: bigint;
  readonly y: bigint;
  readonly z: bigint;
  readonly t: bigint;
}

const ZERO: Point = { x: 0n, y: 1n, z: 1n, t: 0n };
const BASE = /* @__PURE__ */ basePoint();

/** The point with y = 4/5 and an even x. */
function basePoint(): Point {
  return pointOf(mod(4n * power(5n, P - 2n)), 0n) ?? ZERO;
}

/** Whether 64 bytes are the signature of a message under a public key of 32 bytes. */
export function verifyEd25519(message: Uint8Array, publicKey: Uint8Array, signature: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const encoded = numberOf(publicKey);
  const key = pointOf(encoded % 2n ** 255n, encoded >> 255n);
  const s = numberOf(signature.subarray(32));
  if (key === undefined || s >= L) return false;
  const r = signature.subarray(0, 32);
  const challenge = numberOf(sha512(joined(r, publicKey, message))) % L;
  const minusKey = { ...key, x: P - key.x, t: P - key.t };
  return encode(sumOf(s, BASE, challenge, minusKey)) === numberOf(r);
}

/** a·A + b·B, bit by bit from the top. */
function sumOf(a: bigint, pointA: Point, b: bigint, pointB: Point): Point {
  const [bitsA, bitsB] = [bitsOf(a), bitsOf(b)];
  const both = add(pointA, pointB);
  let sum = ZERO;
  for (let i = 0; i < bitsA.length; i += 1) {
    sum = add(sum, sum);
    const [hasA, hasB] = [bitsA[i] === '1', bitsB[i] === '1'];
    if (hasA || hasB) sum = add(sum, hasA && hasB ? both : hasA ? pointA : pointB);
  }
  return sum;
}

function bitsOf(scalar: bigint): string {
  return scalar.toString(2).padStart(256, '0');
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
  let x = mod(u * v ** 3n * power(mod(u * v ** 7n), (P - 5n) / 8n));
  if (mod(v * x * x) !== u) x = mod(x * power(2n, (P - 1n) / 4n));
  if (mod(v * x * x) !== u || (x === 0n && odd === 1n)) return undefined;
  if (x % 2n !== odd) x = P - x;
  return { x, y, z: 1n, t: mod(x * y) };
}

function encode({ x, y, z }: Point): bigint {
  const inverse = power(mod(z), P - 2n);
  return mod(y * inverse) | ((mod(x * inverse) % 2n) << 255n);
}

function mod(value: bigint): bigint {
  const rest = value % P;
  return rest < 0n ? rest + P : rest;
}

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  let square = base;
  for (let rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest % 2n === 1n) result = (result * square) % P;
    square = (square * square) % P;
  }
  return result;
}

/** The number that bytes are, the smallest first. */
function numberOf(bytes: Uint8Array): bigint {
  let value = 0n;
  for (const byte of [...bytes].reverse()) value = (value << 8n) | BigInt(byte);
  return value;
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
