/// <reference lib="dom" />
import { type Given, type OpenedSource, openSource } from './open.ts';
import { compare, detailOf } from './questions.ts';

// All hashing happens here, off the thread that draws.

export type Question =
  | { readonly ask: 'open'; readonly given: Given }
  | { readonly ask: 'detail'; readonly positions: readonly number[] }
  | { readonly ask: 'compare'; readonly text: string };

export type Message =
  | { readonly tell: 'progress'; readonly done: number; readonly total: number }
  | { readonly tell: 'answer'; readonly answer: Awaited<ReturnType<typeof answerTo>> }
  | { readonly tell: 'unreadable'; readonly message: string };

let current: OpenedSource | undefined;

self.onmessage = async ({ data }: MessageEvent<Question>) => {
  try {
    tell({ tell: 'answer', answer: await answerTo(data) });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    tell({ tell: 'unreadable', message: `This cannot be read: ${reason}.` });
  }
};

async function answerTo(question: Question) {
  if (question.ask === 'open') {
    current = undefined;
    current = await openSource(question.given, tellProgress);
    return current.shown;
  }
  if (current === undefined) throw new Error('nothing is open');
  if (question.ask === 'detail') return await detailOf(current, question.positions);
  return await compare(current, question.text);
}

let toldAt = 0;

/** A few times a second: each message makes the page draw. */
function tellProgress(done: number, total: number): void {
  const now = performance.now();
  if (now - toldAt < 100 && done !== total) return;
  toldAt = now;
  tell({ tell: 'progress', done, total });
}

function tell(message: Message): void {
  self.postMessage(message);
}
