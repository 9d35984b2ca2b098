import { FAILSAFE_SCHEMA, load, nullCoreTag, realMapTag, YAMLException } from 'js-yaml';
import { redactText } from '../../secrets.ts';
import { Refusal, SKILL_LIMITS } from './skill-folder.ts';

// Hostile input enters here too: the text of a SKILL.md. Nothing in it is executed.

/** What a SKILL.md says about its skill. The name and description are what YAML reads; every other text is one line. */
export type Declaration = Readonly<ReturnType<typeof readDeclaration>['declared']>;

/** The front matter of a SKILL.md before it is parsed; `firstLine` is the number of its first line in the file. */
type Cut = Readonly<ReturnType<typeof cutFrontMatter>>;

const BOM = Buffer.of(0xef, 0xbb, 0xbf);

/**
 * The bytes between the first two fences. The first is a line of three hyphens; the second may have something behind it,
 * as where the title of the text is stuck to it.
 */
export function cutFrontMatter(file: Buffer) {
  if (/^(fffe|feff)/.test(file.toString('hex', 0, 2)))
    throw new Refusal('the file is UTF-16; save it as UTF-8');
  const begin = file.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
  const bytesMax = SKILL_LIMITS.frontMatterBytesMax;
  const isCut = begin + bytesMax < file.length;
  // In Latin-1 every byte is one character, so the bytes of the YAML can be restored.
  const lines = file.toString('latin1', begin, begin + bytesMax).split('\n');
  if (isCut) lines.pop();

  const open = lines.findIndex((line) => line.trim() !== '');
  if (open !== -1 && lines[open]?.trimEnd() !== '---')
    throw new Refusal('no front matter: the first line is not ---');
  const close = lines.findIndex((line, i) => i > open && /^---(?!-)/.test(line));
  if (close === -1 && isCut)
    throw new Refusal(`the front matter is not closed within ${bytesMax / 1024} KiB`);
  if (open === -1) throw new Refusal('no front matter');
  if (close === -1) throw new Refusal('the front matter is never closed with ---');
  const yaml = lines.slice(open + 1, close).map((line) => `${line}\n`);
  return { yaml: Buffer.from(yaml.join(''), 'latin1'), firstLine: open + 2 };
}

/**
 * What the front matter declares, and what of it is left out. A description is enough to be a skill. Where the text is not
 * YAML, its fields are read one by one.
 */
export function readDeclaration(cut: Cut, folder: string) {
  const { fields, broken } = readFields(cut);
  const leftOut = [...broken].map(([key, reason]) => `${key}: ${reason}`);
  /** A field that is there and of the right form. */
  const take = <T>(from: Fields, key: string, form: string, is: (value: unknown) => value is T) => {
    const value = from.get(key) ?? undefined;
    if (value === undefined || is(value)) return value;
    leftOut.push(`${key}: not ${form}`);
    return undefined;
  };
  const metadata = take(fields, 'metadata', 'a map', isMap) ?? new Map();
  const version = take(fields, 'version', 'text', isText) ?? take(metadata, 'version', 'text', isText);
  const listed =
    take(fields, 'capabilities', 'a list', isTextOrList) ??
    take(metadata, 'capabilities', 'a list', isTextOrList);
  const name = take(fields, 'name', 'text', isText) ?? '';
  const description = readDescription(fields.get('description') ?? '', broken.get('description'));
  const { nameCharsMax, descriptionCharsMax, versionCharsMax } = SKILL_LIMITS;
  if (name.length > nameCharsMax) leftOut.push(`name: longer than ${nameCharsMax} characters, and cut`);
  if (description.length > descriptionCharsMax)
    leftOut.push(`description: longer than ${descriptionCharsMax} characters, and cut`);
  return {
    declared: {
      name: isBlank(name) ? oneLine(folder, nameCharsMax) : verbatim(name, nameCharsMax),
      version: oneLine(version ?? '', versionCharsMax) || '0.0.0',
      description: verbatim(description, descriptionCharsMax),
      capabilities: readCapabilities(isText(listed) ? listed.split(/[\s,]/) : (listed ?? [])),
    },
    leftOut: summary(leftOut),
  };
}

/** The first of them; the rest is counted, so that one file cannot fill an answer. */
function summary(leftOut: readonly string[]): string | undefined {
  const [first] = leftOut;
  if (first === undefined) return undefined;
  const more = leftOut.length === 1 ? '' : `; and ${leftOut.length - 1} more`;
  return `in force, but not all of it is used: ${oneLine(first, 2 * SKILL_LIMITS.quoteCharsMax)}${more}`;
}

function readDescription(value: unknown, broken: string | undefined): string {
  if (broken !== undefined) throw new Refusal(broken);
  if (!isText(value)) throw new Refusal('the description is not text');
  if (isBlank(value)) throw new Refusal('no description');
  return value;
}

function readCapabilities(items: readonly unknown[]): readonly string[] {
  const texts = items.filter(isText);
  const clean = new Set(texts.map((text) => oneLine(text, SKILL_LIMITS.capabilityCharsMax)));
  clean.delete('');
  return [...clean].slice(0, SKILL_LIMITS.capabilitiesMax);
}

const isMap = (value: unknown): value is Fields => value instanceof Map;
const isTextOrList = (value: unknown): value is string | readonly unknown[] =>
  isText(value) || Array.isArray(value);

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Whether nothing of a text can be seen. */
function isBlank(text: string): boolean {
  return !/[^\s\p{Cc}]/u.test(text);
}

/** Text from a file as YAML reads it, well-formed, without known secrets and at most `charsMax` long. */
function verbatim(text: string, charsMax: number): string {
  // A cut through a surrogate pair leaves half a character, which toWellFormed replaces.
  return redactText(text).slice(0, charsMax).toWellFormed();
}

/** The same as one line without control characters. */
function oneLine(text: string, charsMax: number): string {
  // One class, one quantifier: no input makes this expression backtrack.
  const line = redactText(text).replace(/[\s\p{Cc}]+/gu, ' ');
  return line.trim().slice(0, charsMax).toWellFormed();
}

type Fields = ReadonlyMap<unknown, unknown>;

/** The fields of the front matter, and why others cannot be read. */
function readFields({ yaml, firstLine }: Cut) {
  const text = yaml.toString('utf8').replace(/\r\n?/g, '\n');
  const broken = new Map<string, string>();
  const tryYaml = createYamlReader();
  const whole = tryYaml(text, firstLine);
  if (isMap(whole)) return { fields: whole, broken };
  if (/^(<{7}|={7}|>{7})( |$)/m.test(text)) throw new Refusal('it contains a merge conflict');
  const fields = new Map<unknown, unknown>();
  for (const field of cutFields(text)) {
    const { key } = field;
    const value = readField(field, (lines) => tryYaml(lines, firstLine + field.line));
    if (fields.has(key)) broken.set(`${key} appears twice`, 'the last one counts');
    if (value === TOO_BROKEN) {
      if (!fields.has('description')) throw value;
      broken.set('the fields from here on', `${TOO_BROKEN.message} (line ${firstLine + field.line})`);
      break;
    }
    if (value instanceof Refusal) broken.set(key, value.message);
    else fields.set(key, value);
  }
  if (fields.size + broken.size === 0) throw whole;
  return { fields, broken };
}

/** One field at the top, with all its lines; `line` is the number of the first in the front matter, from 0. */
interface Field {
  readonly key: string;
  readonly lines: readonly string[];
  readonly line: number;
}

const KEY = /^ *([\p{L}\p{N}_.-]+)[ \t]*:(?=[ \t]|$)/u;

/** A quoted value that goes on in later lines, at the place of its opening quote. Neither part can match what the next one does. */
const QUOTED = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"|'[^']*(?:''[^']*)*'(?!')/y;

/** The fields at the top. A line that is no key and is not indented belongs to the field above it. */
function* cutFields(text: string): Generator<Field> {
  const lines = text.split('\n');
  const first = lines.find((line) => KEY.test(line)) ?? '';
  const indent = first.length - first.trimStart().length;
  const keyOf = (line: string) => {
    const found = KEY.exec(line);
    return found !== null && line.length - line.trimStart().length <= indent ? found[1] : undefined;
  };
  let offset = 0;
  let field: { key: string; lines: string[]; line: number } | undefined;
  let openUntil = 0;
  for (const [number, line] of lines.entries()) {
    const key = offset < openUntil ? undefined : keyOf(line);
    if (key !== undefined) {
      if (field !== undefined) yield field;
      field = { key, lines: [line.trimStart()], line: number };
      openUntil = endOfValue(text, offset + line.indexOf(':') + 1);
    } else field?.lines.push(line.slice(0, indent).trimStart() + line.slice(indent));
    offset += line.length + 1;
  }
  if (field !== undefined) yield field;
}

/** Where the quoted text, list or map that begins here ends; 0 where there is none, or where more follows on its last line. */
function endOfValue(text: string, from: number): number {
  const [, blanks = '', rest = ''] = /^([ \t]*)(.*)/.exec(text.slice(from, from + 64)) ?? [];
  if (rest === '{' || rest === '[') return text.indexOf(rest === '{' ? '\n}' : '\n]', from) + 1;
  QUOTED.lastIndex = from + blanks.length;
  if (!QUOTED.test(text)) return 0;
  const end = QUOTED.lastIndex;
  return /^[ \t]*(#|\n|$)/.test(text.slice(end, end + 64)) ? end : 0;
}

/** The value of a field as YAML reads it; else with its lines indented, as other parsers read it; else as plain text. */
function readField({ key, lines }: Field, read: (text: string) => Fields | Refusal): unknown {
  const [first = '', ...others] = lines;
  const asWritten = read(lines.join('\n'));
  if (isMap(asWritten)) return asWritten.get(key);
  // A plain name or version does not go on in a line that is not indented; a plain description does, up to a blank line.
  const isPlain = !/:[ \t]*(["'[{|>]|$)/.test(first);
  const isTop = (line: string | undefined) => line !== undefined && /^\S/.test(line);
  if (isPlain && key !== 'description' && others.some(isTop)) return asWritten;
  const end = isPlain ? others.findIndex((line, i) => line.trim() === '' && isTop(others[i + 1])) : -1;
  const own = others.slice(0, end === -1 ? undefined : end);
  const indented = [first, ...own.map((line) => line.replace(/^(?=\S)/, ' '))].join('\n');
  const asOthersRead = read(indented);
  if (isMap(asOthersRead)) return asOthersRead.get(key);
  const asText = read(quotePlainValues(indented, read));
  return isMap(asText) ? asText.get(key) : asText === TOO_BROKEN ? asText : asWritten;
}

// Scalars stay text, so version 1.10 does not become 1.1. Maps are Maps, so no key reaches a prototype.
// There are no tags except those of text, list and map. Duplicate keys are an error.
const SCHEMA = FAILSAFE_SCHEMA.withTags(nullCoreTag, realMapTag);

/** Reads texts from one file as YAML. A file that is broken in many places may cost so many attempts, about 0.1 ms each. */
function createYamlReader() {
  let left = SKILL_LIMITS.yamlAttemptsMax;
  return (text: string, firstLine: number) => (left-- > 0 ? tryYaml(text, firstLine) : TOO_BROKEN);
}

const TOO_BROKEN = new Refusal('too much of the front matter is not valid YAML');

function tryYaml(text: string, firstLine: number): Fields | Refusal {
  try {
    const value = load(text, { schema: SCHEMA, maxDepth: SKILL_LIMITS.yamlDepthMax, maxAliases: 0 });
    return value instanceof Map ? value : new Refusal('the front matter has no fields');
  } catch (error) {
    // Whatever the parser throws is about the text it was given, even a stack overflow.
    if (!(error instanceof YAMLException)) return new Refusal('not valid YAML: the parser gave up');
    const what = oneLine(error.reason, SKILL_LIMITS.quoteCharsMax);
    const where = error.mark === undefined ? '' : ` (line ${error.mark.line + firstLine})`;
    return new Refusal(`not valid YAML: ${what}${where}`);
  }
}

/**
 * A key, its value, and the deeper lines that continue it, whatever they look like. Linear in the text: no two parts that
 * stand next to each other can match the same character, and nothing follows the last one.
 */
const FIELD = /^( *)([\p{L}\p{N}_.-]+): +([^\s#].*(?:\n\1 .*|\n *(?=\n))*)/gmu;

/** Values that would mean something else as text: an anchor, an alias, a tag, a whole list or map. */
const SPECIAL = /^(&|!!|!<|\*[\w-]+$|\[[^\]]*\]$|\{[^}]*\}$)/;

/** A block of text that begins on the line of its key, where YAML allows nothing: `description: > Use when asked.` */
const BLOCK = /^[|>][-+\d]* +/;

/** Quotes values that YAML refuses: `description: Use when: asked`, `description: "Use" it`, `allowed-tools: *`. */
function quotePlainValues(text: string, read: (text: string) => Fields | Refusal): string {
  const untabbed = text.replace(/^[\t ]+/gm, (blanks) => blanks.replaceAll('\t', '  '));
  return untabbed.replace(FIELD, (field: string, indent: string, key: string, lines: string) => {
    if (isMap(read(field))) return field;
    const value = plainText(lines);
    return SPECIAL.test(value) ? field : `${indent}${key}: '${value.replaceAll("'", "''")}'`;
  });
}

/** A value as one line: without comments where it is plain, without its quotes where it is quoted, however badly. */
function plainText(value: string): string {
  const lines = value.split('\n').map((line) => line.trim());
  const joined = lines.join(' ').trimEnd();
  if (BLOCK.test(joined)) return joined.replace(BLOCK, '');
  const [quote = ''] = joined;
  if (quote !== '"' && quote !== "'")
    return lines
      .map((line) => line.replace(/ #.*/, ''))
      .join(' ')
      .trimEnd();
  const next = joined.indexOf(quote, 1);
  // In `"One" and "two"` the quotes at the ends are not a pair; in `"Say "one" twice"` they are.
  const isAround = next === -1 || next === joined.length - 1 || /[^\s.,;:!?)]/.test(joined[next + 1] ?? '');
  if (!isAround) return joined;
  return joined.slice(1, joined.length > 1 && joined.endsWith(quote) ? -1 : undefined);
}
