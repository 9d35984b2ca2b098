import type { Config } from '../config.ts';
import { parseCheckpoint } from '../integrity/checkpoint.ts';
import { LIMITS } from '../limits.ts';
import { type Command, EXIT } from './command.ts';
import type { Output } from './output.ts';
import { actorOf, type OwnerStages, withOwner } from './stages.ts';

/** Files the newest signed head of the log for good and prints it. */
export const checkpoint: Command = {
  name: 'checkpoint',
  usage: '[--adopt]',
  summary: 'keep the newest signed head of the log and print it',
  details:
    'The signed note says how many audit rows there are and what their common hash is. Keep it anywhere outside this machine: "colibri verify --against NOTE" then shows whether the history before it was changed. Exit 1 when the log does not extend what was signed before. --adopt is the owner’s decision to go on anyway; it is recorded in the log as owner_adopt.',
  options: {
    adopt: {
      type: 'boolean',
      help: 'after a refusal: accept the log as it is, and say what protection is given up',
    },
  },
  positionals: [0, 0],
  async run({ values, out, config: readConfig }) {
    const config = readConfig();
    const { adoption, kept } = await withOwner(config, out, async (stages) => ({
      adoption: values.adopt === true ? await adopt(config, stages) : undefined,
      kept: await keepNewest(config, stages),
    }));
    out.data({ ...describeKept(kept), ...adoption }, () => {
      if (adoption !== undefined) printAdoption(adoption, out);
      if (kept.note === undefined) out.error(kept.refused);
      else process.stdout.write(kept.note);
    });
    return kept.note === undefined ? EXIT.found : EXIT.fine;
  },
};

/** The newest head of the log, signed and kept; or why nothing is signed. */
export type Kept =
  | { readonly note: string; readonly key: string }
  | { readonly note?: undefined; readonly refused: string };

export async function keepNewest({ dbPath }: Config, { signer }: OwnerStages): Promise<Kept> {
  const note = await signer.keep();
  const { refused, keys } = signer.state();
  const [key = ''] = keys;
  if (note !== undefined) return { note, key };
  return { refused: refused ?? `${dbPath} has no audit rows yet, so there is nothing to sign.` };
}

interface Adoption {
  readonly adopted: boolean;
  /** Why the log was not signed. */
  readonly reason?: string;
  /** What the owner no longer has, in sentences. */
  readonly given_up: readonly string[];
}

/** Accepts the log as it is, as a call of the owner that is recorded like any other. */
async function adopt(config: Config, { call, signer }: OwnerStages): Promise<Adoption> {
  const { reason, lost, key } = await signer.adopt();
  if (reason === undefined) return { adopted: false, given_up: [] };
  const args = { reason: reason.slice(0, LIMITS.reasonCharsMax), key, ...(lost !== undefined && { lost }) };
  const answer = await call('owner_adopt', args, actorOf(config));
  if (!answer.ok) throw new Error(answer.error.message);
  const forgone =
    lost === undefined
      ? 'Whatever was changed, cut off or put back before now is accepted as it is.'
      : `The checkpoint of ${lost.size} audit rows no longer counts: the log need not extend it any more.`;
  return { adopted: true, reason, given_up: [forgone, `The key ${key} signs from now on.`] };
}

function describeKept(kept: Kept): object {
  if (kept.note === undefined) return { refused: kept.refused };
  const { origin, size, root } = parseCheckpoint(kept.note.slice(0, kept.note.indexOf('\n\n') + 1));
  return { origin, size, root, key: kept.key, note: kept.note };
}

function printAdoption({ adopted, reason, given_up }: Adoption, out: Output): void {
  out.line(
    adopted
      ? `The log was not signed because: ${reason}`
      : 'There was nothing to adopt: the log extends what was signed last.',
  );
  for (const sentence of given_up) out.line(sentence);
  out.line();
}
