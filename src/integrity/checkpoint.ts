import { isHash } from './digest.ts';
import { decodeBase64, FormatError, isNoteText } from './signed-note.ts';

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

/** One record's way to a signed head, in one text that can be checked offline. */
export interface TlogProof {
  /** The record's place in the log, counted from 0. */
  readonly index: number;
  /** From the leaf's sibling up to a child of the root. */
  readonly proof: readonly string[];
  /** The signed note with the checkpoint, exactly as it was issued. */
  readonly checkpoint: string;
  /** Whatever the application adds. No signature covers it. */
  readonly extra?: Uint8Array;
}

const HEADER = 'c2sp.org/tlog-proof@v1';

/** No tree with a safe size is deeper, so no honest proof is longer. */
const PROOF_HASHES_MAX = 53;

/** The C2SP tlog-proof text. */
export function formatTlogProof({ index, proof, checkpoint, extra }: TlogProof): string {
  if (proof.length > PROOF_HASHES_MAX) throw new FormatError('the proof has too many hashes');
  requireCheckpoint(checkpoint);
  const lines = [HEADER];
  if (extra !== undefined && extra.length > 0) lines.push(`extra ${Buffer.from(extra).toString('base64')}`);
  lines.push(`index ${formatDecimal(index)}`, ...proof.map(hashToBase64));
  return `${lines.join('\n')}\n\n${checkpoint}`;
}

/** Takes a stranger's tlog-proof apart. Checks the form only: open the checkpoint, then verify the proof against it. */
export function parseTlogProof(text: string): TlogProof {
  const blank = text.indexOf('\n\n');
  if (blank < 0) throw new FormatError('no blank line separates proof and checkpoint');
  const checkpoint = text.slice(blank + 2);
  requireCheckpoint(checkpoint);
  const lines = text.slice(0, blank).split('\n');
  if (lines.shift() !== HEADER) throw new FormatError(`the first line is not ${HEADER}`);
  const extra = lines[0]?.startsWith('extra ') ? parseExtra(lines.shift()) : undefined;
  const [, digits = ''] = /^index (.*)$/.exec(lines.shift() ?? '') ?? [];
  const index = need(parseDecimal(digits), 'the index line is not a decimal count below 2^53');
  if (lines.length > PROOF_HASHES_MAX) throw new FormatError('the proof has too many hashes');
  const proof = lines.map((line) => need(hashFromBase64(line), 'a proof line is not the base64 of 32 bytes'));
  return extra === undefined ? { index, proof, checkpoint } : { index, proof, checkpoint, extra };
}

function parseExtra(line = ''): Uint8Array {
  const extra = decodeBase64(line.slice('extra '.length));
  // Without data the line is left out, so an empty one is a second spelling of the same proof.
  return need(extra?.length === 0 ? undefined : extra, 'the extra line is not base64 of data');
}

function requireCheckpoint(checkpoint: string): void {
  if (!checkpoint.endsWith('\n') || checkpoint.startsWith('\n')) {
    throw new FormatError('the checkpoint is missing or does not end in a newline');
  }
}

/** A part of a text that was understood, or a `FormatError` that says which was not. */
function need<T>(part: T | undefined, message: string): T {
  if (part === undefined) throw new FormatError(message);
  return part;
}

/** The base64 of a hash that Colibri holds as hex. */
function hashToBase64(hash: string): string {
  if (!isHash(hash)) throw new FormatError('not a SHA-256 in lowercase hex');
  return Buffer.from(hash, 'hex').toString('base64');
}

/** The hex of a hash that a text holds as base64, or nothing unless it is exactly 32 bytes. */
function hashFromBase64(text: string): string | undefined {
  const bytes = decodeBase64(text);
  return bytes?.length === 32 ? bytes.toString('hex') : undefined;
}

const DECIMAL = /^(?:0|[1-9][0-9]*)$/;

/** A count in decimal without leading zeros, or nothing if it is not one or not exact as a number. */
function parseDecimal(text: string): number | undefined {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

function formatDecimal(value: number): string {
  if (!Number.isSafeInteger(value) || value < 0) throw new FormatError(`${value} is not a count`);
  return String(value);
}
