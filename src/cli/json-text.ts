// Changes one member of a JSON text and leaves every other character as it is: comments, order, indentation and line ends
// belong to whoever wrote the file.

/** A member of an object: its name, where it begins, and where its value begins and ends. */
interface Member {
  readonly name: string;
  readonly start: number;
  readonly from: number;
  readonly to: number;
}

/** Deeper than any configuration. */
const DEPTH_MAX = 100;

/** What a text says. Comments and trailing commas are an error, unless they are allowed. An empty text says nothing yet. */
export function readJson(text: string, allowsComments: boolean): unknown {
  const { plain } = withoutComments(text);
  if (plain.trim() === '') return {};
  const value: unknown = JSON.parse(allowsComments ? plain : text.replace(/^\uFEFF/, ''));
  if (depthOf(plain) > DEPTH_MAX) throw new Error('nested too deeply');
  return value;
}

/** The text with this value at the path. Objects on the way are made where they are missing. */
export function withValue(text: string, path: readonly string[], value: unknown): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const whole = withoutComments(text).plain.trim() === '' ? `${text}{}${eol}` : text;
  const { plain, commas } = withoutComments(whole);
  const unit = /\n([ \t]+)"/.exec(plain)?.[1] ?? '  ';
  const line = (depth: number) => eol + unit.repeat(depth);
  const { open, depth, members, member } = follow(plain, path);
  const rest = path.slice(depth + 1).reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);
  const shown = JSON.stringify(rest, null, unit).replaceAll('\n', line(depth + 1));
  if (member !== undefined) return whole.slice(0, member.from) + shown + whole.slice(member.to);
  const end = members.at(-1)?.to ?? open + 1;
  const close = end + (/^\s*/.exec(plain.slice(end))?.[0].length ?? 0);
  // What is between is white space, a comment, or a comma that closes the last member.
  const comma = members.length > 0 && !commas.slice(end, close).includes(',') ? ',' : '';
  const between = whole.slice(end, close).trimEnd();
  const added = `${line(depth + 1)}${JSON.stringify(path[depth])}: ${shown}${line(depth)}`;
  return whole.slice(0, end) + comma + between + added + whole.slice(close);
}

/** The text without the member at the path; as it was where there is none. */
export function withoutValue(text: string, path: readonly string[]): string {
  const { plain, commas } = withoutComments(text);
  const { open, depth, members, member } = follow(plain, path);
  if (member === undefined || depth < path.length - 1) return text;
  const at = members.indexOf(member);
  const [before, after] = [members[at - 1], members[at + 1]];
  if (after !== undefined) return text.slice(0, member.start) + text.slice(after.start);
  const trailing = /^\s*,/.exec(commas.slice(member.to))?.[0].length ?? 0;
  const end = member.to + trailing;
  if (before !== undefined) return text.slice(0, before.to) + text.slice(end);
  return text.slice(0, open + 1) + text.slice(end).trimStart();
}

/** Goes down the path as far as there are objects: the innermost one, and its member of that name, if it has one. */
function follow(plain: string, path: readonly string[]) {
  let open = plain.indexOf('{');
  for (let depth = 0; ; depth += 1) {
    const members = membersAt(plain, open);
    // Of two with one name, the last counts.
    const member = members.findLast(({ name }) => name === path[depth]);
    if (member === undefined || depth === path.length - 1 || plain[member.from] !== '{')
      return { open, depth, members, member };
    open = member.from;
  }
}

/** The members of the object that begins there. The text is valid JSON. */
function membersAt(plain: string, open: number): Member[] {
  const members: Member[] = [];
  for (let at = open + 1; ; ) {
    const start = skipSpace(plain, plain[skipSpace(plain, at)] === ',' ? skipSpace(plain, at) + 1 : at);
    if (plain[start] !== '"') return members;
    const nameEnd = valueEnd(plain, start);
    const from = skipSpace(plain, plain.indexOf(':', nameEnd) + 1);
    at = valueEnd(plain, from);
    members.push({ name: JSON.parse(plain.slice(start, nameEnd)) as string, start, from, to: at });
  }
}

function skipSpace(text: string, at: number): number {
  let end = at;
  while (end < text.length && /\s/.test(text.charAt(end))) end += 1;
  return end;
}

/** Where the value that begins there ends. Without recursion: a hostile text may be deep. */
function valueEnd(plain: string, from: number): number {
  let depth = 0;
  for (let at = from; at < plain.length; ) {
    const char = plain.charAt(at);
    if (char === '"') at = stringEnd(plain, at);
    else if (char === '{' || char === '[') [depth, at] = [depth + 1, at + 1];
    else if (char === '}' || char === ']') {
      if (depth === 0) return at;
      [depth, at] = [depth - 1, at + 1];
    } else if (depth === 0 && (char === ',' || /\s/.test(char))) return at;
    else {
      at += 1;
      continue;
    }
    if (depth === 0) return at;
  }
  return plain.length;
}

function stringEnd(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function depthOf(plain: string): number {
  let [depth, deepest] = [0, 0];
  for (let at = 0; at < plain.length; at += 1) {
    const char = plain.charAt(at);
    if (char === '"') at = stringEnd(plain, at) - 1;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

/** The text with blanks in the place of comments (`commas`), and of trailing commas as well (`plain`): every place stays. */
function withoutComments(text: string): { readonly commas: string; readonly plain: string } {
  const commas = text.replace(/^\uFEFF/, ' ').split('');
  for (let at = 0; at < commas.length; ) {
    const end = tokenEnd(text, at);
    if (/^\/[/*]/.test(text.slice(at, at + 2)))
      for (let i = at; i < end; i += 1) if (!/[\r\n]/.test(text.charAt(i))) commas[i] = ' ';
    at = end;
  }
  const plain = [...commas];
  let pending = -1;
  for (let at = 0; at < commas.length; ) {
    const char = commas[at] ?? '';
    if ((char === '}' || char === ']') && pending >= 0) plain[pending] = ' ';
    if (!/\s/.test(char)) pending = char === ',' ? at : -1;
    at = char === '"' ? stringEnd(text, at) : at + 1;
  }
  return { commas: commas.join(''), plain: plain.join('') };
}

/** A string or a comment as a whole; anything else one by one. */
function tokenEnd(text: string, at: number): number {
  const ends = (found: number, length: number) => (found === -1 ? text.length : found + length);
  if (text[at] === '"') return stringEnd(text, at);
  if (text.startsWith('//', at)) return ends(text.indexOf('\n', at), 0);
  if (text.startsWith('/*', at)) return ends(text.indexOf('*/', at + 2), 2);
  return at + 1;
}
