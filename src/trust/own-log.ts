import type { Config } from '../config.ts';
import { type NoteSigner, noteSigner, parseVerifierKey, type VerifierKey } from '../integrity/signed-note.ts';
import type { Frontier } from '../integrity/tree.ts';
import { EMPTY_LOG, type Head } from '../log/append.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { KeyFolder } from './key-folder.ts';
import { type Remembered, readRemembered } from './memory.ts';
import { openIfValid, treeIn } from './opening.ts';
import { isOrigin } from './origin.ts';
import { PathMemory } from './path-memory.ts';
import { REFUSALS, RefusalError } from './refusal.ts';

export const HEAD_COLUMNS = ['key', 'size', 'chain_hash', 'at', 'frontier', 'checkpoint'] as const;

/** One row of `log_heads`. */
export type HeadRow = {
  readonly [column in (typeof HEAD_COLUMNS)[number]]: column extends 'size' ? number : string;
};

/** What decides whether a log may be signed over. */
export interface LogView {
  readonly origin: string | undefined;
  readonly heads: readonly HeadRow[];
  readonly last: Head;
}

/** A row of `log_heads` that holds, with its tree. */
export interface SignedHead {
  readonly row: HeadRow;
  readonly tree: Frontier;
}

/** More heads than this nobody wrote honestly; one of the first is foreign already. */
const HEADS_MAX = 64;

const VIEW = `
  SELECT log.origin, last.position, last.chain_hash AS last_chain_hash, last.text,
         ${HEAD_COLUMNS.map((column) => `head.${column}`).join(', ')}
  FROM (SELECT 1 AS one) AS always
  LEFT JOIN log ON TRUE
  LEFT JOIN (SELECT position, chain_hash, text FROM actions ORDER BY position DESC LIMIT 1) AS last ON TRUE
  LEFT JOIN log_heads AS head ON TRUE
  LIMIT ${HEADS_MAX}`;

type ViewRow = { readonly origin: string | null } & (
  | { readonly position: number; readonly last_chain_hash: string; readonly text: string }
  | { readonly position: null }
) &
  (HeadRow | { readonly key: null });

/** The name, the heads and the last row of the log, in one query. Hostile input enters here. */
export async function readView(tx: Reader): Promise<LogView> {
  const rows = await tx.all<ViewRow>(VIEW);
  const [first] = rows;
  const heads = rows.flatMap((row) => (row.key === null ? [] : [row]));
  const last =
    first === undefined || first.position === null
      ? EMPTY_LOG
      : { position: first.position, chainHash: first.last_chain_hash, at: timeIn(first.text) };
  return { origin: first?.origin ?? undefined, heads, last };
}

/** One row as a head describes it. */
async function readRow(tx: Reader, position: number): Promise<Head | undefined> {
  const row = await tx.get<{ chain_hash: string; text: string }>(
    'SELECT chain_hash, text FROM actions WHERE position = ?',
    position,
  );
  return row && { position, chainHash: row.chain_hash, at: timeIn(row.text) };
}

/** Not the database's own reading of it: a forged text that is not JSON must not stop every call. */
function timeIn(text: string): string {
  try {
    const { at }: { readonly at?: unknown } = JSON.parse(text);
    return typeof at === 'string' ? at : '';
  } catch {
    return '';
  }
}

/** Whether a head is that of the last row: its position, its chain hash and its time. */
export function isHeadOf(row: HeadRow, last: Head): boolean {
  return row.size === last.position && row.chain_hash === last.chainHash && row.at === last.at;
}

/** The head of a row, if the key signed what the row says and the frontier gives the signed root. */
export function openHead(row: HeadRow, key: VerifierKey): SignedHead | undefined {
  const checkpoint = openIfValid(row.checkpoint, [key]);
  const tree = treeIn(row.frontier, row.size);
  if (tree === undefined || checkpoint?.size !== row.size || checkpoint.root !== tree.root())
    return undefined;
  return { row, tree };
}

/** Where a database is, and where the user's side of its log is. */
export type LogPlace = Pick<Config, 'dbPath' | 'configDir'>;

/** A log with the key that this user signs it with. */
export interface OwnLog {
  readonly folder: KeyFolder;
  readonly signer: NoteSigner;
  readonly key: VerifierKey;
  /** Keys that were given up: a head by one of them may stay. */
  readonly retired: readonly string[];
  /** Which adoption this was loaded after. */
  readonly stamp: string;
}

/** The user's side of the log at a path; undefined for a new log. Refuses one that is not the log it was or has no key. */
export function loadOwnLog(
  { origin, last, heads }: LogView,
  { dbPath, configDir }: LogPlace,
): OwnLog | undefined {
  const other = new PathMemory(configDir, dbPath).otherThan(origin);
  const now = origin ?? (last.position > 0 ? 'an unsigned one' : 'an empty one');
  if (other !== undefined) throw new RefusalError(REFUSALS.replaced(other, now));
  if (origin === undefined) {
    if (last.position === 0 && heads.length === 0) return undefined;
    throw new RefusalError(REFUSALS.neverSigned(dbPath, last.position));
  }
  if (!isOrigin(origin)) throw new RefusalError(REFUSALS.misnamed(dbPath));
  const folder = new KeyFolder(configDir, origin);
  if (!folder.exists) throw new RefusalError(REFUSALS.unknownLog(origin));
  return ownLogIn(folder);
}

/** The key of a folder that is there. Refuses where it is missing or is not the one on record. */
export function ownLogIn(folder: KeyFolder): OwnLog {
  const [stamp, retired] = [folder.adoptionStamp(), folder.retiredKeys()];
  const [pem, known] = [folder.privateKeyPem(), folder.verifierKey()];
  try {
    const signer = noteSigner(folder.origin, pem ?? '');
    // Another key would start a second history.
    if (signer.verifierKey === known) return { folder, signer, key: parseVerifierKey(known), retired, stamp };
  } catch {
    // A key that cannot be read is as good as none.
  }
  throw new RefusalError(REFUSALS.lostKey(folder.path));
}

/**
 * What this log's folder remembers; refuses where it remembers nothing, for then nobody can say what was signed. To be
 * read before the rows: others may sign further ones at any moment.
 */
export function requireRemembered({ folder, key }: OwnLog): Remembered {
  const remembered = readRemembered(folder.signedPath, key);
  if (remembered === undefined) throw new RefusalError(REFUSALS.lostMemory(folder.signedPath));
  return remembered;
}

/** The own head, and whether there is another one that this user did not give up. */
export function headsOf({ heads }: LogView, { signer, retired }: OwnLog) {
  const row = heads.find(({ key }) => key === signer.verifierKey);
  const isRetired = ({ key, size }: HeadRow) => retired.includes(key) && size <= (row?.size ?? size);
  return { row, hasOther: heads.some((head) => head !== row && !isRetired(head)) };
}

/**
 * The three checks: the head is signed, it is that of its row, and no row follows. Then the one thing that a log must
 * never sign over: it still holds what was signed last. Undefined for a log without rows. What is wrong with the head
 * itself comes first: rows follow it as soon as Colibri goes on unsigned.
 */
export async function requireSigned(
  tx: Reader,
  view: LogView,
  own: OwnLog,
  { size, chainHash }: Remembered,
  dbPath: string,
): Promise<SignedHead | undefined> {
  const { last } = view;
  const { row, hasOther } = headsOf(view, own);
  if (hasOther) throw new RefusalError(REFUSALS.otherHead(dbPath));
  if (row === undefined && last.position > 0) throw new RefusalError(REFUSALS.noHead(dbPath, last.position));
  const head = row && openHead(row, own.key);
  if (row !== undefined) {
    if (head === undefined) throw new RefusalError(REFUSALS.wrongHead(dbPath));
    await requireRow(tx, last, row.size, dbPath, (signed) => isHeadOf(row, signed));
    if (last.position > row.size) throw new RefusalError(REFUSALS.foreignRows(dbPath, row.size));
  }
  await requireRow(tx, last, size, dbPath, (signed) => signed.chainHash === chainHash);
  return head;
}

/** The row at `size` is there, and is the one that was signed. */
async function requireRow(
  tx: Reader,
  last: Head,
  size: number,
  dbPath: string,
  isSigned: (row: Head) => boolean,
): Promise<void> {
  if (last.position < size) throw new RefusalError(REFUSALS.cutTail(dbPath, last.position, size));
  const row = last.position === size ? last : await readRow(tx, size);
  if (size > 0 && (row === undefined || !isSigned(row)))
    throw new RefusalError(REFUSALS.rewritten(dbPath, size));
}

/** Whether a server would go on signing a log: the key folder it would use (none for a log without rows), or why not. */
export async function signability(
  storage: StorageEngine,
  place: LogPlace,
): Promise<{ readonly folder?: string; readonly refused?: string }> {
  try {
    const own = loadOwnLog(await storage.read(readView), place);
    if (own === undefined) return {};
    const remembered = requireRemembered(own);
    await storage.read(async (tx) => requireSigned(tx, await readView(tx), own, remembered, place.dbPath));
    return { folder: own.folder.path };
  } catch (error) {
    if (error instanceof RefusalError) return { refused: error.message };
    throw error;
  }
}
