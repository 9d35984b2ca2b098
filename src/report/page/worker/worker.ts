/// <reference lib="dom" />
import { type Given, type OpenedSource, openSource } from './open.ts';
import { compare, detailOf } from './questions.ts';

// All hashing happens here, off the thread that draws.

let current: OpenedSource | undefined;

function opened(): OpenedSource {
  if (current === undefined) throw new Error('nothing is open');
  return current;
}

const ANSWERS = {
  /** Checks a bundle or a certificate. */
  async open(given: Given) {
    current = undefined;
    current = await openSource(given, tellProgress);
    return current.shown;
  },
  detail: (positions: readonly number[]) => detailOf(opened(), positions),
  compare: (text: string) => compare(opened(), text),
};
export type Answers = typeof ANSWERS;

export interface Message {
  /** Rows checked so far, and of how many. */
  readonly progress?: readonly [done: number, total: number];
  /** Why there is no answer, for people. */
  readonly unreadable?: string;
  readonly answer?: unknown;
}

self.onmessage = async ({ data: [name, given] }: MessageEvent<[keyof Answers, never]>) => {
  try {
    tell({ answer: await ANSWERS[name](given) });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    tell({ unreadable: `This cannot be read: ${reason}.` });
  }
};

let toldAt = 0;

/** A few times a second: each message makes the page draw. */
function tellProgress(done: number, total: number): void {
  const now = performance.now();
  if (now - toldAt < 100 && done !== total) return;
  toldAt = now;
  tell({ progress: [done, total] });
}

function tell(message: Message): void {
  self.postMessage(message);
}
