// SHA-512 (FIPS 180-4) for Ed25519, which hashes a few hundred bytes for each signature. Its constants are computed here
// as the standard defines them: the first bits behind the point of the roots of the first primes.

const BLOCK = 128;
const LENGTH_BYTES = 16;
const MASK = 2n ** 64n - 1n;

interface Constants {
  readonly start: readonly bigint[];
  readonly rounds: readonly bigint[];
}

let made: Constants | undefined;

export function sha512(bytes: Uint8Array): Uint8Array {
  made ??= makeConstants();
  const { start, rounds } = made;
  const padded = pad(bytes);
  let state = start;
  for (let at = 0; at < padded.length; at += BLOCK)
    state = compress(state, new DataView(padded.buffer, at, BLOCK), rounds);
  const digest = new Uint8Array(64);
  const view = new DataView(digest.buffer);
  state.forEach((word, i) => {
    view.setBigUint64(8 * i, word);
  });
  return digest;
}

function pad(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const length = Math.ceil((bytes.length + 1 + LENGTH_BYTES) / BLOCK) * BLOCK;
  const padded = new Uint8Array(length);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  new DataView(padded.buffer).setBigUint64(length - 8, 8n * BigInt(bytes.length));
  return padded;
}

function compress(before: readonly bigint[], block: DataView, rounds: readonly bigint[]): bigint[] {
  const w = rounds.map((_, i) => (i < 16 ? block.getBigUint64(8 * i) : 0n));
  for (let i = 16; i < w.length; i += 1) {
    const [x, y] = [word(w, i - 15), word(w, i - 2)];
    const s0 = right(x, 1n) ^ right(x, 8n) ^ (x >> 7n);
    const s1 = right(y, 19n) ^ right(y, 61n) ^ (y >> 6n);
    w[i] = (word(w, i - 16) + s0 + word(w, i - 7) + s1) & MASK;
  }
  let state = before;
  rounds.forEach((constant, i) => {
    state = step(state, constant + word(w, i));
  });
  return state.map((value, i) => (value + word(before, i)) & MASK);
}

function step(state: readonly bigint[], added: bigint): bigint[] {
  const [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n, g = 0n, h = 0n] = state;
  const s1 = right(e, 14n) ^ right(e, 18n) ^ right(e, 41n);
  const t1 = h + s1 + ((e & f) ^ (~e & g & MASK)) + added;
  const s0 = right(a, 28n) ^ right(a, 34n) ^ right(a, 39n);
  const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
  return [(t1 + t2) & MASK, a, b, c, (d + t1) & MASK, e, f, g];
}

function right(value: bigint, by: bigint): bigint {
  return (value >> by) | ((value << (64n - by)) & MASK);
}

function word(words: readonly bigint[], i: number): bigint {
  return words[i] ?? 0n;
}

function makeConstants(): Constants {
  const primes: bigint[] = [];
  for (let n = 2n; primes.length < 80; n += 1n) if (primes.every((prime) => n % prime !== 0n)) primes.push(n);
  return {
    start: primes.slice(0, 8).map((prime) => rootBits(prime, 2n)),
    rounds: primes.map((prime) => rootBits(prime, 3n)),
  };
}

/** The first 64 bits behind the point of a root of a small prime. */
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
