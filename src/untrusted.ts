// Text by others: whatever comes out of a database, bundle, certificate, key folder, skill or repository, and every
// error that quotes it. One rule says which characters act instead of showing; each medium has one function on top of it.

/**
 * Controls, line and paragraph separators, lone surrogates and format characters: they move the cursor, reorder the text
 * around them, or hide. Line feeds and tabs are left to each medium. Joiners stay, because scripts and emoji need them; so
 * does a direction mark near a right-to-left letter, where it does no more than the letter. By number and not by property:
 * every version of Unicode must spell a certificate in the same way.
 */
const CONTROLS = '\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ud800-\\udfff';
const HIDDEN =
  '\\xad\\u200b\\u2060-\\u2065\\u206a-\\u206f\\ufeff\\ufff9-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e007f}';
const LETTER = '[\\u05d0-\\u05f2\\u0620-\\u064a\\u066e-\\u06d3\\u06fa-\\u08c7]';
const BETWEEN = '[\\s!-@]{0,8}';
const MARK = `(?<!${LETTER}${BETWEEN})[\\u200e\\u200f\\u061c](?!${BETWEEN}${LETTER})`;
const ACTING = new RegExp(`([${CONTROLS}${HIDDEN}]|${MARK})`, 'gu');

/** For several lines on a terminal, in a log or in a text file: what acts is spelled out, line feeds and tabs stay. */
export function visible(text: string): string {
  return text.replace(ACTING, (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`);
}

/** The same for a part of one line, which no text can end. */
export function visibleLine(text: string): string {
  return visible(text.replace(/\r\n?|[\n\t]/g, ' '));
}

/** For a command that somebody may paste into a shell: one word, whatever a folder is called. */
export function shellQuote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** For a page: the text in pieces, of which every second one is a character that acts. */
export function splitActing(text: string): string[] {
  return text.split(ACTING);
}

/** JSON of the same value in which nothing acts, wherever it is printed. Past some thousand levels it only says so. */
export function jsonText(value: unknown, indent?: number): string {
  const unit = (c: string) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
  let json = '"[nested too deeply to show]"';
  try {
    json = JSON.stringify(value, null, indent);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return json.replace(ACTING, (c) => c.split('').map(unit).join(''));
}

/** The entries of a list that was stored as JSON; none where it is not one: anybody may have changed the file. */
export function listIn(text: string): unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

/** A value from JSON as text. String() would call what an object says is its `toString`. */
export function textFrom(value: unknown): string {
  return typeof value === 'object' && value !== null ? jsonText(value) : String(value);
}

/**
 * For one line of Markdown that only shows the text: a vault would run a query, a script, a template, a comment, a field
 * (`key:: value`), a tag or a link in it. Links to the web stay; those of other programs can make them do things.
 */
export function markdownLine(text: string): string {
  return visibleLine(text)
    .replace(/[\\`*_{}[\]<>#|$%~^=!&]/g, '\\$&')
    .replace(/:(?=:)/g, ':\\')
    .replace(/(?<!\bhttps?):\/\//gi, ':\\/\\/')
    .replace(/^(\s*)([-+:])/, '$1\\$2')
    .replace(/^(\s*\d+)([.)])/, '$1\\$2');
}
