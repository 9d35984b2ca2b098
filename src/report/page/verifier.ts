/// <reference lib="dom" />
import type { Given, Opened } from './worker/open.ts';
import type { CallDetail, Comparison } from './worker/questions.ts';
import type { Message, Question } from './worker/worker.ts';

/** The source of the worker, put in by the build. */
declare const WORKER_SOURCE: string;

interface Policy {
  createScriptURL(url: string): string;
}

/** Starts the worker that hashes. One question at a time: each waits for the answer to the one before. */
export function startVerifier(onProgress: (done: number, total: number) => void) {
  const worker = startWorker();
  let queue: Promise<unknown> = Promise.resolve();

  function ask<T>(question: Question): Promise<T> {
    const answer = queue.then(
      () =>
        new Promise<T>((resolve, reject) => {
          worker.onerror = (event) => reject(new Error(event.message || 'The verifier stopped.'));
          worker.onmessage = ({ data }: MessageEvent<Message & { answer: T }>) => {
            if (data.tell === 'progress') onProgress(data.done, data.total);
            else if (data.tell === 'unreadable') reject(new Error(data.message));
            else resolve(data.answer);
          };
          worker.postMessage(question);
        }),
    );
    queue = answer.catch(() => undefined);
    return answer;
  }

  return {
    /** Checks a bundle or a certificate. Rejects with a sentence for people where that fails. */
    open: (given: Given) => ask<Opened>({ ask: 'open', given }),
    detail: (...positions: number[]) => ask<CallDetail>({ ask: 'detail', positions }),
    compare: (text: string) => ask<Comparison>({ ask: 'compare', text }),
  };
}

/** The page's policy lets workers come from nowhere but a text of the page itself. */
function startWorker(): Worker {
  const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: 'text/javascript' }));
  const { trustedTypes } = globalThis as {
    trustedTypes?: { createPolicy(name: string, rules: Policy): Policy };
  };
  const policy = trustedTypes?.createPolicy('colibri-worker', { createScriptURL: (own) => own });
  return new Worker(policy?.createScriptURL(url) ?? url);
}
