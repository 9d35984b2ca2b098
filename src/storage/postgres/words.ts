/** Characters of a word that count in the index: PostgreSQL takes 2,046 bytes. The rest is compared with the text of the words. */
export const LEXEME_CHARS_MAX = 255;

const WORD = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;

/** The words of a text, in lower case and without accents. Every engine whose index does not split texts itself uses these. */
export function wordsIn(text: string): string[] {
  return (
    text
      .normalize('NFD')
      .replace(/[\u0300-\u036f]+/g, '')
      .toLowerCase()
      .match(WORD) ?? []
  );
}

/** The words of several texts as they are stored: a space before each, a line per text. */
export function indexedWords(texts: readonly string[]): string {
  return texts
    .map((text) =>
      wordsIn(text)
        .map((word) => ` ${word}`)
        .join(''),
    )
    .join('\n');
}

/** A word as the index knows it. */
export function lexemeOf(word: string): string {
  return word.length <= LEXEME_CHARS_MAX ? word : [...word].slice(0, LEXEME_CHARS_MAX).join('');
}
