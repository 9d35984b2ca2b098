import type { Writable } from 'node:stream';

const COLOURS = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const;
export type Colour = keyof typeof COLOURS;

/** Where a command prints. Colour and progress only where a person looks; `--json` prints one value and nothing else. */
export interface Output {
  readonly json: boolean;
  readonly width: number;
  line(text?: string): void;
  /** Prints `value` where --json was asked; else runs `people`. */
  data(value: unknown, people: () => void): void;
  paint(colour: Colour, text: string): string;
  progress(label: string): Progress;
  error(text: string): void;
}

export interface Progress {
  update(done: number, total: number): void;
  end(): void;
}

const WIDTH_DEFAULT = 80;
const BAR_WIDTH = 30;
const REDRAW_MS = 100;

export function createOutput(options: {
  readonly json: boolean;
  readonly stdout: Writable & { isTTY?: boolean; columns?: number };
  readonly stderr: Writable & { isTTY?: boolean };
  readonly colour: boolean;
}): Output {
  const { json, stdout, stderr } = options;
  const colour = options.colour && stdout.isTTY === true;
  return {
    json,
    width: stdout.columns ?? WIDTH_DEFAULT,
    line: (text = '') => void stdout.write(`${text}\n`),
    data: (value, people) => (json ? void stdout.write(`${JSON.stringify(value, null, 2)}\n`) : people()),
    paint: (name, text) => (colour ? `\u001b[${COLOURS[name]}m${text}\u001b[0m` : text),
    progress: (label) =>
      stderr.isTTY === true && !json ? drawProgress(stderr, label) : { update() {}, end() {} },
    error: (text) => void stderr.write(`${text}\n`),
  };
}

function drawProgress(stderr: Writable, label: string): Progress {
  let last = 0;
  return {
    update(done, total) {
      const now = performance.now();
      if (now - last < REDRAW_MS && done < total) return;
      last = now;
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const filled = Math.round(share * BAR_WIDTH);
      stderr.write(
        `\r${label} ${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${Math.floor(share * 100)} %`,
      );
    },
    end() {
      stderr.write('\r\u001b[K');
    },
  };
}

/** What a stranger wrote, made safe for a terminal: control and direction characters become visible. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) =>
    c === '\n' || c === '\t' ? ' ' : `\\u{${c.codePointAt(0)?.toString(16)}}`,
  );
}

/** Columns a terminal needs for `text`: wide scripts and emoji take two. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const c of text)
    width += /\p{Mn}|\p{Me}/u.test(c)
      ? 0
      : /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u.test(
            c,
          )
        ? 2
        : 1;
  return width;
}

/** `text` in exactly `width` columns: cut with an ellipsis, or filled up. */
export function toWidth(text: string, width: number): string {
  if (displayWidth(text) <= width) return text + ' '.repeat(width - displayWidth(text));
  let cut = '';
  for (const c of text) {
    if (displayWidth(cut + c) > width - 1) break;
    cut += c;
  }
  return `${cut}…${' '.repeat(Math.max(0, width - 1 - displayWidth(cut)))}`;
}
