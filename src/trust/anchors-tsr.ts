import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '../integrity/digest.ts';
import { NOTE_BYTES_MAX } from '../integrity/signed-note.ts';
import {
  type Content,
  createFile,
  makePrivateFolder,
  makeTemporaryFolder,
  namesIn,
  readWhole,
  replaceFile,
} from '../private-files.ts';
import { ProgramError, run } from './programs.ts';

/** A checkpoint that a time-stamping authority was asked about, with the token where there is one. */
export type StampedCheckpoint = Readonly<ReturnType<typeof stampedAt>>;

/** How many are looked at, the newest first. */
const STAMPS_MAX = 1_000;
/** How many openssl is asked about in one command: each takes it some milliseconds. */
const CHECKS_MAX = 100;
/** A token with its certificates takes about 6 KB. */
const TOKEN_BYTES_MAX = 1_048_576;

/** Where time-stamp tokens are, next to the database, each with the exact checkpoint it is about. */
const folderOf = (dbPath: string) => `${dbPath}.anchors`;

/** Files a checkpoint, so that a token that comes tomorrow still finds the bytes it is about. */
export function keepForStamp(dbPath: string, size: number, note: string): StampedCheckpoint {
  makePrivateFolder(folderOf(dbPath));
  replaceFile(join(folderOf(dbPath), `${size}.note`), note);
  return stampedAt(dbPath, size);
}

/** The newest first, and how many there are beyond a bound. Others may be able to write to the folder: such a name may hold anything. */
export function stampedCheckpoints(dbPath: string) {
  const sizes = namesIn(folderOf(dbPath))
    .flatMap((name) => /^(\d{1,15})\.note$/.exec(name)?.[1] ?? [])
    .map(Number);
  const newest = sizes.sort((a, b) => b - a).splice(0, STAMPS_MAX);
  return { stamps: newest.map((size) => stampedAt(dbPath, size)), left: sizes.length };
}

function stampedAt(dbPath: string, size: number) {
  const path = join(folderOf(dbPath), String(size));
  const [notePath, tokenPath] = [`${path}.note`, `${path}.tsr`];
  const note = readWhole(notePath, NOTE_BYTES_MAX)?.toString('utf8') ?? '';
  return { size, note, notePath, tokenPath, token: readReply(tokenPath) };
}

/** The bytes of what may be an authority's reply. */
export function readReply(path: string, follow = false): Buffer | undefined {
  return readWhole(path, TOKEN_BYTES_MAX, follow);
}

/** A token with the checkpoint it is said to be about, and the names of both for people. */
type Stamp = Omit<StampedCheckpoint, 'size' | 'token'> & { readonly token: Uint8Array | undefined };

/**
 * For one command, what became of a time stamp: valid, wrong, or unchecked where nobody here can say who made it, or
 * there are too many. A token is an anchor only under an authority that was named: anybody can make one.
 */
export function stampChecker(authorities: readonly string[]) {
  let left = CHECKS_MAX;
  return (stamp: Stamp) => {
    // Whatever does not hold the digest cannot be about it. Not worth a program.
    const mayFit = Buffer.from(stamp.token ?? []).includes(Buffer.from(sha256Hex(stamp.note), 'hex'));
    const rest = `There are more than ${CHECKS_MAX} time stamps; the others were not checked.`;
    if (mayFit && left-- <= 0) return { state: 'unchecked', time: undefined, message: rest } as const;
    return checkStamp(mayFit ? stamp : { ...stamp, token: undefined }, authorities);
  };
}

function checkStamp(stamp: Stamp, authorities: readonly string[]) {
  const { note, token, notePath, tokenPath } = stamp;
  const wrong = (message: string) => ({ state: 'wrong', message: `${tokenPath} is ${message}.` }) as const;
  const unchecked = (message: string, time?: string) =>
    ({ state: 'unchecked', time, message: `${tokenPath}${message}` }) as const;
  try {
    const read = token && readToken(token);
    if (token === undefined || read?.imprint !== sha256Hex(note))
      return wrong(`not a time stamp of ${notePath}`);
    const remedy = 'Name one with "colibri anchor --tsr FILE --ca FILE".';
    if (authorities.length === 0)
      return unchecked(`: its digest matches, but its authority was not checked. ${remedy}`, read.time);
    const reason = verifyToken(token, note, authorities);
    if (reason === undefined) return { state: 'valid', time: read.time } as const;
    return wrong(`not from any authority that you named (${reason})`);
  } catch (error) {
    if (error instanceof ProgramError) return unchecked(` was not checked: ${error.message}`);
    throw error;
  }
}

/** The question for a time-stamping authority: SHA-256 of the note, with its certificates in the answer. */
export function formatQuery(note: string): Buffer {
  const request = ['-digest', sha256Hex(note), '-sha256', '-cert'];
  const { isRefused, stdout, stderr } = run('openssl', ['ts', '-query', ...request]);
  if (isRefused) throw new ProgramError(reasonIn(stderr));
  return stdout;
}

/** The digest that an RFC 3161 answer vouches for, and its time, both not verified yet; undefined for other bytes. */
export function readToken(token: Uint8Array) {
  const { isRefused, text } = withCopies({ token }, (at) =>
    run('openssl', ['ts', '-reply', '-in', at('token'), '-text']),
  );
  if (isRefused) return undefined;
  // `    0000 - 0a 1b … 2c-3d …   text` lines after `Message data:`.
  const dump = /^Message data:\n((?: {4}[0-9a-f]{4} - .*\n)+)/m.exec(text)?.[1] ?? '';
  const bytes = dump.split('\n').map((line) => line.slice(11, 11 + 48).replaceAll(/[^0-9a-f]/g, ''));
  return { imprint: bytes.join(''), time: /^Time stamp: (.*)$/m.exec(text)?.[1]?.trim() ?? '' };
}

/** Why a token does not vouch for a note under one of these certificates, or undefined when it does. */
export function verifyToken(token: Uint8Array, note: string, authorities: readonly string[]) {
  const answers = withCopies({ token, note }, (at) => {
    const given = ['-in', at('token'), '-data', at('note')];
    return authorities.map((file) => run('openssl', ['ts', '-verify', ...given, '-CAfile', file]));
  });
  return answers.every(({ isRefused }) => isRefused) ? reasonIn(answers[0]?.stderr ?? '') : undefined;
}

/** Openssl reads files. It gets copies in a folder that nobody else can write to. */
function withCopies<T>(files: Record<string, Content>, work: (at: (name: string) => string) => T) {
  const folder = makeTemporaryFolder('token');
  try {
    for (const [name, content] of Object.entries(files)) createFile(join(folder, name), content);
    return work((name) => join(folder, name));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `40E7…:error:1780006D:time stamp routines:ts_check_imprints:message imprint mismatch:../crypto/…` */
function reasonIn(stderr: string): string {
  const line = stderr.split('\n').find((one) => one.includes(':error:'));
  const fields = line?.split(':') ?? [];
  return `openssl says: ${fields[5] ?? fields.at(-1) ?? 'no'}`;
}
