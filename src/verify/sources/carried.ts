import { formatId, parseId, STATE_TABLES, type StateTable } from '../../log/tables.ts';
import { headIn } from '../../trust/opening.ts';
import { auditRow, type Finding, type Report, rowFinding } from '../finding.ts';
import type { Source, SourceHead, SourceRow, Walked } from '../source.ts';
import type { CarriedAnchor } from './anchor-file.ts';
import { type Files, Folder, type LinePage, SourceError } from './files.ts';
import * as forms from './forms.ts';
import { HeldState, isSealOver, readTexts, type ShownSeal, sealedPositions, shownSeals } from './held.ts';
import { fileFinding, lineFinding, readNotes } from './notes.ts';
import { isProofOf } from './proofs.ts';
import { claimedPosition, effectsOf, numberedRows, PayloadCursor } from './rows.ts';
import { NAMED_MAX, reportStrayTexts, strayPayload, strayState } from './strays.ts';

/** A source that somebody hands over: a bundle or a certificate. */
export interface CarriedSource extends Source {
  /** `log`, or what a certificate is about. Always of a fixed form, so that it may be printed. */
  readonly subject: string;
  readonly anchors: readonly CarriedAnchor[];
}

/** What somebody hands over: the files of a bundle, or those of a certificate with what it is about. */
export interface Given {
  readonly files: Files;
  readonly about?: { readonly subject: string; readonly origin: string; readonly shared?: true };
}

/** What `open` opens as a source. Hostile input enters here: what cannot be read at all becomes a source with one finding. */
export async function carriedSource(open: () => Given | Promise<Given>): Promise<CarriedSource> {
  try {
    return new Carried(await readFiles(await open()));
  } catch (error) {
    if (error instanceof SourceError) return damagedSource(error.message);
    throw error;
  }
}

/** A source of which nothing can be read but why. */
export function damagedSource(reason: string): CarriedSource {
  const finding = fileFinding('damaged', 'bundle', `It cannot be read: ${reason}.`);
  return new Carried({
    folder: new Folder({ names: [], stream: async function* () {} }),
    ...{ about: undefined, marker: undefined, texts: new Map(), state: new HeldState(), faults: [finding] },
    notes: { heads: [], kept: [], anchors: [], checkpoint: undefined, files: [] },
    isDamaged: true,
  });
}

async function readFiles({ files, about }: Given) {
  const folder = new Folder(files);
  const marker = forms.readMarker(await folder.text(forms.MARKER));
  if (about === undefined && marker === undefined)
    throw new SourceError(`${forms.MARKER} is missing or damaged: this is not a bundle of this version`);
  /** What is wrong, to be reported with the rest. */
  const faults: Finding[] = [];
  const notes = await readNotes(folder, faults);
  // Without the rows between, nothing can be held against a checkpoint that was kept.
  if (about !== undefined && (notes.heads.length === 0 || notes.kept.length > 0))
    throw new SourceError('it must have a signed head, and no other checkpoint');
  const texts = await readTexts(folder.lines(forms.TEXTS), faults);
  const state = new HeldState();
  await state.read(folder.lines(forms.STATE), faults);
  return { folder, about, marker, notes, texts, state, faults };
}

type Opened = Awaited<ReturnType<typeof readFiles>> & { readonly isDamaged?: boolean };

class Carried implements CarriedSource {
  readonly subject: string;
  readonly whole: boolean;
  readonly isShared: boolean;
  readonly complete?: ReadonlySet<string>;
  readonly hashed: ReadonlySet<unknown>;
  readonly anchors: readonly CarriedAnchor[];
  readonly #in: Opened;
  readonly #payloads: PayloadCursor;
  /** Of a certificate: its rows. */
  readonly #rows = new Map<number, string>();

  constructor(opened: Opened) {
    const { about } = opened;
    this.subject = about?.subject ?? 'log';
    this.whole = about === undefined;
    this.isShared = (about ?? opened.marker)?.shared === true;
    if (about !== undefined) this.complete = new Set(/^[TA]/.test(about.subject) ? [about.subject] : []);
    this.hashed = sealedPositions(opened.state);
    this.anchors = opened.notes.anchors;
    this.#in = opened;
    this.#payloads = new PayloadCursor(opened.folder.lines(forms.PAYLOADS));
  }

  origin = () => Promise.resolve(this.#in.about?.origin ?? this.#in.marker?.origin ?? undefined);
  heads = () => Promise.resolve(this.#in.notes.heads.toSorted((a, b) => (a.key < b.key ? -1 : 1)));
  kept = () => Promise.resolve(this.#in.notes.kept);
  texts = () => Promise.resolve(this.#in.texts);
  states = (table: StateTable, ids: readonly number[]) => Promise.resolve(this.#in.state.find(table, ids));

  async *rows(): AsyncGenerator<readonly SourceRow[]> {
    const { folder, faults } = this.#in;
    const log = folder.lines(forms.LOG);
    if (this.whole) yield* numberedRows(log, this.#payloads, (after) => faults.push(rowTooMany(after)));
    else yield* this.#provedRows(log);
  }

  async checkRest(walked: Walked, report: Report): Promise<void> {
    // Reading the rows came to an end too early, which was said then.
    if (walked.isLost(Number.MAX_SAFE_INTEGER)) return;
    const { folder, faults, notes } = this.#in;
    if (!this.whole) await this.#checkSubject(walked, report);
    this.#checkNewest();
    for (const finding of faults) report(finding);
    if (this.#in.isDamaged) return;
    for (const line of this.#payloads.unreadable) report(lineFinding(forms.PAYLOADS, line, 'a payload'));
    await this.#checkStrays(walked, report);
    // Where a row is lost, which is said already, the rest cannot be what it was.
    const { size, root } = this.#in.marker ?? {};
    const isMarked = size === walked.size && root === walked.root;
    const message = `${forms.MARKER} has another number of rows or root than the log.`;
    if (this.whole && walked.isComplete && !isMarked) report(fileFinding('altered', forms.MARKER, message));
    const seals = await this.#checkSeals(walked, report);
    const known = [...notes.files, ...seals, ...faults.map(({ table }) => table)];
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
      faults.push(
        fileFinding('altered', forms.PROOFS, `${forms.PROOFS} does not match the rows of the log.`),
      );
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
    const isNewest = ({ note }: SourceHead) =>
      note === notes.checkpoint && headIn(note)?.size === this.#head?.size;
    if (notes.heads.length === 0 ? folder.names.has(name) : !notes.heads.some(isNewest))
      faults.push(fileFinding('altered', name, `${name} is not the newest of the heads that are there.`));
  }

  get #head() {
    return headIn(this.#in.notes.heads.at(-1)?.note ?? '');
  }

  async #checkStrays(walked: Walked, report: Report): Promise<void> {
    const { folder, state, texts } = this.#in;
    for (const position of this.#payloads.strays.slice(0, NAMED_MAX))
      if (!walked.isLost(position)) report(strayPayload(position));
    const digests = () => [...texts.values()].map(({ digest }) => digest);
    const there = { count: texts.size, digests, bodies: () => bodiesIn(folder) };
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
    // Of a log that is not what was signed nothing can be proved, and the export leaves proofs out.
    const isSigned = head.size === walked.size ? head.root === walked.root : head.size < walked.size;
    const isDue = walked.isComplete && isSigned && head.origin === marker?.origin;
    if (!folder.names.has(name) && !isDue) return false;
    const fitting = new Set([notes.checkpoint, notes.heads.at(-1)?.note]);
    const isProof = isProofOf(position, contentHash, await folder.text(name), fitting);
    const message = `${name} does not prove that audit row ${position} is in the log that the checkpoint signs.`;
    if (!isProof && !walked.found.has(auditRow(position)))
      report({ ...fileFinding('altered', name, message), position });
    return true;
  }

  /** Exactly the files that belong in it, and no other. Answers those that do not. */
  #checkNames(known: readonly string[], { found }: Walked, report: Report): ReadonlySet<string> {
    const { folder } = this.#in;
    const required = this.whole ? OF_A_BUNDLE : OF_A_CERTIFICATE;
    for (const name of required)
      if (!folder.names.has(name)) report(fileFinding('missing', name, `${name} is not there.`));
    const all = new Set([...known, ...required, ...(this.whole ? [forms.PAGE, ...forms.SCRIPTS] : [])]);
    const isKnown = (name: string) =>
      all.has(name) || found.has(/^(?:seals|proofs)\/(A-\d+)/.exec(name)?.[1] ?? '');
    const strays = [...folder.names].filter((name) => !isKnown(name));
    for (const name of strays) report(fileFinding('stray', name, `${name} does not belong here.`));
    return new Set(strays);
  }
}

const OF_BOTH = [forms.LOG, forms.PAYLOADS, forms.TEXTS, forms.STATE, forms.KEYS];
const OF_A_BUNDLE = [...OF_BOTH, forms.MARKER, forms.README, forms.SUMS];
const OF_A_CERTIFICATE = [...OF_BOTH, forms.PROOFS];

async function* bodiesIn(folder: Folder): AsyncGenerator<string> {
  for await (const page of folder.lines(forms.PAYLOADS))
    for (const line of page) yield forms.readPayload(line)?.body ?? '';
}

function rowTooMany(after: number): Finding {
  const message = `The line after audit row ${after} is not a row of the log.`;
  return rowFinding('stray', after + 1, message, { columns: ['position'] });
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
      : `${wrong.slice(0, 3).join(', ')}${wrong.length > 3 ? ' and others' : ''} do not match ${forms.SUMS}.`;
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
    const effects = effectsOf(forms.members(String(await textAt(position))));
    const previous = effects.find(({ table, id }) => table === name && id === record)?.previous;
    // A row that did not write it, or leads forward, is for the rules to name.
    if (!forms.isCount(previous) || previous >= position) return;
    position = previous;
  }
}
