import type { Config } from '../config.ts';
import { isHash } from '../integrity/digest.ts';
import { noteSigner, parseVerifierKey, type VerifierKey } from '../integrity/signed-note.ts';
import { Frontier } from '../integrity/tree.ts';
import { EMPTY_LOG, type Head } from '../log/append.ts';
import type { AuditRow } from '../log/row.ts';
import { isTransfer } from '../log/transfer.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { KeyFolder, PathMemory } from './key-folder.ts';
import { type Remembered, readRemembered } from './memory.ts';
import { isOrigin, keptName, keyIn, openIfValid, originOfKey, treeIn } from './opening.ts';
import { REFUSALS, RefusalError } from './refusal.ts';
import { adoptionId, followVouches, isStatedBy } from './statement.ts';

export const HEAD_COLUMNS = ['key', 'size', 'chain_hash', 'at', 'frontier', 'checkpoint'] as const;

/** One row of `log_heads`. */
export type HeadRow = {
  readonly [column in (typeof HEAD_COLUMNS)[number]]: column extends 'size' ? number : string;
};

/** What decides whether a log may be signed over. */
export type LogView = Readonly<Awaited<ReturnType<typeof readView>>>;

/** A row of `log_heads` that holds, with its tree. */
export type SignedHead = { readonly row: HeadRow; readonly tree: Frontier };

/** More heads than this nobody wrote honestly; one of the first is foreign already. */
const HEADS_MAX = 64;

const VIEW = `
  SELECT log.origin, last.position, last.chain_hash AS last_chain_hash, last.text,
         ${HEAD_COLUMNS.map((column) => `head.${column}`).join(', ')}
  FROM (SELECT 1 AS one) AS always
  LEFT JOIN log ON TRUE
  LEFT JOIN (SELECT position, chain_hash, text FROM audit_rows ORDER BY position DESC LIMIT 1) AS last ON TRUE
  LEFT JOIN log_heads AS head ON TRUE
  ORDER BY head.size DESC
  LIMIT ${HEADS_MAX}`;

type ViewRow = { readonly origin: string | null } & (
  | { readonly position: number; readonly last_chain_hash: string; readonly text: string }
  | { readonly position: null }
) &
  (HeadRow | { readonly key: null });

/** The name, the heads and the last row of the log, in one query. Hostile input enters here. */
export async function readView(tx: Reader) {
  const rows = await tx.all<ViewRow>(VIEW);
  // The first of its tables always has a row.
  const [first = { origin: null, position: null }] = rows;
  const heads: readonly HeadRow[] = rows.flatMap((row) => (row.key === null ? [] : [row]));
  const { position } = first;
  const last: Head =
    position === null ? EMPTY_LOG : { position, chainHash: first.last_chain_hash, ...saidIn(first.text) };
  // Colibri gives no name that is not a text.
  return { origin: first.origin === null ? undefined : String(first.origin), heads, last };
}

/** Not the database's own reading of it: a forged text that is not JSON must not stop every call. */
function saidIn(text: string): Pick<Head, 'at' | 'isTransferred'> {
  try {
    const row: Partial<AuditRow> = JSON.parse(text);
    return { at: typeof row.at === 'string' ? row.at : '', isTransferred: isTransfer(row) };
  } catch {
    return { at: '' };
  }
}

/** Whether a head is that of the last row: its position, its chain hash and its time. */
export function isHeadOf(row: HeadRow, last: Head): boolean {
  return row.size === last.position && row.chain_hash === last.chainHash && row.at === last.at;
}

/** The head of a row, if the key signed what the row says and the frontier gives the signed root. */
export function openHead(row: HeadRow, key: VerifierKey): SignedHead | undefined {
  const tree = treeIn(row.frontier, row.size);
  if (tree === undefined) return undefined;
  const checkpoint = openIfValid(row.checkpoint, [key]);
  return checkpoint?.size === row.size && checkpoint.root === tree.root() ? { row, tree } : undefined;
}

/** Where a database is, and where the user's side of its log is. */
export type LogPlace = Pick<Config, 'dbPath' | 'configDir'> & Partial<Pick<Config, 'dbId'>>;

/** A log with the key that this user signs it with. */
export type OwnLog = Readonly<ReturnType<typeof ownLogIn>>;

/** The user's side of the log at a path; undefined for a new log. Refuses one that is not the log it was or has no key. */
export function loadOwnLog(
  view: LogView,
  { dbPath, dbId, configDir }: LogPlace,
  /** What becomes of a user who has no key for it. */
  newcomer: 'refused' | 'joins' | 'later' = 'refused',
): OwnLog | undefined {
  const { origin, last, heads } = view;
  const other = new PathMemory(configDir, dbId ?? dbPath).otherThan(origin);
  const now = origin ?? (last.position > 0 ? 'an unsigned one' : 'an empty one');
  if (other !== undefined) throw REFUSALS.replaced(other, now);
  if (origin === undefined) {
    if (last.position === 0 && heads.length === 0) return undefined;
    throw REFUSALS.neverSigned(dbPath, last.position);
  }
  if (!isOrigin(origin)) throw REFUSALS.misnamed(dbPath);
  const folder = new KeyFolder(configDir, origin);
  if (!folder.exists && newcomer === 'refused') throw REFUSALS.unknownLog(origin);
  if (!folder.exists && newcomer === 'later') return undefined;
  return ownLogIn(folder.exists ? folder : newKeyFor(folder, configDir));
}

/** Each machine signs a team's log with a key of its own. Another process of this user may be making it, too. */
function newKeyFor(folder: KeyFolder, configDir: string): KeyFolder {
  try {
    return KeyFolder.create(configDir, folder.origin);
  } catch (error) {
    if (!folder.exists) throw error;
    return folder;
  }
}

/** The key of a folder that is there. Refuses where it is missing or is not the one on record. */
export function ownLogIn(folder: KeyFolder) {
  /** Which adoption this was loaded after. */
  const stamp = folder.adoptionStamp();
  /** Keys that were given up: a head by one of them may stay. */
  const retired = folder.retiredKeys();
  const [pem, known] = [folder.privateKeyPem(), folder.verifierKey()];
  try {
    const signer = noteSigner(folder.origin, pem ?? '');
    // Another key would start a second history.
    if (signer.verifierKey === known) return { folder, signer, key: parseVerifierKey(known), retired, stamp };
  } catch {
    // A key that cannot be read is as good as none.
  }
  throw REFUSALS.lostKey(folder.path);
}

/** What the folder remembers. To be read before the rows: others may sign further ones at any moment. */
export function requireRemembered({ folder, key }: OwnLog): Remembered {
  const remembered = readRemembered(folder.signedPath, key);
  if (remembered === undefined) throw REFUSALS.lostMemory(folder.signedPath);
  return remembered;
}

/** The kept checkpoints that a log has, each as `keptName` calls it. */
export async function keptIn(tx: Reader): Promise<ReadonlySet<string>> {
  const rows = await tx.all<{ size: number; key: string }>('SELECT size, key FROM checkpoints');
  return new Set(rows.map(({ size, key }) => keptName(size, key)));
}

/** Keys of other machines that are on the record. */
export type Peers = ReadonlyMap<string, VerifierKey>;

/** The own head, the newest one, and whether there is another one that this user neither gave up nor knows. */
export function headsOf({ heads }: LogView, { signer, retired }: OwnLog, peers: Peers) {
  const row = heads.find(({ key }) => key === signer.verifierKey);
  const isRetired = ({ key, size }: HeadRow) => retired.includes(key) && size <= (row?.size ?? size);
  let newest = row;
  for (const head of heads) if (peers.has(head.key) && head.size > (newest?.size ?? 0)) newest = head;
  const isOther = (head: HeadRow) => head !== row && !peers.has(head.key) && !isRetired(head);
  return { row, newest, hasOther: heads.some(isOther) };
}

/** A row that puts a key on the record of a log, or accepts the log as it is. */
export interface RecordedAct {
  readonly position: number;
  readonly act: (typeof ACTS)[number];
  readonly tool: string;
  readonly key: string;
  /** What it says: its arguments, or its result. */
  readonly args: Readonly<Record<string, unknown>>;
}

/** The acts behind a position. A key counts from when its call began: it signs that row already. */
export async function actsOnRecord(tx: Reader, after: number): Promise<RecordedAct[]> {
  const named = ACTS.map(() => tx.dialect.contains('a.text')).join(' OR ');
  const rows = await tx.all<{ position: number; text: string; body: string }>(
    `SELECT a.position, a.text, p.body
     FROM actions a JOIN action_payloads p ON p.position = a.position
     WHERE a.position > ? AND (${named}) ORDER BY a.position`,
    after,
    ...ACTS.map((act) => act),
  );
  return rows.flatMap(({ position, text, body }) => {
    const act = ACTS.find((one) => text.includes(one));
    const args = saidBy(body);
    if (act === undefined || typeof args.key !== 'string') return [];
    const tool = act.slice(act.lastIndexOf(':"') + 2, -1);
    return [{ position, act, tool, key: args.key, args }];
  });
}

/** The result of a call where there is one, else its arguments. Whoever has the database may have put anything there. */
function saidBy(body: string): Readonly<Record<string, unknown>> {
  try {
    const said: unknown = JSON.parse(body);
    return Object(Reflect.get(Object(said), 'result') ?? said);
  } catch {
    return {};
  }
}

/** The keys that are vouched for: the one that the log is named after, and those that one of them vouches for. */
function vouchedIn({ origin, heads }: LogView, acts: readonly RecordedAct[]): Map<string, VerifierKey> {
  const read = (text: string) => {
    const key = keyIn(text);
    return key?.name === origin ? key : undefined;
  };
  const named = [...heads, ...acts].filter(({ key }) => originOfKey(key) === origin);
  const vouched = new Map(named.flatMap(({ key }) => [[key, read(key)] as const]).filter(isRead));
  followVouches(vouched, origin, acts, read);
  return vouched;
}

function isRead(entry: readonly [string, VerifierKey | undefined]): entry is [string, VerifierKey] {
  return entry[1] !== undefined;
}

const JOINING = '"stage":"enter","tool":"key_join"';
const TRUSTING = '"stage":"enter","tool":"owner_trust"';
/** Only one that went well has a key in its answer. */
export const ADOPTED = '"stage":"exit","tool":"owner_adopt"';
const ACTS = [JOINING, TRUSTING, '"stage":"enter","tool":"owner_adopt"', ADOPTED] as const;

/** A key whose signed head is in a log, how far that reaches, and whether somebody has vouched for the key. */
export interface LogKey {
  readonly key: string;
  readonly through: number;
  readonly vouched: boolean;
}

/**
 * Which keys signed the rows of a log that machines share, by what the log says of them; the newest first. The key that the
 * log is named after needs nobody to vouch for it. `colibri verify` checks all of it.
 */
export async function readLogKeys(tx: Reader): Promise<LogKey[]> {
  const view = await readView(tx);
  const acts = await actsOnRecord(tx, 0);
  const vouched = vouchedIn(view, acts);
  const isOnRecord = (key: string) => vouched.has(key) || acts.some((act) => act.key === key);
  return view.heads
    .filter(({ key, checkpoint }) => {
      const opening = keyIn(key);
      return isOnRecord(key) && opening !== undefined && openIfValid(checkpoint, [opening]) !== undefined;
    })
    .map(({ key, size }) => ({ key, through: size, vouched: vouched.has(key) }))
    .sort((a, b) => b.through - a.through);
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
  { size, chainHash, older }: Remembered,
  dbPath: string,
  peers: Peers,
): Promise<SignedHead | undefined> {
  const { last } = view;
  /** The row at this position is there, and is the one that was signed. */
  const requireRow = async (position: number, isSigned: (row: Head) => boolean) => {
    if (last.position < position) throw REFUSALS.cutTail(dbPath, last.position, position);
    const sql = 'SELECT chain_hash, text FROM audit_rows WHERE position = ?';
    type Stored = { readonly chain_hash: string; readonly text: string };
    const read = last.position === position ? undefined : await tx.get<Stored>(sql, position);
    const row = read ? { position, chainHash: read.chain_hash, ...saidIn(read.text) } : last;
    if (position > 0 && (row.position !== position || !isSigned(row)))
      throw REFUSALS.rewritten(dbPath, position);
  };
  const { row, newest, hasOther } = headsOf(view, own, peers);
  if (hasOther) throw REFUSALS.otherHead(dbPath);
  // Of several machines, one that never signed has no head. One that did must find it.
  const hasNone = row === undefined && (peers.size === 0 || newest === undefined || size > 0);
  if (hasNone && last.position > 0) throw REFUSALS.noHead(dbPath, last.position);
  const opened = (one: HeadRow) => {
    const head = openHead(one, peers.get(one.key) ?? own.key);
    if (head === undefined) throw REFUSALS.wrongHead(dbPath);
    return head;
  };
  const head = newest && opened(newest);
  if (newest !== undefined) {
    await requireRow(newest.size, (signed) => isHeadOf(newest, signed));
    if (last.position > newest.size) throw REFUSALS.foreignRows(dbPath, newest.size);
  }
  if (row !== undefined && row !== newest) {
    opened(row);
    await requireRow(row.size, (signed) => isHeadOf(row, signed));
  }
  await requireRow(size, (signed) => signed.chainHash === chainHash);
  for (const slot of older)
    await requireRow(
      slot.size,
      (signed) => signed.chainHash === slot.chainHash || openIfValid(slot.note, [own.key]) === undefined,
    );
  return head;
}

/**
 * Whether the owner has accepted, on another machine, that the log no longer holds what this one signed: an adoption that
 * this machine has not seen before is signed by a key that is vouched for, and under the head of one. An adoption that it has seen is one
 * that it signed over, and says nothing of what happened later.
 */
export async function isAdoptedElsewhere(
  tx: Reader,
  view: LogView,
  own: OwnLog,
  acts: readonly RecordedAct[],
): Promise<boolean> {
  const seen = own.folder.adoptionsSeen();
  const vouched = vouchedIn(view, acts);
  const first = acts.find(
    (act) =>
      act.act === ADOPTED &&
      seen?.includes(adoptionId(act)) === false &&
      isStatedBy(vouched.values(), view.origin, act),
  );
  if (first === undefined) return false;
  for (const head of view.heads) {
    const key = vouched.get(head.key);
    if (key === undefined || head.key === own.signer.verifierKey) continue;
    if (head.size < first.position || openHead(head, key) === undefined) continue;
    const sql = 'SELECT chain_hash AS hash FROM audit_rows WHERE position = ?';
    const row = await tx.get<{ hash: string }>(sql, head.size);
    if (row?.hash === head.chain_hash) return true;
  }
  return false;
}

/** Rows read at once: about 3 ms, so that calls are not held up for longer. */
const PAGE = 1_000;
/** The whole log is read at most this often, whichever process does it. */
export const FULL_CHECK_EVERY_MS = 3_600_000;

/** Grows a tree from the rows up to `size`, a view per page; refuses a gap (V9). Sets each root that `rootsAt` names. */
export async function regrow(
  storage: Pick<StorageEngine, 'read'>,
  tree: Frontier,
  size: number,
  path: string,
  rootsAt: Map<number, string> = new Map(),
): Promise<void> {
  while (tree.size < size) {
    const rows = await storage.read((tx) =>
      tx.all<{ position: number; content_hash: string }>(
        'SELECT position, content_hash FROM audit_rows WHERE position > ? AND position <= ? ORDER BY position LIMIT ?',
        tree.size,
        size,
        PAGE,
      ),
    );
    const gap = () => REFUSALS.gap(path, tree.size + 1);
    if (rows.length === 0) throw gap();
    for (const { position, content_hash } of rows) {
      if (position !== tree.size + 1 || !isHash(content_hash)) throw gap();
      tree.addDigest(content_hash);
      if (rootsAt.has(tree.size)) rootsAt.set(tree.size, tree.root());
    }
    if (tree.size < size) await new Promise((resolve) => setImmediate(resolve));
  }
}

/**
 * Where it is time again, reads the whole log in slices and compares its root with the signed one: the checks at start
 * and before each commit look at the last row only. Answers why the log must not be signed over, or undefined. The
 * result is kept with the key, so that the next start knows of it.
 */
export async function checkWholeLog(
  storage: StorageEngine,
  { folder, stamp }: OwnLog,
  head: SignedHead,
  path: string,
  now: number,
): Promise<string | undefined> {
  const last = folder.lastCheck();
  // A finding is looked at again by every process: the owner may have put a good copy back.
  const isDue = last?.finding !== undefined || Math.abs(now - (last?.at ?? 0)) >= FULL_CHECK_EVERY_MS;
  if (!isDue) return undefined;
  // Noted before it begins, so that of many processes one does it.
  folder.noteCheck(now, last?.finding);
  const tree = new Frontier();
  let finding: string | undefined;
  try {
    // The rows are append-only: a short snapshot for each slice sees the same ones and keeps no writer waiting.
    await regrow(storage, tree, head.row.size, path);
    if (tree.root() !== head.tree.root()) throw REFUSALS.rewritten(path, head.row.size);
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    finding = error.message;
  }
  // The owner accepted the log meanwhile: what it was compared with no longer counts.
  if (folder.adoptionStamp() !== stamp) return undefined;
  folder.noteCheck(now, finding);
  return finding;
}
