import { canonicalJson } from '../../integrity/canonical-json.ts';
import { exactText } from '../../integrity/digest.ts';

/** Whether Colibri takes a text from a stranger: only where making it again from what it says gives the same text. */
export function isTaken(input: Uint8Array | string): boolean {
  const text = exactText(input);
  try {
    return text !== undefined && canonicalJson(JSON.parse(text)) === text;
  } catch {
    return false;
  }
}
