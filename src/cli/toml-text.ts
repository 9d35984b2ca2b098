import type { Entry } from './clients.ts';

// Changes one table of a TOML text and leaves everything else as it is. It knows where statements begin and end, no more.

/** A line that begins a table, or a key with its value. */
interface Statement {
  readonly kind: 'table' | 'pair';
  /** The whole path: that of the table, with the key behind it. */
  readonly path: readonly string[];
  readonly start: number;
  readonly end: number;
}

/** The text with the table of that path, its keys set and those of others kept. Undefined where it is written in another form. */
export function withTable(text: string, path: readonly string[], entry: Entry): string | undefined {
  const all = statementsOf(text);
  if (isOtherForm(all, path)) return undefined;
  const header = all.find((statement) => statement.kind === 'table' && isAt(statement, path));
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  if (header === undefined) {
    const isTable = (key: string) => all.some((statement) => isAt(statement, [...path, key]));
    const ours = Object.fromEntries(Object.entries(entry).filter(([key]) => !isTable(key)));
    const gap = text === '' ? '' : text.endsWith('\n') ? eol : eol + eol;
    const added = `${text}${gap}${tableText(path, ours).replaceAll('\n', eol)}${eol}`;
    // Tables below it that are there already get what they lack.
    return all.some(({ path: at }) => isAt({ path: at.slice(0, -1) }, path))
      ? withTable(added, path, entry)
      : added;
  }
  // From the last to the first, so that the places before stay right.
  const places = Object.entries(entry).map(([key, value]) => placeOf(all, header, path, key, value));
  places.sort((a, b) => b.start - a.start);
  return places.reduce(
    (result, { start, end, line }) => result.slice(0, start) + line.replaceAll('\n', eol) + result.slice(end),
    text,
  );
}

/** The text without that table and those below it. */
export function withoutTable(text: string, path: readonly string[]): string {
  const all = statementsOf(text);
  const isOurs = ({ path: at }: Statement) => path.every((name, i) => at[i] === name);
  const tables = all.filter(({ kind }) => kind === 'table');
  return tables
    .map((table, i) => ({ table, end: tables[i + 1]?.start ?? text.length }))
    .filter(({ table }) => isOurs(table))
    .reduceRight((result, { table, end }) => {
      const [before, after] = [result.slice(0, table.start).trimEnd(), result.slice(end)];
      return before === '' ? after : `${before}\n${after === '' ? '' : `\n${after}`}`;
    }, text);
}

/** A table as a whole. */
export function tableText(path: readonly string[], entry: Entry): string {
  return [
    `[${path.map(keyText).join('.')}]`,
    ...Object.entries(entry).map(([key, value]) => pairText(key, value)),
  ].join('\n');
}

/** Where a key is set, or behind the header where it is not. Of a table within, only what is missing is added. */
function placeOf(
  all: readonly Statement[],
  header: Statement,
  path: readonly string[],
  key: string,
  value: unknown,
): { start: number; end: number; line: string } {
  const inner = all.find((statement) => statement.kind === 'table' && isAt(statement, [...path, key]));
  if (inner !== undefined) {
    const has = (name: string) => all.some((statement) => isAt(statement, [...path, key, name]));
    const missing = Object.entries(Object(value)).filter(([name]) => !has(name));
    const line = missing.map(([name, content]) => `\n${pairText(name, content)}`).join('');
    return { start: inner.end, end: inner.end, line };
  }
  const pair = all.find((statement) => statement.kind === 'pair' && isAt(statement, [...path, key]));
  const line = pairText(key, value);
  if (pair === undefined) return { start: header.end, end: header.end, line: `\n${line}` };
  return { start: pair.start, end: pair.end, line };
}

/** Whether the table is there as an inline table, as dotted keys or as one of a list. */
function isOtherForm(all: readonly Statement[], path: readonly string[]): boolean {
  return all.some(({ kind, path: at }, i) => {
    if (kind !== 'pair') return at.at(-1) === '[]' && path.every((name, k) => at[k] === name);
    const table = all.slice(0, i).findLast((statement) => statement.kind === 'table')?.path ?? [];
    const isInside = path.every((name, k) => table[k] === name);
    return !isInside && path.every((name, k) => k >= at.length || at[k] === name) && at.length > table.length;
  });
}

function isAt(statement: Pick<Statement, 'path'>, path: readonly string[]): boolean {
  return statement.path.length === path.length && path.every((name, i) => statement.path[i] === name);
}

function statementsOf(text: string): Statement[] {
  const statements: Statement[] = [];
  let table: readonly string[] = [];
  for (let at = 0; at < text.length; ) {
    const start = skipBlank(text, at);
    if (start >= text.length) return statements;
    if (text[start] === '[') {
      const isList = text[start + 1] === '[';
      const { keys, end } = readKeys(text, start + (isList ? 2 : 1));
      table = isList ? [...keys, '[]'] : keys;
      at = text.indexOf(']', end) + (isList ? 2 : 1);
      if (at === 0) throw new Error('a table has no end');
      statements.push({ kind: 'table', path: table, start, end: at });
    } else {
      const { keys, end } = readKeys(text, start);
      if (text[end] !== '=') throw new Error(`there is no value for ${keys.join('.') || 'a key'}`);
      at = valueEnd(text, end + 1);
      statements.push({ kind: 'pair', path: [...table, ...keys], start, end: at });
    }
  }
  return statements;
}

/** Behind white space, line ends and comments. */
function skipBlank(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    if (text[at] === '#') at = lineEnd(text, at);
    else if (/\s/.test(text.charAt(at))) at += 1;
    else break;
  }
  return at;
}

/** Names with dots between them. */
function readKeys(text: string, from: number): { keys: string[]; end: number } {
  const keys: string[] = [];
  for (let at = from; ; at += 1) {
    const found = /^[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+)[ \t]*/.exec(text.slice(at));
    if (found === null) return { keys, end: at };
    const [whole, name = ''] = found;
    keys.push(name.startsWith('"') ? String(JSON.parse(name)) : name.replace(/^'(.*)'$/, '$1'));
    at += whole.length;
    if (text[at] !== '.') return { keys, end: at };
  }
}

/** Behind the value, before the comment or the line end that may follow. */
function valueEnd(text: string, from: number): number {
  let depth = 0;
  let end = from;
  for (let at = from; at < text.length; ) {
    const char = text.charAt(at);
    if (depth === 0 && (char === '\n' || char === '#')) break;
    if (char === '"' || char === "'") at = stringEnd(text, at);
    else if (char === '#') at = lineEnd(text, at);
    else {
      if (char === '[' || char === '{') depth += 1;
      else if (char === ']' || char === '}') depth -= 1;
      at += 1;
    }
    if (!/\s/.test(char)) end = at;
  }
  return end;
}

function stringEnd(text: string, from: number): number {
  const quote = text.charAt(from);
  const mark = text.startsWith(quote.repeat(3), from) ? quote.repeat(3) : quote;
  for (let at = from + mark.length; at < text.length; at += 1) {
    if (quote === '"' && text[at] === '\\') at += 1;
    else if (text.startsWith(mark, at)) return at + mark.length;
  }
  throw new Error('a text has no end');
}

function lineEnd(text: string, from: number): number {
  const at = text.indexOf('\n', from);
  return at === -1 ? text.length : at;
}

const pairText = (key: string, value: unknown) => `${keyText(key)} = ${valueText(value)}`;
const keyText = (key: string) => (/^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key));

// A JSON text is also a TOML basic string: both escape in the same way.
function valueText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(valueText).join(', ')}]`;
  return `{ ${Object.entries(value)
    .map(([key, content]) => pairText(key, content))
    .join(', ')} }`;
}
