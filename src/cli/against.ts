import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseTlogProof, type TlogProof } from '../integrity/tlog-proof.ts';
import { readIfPresent } from '../log/private-files.ts';
import { UsageError } from './command.ts';

/** A head that somebody kept and brings back to compare. */
export interface Against {
  readonly where: string;
  readonly note: string;
  /** Where it came with a record's way to it. */
  readonly proof?: TlogProof;
}

const META_KEY = 'colibri/checkpoint';
const PATH_CHARS_MAX = 4_096;

/** Takes whatever form the head was kept in: a note, a proof, a client's `_meta` as JSON; in a file or as the text itself. */
export function readAgainst(given: string): Against {
  const path = resolve(given);
  const isFile =
    given.length < PATH_CHARS_MAX &&
    !given.includes('\n') &&
    statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  const where = isFile ? path : 'the checkpoint given';
  const text = isFile ? (readIfPresent(path) ?? '') : given;
  if (text.startsWith('c2sp.org/tlog-proof@')) return withProof(where, text);
  const note = unwrap(text);
  if (note === undefined) {
    throw new UsageError(
      `--against is neither a file nor the text of a checkpoint: ${JSON.stringify(given.slice(0, 80))}.`,
    );
  }
  return { where, note };
}

function withProof(where: string, text: string): Against {
  try {
    const proof = parseTlogProof(text);
    return { where, note: proof.checkpoint, proof };
  } catch (error) {
    throw new UsageError(`${where} is no proof (${error instanceof Error ? error.message : error}).`);
  }
}

function unwrap(text: string): string | undefined {
  const value = /^\s*["{]/.test(text) ? parseJson(text) : text;
  const note = typeof value === 'string' ? value : findNote(value, 0);
  // A shell drops the last newline of what it passes on, and a terminal shows "\n" where there is one.
  const lines = note?.includes('\n') === false ? note.replaceAll('\\n', '\n') : note;
  return lines?.includes('\n\n') ? `${lines.trimEnd()}\n` : undefined;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const DEPTH_MAX = 8;

/** The note in a result as a client keeps it, however deep `_meta` lies in it. */
function findNote(value: unknown, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (name === META_KEY && typeof member === 'string') return member;
    const found = findNote(member, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
