import { createInterface } from 'node:readline/promises';
import type { Readable, Writable } from 'node:stream';
import { systemClock } from '../clock.ts';
import { jsonText, visible, visibleLine } from '../untrusted.ts';
import { EXIT } from './command.ts';
import { wrap } from './text.ts';

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;
export type Colour = keyof typeof COLOURS;

/**
 * Where a command prints; nothing else writes to the terminal. Whatever is printed may quote a stranger: every character
 * that acts is spelled out here, except in the colours of `paint`. Colour and progress appear only on a terminal; with
 * `--json` it prints one value and nothing else.
 */
export type Output = ReturnType<typeof createOutput>;

export type OnProgress = (done: number, total: number) => void;

type Terminal = Writable & { isTTY?: boolean; columns?: number };
const WIDTH_DEFAULT = 80;
const REDRAW_MS = 100;

export function createOutput(options: {
  readonly json: boolean;
  readonly stdout: Terminal;
  readonly stderr: Terminal;
  /** Where a person answers. */
  readonly stdin: Readable & { isTTY?: boolean };
  readonly colour: boolean;
  /** The variable COLUMNS, for output that goes through a pager. */
  readonly columns?: string | undefined;
}) {
  const { json, stdout, stderr, stdin } = options;
  const isColoured = options.colour && stdout.isTTY === true;
  const columns = stdout.columns ?? (Math.max(0, Math.trunc(Number(options.columns))) || undefined);
  const wrapWidth = columns ?? Number.POSITIVE_INFINITY;
  const styles = createStyles();
  const value = (data: unknown, indent?: number): void => void stdout.write(`${jsonText(data, indent)}\n`);
  return {
    json,
    /** Columns to lay things out in. */
    width: columns ?? WIDTH_DEFAULT,
    /** Columns a sentence may take before it is wrapped; unlimited where a program reads. */
    wrapWidth,
    /** Wrapped between words on a narrow terminal; later lines begin with `hang` spaces. */
    line(text = '', hang?: number): void {
      for (const line of wrap(styles.show(text, visibleLine), wrapWidth, hang)) stdout.write(`${line}\n`);
    },
    /** Never wrapped, and line breaks stay: for what is copied or laid out already. */
    verbatim: (text: string): void => void stdout.write(`${styles.show(text, visible)}\n`),
    /** One value for programs. */
    value,
    /** With --json prints `data`; otherwise runs `people`. Answers the exit code. */
    data(data: unknown, people: () => void, isFine = true): number {
      if (json) value(data, 2);
      else people();
      return isFine ? EXIT.fine : EXIT.found;
    },
    paint: (colour: Colour, text: string) => (isColoured ? styles.paint(colour, text) : text),
    /** Shows how far `work` is; only where a person looks. */
    progress: <T>(label: string, work: (onProgress: OnProgress) => Promise<T>): Promise<T> =>
      stderr.isTTY === true && !json
        ? work(drawProgress(stderr, label)).finally(() => stderr.write('\r\u001b[K'))
        : work(() => undefined),
    /** Asks a person, and takes nothing but "yes". False where nobody can answer. */
    async confirm(question: string): Promise<boolean> {
      if (stdin.isTTY !== true || stderr.isTTY !== true) return false;
      const terminal = createInterface({ input: stdin, output: stderr });
      try {
        return (await terminal.question(`${question} Type yes: `)).trim().toLowerCase() === 'yes';
      } finally {
        terminal.close();
      }
    },
    /** Later lines are indented, so that none that a message quotes looks like one of ours. */
    error(text: string): void {
      for (const line of visible(text).replaceAll('\n', '\n  ').split('\n'))
        for (const part of wrap(line, stderr.columns ?? Number.POSITIVE_INFINITY)) stderr.write(`${part}\n`);
    },
  };
}

/** Colours carry a number that no stranger can know until they are shown, so that a text cannot bring its own. */
function createStyles() {
  const digits = BigInt(`0x${systemClock.salt()}`).toString();
  const own = digits.match(/\d{1,4}/g)?.join(';');
  const begun = new RegExp(`(\\u001b\\[\\d+);${own}m`);
  return {
    paint: (colour: Colour, text: string) => `\u001b[${COLOURS[colour]};${own}m${text}\u001b[0;${own}m`,
    /** Spells out what acts in everything but these colours. */
    show: (text: string, spell: (text: string) => string) =>
      text
        .split(begun)
        .map((part, i) => (i % 2 === 1 ? `${part}m` : spell(part)))
        .join(''),
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
