import { type Checkpoint, parseCheckpoint } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { verifyInclusion } from '../../integrity/proof-verifier.ts';
import { leafHash } from '../../integrity/tree.ts';
import { chainHash } from '../../log/row.ts';
import { parseId, STATE_TABLES, type StateTable } from '../../log/tables.ts';
import { auditRow, type Finding, type Report } from '../finding.ts';
import type { Source, Walked } from '../source.ts';
import { type AnchorKind, type AnchorText, readAnchor, readAnchorName } from './anchor-file.ts';
import { isCount, isObject, members } from './forms.ts';
import type { HeldState } from './held.ts';
import { WHOLE_LOG } from './layout.ts';

/** A source that somebody hands over: a bundle or a certificate. */
export interface CarriedSource extends Source {
  /** `log`, a session, or what a certificate is about. Always of a fixed form, so that it may be printed. */
  readonly subject: string;
  /** Anchors that it carries: each is whole and speaks of a checkpoint that is there. Nothing shows that anybody else has them. */
  readonly anchors: readonly CarriedAnchor[];
}

export interface CarriedAnchor extends AnchorText {
  readonly kind: AnchorKind;
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The checkpoint it speaks of, and the audit rows that this one claims to cover. */
  readonly note: string;
  readonly size: number;
}

/** A source of which nothing can be read but why. */
export function damagedSource(reason: string): CarriedSource {
  return {
    subject: WHOLE_LOG,
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
      report({
        kind: 'damaged',
        table: 'bundle',
        record: 'bundle',
        message: `It cannot be read: ${reason}.`,
      });
      return Promise.resolve();
    },
  };
}

export function fileFinding(kind: Finding['kind'], name: string, message: string): Finding {
  return { kind, table: name, record: name, message };
}

/** Checks as much of an anchor as can be checked alone. */
export function openAnchor(
  name: string,
  bytes: Uint8Array,
  notes: readonly string[],
): CarriedAnchor | Finding {
  const kind = readAnchorName(name, sha256Hex(bytes));
  if (kind === undefined)
    return fileFinding('bad-anchor', name, `${name} is not what its name says it must be.`);
  for (const note of notes) {
    const said = readAnchor(kind, bytes, note, sha256Hex(note));
    if (said !== undefined) return { ...said, kind, name, bytes, note, size: claimedSize(note) };
  }
  return fileFinding('bad-anchor', name, `${name} speaks of no checkpoint that is there.`);
}

/** How a head and a kept checkpoint are named for people, in the same words as those of a database. */
export function headPlace(key: string): string {
  return `the head of key ${key.split('+')[1]}`;
}

export function keptPlace(size: number, key: string): string {
  return `the kept checkpoint ${size} of key ${key.split('+')[1]}`;
}

/** The number of rows in the second line of a note, before anybody has checked it. */
export function claimedSize(note: string): number {
  const size = Number(/^[^\n]*\n(\d{1,15})\n/.exec(note)?.[1]);
  return isCount(size) ? size : 0;
}

/** A row of a source that is not whole, as it was handed over. */
export interface ShownRow {
  readonly position: number;
  readonly text: string;
  /** The chain hash before it, where one is given. */
  readonly previous?: string | undefined;
  readonly proof?: readonly string[] | undefined;
}

/** Where two rows follow each other, the link of the second is the chain hash of the first. */
export function checkLinks(rows: readonly ShownRow[], head: Checkpoint | undefined, report: Report): void {
  rows.forEach((row, i) => {
    const next = rows[i + 1];
    if (next?.position !== row.position + 1 || row.previous === undefined || next.previous === undefined)
      return;
    const contentHash = sha256Hex(row.text);
    if (chainHash(contentHash, row.previous) === next.previous) return;
    // A row that was changed is not proved either, which is said already.
    if (head === undefined || !isIncluded(row.position - 1, row.proof ?? [], contentHash, head)) return;
    const [record, { position }] = [auditRow(next.position), next];
    const message = `Audit row ${position} does not continue row ${position - 1}.`;
    report({ kind: 'unlinked', table: 'actions', record, position, columns: ['chain_hash'], message });
  });
}

/** Whether a proof leads from a row to the root of a head. */
export function isIncluded(
  index: number,
  proof: readonly string[],
  contentHash: string,
  { size, root }: Checkpoint,
): boolean {
  try {
    verifyInclusion({ index, size, leafHash: leafHash(contentHash), root, proof });
    return true;
  } catch {
    return false;
  }
}

/** What a note says of its log. Whether it is signed, the verifier finds out. */
export function readHead(note: string): Checkpoint | undefined {
  try {
    return parseCheckpoint(note.slice(0, note.indexOf('\n\n') + 1));
  } catch {
    return undefined;
  }
}

/**
 * What it is about must be in it, with every call that wrote it: from the row of state along `previous` to the call that
 * made it. Else a certificate of one record could pass for one of another.
 */
export function checkSubject(
  subject: string,
  state: HeldState,
  rowAt: (position: number) => string | undefined,
  { found }: Pick<Walked, 'found'>,
  report: Report,
): void {
  const say = (message: string, position?: number) =>
    report({ kind: 'missing', table: 'subject', record: subject, message, ...(position && { position }) });
  if (subject.startsWith('#')) {
    if (rowAt(Number(subject.slice(1))) === undefined) say(`${subject} itself is not there.`);
    return;
  }
  const table = STATE_TABLES.find(({ prefix }) => subject.startsWith(`${prefix}-`));
  const id = table === undefined ? undefined : parseId(table, subject);
  const row = table === undefined || id === undefined ? undefined : state.row(table, id);
  if (table === undefined || row === undefined) {
    if (!found.has(subject)) say(`${subject} itself is not there.`);
    return;
  }
  let position = Number(row.position);
  let by = subject;
  // What is known to be wrong may lead anywhere.
  while (position > 0 && !found.has(subject) && !found.has(by)) {
    const text = rowAt(position);
    if (text === undefined) say(`Audit row ${position}, which wrote ${subject}, is not there.`, position);
    const previous = text === undefined ? undefined : previousOf(text, table, subject);
    // A row that did not write it, or leads forward, is for the rules to name.
    if (previous === undefined || previous >= position) return;
    by = auditRow(position);
    position = previous;
  }
}

/** The position that wrote the record before the call of this exit row did. */
function previousOf(text: string, { name }: StateTable, subject: string): number | undefined {
  const { effects } = members(text);
  if (!Array.isArray(effects)) return undefined;
  const effect: unknown = effects.find((it) => isObject(it) && it.table === name && it.id === subject);
  return isObject(effect) && isCount(effect.previous) ? effect.previous : undefined;
}
