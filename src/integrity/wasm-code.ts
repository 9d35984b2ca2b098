/** Instructions and parts of a WebAssembly module, as its binary format writes them. */
export type Code = readonly number[];

/** A function without a result; its parameters are addresses, numbered from 0, and its variables vectors after them. */
export interface WasmFunction {
  readonly name: string;
  readonly parameters: number;
  readonly vectors: number;
  readonly code: Code;
}

const I32 = 0x7f;
const V128 = 0x7b;
const PAGES = 2;

/** A module with 128 KB of memory and these functions, all of it exported by name. */
export function wasmModule(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const types = functions.map(({ parameters }) => [0x60, ...list(Array(parameters).fill([I32])), 0]);
  const bodies = functions.map(({ vectors, code }) => sized([...list([[vectors, V128]]), ...code, 0x0b]));
  const exports = functions.map(({ name }, i) => [...text(name), 0x00, i]);
  return Uint8Array.from([
    ...[0x00, ...Buffer.from('asm'), 1, 0, 0, 0],
    ...[1, ...sized(list(types))],
    ...[3, ...sized(list(functions.map((_, i) => [i])))],
    ...[5, ...sized(list([[0x00, PAGES]]))],
    ...[7, ...sized(list([[...text('memory'), 0x02, 0], ...exports]))],
    ...[10, ...sized(list(bodies))],
  ]);
}

export function get(variable: number): Code {
  return [0x20, variable];
}

export function set(variable: number): Code {
  return [0x21, variable];
}

/** The 16 bytes at the address on the stack, moved by `offset`. */
export function load(offset: number): Code {
  return [...vector(0x00), 0, ...unsigned(offset)];
}

export function store(offset: number): Code {
  return [...vector(0x0b), 0, ...unsigned(offset)];
}

/** Bytes of the two vectors on the stack: 0 to 15 are those of the first, 16 to 31 of the second. */
export function shuffle(bytes: readonly number[]): Code {
  return [...vector(0x0d), ...bytes];
}

export function shiftLeft(bits: number): Code {
  return [...constant(bits), ...vector(0xab)];
}

export function shiftRight(bits: number): Code {
  return [...constant(bits), ...vector(0xad)];
}

/** A number from 0 to 63; larger ones would need a second byte. */
export function constant(number: number): Code {
  return [0x41, number];
}

export const ADD = vector(0xae);
export const XOR = vector(0x51);
/** Of the first vector the bits that the third has set, of the second the others. */
export const SELECT = vector(0x52);

function vector(operation: number): Code {
  return [0xfd, ...unsigned(operation)];
}

function list(items: readonly Code[]): Code {
  return [...unsigned(items.length), ...items.flat()];
}

function sized(bytes: Code): Code {
  return [...unsigned(bytes.length), ...bytes];
}

function text(name: string): Code {
  return sized([...Buffer.from(name)]);
}

/** Seven bits a byte, the lowest first. */
function unsigned(number: number): Code {
  return number < 0x80 ? [number] : [0x80 | (number & 0x7f), ...unsigned(number >>> 7)];
}
