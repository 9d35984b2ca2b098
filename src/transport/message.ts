import { LIMITS } from '../limits.ts';
import { complaintAboutMeta, complaintAboutParams } from './params.ts';

/** JSON-RPC's own codes, and the two of the protocol that are answered here. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  invalidParams: -32602,
  internal: -32603,
  serverError: -32000,
  unsupportedVersion: -32022,
} as const;

export type RequestId = string | number;

/** A message the protocol layer may see: the known keys and nothing else. */
export interface IncomingMessage {
  readonly jsonrpc: '2.0';
  readonly id?: RequestId;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: unknown;
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** What a line turned out to be: something to pass on, or an error to answer at once. */
export type ReadLine =
  | { readonly kind: 'message'; readonly message: IncomingMessage }
  | { readonly kind: 'refused'; readonly id: RequestId | null; readonly error: RpcError };

/**
 * Arguments travel to stage 2 inside this key, untouched: the protocol layer would refuse what is no object before it
 * could be repaired or audited, and quietly drop a name such as __proto__. A client that sends the key itself gains nothing.
 */
export const RAW_ARGUMENTS = '\u0000arguments';

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Reads one line. Hostile input enters here: whatever the bytes are, the answer is a value, never a throw. */
export function readLine(bytes: Uint8Array, modernVersions: readonly string[]): ReadLine {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    const id = idOf(parse(Buffer.from(bytes).toString('utf8')));
    return refuse(
      id,
      RPC.parseError,
      'Parse error: the line is not valid UTF-8. Send one JSON-RPC message a line in UTF-8.',
    );
  }
  const value = parse(text);
  if (value === undefined) {
    return refuse(
      null,
      RPC.parseError,
      'Parse error: the line is not JSON. Send one JSON-RPC message a line.',
    );
  }
  return readMessage(value, modernVersions);
}

/** The answer to a line that was longer than the limit; its id was picked out while it passed. */
export function refuseOversized(id: RequestId | null): ReadLine {
  const limit = LIMITS.lineBytesMax;
  return refuse(
    id,
    RPC.invalidRequest,
    `The message is longer than the limit of ${limit} bytes a line and was not read. Send less at once.`,
    {
      limit_bytes: limit,
    },
  );
}

function readMessage(value: unknown, modernVersions: readonly string[]): ReadLine {
  if (Array.isArray(value)) {
    return refuse(
      null,
      RPC.invalidRequest,
      'Invalid request: batches are not part of MCP. Send one message a line.',
    );
  }
  if (typeof value !== 'object' || value === null) {
    return refuse(null, RPC.invalidRequest, 'Invalid request: a message is a JSON object.');
  }
  const { jsonrpc, id, method, params, result, error } = value as Record<string, unknown>;
  const answerTo = idOf(value);
  if (jsonrpc !== '2.0')
    return refuse(answerTo, RPC.invalidRequest, 'Invalid request: "jsonrpc" must be "2.0".');
  if (id !== undefined && !isRequestId(id)) {
    return refuse(
      answerTo,
      RPC.invalidRequest,
      `Invalid request: "id" must be a text of at most ${LIMITS.requestIdCharsMax} characters or a whole number.`,
    );
  }
  if (method === undefined && (result !== undefined || error !== undefined)) {
    return { kind: 'message', message: { jsonrpc, ...(isRequestId(id) && { id }), result, error } };
  }
  if (typeof method !== 'string')
    return refuse(answerTo, RPC.invalidRequest, 'Invalid request: "method" must be a text.');
  if (params !== undefined && (typeof params !== 'object' || params === null || Array.isArray(params))) {
    return refuse(answerTo, RPC.invalidRequest, 'Invalid request: "params" must be an object.');
  }
  const complaint =
    complaintAboutMeta(params as Record<string, unknown> | undefined) ??
    complaintAboutParams(method, params as Record<string, unknown> | undefined);
  if (complaint !== undefined && isRequestId(id))
    return refuse(id, RPC.invalidParams, `Invalid params: ${complaint}`);
  const version = claimedVersion(params);
  if (isRequestId(id) && version !== undefined && !modernVersions.includes(version)) {
    return refuse(id, RPC.unsupportedVersion, `Unsupported protocol version ${JSON.stringify(version)}.`, {
      supported: modernVersions,
      requested: version,
    });
  }
  return {
    kind: 'message',
    message: {
      jsonrpc,
      ...(isRequestId(id) && { id }),
      method,
      ...(method === 'tools/call'
        ? { params: carryCall(params ?? {}) }
        : params !== undefined && { params: { ...params } }),
    },
  };
}

/** Mistakes in a call are for the stages to judge and record, so nothing of it may fail before them. */
function carryCall(params: object): Record<string, unknown> {
  const { arguments: args, name, ...rest } = params as Record<string, unknown>;
  const call = { ...rest, name: typeof name === 'string' ? name : '' };
  return args === undefined ? call : { ...call, arguments: { [RAW_ARGUMENTS]: args } };
}

/** What stage 2 should judge: the arguments as the client sent them. */
export function sentArguments(args: Readonly<Record<string, unknown>> | undefined): unknown {
  return args !== undefined && Object.hasOwn(args, RAW_ARGUMENTS) ? args[RAW_ARGUMENTS] : args;
}

function claimedVersion(params: object | undefined): string | undefined {
  const meta = params === undefined ? undefined : (params as Record<string, unknown>)._meta;
  if (typeof meta !== 'object' || meta === null) return undefined;
  const version = (meta as Record<string, unknown>)[VERSION_KEY];
  return typeof version === 'string' ? version : undefined;
}

function isRequestId(id: unknown): id is RequestId {
  return typeof id === 'number'
    ? Number.isSafeInteger(id)
    : typeof id === 'string' && id.length <= LIMITS.requestIdCharsMax;
}

/** An id that can be echoed, even when it is one we do not take: a client waiting for it should hear of its mistake. */
function idOf(value: unknown): RequestId | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const { id } = value as Record<string, unknown>;
  if (typeof id === 'number' && Number.isFinite(id)) return id;
  return typeof id === 'string' && id.length <= LIMITS.requestIdCharsMax ? id : null;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refuse(id: RequestId | null, code: number, message: string, data?: unknown): ReadLine {
  return { kind: 'refused', id, error: { code, message, ...(data !== undefined && { data }) } };
}
