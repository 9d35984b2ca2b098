/// <reference lib="dom" />
import type { Answer, Question } from '../protocol.ts';
import { BundleError, readFiles } from './files.ts';
import { reason } from './heads.ts';
import { compare, detailOf } from './questions.ts';
import { verifyFiles, type Walked } from './verify.ts';
import { sessionsOf, tasksOf } from './views.ts';

// All hashing happens here, off the thread that draws.

let walked: Walked | undefined;

self.onmessage = async ({ data }: MessageEvent<Question>) => {
  try {
    tell(await answer(data));
  } catch (error) {
    const message =
      error instanceof BundleError ? error.message : `The bundle cannot be read: ${reason(error)}.`;
    tell({ tell: 'unreadable', message });
  }
};

async function answer(question: Question): Promise<Answer> {
  switch (question.ask) {
    case 'open': {
      walked = undefined;
      const files = await readFiles(question.given);
      walked = await verifyFiles(files, (done, total, rows) => tell({ tell: 'progress', done, total, rows }));
      const { verdict, state, story, tally } = walked;
      const calls = story.finish(tally.wrongAt);
      return {
        tell: 'opened',
        opened: { verdict, calls, tasks: tasksOf(state), sessions: sessionsOf(state, calls) },
      };
    }
    case 'detail':
      return { tell: 'detail', detail: await detailOf(opened(), [question.position, question.exit]) };
    case 'compare':
      return { tell: 'comparison', comparison: await compare(opened(), question.text) };
  }
}

function opened(): Walked {
  if (walked === undefined) throw new BundleError('No bundle is open.');
  return walked;
}

function tell(message: Answer): void {
  self.postMessage(message);
}
