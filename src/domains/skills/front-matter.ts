import { isUtf8 } from 'node:buffer';
import { FAILSAFE_SCHEMA, load, nullCoreTag, realMapTag, YAMLException } from 'js-yaml';
import { redactText } from '../../secrets.ts';
import { Refusal } from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';

// Hostile input enters here too: the text of a SKILL.md. Nothing in it is executed.

/** What a SKILL.md says about its skill. Every text is one well-formed line within the limits. */
export interface Declaration {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly capabilities: readonly string[];
  /** Where the file departs from the public format, although the skill was loaded. */
  readonly diagnostics: readonly string[];
}

/** The front matter of a SKILL.md before it is parsed. */
export interface Cut {
  readonly yaml: Buffer;
  /** The number of the first YAML line in the file, for messages. */
  readonly firstLine: number;
  readonly diagnostics: readonly string[];
}

const BOM = Buffer.of(0xef, 0xbb, 0xbf);

/** The bytes between the first two fences. A fence is a line of three hyphens; blanks may follow. */
export function cutFrontMatter(file: Buffer): Cut {
  if (/^(fffe|feff)/.test(file.toString('hex', 0, 2)))
    throw new Refusal('the file is UTF-16; save it as UTF-8');
  const begin = file.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
  const bytesMax = SKILL_LIMITS.frontMatterBytesMax;
  const isCut = begin + bytesMax < file.length;
  // In Latin-1 every byte is one character, so the bytes of the YAML can be restored.
  const lines = file.toString('latin1', begin, begin + bytesMax).split('\n');
  if (isCut) lines.pop();
  const trimmed = lines.map((line) => line.trimEnd());

  const open = trimmed.findIndex((line) => line !== '');
  if (open !== -1 && trimmed[open] !== '---') throw new Refusal('no front matter: the first line is not ---');
  const close = trimmed.indexOf('---', open + 1);
  if (close === -1 && isCut)
    throw new Refusal(`the front matter is not closed within ${bytesMax / 1024} KiB`);
  if (open === -1) throw new Refusal('no front matter');
  if (close === -1) throw new Refusal('the front matter is never closed with ---');
  const yaml = lines.slice(open + 1, close).map((line) => `${line}\n`);
  const diagnostics = [
    ...(begin > 0 ? ['the file begins with a byte order mark'] : []),
    ...(open > 0 ? ['blank lines before the front matter'] : []),
  ];
  return { yaml: Buffer.from(yaml.join(''), 'latin1'), firstLine: open + 2, diagnostics };
}

/** Fields of the public format, those Colibri itself reads, and those known clients add. */
const KNOWN_FIELDS: ReadonlySet<unknown> = new Set([
  ...['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools'],
  ...['version', 'capabilities'],
  ...['disable-model-invocation', 'user-invocable', 'argument-hint', 'context', 'agent', 'model', 'effort'],
  ...['hooks', 'paths'],
]);

/** Adds a diagnostic if something is odd. */
type Note = (isOdd: boolean, what: string) => void;

/**
 * What the front matter declares. A description is enough to be a skill; anything else that is wrong becomes a
 * diagnostic. The folder's name stands in for a missing one.
 */
export function readDeclaration(cut: Cut, folder: string, fileName: string): Declaration {
  const diagnostics = [...cut.diagnostics];
  const note: Note = (isOdd, what) => void (isOdd && diagnostics.push(what));
  const fields = readFields(cut, note);
  note(fileName !== 'SKILL.md', 'the file is not called SKILL.md');
  const description = readDescription(fields.get('description'), note);
  const name = readName(fields.get('name'), oneLine(folder, SKILL_LIMITS.nameCharsMax), note);
  const given = fields.get('metadata') ?? new Map();
  note(!(given instanceof Map), 'metadata is not a map');
  const metadata: Fields = given instanceof Map ? given : new Map();
  noteKeys(
    'metadata that is not text',
    [...metadata.keys()].filter((key) => !isText(metadata.get(key))),
    note,
  );
  const version = readVersion(fields.get('version') ?? metadata.get('version'), note);
  const capabilities = readCapabilities(fields.get('capabilities') ?? metadata.get('capabilities'), note);
  checkCompatibility(fields.get('compatibility') ?? 'any', note);
  noteKeys(
    'fields outside the format',
    [...fields.keys()].filter((key) => !KNOWN_FIELDS.has(key)),
    note,
  );
  return { name, version, description, capabilities, diagnostics };
}

function readDescription(value: unknown, note: Note): string {
  const whole = isText(value) ? oneLine(value, Number.POSITIVE_INFINITY) : '';
  if (!isText(value ?? '')) throw new Refusal('the description is not text');
  if (whole === '') throw new Refusal('no description');
  const max = SKILL_LIMITS.descriptionCharsMax;
  note(whole.length > max, `the description has ${whole.length} characters; shown are ${max}`);
  return oneLine(whole, max);
}

/** The name the author gave, unless it could be taken for a path or for several lines. */
function readName(value: unknown, folder: string, note: Note): string {
  const written = isText(value) ? value.trim() : '';
  const name = oneLine(written, SKILL_LIMITS.nameCharsMax);
  if (name === '' || name !== written || /^\.|[/\\]/.test(name)) {
    note(true, `${(value ?? '') === '' ? 'no name' : 'the name cannot be used'}; the folder’s is taken`);
    return folder;
  }
  const isNormal = name === name.toLowerCase() && name === name.normalize('NFKC');
  const isFormatName = isNormal && name.split('-').every((part) => /^[\p{L}\p{N}]+$/u.test(part));
  note(!isFormatName, 'the name is not of lower-case letters, digits and single hyphens');
  note(name !== folder, `the name differs from the folder’s, ${folder}`);
  return name;
}

function readVersion(value: unknown, note: Note): string {
  const version = isText(value) ? oneLine(value, SKILL_LIMITS.versionCharsMax) : '';
  note(version === '' && (value ?? undefined) !== undefined, 'the version is not text');
  return version === '' ? '0.0.0' : version;
}

function readCapabilities(value: unknown, note: Note): readonly string[] {
  const items: unknown = isText(value) ? value.split(/[\s,]/) : (value ?? []);
  const texts = Array.isArray(items) ? items.filter(isText) : [];
  note(!Array.isArray(items) || texts.length < items.length, 'capabilities are not a list of text');
  const clean = new Set(texts.map((text) => oneLine(text, SKILL_LIMITS.capabilityCharsMax)));
  clean.delete('');
  const max = SKILL_LIMITS.capabilitiesMax;
  note(clean.size > max, `${clean.size} capabilities; shown are ${max}`);
  return [...clean].slice(0, max);
}

function checkCompatibility(value: unknown, note: Note): void {
  const max = SKILL_LIMITS.compatibilityCharsMax;
  note(!isText(value), 'compatibility is not text');
  note(
    isText(value) && (value === '' || value.length > max),
    `compatibility is not of 1 to ${max} characters`,
  );
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

/** Names the first few keys from a file, short enough for one line. */
function noteKeys(what: string, keys: readonly unknown[], note: Note): void {
  const shown = keys
    .slice(0, SKILL_LIMITS.quotedMax)
    .map((key) => (isText(key) ? oneLine(key, SKILL_LIMITS.nameCharsMax) : 'one that is not text'));
  const more = keys.length > shown.length ? ` and ${keys.length - shown.length} more` : '';
  note(keys.length > 0, `${what}: ${shown.join(', ')}${more}`);
}

/** Text from a file as one well-formed line without known secrets or control characters, at most `charsMax` long. */
function oneLine(text: string, charsMax: number): string {
  // One class, one quantifier: no input makes this expression backtrack.
  const line = redactText(text)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  // A cut through a surrogate pair leaves half a character, which toWellFormed replaces.
  return line.slice(0, charsMax).toWellFormed();
}

type Fields = ReadonlyMap<unknown, unknown>;

/** Reads the text as it is, or else with plain values quoted: a colon in a description is the commonest mistake. */
function readFields({ yaml, firstLine }: Cut, note: Note): Fields {
  note(!isUtf8(yaml), 'not all of the front matter is UTF-8; the rest was replaced');
  const read = yaml.toString('utf8');
  note(read.includes('\r\n'), 'lines end with CRLF');
  const text = read.replaceAll('\r\n', '\n');
  const fields = tryYaml(text, firstLine);
  if (!(fields instanceof Refusal)) return fields;
  const repaired = quotePlainValues(text);
  const second = tryYaml(repaired.text, firstLine);
  if (second instanceof Refusal) throw fields;
  const keys = repaired.quoted.slice(0, SKILL_LIMITS.quotedMax).join(', ');
  note(true, `${fields.message}; read with ${keys === '' ? 'tabs as blanks' : `${keys} in quotes`}`);
  return second;
}

// Scalars stay text, so version 1.10 does not become 1.1. Maps are Maps, so no key reaches a prototype.
// There are no tags except those of text, list and map. Duplicate keys are an error.
const SCHEMA = FAILSAFE_SCHEMA.withTags(nullCoreTag, realMapTag);

function tryYaml(text: string, firstLine: number): Fields | Refusal {
  try {
    const value = load(text, { schema: SCHEMA, maxDepth: SKILL_LIMITS.yamlDepthMax, maxAliases: 0 });
    return value instanceof Map ? value : new Refusal('the front matter holds no fields');
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
const FIELD = /^( *)([\w.-]+): +([^\s#].*(?:\n\1 .*|\n *(?=\n))*)/gm;

/** Values that mean themselves: quoted, a block, a whole list or map, an anchor, an alias, a tag, nothing. */
const SPECIAL = /^(["'|>&]|!!|!<|\*\S+$|\[[^\]]*\]$|\{[^}]*\}$|(null|~)$)/;

/**
 * Quotes the plain values, some of which YAML takes for something else: `description: Use when: asked`,
 * `argument-hint: [a] [b]`, `allowed-tools: *`. `quoted` are the keys of those values.
 */
function quotePlainValues(text: string): { text: string; quoted: string[] } {
  const quoted: string[] = [];
  const untabbed = text.replace(/^[\t ]+/gm, (blanks) => blanks.replaceAll('\t', '  '));
  const quote = (field: string, indent: string, key: string, lines: string): string => {
    const parts = lines.split('\n').map((line) => line.replace(/ #.*/, '').trim());
    const value = parts.join(' ').trimEnd();
    if (SPECIAL.test(value)) return field;
    quoted.push(key);
    return `${indent}${key}: '${value.replaceAll("'", "''")}'`;
  };
  return { text: untabbed.replace(FIELD, quote), quoted };
}
