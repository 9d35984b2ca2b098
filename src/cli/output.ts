import type { Writable } from 'node:stream';
import { EXIT } from './command.ts';
import { wrap } from './text.ts';

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;
export type Colour = keyof typeof COLOURS;

/** Where a command prints. Colour and progress appear only on a terminal; with `--json` it prints one value and nothing else. */
export type Output = ReturnType<typeof createOutput>;

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
}) {
  const { json, stdout, stderr } = options;
  const isColoured = options.colour && stdout.isTTY === true;
  const columns = stdout.columns ?? (Math.max(0, Math.trunc(Number(options.columns))) || undefined);
  const wrapWidth = columns ?? Number.POSITIVE_INFINITY;
  return {
    json,
    /** Columns to lay things out in. */
    width: columns ?? WIDTH_DEFAULT,
    /** Columns a sentence may take before it is wrapped; unlimited where a program reads. */
    wrapWidth,
    /** Wrapped between words on a narrow terminal; later lines begin with `hang` spaces. */
    line(text = '', hang?: number): void {
      stdout.write(`${wrap(text, wrapWidth, hang).join('\n')}\n`);
    },
    /** Exactly as it is: for what is copied or read by a program. */
    verbatim: (text: string): void => void stdout.write(`${text}\n`),
    /** With --json prints `value`; otherwise runs `people`. Answers the exit code. */
    data(value: unknown, people: () => void, isFine = true): number {
      if (json) stdout.write(`${JSON.stringify(value, null, 2)}\n`);
      else people();
      return isFine ? EXIT.fine : EXIT.found;
    },
    paint: (colour: Colour, text: string) =>
      isColoured ? `\u001b[${COLOURS[colour]}m${text}\u001b[0m` : text,
    /** Shows how far `work` is; only where a person looks. */
    progress: <T>(label: string, work: (onProgress: OnProgress) => Promise<T>): Promise<T> =>
      stderr.isTTY === true && !json
        ? work(drawProgress(stderr, label)).finally(() => stderr.write('\r\u001b[K'))
        : work(() => undefined),
    error(text: string): void {
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
