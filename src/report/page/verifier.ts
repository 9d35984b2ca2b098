/// <reference lib="dom" />
import type { Answer, CallDetail, Comparison, Given, Opened, Question } from './protocol.ts';

/** The source of the worker, put in by the build. */
declare const WORKER_SOURCE: string;

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string };
}

export interface Opening {
  onProgress(done: number, total: number): void;
}

/** The worker that hashes. One question at a time: each waits for the answer to the one before. */
export class Verifier {
  readonly #worker = startWorker();
  #onProgress: Opening['onProgress'] = () => undefined;
  #settle: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor() {
    this.#worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      if (data.tell === 'progress') this.#onProgress(data.done, data.total);
      else this.#settle?.resolve(data);
    };
    this.#worker.onerror = (event) => {
      this.#settle?.reject(new Error(event.message || 'The verifier stopped.'));
    };
  }

  /** Checks a bundle or a certificate. Throws with a sentence for people where that fails. */
  async open(given: Given, onProgress: Opening['onProgress']): Promise<Opened> {
    this.#onProgress = onProgress;
    const answer = await this.#ask({ ask: 'open', given });
    if (answer.tell === 'opened') return answer.opened;
    throw new Error(answer.tell === 'unreadable' ? answer.message : 'The verifier gave no answer.');
  }

  async detail(position: number, exit: number): Promise<CallDetail> {
    const answer = await this.#ask({ ask: 'detail', position, exit });
    return answer.tell === 'detail' ? answer.detail : { rows: [], proof: undefined };
  }

  async compare(text: string): Promise<Comparison> {
    const answer = await this.#ask({ ask: 'compare', text });
    if (answer.tell === 'comparison') return answer.comparison;
    return { state: 'unknown', message: 'Nothing could be compared.' };
  }

  #ask(question: Question): Promise<Answer> {
    const answer = this.#queue.then(
      () =>
        new Promise<Answer>((resolve, reject) => {
          this.#settle = { resolve, reject };
          this.#worker.postMessage(question);
        }),
    );
    this.#queue = answer.catch(() => undefined);
    return answer;
  }
}

/** The page's policy lets workers come from nowhere but a text of the page itself. */
function startWorker(): Worker {
  const url = URL.createObjectURL(new Blob([WORKER_SOURCE], { type: 'text/javascript' }));
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  const policy = trustedTypes?.createPolicy('colibri-worker', { createScriptURL: (own) => own });
  return new Worker(policy?.createScriptURL(url) ?? url);
}
