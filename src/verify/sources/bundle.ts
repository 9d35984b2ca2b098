import type { Checkpoint } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { formatTlogProof, parseTlogProof, type TlogProof } from '../../integrity/tlog-proof.ts';
import type { StateTable } from '../../log/tables.ts';
import { auditRow, type Finding, type Report } from '../finding.ts';
import type { SourceHead, SourceNote, SourceRow, SourceText, Walked } from '../source.ts';
import {
  type CarriedAnchor,
  type CarriedSource,
  checkLinks,
  checkSubject,
  damagedSource,
  fileFinding,
  isIncluded,
  readHead,
  type ShownRow,
} from './carried.ts';
import { type Files, readLines, SourceError } from './files.ts';
import { Folder } from './folder.ts';
import { type Marker, markerLine, type PayloadLine, readLink, readMarker, readPayload } from './forms.ts';
import { HeldState, HeldTexts } from './held.ts';
import * as layout from './layout.ts';
import { type Notes, readNotes } from './notes.ts';
import { claimedPosition, numberedRows, PayloadCursor } from './rows.ts';
import { type ShownSeal, sealText, shownSeals } from './seals.ts';
import { reportStrays } from './strays.ts';

/** One line a file; a bundle of a session has a file a row. */
const SUMS_BYTES_MAX = 268_435_456;
/** What is held in memory while the rows are read. */
const HELD_BYTES_MAX = 2_147_483_647;

/**
 * A bundle as a source. Hostile input enters here: what cannot be read at all becomes a source with one finding, and
 * nothing is thrown.
 */
export async function bundleSource(files: Files): Promise<CarriedSource> {
  try {
    const folder = new Folder(files);
    const marker = readMarker((await folder.text(layout.MARKER))?.slice(0, -1));
    if (marker === undefined)
      throw new SourceError(`${layout.MARKER} is missing or damaged: this is no bundle of this version`);
    const faults: Finding[] = [];
    const notes = await readNotes(folder, faults);
    const texts = new HeldTexts(await folder.whole(layout.TEXTS, HELD_BYTES_MAX));
    const state = new HeldState(await folder.whole(layout.STATE, HELD_BYTES_MAX));
    return new BundleSource({ folder, marker, notes, texts, state, faults });
  } catch (error) {
    if (error instanceof SourceError) return damagedSource(error.message);
    throw error;
  }
}

interface Opened {
  readonly folder: Folder;
  readonly marker: Marker;
  readonly notes: Notes;
  readonly texts: HeldTexts;
  readonly state: HeldState;
  /** What was found wrong on the way, to be reported with the rest. */
  readonly faults: Finding[];
}

class BundleSource implements CarriedSource {
  readonly subject: string;
  readonly whole: boolean;
  readonly complete: ReadonlySet<string>;
  readonly anchors: readonly CarriedAnchor[];
  readonly #in: Opened;
  #payloads = new PayloadCursor(nothing());
  /** Of a bundle of one session: its rows. */
  readonly #rows = new Map<number, ShownRow>();
  /** How many proofs are under another checkpoint than the newest. */
  #elsewhere = 0;
  /** Files that do not belong. */
  readonly #strays = new Set<string>();
  /** Reading the rows came to an end too early, which was said then. */
  #isDamaged = false;

  constructor(opened: Opened) {
    this.subject = opened.marker.scope;
    this.whole = opened.marker.scope === layout.WHOLE_LOG;
    this.complete = new Set(this.whole ? [] : [this.subject]);
    this.anchors = opened.notes.anchors;
    this.#in = opened;
  }

  origin(): Promise<string | undefined> {
    return Promise.resolve(this.#in.marker.origin ?? undefined);
  }

  heads(): Promise<readonly SourceHead[]> {
    return Promise.resolve(this.#in.notes.heads.toSorted((a, b) => (a.key < b.key ? -1 : 1)));
  }

  kept(): Promise<readonly SourceNote[]> {
    return Promise.resolve(this.#in.notes.kept);
  }

  count(): Promise<number> {
    return Promise.resolve(this.#in.marker.rows);
  }

  async *rows(): AsyncGenerator<readonly SourceRow[]> {
    const { folder, faults } = this.#in;
    this.#payloads = new PayloadCursor(payloadsIn(folder));
    try {
      if (this.whole)
        yield* numberedRows(logIn(folder), this.#payloads, (after) => faults.push(rowTooMany(after)));
      else yield* this.#linkedRows();
    } catch (error) {
      this.#isDamaged = true;
      throw error;
    }
  }

  texts(digests: readonly string[]): Promise<ReadonlyMap<string, SourceText>> {
    return Promise.resolve(this.#in.texts.find(digests));
  }

  states(table: StateTable, ids: readonly number[]): Promise<ReadonlyMap<number, string>> {
    return Promise.resolve(this.#in.state.find(table, ids));
  }

  async checkRest(walked: Walked, report: Report): Promise<void> {
    if (this.#isDamaged) return;
    const { folder, texts, state, faults } = this.#in;
    if (!this.whole) {
      checkSubject(this.subject, state, (position) => this.#rows.get(position)?.text, walked, report);
      checkLinks([...this.#rows.values()], this.#head, report);
      if (this.#elsewhere > 0)
        report(fileFinding('altered', 'proofs', `${this.#elsewhere} proofs are under another checkpoint.`));
    }
    for (const finding of faults) report(finding);
    for (const line of this.#payloads.unreadable)
      report(
        fileFinding(
          'malformed',
          layout.PAYLOADS,
          `Line ${line} of ${layout.PAYLOADS} is no payload, or is misplaced.`,
        ),
      );
    const again = () => payloadsIn(folder);
    await reportStrays({ whole: this.whole, texts, state, payloads: this.#payloads, again }, walked, report);
    // Where a row is lost, which is said already, the rest cannot be what it was.
    if (walked.isComplete) this.#checkMarker(walked, report);
    const expected = await this.#checkSeals(walked, report);
    this.#checkNames(expected, walked, report);
    await this.#checkSums(report);
  }

  /** Some rows of a log, each with its place, the chain hash before it and a proof of its own. */
  async *#linkedRows(): AsyncGenerator<readonly SourceRow[]> {
    const links = await this.#readLinks();
    let last = 0;
    let count = 0;
    for await (const page of logIn(this.#in.folder)) {
      const rows: SourceRow[] = [];
      for (const text of page) {
        const link = links[count++];
        const claim = link?.position ?? claimedPosition(text) ?? 0;
        last = claim > last ? claim : last + 1;
        const payload = await this.#payloads.take(last);
        const proof = await this.#readProof(last, text);
        if (text !== undefined)
          this.#rows.set(last, { position: last, text, previous: link?.previous, proof: proof?.proof });
        rows.push({
          position: last,
          text,
          ...(payload !== undefined && { payload }),
          ...(link !== undefined && { previous_chain_hash: link.previous }),
          ...(proof !== undefined && { proof: proof.proof }),
        });
      }
      yield rows;
    }
    await this.#payloads.finish();
    if (links.length !== count || links.includes(undefined))
      this.#fault(layout.LINKS, 'does not fit the rows of the log');
  }

  async #readLinks() {
    const text = (await this.#in.folder.text(layout.LINKS, SUMS_BYTES_MAX)) ?? '';
    return text.split('\n').slice(0, -1).map(readLink);
  }

  /** The proof beside a row, after it was compared with what a proof of this row must say. */
  async #readProof(position: number, row: string | undefined): Promise<TlogProof | undefined> {
    const name = layout.proofFile(position);
    const text = await this.#in.folder.text(name);
    const proof = text === undefined ? undefined : parseProof(text);
    if (proof === undefined || row === undefined) return undefined;
    const { checkpoint } = proof;
    // Where the checkpoint is another one, it is so in all of them: that is one finding.
    if (!this.#isNewest(checkpoint)) this.#elsewhere += 1;
    const made = { index: position - 1, proof: proof.proof, checkpoint, extra: Buffer.from(row) };
    if (formatTlogProof(made) !== text) this.#fault(name, `is not the proof of audit row ${position}`);
    return proof;
  }

  get #newest(): string | undefined {
    return this.#in.notes.heads.at(-1)?.checkpoint;
  }

  /** The newest head lies in two places. Where they differ, that is a finding of its own. */
  #isNewest(note: string): boolean {
    return note === this.#newest || note === this.#in.notes.checkpoint;
  }

  get #head(): Checkpoint | undefined {
    return this.#newest === undefined ? undefined : readHead(this.#newest);
  }

  #fault(name: string, what: string): void {
    this.#in.faults.push(fileFinding('altered', name, `${name} ${what}.`));
  }

  #checkMarker(walked: Walked, report: Report): void {
    const { marker } = this.#in;
    const head = this.#head;
    const found: Marker = {
      scope: marker.scope,
      origin: marker.origin,
      rows: walked.rows,
      ...(this.whole
        ? { size: walked.size, root: walked.root, chain_hash: walked.chainHash }
        : { size: head?.size ?? 0, root: head?.root ?? null, chain_hash: null }),
    };
    if (markerLine(found) === markerLine(marker)) return;
    const message = `${layout.MARKER} speaks of another number of rows than there are, or of another root or chain.`;
    report(fileFinding('altered', layout.MARKER, message));
  }

  /** Seal files say what the state says, and a proof stands beside each that the checkpoint covers. */
  async #checkSeals(walked: Walked, report: Report): Promise<Set<string>> {
    const expected = new Set(this.whole ? [] : [...this.#rows.keys()].map(layout.proofFile));
    for (const seal of shownSeals(this.#in.state, walked)) {
      const name = layout.sealFile(seal.facts.session_id);
      expected.add(name);
      if (!seal.isTorn && (await this.#in.folder.sum(name)) !== sha256Hex(sealText(seal)))
        report(
          fileFinding('altered', name, `${name} is missing, or is not what the records of the session give.`),
        );
      if (this.whole) await this.#checkSealProof(seal, walked, expected, report);
    }
    return expected;
  }

  async #checkSealProof(
    { facts }: ShownSeal,
    walked: Walked,
    expected: Set<string>,
    report: Report,
  ): Promise<void> {
    const [head, contentHash] = [this.#head, walked.contentHashAt(facts.position)];
    const name = layout.proofFile(facts.session_id);
    const isThere = this.#in.folder.names.has(name);
    // Of a log that is not what was signed nothing can be proved, and whoever exports it leaves proofs out.
    const isProvable = head !== undefined && head.origin === this.#in.marker.origin && isSigned(head, walked);
    if (
      head === undefined ||
      contentHash === undefined ||
      facts.position > head.size ||
      !(isThere || isProvable)
    )
      return;
    expected.add(name);
    const proof = parseProof((await this.#in.folder.text(name)) ?? '');
    const signed = proof === undefined ? undefined : readHead(proof.checkpoint);
    const isProof =
      proof?.index === facts.position - 1 &&
      signed !== undefined &&
      this.#isNewest(proof.checkpoint) &&
      proof.extra !== undefined &&
      sha256Hex(proof.extra) === contentHash &&
      isIncluded(proof.index, proof.proof, contentHash, signed);
    if (isProof || walked.found.has(auditRow(facts.position))) return;
    const message = `${name} does not prove that audit row ${facts.position} is in the log that the checkpoint signs.`;
    report({ ...fileFinding('altered', name, message), position: facts.position });
  }

  /** Exactly the files that belong in a bundle of this kind, and no other. */
  #checkNames(expected: ReadonlySet<string>, walked: Walked, report: Report): void {
    const { folder, notes } = this.#in;
    const required = [...REQUIRED, ...(this.whole ? [] : [layout.LINKS])];
    for (const name of required)
      if (!folder.names.has(name)) report(fileFinding('missing', name, `${name} is not in the bundle.`));
    const known = new Set([
      ...required,
      layout.PAGE,
      ...(notes.heads.length > 0 ? [layout.CHECKPOINT] : []),
      ...notes.files,
      ...expected,
      ...notes.anchors.map(({ name }) => name),
      ...this.#in.faults.map(({ table }) => table),
    ]);
    const isOfFound = (name: string) =>
      walked.found.has(/^(?:seals|proofs)\/(A-\d+)\./.exec(name)?.[1] ?? '');
    for (const name of folder.names) {
      if (known.has(name) || isOfFound(name)) continue;
      this.#strays.add(name);
      report(fileFinding('stray', name, `${name} does not belong in this bundle.`));
    }
  }

  /** Last, because most files have been read by then. */
  async #checkSums(report: Report): Promise<void> {
    const { folder } = this.#in;
    const text = await folder.text(layout.SUMS, SUMS_BYTES_MAX);
    const sums = await folder.sums();
    // A file that is missing or does not belong was reported as such.
    if (text === undefined && !folder.names.has(layout.SUMS)) return;
    if (text === layout.formatSums(sums)) return;
    const listed = new Set(text?.split('\n'));
    const unlisted = [...sums].filter(
      ([name, hash]) => name !== layout.SUMS && !listed.has(`${hash}  ${name}`),
    );
    const wrong = unlisted.filter(([name]) => !this.#strays.has(name));
    if (wrong.length === 0 && unlisted.length > 0) return;
    const names = wrong.map(([name]) => name).slice(0, 3);
    const message =
      names.length === 0
        ? `${layout.SUMS} lists something that is not there, or not in order.`
        : `${names.join(', ')}${wrong.length > 3 ? ' and others' : ''} do not fit ${layout.SUMS}.`;
    report({ kind: 'altered', table: layout.SUMS, record: names[0] ?? layout.SUMS, message });
  }
}

const REQUIRED = [
  ...[layout.LOG, layout.PAYLOADS, layout.TEXTS, layout.STATE],
  ...[layout.MARKER, layout.KEYS, layout.README, layout.SUMS],
];

function logIn(folder: Folder) {
  return readLines(folder.stream(layout.LOG), layout.LOG);
}

async function* payloadsIn(folder: Folder): AsyncGenerator<readonly (PayloadLine | undefined)[]> {
  for await (const page of readLines(folder.stream(layout.PAYLOADS), layout.PAYLOADS))
    yield page.map(readPayload);
}

async function* nothing(): AsyncGenerator<never> {}

function rowTooMany(after: number): Finding {
  const message = `There is a line behind audit row ${after} that is no row of the log.`;
  const position = after + 1;
  return {
    kind: 'stray',
    table: 'actions',
    record: auditRow(position),
    position,
    columns: ['position'],
    message,
  };
}

function parseProof(text: string): TlogProof | undefined {
  try {
    return parseTlogProof(text);
  } catch {
    return undefined;
  }
}

/** Whether the rows can be those that a head signs, as far as the walk can tell. */
function isSigned({ size, root }: Checkpoint, walked: Walked): boolean {
  return walked.isComplete && (size === walked.size ? root === walked.root : size < walked.size);
}
