import { stripVTControlCharacters } from 'node:util';

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

// What a reader sees as one character: a letter with its marks, an emoji with all its joiners.
const CHARACTERS = new Intl.Segmenter('en', { granularity: 'grapheme' });
const charactersOf = (text: string) => Array.from(CHARACTERS.segment(text), ({ segment }) => segment);

/** Columns a terminal needs for `text`: wide scripts and emoji take two, combining marks and colours none. */
export function displayWidth(text: string): number {
  const shown = stripVTControlCharacters(text);
  if (/^[ -~]*$/.test(shown)) return shown.length;
  return charactersOf(shown).reduce((width, c) => width + (WIDE.test(c) ? 2 : /^\p{M}/u.test(c) ? 0 : 1), 0);
}

/** `text` in exactly `width` columns: cut with an ellipsis, or padded. */
export function toWidth(text: string, width: number): string {
  if (displayWidth(text) <= width) return text + ' '.repeat(width - displayWidth(text));
  let cut = '';
  for (const c of charactersOf(text)) {
    if (displayWidth(cut + c) > width - 1) break;
    cut += c;
  }
  return `${cut}…${' '.repeat(Math.max(0, width - 1 - displayWidth(cut)))}`;
}

/** Below this width, wrapping is left to the terminal. */
const WIDTH_MIN = 10;

// A gap and what must stay together after it: a wide character with its marks and joiners, or other characters up to a
// space or a wide one. No line begins with punctuation that closes.
const PIECES = new RegExp(
  `( *)((?:\\p{RI}{2}|(?:${WIDE.source})(?:[\\p{M}\\p{EMod}]|\\u200d.)*|(?:(?!${WIDE.source})[^ ])+)[、。，．！？：；」』）】》]*)`,
  'gu',
);

/**
 * `text` in lines of at most `width` columns, broken between words, and between wide characters, which are written without
 * spaces; later lines begin with `hang` spaces. Any other word that is too long stays whole, so that a path or a hash can
 * still be copied.
 */
export function wrap(text: string, width: number, hang = text.search(/\S|$/)): string[] {
  if (displayWidth(text) <= width) return [text];
  const room = Math.max(WIDTH_MIN, width);
  const indent = ' '.repeat(Math.min(hang, room - WIDTH_MIN / 2));
  const lines: string[] = [];
  let line = '';
  for (const [, gap = '', word = ''] of text.matchAll(PIECES)) {
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
