import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateFolder } from '../folders.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { NOTE_BYTES_MAX } from '../integrity/signed-note.ts';
import { readRegular, replaceFile } from './private-files.ts';
import { ProgramError, run } from './programs.ts';

/** A checkpoint that a time-stamping authority was asked about, with the token where there is one. */
export type StampedCheckpoint = Readonly<ReturnType<typeof stampedAt>>;

/** Where time-stamp tokens are, next to the database, each with the exact checkpoint it is about. */
const folderOf = (dbPath: string) => `${dbPath}.anchors`;

/** Files a checkpoint, so that a token that comes tomorrow still finds the bytes it is about. */
export function keepForStamp(dbPath: string, size: number, note: string): StampedCheckpoint {
  makePrivateFolder(folderOf(dbPath));
  replaceFile(join(folderOf(dbPath), `${size}.note`), note);
  return stampedAt(dbPath, size);
}

/** All of them, the smallest first. Others may be able to write to the folder: such a name may hold anything. */
export function stampedCheckpoints(dbPath: string): StampedCheckpoint[] {
  const names = existsSync(folderOf(dbPath)) ? readdirSync(folderOf(dbPath)) : [];
  const sizes = names.flatMap((name) => /^(\d{1,15})\.note$/.exec(name)?.[1] ?? []).map(Number);
  return sizes.sort((a, b) => a - b).map((size) => stampedAt(dbPath, size));
}

function stampedAt(dbPath: string, size: number) {
  const path = join(folderOf(dbPath), String(size));
  const [notePath, tokenPath] = [`${path}.note`, `${path}.tsr`];
  const note = readRegular(notePath, NOTE_BYTES_MAX)?.toString('utf8') ?? '';
  return { size, note, notePath, tokenPath, hasToken: existsSync(tokenPath) };
}

/** What became of a time stamp. `unchecked`: its digest may fit, but nobody here can say who made it. */
export type StampVerdict =
  | { readonly state: 'valid'; readonly time: string }
  | { readonly state: 'unchecked'; readonly time: string | undefined; readonly message: string }
  | { readonly state: 'wrong'; readonly message: string };

/** A token is an anchor only under an authority that was named: anybody can make a token. */
export function checkStamp(
  { notePath, tokenPath, note }: Pick<StampedCheckpoint, 'notePath' | 'tokenPath' | 'note'>,
  authorities: readonly string[],
): StampVerdict {
  try {
    const token = readToken(tokenPath);
    if (token?.imprint !== sha256Hex(note))
      return { state: 'wrong', message: `${tokenPath} is not a time stamp of ${notePath}.` };
    if (authorities.length === 0) {
      const message = `${tokenPath}: its digest fits, its authority was not checked. Name one with "colibri anchor --tsr FILE --ca FILE".`;
      return { state: 'unchecked', time: token.time, message };
    }
    const reason = verifyToken(tokenPath, notePath, authorities);
    if (reason === undefined) return { state: 'valid', time: token.time };
    const message = `${tokenPath} is by none of the authorities that were named (${reason}).`;
    return { state: 'wrong', message };
  } catch (error) {
    if (!(error instanceof ProgramError)) throw error;
    const message = `${tokenPath} was not looked at: ${error.message}`;
    return { state: 'unchecked', time: undefined, message };
  }
}

/** Writes the question for a time-stamping authority: SHA-256 of the file, with its certificates in the answer. */
export function writeQuery(notePath: string, queryPath: string): void {
  const args = ['ts', '-query', '-data', notePath, '-sha256', '-cert', '-out', queryPath];
  const { isRefused, stderr } = run('openssl', args);
  if (isRefused) throw new ProgramError(reasonIn(stderr));
}

/** The digest that an RFC 3161 answer vouches for, and its time, both not verified yet; undefined for another file. */
export function readToken(
  tokenPath: string,
): { readonly imprint: string; readonly time: string } | undefined {
  const { isRefused, text } = run('openssl', ['ts', '-reply', '-in', tokenPath, '-text']);
  if (isRefused) return undefined;
  // `    0000 - 0a 1b … 2c-3d …   text` lines after `Message data:`.
  const dump = /^Message data:\n((?: {4}[0-9a-f]{4} - .*\n)+)/m.exec(text)?.[1] ?? '';
  const bytes = dump.split('\n').map((line) => line.slice(11, 11 + 48).replaceAll(/[^0-9a-f]/g, ''));
  return { imprint: bytes.join(''), time: /^Time stamp: (.*)$/m.exec(text)?.[1]?.trim() ?? '' };
}

/** Why a token does not vouch for a file under one of these certificates, or undefined when it does. */
export function verifyToken(
  tokenPath: string,
  notePath: string,
  authorities: readonly string[],
): string | undefined {
  const answers = authorities.map((authority) =>
    run('openssl', ['ts', '-verify', '-in', tokenPath, '-data', notePath, '-CAfile', authority]),
  );
  return answers.every(({ isRefused }) => isRefused) ? reasonIn(answers[0]?.stderr ?? '') : undefined;
}

/** `40E7…:error:1780006D:time stamp routines:ts_check_imprints:message imprint mismatch:../crypto/…` */
function reasonIn(stderr: string): string {
  const line = stderr.split('\n').find((one) => one.includes(':error:'));
  const fields = line?.split(':') ?? [];
  return `openssl says: ${fields[5] ?? fields.at(-1) ?? 'no'}`;
}
