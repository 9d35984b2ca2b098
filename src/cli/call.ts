import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../config.ts';
import { type Command, EXIT, UsageError } from './command.ts';

/** One tool call through the same server, stages and log that an agent uses. */
export const call: Command = {
  name: 'call',
  usage: 'TOOL [JSON]',
  summary: 'one tool call through the chain',
  details:
    'JSON is the arguments object, {} if it is left out; "-" reads it from standard input. Prints the envelope. Exit 1 when the answer is an error.',
  options: {},
  positionals: [1, 2],
  async run({ positionals, out }) {
    const [tool = '', json = '{}'] = positionals;
    const args = parseArguments(json === '-' ? await readAll(process.stdin) : json);
    const answer = await callServer(tool, args);
    if (answer.error !== undefined) {
      out.error(answer.error.message);
      return answer.error.code === INVALID_PARAMS ? EXIT.usage : EXIT.found;
    }
    const envelope = answer.result?.structuredContent;
    out.verbatim(JSON.stringify(envelope, null, 2));
    return envelope?.ok === true && envelope.data?.ok !== false ? EXIT.fine : EXIT.found;
  },
};

const INVALID_PARAMS = -32602;

interface Answer {
  readonly id?: number;
  readonly error?: { readonly code: number; readonly message: string };
  readonly result?: {
    readonly structuredContent?: { readonly ok: boolean; readonly data?: { readonly ok?: boolean } };
  };
}

/** Starts the server beside this file and speaks to it as a client would. */
async function callServer(tool: string, args: unknown): Promise<Answer> {
  const server = spawn(process.execPath, [fileURLToPath(new URL('server.js', import.meta.url))], {
    env: childEnvironment({ COLIBRI_LOG_LEVEL: 'error' }),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = new Promise<number | null>((resolve) => server.once('exit', resolve));
  const send = (message: object) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const clientInfo = { name: 'colibri-cli', version: '1' };
  send({
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
  });
  send({ id: 2, method: 'tools/call', params: { name: tool, arguments: args } });
  let answer: Answer | undefined;
  for await (const line of createInterface({ input: server.stdout })) {
    const message = JSON.parse(line) as Answer;
    if (message.id !== 2) continue;
    answer = message;
    server.stdin.end();
  }
  const code = await exited;
  if (answer === undefined) throw new Error(`the server ended with code ${code} before it answered`);
  return answer;
}

function parseArguments(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw new UsageError(
      `The arguments are not JSON: ${json.slice(0, 80)}. Give an object, for example '{"task_id":"T-0001"}'.`,
    );
  }
}

async function readAll(stream: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}
