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
export interface Output {
  readonly json: boolean;
  /** Columns to lay things out in. */
  readonly width: number;
  /** Columns a sentence may take before it is wrapped; unlimited where a program reads. */
  readonly wrapWidth: number;
  /** Whether a person looks at it right now. */
  readonly isTerminal: boolean;
  /** Wrapped between words on a narrow terminal; later lines begin with `hang` spaces. */
  line(text?: string, hang?: number): void;
  /** Never wrapped, and line breaks stay: for what is copied or laid out already. */
  verbatim(text: string): void;
  /** One value for programs. */
  value(data: unknown, indent?: number): void;
  /** With --json prints `data`; otherwise runs `people`. Answers the exit code. */
  data(data: unknown, people: () => void, isFine?: boolean): number;
  /** A table for a spreadsheet, as RFC 4180 has it. */
  csv(rows: readonly (readonly string[])[]): void;
  paint(colour: Colour, text: string): string;
  /** Empties the screen of a terminal, for what is drawn again and again. */
  clear(): void;
  /** Lets a person leaf through what `work` prints; only on a terminal. */
  paged<T>(work: (out: Output) => Promise<T>): Promise<T>;
  /** Shows how far `work` is; only where a person looks. */
  progress<T>(label: string, work: (onProgress: OnProgress) => Promise<T>): Promise<T>;
  /** Asks a person, and takes nothing but "yes". False where nobody can answer. */
  confirm(question: string): Promise<boolean>;
  /** Later lines are indented, so that none that a message quotes looks like one of ours. */
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
  /** Where a person answers. */
  readonly stdin: Readable & { isTTY?: boolean };
  readonly colour: boolean;
  /** The variable COLUMNS, for output that goes through a pager. */
  readonly columns?: string | undefined;
  /** Starts the user's pager, where there is one. */
  readonly pager?: () => { readonly input: Writable; readonly ended: Promise<void> } | undefined;
}): Output {
  const { json, stdout, stderr, stdin } = options;
  const isColoured = options.colour && stdout.isTTY === true;
  // Some terminals say that they have no columns, because nobody told them.
  const columns = stdout.columns || Math.max(0, Math.trunc(Number(options.columns))) || undefined;
  const wrapWidth = columns ?? Number.POSITIVE_INFINITY;
  const styles = createStyles();
  const value: Output['value'] = (data, indent) => void stdout.write(`${jsonText(data, indent)}\n`);
  const isTerminal = stdout.isTTY === true;
  const out: Output = {
    json,
    width: columns ?? WIDTH_DEFAULT,
    wrapWidth,
    isTerminal,
    line(text = '', hang) {
      for (const line of wrap(styles.show(text, visibleLine), wrapWidth, hang)) stdout.write(`${line}\n`);
    },
    verbatim: (text) => void stdout.write(`${styles.show(text, visible)}\n`),
    value,
    data(data, people, isFine = true) {
      if (json) value(data, 2);
      else people();
      return isFine ? EXIT.fine : EXIT.found;
    },
    csv(rows) {
      for (const row of rows) stdout.write(`${row.map(csvCell).join(',')}\r\n`);
    },
    paint: (colour, text) => (isColoured ? styles.paint(colour, text) : text),
    clear: () => void (isTerminal && stdout.write('\u001b[H\u001b[2J\u001b[3J')),
    async paged(work) {
      const pager = isTerminal && !json ? options.pager?.() : undefined;
      if (pager === undefined) return await work(out);
      // What the pager shows is still on this terminal.
      const input: Terminal = Object.assign(pager.input, { isTTY: true, columns: out.width });
      const { pager: _, ...others } = options;
      try {
        return await work(createOutput({ ...others, stdout: input }));
      } finally {
        pager.input.end();
        await pager.ended;
      }
    },
    progress: (label, work) =>
      stderr.isTTY === true && !json
        ? work(drawProgress(stderr, label)).finally(() => stderr.write('\r\u001b[K'))
        : work(() => undefined),
    async confirm(question) {
      if (stdin.isTTY !== true || stderr.isTTY !== true) return false;
      const terminal = createInterface({ input: stdin, output: stderr });
      try {
        return (await terminal.question(`${question} Type yes: `)).trim().toLowerCase() === 'yes';
      } finally {
        terminal.close();
      }
    },
    error(text) {
      for (const line of visible(text).replaceAll('\n', '\n  ').split('\n'))
        for (const part of wrap(line, stderr.columns || Number.POSITIVE_INFINITY)) stderr.write(`${part}\n`);
    },
  };
  return out;
}

/** A spreadsheet runs what begins with one of these as a formula, also behind spaces; a quote in front makes it a text. */
const FORMULA = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

function csvCell(text: string): string {
  const inert = visible(FORMULA.test(text) ? `'${text}` : text);
  return /[",\r\n]/.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
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
  const width = Math.max(5, Math.min(30, (stderr.columns || WIDTH_DEFAULT) - `${label}  100 % `.length));
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
