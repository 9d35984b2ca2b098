// A byte order mark is kept as the character it is: dropping it would give two inputs one text.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text of strangers' bytes, or of a string, or nothing where no exact UTF-8 exists for it. */
export function exactText(input: Uint8Array | string): string | undefined {
  if (typeof input === 'string') return input.isWellFormed() ? input : undefined;
  try {
    return decoder.decode(input);
  } catch {
    return undefined;
  }
}
