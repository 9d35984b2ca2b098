import type { Reader } from '../../storage/engine.ts';
import type { Report } from './finding.ts';

/**
 * SQLite's own check of a word index compares its words with the texts, but overlooks what makes a word be found: rows
 * of task_words_idx that are gone, settings, pages that belong to nothing, bytes after the end of a record. This reads the
 * four tables in the format of FTS5 (fts5_index.c). It keeps a few bytes in memory for each 4 KB of the index.
 */
export async function checkWordIndex(tx: Reader, report: Report): Promise<void> {
  const tell: Tell = (table, record, what) =>
    report({
      kind: 'index',
      table,
      record,
      message: `${what}: searching would miss tasks or find them wrongly.`,
    });
  await checkSettings(tx, tell);
  await checkSizes(tx, tell);
  const segments = await readStructure(tx, tell);
  if (segments === undefined) return;
  await readLeads(tx, segments, tell);
  await checkPages(tx, segments, tell);
}

type Tell = (table: string, record: string, what: string) => void;

/** A run of pages that holds words in order. */
interface Segment {
  readonly first: number;
  readonly last: number;
  /** Page to the text that leads there, in hex, and whether pages of its own help to skip within it. */
  readonly leads: Map<number, { readonly term: string; readonly skips: boolean }>;
}

type Segments = ReadonlyMap<number, Segment>;

const AVERAGES = 1;
const STRUCTURE = 10;
const FORMAT_VERSION = 4;
const INDEXED_COLUMNS = 2;
const PAGE = 500;

async function checkSettings(tx: Reader, tell: Tell): Promise<void> {
  const rows = await tx.all<{ k: unknown; v: unknown; type: string }>(
    'SELECT k, v, typeof(v) AS type FROM task_words_config',
  );
  const [only] = rows;
  const isOnlyVersion = rows.length === 1 && only?.k === 'version' && only.v === FORMAT_VERSION;
  if (!isOnlyVersion || only.type !== 'integer')
    tell('task_words_config', 'settings', 'task_words_config has other settings than Colibri gives it');
}

/** SQLite compares the numbers; here it is that nothing else stands there. */
async function checkSizes(tx: Reader, tell: Tell): Promise<void> {
  let last = Number.MIN_SAFE_INTEGER;
  for (;;) {
    const rows = await tx.all<{ id: number; sz: unknown }>(
      `SELECT id, sz FROM task_words_docsize
       WHERE id > ? AND id <= ? AND (typeof(sz) <> 'blob' OR length(sz) <> ${INDEXED_COLUMNS}) ORDER BY id LIMIT ?`,
      last,
      Number.MAX_SAFE_INTEGER,
      PAGE,
    );
    for (const { id, sz } of rows)
      if (numbersIn(sz, 0)?.length !== INDEXED_COLUMNS)
        tell('task_words_docsize', `row ${id}`, `Row ${id} of task_words_docsize is not two numbers`);
    last = rows.at(-1)?.id ?? last;
    if (rows.length < PAGE) return;
  }
}

async function readStructure(tx: Reader, tell: Tell): Promise<Segments | undefined> {
  const rows = await tx.all<{ id: number; block: unknown }>(
    `SELECT id, block FROM task_words_data WHERE id IN (${AVERAGES}, ${STRUCTURE})`,
  );
  const blockOf = (id: number) => rows.find((row) => row.id === id)?.block;
  const averages = numbersIn(blockOf(AVERAGES), 0)?.length;
  // Before the first task it is a record of nothing.
  if (averages !== 1 + INDEXED_COLUMNS && averages !== 0)
    tell('task_words_data', 'averages', 'The averages in task_words_data are not three numbers');
  const segments = segmentsIn(blockOf(STRUCTURE));
  if (segments === undefined)
    tell('task_words_data', 'structure', 'The structure record in task_words_data is not one');
  return segments;
}

/** A cookie that is 0 as long as no setting changes, three counts, then levels of segments, and nothing after them. */
function segmentsIn(block: unknown): Segments | undefined {
  const cookie = bytesOf(block)?.subarray(0, 4);
  const numbers = numbersIn(block, 4);
  if (cookie === undefined || cookie.some((byte) => byte !== 0) || numbers === undefined) return undefined;
  let at = 0;
  const next = () => numbers[at++] ?? Number.NaN;
  const [levels, count] = [next(), next()];
  // How much was ever written, to time merges: nothing else in the file knows it, and no answer depends on it.
  next();
  const segments = new Map<number, Segment>();
  for (let level = 0; level < levels; level += 1) {
    const [merging, size] = [next(), next()];
    if (!(merging <= size) || size > numbers.length) return undefined;
    for (let i = 0; i < size; i += 1) segments.set(next(), { first: next(), last: next(), leads: new Map() });
  }
  return at === numbers.length && segments.size === count ? segments : undefined;
}

async function readLeads(tx: Reader, segments: Segments, tell: Tell): Promise<void> {
  for (const [id, segment] of segments) {
    const rows = await tx.all<{ term: string; pgno: number; types: string }>(
      `SELECT hex(term) AS term, CAST(pgno AS REAL) AS pgno, typeof(segid) || typeof(term) || typeof(pgno) AS types
       FROM task_words_idx WHERE segid = ?`,
      id,
    );
    for (const { term, pgno, types } of rows) {
      const page = Math.floor(pgno / 2);
      const isKnown = page >= 1 && page <= segment.last && !segment.leads.has(page);
      if (isKnown && types === 'integerblobinteger') segment.leads.set(page, { term, skips: pgno % 2 === 1 });
      else tell('task_words_idx', `segment ${id}`, `task_words_idx leads to no page of segment ${id}`);
    }
  }
  const stray = await tx.get<{ count: number }>(
    'SELECT count(*) AS count FROM task_words_idx WHERE segid NOT IN (SELECT value FROM json_each(?))',
    JSON.stringify([...segments.keys()]),
  );
  if (stray?.count !== 0)
    tell('task_words_idx', 'segments', 'task_words_idx speaks of segments that are not there');
}

/** Walks all pages in order. Each must belong to a segment, and each that begins a word must be led to. */
async function checkPages(tx: Reader, segments: Segments, tell: Tell): Promise<void> {
  const odd = await tx.get<{ count: number }>(
    `SELECT count(*) AS count FROM task_words_data
     WHERE typeof(block) <> 'blob' OR id > ${Number.MAX_SAFE_INTEGER} OR id < ${STRUCTURE} AND id <> ${AVERAGES}`,
  );
  if (odd?.count !== 0) tell('task_words_data', 'pages', 'task_words_data has rows that are no pages');
  const walk = new PageWalk(segments, tell);
  let last = STRUCTURE;
  for (;;) {
    const rows = await tx.all<{ id: number; block: unknown }>(
      'SELECT id, block FROM task_words_data WHERE id > ? AND id <= ? ORDER BY id LIMIT ?',
      last,
      Number.MAX_SAFE_INTEGER,
      PAGE,
    );
    for (const { id, block } of rows) walk.check(id, block);
    last = rows.at(-1)?.id ?? last;
    if (rows.length < PAGE) return;
  }
}

/** Remembers the last word of the page before. */
class PageWalk {
  readonly #segments: Segments;
  readonly #tell: Tell;
  #before: string | undefined;

  constructor(segments: Segments, tell: Tell) {
    this.#segments = segments;
    this.#tell = tell;
  }

  /** Row numbers are made of segment, kind and height, and page: 16, 6 and 31 bits. */
  check(id: number, block: unknown): void {
    const segment = this.#segments.get(Math.floor(id / 2 ** 37));
    const kind = Math.floor(id / 2 ** 31) % 2 ** 6;
    const page = id % 2 ** 31;
    if (kind >= 2 ** 5 && segment?.leads.get(page)?.skips === true) return;
    if (kind !== 0 || segment === undefined || page < segment.first || page > segment.last) {
      this.#tell('task_words_data', `page ${id}`, `Page ${id} of task_words_data belongs to nothing`);
      return;
    }
    if (page === segment.first) this.#before = undefined;
    const ends = endsOf(block);
    if (ends === undefined)
      this.#tell('task_words_data', `page ${id}`, `Page ${id} of task_words_data is not one`);
    else if (ends.first !== undefined && !isLedTo(segment, page, ends.first, this.#before))
      this.#tell('task_words_idx', `page ${id}`, `task_words_idx does not lead to page ${id}`);
    this.#before = ends?.last ?? this.#before;
  }
}

/**
 * To page 1 leads the empty text, to another as much of its first word as tells it from the word before, or all of it
 * where a merge was interrupted there. A merge also eats pages from the front; then any older way in will do.
 */
function isLedTo(segment: Segment, page: number, first: string, before: string | undefined): boolean {
  const lead = segment.leads.get(page)?.term;
  if (page === 1) return lead === '';
  if (page === segment.first) return [...segment.leads.keys()].some((other) => other <= page);
  return lead === first || (before !== undefined && lead === first.slice(0, commonDigits(first, before) + 2));
}

/** Length of the common beginning of two words in hex, whole bytes only. */
function commonDigits(a: string, b: string): number {
  let i = 0;
  while (i < a.length && a.slice(i, i + 2) === b.slice(i, i + 2)) i += 2;
  return i;
}

const HEADER_BYTES = 4;

interface Ends {
  readonly first: string | undefined;
  readonly last: string | undefined;
}

/** First and last word of a page, in hex; neither where it only goes on with the one before. Undefined for what is no page. */
function endsOf(block: unknown): Ends | undefined {
  const bytes = bytesOf(block);
  if (bytes === undefined || bytes.length < HEADER_BYTES) return undefined;
  const [rowid, end] = [bytes.readUInt16BE(0), bytes.readUInt16BE(2)];
  // Where the first row number stands that no word leads to, or 0. SQLite looks at it only on pages that go on with a word.
  if (rowid !== 0 && (rowid < HEADER_BYTES || rowid >= end)) return undefined;
  const steps = end <= bytes.length ? numbersIn(bytes, end) : undefined;
  if (steps === undefined) return undefined;
  let first: string | undefined;
  let last: string | undefined;
  let offset = 0;
  let rows = rowid;
  for (const step of steps) {
    offset += step;
    if (rows !== 0 && holdsNoPosition(bytes, rows, offset)) return undefined;
    // Only the first word of a page is written out; the others repeat the beginning of the one before.
    const kept: Numbered | undefined =
      last === undefined ? { value: 0, next: offset } : numberAt(bytes, offset);
    const added = kept === undefined ? undefined : numberAt(bytes, kept.next);
    if (kept === undefined || added === undefined || added.next + added.value > end) return undefined;
    const tail = bytes.toString('hex', added.next, added.next + added.value).toUpperCase();
    last = (last ?? '').slice(0, 2 * kept.value) + tail;
    first ??= last;
    rows = added.next + added.value;
  }
  return rows !== 0 && holdsNoPosition(bytes, rows, end) ? undefined : { first, last };
}

/**
 * Whether among the rows of a word, from `start` to `end`, a place in the text is written as zero. Places count from two;
 * SQLite reads a zero like a two, so that it would find the same and not tell. A list that goes on overleaf is passed over.
 */
function holdsNoPosition(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; ) {
    const size = numberAt(bytes, numberAt(bytes, at)?.next ?? end);
    if (size === undefined) return false;
    at = size.next + Math.floor(size.value / 2);
    if (at > end) return false;
    const places = numbersIn(bytes.subarray(0, at), size.next);
    if (places?.includes(0) === true) return true;
  }
  return false;
}

function bytesOf(value: unknown): Buffer | undefined {
  if (!(value instanceof Uint8Array)) return undefined;
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

/** All numbers from `start` to the end, or undefined where the end is not that of a number or one is written too long. */
function numbersIn(block: unknown, start: number): number[] | undefined {
  const bytes = bytesOf(block);
  if (bytes === undefined) return undefined;
  const numbers: number[] = [];
  for (let at = start; at < bytes.length; ) {
    const number = numberAt(bytes, at);
    if (number === undefined) return undefined;
    numbers.push(number.value);
    at = number.next;
  }
  return numbers;
}

interface Numbered {
  readonly value: number;
  readonly next: number;
}

/** SQLite's varint, as far as JavaScript counts: seven bits a byte, the largest first, none of them idle. */
function numberAt(bytes: Buffer, start: number): Numbered | undefined {
  let value = 0;
  for (let at = start; at < start + 7; at += 1) {
    const byte = bytes[at];
    if (byte === undefined || (at === start && byte === 0x80)) return undefined;
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return { value, next: at + 1 };
  }
  return undefined;
}
