import { LOG, MARKER, PAYLOADS, proofFile, STATE, SUMS, sealFile } from '../../../export/layout.ts';
import { sha256Hex } from '../../../integrity/digest.ts';
import { verifyInclusion } from '../../../integrity/proof-verifier.ts';
import { parseTlogProof } from '../../../integrity/tlog-proof.ts';
import { leafHash } from '../../../integrity/tree.ts';
import { exactText } from '../../../integrity/utf8.ts';
import { formatId } from '../../../log/state.ts';
import { SESSIONS } from '../../../log/tables.ts';
import { auditRow, type Finding } from '../../../log/verify/finding.ts';
import type { AnchorView, CheckName, HeadView, Verdict } from '../protocol.ts';
import { type NamedAnchor, readAnchors } from './anchors.ts';
import { type Fields, isPosition, readCanonical, textOf } from './fields.ts';
import { BundleError, type Files } from './files.ts';
import { type Head, type Heads, readHeads, reason } from './heads.ts';
import { Lines } from './lines.ts';
import { type Payload, RowWalk } from './rows.ts';
import { StateWalk, sealText } from './state.ts';
import { Story } from './story.ts';
import { Tally } from './tally.ts';

/** A bundle after the walk over it: everything that later questions are answered from. */
export interface Walked {
  readonly verdict: Verdict;
  readonly log: RowWalk;
  readonly state: StateWalk;
  readonly story: Story;
  readonly heads: Heads;
  readonly tally: Tally;
  readonly isWhole: boolean;
  /** Times by position. */
  readonly times: ReadonlyMap<number, string>;
  /** Where in log.jsonl a row stands, and its payload. */
  readonly rows: ReadonlyMap<number, { readonly line: Uint8Array; readonly payload: string | undefined }>;
}

export type OnProgress = (done: number, total: number, rows: number) => void;

const PROGRESS_ROWS = 1_000;

/** Checks a bundle by a stranger with nothing but what lies in it. Findings, never an exception, but for what is no bundle at all. */
export async function verifyFiles(files: Files, onProgress: OnProgress): Promise<Walked> {
  return await new Check(files, onProgress).run();
}

class Check {
  readonly #files: Files;
  readonly #onProgress: OnProgress;
  readonly #tally = new Tally();
  readonly #agrees = new Map<Head, boolean>();
  readonly #times = new Map<number, string>();
  readonly #rows = new Map<number, { line: Uint8Array; payload: string | undefined }>();
  readonly #story = new Story();

  constructor(files: Files, onProgress: OnProgress) {
    this.#files = files;
    this.#onProgress = onProgress;
  }

  async run(): Promise<Walked> {
    const marker = this.#readMarker();
    const isWhole = marker.scope === 'log';
    const heads = await readHeads(this.#files, this.#tally);
    const anchors = await readAnchors(this.#files, heads.all, this.#tally);
    const log = new RowWalk(this.#tally, isWhole);
    this.#walkRows(log, heads);
    if (isWhole) this.#finishTree(log, heads, marker);
    else this.#checkProofs(log, heads);
    const state = this.#walkState(log, isWhole);
    this.#checkSealFiles(log, state, isWhole ? heads.own : undefined);
    this.#compareMarker(marker, log, heads, isWhole);
    await this.#checkSums();
    const verdict = this.#conclude(marker, log, heads, anchors, isWhole);
    return {
      verdict,
      log,
      state,
      story: this.#story,
      heads,
      tally: this.#tally,
      isWhole,
      times: this.#times,
      rows: this.#rows,
    };
  }

  #readMarker(): Fields {
    const lines = new Lines(this.#files.get(MARKER) ?? new Uint8Array());
    const marker = lines.length === 1 && !lines.isCutOff ? readCanonical(lines.at(0)) : undefined;
    if (marker?.kind !== 'colibri-bundle')
      throw new BundleError(`This is no Colibri bundle: ${MARKER} is missing or damaged.`);
    if (marker.version !== 1)
      throw new BundleError(`This bundle has version ${textOf(marker.version)}; this page knows version 1.`);
    return marker;
  }

  /** Rows and what lies beside them, side by side: both files are in the order of positions. */
  #walkRows(log: RowWalk, { all }: Heads): void {
    const lines = this.#lines(LOG, 'rows');
    const payloads = this.#payloads();
    let next = 0;
    let payload = payloads.next();
    let looked = 0;
    for (let i = 0; i < lines.length; i += 1) {
      const line = lines.at(i);
      const row = log.add(line);
      while (!payload.done && payload.value.position < log.last)
        payload = this.#strayPayload(payload, payloads);
      const beside = !payload.done && payload.value.position === log.last ? payload.value : undefined;
      if (beside !== undefined) {
        payload = payloads.next();
        looked += 1;
      }
      this.#rows.set(log.last, { line, payload: beside?.body });
      if (row !== undefined) {
        log.checkPayload(row, beside);
        this.#times.set(row.position, row.at);
        this.#story.add(row, beside?.body);
      }
      for (let head = all[next]; head !== undefined && head.size === log.tree.size; head = all[++next])
        this.#agrees.set(head, head.root === log.tree.root());
      if (i % PROGRESS_ROWS === 0) this.#onProgress(i, lines.length, i);
    }
    while (!payload.done) payload = this.#strayPayload(payload, payloads);
    this.#tally.looked('rows', lines.length, 'row');
    this.#tally.looked('payloads', looked, 'payload');
    this.#onProgress(lines.length, lines.length, lines.length);
  }

  *#payloads(): Generator<Payload, undefined> {
    const lines = this.#lines(PAYLOADS, 'payloads');
    let last = 0;
    for (let i = 0; i < lines.length; i += 1) {
      const { position, salt, body } = readCanonical(lines.at(i)) ?? {};
      if (isPosition(position) && position > last && typeof salt === 'string' && typeof body === 'string') {
        last = position;
        yield { position, salt, body };
      } else {
        this.#say(
          'payloads',
          'malformed',
          PAYLOADS,
          `The payload behind position ${last} cannot be read or is misplaced.`,
        );
      }
    }
    return undefined;
  }

  #strayPayload(payload: IteratorYieldResult<Payload>, payloads: Generator<Payload, undefined>) {
    const { position } = payload.value;
    this.#say(
      'payloads',
      'stray',
      PAYLOADS,
      `There is a payload at position ${position} that no audit row speaks of.`,
    );
    return payloads.next();
  }

  /** The whole log: its chain against bundle.json, its tree against every checkpoint. */
  #finishTree(log: RowWalk, { all }: Heads, marker: Fields): void {
    // Between the last checkpoint that agrees and the first that does not, something was changed: nobody can say where.
    let agreed = 0;
    for (const head of all) {
      const agrees = this.#agrees.get(head);
      if (agrees === true) agreed = head.size;
      else if (agrees === undefined)
        this.#wrongHead(head, `speaks of ${head.size} rows, but there are only ${log.last}`, log.last + 1);
      else
        this.#wrongHead(
          head,
          `does not agree: rows ${agreed + 1} to ${head.size} are not all as they were signed`,
          agreed + 1,
        );
    }
    const [first] = all;
    const origin = originOf(log);
    if (first !== undefined && origin !== undefined && origin !== first.origin)
      this.#wrongHead(first, `is of ${first.origin}, which does not begin with this first row`, 1);
    if (all.length === 0) this.#tally.skip('tree', 'there is no checkpoint that can be used');
    else this.#tally.looked('tree', all.length, 'checkpoint');
    if (marker.chain_hash !== log.chain) {
      const message = `The chain over the rows does not end as ${MARKER} says: a row was changed, added or lost.`;
      const position = Math.min(agreed + 1, Math.max(1, log.last));
      this.#tally.say('chain', { kind: 'unlinked', table: MARKER, record: MARKER, position, message });
    }
    this.#tally.looked('chain', log.last, 'link');
  }

  /** Some rows: each with a proof of its own against the one checkpoint. */
  #checkProofs(log: RowWalk, { own, all }: Heads): void {
    this.#tally.skip('chain', 'the bundle holds one session, not every row between');
    for (const [position, hash] of log.hashes)
      this.#checkProof(proofFile(position), position, hash, own, 'tree');
    const proofs = [...this.#files.keys()].filter((name) => name.startsWith('proofs/'));
    if (proofs.length !== log.hashes.size)
      this.#say('tree', 'altered', 'proofs', 'There are not as many proofs as rows.');
    for (const other of all)
      if (own !== undefined && other !== own && other.root !== own.root)
        this.#say(
          'tree',
          'altered',
          other.name,
          `${other.name} cannot be compared with one of ${own.size} rows.`,
        );
    if (own === undefined) this.#tally.skip('tree', 'there is no checkpoint that can be used');
    else {
      this.#agrees.set(own, true);
      this.#tally.looked('tree', log.hashes.size, 'proof');
    }
  }

  #checkProof(name: string, position: number, hash: string, head: Head | undefined, check: CheckName): void {
    if (head === undefined) return;
    try {
      const proof = parseTlogProof(exactText(this.#files.get(name) ?? new Uint8Array()) ?? '');
      if (proof.index !== position - 1 || proof.checkpoint !== head.note)
        throw new Error('it is for another row or another checkpoint');
      if (proof.extra !== undefined && sha256Hex(proof.extra) !== hash)
        throw new Error('it carries another row along');
      const { size, root } = head;
      verifyInclusion({ index: position - 1, size, leafHash: leafHash(hash), root, proof: proof.proof });
    } catch (error) {
      const message = `The proof of audit row ${position} does not hold: ${reason(error)}.`;
      this.#tally.say(check, { kind: 'altered', table: name, record: auditRow(position), position, message });
    }
  }

  #walkState(log: RowWalk, isWhole: boolean): StateWalk {
    const state = new StateWalk(log, this.#tally, isWhole);
    const lines = this.#lines(STATE, 'state');
    for (let i = 0; i < lines.length; i += 1) state.add(lines.at(i));
    state.finish();
    this.#tally.looked('state', lines.length, 'record');
    if (state.thoughtCount > 0) this.#tally.looked('thoughts', state.thoughtCount, 'thought');
    else this.#tally.skip('thoughts', 'there are no thoughts');
    return state;
  }

  /** Seal files say what the state says, and a proof stands beside each that the checkpoint covers. */
  #checkSealFiles(log: RowWalk, state: StateWalk, head: Head | undefined): void {
    const expected = new Set<string>();
    let count = 0;
    for (const [number, session] of state.sessions) {
      if (session.fields.status !== 'finalized') continue;
      const id = formatId(SESSIONS, number);
      const name = sealFile(id);
      count += 1;
      expected.add(name);
      if (exactText(this.#files.get(name) ?? new Uint8Array()) !== sealText(number, session))
        this.#say('seals', 'altered', name, `${name} is not the seal of ${id}.`);
      const position = Number(session.fields.position);
      const hash = log.hashes.get(position);
      if (head === undefined || hash === undefined || position > head.size) continue;
      expected.add(proofFile(id));
      this.#checkProof(proofFile(id), position, hash, head, 'seals');
    }
    for (const name of this.#files.keys())
      if (/^seals\//.test(name) || (head !== undefined && /^proofs\//.test(name)))
        if (!expected.has(name)) this.#say('seals', 'stray', name, `${name} belongs to no sealed session.`);
    if (count > 0) this.#tally.looked('seals', count, 'seal');
    else this.#tally.skip('seals', 'no session is sealed');
  }

  #compareMarker(marker: Fields, log: RowWalk, { own }: Heads, isWhole: boolean): void {
    const origin = isWhole ? originOf(log) : own?.origin;
    const isSame =
      marker.rows === log.hashes.size &&
      marker.root === (isWhole ? log.tree.root() : null) &&
      (isWhole || marker.chain_hash === null) &&
      marker.origin === (origin ?? null) &&
      marker.checkpointed === (own?.size ?? 0);
    if (isSame) return;
    const message = `${MARKER} speaks of ${textOf(marker.rows)} rows with another origin, checkpoint or root than the ${log.hashes.size} that are there.`;
    this.#say('files', 'altered', MARKER, message);
  }

  async #checkSums(): Promise<void> {
    const text = exactText(this.#files.get(SUMS) ?? new Uint8Array()) ?? '';
    const names = [...this.#files.keys()].filter((name) => name !== SUMS).sort();
    const lines: string[] = [];
    for (const name of names) lines.push(`${await fileDigest(this.#files.get(name))}  ${name}`);
    this.#tally.looked('files', names.length, 'file');
    if (text === lines.map((line) => `${line}\n`).join('')) return;
    const listed = new Set(text.split('\n'));
    const wrong = names.filter((_, i) => !listed.has(lines[i] ?? ''));
    const message =
      wrong.length === 0
        ? `${SUMS} lists something that is not there.`
        : `${wrong.slice(0, 3).join(', ')}${wrong.length > 3 ? ' and others' : ''} ${wrong.length === 1 ? 'does' : 'do'} not fit ${SUMS}.`;
    this.#say('files', 'altered', wrong[0] ?? SUMS, message);
  }

  #conclude(
    marker: Fields,
    log: RowWalk,
    heads: Heads,
    anchors: readonly NamedAnchor[],
    isWhole: boolean,
  ): Verdict {
    const tally = this.#tally;
    const { key, keyText, own } = heads;
    const intactThrough = tally.intactThrough(log.last);
    const through = (signature: Head['signature']) =>
      Math.max(
        0,
        ...heads.all
          .filter((head) => head.signature === signature && this.#agrees.get(head) === true)
          .map(({ size }) => Math.min(size, isWhole ? intactThrough : size)),
      );
    return {
      scope: textOf(marker.scope),
      origin: own?.origin ?? textOf(marker.origin),
      rows: log.hashes.size,
      size: isWhole ? log.last : (own?.size ?? log.last),
      root: isWhole ? log.tree.root() : (own?.root ?? ''),
      intactThrough,
      checkpointedThrough: through('valid'),
      unsignedThrough: through('unchecked'),
      key:
        key === undefined || keyText === undefined
          ? undefined
          : { name: key.name, id: key.id, text: keyText },
      heads: heads.all.map((head) => this.#viewOf(head)),
      anchors: anchors
        .filter(({ head }) => this.#agrees.get(head) === true && (!isWhole || head.size <= intactThrough))
        .map((anchor) => this.#viewOfAnchor(anchor)),
      checks: tally.checks(),
      findingCount: tally.findingCount,
      findings: tally.findings,
    };
  }

  #viewOf(head: Head): HeadView {
    const { name, origin, size, root, signature } = head;
    const at = this.#times.get(size) ?? '';
    return { name, origin, size, root, signature, agrees: this.#agrees.get(head), at };
  }

  #viewOfAnchor({ kind, head, commit, ref = '', time = '' }: NamedAnchor): AnchorView {
    return { kind, size: head.size, at: this.#times.get(head.size) ?? '', commit, ref, claims: time };
  }

  #lines(name: string, check: CheckName): Lines {
    const bytes = this.#files.get(name);
    if (bytes === undefined) this.#say(check, 'missing', name, `${name} is not in the bundle.`);
    const lines = new Lines(bytes ?? new Uint8Array());
    if (lines.isCutOff) this.#say(check, 'damaged', name, `The last line of ${name} does not end.`);
    return lines;
  }

  #wrongHead({ name }: Head, what: string, position: number): void {
    this.#tally.say('tree', {
      kind: 'altered',
      table: name,
      record: name,
      position,
      message: `${name} ${what}.`,
    });
  }

  #say(check: CheckName, kind: Finding['kind'], record: string, message: string): void {
    this.#tally.say(check, { kind, table: record, record, message });
  }
}

/** Whole files are few and large: for them the browser's own digest is worth its promise. */
async function fileDigest(bytes = new Uint8Array()): Promise<string> {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle === undefined) return sha256Hex(bytes);
  const digest = new Uint8Array(await subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A log's name, which its first row fixes. */
function originOf(log: RowWalk): string | undefined {
  const first = log.hashes.get(1);
  return first === undefined ? undefined : `colibri/${first.slice(0, 16)}`;
}
