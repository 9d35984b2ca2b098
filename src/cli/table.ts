import { textFrom, visibleLine } from '../untrusted.ts';
import { UsageError, type Values } from './command.ts';
import type { Colour, Output } from './output.ts';
import { displayWidth, plural, shownBy, toWidth, wrap } from './text.ts';

/** One column of a listing: of the table that people read, and of the CSV. In a stranger's file a value may be of any type. */
export interface Column<T> {
  readonly name: string;
  /** Above it, for people; its name by default. */
  readonly head?: string;
  readonly text: (row: T) => string;
  /** How people see it, where that is shorter. */
  readonly shown?: (row: T) => string;
  readonly colour?: (row: T) => Colour | undefined;
  /** Only in the CSV. */
  readonly isData?: true;
}

/** Options of every command that prints a list. */
export const LIST_OPTIONS = {
  limit: { short: 'n', value: 'N', help: 'at most N entries' },
  all: { help: 'everything: nothing is left out' },
  csv: { help: 'print a table for a spreadsheet (RFC 4180)' },
} as const;

type ListValues = Values<typeof LIST_OPTIONS>;

/** How many entries people get unless they say otherwise. Programs get all of them. */
const LIMIT_DEFAULT = 50;

/** How many entries are wanted. A program that asks for data gets all of it unless it names a number. */
export function readLimit({ limit, all, csv }: ListValues, { json }: Output): number {
  if (limit === undefined)
    return all === true || csv === true || json ? Number.MAX_SAFE_INTEGER : LIMIT_DEFAULT;
  const number = Number(limit);
  if (Number.isSafeInteger(number) && number > 0) return number;
  throw new UsageError(`--limit takes a whole number, 1 or more, not "${limit}".`);
}

interface Listing<T> {
  /** What the entries are, and the name of their list in the JSON. */
  readonly name: string;
  readonly rows: readonly T[];
  readonly columns: readonly Column<T>[];
  /** The entries as agents see them. */
  readonly data: readonly object[];
  readonly total: number;
  /** What the names of its counts in the JSON begin with, where another list comes first. */
  readonly counts?: string;
  /** Said where there are none. */
  readonly nothing: string;
  /** Said of what the filters left out without being asked to. */
  readonly leftOut?: string | undefined;
}

/**
 * Prints lists for people, or as JSON; the first one also as CSV, which has room for one table. A list that is not whole
 * says how much more there is, and what shows it; to a program on the other channel.
 */
export function printListing<T>(listing: Listing<T>, { csv }: ListValues, out: Output, more: Part[] = []) {
  const parts = [partOf(listing, out), ...more];
  if (csv === true) {
    const { rows, columns } = listing;
    out.csv([
      columns.map((column) => column.name),
      ...rows.map((row) => columns.map(({ text }) => textFrom(text(row)))),
    ]);
    const unsaid = [parts[0]?.rest, ...more.map(({ found }) => found), listing.leftOut];
    for (const sentence of unsaid) if (sentence) out.error(sentence);
    return 0;
  }
  if (out.json && listing.leftOut !== undefined) out.error(listing.leftOut);
  const data = Object.assign({}, ...parts.map((part) => part.data));
  return out.data(data, () => {
    const told = parts.filter(({ isEmpty }) => !isEmpty);
    if (told.length === 0) out.line(listing.nothing);
    for (const [i, { print }] of told.entries()) {
      if (i > 0) out.line();
      print();
    }
    if (listing.leftOut !== undefined) out.line(out.paint('dim', listing.leftOut));
  });
}

/** One of several lists that are printed together. */
type Part = ReturnType<typeof partOf<never>>;

export function partOf<T>({ name, rows, columns, data, total, counts = '' }: Listing<T>, out: Output) {
  const more = total - rows.length;
  const one = name.replace(/s$/, '');
  const rest =
    more > 0 ? `${plural(more, `more ${one}`)}: ${shownBy(`--limit ${total} or --all`, more)}` : '';
  return {
    isEmpty: rows.length === 0,
    rest,
    /** Said where there is no room for it. */
    found: total > 0 ? `${plural(total, one)} found as well: ${shownBy('--json', total)}` : '',
    data: { [name]: data, [`${counts}total_count`]: total, [`${counts}returned_count`]: rows.length },
    print() {
      printTable(rows, columns, out);
      if (rest !== '') out.line(out.paint('dim', rest));
    },
  };
}

const GAP = 2;
/** The last column has at least so much room; the others are shortened for it. */
const LAST_WIDTH_MIN = 16;
const WIDTH_MIN = 5;

/** The columns side by side. The last one takes the room that is left and is wrapped in it, so nothing of it is lost. */
export function printTable<T>(rows: readonly T[], columns: readonly Column<T>[], out: Output): void {
  const shown = columns.filter(({ isData }) => isData !== true);
  const cells = rows.map((row) =>
    shown.map(({ text, shown: short = text }) => visibleLine(textFrom(short(row))).trim()),
  );
  // A column in which nothing stands takes no room.
  const used = shown.flatMap((_, i) => (cells.some((line) => line[i] !== '') ? [i] : []));
  const last = used.at(-1) ?? 0;
  const widths = used.slice(0, -1).map((i) => {
    const texts = [shown[i]?.head ?? shown[i]?.name ?? '', ...cells.map((line) => line[i] ?? '')];
    return texts.reduce((most, text) => Math.max(most, displayWidth(text)), 0);
  });
  squeeze(widths, out.wrapWidth - LAST_WIDTH_MIN - GAP * widths.length);
  const room = widths.reduce((sum, width) => sum + width + GAP, 0);
  const print = (line: readonly string[], paint: (i: number, text: string) => string) => {
    const before = widths.map((width, at) => paint(used[at] ?? 0, toWidth(line[used[at] ?? 0] ?? '', width)));
    const lines = [...wrap(line[last] ?? '', out.wrapWidth - room, 0)];
    for (const [i, text] of lines.entries()) {
      const begin = i === 0 ? before.map((cell) => cell + ' '.repeat(GAP)).join('') : ' '.repeat(room);
      out.verbatim(`${begin}${paint(last, text)}`.trimEnd());
    }
  };
  print(
    shown.map(({ name, head = name }) => head),
    (_, text) => out.paint('dim', text),
  );
  for (const [at, line] of cells.entries())
    print(line, (i, text) => {
      const row = rows[at];
      const colour = row === undefined ? undefined : shown[i]?.colour?.(row);
      return colour === undefined ? text : out.paint(colour, text);
    });
}

/** Takes room from the widest columns until all of them fit. */
function squeeze(widths: number[], room: number): void {
  while (widths.reduce((sum, width) => sum + width, 0) > room) {
    const widest = Math.max(...widths);
    if (widest <= WIDTH_MIN) return;
    widths[widths.indexOf(widest)] = widest - 1;
  }
}
