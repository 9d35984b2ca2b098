// SHA-256 and SHA-512 (FIPS 180-4) in plain JavaScript. WebCrypto answers each digest through a promise, which for the
// small texts of a log is three to eight times as slow as this (PROOFS 2.7), and some pages have none. The constants are
// computed as the standard defines them: the first bits after the point of the roots of the first primes.

const MASK = 2n ** 64n - 1n;
const PRIMES = /* @__PURE__ */ firstPrimes(80);
const START_512 = /* @__PURE__ */ rootBits(8, 2n);
const ROUNDS_512 = /* @__PURE__ */ rootBits(80, 3n);
const START = /* @__PURE__ */ upperHalves(START_512);
const ROUNDS = /* @__PURE__ */ upperHalves(ROUNDS_512);

function firstPrimes(count: number): readonly bigint[] {
  const primes: bigint[] = [];
  for (let n = 2n; primes.length < count; n += 1n)
    if (primes.every((prime) => n % prime !== 0n)) primes.push(n);
  return primes;
}

/** The first 64 bits after the point of the roots of the first primes. */
function rootBits(count: number, degree: bigint): readonly bigint[] {
  return PRIMES.slice(0, count).map((prime) => {
    const target = prime << (64n * degree);
    let [low, high] = [0n, 2n ** 68n];
    while (high - low > 1n) {
      const middle = (low + high) / 2n;
      if (middle ** degree <= target) low = middle;
      else high = middle;
    }
    return low & MASK;
  });
}

function upperHalves(words: readonly bigint[]): Int32Array {
  return Int32Array.from(words, (word) => Number(word >> 32n) | 0);
}

/** The SHA-256 of a text or of bytes, in hex. */
export function sha256Hex(data: string | Uint8Array): string {
  // First the length, then the bytes: encoding may replace them with larger ones.
  const length = typeof data === 'string' ? encode(data) : data.length;
  const bytes = typeof data === 'string' ? scratch : data;
  h.set(START);
  const whole = compressBlocks(bytes, length);
  return finish(bytes.subarray(whole, length), length);
}

/** The same over bytes that come in pieces. */
export class Sha256Stream {
  readonly #state = START.slice();
  #rest = new Uint8Array();
  #length = 0;

  update(bytes: Uint8Array): this {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    // The words that all digests share are lent out for the length of this call only.
    h.set(this.#state);
    this.#rest = all.slice(compressBlocks(all, all.length));
    this.#state.set(h);
    this.#length += bytes.length;
    return this;
  }

  digest(): string {
    h.set(this.#state);
    return finish(this.#rest, this.#length);
  }
}

const encoder = new TextEncoder();
let scratch = new Uint8Array(65_536);

/** Writes a text into the scratch bytes and answers how many they are. */
function encode(text: string): number {
  if (text.length * 3 > scratch.length) scratch = new Uint8Array(text.length * 3);
  return encoder.encodeInto(text, scratch).written;
}

const BLOCK = 64;
const LENGTH_BYTES = 8;
const w = new Int32Array(BLOCK);
const h = new Int32Array(8);
const tail = new Uint8Array(2 * BLOCK);
const tailView = new DataView(tail.buffer);

/** Takes in as many whole blocks as there are and answers how many bytes they are. */
function compressBlocks(bytes: Uint8Array, length: number): number {
  const whole = length - (length % BLOCK);
  for (let at = 0; at < whole; at += BLOCK) compress(bytes, at);
  return whole;
}

/** Ends a digest over `length` bytes, of which `rest` filled no block. */
function finish(rest: Uint8Array, length: number): string {
  tail.fill(0);
  tail.set(rest);
  tail[rest.length] = 0x80;
  const end = rest.length + 1 + LENGTH_BYTES > BLOCK ? 2 * BLOCK : BLOCK;
  // The length counts bits; beyond 2^29 bytes it needs its upper half.
  tailView.setUint32(end - 8, Math.floor(length / 0x20000000));
  tailView.setUint32(end - 4, (length << 3) >>> 0);
  compressBlocks(tail, end);
  return toHex();
}

// One long loop body: this is where all the time of a verification goes.
function compress(bytes: Uint8Array, start: number): void {
  for (let i = 0, at = start; i < 16; i += 1, at += 4)
    w[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
  for (let i = 16; i < BLOCK; i += 1) {
    const x = w[i - 15]!;
    const y = w[i - 2]!;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
  }
  let a = h[0]!;
  let b = h[1]!;
  let c = h[2]!;
  let d = h[3]!;
  let e = h[4]!;
  let f = h[5]!;
  let g = h[6]!;
  let last = h[7]!;
  for (let i = 0; i < BLOCK; i += 1) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (last + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i]! + w[i]!) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    last = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  const sums = [a, b, c, d, e, f, g, last];
  for (let i = 0; i < sums.length; i += 1) h[i]! += sums[i]!;
}

const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

function toHex(): string {
  let text = '';
  for (const word of h)
    text +=
      PAIRS[word >>> 24]! + PAIRS[(word >>> 16) & 0xff]! + PAIRS[(word >>> 8) & 0xff]! + PAIRS[word & 0xff]!;
  return text;
}

const BLOCK_512 = 128;

/** The SHA-512 of some bytes. For Ed25519, which hashes a few hundred bytes for each signature: not made to be fast. */
export function sha512(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array(Math.ceil((bytes.length + 17) / BLOCK_512) * BLOCK_512);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, 8n * BigInt(bytes.length));
  let state = START_512;
  for (let at = 0; at < padded.length; at += BLOCK_512) state = compress512(state, view, at);
  return Buffer.from(state.map((word) => word.toString(16).padStart(16, '0')).join(''), 'hex');
}

function compress512(before: readonly bigint[], view: DataView, at: number): bigint[] {
  const w = Array.from({ length: 16 }, (_, i) => view.getBigUint64(at + 8 * i));
  for (let i = 16; i < ROUNDS_512.length; i += 1) {
    const [x, y] = [w[i - 15]!, w[i - 2]!];
    const s0 = right(x, 1n) ^ right(x, 8n) ^ (x >> 7n);
    const s1 = right(y, 19n) ^ right(y, 61n) ^ (y >> 6n);
    w.push((w[i - 16]! + s0 + w[i - 7]! + s1) & MASK);
  }
  let state = before;
  ROUNDS_512.forEach((constant, i) => {
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
