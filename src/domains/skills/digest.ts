import { sha256Hex } from '../../integrity/digest.ts';

/** One thing in a skill's folder, by its path below that folder with `/` between the parts. */
export type Part =
  | { readonly path: string; readonly kind: 'file'; readonly sha256: string }
  | { readonly path: string; readonly kind: 'link'; readonly target: string }
  | { readonly path: string; readonly kind: 'unread' };

/**
 * The digest of a skill: SHA-256 over one line for each part of its folder, in the order of the paths' UTF-8 bytes.
 *
 * - a regular file: `<sha256 of its bytes>  <path>`, and so is a link that leads to a regular file inside the skills
 *   folders, with the bytes behind it;
 * - any other link: `link:<sha256 of its text>  <path>`; what is behind it is not covered;
 * - a pipe, a device, a socket, a file that may not be read: `unread  <path>`.
 *
 * Each line ends with a newline. Two blanks stand between the columns. A backslash, newline or carriage return in a
 * path is written `\\`, `\n` or `\r`, and the line then begins with a backslash. Folders have no line. `.git` and
 * `node_modules` are left out with all they hold. Modes and times are not covered.
 *
 * For a folder of plain files this is what coreutils say:
 * `find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`
 */
export function skillDigest(parts: readonly Part[]): string {
  const sorted = parts
    .map((part) => ({ part, bytes: Buffer.from(part.path) }))
    .sort((a, b) => Buffer.compare(a.bytes, b.bytes));
  return sha256Hex(sorted.map(({ part }) => lineOf(part)).join(''));
}

function lineOf(part: Part): string {
  const path = part.path.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r');
  return `${path === part.path ? '' : '\\'}${firstColumn(part)}  ${path}\n`;
}

function firstColumn(part: Part): string {
  if (part.kind === 'file') return part.sha256;
  return part.kind === 'link' ? `link:${sha256Hex(part.target)}` : 'unread';
}
