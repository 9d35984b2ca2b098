import { createHash } from 'node:crypto';
import type { Checkpoint } from '../integrity/checkpoint.ts';
import { NOTE_BYTES_MAX } from '../integrity/signed-note.ts';
import { EMPTY_ROOT } from '../integrity/tree.ts';
import { exactText } from '../integrity/utf8.ts';
import { originOf } from '../log/log-folder.ts';
import { formatId } from '../log/state.ts';
import { SESSIONS } from '../log/tables.ts';
import type { Finding, Report } from '../log/verify/finding.ts';
import { type CarriedAnchor, openAnchor } from './anchors.ts';
import { type BundleSource, openBundle, readSmall, SourceError } from './bundle-source.ts';
import { formatSums } from './bundle-target.ts';
import { type BundleMarker, type PayloadLine, readMarker, readPayload } from './formats.ts';
import * as layout from './layout.ts';
import { LinesError, readLines } from './lines.ts';
import { RowWalk, type WalkedRow } from './row-walk.ts';
import { StateWalk, sealDigest } from './state-walk.ts';
import { attempt, checkTlogProof, openCheckpoint, TrustError, trustKey } from './trust.ts';
import { ZipError } from './zip.ts';

export interface BundleVerdict {
  /** Audit rows of the log: those in the bundle, or, of one session, those its checkpoint speaks of. */
  readonly size: number;
  readonly root: string;
  /** No finding speaks of a position up to here. */
  readonly intactThrough: number;
  /** Rows that a valid checkpoint covers. */
  readonly checkpointedThrough: number;
  readonly origin: string | undefined;
  readonly findings: number;
  /** `log`, or the session it holds, whose rows are proved one by one and not as a whole. */
  readonly scope: string;
  /** The key that the checkpoints were opened with, in its text form. */
  readonly key: string | undefined;
  /** What others may hold of its checkpoints. None of it was looked up. */
  readonly anchors: readonly CarriedAnchor[];
}

export interface BundleOptions {
  readonly report: Report;
  readonly onProgress?: (done: number, total: number) => void;
  /** The verifier key to believe, in its text form. Without one the bundle's own is used, which proves only that it agrees with itself. */
  readonly trustedKey?: string;
  /** The text of a signed checkpoint kept elsewhere. */
  readonly against?: string;
}

/** Verifies a bundle, folder or zip, with nothing but what lies in it. Hostile input enters here: findings, never a crash. */
export async function verifyBundle(path: string, options: BundleOptions): Promise<BundleVerdict> {
  const tally = countFindings(options.report);
  let source: BundleSource | undefined;
  try {
    source = openBundle(path);
    const verdict = await new BundleCheck(source, { ...options, report: tally.report }).run();
    return { ...verdict, ...tally.verdict(verdict.intactThrough) };
  } catch (thrown) {
    if (!isOfTheInput(thrown)) throw thrown;
    tally.report({ kind: 'damaged', table: 'bundle', record: 'bundle', message: `${thrown.message}.` });
    return { ...NOTHING, ...tally.verdict(0) };
  } finally {
    source?.close();
  }
}

const NOTHING = {
  size: 0,
  root: EMPTY_ROOT,
  checkpointedThrough: 0,
  origin: undefined,
  scope: 'log',
  key: undefined,
  anchors: [],
} as const;

/** Counts what is reported, and remembers where the first of it stands. */
export function countFindings(report: Report) {
  let findings = 0;
  let firstBad = Number.POSITIVE_INFINITY;
  return {
    report(finding: Finding): void {
      findings += 1;
      firstBad = Math.min(firstBad, finding.position ?? Number.POSITIVE_INFINITY);
      report(finding);
    },
    verdict: (through: number) => ({ findings, intactThrough: Math.min(through, firstBad - 1) }),
  };
}

function isOfTheInput(thrown: unknown): thrown is Error {
  const system = thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string';
  return (
    system || thrown instanceof SourceError || thrown instanceof ZipError || thrown instanceof LinesError
  );
}

/** Far more than any of the small files needs. */
const SMALL_BYTES_MAX = 1_048_576;
/** One line a file; a bundle of a session has a file a row. */
const SUMS_BYTES_MAX = 268_435_456;

const GIVEN = 'the checkpoint you gave';

type Head = Checkpoint & { readonly name: string; readonly note: string };

interface ProvedRow {
  readonly position: number;
  readonly contentHash: string;
}

class BundleCheck {
  readonly #source: BundleSource;
  readonly #options: BundleOptions;
  readonly #report: Report;
  /** Digests of the files that were read on the way, so that none is read twice. */
  readonly #sums = new Map<string, string>();

  constructor(source: BundleSource, options: BundleOptions) {
    this.#source = source;
    this.#options = options;
    this.#report = options.report;
  }

  async run(): Promise<Omit<BundleVerdict, 'findings'>> {
    const marker = await this.#readMarker();
    const { key, own, all } = await this.#readHeads();
    const anchors = await this.#checkAnchors(all);
    const whole = marker.scope === 'log';
    const rows = new RowWalk(this.#report, whole);
    const covered = whole ? await this.#walkLog(rows, all) : await this.#walkSome(rows, own, all);
    const state = new StateWalk(rows, this.#report, whole);
    for await (const line of readLines(this.#stream(layout.STATE))) state.add(line);
    state.finish();
    state.checkSeals();
    await this.#checkSealFiles(state, rows, whole ? own : undefined);
    this.#compareMarker(marker, rows, own);
    await this.#checkSums();
    const { size, root } = whole
      ? { size: rows.position, root: rows.root }
      : (own ?? { size: 0, root: EMPTY_ROOT });
    return {
      size,
      root,
      intactThrough: rows.position,
      checkpointedThrough: covered,
      origin: own?.origin ?? marker.origin ?? undefined,
      scope: marker.scope,
      key,
      anchors,
    };
  }

  async #readMarker(): Promise<BundleMarker> {
    const text = exactText((await this.#small(layout.MARKER)) ?? Buffer.alloc(0));
    const marker = text?.endsWith('\n') ? readMarker(text.slice(0, -1)) : undefined;
    if (marker === undefined)
      throw new SourceError(`${layout.MARKER} is missing or damaged: this is no bundle`);
    return marker;
  }

  /** Every checkpoint whose signature holds, the smallest first; `own` is the bundle's newest. */
  async #readHeads(): Promise<{
    key: string | undefined;
    own: Head | undefined;
    all: readonly Head[];
  }> {
    const ownKey = exactText((await this.#small(layout.KEY)) ?? Buffer.alloc(0)) || undefined;
    const place = { table: layout.KEY };
    if (ownKey !== undefined && !/^[^\n]+\n$/.test(ownKey)) this.#damaged(layout.KEY);
    const key = attempt(this.#report, place, () => trustKey(ownKey?.slice(0, -1), this.#options.trustedKey));
    if (key === undefined) return { key: undefined, own: undefined, all: [] };
    const heads: Head[] = [];
    const open = (name: string, note: Uint8Array | string) => {
      const head = attempt(this.#report, { table: name }, () => openCheckpoint(note, key, name));
      const text = typeof note === 'string' ? note : exactText(note);
      if (head !== undefined && text !== undefined) heads.push({ ...head, name, note: text });
    };
    for (const name of [layout.CHECKPOINT, ...this.#source.names].filter(isCheckpointName)) {
      const note = await this.#small(name);
      if (note !== undefined) open(name, note);
      else this.#missing(layout.CHECKPOINT, 'There is no checkpoint: nothing in the bundle is signed.');
    }
    if (this.#options.against !== undefined) open(GIVEN, this.#options.against);
    for (const { name, size } of heads)
      if (name.startsWith('checkpoints/') && name !== layout.olderCheckpoint(size)) this.#damaged(name);
    const own = heads.find(({ name }) => name === layout.CHECKPOINT);
    const text = ownKey?.slice(0, -1) ?? this.#options.trustedKey;
    return { key: text, own, all: heads.sort((a, b) => a.size - b.size) };
  }

  /** Each is what its name says and speaks of a checkpoint of the bundle: one that somebody brings along is not in it. */
  async #checkAnchors(heads: readonly Head[]): Promise<CarriedAnchor[]> {
    const own = heads.filter(({ name }) => name !== GIVEN);
    const anchors: CarriedAnchor[] = [];
    for (const name of [...this.#source.names].filter((file) => file.startsWith('anchors/')).sort()) {
      const bytes = (await this.#small(name)) ?? Buffer.alloc(0);
      const anchor = attempt(this.#report, { table: name }, () => openAnchor(name, bytes, own));
      if (anchor !== undefined) anchors.push(anchor);
    }
    return anchors.sort((a, b) => a.size - b.size);
  }

  /** The whole log: every row against its neighbours, every checkpoint against the tree. Answers how far one covers it. */
  async #walkLog(rows: RowWalk, heads: readonly Head[]): Promise<number> {
    let next = 0;
    let covered = 0;
    const total = this.#source.size(layout.LOG);
    let done = 0;
    await this.#walkRows(rows, (_, line) => {
      for (let head = heads[next]; head?.size === rows.position; head = heads[++next])
        if (head.root === rows.root) covered = head.size;
        // Somewhere behind the last head that agrees something was changed; nobody can say where.
        else this.#wrongHead(head, 'is of another log, or the log was rewritten', covered + 1);
      done += line.length + 1;
      if (rows.position % 1_000 === 0) this.#options.onProgress?.(done, total);
    });
    for (const head of heads.slice(next))
      this.#wrongHead(head, `speaks of ${head.size} rows, but there are only ${rows.position}`);
    const [first] = heads;
    if (first !== undefined && rows.first !== undefined && originOf(rows.first) !== first.origin)
      this.#wrongHead(first, `is of ${first.origin}, which does not begin with this first row`);
    return covered;
  }

  /** Some rows: each with a proof of its own against the one checkpoint. Without the rows between, no other can be compared. */
  async #walkSome(rows: RowWalk, head: Head | undefined, all: readonly Head[]): Promise<number> {
    const walked: ProvedRow[] = [];
    await this.#walkRows(rows, (row) => {
      if (row !== undefined) walked.push({ position: row.row.position, contentHash: row.contentHash });
    });
    for (const row of walked) await this.#checkProof(layout.proofFile(row.position), row, head);
    const proofs = [...this.#source.names].filter((name) => name.startsWith('proofs/'));
    if (proofs.length !== walked.length) this.#damaged('proofs');
    for (const other of all)
      if (head !== undefined && (other.size !== head.size || other.root !== head.root))
        this.#wrongHead(
          other,
          `cannot be compared with one of ${head.size} rows; take a bundle of the whole log`,
        );
    return head?.size ?? 0;
  }

  /** Rows and what lies beside them, side by side: both files are in the order of positions. */
  async #walkRows(rows: RowWalk, each: (row: WalkedRow | undefined, line: Buffer) => void): Promise<void> {
    const beside = new PayloadCursor(readLines(this.#stream(layout.PAYLOADS)), this.#report);
    for await (const line of readLines(this.#stream(layout.LOG))) {
      const row = rows.add(line);
      const payload = await beside.take(rows.position);
      if (row !== undefined) rows.checkPayload(row, payload);
      each(row, line);
    }
    await beside.take(Number.POSITIVE_INFINITY);
  }

  async #checkProof(name: string, row: ProvedRow, head: Head | undefined): Promise<void> {
    const { position } = row;
    const text = exactText((await this.#small(name)) ?? Buffer.alloc(0));
    if (head === undefined) return;
    const checkpoint = exactText((await this.#small(layout.CHECKPOINT)) ?? Buffer.alloc(0)) ?? '';
    attempt(this.#report, { table: name, position }, () => {
      if (!text) throw new TrustError(`${name} is missing or is no text.`);
      checkTlogProof(text, { ...row, checkpoint }, head);
    });
  }

  /** Seal files say what the state says, and a proof stands beside each that the checkpoint covers. */
  async #checkSealFiles(state: StateWalk, rows: RowWalk, head: Head | undefined): Promise<void> {
    const expected = new Set<string>();
    for (const session of state.sessions.values()) {
      if (session.row.status !== 'finalized') continue;
      const id = formatId(SESSIONS, session.row.id);
      const name = layout.sealFile(id);
      expected.add(name);
      if ((await this.#digest(name)) !== sealDigest(session)) this.#damaged(name);
      const { position } = session.row;
      const contentHash = rows.hashes.get(position);
      if (head === undefined || contentHash === undefined || position > head.size) continue;
      expected.add(layout.proofFile(id));
      await this.#checkProof(layout.proofFile(id), { position, contentHash }, head);
    }
    const isExtra = (name: string) =>
      (name.startsWith('seals/') || (head !== undefined && name.startsWith('proofs/'))) &&
      !expected.has(name);
    for (const name of [...this.#source.names].filter(isExtra))
      this.#report({
        kind: 'stray',
        table: name,
        record: name,
        message: `${name} belongs to no sealed session.`,
      });
  }

  #compareMarker(marker: BundleMarker, rows: RowWalk, own: Head | undefined): void {
    const whole = marker.scope === 'log';
    const origin = whole && rows.first !== undefined ? originOf(rows.first) : own?.origin;
    const isSame =
      marker.rows === rows.hashes.size &&
      marker.root === (whole ? rows.root : null) &&
      marker.chain_hash === (whole ? rows.chainHash : null) &&
      marker.origin === (origin ?? null) &&
      marker.checkpointed === (own?.size ?? 0);
    if (isSame) return;
    const message = `${layout.MARKER} speaks of ${marker.rows} rows with another origin, checkpoint, root or chain than the ${rows.hashes.size} that are there.`;
    this.#report({ kind: 'altered', table: layout.MARKER, record: layout.MARKER, message });
  }

  /** Last, because most files have been read by then. */
  async #checkSums(): Promise<void> {
    for (const name of this.#source.names) if (name !== layout.SUMS) await this.#digest(name);
    const found = await readSmall(this.#source, layout.SUMS, SUMS_BYTES_MAX);
    const text = exactText(found ?? Buffer.alloc(0)) ?? '';
    if (text === formatSums(this.#sums)) return;
    const listed = new Set(text.split('\n'));
    const wrong = [...this.#sums].filter(([name, hash]) => !listed.has(`${hash}  ${name}`));
    const names = wrong.map(([name]) => name).slice(0, 3);
    const message =
      names.length === 0
        ? `${layout.SUMS} lists something that is not there.`
        : `${names.join(', ')}${wrong.length > 3 ? ' and others' : ''} do not fit ${layout.SUMS}.`;
    this.#report({ kind: 'altered', table: layout.SUMS, record: names[0] ?? layout.SUMS, message });
  }

  async #digest(name: string): Promise<string | undefined> {
    if (!this.#sums.has(name) && this.#source.names.has(name))
      for await (const _ of this.#stream(name)) {
        // Reading is enough: the stream keeps the digest.
      }
    return this.#sums.get(name);
  }

  /** A file's bytes, hashed as they pass. An absent file is a finding and empty. */
  async *#stream(name: string): AsyncGenerator<Buffer> {
    if (!this.#source.names.has(name)) {
      this.#missing(name, `${name} is not in the bundle.`);
      return;
    }
    const hash = createHash('sha256');
    for await (const chunk of this.#source.stream(name)) {
      hash.update(chunk);
      yield chunk;
    }
    this.#sums.set(name, hash.digest('hex'));
  }

  async #small(name: string): Promise<Buffer | undefined> {
    return await readSmall(this.#source, name, Math.max(SMALL_BYTES_MAX, NOTE_BYTES_MAX));
  }

  #wrongHead({ name, size }: Head, reason: string, position = size): void {
    this.#report({
      kind: 'altered',
      table: name,
      record: name,
      position,
      message: `${name} ${reason}.`,
    });
  }

  #damaged(name: string): void {
    const message = `${name} is not what the rest of the bundle says it must be.`;
    this.#report({ kind: 'altered', table: name, record: name, message });
  }

  #missing(name: string, message: string): void {
    this.#report({ kind: 'missing', table: name, record: name, message });
  }
}

function isCheckpointName(name: string, index: number): boolean {
  return index === 0 || name.startsWith('checkpoints/');
}

/** Payloads in step with the rows they lie beside. */
class PayloadCursor {
  readonly #lines: AsyncGenerator<Buffer>;
  readonly #report: Report;
  #next: PayloadLine | undefined;
  #last = 0;
  #ended = false;

  constructor(lines: AsyncGenerator<Buffer>, report: Report) {
    this.#lines = lines;
    this.#report = report;
  }

  /** The payload at a position, if there is one. What lies before it and belongs to no row is reported. */
  async take(position: number): Promise<PayloadLine | undefined> {
    for (;;) {
      this.#next ??= await this.#read();
      if (this.#next === undefined || this.#next.position > position) return undefined;
      const payload = this.#next;
      this.#next = undefined;
      if (payload.position === position) return payload;
      this.#say('stray', `There is a payload at position ${payload.position} that no audit row speaks of.`);
    }
  }

  async #read(): Promise<PayloadLine | undefined> {
    while (!this.#ended) {
      const { done, value } = await this.#lines.next();
      this.#ended = done === true;
      if (value === undefined) break;
      const payload = readPayload(value.toString('utf8'));
      if (payload === undefined || payload.position <= this.#last) {
        this.#say('malformed', `The payload behind position ${this.#last} cannot be read or is misplaced.`);
        continue;
      }
      this.#last = payload.position;
      return payload;
    }
    return undefined;
  }

  #say(kind: Finding['kind'], message: string): void {
    this.#report({ kind, table: layout.PAYLOADS, record: layout.PAYLOADS, message });
  }
}
