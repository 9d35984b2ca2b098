/** The files of a bundle, by name. */
export const LOG = 'log.jsonl';
export const STATE = 'state.jsonl';
export const PAYLOADS = 'payloads.jsonl';
export const CHECKPOINT = 'checkpoint';
export const KEY = 'key.pub';
/** Says what the folder is, and how long its log. */
export const MARKER = 'bundle.json';
export const README = 'README.txt';
/** The page that shows and checks bundles; only where whoever exports has it. */
export const PAGE = 'verify.html';
export const SUMS = 'SHA256SUMS';

export const BUNDLE_KIND = 'colibri-bundle';
export const BUNDLE_VERSION = 1;

export function olderCheckpoint(size: number): string {
  return `checkpoints/${size}`;
}

export function sealFile(sessionId: string): string {
  return `seals/${sessionId}.json`;
}

/** The proof of an audit row, or, in a bundle of the whole log, of a session's seal. */
export function proofFile(of: string | number): string {
  return `proofs/${of}.tlog-proof`;
}
