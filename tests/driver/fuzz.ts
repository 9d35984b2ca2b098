import type { Random } from './random.ts';

/** A line and what a client may expect of it: an answer under an id, an error under null, or silence. */
export interface FuzzLine {
  readonly bytes: Buffer;
  readonly due: Due;
}

type Due =
  | { readonly kind: 'answer'; readonly id: string | number }
  | { readonly kind: 'error'; readonly code: -32700 | -32600 }
  | { readonly kind: 'silence' };

const NEWLINE = 0x0a;
const LINE_BYTES_MAX = 1_048_576;
const ID_CHARS_MAX = 256;

/** Lines no client should send, and some it should. Never a cancellation: that would silence another line. */
export function* fuzzLines(random: Random, count: number): Generator<FuzzLine> {
  for (let i = 0; i < count; i += 1) {
    const make = random.pick(KINDS);
    const bytes = withoutNewlines(make(random, `f${i}`));
    yield { bytes, due: dueFor(bytes) };
  }
}

type Kind = (random: Random, id: string) => Buffer;

const KINDS: readonly Kind[] = [
  (random) => randomBytes(random, random.between(1, 80)),
  (random, id) => cut(random, Buffer.from(json(call(random, id)))),
  (random, id) => mutate(random, Buffer.from(json(call(random, id)))),
  (random, id) => mutate(random, mutate(random, Buffer.from(json(call(random, id))))),
  (random, id) => Buffer.from(json(call(random, id))),
  (random, id) => Buffer.from(json(disfigure(random, call(random, id)))),
  (random, id) => Buffer.from(json(disfigure(random, disfigure(random, call(random, id))))),
  (random, id) => Buffer.from(json({ ...call(random, id), id: anyId(random) })),
  (random, id) => Buffer.from(json(Array.from({ length: random.between(0, 4) }, () => call(random, id)))),
  (random, id) =>
    Buffer.from(json(call(random, id)).replace('{', `{"id":${random.between(1, 9)},"method":5,`)),
  (random, id) => Buffer.from(`${json(call(random, id))}\r`),
  (random, id) => Buffer.from(`\ufeff \t${json(call(random, id))}  `),
  (random) => Buffer.from(json(anyValue(random))),
  (random, id) => Buffer.from(json({ jsonrpc: '2.0', id, result: anyValue(random) })),
  (random) =>
    Buffer.from(json({ jsonrpc: '2.0', method: 'notifications/none', params: { a: anyValue(random) } })),
  (random) => Buffer.from('['.repeat(random.between(1, 5_000))),
  (random, id) =>
    random.oneIn(20)
      ? Buffer.from(json({ ...call(random, id), x: 'y'.repeat(LINE_BYTES_MAX) }))
      : Buffer.from(''),
];

/** Any value, but none of the small numbers the driver counts its own requests with: its answers would be taken for ours. */
function anyId(random: Random): unknown {
  const value = anyValue(random);
  return typeof value === 'number' && Number.isInteger(value) ? value + 1_000_000 : value;
}

function call(random: Random, id: string): Record<string, unknown> {
  const method = random.oneIn(2) ? 'tools/call' : random.pick(METHODS);
  const name = random.pick(['server_ping', 'server_health', 'task_get', 'no_such_tool', 'task_list']);
  const params = { name, arguments: random.oneIn(2) ? {} : { [random.pick(NAMES)]: anyValue(random) } };
  return { jsonrpc: '2.0', id, method, ...(method === 'tools/call' && { params }) };
}

/** Puts any value at any place of a message. */
function disfigure(random: Random, message: Record<string, unknown>): Record<string, unknown> {
  const place = random.pick(['jsonrpc', 'method', 'params', 'extra', '_meta', 'arguments', 'name', 'gone']);
  const value = anyValue(random);
  if (place === 'gone') {
    const { [random.pick(['jsonrpc', 'method', 'params'])]: _, ...rest } = message;
    return rest;
  }
  if (['_meta', 'arguments', 'name'].includes(place)) {
    const params = typeof message.params === 'object' && message.params !== null ? message.params : {};
    return { ...message, params: { ...params, [place]: value } };
  }
  return { ...message, [place]: value };
}

const METHODS = [
  'tools/list',
  'ping',
  'initialize',
  'nothing',
  'resources/list',
  '__proto__',
  'constructor',
  'toString',
];

const NAMES = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'task_id',
  'limit',
  'search',
  '',
  'x',
  '\ud800',
  '\u0000',
];

function anyValue(random: Random): unknown {
  return random.pick<() => unknown>([
    () => null,
    () => random.oneIn(2),
    () => random.between(-5, 5),
    () => 1.5,
    () => 2 ** 60,
    () => -0,
    () => 1e-7,
    () => '',
    () => '\ud800',
    () => '\u0000\u2028',
    () => 'x'.repeat(random.between(1, 3_000)),
    () => '{"a":1}',
    () => [],
    () => [[[anyValue(random)]]],
    () => ({}),
    () => ({ [random.pick(NAMES)]: anyValue(random) }),
    () => ({ progressToken: anyValue(random) }),
    () => nested(random.between(1, 3_000)),
  ])();
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i += 1) value = [value];
  return value;
}

/** JSON.stringify overflows on deep values; this one is for arrays that hold one item each. */
function json(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return `${'['.repeat(3_000)}1${']'.repeat(3_000)}`;
  }
}

function randomBytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.between(0, 255)));
}

function cut(random: Random, bytes: Buffer): Buffer {
  return bytes.subarray(0, random.between(0, bytes.length - 1));
}

function mutate(random: Random, bytes: Buffer): Buffer {
  const at = random.between(0, bytes.length - 1);
  const [before, after] = [bytes.subarray(0, at), bytes.subarray(at + random.between(0, 1))];
  return Buffer.concat([before, randomBytes(random, random.between(0, 2)), after]);
}

function withoutNewlines(bytes: Buffer): Buffer {
  return bytes.filter((byte) => byte !== NEWLINE) as Buffer;
}

/** What the contract says of a line. Decided from the bytes alone, so that it holds for lines that are right by accident. */
function dueFor(bytes: Buffer): Due {
  const text = bytes.toString('utf8');
  if (/^[ \t\r]*$/.test(text)) return { kind: 'silence' };
  const value = parse(text);
  const id = readableId(value);
  const refused = (code: -32700 | -32600): Due =>
    id === undefined ? { kind: 'error', code } : { kind: 'answer', id };
  if (bytes.length > LINE_BYTES_MAX) return refused(-32600);
  if (!isUtf8(bytes) || value === undefined) return refused(-32700);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refused(-32600);
  return isUnanswered(value) ? { kind: 'silence' } : refused(-32600);
}

function readableId(value: unknown): string | number | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { id } = value as { id?: unknown };
  if (typeof id === 'string' && id.length <= ID_CHARS_MAX) return id;
  return typeof id === 'number' && Number.isFinite(id) ? id + 0 : undefined;
}

/** Well-formed notifications and responses. */
function isUnanswered(value: object): boolean {
  const { jsonrpc, id, method, params, result, error } = value as Record<string, unknown>;
  if (jsonrpc !== '2.0') return false;
  const hasGoodId = Number.isSafeInteger(id) || (typeof id === 'string' && id.length <= ID_CHARS_MAX);
  if (method === undefined)
    return (result !== undefined || error !== undefined) && (id === undefined || hasGoodId);
  const hasGoodParams =
    params === undefined || (typeof params === 'object' && params !== null && !Array.isArray(params));
  return id === undefined && typeof method === 'string' && hasGoodParams;
}

function isUtf8(bytes: Buffer): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
