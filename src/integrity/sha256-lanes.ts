import {
  ADD,
  type Code,
  constant,
  get,
  load,
  SELECT,
  set,
  shiftLeft,
  shiftRight,
  shuffle,
  store,
  wasmModule,
  XOR,
} from './wasm-code.ts';

/** SHA-256 of four messages side by side. The messages lie in `memory`, padded as the standard says. */
export interface Lanes {
  readonly memory: Buffer;
  /** Forgets what was taken in. */
  begin(): void;
  /** Takes in the 64 bytes at each of four addresses. */
  take(a: number, b: number, c: number, d: number): void;
  /** Writes the four digests of 32 bytes to these addresses. */
  end(a: number, b: number, c: number, d: number): void;
}

// What the functions keep in memory, 16 bytes for each word of 32 bits: the same word of all four messages.
const CONSTANTS_AT = 0;
const FIRST_STATE_AT = CONSTANTS_AT + 64 * 16;
const STATE_AT = FIRST_STATE_AT + 8 * 16;

/** From here on the memory is the caller's. */
export const LANES_FREE = STATE_AT + 8 * 16;

/**
 * A call of `crypto.hash` costs 0.45 µs however short the message is; here 64 bytes of one message cost 0.08 µs. So this is
 * for many short messages, and that for long ones. Undefined where the machine or the runtime has no vectors for it.
 */
export function createLanes(): Lanes | undefined {
  const module = wasmModule([
    { name: 'begin', parameters: 0, vectors: 0, code: beginCode() },
    { name: 'take', parameters: 4, vectors: VARIABLES, code: takeCode() },
    { name: 'end', parameters: 4, vectors: VARIABLES, code: endCode() },
  ]);
  const exports = instantiate(module);
  if (exports === undefined) return undefined;
  const { memory, begin, take, end } = exports;
  const words = new Uint32Array(memory.buffer);
  const primes = firstPrimes(64);
  fillLanes(words, CONSTANTS_AT, primes.map(Math.cbrt));
  fillLanes(words, FIRST_STATE_AT, primes.slice(0, 8).map(Math.sqrt));
  return { memory: Buffer.from(memory.buffer), begin, take, end };
}

/** V8 reserves gigabytes of addresses for any memory of WebAssembly, which a limit on addresses (ulimit -v) refuses. */
function instantiate(module: Uint8Array<ArrayBuffer>): Exports | undefined {
  try {
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module));
    return exports as unknown as Exports;
  } catch {
    return undefined;
  }
}

type OnFour = (a: number, b: number, c: number, d: number) => void;

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer };
  readonly begin: () => void;
  readonly take: OnFour;
  readonly end: OnFour;
}

/** The standard makes its constants so: the first 32 bits of each fraction. */
function fillLanes(words: Uint32Array, at: number, roots: readonly number[]): void {
  for (const [i, root] of roots.entries()) {
    const from = at / 4 + 4 * i;
    words.fill(Math.floor((root % 1) * 2 ** 32), from, from + 4);
  }
}

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n += 1) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes;
}

// The variables of each function, after the four addresses.
const word = (i: number) => 4 + (i % 16);
const state = (i: number) => 20 + (i & 7);
const SPARE = [28, 29, 30] as const;
const VARIABLES = 27;

const BIG_ENDIAN = [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12];

function beginCode(): Code {
  return range(8).flatMap((i) => [
    ...constant(0),
    ...[...constant(0), ...load(FIRST_STATE_AT + 16 * i)],
    ...store(STATE_AT + 16 * i),
  ]);
}

function takeCode(): Code {
  return [
    ...range(4).flatMap((quarter) => [
      ...range(4).flatMap((lane) => [...loadWords(lane, 16 * quarter), ...set(word(4 * quarter + lane))]),
      ...transpose(4 * quarter),
    ]),
    ...range(8).flatMap((i) => [...constant(0), ...load(STATE_AT + 16 * i), ...set(state(i))]),
    ...range(64).flatMap(roundCode),
    ...range(8).flatMap((i) => [
      ...constant(0),
      ...[...constant(0), ...load(STATE_AT + 16 * i), ...get(state(i)), ...ADD],
      ...store(STATE_AT + 16 * i),
    ]),
  ];
}

/** Four words of one message, turned from the order of bytes in a message to that of the machine. */
function loadWords(lane: number, offset: number): Code {
  const bytes = [...get(lane), ...load(offset)];
  return [...bytes, ...bytes, ...shuffle(BIG_ENDIAN)];
}

/** One round. Instead of moving eight words on, the next round calls them by other names. */
function roundCode(i: number): Code {
  const [a, b, c, d] = [state(0 - i), state(1 - i), state(2 - i), state(3 - i)];
  const [e, f, g, h] = [state(4 - i), state(5 - i), state(6 - i), state(7 - i)];
  const [sum] = SPARE;
  return [
    ...(i < 16 ? [] : scheduleCode(i)),
    ...[...get(h), ...get(word(i)), ...ADD, ...constant(0), ...load(CONSTANTS_AT + 16 * i), ...ADD],
    ...[
      ...rotations(e, [6, 11, 25]),
      ...ADD,
      ...get(f),
      ...get(g),
      ...get(e),
      ...SELECT,
      ...ADD,
      ...set(sum),
    ],
    ...[...get(d), ...get(sum), ...ADD, ...set(d)],
    ...[...get(sum), ...rotations(a, [2, 13, 22]), ...ADD, ...majority(a, b, c), ...ADD, ...set(h)],
  ];
}

function scheduleCode(i: number): Code {
  return [
    ...[...get(word(i)), ...get(word(i + 9)), ...ADD],
    ...[...rotations(word(i + 1), [7, 18]), ...get(word(i + 1)), ...shiftRight(3), ...XOR, ...ADD],
    ...[...rotations(word(i + 14), [17, 19]), ...get(word(i + 14)), ...shiftRight(10), ...XOR, ...ADD],
    ...set(word(i)),
  ];
}

/** The variable rotated right by each of these, joined by exclusive or. */
function rotations(variable: number, bits: readonly number[]): Code {
  const shifted = bits.flatMap((n) => [shiftRight(n), shiftLeft(32 - n)]);
  return shifted.flatMap((shift, i) => [...get(variable), ...shift, ...(i === 0 ? [] : XOR)]);
}

/** Where a and b agree, what they say; elsewhere what c says. */
function majority(a: number, b: number, c: number): Code {
  return [...get(c), ...get(b), ...get(a), ...get(b), ...XOR, ...SELECT];
}

function endCode(): Code {
  return range(2).flatMap((half) => [
    ...range(4).flatMap((i) => [...constant(0), ...load(STATE_AT + 64 * half + 16 * i), ...set(word(i))]),
    ...transpose(0),
    ...range(4).flatMap((lane) => [
      ...get(lane),
      ...[...get(word(lane)), ...get(word(lane)), ...shuffle(BIG_ENDIAN)],
      ...store(16 * half),
    ]),
  ]);
}

/** Turns four words of each message into each of four words of the messages, or back. */
function transpose(first: number): Code {
  const [a, b, c, d] = [word(first), word(first + 1), word(first + 2), word(first + 3)];
  const [ab, cd, rest] = SPARE;
  const join = (x: number, y: number, words: readonly number[]) => [
    ...get(x),
    ...get(y),
    ...shuffle(bytesOf(words)),
  ];
  return [
    ...[...join(a, b, [0, 4, 1, 5]), ...set(ab), ...join(c, d, [0, 4, 1, 5]), ...set(cd)],
    ...[...join(a, b, [2, 6, 3, 7]), ...set(rest), ...join(c, d, [2, 6, 3, 7]), ...set(d)],
    ...[...join(ab, cd, [0, 1, 4, 5]), ...set(a), ...join(ab, cd, [2, 3, 6, 7]), ...set(b)],
    ...[...join(rest, d, [0, 1, 4, 5]), ...set(c), ...join(rest, d, [2, 3, 6, 7]), ...set(d)],
  ];
}

function bytesOf(words: readonly number[]): number[] {
  return words.flatMap((index) => range(4).map((i) => 4 * index + i));
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}
