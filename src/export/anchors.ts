import { createHash } from 'node:crypto';
import { sha256Hex } from '../integrity/digest.ts';
import {
  type AnchorKind,
  type AnchorText,
  commitAlgorithm,
  commitPreimage,
  readAnchor,
  readAnchorName,
} from './anchor-file.ts';
import { TrustError } from './trust.ts';

/**
 * An anchor that a bundle or a certificate carries. Its bytes have the digest in its name and speak of a checkpoint that
 * is there. Whether anybody else has it, or who made it, nothing in the bundle can show.
 */
export interface CarriedAnchor extends AnchorText {
  readonly kind: AnchorKind;
  readonly name: string;
  /** Of a commit its id. */
  readonly commit?: string;
  readonly bytes: Uint8Array;
  /** The checkpoint it speaks of, and the audit rows that covers. */
  readonly note: string;
  readonly size: number;
}

/** Checks as much of an anchor as can be checked alone. Hostile input enters here. */
export function openAnchor(
  name: string,
  bytes: Uint8Array,
  heads: readonly { readonly note: string; readonly size: number }[],
): CarriedAnchor {
  const kind = readAnchorName(name, sha256Hex(bytes));
  if (kind === undefined) throw new TrustError(`${name} is not what its name says it must be.`);
  for (const { note, size } of heads) {
    const said = readAnchor(kind, bytes, note, sha256Hex(note));
    if (said === undefined) continue;
    return { ...said, kind, name, bytes, note, size, ...(kind === 'git' && { commit: commitId(bytes) }) };
  }
  throw new TrustError(`${name} speaks of no checkpoint that is there.`);
}

function commitId(bytes: Uint8Array): string {
  const hash = createHash(commitAlgorithm(bytes) === 'SHA-1' ? 'sha1' : 'sha256');
  return hash.update(commitPreimage(bytes)).digest('hex');
}
