import { parseTlogProof } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { verifyInclusion } from '../../integrity/proof-verifier.ts';
import { leafHash } from '../../integrity/tree.ts';
import { formatId, parseId, STATE_TABLES, type StateTable } from '../../log/tables.ts';
import { headIn } from '../../trust/opening.ts';
import { auditRow, type Finding, type Report } from '../finding.ts';
import type { Source, SourceRow, SourceText, Walked } from '../source.ts';
import type { CarriedAnchor } from './anchor-file.ts';
import { type Files, Folder, type LinePage, SourceError } from './files.ts';
import * as forms from './forms.ts';
import { HeldState, readTexts } from './held.ts';
import { fileFinding, type Notes, readNotes } from './notes.ts';
import { claimedPosition, numberedRows, PayloadCursor } from './rows.ts';
import { isSealOver, type ShownSeal, shownSeals } from './seals.ts';
import { NAMED_MAX, reportStrayTexts, strayPayload, strayState } from './strays.ts';

/** A source that somebody hands over: a bundle or a certificate. */
export interface CarriedSource extends Source {
  /** `log`, or what a certificate is about. Always of a fixed form, so that it may be printed. */
  readonly subject: string;
  readonly anchors: readonly CarriedAnchor[];
}

/** What a certificate is, besides its files. */
export interface About {
  readonly subject: string;
  readonly origin: string;
}

/**
 * The files of a bundle as a source, or those of a certificate. Hostile input enters here: what cannot be read at all
 * becomes a source with one finding, and nothing is thrown.
 */
export async function carriedSource(open: () => { files: Files; about?: About }): Promise<CarriedSource> {
  try {
    const { files, about } = open();
    const folder = new Folder(files);
    const marker = forms.readMarker(await folder.text(forms.MARKER));
    if (about === undefined && marker === undefined)
      throw new SourceError(`${forms.MARKER} is missing or damaged: this is not a bundle of this version`);
    const faults: Finding[] = [];
    const notes = await readNotes(folder, faults);
    // Without the rows between, nothing can be held against a checkpoint that was kept.
    if (about !== undefined && (notes.heads.length === 0 || notes.kept.length > 0))
      throw new SourceError('it must have a signed head and no other checkpoint');
    const texts = await readTexts(folder.lines(forms.TEXTS), faults);
    const state = new HeldState();
    await state.read(folder.lines(forms.STATE), faults);
    return new Carried({ folder, about, marker, notes, texts, state, faults });
  } catch (error) {
    if (error instanceof SourceError) return damagedSource(error.message);
    throw error;
  }
}

export async function bundleSource(files: Files): Promise<CarriedSource> {
  return await carriedSource(() => ({ files }));
}

/** A source of which nothing can be read but why. */
export function damagedSource(reason: string): CarriedSource {
  return {
    subject: forms.WHOLE_LOG,
    anchors: [],
    whole: true,
    origin: () => Promise.resolve(undefined),
    heads: () => Promise.resolve([]),
    kept: () => Promise.resolve([]),
    count: () => Promise.resolve(0),
    async *rows() {},
    texts: () => Promise.resolve(new Map()),
    states: () => Promise.resolve(new Map()),
    checkRest(_, report) {
      report(fileFinding('damaged', 'bundle', `It cannot be read: ${reason}.`));
      return Promise.resolve();
    },
  };
}

interface Opened {
  readonly folder: Folder;
  readonly about: About | undefined;
  readonly marker: forms.Marker | undefined;
  readonly notes: Notes;
  readonly texts: ReadonlyMap<string, SourceText>;
  readonly state: HeldState;
  /** What was found wrong on the way, to be reported with the rest. */
  readonly faults: Finding[];
}

class Carried implements CarriedSource {
  readonly subject: string;
  readonly whole: boolean;
  readonly complete?: ReadonlySet<string>;
  readonly anchors: readonly CarriedAnchor[];
  readonly #in: Opened;
  #payloads = new PayloadCursor(nothing());
  /** Of a certificate: its rows. */
  readonly #rows = new Map<number, string>();
  /** Reading the rows came to an end too early, which was said then. */
  #isDamaged = false;

  constructor(opened: Opened) {
    const { about, notes } = opened;
    this.subject = about?.subject ?? forms.WHOLE_LOG;
    this.whole = about === undefined;
    if (about !== undefined) this.complete = new Set(/^[TA]/.test(about.subject) ? [about.subject] : []);
    this.anchors = notes.anchors;
    this.#in = opened;
  }

  origin = () => Promise.resolve(this.#in.about?.origin ?? this.#in.marker?.origin ?? undefined);
  heads = () => Promise.resolve(this.#in.notes.heads.toSorted((a, b) => (a.key < b.key ? -1 : 1)));
  kept = () => Promise.resolve(this.#in.notes.kept);
  count = () => Promise.resolve(this.#in.marker?.size ?? 0);
  texts = () => Promise.resolve(this.#in.texts);
  states = (table: StateTable, ids: readonly number[]) => Promise.resolve(this.#in.state.find(table, ids));

  async *rows(): AsyncGenerator<readonly SourceRow[]> {
    const { folder, faults } = this.#in;
    this.#payloads = new PayloadCursor(payloadsIn(folder));
    const log = folder.lines(forms.LOG);
    try {
      if (this.whole) yield* numberedRows(log, this.#payloads, (after) => faults.push(rowTooMany(after)));
      else yield* this.#provedRows(log);
    } catch (error) {
      this.#isDamaged = true;
      throw error;
    }
  }

  async checkRest(walked: Walked, report: Report): Promise<void> {
    if (this.#isDamaged) return;
    const { folder, faults, notes } = this.#in;
    if (!this.whole) await this.#checkSubject(walked, report);
    this.#checkNewest();
    for (const finding of faults) report(finding);
    for (const line of this.#payloads.unreadable) {
      const message = `Line ${line} of ${forms.PAYLOADS} is not a payload, or is out of order.`;
      report(fileFinding('malformed', forms.PAYLOADS, message));
    }
    await this.#checkStrays(walked, report);
    // Where a row is lost, which is said already, the rest cannot be what it was.
    if (this.whole && walked.isComplete) this.#checkMarker(walked, report);
    const seals = await this.#checkSeals(walked, report);
    const known = new Set([...notes.files, ...seals, ...faults.map(({ table }) => table)]);
    const strays = this.#checkNames(known, walked, report);
    if (this.whole) await checkSums(folder, strays, report);
  }

  /** Some rows of a log, each with its place and a proof of its own. */
  async *#provedRows(log: AsyncIterable<LinePage>): AsyncGenerator<SourceRow[]> {
    const { folder, faults } = this.#in;
    const lines = ((await folder.text(forms.PROOFS)) ?? '').split('\n').slice(0, -1);
    const proofs = lines.map(forms.readProof);
    let count = 0;
    for await (const page of log) {
      const rows: SourceRow[] = [];
      for (const text of page) {
        const line = proofs[count++];
        const position = line?.position ?? claimedPosition(text) ?? 0;
        const payload = await this.#payloads.take(position);
        if (text !== undefined) this.#rows.set(position, text);
        const proof = line !== undefined && { proof: line.proof };
        rows.push({ position, text, ...(payload !== undefined && { payload }), ...proof });
      }
      yield rows;
    }
    await this.#payloads.finish();
    if (proofs.length !== count || proofs.includes(undefined))
      faults.push(fileFinding('altered', forms.PROOFS, `${forms.PROOFS} does not fit the rows of the log.`));
  }

  /**
   * What it is about must be in it, with every call that wrote it: from the row of state along `previous` to the call that
   * made it. Else a certificate of one record could pass for one of another.
   */
  async #checkSubject({ found }: Walked, report: Report): Promise<void> {
    const { subject } = this;
    const say = (message: string, position?: number) =>
      report({ kind: 'missing', table: 'subject', record: subject, message, ...(position && { position }) });
    const table = STATE_TABLES.find(({ prefix }) => subject.startsWith(`${prefix}-`));
    const id = table === undefined ? undefined : parseId(table, subject);
    const row = table === undefined || id === undefined ? undefined : this.#in.state.row(table, id);
    if (subject.startsWith('#') ? !this.#rows.has(Number(subject.slice(1))) : row === undefined)
      if (!found.has(subject)) say(`${subject} itself is not there.`);
    if (table === undefined || row === undefined) return;
    let by = subject;
    for await (const position of historyOf(table, subject, row.position, (at) => this.#rows.get(at))) {
      // What is known to be wrong may lead anywhere.
      if (found.has(subject) || found.has(by)) return;
      if (!this.#rows.has(position))
        say(`Audit row ${position}, which wrote ${subject}, is not there.`, position);
      by = auditRow(position);
    }
  }

  /** `checkpoint` is the newest of the heads once more, under a name that is easy to find. */
  #checkNewest(): void {
    const { folder, faults, notes } = this.#in;
    const name = forms.CHECKPOINT;
    const newest = this.#head?.size;
    const isOne = notes.heads.some(
      ({ checkpoint }) => checkpoint === notes.checkpoint && headIn(checkpoint)?.size === newest,
    );
    if (notes.heads.length === 0 ? folder.names.has(name) : !isOne)
      faults.push(fileFinding('altered', name, `${name} is not the newest of the heads that are there.`));
  }

  get #head() {
    return headIn(this.#in.notes.heads.at(-1)?.checkpoint ?? '');
  }

  async #checkStrays(walked: Walked, report: Report): Promise<void> {
    const { folder, state, texts } = this.#in;
    for (const position of this.#payloads.strays.slice(0, NAMED_MAX))
      if (!walked.isLost(position)) report(strayPayload(position));
    const there = { count: texts.size, digests: () => texts.keys(), bodies: () => bodiesIn(folder) };
    await reportStrayTexts(there, walked, report);
    for (const table of STATE_TABLES) {
      const made = walked.created.get(table.name) ?? 0;
      // Of a whole log every row that it made was found, so that the others are those too many.
      const some = this.whole ? state.ids(table).filter((id) => id > made) : state.unasked(table);
      const stray = this.whole || walked.isComplete ? some.slice(0, NAMED_MAX) : [];
      for (const id of stray)
        if (!walked.isLost(Number(state.row(table, id)?.position)))
          report(strayState(table.name, formatId(table, id)));
    }
  }

  #checkMarker({ size, root, chainHash: chain_hash }: Walked, report: Report): void {
    const { marker } = this.#in;
    const name = forms.MARKER;
    if (marker?.size === size && marker.root === root && marker.chain_hash === chain_hash) return;
    const message = `${name} has another number of rows, root or chain hash than the log.`;
    report(fileFinding('altered', name, message));
  }

  /** Seals list what the state says, and in a bundle a proof stands beside each that the checkpoint covers. Answers their files. */
  async #checkSeals(walked: Walked, report: Report): Promise<string[]> {
    const files: string[] = [];
    for (const seal of shownSeals(this.#in.state, walked)) {
      const name = forms.sealFile(seal.session);
      const text = await this.#in.folder.text(name);
      const listed = text?.split('\n') ?? [];
      const isSeal = listed.pop() === '' && isSealOver(seal, listed, this.complete);
      if (!seal.isTorn && !isSeal) {
        const message = `${name} is missing, or does not list the records of the session.`;
        report(fileFinding('altered', name, message));
      }
      files.push(name);
      if (this.whole && (await this.#checkSealProof(seal, walked, report)))
        files.push(forms.proofFile(seal.session));
    }
    return files;
  }

  /** Answers whether there has to be a proof, or may be. */
  async #checkSealProof({ session, position }: ShownSeal, walked: Walked, report: Report): Promise<boolean> {
    const { folder, marker, notes } = this.#in;
    const [head, contentHash] = [this.#head, walked.contentHashAt(position)];
    const name = forms.proofFile(session);
    if (head === undefined || contentHash === undefined || position > head.size) return false;
    // Of a log that is not what was signed nothing can be proved, and whoever exports it leaves proofs out.
    const isWhole = head.size === walked.size ? head.root === walked.root : head.size < walked.size;
    if (!folder.names.has(name) && !(walked.isComplete && isWhole && head.origin === marker?.origin))
      return false;
    const isFit = (checkpoint: string) =>
      checkpoint === notes.checkpoint || checkpoint === notes.heads.at(-1)?.checkpoint;
    if (
      walked.found.has(auditRow(position)) ||
      isProofOf(position, contentHash, await folder.text(name), isFit)
    )
      return true;
    const message = `${name} does not prove that audit row ${position} is in the log that the checkpoint signs.`;
    report({ ...fileFinding('altered', name, message), position });
    return true;
  }

  /** Exactly the files that belong in it, and no other. Answers those that do not. */
  #checkNames(known: ReadonlySet<string>, { found }: Walked, report: Report): ReadonlySet<string> {
    const { folder, notes } = this.#in;
    const required = new Set(this.whole ? OF_A_BUNDLE : OF_A_CERTIFICATE);
    for (const name of required)
      if (!folder.names.has(name)) report(fileFinding('missing', name, `${name} is not there.`));
    const optional = [
      ...(this.whole ? [forms.PAGE] : []),
      ...(notes.heads.length > 0 ? [forms.CHECKPOINT] : []),
    ];
    const isKnown = (name: string) =>
      required.has(name) ||
      known.has(name) ||
      optional.includes(name) ||
      found.has(/^(?:seals|proofs)\/(A-\d+)/.exec(name)?.[1] ?? '');
    const strays = [...folder.names].filter((name) => !isKnown(name));
    for (const name of strays) report(fileFinding('stray', name, `${name} does not belong here.`));
    return new Set(strays);
  }
}

const OF_BOTH = [forms.LOG, forms.PAYLOADS, forms.TEXTS, forms.STATE, forms.KEYS];
const OF_A_BUNDLE = [...OF_BOTH, forms.MARKER, forms.README, forms.SUMS];
const OF_A_CERTIFICATE = [...OF_BOTH, forms.PROOFS];

async function* payloadsIn(folder: Folder): AsyncGenerator<readonly (forms.PayloadLine | undefined)[]> {
  for await (const page of folder.lines(forms.PAYLOADS)) yield page.map(forms.readPayload);
}

async function* bodiesIn(folder: Folder): AsyncGenerator<string> {
  for await (const page of payloadsIn(folder)) for (const payload of page) yield payload?.body ?? '';
}

async function* nothing(): AsyncGenerator<never> {}

function rowTooMany(after: number): Finding {
  const message = `The line after audit row ${after} is not a row of the log.`;
  const position = after + 1;
  const record = auditRow(position);
  return { kind: 'stray', table: 'actions', record, position, columns: ['position'], message };
}

/** Whether a tlog-proof leads from a row, which it carries, to the root of a checkpoint that fits. */
function isProofOf(
  position: number,
  contentHash: string,
  text: string | undefined,
  isFit: (checkpoint: string) => boolean,
): boolean {
  try {
    const { index, proof, extra, checkpoint } = parseTlogProof(text ?? '');
    const head = headIn(checkpoint);
    if (index !== position - 1 || !isFit(checkpoint) || head === undefined) return false;
    return (
      extra !== undefined && sha256Hex(extra) === contentHash && isIncluded(index, proof, contentHash, head)
    );
  } catch {
    return false;
  }
}

/** Whether a proof leads from a row to the root of a head. */
export function isIncluded(
  index: number,
  proof: readonly string[],
  contentHash: string,
  { size, root }: { readonly size: number; readonly root: string },
): boolean {
  try {
    verifyInclusion({ index, size, leafHash: leafHash(contentHash), root, proof });
    return true;
  } catch {
    return false;
  }
}

/** Last, because most files have been read by then. */
async function checkSums(folder: Folder, strays: ReadonlySet<string>, report: Report): Promise<void> {
  const sums = await folder.sums();
  const text = await folder.text(forms.SUMS);
  // A file that is missing or does not belong was reported as such.
  if (!folder.names.has(forms.SUMS) || text === forms.formatSums(sums)) return;
  const listed = new Set(text?.split('\n'));
  const unlisted = [...sums].filter(([name, hash]) => name !== forms.SUMS && !listed.has(`${hash}  ${name}`));
  const wrong = unlisted.map(([name]) => name).filter((name) => !strays.has(name));
  if (wrong.length === 0 && unlisted.length > 0) return;
  const message =
    wrong.length === 0
      ? `${forms.SUMS} lists something that is not there, or not in order.`
      : `${wrong.slice(0, 3).join(', ')}${wrong.length > 3 ? ' and others' : ''} do not fit ${forms.SUMS}.`;
  report({ kind: 'altered', table: forms.SUMS, record: wrong[0] ?? forms.SUMS, message });
}

/** Positions of the calls that wrote a record, from the last one back along `previous`, as far as their rows are there. */
export async function* historyOf(
  { name }: StateTable,
  record: string,
  last: unknown,
  textAt: (position: number) => unknown,
): AsyncGenerator<number> {
  for (let position = last; forms.isCount(position) && position > 0; ) {
    yield position;
    const { effects } = forms.members(String(await textAt(position)));
    const effect: unknown = Array.isArray(effects)
      ? effects.find((it) => forms.isObject(it) && it.table === name && it.id === record)
      : undefined;
    const previous = forms.isObject(effect) ? effect.previous : undefined;
    // A row that did not write it, or leads forward, is for the rules to name.
    if (!forms.isCount(previous) || previous >= position) return;
    position = previous;
  }
}
