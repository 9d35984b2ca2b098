/** A line of the server, as far as a client looks into it. */
export interface Message {
  readonly jsonrpc: '2.0';
  readonly id: string | number | null;
  readonly method?: string;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Record<string, unknown>;
  };
}

interface Envelope {
  readonly ok: boolean;
  readonly data?: Record<string, unknown>;
  readonly error?: WireError;
}

export interface WireError {
  readonly code: string;
  readonly message: string;
  readonly details?: Record<string, unknown>;
}

/** The answer to a tool call: an envelope, or an error of the protocol. */
export interface ToolAnswer {
  readonly message: Message;
  readonly envelope?: Envelope;
  readonly isError: boolean;
  /** Of either pattern: at the top, or inside a success. */
  readonly error?: WireError;
}

export function toToolAnswer(message: Message): ToolAnswer {
  const envelope = message.result?.structuredContent as Envelope | undefined;
  const inner = envelope?.data as Partial<Envelope> | undefined;
  const error = envelope?.error ?? (inner?.ok === false ? inner.error : undefined);
  return {
    message,
    isError: message.result?.isError === true,
    ...(envelope !== undefined && { envelope }),
    ...(error !== undefined && { error }),
  };
}

/** Why a line of stdout is not a message of JSON-RPC 2.0, if it is not. */
export function messageComplaint(line: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return 'not JSON';
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not an object';
  const { jsonrpc, id, method, result, error } = value as Record<string, unknown>;
  if (jsonrpc !== '2.0') return 'jsonrpc is not 2.0';
  if (typeof method === 'string') return undefined;
  if ((result === undefined) === (error === undefined)) return 'neither result nor error, or both';
  if (id !== null && typeof id !== 'string' && typeof id !== 'number') return 'an answer without an id';
  return undefined;
}
