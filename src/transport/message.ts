import { LIMITS } from '../limits.ts';
import { isPlainObject } from '../middleware/repair.ts';

/** JSON-RPC's own codes, and those of the protocol that are answered here. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  serverError: -32000,
  unsupportedVersion: -32022,
} as const;

export type RequestId = string | number;

/** A message the protocol layer may see: the known keys and nothing else. */
export interface IncomingMessage {
  readonly jsonrpc: '2.0';
  readonly id?: RequestId;
  readonly method?: string;
  readonly params?: Params;
  readonly result?: unknown;
  readonly error?: unknown;
}

export type Params = Readonly<Record<string, unknown>>;

/** What a line turned out to be: something to pass on, or an error to answer at once. */
export type ReadLine =
  | { readonly kind: 'message'; readonly message: IncomingMessage }
  | ReturnType<typeof refuse>;

/**
 * Arguments travel to stage 2 inside this key, untouched: the protocol layer would refuse what is not an object before it
 * could be repaired or audited, and quietly drop a name such as __proto__. A client that sends the key itself gains nothing.
 */
export const RAW_ARGUMENTS = '\u0000arguments';

/** Revisions without a handshake. Each request names its own. */
const MODERN_VERSIONS: readonly string[] = ['2026-07-28'];
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

// The reader of lines drops a byte order mark at the very start. One on a later line is not JSON.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** How the requests of a connection are opened: each names its revision, or all rest on one handshake. The first decides. */
export type Era = 'modern' | 'handshake';

/** Reads one line. Hostile input enters here: whatever the bytes are, the answer is a value, never a throw. */
export function readLine(bytes: Uint8Array, era?: Era): ReadLine {
  const unreadable = (id: RequestId | null, what: string) =>
    refuse(id, RPC.parseError, `Parse error: the line is not ${what}.`);
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    const id = idOf(parse(Buffer.from(bytes).toString('utf8')));
    return unreadable(id, 'valid UTF-8. Send one JSON-RPC message per line, in UTF-8');
  }
  const value = parse(text);
  return value === undefined
    ? unreadable(null, 'JSON. Send one JSON-RPC message per line')
    : readMessage(value, era);
}

/** The era that a first request with these parameters opens. */
export function eraOf(params: Params | undefined): Era {
  return MODERN_VERSIONS.includes(String(versionOf(params))) ? 'modern' : 'handshake';
}

function versionOf(params: Params | undefined): unknown {
  return isPlainObject(params?._meta) ? params._meta[VERSION_KEY] : undefined;
}

/** The answer to a line that was longer than the limit; its id was picked out while it passed. */
export function refuseOversized(id: RequestId | null): ReadLine {
  const limit = LIMITS.lineBytesMax;
  const message = `The message is longer than the limit of ${limit} bytes per line and was not read. Send a shorter message.`;
  return refuse(id, RPC.invalidRequest, message, { limit_bytes: limit });
}

function readMessage(value: unknown, era?: Era): ReadLine {
  const invalid = (what: string) => refuse(idOf(value), RPC.invalidRequest, `Invalid request: ${what}`);
  if (Array.isArray(value)) return invalid('batches are not part of MCP. Send one message per line.');
  if (!isPlainObject(value)) return invalid('a message must be a JSON object.');
  const { jsonrpc, method, params, result, error } = value;
  if (jsonrpc !== '2.0') return invalid('"jsonrpc" must be "2.0".');
  const id = idOf(value) ?? undefined;
  if (id !== value.id || (typeof id === 'number' && !Number.isSafeInteger(id))) {
    const most = LIMITS.requestIdCharsMax;
    return invalid(`"id" must be a string of at most ${most} characters or a whole number.`);
  }
  const head: IncomingMessage = id === undefined ? { jsonrpc: '2.0' } : { jsonrpc: '2.0', id };
  if (method === undefined && (result !== undefined || error !== undefined))
    return { kind: 'message', message: { ...head, result, error } };
  if (typeof method !== 'string') return invalid('"method" must be a string.');
  if (params !== undefined && !isPlainObject(params)) return invalid('"params" must be an object.');
  if (id !== undefined) {
    if (method === 'initialize' && (era ?? eraOf(params)) === 'modern')
      return refuse(id, RPC.methodNotFound, 'Method not found: this connection has no handshake.', {
        supported: MODERN_VERSIONS,
      });
    const complaint = complaintAboutMeta(params) ?? complaintAboutParams(method, params);
    if (complaint !== undefined) return refuse(id, RPC.invalidParams, `Invalid params: ${complaint}`);
    const version = versionOf(params);
    if (typeof version === 'string' && !MODERN_VERSIONS.includes(version)) {
      const message = `Unsupported protocol version ${JSON.stringify(version)}.`;
      return refuse(id, RPC.unsupportedVersion, message, { supported: MODERN_VERSIONS, requested: version });
    }
  }
  // A call is written out: to spread one object over another takes longer than to read the line.
  if (id !== undefined && params !== undefined)
    return { kind: 'message', message: { jsonrpc: '2.0', id, method, params } };
  return { kind: 'message', message: { ...head, method, ...(params !== undefined && { params }) } };
}

/** A call on its way through the SDK. Mistakes in it are for the stages to judge and record, so nothing of it may fail before. */
export function carryCall(message: IncomingMessage): IncomingMessage {
  const { arguments: args, name, ...rest } = message.params ?? {};
  const params = { ...rest, name: typeof name === 'string' ? name : '' };
  return {
    ...message,
    params: args === undefined ? params : { ...params, arguments: { [RAW_ARGUMENTS]: args } },
  };
}

/** The parameters as the client sent them. Another transport than ours carries no arguments in a key of its own. */
export function sentParams(params: Params): Params {
  const { arguments: args } = params;
  if (!isPlainObject(args) || !Object.hasOwn(args, RAW_ARGUMENTS)) return params;
  return { ...params, arguments: args[RAW_ARGUMENTS] };
}

/** An id that can be echoed, even when it is one we do not take: a client waiting for it should hear of its mistake. */
export function idOf(value: unknown): RequestId | null {
  const { id } = isPlainObject(value) ? value : {};
  if (typeof id === 'number' && Number.isFinite(id)) return id;
  return typeof id === 'string' && id.length <= LIMITS.requestIdCharsMax ? id : null;
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refuse(id: RequestId | null, code: number, message: string, data?: unknown) {
  return { kind: 'refused' as const, id, error: { code, message, ...(data !== undefined && { data }) } };
}

/** A request whose `_meta` the SDK cannot read gets no answer from it at all. */
function complaintAboutMeta({ _meta: meta }: Params = {}): string | undefined {
  if (meta === undefined) return undefined;
  if (!isPlainObject(meta)) return '"_meta" must be an object.';
  const token = meta.progressToken;
  if (token === undefined || typeof token === 'string' || Number.isSafeInteger(token)) return undefined;
  return '"progressToken" must be a string or a whole number.';
}

/**
 * The SDK answers ill-shaped parameters with a dump of its own schema. These are the requests a client of a server with
 * tools only can get wrong; `tools/call` is not among them, because its mistakes are audited.
 */
function complaintAboutParams(method: string, params: Params = {}): string | undefined {
  const { cursor, protocolVersion, capabilities, clientInfo } = params;
  if (method === 'tools/list' && cursor !== undefined && typeof cursor !== 'string')
    return 'tools/list takes a string as "cursor", or none.';
  if (method !== 'initialize') return undefined;
  if (typeof protocolVersion !== 'string')
    return 'initialize needs "protocolVersion", a string such as "2025-11-25".';
  if (!isPlainObject(capabilities)) return 'initialize needs "capabilities", an object; it may be empty.';
  const { name, version } = isPlainObject(clientInfo) ? clientInfo : {};
  if (typeof name === 'string' && typeof version === 'string') return undefined;
  return 'initialize needs "clientInfo", an object with the strings "name" and "version".';
}
