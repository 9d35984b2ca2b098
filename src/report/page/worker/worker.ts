/// <reference lib="dom" />
import type { Answer, Question } from '../protocol.ts';
import { compare, type OpenedSource, openSource, viewsOf } from './open.ts';
import { detailOf } from './questions.ts';

// All hashing happens here, off the thread that draws.

let current: OpenedSource | undefined;

self.onmessage = async ({ data }: MessageEvent<Question>) => {
  try {
    tell(await answer(data));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    tell({ tell: 'unreadable', message: `This cannot be read: ${reason}.` });
  }
};

async function answer(question: Question): Promise<Answer> {
  switch (question.ask) {
    case 'open':
      current = undefined;
      current = await openSource(question.given, tellProgress);
      return { tell: 'opened', opened: await viewsOf(current) };
    case 'detail':
      return { tell: 'detail', detail: await detailOf(opened(), [question.position, question.exit]) };
    case 'compare':
      return { tell: 'comparison', comparison: await compare(opened(), question.text, () => undefined) };
  }
}

function opened(): OpenedSource {
  if (current === undefined) throw new Error('nothing is open');
  return current;
}

let toldAt = 0;

/** A few times a second: each message costs the page a drawing. */
function tellProgress(done: number, total: number): void {
  const now = performance.now();
  if (now - toldAt < 100 && done !== total) return;
  toldAt = now;
  tell({ tell: 'progress', done, total });
}

function tell(message: Answer): void {
  self.postMessage(message);
}
