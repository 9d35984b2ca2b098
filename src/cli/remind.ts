import { existsSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { shown } from '../domains/lookup.ts';
import { asError } from '../errors.ts';
import { formatId, TASKS } from '../log/tables.ts';
import type { Reader } from '../storage/engine.ts';
import { isObject } from '../verify/rules/payloads.ts';
import { members } from '../verify/sources/forms.ts';
import { command, EXIT, type Invocation } from './command.ts';
import { withDatabase } from './open.ts';
import { personOf } from './person.ts';

/** More than one reminder is a list that nobody reads. */
const NAMED_MAX = 5;

interface Held {
  readonly id: number;
  readonly title: string;
  readonly status: string;
  readonly since: string;
}

/** For a client's hook at the end of an agent's turn: reminds it of what it still holds, once. */
export const remind = command({
  name: 'remind',
  usage: '[--agent NAME]',
  summary: 'remind an agent at the end of its turn of the tasks it holds; for a client’s hook',
  details:
    'Reads the input of the client’s Stop hook from standard input. If the agent holds a task, it prints a decision not to stop yet, with the reason. It reminds an agent once per turn. Without a database, or if the agent holds nothing, it prints nothing.',
  options: { agent: { value: 'NAME', help: 'whose tasks (default: COLIBRI_AGENT_ID)' } },
  async run(given) {
    try {
      return await remindOnce(given.values.agent, given);
    } catch (error) {
      // To a client, exit code 2 would mean: go on, and here is why.
      given.out.error(`colibri remind: ${asError(error).message}`);
      return EXIT.found;
    }
  },
});

async function remindOnce(named: string | undefined, { out, config }: Invocation): Promise<number> {
  const said = process.stdin.isTTY === true ? {} : members(await text(process.stdin));
  // The client sets it when this turn goes on because of a hook.
  if (isObject(said) && said.stop_hook_active === true) return EXIT.fine;
  if (!existsSync(config.dbPath)) return EXIT.fine;
  const agent = named ?? personOf(config);
  const held = await withDatabase(config, (storage) => storage.read((tx) => heldBy(tx, agent)));
  if (held.length > 0) out.value({ decision: 'block', reason: reminder(held) });
  return EXIT.fine;
}

async function heldBy(tx: Reader, agent: string): Promise<Held[]> {
  return await tx.all<Held>(
    `SELECT id, ${shown(TASKS, 'title')}, status, held_since AS since FROM tasks WHERE held_by = ? ORDER BY id`,
    agent,
  );
}

function reminder(held: readonly Held[]): string {
  const named = held.slice(0, NAMED_MAX).map(({ id, title, status, since }) => {
    return `${formatId(TASKS, id)} "${title}" (${status} since ${since})`;
  });
  const more = held.length > NAMED_MAX ? ` and ${held.length - NAMED_MAX} more` : '';
  return `You still hold ${named.join(', ')}${more} in Colibri. Before you stop, record what you decided and why with thought_record, then move the task with task_update: to review or done if it is finished; to blocked, with a blocked_reason, if you are waiting for your user or anything else. If the status is right, say so and stop.`;
}
