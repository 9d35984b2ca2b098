import { isHash, sha256Hex } from '../../integrity/digest.ts';
import { EMPTY_ROOT, Frontier } from '../../integrity/tree.ts';
import { chainHash, GENESIS } from '../../log/row.ts';
import { BLOCK_ROWS } from '../../log/tree.ts';
import { auditRow, type Finding, type Report, rowFinding } from '../finding.ts';
import type { SourceRow } from '../source.ts';

/** What a signed head of this size must say. */
export interface Mark {
  readonly root: string;
  readonly chainHash: string;
  /** Undefined where the row at this size cannot be read. */
  at: string | undefined;
}

/**
 * Position, content hash and link of each row, and the tree over all of them. After a break the walk goes on from what
 * is stored, so that one change is one finding. Nothing that is carried on grows with the log but the roots of blocks.
 */
export class Links {
  /** Roots of full blocks. */
  readonly blocks: string[] = [];
  /** What heads of the wanted sizes must say, as far as the walk came. */
  readonly marks = new Map<number, Mark>();
  /** The first position at which a row is missing or is not the one that was hashed. */
  firstBreak = Number.POSITIVE_INFINITY;
  position = 0;
  rows = 0;
  chainHash = GENESIS;
  /** What the link must have been where the stored one is another: the row behind it may continue either. */
  #otherLink: string | undefined;
  readonly #full = new Frontier();
  #rest = new Frontier();
  readonly #wanted: Set<number>;
  readonly #whole: boolean;
  readonly #lost: LostRows;
  readonly #report: Report;

  constructor(options: { whole: boolean; lost: LostRows; report: Report; sizes: Iterable<number> }) {
    this.#whole = options.whole;
    this.#lost = options.lost;
    this.#report = options.report;
    this.#wanted = new Set(options.sizes);
  }

  /** Heads of further sizes will be asked about. They must be of rows that are still to come. */
  want(sizes: Iterable<number>): void {
    for (const size of sizes) this.#wanted.add(size);
  }

  /** Answers the content hash of a row that is as it was written, undefined of one that cannot be trusted. */
  follow(row: SourceRow): string | undefined {
    this.rows += 1;
    const place = this.#placeOf(row);
    if (place === 'stray') return undefined;
    const hash = row.text === undefined ? undefined : sha256Hex(row.text);
    const other = this.#otherLink;
    this.#otherLink = undefined;
    const isSound = this.#checkContent(row, hash, place === 'next', other);
    if (!isSound) this.#lost.add(row.position);
    else if (row.next !== undefined) this.#checkNext(row.position, row.chain_hash, row.next);
    const content = hash ?? claimed(row);
    this.chainHash = row.chain_hash ?? chainHash(content, this.chainHash);
    this.position = Math.max(row.position, this.position);
    if (this.#whole) this.#grow(content);
    return isSound ? hash : undefined;
  }

  root(): string {
    const hashes = [...this.#full.state.hashes, ...this.#rest.state.hashes];
    return new Frontier({ size: this.#size, hashes }).root();
  }

  get #size(): number {
    return this.blocks.length * BLOCK_ROWS + this.#rest.size;
  }

  /** Whether the row comes next, behind rows that are missing, or has no place here. */
  #placeOf({ position, text }: SourceRow): 'next' | 'later' | 'stray' {
    const due = this.position + 1;
    if (position === due || (!this.#whole && position > due)) return 'next';
    if (position < due) {
      const message = `There is an audit row ${position} after row ${this.position}, where it cannot be.`;
      const record = auditRow(position);
      this.#tell(Math.max(position, 1), 'stray', message, { record, columns: ['position'] });
      return 'stray';
    }
    if (text !== undefined && !text.includes(`"position":${position},`)) {
      // Whoever moved a row past the end left one row missing, not all those up to there.
      const message = `There is an audit row at position ${position} that claims another position.`;
      this.#tell(due, 'stray', message, { record: auditRow(position), columns: ['position'] });
      return 'stray';
    }
    const range = due === position - 1 ? `row ${due} is` : `rows ${due} to ${position - 1} are`;
    this.#tell(due, 'missing', `Audit ${range} missing.`);
    this.#lost.add(due, position - 1);
    return 'later';
  }

  #checkContent(
    row: SourceRow,
    hash: string | undefined,
    follows: boolean,
    other: string | undefined,
  ): boolean {
    const { position, content_hash, chain_hash } = row;
    if (hash === undefined) {
      if (content_hash === undefined && !this.#whole)
        this.#tell(position, 'missing', `Audit row ${position} is missing.`);
      else
        this.#tell(position, 'altered', `The text of audit row ${position} is not text in UTF-8.`, {
          columns: ['text'],
        });
      return false;
    }
    const before = this.#whole ? (follows ? this.chainHash : undefined) : row.previous_chain_hash;
    const textFits = fits(hash, before, other, chain_hash);
    if (content_hash === undefined || content_hash === hash) {
      if (textFits) return true;
      this.#otherLink = chainHash(hash, before ?? '');
      this.#tellUnlinked(position, position, this.#otherLink, chain_hash ?? '');
      return false;
    }
    // Of text and content_hash, the chain hash tells which is still the old one.
    const isKnown = before !== undefined && chain_hash !== undefined;
    const isText = !textFits && isKnown && fits(content_hash, before, other, chain_hash);
    const columns = textFits && isKnown ? ['content_hash'] : isText ? ['text'] : ['text', 'content_hash'];
    const message = `Audit row ${position} is not as it was written: ${columns.join(' or ')} was changed.`;
    const isHash = columns[0] === 'content_hash';
    const [expected, actual] = isHash ? [hash, content_hash] : [content_hash, hash];
    this.#tell(position, 'altered', message, { columns, expected, actual });
    return isHash;
  }

  /** In part of a log: whether the row behind it continues it. A row that was made anew with its own hashes shows only there. */
  #checkNext(position: number, chain_hash: string | undefined, next: NonNullable<SourceRow['next']>): void {
    if (chain_hash === undefined || chainHash(next.content_hash, chain_hash) === next.chain_hash) return;
    this.#tellUnlinked(position + 1, position, next.chain_hash, chain_hash);
  }

  #tellUnlinked(row: number, position: number, expected: string, actual: string): void {
    const message = `Audit row ${row} does not continue row ${row - 1}.`;
    this.#tell(position, 'unlinked', message, { columns: ['chain_hash'], expected, actual });
  }

  #grow(content: string): void {
    this.#rest.addDigest(content);
    if (this.#rest.size === BLOCK_ROWS) {
      const root = this.#rest.root();
      this.blocks.push(root);
      this.#full.addLeaf(root);
      this.#rest = new Frontier();
    }
    if (this.#wanted.has(this.#size))
      this.marks.set(this.#size, { root: this.root(), chainHash: this.chainHash, at: undefined });
  }

  #tell(position: number, kind: Finding['kind'], message: string, more: Partial<Finding> = {}): void {
    this.firstBreak = Math.min(this.firstBreak, position);
    this.#report(rowFinding(kind, position, message, more));
  }
}

/** Whether a row of this content continues the one before it, as far as that can be told. */
function fits(
  content: string,
  before: string | undefined,
  other: string | undefined,
  link: string | undefined,
): boolean {
  if (before === undefined || link === undefined || chainHash(content, before) === link) return true;
  return other !== undefined && chainHash(content, other) === link;
}

/** What stands in the tree for a row whose text cannot be read. */
function claimed({ content_hash }: SourceRow): string {
  return content_hash !== undefined && isHash(content_hash) ? content_hash : EMPTY_ROOT;
}

/** Positions whose rows are missing, unreadable or not what was hashed. What such a row said is unknown. */
export class LostRows {
  readonly #ranges: { readonly from: number; readonly to: number }[] = [];

  add(from: number, to: number = from): void {
    this.#ranges.push({ from, to });
  }

  get isEmpty(): boolean {
    return this.#ranges.length === 0;
  }

  /** The last lost position, 0 where none is. */
  get last(): number {
    return this.#ranges.at(-1)?.to ?? 0;
  }

  /** They were added in order. In a damaged log every second row may be one, so looking through all would take too long. */
  has(position: number): boolean {
    let [low, high] = [0, this.#ranges.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if ((this.#ranges[middle]?.to ?? 0) < position) low = middle + 1;
      else high = middle;
    }
    return (this.#ranges[low]?.from ?? Number.POSITIVE_INFINITY) <= position;
  }
}
