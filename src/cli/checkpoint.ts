import type { Config } from '../config.ts';
import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { LIMITS } from '../limits.ts';
import { signStatement } from '../trust/statement.ts';
import { command } from './command.ts';
import { type OwnerStages, withOwner } from './open.ts';
import { lookForTrouble, ROWS_ASIDE_MAX } from './trouble.ts';

/** Files the newest signed head of the log for good and prints it. */
export const checkpoint = command({
  name: 'checkpoint',
  usage: '[--adopt]',
  summary: 'print the newest signed head of the log, and keep it for good',
  details:
    'The signed note gives the number of audit rows and the hash over all of them. Keep a copy outside this machine: "colibri verify --against NOTE" then shows whether earlier history was changed. A log of up to 100,000 rows is also verified. Exit 1 if something is wrong with it, or if it does not extend what was signed before. With --adopt, the owner decides to continue anyway; this is recorded in the log as owner_adopt.',
  options: {
    adopt: { help: 'after a refusal: accept the log as it is' },
  },
  async run({ values, out, config }) {
    const { adoption, kept, trouble, unverified } = await withOwner(config, out, async (stages) => ({
      adoption: values.adopt === true ? await adopt(stages) : undefined,
      kept: await keepNewest(config, stages),
      ...(await lookForTrouble(config, stages.storage, out, ROWS_ASIDE_MAX)),
    }));
    // A refusal says itself what is wrong.
    const isNews = trouble !== undefined && !('refused' in kept);
    if (isNews) out.error(trouble);
    if (unverified !== undefined)
      out.error(
        `${unverified} audit rows are signed but were not verified. Run "colibri verify" to verify them.`,
      );
    const printKept = () => {
      if (adoption !== undefined) {
        const { adopted, reason, given_up } = adoption;
        const nothing = 'There was nothing to adopt: the log extends what was signed last.';
        out.line(adopted ? `Why the log was not signed: ${reason}` : nothing);
        for (const sentence of given_up) out.line(sentence);
        out.line();
      }
      if ('refused' in kept) out.error(kept.refused);
      else out.verbatim(kept.note.trimEnd());
    };
    const data = { ...kept, ...adoption, ...(isNews && { trouble }) };
    return out.data(data, printKept, !('refused' in kept) && !isNews);
  },
});

type Kept = (Checkpoint & { readonly key: string; readonly note: string }) | { readonly refused: string };

/** The newest head of the log, signed and kept; or why nothing is signed. */
export async function keepNewest({ dbPath }: Config, { signer }: OwnerStages): Promise<Kept> {
  const note = await signer.keep();
  const { refused, keys } = signer.state();
  if (note === undefined)
    return { refused: refused ?? `${dbPath} has no audit rows yet, so there is nothing to sign.` };
  return { ...parseCheckpoint(note.slice(0, note.indexOf('\n\n') + 1)), key: keys[0] ?? '', note };
}

/** Accepts the log as it is, as a recorded call of the owner. Says why it was not signed, and what the owner no longer has. */
async function adopt({ act, signer }: OwnerStages) {
  const { reason, lost, own, tree } = await signer.adopt();
  if (reason === undefined || own === undefined) return { adopted: false, given_up: [] };
  const key = own.signer.verifierKey;
  const said = { key, rows: tree?.size ?? 0, ...(lost !== undefined && { lost }) };
  const signed = signStatement(own.signer, { tool: 'owner_adopt', args: said });
  await act('owner_adopt', { reason: reason.slice(0, LIMITS.reasonCharsMax), ...said, signed });
  const forgone =
    lost === undefined
      ? 'Everything that was changed, cut off or restored before now is accepted as it is.'
      : `The checkpoint of ${lost.size} audit rows no longer counts: the log does not have to extend it any more.`;
  return { adopted: true, reason, given_up: [forgone, `The key ${key} signs from now on.`] };
}
