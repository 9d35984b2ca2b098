import type { Call, Ruling, Steps } from '../rule.ts';
import type { AdoptArgs } from './tools.ts';

/** The owner accepts the log as it is. It changes no row of state: what it says is in its arguments. */
function* adoptLog(args: AdoptArgs, call: Call): Steps<Ruling<{ adopted_rows: number; key: string }>> {
  yield {};
  // The call's own two rows follow what is adopted.
  return { rows: [], result: { adopted_rows: call.position - 1, key: args.key } };
}

/** The acts of the owner, with the arguments that are texts. */
export const OWNER_RULES = { owner_adopt: { texts: ['reason'], rule: adoptLog } } as const;
