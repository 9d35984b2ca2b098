import { redactText } from '../../secrets.ts';

/** Text of strangers as one well-formed line without known secrets or control characters, no longer than `charsMax`. */
export function oneLine(text: string, charsMax: number): string {
  // One class, one quantifier: no input makes this expression go back.
  const line = redactText(text)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  // A cut through a surrogate pair leaves half a character, which toWellFormed replaces.
  return line.slice(0, charsMax).toWellFormed();
}
