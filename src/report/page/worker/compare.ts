import { judgeAgain, type OpenedSource } from './open.ts';

export interface Comparison {
  readonly tone: 'good' | 'bad' | 'partly';
  readonly message: string;
}

/** A key in its text form. */
export const KEY = /^[^\s+]+\+[0-9a-f]{8}\+\S+$/;

/** Compares a key or a checkpoint that somebody kept elsewhere with what was opened. */
export async function compare(opened: OpenedSource, given: string): Promise<Comparison> {
  const text = given.trim();
  if (KEY.test(text)) return compareKey(opened, text);
  if (!text.includes('\n'))
    return unknown('This is neither a key (name+id+key) nor a checkpoint of several lines.');
  if (!opened.source.whole)
    return unknown('Only a bundle of the whole log can be compared with a checkpoint.');
  // The verifier is asked again, with the checkpoint: what it makes of one is not for this page to decide.
  const kept = { source: 'against', where: 'Your checkpoint', note: `${text}\n` } as const;
  const judged = await judgeAgain(opened.given, kept);
  if (judged === undefined) return unknown('Nothing could be compared.');
  const { status, message, key } = judged;
  if (status === 'consistent') return { tone: key === undefined ? 'partly' : 'good', message };
  return { tone: status === 'unchecked' || status === 'nothing' ? 'partly' : 'bad', message };
}

function compareKey({ verdict }: OpenedSource, text: string): Comparison {
  const own = verdict.checkpointed.find(({ key }) => key === text);
  return own === undefined
    ? { tone: 'bad', message: 'The key you gave has signed nothing here: someone else signed this.' }
    : { tone: 'good', message: `The key you gave has signed the first ${own.through} rows of this log.` };
}

export function unknown(message: string): Comparison {
  return { tone: 'partly', message };
}
