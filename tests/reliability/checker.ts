import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Answered } from './recorder.ts';

const SCRIPT = fileURLToPath(new URL('checker.py', import.meta.url));

/** What the second reader says of a file. */
export interface Verdict {
  /** Everything that is wrong, acked and lost calls included. Empty for a sound file. */
  readonly findings: readonly string[];
  readonly rows: number;
  readonly version: number;
  /** Acked calls the log knows nothing of. */
  readonly lost: number;
  /** Calls begun and not ended. */
  readonly open: number;
  readonly crashed: number;
  /** Writing calls that ended well. */
  readonly ok: number;
  readonly objects?: readonly string[];
  readonly head?: readonly string[];
}

export interface Question {
  readonly db: string;
  readonly acked?: readonly Answered[];
  /** A server has started since: no call may be left open. */
  readonly settled?: boolean;
}

/** The checker as a process: one question a line, one verdict a line. Python starts once for all of them. */
export class Checker {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting: { resolve(verdict: Verdict): void; reject(error: Error): void }[] = [];
  #text = '';

  constructor() {
    this.#child = spawn('python3', [SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdout.setEncoding('utf8').on('data', (chunk: string) => this.#receive(chunk));
    this.#child.once('exit', (code) => {
      for (const { reject } of this.#waiting.splice(0)) reject(new Error(`the checker ended (${code})`));
    });
  }

  judge(question: Question): Promise<Verdict> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#child.stdin.write(`${JSON.stringify(question)}\n`);
    });
  }

  close(): void {
    this.#child.stdin.end();
  }

  #receive(chunk: string): void {
    const lines = (this.#text + chunk).split('\n');
    this.#text = lines.pop() ?? '';
    for (const line of lines) this.#waiting.shift()?.resolve(JSON.parse(line) as Verdict);
  }
}
