import { stripVTControlCharacters } from 'node:util';

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

const CHARACTERS = new Intl.Segmenter('en', { granularity: 'grapheme' });
/** The time that the segmenter takes grows with the square of what it is given: 20 s for 100 KB on Node 20. */
const SEGMENTED_MAX = 512;

/** What a reader sees as one character: a letter with its marks, an emoji with all its joiners. */
function* charactersOf(text: string): Generator<string> {
  for (let at = 0; at < text.length; ) {
    const part = text.slice(at, at + SEGMENTED_MAX);
    const found = PLAIN.test(part) ? [...part] : Array.from(CHARACTERS.segment(part), (one) => one.segment);
    // The last one may go on behind the part, and may be half of a pair that belongs to the one before.
    if (at + part.length < text.length && found.length > 2) found.length -= 2;
    yield* found;
    at += found.reduce((length, c) => length + c.length, 0);
  }
}

const PLAIN = /^[ -~]*$/;
const columnsOf = (c: string) => (WIDE.test(c) ? 2 : /^\p{M}/u.test(c) ? 0 : 1);

/** Columns a terminal needs for `text`: wide scripts and emoji take two, combining marks and colours none. Counts no further than beyond `enough`. */
export function displayWidth(text: string, enough = Number.POSITIVE_INFINITY): number {
  const shown = stripVTControlCharacters(text);
  if (PLAIN.test(shown)) return shown.length;
  let width = 0;
  for (const c of charactersOf(shown)) {
    width += columnsOf(c);
    if (width > enough) break;
  }
  return width;
}

/** `text` in exactly `width` columns: cut with an ellipsis, or padded. */
export function toWidth(text: string, width: number): string {
  let [cut, room, used] = ['', width - 1, 0];
  for (const c of charactersOf(text)) {
    used += columnsOf(c);
    if (used > width) return `${cut}…${' '.repeat(Math.max(0, room))}`;
    if (used > width - 1) continue;
    cut += c;
    room = width - 1 - used;
  }
  return text + ' '.repeat(width - used);
}

/** Below this width, wrapping is left to the terminal. */
const WIDTH_MIN = 10;

// A gap and what must stay together after it: a wide character with its marks and joiners, or other characters up to a
// space or a wide one. No line begins with punctuation that closes. Bounded: without an end the search runs out of stack.
const PIECES = new RegExp(
  `( *)((?:\\p{RI}{2}|(?:${WIDE.source})(?:[\\p{M}\\p{EMod}]|\\u200d.){0,99}|(?:(?!${WIDE.source})[^ ]){1,9999})[、。，．！？：；」』）】》]{0,9})`,
  'gu',
);

/**
 * `text` in lines of at most `width` columns, broken between words, and between wide characters, which are written without
 * spaces; later lines begin with `hang` spaces. Any other word that is too long stays whole, so that a path or a hash can
 * still be copied. Lines that are not asked for are not made.
 */
export function* wrap(text: string, width: number, hang = text.search(/\S|$/)): Generator<string> {
  if (width === Number.POSITIVE_INFINITY || displayWidth(text, width) <= width) {
    yield text;
    return;
  }
  const room = Math.max(WIDTH_MIN, width);
  const indent = ' '.repeat(Math.min(hang, room - WIDTH_MIN / 2));
  let [line, used] = ['', 0];
  // Of spaces at the end, each would look for a word behind all others.
  for (const [, gap = '', word = ''] of text.trimEnd().matchAll(PIECES)) {
    const needed = displayWidth(word);
    if (line.trim() !== '' && used + gap.length + needed > room) {
      yield line;
      [line, used] = [indent + word, indent.length + needed];
    } else {
      line += gap + word;
      used += gap.length + needed;
    }
  }
  yield line;
}

/** The same, but of a long text only the first lines, and then an ellipsis: it is shown whole elsewhere. */
export function* wrapShort(text: string, width: number, hang: number, most: number): Generator<string> {
  let room = most;
  for (const line of wrap(text, width, hang)) {
    yield room > 0 ? line : `${' '.repeat(hang)}…`;
    if (room === 0) return;
    room -= 1;
  }
}

export function plural(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? '' : 's'}`;
}

/** Which option shows the entries that a list leaves out. */
export function shownBy(option: string, count: number): string {
  return `${option} shows ${count === 1 ? 'it' : 'them'}.`;
}
