import { stripVTControlCharacters } from 'node:util';

/** Text by somebody else, made safe for a terminal: control and direction characters become visible. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) =>
    c === '\n' || c === '\t' ? ' ' : `\\u{${c.codePointAt(0)?.toString(16)}}`,
  );
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Columns a terminal needs for `text`: wide scripts and emoji take two, combining marks and colours none. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const c of stripVTControlCharacters(text))
    width += /\p{Mn}|\p{Me}/u.test(c) ? 0 : WIDE.test(c) ? 2 : 1;
  return width;
}

/** `text` in exactly `width` columns: cut with an ellipsis, or padded. */
export function toWidth(text: string, width: number): string {
  if (displayWidth(text) <= width) return text + ' '.repeat(width - displayWidth(text));
  let cut = '';
  for (const c of text) {
    if (displayWidth(cut + c) > width - 1) break;
    cut += c;
  }
  return `${cut}…${' '.repeat(Math.max(0, width - 1 - displayWidth(cut)))}`;
}

/** Below this width, wrapping is left to the terminal. */
const WIDTH_MIN = 10;

/**
 * `text` in lines of at most `width` columns, broken between words; later lines begin with `hang` spaces. A word that is
 * too long stays whole, so that a path or a hash can still be copied.
 */
export function wrap(text: string, width: number, hang = text.search(/\S|$/)): string[] {
  if (displayWidth(text) <= width) return [text];
  const room = Math.max(WIDTH_MIN, width);
  const indent = ' '.repeat(Math.min(hang, room - WIDTH_MIN / 2));
  const lines: string[] = [];
  let line = '';
  for (const [, gap = '', word = ''] of text.matchAll(/( *)([^ ]+)/g)) {
    const begun = line.trim() !== '';
    if (begun && displayWidth(line) + gap.length + displayWidth(word) > room) {
      lines.push(line);
      line = indent + word;
    } else {
      line += gap + word;
    }
  }
  return [...lines, line];
}
