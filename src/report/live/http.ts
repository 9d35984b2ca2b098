import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LIMITS } from '../../limits.ts';

// The only place that listens. Hostile input enters here: any program on this machine, and any page in the user's
// browser, can send whatever it likes to the port. Who does not know the token gets nothing.

export interface Page {
  readonly html: string;
  /** The policy that the page itself names, with what the live page may do besides. */
  readonly policy: string;
}

export interface Served {
  readonly page: Page;
  readonly token: string;
  /** Throws a `RefusedRequest` for a question that makes no sense. */
  answer(name: string, given: URLSearchParams): Promise<string>;
  /** Told why an answer could not be given; never with the token. */
  readonly failed: (error: unknown) => void;
}

/** Why a request is refused; the message goes to whoever knows the token. */
export class RefusedRequest extends Error {}

const HOST = '127.0.0.1';

/** What every answer says about itself: nobody keeps it, frames it, or reads it from elsewhere. */
const ALWAYS = {
  'Cache-Control': 'no-store',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
};
const NO_PAGE = "default-src 'none'; frame-ancestors 'none'; sandbox";

/** Listens on the loopback address, at a free port unless one is given. */
export async function listen(served: Served, port: number) {
  /** Requests that are being answered. */
  let busy = 0;
  let turn = Promise.resolve();
  const unread = new Unread();
  const sockets = new Set<Socket>();
  const server = createServer(
    {
      maxHeaderSize: LIMITS.pageHeaderBytesMax,
      headersTimeout: LIMITS.pageRequestMsMax,
      requestTimeout: LIMITS.pageRequestMsMax,
      keepAliveTimeout: LIMITS.pageRequestMsMax,
      connectionsCheckingInterval: 1_000,
      insecureHTTPParser: false,
    },
    (request, response) => {
      if (busy >= LIMITS.pageRequestsMax) return send(response, 503);
      busy += 1;
      unread.add(response);
      // One after the other: they all wait for the same database, and who has gone meanwhile needs no answer.
      turn = turn
        // In a turn of the event loop each, or signals and other connections would wait for all of them.
        .then(() => nextTurn())
        .then(async () => {
          if (!response.destroyed && server.listening) await handle(request, response, served, origin());
          busy -= 1;
          unread.trim();
        })
        .catch(served.failed);
    },
  );
  server.maxConnections = LIMITS.pageConnectionsMax;
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // A reader that does not read is gone after this, with what was kept for it.
    socket.setTimeout(LIMITS.pageIdleMsMax, () => socket.destroy());
  });
  // Node would answer what is not HTTP with a text; nobody who speaks it needs one.
  server.on('clientError', (_, socket) => socket.destroy());
  server.on('upgrade', (_, socket) => socket.destroy());
  server.on('connect', (_, socket) => socket.destroy());
  await started(server, port);
  function origin(): string {
    const address = server.address();
    return `http://${HOST}:${typeof address === 'object' ? address?.port : port}`;
  }
  return {
    url: `${origin()}/${served.token}/`,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Answers that nobody has read yet. Of too many bytes, those that wait longest are given up. */
class Unread {
  readonly #responses = new Set<ServerResponse>();

  add(response: ServerResponse): void {
    this.#responses.add(response);
    response.once('close', () => this.#responses.delete(response));
  }

  trim(): void {
    const bytesOf = ({ writableLength, socket }: ServerResponse) =>
      Math.max(writableLength, socket?.writableLength ?? 0);
    let bytes = [...this.#responses].reduce((sum, response) => sum + bytesOf(response), 0);
    for (const response of this.#responses) {
      if (bytes <= LIMITS.pageUnreadBytesMax) return;
      bytes -= bytesOf(response);
      response.socket?.destroy();
      response.destroy();
    }
  }
}

function started(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: HOST, port, exclusive: true }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

async function handle(request: IncomingMessage, response: ServerResponse, served: Served, origin: string) {
  try {
    if (!isForUs(request, origin)) return send(response, 403);
    const asked = pathOf(request, served.token);
    if (asked === undefined) return send(response, 404);
    if (request.method !== 'GET') return send(response, 405, { Allow: 'GET' });
    const { name, given } = asked;
    if (name === '') return sendPage(response, served.page);
    // A page of somebody else may lead the browser to the address, but only this page may ask.
    if (!isFromOwnPage(request)) return send(response, 403);
    const text = await served.answer(name, given);
    send(response, 200, { 'Content-Type': 'text/plain; charset=utf-8' }, text);
  } catch (error) {
    if (error instanceof RefusedRequest) return send(response, 400, {}, error.message);
    served.failed(error);
    send(response, 500);
  }
}

/**
 * Against DNS rebinding: a name that somebody made lead here is not ours, nor is a page that came from elsewhere. Nobody has
 * a reason to send a body.
 */
function isForUs({ headers, rawHeaders }: IncomingMessage, own: string): boolean {
  const { host, origin = own, 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  const names = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host');
  const isNamed = names.length === 1 && `http://${host}` === own;
  return isNamed && origin === own && length === '0' && encoding === undefined;
}

/** Against requests by other pages: browsers say where a request comes from, and other programs need the token anyway. */
function isFromOwnPage({ headers }: IncomingMessage): boolean {
  return (headers['sec-fetch-site'] ?? 'same-origin') === 'same-origin';
}

/** What is asked for, if the path begins with the token. Not normalised: only exact paths lead anywhere. */
function pathOf({ url = '' }: IncomingMessage, token: string) {
  const [, given = '', name = '', query = ''] = /^\/([^/?#]*)\/([a-z]*)(?:\?([^#]*))?$/.exec(url) ?? [];
  const [known, said] = [Buffer.from(token), Buffer.from(given)];
  if (known.length !== said.length || !timingSafeEqual(known, said)) return undefined;
  return { name, given: new URLSearchParams(query) };
}

function sendPage(response: ServerResponse, { html, policy }: Page): void {
  const type = { 'Content-Type': 'text/html; charset=utf-8' };
  send(response, 200, { ...type, 'Content-Security-Policy': `${policy}; frame-ancestors 'none'` }, html);
}

function send(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>> = {},
  body = '',
): void {
  if (response.destroyed || response.headersSent) return;
  const bytes = Buffer.from(body);
  const always = { ...ALWAYS, 'Content-Security-Policy': NO_PAGE, 'Content-Length': String(bytes.length) };
  // What was refused may go on with anything; it is not listened to.
  const last = status === 200 ? {} : { Connection: 'close' };
  response.writeHead(status, { ...always, ...last, ...headers }).end(bytes);
}
