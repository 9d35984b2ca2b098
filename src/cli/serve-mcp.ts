import { command, EXIT } from './command.ts';

/** What a client starts, under a name that can be written into a configuration. */
export const serveMcp = command({
  name: 'serve-mcp',
  usage: '',
  summary: 'serve MCP on standard input and output; clients start this',
  details: 'The same as "colibri" without arguments, but also on a terminal. It stops when its input ends.',
  run: () => serveUntilEnd(),
});

/** Serves until the client goes. */
export async function serveUntilEnd(): Promise<number> {
  // A module of its own next to this one: importing it must not start it for the other commands.
  const server = (await import(new URL('server.js', import.meta.url).href)) as { main(): Promise<void> };
  await server.main();
  return EXIT.fine;
}
