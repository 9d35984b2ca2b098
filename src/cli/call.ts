import { UnknownToolError } from '../middleware/compose.ts';
import type { Envelope } from '../middleware/envelope.ts';
import { type Command, EXIT, UsageError } from './command.ts';
import { actorOf, withTools } from './stages.ts';

/** One tool call through the same five stages and into the same log that an agent uses. */
export const call: Command = {
  name: 'call',
  usage: 'TOOL [JSON]',
  summary: 'make one tool call through the five stages',
  details:
    'JSON is the arguments object, {} by default; "-" reads it from standard input. Prints the envelope. Exit 1 when the answer is an error.',
  options: {},
  positionals: [1, 2],
  async run({ positionals, out, config: readConfig }) {
    const [tool = '', json = '{}'] = positionals;
    const args = parseArguments(json === '-' ? await readAll(process.stdin) : json);
    const config = readConfig();
    try {
      const envelope = await withTools(config, out, (stages) => stages.call(tool, args, actorOf(config)));
      out.verbatim(JSON.stringify(envelope, null, 2));
      return isSuccess(envelope) ? EXIT.fine : EXIT.found;
    } catch (error) {
      if (!(error instanceof UnknownToolError)) throw error;
      out.error(error.message);
      return EXIT.usage;
    }
  },
};

/** A domain error of some tools is a value inside a success. */
function isSuccess(envelope: Envelope): boolean {
  if (!envelope.ok) return false;
  const { data } = envelope;
  return !(typeof data === 'object' && data !== null && 'ok' in data && data.ok === false);
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
