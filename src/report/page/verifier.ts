import type { Answers, Message } from './worker/worker.ts';

/** The source of the worker, put in by the build. */
declare const WORKER_SOURCE: string;

type Policy = { createScriptURL(url: string): string };

/** Starts the worker that hashes. One question at a time: each waits for the answer to the one before. */
export function startVerifier(onProgress: (done: number, total: number) => void) {
  const worker = startWorker();
  let queue: Promise<unknown> = Promise.resolve();

  /** Rejects with a sentence for people where there is no answer. */
  return <Name extends keyof Answers>(name: Name, given: Parameters<Answers[Name]>[0]) => {
    const answer = queue.then(
      () =>
        new Promise<Awaited<ReturnType<Answers[Name]>>>((resolve, reject) => {
          worker.onerror = (event) => reject(new Error(event.message || 'The verifier stopped.'));
          worker.onmessage = ({ data }: MessageEvent<Message>) => {
            if (data.progress !== undefined) onProgress(...data.progress);
            else if (data.unreadable !== undefined) reject(new Error(data.unreadable));
            else resolve(data.answer as Awaited<ReturnType<Answers[Name]>>);
          };
          worker.postMessage([name, given]);
        }),
    );
    queue = answer.catch(() => undefined);
    return answer;
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
