/**
 * SHA-256 in plain JavaScript. WebCrypto answers each digest through a promise, which for the small texts of a log is
 * three to eight times as slow as this (PROOFS 2.7); it is left to signatures.
 */
export function sha256Hex(data: string | Uint8Array): string {
  if (typeof data !== 'string') return digest(data, data.length);
  // First the length, then the bytes: encoding may replace them with larger ones.
  const length = encode(data);
  return digest(scratch, length);
}

/** The same over bytes that come in pieces. */
export class Sha256Stream {
  readonly #state = Int32Array.from(START);
  readonly #rest = new Uint8Array(BLOCK);
  #restLength = 0;
  #length = 0;

  update(bytes: Uint8Array): this {
    // The words that all digests share are lent out for the length of this call only.
    h.set(this.#state);
    this.#length += bytes.length;
    let at = 0;
    if (this.#restLength > 0) {
      at = Math.min(BLOCK - this.#restLength, bytes.length);
      this.#rest.set(bytes.subarray(0, at), this.#restLength);
      this.#restLength += at;
      if (this.#restLength < BLOCK) return this;
      compress(this.#rest, 0);
    }
    for (; at + BLOCK <= bytes.length; at += BLOCK) compress(bytes, at);
    this.#rest.set(bytes.subarray(at));
    this.#restLength = bytes.length - at;
    this.#state.set(h);
    return this;
  }

  digest(): string {
    h.set(this.#state);
    return finish(this.#rest.subarray(0, this.#restLength), this.#length);
  }
}

const encoder = new TextEncoder();
let scratch = new Uint8Array(65_536);

/** Writes a text into the scratch bytes and answers how many they are. */
function encode(text: string): number {
  if (text.length * 3 > scratch.length) scratch = new Uint8Array(text.length * 3);
  return encoder.encodeInto(text, scratch).written;
}

const K = Int32Array.from(
  `428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5 d807aa98 12835b01 243185be 550c7dc3
  72be5d74 80deb1fe 9bdc06a7 c19bf174 e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da
  983e5152 a831c66d b00327c8 bf597fc7 c6e00bf3 d5a79147 06ca6351 14292967 27b70a85 2e1b2138 4d2c6dfc 53380d13
  650a7354 766a0abb 81c2c92e 92722c85 a2bfe8a1 a81a664b c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070
  19a4c116 1e376c08 2748774c 34b0bcb5 391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3 748f82ee 78a5636f 84c87814 8cc70208
  90befffa a4506ceb bef9a3f7 c67178f2`
    .split(/\s+/)
    .map((word) => Number.parseInt(word, 16) | 0),
);
const START = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

const BLOCK = 64;
const LENGTH_BYTES = 8;
const w = new Int32Array(BLOCK);
const h = new Int32Array(8);
const tail = new Uint8Array(2 * BLOCK);
const tailView = new DataView(tail.buffer);

function digest(bytes: Uint8Array, length: number): string {
  h.set(START);
  const whole = length - (length % BLOCK);
  for (let at = 0; at < whole; at += BLOCK) compress(bytes, at);
  return finish(bytes.subarray(whole, length), length);
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
  for (let at = 0; at < end; at += BLOCK) compress(tail, at);
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
    const t1 = (last + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
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
  h[0] = (h[0]! + a) | 0;
  h[1] = (h[1]! + b) | 0;
  h[2] = (h[2]! + c) | 0;
  h[3] = (h[3]! + d) | 0;
  h[4] = (h[4]! + e) | 0;
  h[5] = (h[5]! + f) | 0;
  h[6] = (h[6]! + g) | 0;
  h[7] = (h[7]! + last) | 0;
}

const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

function toHex(): string {
  let text = '';
  for (const word of h)
    text +=
      PAIRS[word >>> 24]! + PAIRS[(word >>> 16) & 0xff]! + PAIRS[(word >>> 8) & 0xff]! + PAIRS[word & 0xff]!;
  return text;
}
