import {
  FormatError,
  formatDecimal,
  hashFromBase64,
  hashToBase64,
  isNoteText,
  need,
  parseDecimal,
} from './c2sp-text.ts';

/** The head of a log: what a note has to say about it, and all that is signed. */
export interface Checkpoint {
  /** The name of the log, which never changes. */
  readonly origin: string;
  readonly size: number;
  readonly root: string;
}

/** The C2SP tlog-checkpoint text of a head, ready to be signed. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  const lines = [origin, formatDecimal(size), hashToBase64(root)];
  if (!lines.every(isLine)) throw new FormatError('a checkpoint line is empty or not one line of plain text');
  return `${lines.join('\n')}\n`;
}

/** Reads the text of a note as a checkpoint, without its further lines. Verify the note first: the text proves nothing. */
export function parseCheckpoint(text: string): Checkpoint {
  const lines = text.split('\n');
  if (lines.pop() !== '') throw new FormatError('a checkpoint ends in a newline');
  if (!lines.every(isLine)) throw new FormatError('a checkpoint line is empty or not plain text');
  const [origin, sizeText, rootText] = lines;
  if (origin === undefined || sizeText === undefined || rootText === undefined) {
    throw new FormatError('a checkpoint has three lines: origin, size and root');
  }
  const size = need(parseDecimal(sizeText), 'the tree size is not a decimal count below 2^53');
  const root = need(hashFromBase64(rootText), 'the root is not the base64 of 32 bytes');
  return { origin, size, root };
}

function isLine(line: string): boolean {
  return line !== '' && !line.includes('\n') && isNoteText(line);
}
