import { tellCertificate } from '../../certificate.ts';
import { heldLog, type Known } from './held-log.ts';
import { liveLog } from './live-log.ts';
import type { Log } from './log.ts';
import { type Given, openSource } from './open.ts';

// All hashing happens here, off the thread that draws.

let log: Log | undefined;
let live: ReturnType<typeof liveLog> | undefined;

/** What is known of a bundle or a certificate once it is checked. The rest is asked of its log. */
export type Opened = Awaited<ReturnType<(typeof ANSWERS)['open']>>;

const ANSWERS = {
  /** Checks a bundle or a certificate. */
  async open(given: Given, known: Known) {
    log = undefined;
    live = undefined;
    const opened = await openSource(given, tellProgress);
    log = heldLog(opened, known);
    return {
      verdict: opened.verdictView,
      // Every text is a stranger's, and none is proved where there are findings.
      certificate: opened.source.whole ? undefined : tellCertificate(opened.source.subject, opened),
      choices: await log.choices(),
    };
  },
  /** Follows the log behind a server. */
  async follow(base: string) {
    live = liveLog(base);
    log = live.log;
    return await live.poll();
  },
  /** What has become of it meanwhile. */
  async poll() {
    if (live === undefined) throw new Error('no server is asked');
    return await live.poll();
  },
};

/** What can be asked: these, and everything that a log answers. */
export type Questions = typeof ANSWERS & Log;

/** A question with what it is about. */
export type Question = readonly [name: keyof Questions, ...about: never[]];

export interface Message {
  /** Rows checked so far, and of how many. */
  readonly progress?: readonly [done: number, total: number];
  /** Why there is no answer, for people. */
  readonly unreadable?: string;
  readonly answer?: unknown;
}

self.onmessage = async ({ data: [name, ...about] }: MessageEvent<Question>) => {
  try {
    self.postMessage({ answer: await answer(name, about) } satisfies Message);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    self.postMessage({ unreadable: `This cannot be read: ${reason}.` } satisfies Message);
  }
};

function answer(name: keyof Questions, about: readonly never[]): unknown {
  type Ask = (...about: readonly never[]) => unknown;
  const asked = Object.hasOwn(ANSWERS, name) ? ANSWERS : log;
  const ask = (asked as Readonly<Record<string, Ask>> | undefined)?.[name];
  if (ask === undefined) throw new Error('nothing is open');
  return ask(...about);
}

let toldAt = 0;

/** A few times a second: each message makes the page draw. */
function tellProgress(done: number, total: number): void {
  const now = performance.now();
  if (now - toldAt < 100 && done !== total) return;
  toldAt = now;
  self.postMessage({ progress: [done, total] } satisfies Message);
}
