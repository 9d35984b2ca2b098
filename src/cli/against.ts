import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { asError } from '../errors.ts';
import { verifyInclusion } from '../integrity/proof-verifier.ts';
import { parseTlogProof, type TlogProof } from '../integrity/tlog-proof.ts';
import { leafHash } from '../integrity/tree.ts';
import type { Reader } from '../storage/engine.ts';
import { headIn } from '../trust/opening.ts';
import { readIfPresent } from '../trust/private-files.ts';
import { auditRow, type Report } from '../verify/finding.ts';
import type { Evidence } from '../verify/rules/heads.ts';
import { UsageError } from './command.ts';

/** A checkpoint that somebody kept and brings back to compare. */
export interface Against {
  readonly where: string;
  readonly note: string;
  /** Where it came with the inclusion proof of a record. */
  readonly proof?: TlogProof;
}

/** The record that a proof was made for must still be the one at its position. */
export async function checkProvedRecord(
  { where, note, proof }: Against,
  tx: Reader,
  report: Report,
): Promise<void> {
  const head = headIn(note);
  if (proof === undefined || head === undefined) return;
  const position = proof.index + 1;
  const row = await tx.get<{ content_hash: string }>(
    'SELECT content_hash FROM actions WHERE position = ?',
    position,
  );
  if (row === undefined) return;
  const { index, proof: hashes } = proof;
  try {
    verifyInclusion({
      index,
      size: head.size,
      root: head.root,
      proof: hashes,
      leafHash: leafHash(row.content_hash),
    });
  } catch (error) {
    const message = `${where} proves another record than the audit row at ${position} (${asError(error).message}).`;
    report({ kind: 'altered', table: 'actions', record: auditRow(position), position, message });
  }
}

/** The same for the verifier. */
export function againstEvidence({ where, note }: Against): Evidence {
  return { source: 'against', where, note };
}

const META_KEY = 'colibri/checkpoint';
const PATH_CHARS_MAX = 4_096;

/** Takes a checkpoint in any form: a note, a proof, or a client's `_meta` as JSON; in a file or as the text itself. */
export function readAgainst(given: string): Against {
  const path = resolve(given);
  const isFile =
    given.length < PATH_CHARS_MAX &&
    !given.includes('\n') &&
    statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  const where = isFile ? path : 'the checkpoint given';
  const text = isFile ? (readIfPresent(path) ?? '') : given;
  if (text.startsWith('c2sp.org/tlog-proof@')) return inProof(where, text);
  const note = unwrap(text);
  if (note === undefined) {
    throw new UsageError(
      `--against takes a file or the text of a checkpoint, not ${JSON.stringify(given.slice(0, 80))}.`,
    );
  }
  return { where, note };
}

function inProof(where: string, text: string): Against {
  try {
    const proof = parseTlogProof(text);
    return { where, note: proof.checkpoint, proof };
  } catch (error) {
    throw new UsageError(`${where} is not a proof (${error instanceof Error ? error.message : error}).`);
  }
}

function unwrap(text: string): string | undefined {
  const value = /^\s*["{]/.test(text) ? parseJson(text) : text;
  const note = typeof value === 'string' ? value : findNote(value, 0);
  // A shell drops the last newline, and a terminal shows "\n" for a newline.
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

/** The note in a result that a client kept, however deep `_meta` is in it. */
function findNote(value: unknown, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null || depth > DEPTH_MAX) return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (name === META_KEY && typeof member === 'string') return member;
    const found = findNote(member, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
