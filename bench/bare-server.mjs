// The reference point: what any MCP server on this SDK pays for start and call. One tool that does nothing.
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

serveStdio(() => {
  const server = new McpServer({ name: 'bare', version: '1.0.0' });
  server.registerTool(
    'noop',
    { description: 'Nothing.', inputSchema: z.object({ text: z.string().optional() }) },
    async () => ({
      content: [{ type: 'text', text: '{"ok":true}' }],
      structuredContent: { ok: true },
    }),
  );
  return server;
});
