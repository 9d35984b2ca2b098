import { spawnSync } from 'node:child_process';

/** What a time-stamp token says of itself. Read by openssl, believed by nobody before it is verified. */
export interface TokenText {
  readonly status: string;
  readonly algorithm: string;
  /** The digest it vouches for, in hex. */
  readonly imprint: string;
  readonly time: string;
}

/** openssl said no, or is not there. The message is for the user. */
export class OpensslError extends Error {}

/** Writes the question for a time-stamping authority: SHA-256 of the file, with its certificates in the answer. */
export function writeQuery(notePath: string, queryPath: string): void {
  openssl(['ts', '-query', '-data', notePath, '-sha256', '-cert', '-out', queryPath]);
}

/** Reads an RFC 3161 answer, or undefined for a file that is none. */
export function readToken(tokenPath: string): TokenText | undefined {
  const text = openssl(['ts', '-reply', '-in', tokenPath, '-text'], { mayFail: true });
  if (text === undefined) return undefined;
  const line = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1]?.trim() ?? '';
  return {
    status: line('Status').replace(/\.$/, ''),
    algorithm: line('Hash Algorithm'),
    imprint: imprintIn(text),
    time: line('Time stamp'),
  };
}

/** Why a token does not vouch for a file under one of these certificates, or undefined when it does. */
export function verifyToken(
  tokenPath: string,
  notePath: string,
  authorities: readonly string[],
): string | undefined {
  const reasons = authorities.map((authority) => {
    const args = ['ts', '-verify', '-in', tokenPath, '-data', notePath, '-CAfile', authority];
    try {
      openssl(args);
      return undefined;
    } catch (error) {
      if (error instanceof OpensslError) return error.message;
      throw error;
    }
  });
  return reasons.includes(undefined) ? undefined : reasons[0];
}

/** `    0000 - 0a 1b … 2c-3d …   text` lines after `Message data:`. */
function imprintIn(text: string): string {
  const dump = /^Message data:\n((?: {4}[0-9a-f]{4} - .*\n)+)/m.exec(text)?.[1] ?? '';
  return dump
    .split('\n')
    .map((line) => line.slice(11, 11 + 48).replaceAll(/[^0-9a-f]/g, ''))
    .join('');
}

function openssl(args: readonly string[], options: { mayFail: true }): string | undefined;
function openssl(args: readonly string[]): string;
function openssl(args: readonly string[], options: { mayFail?: boolean } = {}): string | undefined {
  const { status, stdout, stderr, error } = spawnSync('openssl', args, { input: '', encoding: 'utf8' });
  if (error !== undefined) {
    const missing = 'code' in error && error.code === 'ENOENT';
    throw new OpensslError(
      missing
        ? 'openssl was not found. Install it to work with time stamps.'
        : `openssl failed: ${error.message}`,
    );
  }
  if (status === 0) return stdout;
  if (options.mayFail === true) return undefined;
  throw new OpensslError(reasonIn(stderr) ?? `openssl ${args[1]} failed`);
}

/** `40E7…:error:1780006D:time stamp routines:ts_check_imprints:message imprint mismatch:../crypto/…` */
function reasonIn(stderr: string): string | undefined {
  const fields = stderr
    .split('\n')
    .find((line) => line.includes(':error:'))
    ?.split(':');
  return fields === undefined ? undefined : `openssl says: ${fields[5] ?? fields.at(-1)}`;
}
