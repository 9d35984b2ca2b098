import { isHash, sha256Hex } from '../../integrity/digest.ts';
import { Frontier } from '../../integrity/tree.ts';
import type { Reader } from '../../storage/engine.ts';
import type { AuditRow } from '../row.ts';
import { BLOCK_ROWS } from './block-hashes.ts';
import { isStoredAs, mayHideBytes } from './bytes.ts';
import { DamageError } from './damage.ts';
import { auditRow, type Report } from './finding.ts';
import { readRowText } from './row-text.ts';
import { readSoundBlock } from './sound-block.ts';

interface Stored {
  readonly position: number;
  readonly text: string;
  readonly content_hash: string;
  readonly chain_hash: string;
}

/** An audit row that could be read, with the position it really stands at. */
export interface ReadRow {
  readonly at: number;
  readonly row: AuditRow;
  /** Whether it is the text that was hashed. What another one says was written proves nothing. */
  readonly isHashed: boolean;
}

const TEXTS = ['text', 'content_hash', 'chain_hash'] as const;
const FIRST_LINK = '0'.repeat(64);

/**
 * Reads the log a block at a time. A block that is sound is hashed all at once; where anything is wrong, the same rows are
 * read one by one, to say what. Nothing that is carried on grows with the log but the calls that never ended.
 */
export class LogWalk {
  /** Roots of the blocks of 256 rows read so far, as computed here. */
  readonly #blocks = new Frontier();
  #rest = new Frontier();
  /** Enter rows without an exit yet: position to the process that wrote it. */
  readonly open = new Map<number, string>();
  position = 0;
  #link = FIRST_LINK;
  #time = '';
  #process = '';
  readonly #report: Report;
  /** Sizes at which the root is wanted, the smallest last. */
  readonly #wanted: number[];
  /**
   * Roots at those of the wanted sizes that the walk has passed. Two where a row's text and its content_hash disagree: a
   * row that is reported as altered must not make all heads after it look wrong.
   */
  readonly roots = new Map<number, readonly string[]>();
  /** The tree over content_hash as stored, from the first row on where it is not the hash of the text. */
  #claimed: Frontier | undefined;

  constructor(report: Report, sizes: readonly number[] = []) {
    this.#report = report;
    this.#wanted = [...new Set(sizes)].filter((size) => size > 0).sort((a, b) => b - a);
  }

  /** Reads on to the end of a block and checks each row by itself and against its neighbours. Undefined at the end. */
  async next(tx: Reader): Promise<ReadRow[] | undefined> {
    return (await this.#nextBlock(tx)) ?? (await this.#nextRows(tx));
  }

  async #nextBlock(tx: Reader): Promise<ReadRow[] | undefined> {
    const [size, wanted] = [this.#size, this.#wanted.at(-1)];
    const isWantedInside = wanted !== undefined && wanted < size + BLOCK_ROWS;
    if (this.#rest.size > 0 || isWantedInside || this.#claimed !== undefined) return undefined;
    const block = await readSoundBlock(tx, { position: this.position, link: this.#link });
    if (block === undefined) return undefined;
    const read: ReadRow[] = [];
    let at = this.position;
    for (const text of block.texts) this.#take(read, ++at, text, true);
    this.position += BLOCK_ROWS;
    this.#link = block.link;
    await this.#closeBlock(tx, block.root);
    this.#keepRoot();
    return read;
  }

  async #nextRows(tx: Reader): Promise<ReadRow[] | undefined> {
    const page = await tx.all<Stored>(
      'SELECT position, text, content_hash, chain_hash FROM actions WHERE position > ? AND position <= ? ORDER BY position LIMIT ?',
      this.position,
      Number.MAX_SAFE_INTEGER,
      BLOCK_ROWS - this.#rest.size,
    );
    const [first] = page;
    if (first === undefined) return undefined;
    // In a damaged file a search may come upon any row. Going on from there might never end.
    if (first.position <= this.position)
      throw new DamageError(`behind row ${this.position} comes row ${first.position}`);
    const read: ReadRow[] = [];
    for (const raw of page) {
      const stored = this.#asText(raw);
      const isHashed = this.#follow(stored);
      if (this.#rest.size === BLOCK_ROWS) await this.#closeBlock(tx, this.#rest.root());
      this.#keepRoot();
      if (mayHideBytes(stored.text)) await this.#checkBytes(tx, stored);
      this.#take(read, stored.position, stored.text, isHashed);
    }
    return read;
  }

  /** Size and root of the tree over everything read so far. */
  get head(): { readonly size: number; readonly root: string } {
    const tree = this.#tree();
    return { size: tree.size, root: tree.root() };
  }

  get #size(): number {
    return this.#blocks.size * BLOCK_ROWS + this.#rest.size;
  }

  #tree(): Frontier {
    return new Frontier({
      size: this.#size,
      hashes: [...this.#blocks.state.hashes, ...this.#rest.state.hashes],
    });
  }

  /** The tables are strict, but whoever rewrites the schema for a moment can store anything: a blob hashes like its text. */
  #asText(stored: Stored): Stored {
    if (TEXTS.every((column) => typeof stored[column] === 'string')) return stored;
    const { position } = stored;
    const odd = TEXTS.filter((column) => typeof stored[column] !== 'string');
    const message = `In audit row ${position}, ${odd.join(' and ')} should be text and is not.`;
    const record = auditRow(position);
    this.#report({ kind: 'altered', table: 'actions', record, position, columns: odd, message });
    const [text, content_hash, chain_hash] = TEXTS.map((column) => String(stored[column]));
    return { position, text: text ?? '', content_hash: content_hash ?? '', chain_hash: chain_hash ?? '' };
  }

  async #checkBytes(tx: Reader, { position, text }: Stored): Promise<void> {
    if (await isStoredAs(tx, { table: 'actions', key: 'position', id: position, column: 'text', text }))
      return;
    const message = `The bytes of audit row ${position} are no text in UTF-8.`;
    const record = auditRow(position);
    this.#report({ kind: 'altered', table: 'actions', record, position, columns: ['text'], message });
  }

  /**
   * Position, content and link; answers whether the text is the one that was hashed. After a break the walk goes on from
   * what is stored, so that one edit is one finding.
   */
  #follow({ position, text, content_hash, chain_hash }: Stored): boolean {
    if (position <= this.position) {
      this.#reportMisplaced(position);
    } else if (position !== this.position + 1) {
      const missing = this.position + 1;
      this.#report({
        kind: 'missing',
        table: 'actions',
        record: auditRow(missing),
        position: missing,
        message:
          missing === position - 1
            ? `Audit row ${missing} is missing.`
            : `Audit rows ${missing} to ${position - 1} are missing.`,
      });
    }
    const hash = sha256Hex(text);
    if (hash !== content_hash) {
      const message = `The text of audit row ${position} or its content_hash was changed.`;
      this.#report({
        kind: 'altered',
        table: 'actions',
        record: auditRow(position),
        position,
        columns: ['text', 'content_hash'],
        message,
        expected: content_hash,
        actual: hash,
      });
    }
    const link = sha256Hex(content_hash + this.#link);
    if (link !== chain_hash) {
      const message = `Audit row ${position} does not continue row ${position - 1}.`;
      this.#report({
        kind: 'unlinked',
        table: 'actions',
        record: auditRow(position),
        position,
        columns: ['chain_hash'],
        message,
        expected: link,
        actual: chain_hash,
      });
    }
    if (hash !== content_hash) this.#claimed ??= this.#tree();
    this.#claimed?.add(isHash(content_hash) ? content_hash : hash);
    this.#rest.addDigest(hash);
    this.position = Math.max(position, this.position);
    this.#link = chain_hash;
    return hash === content_hash;
  }

  #reportMisplaced(position: number): void {
    const message = `There is an audit row ${position} behind row ${this.position}, where it cannot be.`;
    const record = auditRow(position);
    const columns = ['position'];
    this.#report({
      kind: 'stray',
      table: 'actions',
      record,
      position: Math.max(position, 1),
      columns,
      message,
    });
  }

  #keepRoot(): void {
    const wanted = this.#wanted.at(-1);
    if (wanted === undefined || wanted !== this.#size) return;
    const claimed = this.#claimed === undefined ? [] : [this.#claimed.root()];
    this.roots.set(wanted, [this.head.root, ...claimed]);
    this.#wanted.pop();
  }

  /** A full block is compared with the root that the writer stored for it. */
  async #closeBlock(tx: Reader, root: string): Promise<void> {
    const block = this.#blocks.size;
    this.#blocks.addLeaf(root);
    this.#rest = new Frontier();
    const stored = await tx.get<{ hash: string }>('SELECT hash FROM log_blocks WHERE block = ?', block);
    if (stored?.hash === root) return;
    const position = (block + 1) * BLOCK_ROWS;
    const kind = stored === undefined ? 'missing' : 'altered';
    const message = `The stored root of audit rows ${block * BLOCK_ROWS + 1} to ${position} ${stored === undefined ? 'is missing' : 'is wrong'}.`;
    this.#report({
      kind,
      table: 'log_blocks',
      record: `block ${block}`,
      position,
      columns: ['hash'],
      message,
      expected: root,
      actual: stored?.hash ?? '',
    });
  }

  /**
   * Rows that the walk did not come to: before the first position, where numbers are no longer exact, or where no search
   * leads. Its positions rose from row to row, so if it counted as many as there are, it saw them all.
   */
  async checkBeyond(tx: Reader): Promise<void> {
    const stray = await tx.all<{ position: string }>(
      'SELECT CAST(position AS TEXT) AS position FROM actions WHERE position < 1 OR position > ? LIMIT 1000',
      Number.MAX_SAFE_INTEGER,
    );
    for (const { position } of stray) {
      const message = `There is an audit row at position ${position}, where none can be.`;
      this.#report({ kind: 'stray', table: 'actions', record: `#${position}`, message });
    }
    const found = await tx.get<{ count: number }>('SELECT count(*) AS count FROM actions');
    const hidden = (found?.count ?? 0) - stray.length - this.#size;
    if (hidden <= 0) return;
    const message = `There are ${hidden} more audit rows than their positions lead to.`;
    this.#report({ kind: 'stray', table: 'actions', record: 'rows', message });
  }

  /** Stored roots of blocks that the rows do not fill. */
  async checkBlocksBeyond(tx: Reader): Promise<void> {
    const stray = await tx.all<{ block: number }>(
      'SELECT block FROM log_blocks WHERE block < 0 OR block >= ? LIMIT 1000',
      this.#blocks.size,
    );
    for (const { block } of stray) {
      const message = `There is a stored root of block ${block}, which the audit rows do not fill.`;
      this.#report({ kind: 'stray', table: 'log_blocks', record: `block ${block}`, message });
    }
  }

  /** Takes in what a row says, if it says it as Colibri writes it. */
  #take(read: ReadRow[], position: number, text: string, isHashed: boolean): void {
    const row = readRowText(text);
    if (row !== undefined && row.position === position && row.at >= this.#time) {
      this.#time = row.at;
      this.#pair(row, position);
      read.push({ at: position, row, isHashed });
      return;
    }
    this.#report({
      kind: 'malformed',
      table: 'actions',
      record: auditRow(position),
      position,
      message: `Audit row ${position} is not one that Colibri writes: fields, order, position or time are wrong.`,
    });
  }

  #pair(row: AuditRow, position: number): void {
    if (row.stage === 'enter' && row.sequence_no === position) {
      // The name is a piece of the text of its block, all of which it would keep in memory as long as the call is open.
      if (this.#process !== row.process) this.#process = Buffer.from(row.process).toString();
      this.open.set(position, this.#process);
      return;
    }
    if (row.stage === 'exit' && this.open.delete(row.sequence_no)) return;
    this.#report({
      kind: 'unpaired',
      table: 'actions',
      record: auditRow(position),
      position,
      message: `Audit row ${position} ends call ${row.sequence_no}, which was not running.`,
    });
  }
}
