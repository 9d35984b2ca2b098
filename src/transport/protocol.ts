import {
  type CallToolResult,
  ProtocolError,
  type Transport as SdkTransport,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';
import { asError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { type TellRedacted, UnknownToolError } from '../middleware/compose.ts';
import { type Envelope, isFailure } from '../middleware/envelope.ts';
import { NotBegunError } from '../middleware/tool-lock.ts';
import { redactedNote, redactText } from '../secrets.ts';
import type { Tool } from '../tool.ts';
import { type Params, type RequestId, RPC, sentParams } from './message.ts';
import type { StdioTransport } from './stdio.ts';

/**
 * A transport may hold back a client that does not read: `room` is there, and `ended` is told of calls without an answer. It may
 * offer each call to `oncall` first.
 */
export type Transport = SdkTransport & Partial<Pick<StdioTransport, 'room' | 'ended' | 'oncall'>>;

/** What the protocol layer needs of the product, and all it knows of it. */
export interface Product {
  readonly version: string;
  readonly instructions: string;
  /** The tools that may be called, in their order. */
  readonly tools: () => readonly Tool[];
  call(name: string, raw: unknown, client: string | undefined, tell: TellRedacted): Promise<Envelope>;
  /** What every result carries next to its content. */
  readonly meta: () => Record<string, string> | undefined;
  readonly onError: (error: Error) => void;
}

const LIST_TTL_MS = 3_600_000;
const REDACTED_META_KEY = 'colibri/redacted';
const CLIENT_INFO_KEY = 'io.modelcontextprotocol/clientInfo';

/** Serves both eras of MCP on one transport: the first message decides which. `started` resolves when it listens. */
export function serveProtocol(transport: Transport, product: Product) {
  const started = watchStart(transport);
  // Built at the first request, not at start: making JSON Schema of all tools takes longer than the handshake.
  let tools: ReturnType<typeof describeTool>[] | undefined;
  const list = () => {
    tools ??= product.tools().map(describeTool);
    return { tools };
  };
  let server: Server | undefined;
  const create = () => {
    server = createProtocolServer(product, list, (id) => transport.ended?.(id));
    return server;
  };
  const handle = serveStdio(create, { transport, onerror: product.onError });
  // Once the handshake has told who the client is, a call needs nothing of the SDK, and its way through it costs as much
  // as a call of a bare server. In the modern era each request says it anew, for the SDK to read.
  let actor: { readonly of: string; readonly name: string | undefined } | undefined;
  transport.oncall = (params) => {
    const greeted = server?.getClientVersion();
    if (greeted === undefined) return undefined;
    // A request may name its client after a handshake, too.
    const client = nameOf((params._meta as Params | undefined)?.[CLIENT_INFO_KEY]) ?? greeted.name;
    if (actor?.of !== client) actor = { of: client, name: shownName(client) };
    return answerCall(product, params, actor.name).then(
      (result) => `"result":${result}`,
      (error: unknown) => `"error":${JSON.stringify(toErrorObject(error))}`,
    );
  };
  return { started, close: () => handle.close() };
}

/** A call as both ways to it make it: answers the JSON of its result. */
function answerCall(product: Product, params: Params, client: string | undefined): Promise<string> {
  let redacted: readonly string[] = [];
  const name = typeof params.name === 'string' ? params.name : '';
  const tell = (notes: readonly string[]) => {
    redacted = notes;
  };
  return product
    .call(name, params.arguments, client, tell)
    .then((envelope) => resultText(envelope, product.meta(), redacted));
}

function createProtocolServer(
  product: Product,
  list: () => { tools: ReturnType<typeof describeTool>[] },
  ended: (id: RequestId) => void,
) {
  const server = new Server(
    { name: 'colibri', title: 'Colibri', version: product.version },
    {
      capabilities: { tools: { listChanged: false } },
      instructions: product.instructions,
      // The surface is closed and fixed for the life of the process.
      cacheHints: {
        'tools/list': { ttlMs: LIST_TTL_MS, cacheScope: 'public' },
        'server/discover': { ttlMs: LIST_TTL_MS, cacheScope: 'public' },
      },
    },
  );
  server.setRequestHandler('tools/list', list);
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    try {
      return JSON.parse(
        await answerCall(product, sentParams(params), clientName(server, context)),
      ) as ToolResult;
    } catch (error) {
      const { code, message } = toErrorObject(error);
      throw new ProtocolError(code, message);
    } finally {
      // The SDK answers no request that was cancelled.
      if (context.mcpReq.signal.aborted) ended(context.mcpReq.id);
    }
  });
  return server;
}

/**
 * The same JSON twice: some clients show a model only one of them. Made once: a large answer takes longer to be written as
 * JSON than to be found. The envelope itself has no room for redactions.
 */
function resultText(
  envelope: Envelope,
  meta: Record<string, string> | undefined,
  redacted: readonly string[],
): string {
  const told = JSON.stringify(envelope);
  let content = textContent(told);
  let beside = metaText(meta);
  if (redacted.length > 0) {
    beside = metaText({ ...meta, [REDACTED_META_KEY]: redacted });
    content += `,${textContent(redactedNote(redacted))}`;
  }
  // In both patterns: most clients look at nothing else.
  const failed = isFailure(envelope) ? ',"isError":true' : '';
  return `{"content":[${content}],"structuredContent":${told}${failed}${beside}}`;
}

/** What was asked for last: the answers of a batch carry the same. */
let lastMeta: { readonly of: object | undefined; readonly text: string } = { of: undefined, text: '' };

function metaText(meta: Record<string, unknown> | undefined): string {
  if (meta === lastMeta.of) return lastMeta.text;
  // The dash of a signed note is escaped: with it in there, V8 would keep every answer with two bytes per character.
  const text = meta === undefined ? '' : `,"_meta":${JSON.stringify(meta).replaceAll('\u2014', '\\u2014')}`;
  lastMeta = { of: meta, text };
  return text;
}

function textContent(text: string): string {
  return `{"type":"text","text":${JSON.stringify(text)}}`;
}

type ToolResult = Pick<CallToolResult, 'content' | 'structuredContent' | 'isError' | '_meta'>;

function toErrorObject(error: unknown): { readonly code: number; readonly message: string } {
  const { message } = asError(error);
  if (error instanceof UnknownToolError) return { code: RPC.invalidParams, message };
  return { code: error instanceof NotBegunError ? RPC.serverError : RPC.internalError, message };
}

/** The name the client gives itself: with each request in the modern era, once at the handshake before. */
function clientName(server: Server, context: ServerContext): string | undefined {
  const envelope = context.mcpReq.envelope as Readonly<Record<string, unknown>> | undefined;
  const name = nameOf(envelope?.[CLIENT_INFO_KEY]) ?? nameOf(server.getClientVersion());
  return name === undefined ? undefined : shownName(name);
}

function nameOf(info: unknown): string | undefined {
  const name: unknown = Reflect.get(Object(info), 'name');
  return typeof name === 'string' ? name : undefined;
}

function shownName(text: string): string | undefined {
  const given = redactText(text);
  // Cut before it is made well-formed: a cut may split a character in two.
  const name = given.slice(0, LIMITS.actorCharsMax).toWellFormed();
  const shown = name.replace(/\p{Cc}/gu, ' ').trim();
  return shown === '' ? undefined : shown;
}

/** The SDK starts the transport itself and keeps the promise to itself; this one can be waited for. */
function watchStart(transport: Transport): Promise<void> {
  const start = transport.start.bind(transport);
  return new Promise((resolve, reject) => {
    transport.start = () => {
      const started = start();
      started.then(resolve, reject);
      return started;
    };
  });
}

type JsonSchema = { type: 'object'; [key: string]: unknown };

/** A tool as `tools/list` shows it, derived from its one definition: list, validation and annotations cannot disagree. */
export function describeTool(tool: Tool) {
  const reads = tool.effect === 'reads';
  return {
    name: tool.name,
    title: tool.title,
    description: tool.example ? `${tool.summary} Example: ${JSON.stringify(tool.example)}` : tool.summary,
    inputSchema: lean(z.toJSONSchema(tool.input, { io: 'input' })) as JsonSchema,
    // The protocol's defaults are the worst case, so all four are said. Nothing is ever destroyed: history stays.
    annotations: {
      readOnlyHint: reads,
      destructiveHint: false,
      idempotentHint: reads,
      openWorldHint: false,
    },
  };
}

/** Without what costs every client tokens and tells no model anything. Validation keeps all of it. */
function lean(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(lean);
  if (typeof schema !== 'object' || schema === null) return schema;
  if ('listedAs' in schema && 'description' in schema)
    return { type: schema.listedAs, description: schema.description };
  const kept = Object.entries(schema).filter(([key, value]) => !isIdle(key, value));
  return Object.fromEntries(kept.map(([key, value]) => [key, lean(value)]));
}

function isIdle(key: string, value: unknown): boolean {
  if (key === '$schema' || key === 'propertyNames') return true;
  if (key === 'minLength') return value === 1;
  return value === Number.MAX_SAFE_INTEGER || value === Number.MIN_SAFE_INTEGER;
}
