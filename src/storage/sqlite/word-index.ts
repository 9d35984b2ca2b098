import { asError } from '../../errors.ts';
import type { Reader, StorageProblem } from '../engine.ts';

/**
 * SQLite's own check compares the words of the index with the texts they are taken from. It does not see whether those
 * texts are the tasks', and it overlooks what makes a word be found: the rows of task_words_idx that lead to a page, and
 * the settings. Of the index's own format this reads where a page begins its first word, and nothing else.
 */
export async function findWordIndexProblems(tx: Reader): Promise<StorageProblem[]> {
  const problems: StorageProblem[] = [];
  const tell: Tell = (table, record, what) =>
    problems.push({ table, record, message: `${what}: searching would miss tasks or find them wrongly.` });
  // A part that cannot be read is a problem of its own, and the others are still looked at.
  for (const check of [checkSettings, checkSizes, checkHeader, checkLeads, checkTexts])
    await check(tx, tell).catch((thrown: unknown) =>
      tell('task_words', 'task_words', `A part of task_words cannot be read (${asError(thrown).message})`),
    );
  return problems;
}

type Tell = (table: string, record: string, what: string) => void;

async function checkTexts(tx: Reader, tell: Tell): Promise<void> {
  const rows = await tx.all<{ id: number }>(
    `SELECT t.id AS id FROM tasks t LEFT JOIN task_words w ON w.rowid = t.id
       LEFT JOIN texts a ON a.digest = t.title LEFT JOIN texts b ON b.digest = t.description
     WHERE w.title IS NOT coalesce(a.text, '') OR w.description IS NOT coalesce(b.text, '')
     UNION SELECT w.rowid FROM task_words w WHERE w.rowid NOT IN (SELECT id FROM tasks)`,
  );
  for (const { id } of rows)
    tell('task_words', `T-${String(id).padStart(4, '0')}`, `task_words disagrees with task ${id}`);
}

/** The one setting is the version of the format. */
async function checkSettings(tx: Reader, tell: Tell): Promise<void> {
  const [only, ...others] = await tx.all('SELECT k, v, typeof(v) AS type FROM task_words_config');
  if (only?.k !== 'version' || only.v !== 4 || only.type !== 'integer' || others.length > 0)
    tell('task_words_config', 'settings', 'task_words_config has other settings than Colibri gives it');
}

/** SQLite compares the two numbers; this checks that there is nothing else. */
async function checkSizes(tx: Reader, tell: Tell): Promise<void> {
  const rows = await tx.all<{ id: number; sz: unknown }>(
    `SELECT CAST(id AS REAL) AS id, sz FROM task_words_docsize WHERE typeof(sz) <> 'blob' OR length(sz) <> 2`,
  );
  for (const { id, sz } of rows)
    if (numbersIn(sz, 0)?.length !== 2)
      tell('task_words_docsize', `row ${id}`, `Row ${id} of task_words_docsize is not two numbers`);
}

// Row numbers of task_words_data are made of segment, kind and height, and page: 16, 6 and 31 bits.
const SEGMENT = 2 ** 37;
const SKIPS = 2 ** 36;
/** Below it are the averages and the structure. */
const FIRST_PAGE = SEGMENT;
const AVERAGES = 1;
const STRUCTURE = 10;

/** The averages are three numbers, or none before the first task; the structure is a cookie, three counts, and levels of segments. */
async function checkHeader(tx: Reader, tell: Tell): Promise<void> {
  const rows = await tx.all<{ id: number; block: unknown }>(
    `SELECT id, block FROM task_words_data WHERE id < ${FIRST_PAGE} OR id > ${Number.MAX_SAFE_INTEGER} ORDER BY id`,
  );
  const [averages, structure, ...others] = rows;
  const counted = numbersIn(averages?.block, 0)?.length;
  if (averages?.id !== AVERAGES || (counted !== 3 && counted !== 0))
    tell('task_words_data', 'averages', 'The averages in task_words_data are not three numbers');
  if (structure?.id !== STRUCTURE || !isStructure(structure.block))
    tell('task_words_data', 'structure', 'The structure record in task_words_data is not one');
  for (const { id } of others)
    tell('task_words_data', `page ${id}`, `Page ${id} of task_words_data belongs to nothing`);
}

function isStructure(block: unknown): boolean {
  const numbers = numbersIn(block, HEADER_BYTES);
  if (!(block instanceof Uint8Array) || numbers === undefined) return false;
  if (block.subarray(0, HEADER_BYTES).some((byte) => byte !== 0)) return false;
  const [levels = 0, count = 0] = numbers;
  let at = 3;
  let found = 0;
  for (let level = 0; level < levels && at < numbers.length; level += 1) {
    found += numbers[at + 1] ?? 0;
    at += 2 + 3 * (numbers[at + 1] ?? 0);
  }
  return at === numbers.length && found === count;
}

/** Each page that begins a word is led to by one row of task_words_idx with the beginning of that word, and no row leads elsewhere. */
async function checkLeads(tx: Reader, tell: Tell): Promise<void> {
  const leads = await readLeads(tx, tell);
  const skipped = new Set<number>();
  for await (const { id, block } of pagesOf(tx)) {
    if (id % SEGMENT >= SKIPS) skipped.add(Math.floor(id / SEGMENT) * SEGMENT + (id % 2 ** 31));
    else checkPage(id, block, leads, tell);
  }
  for (const [id, { skips }] of leads) {
    if (skips !== skipped.has(id))
      tell('task_words_idx', `page ${id}`, `task_words_idx says wrongly how page ${id} is skipped`);
    skipped.delete(id);
  }
  for (const id of skipped)
    tell('task_words_data', `page ${id}`, `A page of task_words_data leads to page ${id}, which has none`);
}

async function* pagesOf(tx: Reader) {
  for (let last = FIRST_PAGE - 1; ; ) {
    const pages = await tx.all<{ id: number; block: unknown }>(
      'SELECT id, block FROM task_words_data WHERE id > ? AND id <= ? ORDER BY id LIMIT 500',
      last,
      Number.MAX_SAFE_INTEGER,
    );
    yield* pages;
    const next = pages.at(-1)?.id;
    if (next === undefined || next <= last) return;
    last = next;
  }
}

type Leads = Map<number, { readonly term: string; readonly skips: boolean }>;

async function readLeads(tx: Reader, tell: Tell): Promise<Leads> {
  const leads: Leads = new Map();
  const rows = await tx.all<{ segid: number; term: string; pgno: number; types: string; found: number }>(
    `SELECT CAST(segid AS REAL) AS segid, hex(term) AS term, CAST(pgno AS REAL) AS pgno,
       typeof(segid) || typeof(term) || typeof(pgno) AS types,
       EXISTS (SELECT 1 FROM task_words_data d WHERE d.id = i.segid * ${SEGMENT} + i.pgno / 2) AS found
     FROM task_words_idx i ORDER BY i.segid, i.term`,
  );
  for (const { segid, term, pgno, types, found } of rows) {
    const id = segid * SEGMENT + Math.floor(pgno / 2);
    const isMerged = found === 0 && term === '';
    if (types !== 'integerblobinteger' || leads.has(id) || (found === 0 && !isMerged))
      tell('task_words_idx', `segment ${segid}`, `task_words_idx leads to no page of segment ${segid}`);
    else if (!isMerged) leads.set(id, { term, skips: pgno % 2 === 1 });
  }
  return leads;
}

const HEADER_BYTES = 4;

function checkPage(id: number, block: unknown, leads: Leads, tell: Tell): void {
  const first = firstWord(block);
  const lead = leads.get(id)?.term;
  if (first === 'malformed')
    tell('task_words_data', `page ${id}`, `Page ${id} of task_words_data is not one`);
  else if (first === undefined ? lead !== undefined : lead === undefined || !first.startsWith(lead))
    tell('task_words_idx', `page ${id}`, `task_words_idx does not lead to page ${id} by its first word`);
}

/** The first word that begins on a page, in hex; undefined where the page only continues the one before. */
function firstWord(block: unknown): string | undefined | 'malformed' {
  if (!(block instanceof Uint8Array) || block.length < HEADER_BYTES) return 'malformed';
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  const end = bytes.readUInt16BE(2);
  if (end > bytes.length) return 'malformed';
  const offset = end === bytes.length ? end : (numberAt(bytes, end)?.value ?? end);
  // Where the page continues a word of the one before, its first row number comes before the first word of its own.
  const row = bytes.readUInt16BE(0);
  if (row !== 0 && (row < HEADER_BYTES || row >= offset)) return 'malformed';
  if (end === bytes.length) return undefined;
  const length = numberAt(bytes, offset);
  if (length === undefined || length.next + length.value > end) return 'malformed';
  return bytes.toString('hex', length.next, length.next + length.value).toUpperCase();
}

/** All numbers from `start` to the end, or undefined where the end is not that of a number. */
function numbersIn(bytes: unknown, start: number): number[] | undefined {
  if (!(bytes instanceof Uint8Array)) return undefined;
  const numbers: number[] = [];
  for (let at = start; at < bytes.length; ) {
    const number = numberAt(bytes, at);
    if (number === undefined) return undefined;
    numbers.push(number.value);
    at = number.next;
  }
  return numbers;
}

/** SQLite's varint, as far as JavaScript counts: seven bits a byte, the largest first, none of them idle. */
function numberAt(bytes: Uint8Array, start: number): { value: number; next: number } | undefined {
  let value = 0;
  for (let at = start; at < start + 7; at += 1) {
    const byte = bytes[at];
    if (byte === undefined || (at === start && byte === 0x80)) return undefined;
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return { value, next: at + 1 };
  }
  return undefined;
}
