/** The one file that names the MCP SDK; everything else in this folder takes it from here. */

export type { JSONRPCMessage, ServerContext, Transport } from '@modelcontextprotocol/server';
export { ProtocolError, Server } from '@modelcontextprotocol/server';
export { serveStdio } from '@modelcontextprotocol/server/stdio';

/** Revisions without a handshake. Each request names its own. */
export const MODERN_VERSIONS: readonly string[] = ['2026-07-28'];
