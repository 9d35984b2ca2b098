import type { Writable } from 'node:stream';
import { EXIT } from './command.ts';
import { wrap } from './text.ts';

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;
export type Colour = keyof typeof COLOURS;

/** Where a command prints. Colour and progress appear only on a terminal; with `--json` it prints one value and nothing else. */
export interface Output {
  readonly json: boolean;
  /** Columns to lay things out in. */
  readonly width: number;
  /** Columns a sentence may take before it is wrapped; unlimited where a program reads. */
  readonly wrapWidth: number;
  /** Wrapped between words on a narrow terminal; later lines begin with `hang` spaces. */
  line(text?: string, hang?: number): void;
  /** Exactly as it is: for what is copied or read by a program. */
  verbatim(text: string): void;
  /** With --json prints `value`; otherwise runs `people`. Answers the exit code. */
  data(value: unknown, people: () => void, isFine?: boolean): number;
  paint(colour: Colour, text: string): string;
  /** Shows how far `work` is; only where a person looks. */
  progress<T>(label: string, work: (onProgress: OnProgress) => Promise<T>): Promise<T>;
  error(text: string): void;
}

export type OnProgress = (done: number, total: number) => void;

type Terminal = Writable & { isTTY?: boolean; columns?: number };
const WIDTH_DEFAULT = 80;
const REDRAW_MS = 100;

export function createOutput(options: {
  readonly json: boolean;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  readonly colour: boolean;
  /** The variable COLUMNS, for output that goes through a pager. */
  readonly columns?: string | undefined;
}): Output {
  const { json, stdout, stderr } = options;
  const colour = options.colour && stdout.isTTY === true;
  const columns = stdout.columns ?? (Math.max(0, Math.trunc(Number(options.columns))) || undefined);
  const wrapWidth = columns ?? Number.POSITIVE_INFINITY;
  return {
    json,
    width: columns ?? WIDTH_DEFAULT,
    wrapWidth,
    line: (text = '', hang) => void stdout.write(`${wrap(text, wrapWidth, hang).join('\n')}\n`),
    verbatim: (text) => void stdout.write(`${text}\n`),
    data(value, people, isFine = true) {
      if (json) stdout.write(`${JSON.stringify(value, null, 2)}\n`);
      else people();
      return isFine ? EXIT.fine : EXIT.found;
    },
    paint: (name, text) => (colour ? `\u001b[${COLOURS[name]}m${text}\u001b[0m` : text),
    progress: (label, work) =>
      stderr.isTTY === true && !json
        ? work(drawProgress(stderr, label)).finally(() => stderr.write('\r\u001b[K'))
        : work(() => undefined),
    error(text) {
      for (const line of text.split('\n'))
        stderr.write(`${wrap(line, stderr.columns ?? Number.POSITIVE_INFINITY).join('\n')}\n`);
    },
  };
}

/** A bar must fit on one line, or it could not be redrawn. */
function drawProgress(stderr: Terminal, label: string): OnProgress {
  const width = Math.max(5, Math.min(30, (stderr.columns ?? WIDTH_DEFAULT) - `${label}  100 % `.length));
  let last = 0;
  return (done, total) => {
    const now = performance.now();
    if (now - last < REDRAW_MS && done < total) return;
    last = now;
    const share = total === 0 ? 1 : Math.min(1, done / total);
    const bar = '█'.repeat(Math.round(share * width)).padEnd(width, '░');
    stderr.write(`\r${label} ${bar} ${Math.floor(share * 100)} %`);
  };
}
