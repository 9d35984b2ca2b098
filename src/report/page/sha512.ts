// SHA-512 (FIPS 180-4) for Ed25519, which hashes a few hundred bytes for each signature. Its constants are computed here
// as the standard defines them: the first bits after the point of the roots of the first primes.

const BLOCK = 128;
const LENGTH_BYTES = 16;
const MASK = 2n ** 64n - 1n;
const CONSTANTS = /* @__PURE__ */ makeConstants();

export function sha512(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array(Math.ceil((bytes.length + 1 + LENGTH_BYTES) / BLOCK) * BLOCK);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, 8n * BigInt(bytes.length));
  let state = CONSTANTS.start;
  for (let at = 0; at < padded.length; at += BLOCK) state = compress(state, view, at);
  return Buffer.from(state.map((word) => word.toString(16).padStart(16, '0')).join(''), 'hex');
}

function compress(before: readonly bigint[], view: DataView, at: number): bigint[] {
  const w = Array.from({ length: 16 }, (_, i) => view.getBigUint64(at + 8 * i));
  for (let i = 16; i < CONSTANTS.rounds.length; i += 1) {
    const [x, y] = [w[i - 15]!, w[i - 2]!];
    const s0 = right(x, 1n) ^ right(x, 8n) ^ (x >> 7n);
    const s1 = right(y, 19n) ^ right(y, 61n) ^ (y >> 6n);
    w.push((w[i - 16]! + s0 + w[i - 7]! + s1) & MASK);
  }
  let state = before;
  CONSTANTS.rounds.forEach((constant, i) => {
    const [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n, g = 0n, h = 0n] = state;
    const s1 = right(e, 14n) ^ right(e, 18n) ^ right(e, 41n);
    const t1 = h + s1 + ((e & f) ^ (~e & g & MASK)) + constant + w[i]!;
    const s0 = right(a, 28n) ^ right(a, 34n) ^ right(a, 39n);
    const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    state = [(t1 + t2) & MASK, a, b, c, (d + t1) & MASK, e, f, g];
  });
  return state.map((value, i) => (value + before[i]!) & MASK);
}

function right(value: bigint, by: bigint): bigint {
  return (value >> by) | ((value << (64n - by)) & MASK);
}

function makeConstants() {
  const primes: bigint[] = [];
  for (let n = 2n; primes.length < 80; n += 1n) if (primes.every((prime) => n % prime !== 0n)) primes.push(n);
  const start: readonly bigint[] = primes.slice(0, 8).map((prime) => rootBits(prime, 2n));
  return { start, rounds: primes.map((prime) => rootBits(prime, 3n)) };
}

/** The first 64 bits after the point of a root of a small prime. */
function rootBits(prime: bigint, degree: bigint): bigint {
  const target = prime << (64n * degree);
  let [low, high] = [0n, 2n ** 68n];
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (middle ** degree <= target) low = middle;
    else high = middle;
  }
  return low & MASK;
}
