import { tellCall } from '../report/telling.ts';
import type { Colour, Output } from './output.ts';
import type { ProofState, ProvedCall } from './proof-status.ts';
import { displayWidth, printable, toWidth, wrap } from './text.ts';

/** In a narrower terminal, what happened goes below who did it, not next to it. */
const ONE_LINE_WIDTH_MIN = 80;
/** A thought may have 5,000 characters; `colibri show` prints them all. */
const LINES_MAX = 4;
const ACTOR_WIDTH = 14;

/** Prints one call for a person: how well it is proved, when, who, what, and how it ended. */
export function printCall(call: ProvedCall, out: Output, indent = 0): void {
  const { at, actor, kind, verb, error, tool, task, text } = tellCall(call);
  const [mark, colour] = MARKS[call.proof];
  const when = toWidth(`${printable(at).replace('T', ' ').slice(0, 19)}Z`, 20);
  const who = out.paint('cyan', toWidth(printable(actor), ACTOR_WIDTH));
  const head = `${' '.repeat(indent)}${out.paint(colour, mark)} ${out.paint('dim', when)} ${who}`;
  const failed = printable(`${verb}${error && ` with ${error}`}: ${tool}`);
  const did = kind === 'failure' ? out.paint('red', failed) : printable(kind === 'read' ? tool : verb);
  const what = [did, printable(task), printable(text)].filter(Boolean).join(' ');
  const hang = out.wrapWidth < ONE_LINE_WIDTH_MIN ? indent + 4 : displayWidth(head) + 1;
  const lines = wrap(`${head} ${what}`, out.wrapWidth, hang);
  for (const line of lines.slice(0, LINES_MAX)) out.verbatim(line);
  if (lines.length > LINES_MAX) out.verbatim(`${' '.repeat(hang)}…`);
}

const MARKS: Readonly<Record<ProofState, readonly [mark: string, colour: Colour, meaning: string]>> = {
  anchored: ['◆', 'green', 'anchored'],
  checkpointed: ['●', 'green', 'checkpointed'],
  unsigned: ['○', 'yellow', 'not signed'],
  wrong: ['✗', 'red', 'not as it was signed'],
};

export const PROOF_LEGEND = Object.values(MARKS)
  .map(([mark, , meaning]) => `${mark} ${meaning}`)
  .join('  ');
