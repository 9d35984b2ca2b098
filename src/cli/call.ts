import { text } from 'node:stream/consumers';
import { isFailure } from '../middleware/envelope.ts';
import { redactedNote } from '../secrets.ts';
import { command, EXIT, orUsage } from './command.ts';
import { withTools } from './open.ts';
import { personOf } from './person.ts';

/** One tool call through the same five stages and into the same log that an agent uses. */
export const call = command({
  name: 'call',
  usage: 'TOOL [JSON]',
  summary: 'make one tool call, as an agent does',
  details:
    'JSON is the arguments object, {} by default; "-" reads it from standard input. Prints the envelope. Exit 1 if the answer is an error.',
  positionals: [1, 2],
  async run({ positionals, out, config }) {
    const [tool = '', json = '{}'] = positionals;
    const given = json === '-' ? await text(process.stdin) : json;
    const hint = `Give an object, for example '{"task_id":"T-0001"}'.`;
    const args = orUsage('The arguments are not valid JSON', (): unknown => JSON.parse(given), hint);
    const tell = (notes: readonly string[]) => out.error(redactedNote(notes));
    const envelope = await withTools(config, out, (stages) =>
      stages.call(tool, args, personOf(config), tell),
    );
    out.value(envelope, 2);
    return isFailure(envelope) ? EXIT.found : EXIT.fine;
  },
});
