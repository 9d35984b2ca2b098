// What a bundle and a certificate consist of: the writers in src/export and the sources here agree on these names.

/** The files of a bundle, by name. */
export const LOG = 'log.jsonl';
/** Of a bundle of one session: for each row of the log its position and the chain hash before it. */
export const LINKS = 'links.jsonl';
export const PAYLOADS = 'payloads.jsonl';
export const TEXTS = 'texts.jsonl';
export const STATE = 'state.jsonl';
/** The newest signed head. */
export const CHECKPOINT = 'checkpoint';
/** One verifier key a line. */
export const KEYS = 'keys';
/** Says what the folder is, and how long its log. */
export const MARKER = 'bundle.json';
export const README = 'README.txt';
/** The page that shows and checks bundles; only where whoever exports has it. */
export const PAGE = 'verify.html';
export const SUMS = 'SHA256SUMS';

export const BUNDLE_KIND = 'colibri-bundle';
export const BUNDLE_VERSION = 2;

/** The scope of a bundle that holds all of a log. */
export const WHOLE_LOG = 'log';

/** The newest head that a key has signed. */
export function headFile(keyId: string): string {
  return `heads/${keyId}`;
}

/** A head that was kept. */
export function keptFile(size: number, keyId: string): string {
  return `checkpoints/${size}-${keyId}`;
}

export function sealFile(sessionId: string): string {
  return `seals/${sessionId}.json`;
}

/** The proof of an audit row, or, in a bundle of the whole log, of a session's seal. */
export function proofFile(of: string | number): string {
  return `proofs/${of}.tlog-proof`;
}

/** One line a file, as `sha256sum -c` reads them, in the order of their names. */
export function formatSums(sums: ReadonlyMap<string, string>): string {
  return [...sums]
    .filter(([name]) => name !== SUMS)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, hash]) => `${hash}  ${name}\n`)
    .join('');
}
