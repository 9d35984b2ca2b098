import { FAILSAFE_SCHEMA, load, nullCoreTag, realMapTag, YAMLException } from 'js-yaml';
import { redactText } from '../../secrets.ts';
import { Refusal, SKILL_LIMITS } from './skill-folder.ts';

// Hostile input enters here too: the text of a SKILL.md. Nothing in it is executed.

/** What a SKILL.md says about its skill. Every text is one well-formed line within the limits. */
export type Declaration = Readonly<ReturnType<typeof readDeclaration>>;

/** The front matter of a SKILL.md before it is parsed; `firstLine` is the number of its first line in the file. */
type Cut = Readonly<ReturnType<typeof cutFrontMatter>>;

const BOM = Buffer.of(0xef, 0xbb, 0xbf);

/** The bytes between the first two fences. A fence is a line of three hyphens; blanks may follow. */
export function cutFrontMatter(file: Buffer) {
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
  return { yaml: Buffer.from(yaml.join(''), 'latin1'), firstLine: open + 2 };
}

/** What the front matter declares. A description is enough to be a skill; other fields of a wrong form are left out. */
export function readDeclaration(cut: Cut, folder: string) {
  const fields = readFields(cut);
  const given = fields.get('metadata');
  const metadata: Fields = given instanceof Map ? given : new Map();
  const version = fields.get('version') ?? metadata.get('version');
  const listed = fields.get('capabilities') ?? metadata.get('capabilities');
  return {
    name: readName(fields.get('name')) ?? oneLine(folder, SKILL_LIMITS.nameCharsMax),
    version: (isText(version) && oneLine(version, SKILL_LIMITS.versionCharsMax)) || '0.0.0',
    description: readDescription(fields.get('description') ?? ''),
    capabilities: readCapabilities(isText(listed) ? listed.split(/[\s,]/) : listed),
  };
}

function readDescription(value: unknown): string {
  if (!isText(value)) throw new Refusal('the description is not text');
  const description = oneLine(value, SKILL_LIMITS.descriptionCharsMax);
  if (description === '') throw new Refusal('no description');
  return description;
}

/** The name the author gave, unless it could be taken for a path or for several lines. */
function readName(value: unknown): string | undefined {
  const written = isText(value) ? value.trim() : '';
  const name = oneLine(written, SKILL_LIMITS.nameCharsMax);
  return name === '' || name !== written || /^\.|[/\\]/.test(name) ? undefined : name;
}

function readCapabilities(items: unknown): readonly string[] {
  const texts = Array.isArray(items) ? items.filter(isText) : [];
  const clean = new Set(texts.map((text) => oneLine(text, SKILL_LIMITS.capabilityCharsMax)));
  clean.delete('');
  return [...clean].slice(0, SKILL_LIMITS.capabilitiesMax);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
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
function readFields({ yaml, firstLine }: Cut): Fields {
  const text = yaml.toString('utf8').replaceAll('\r\n', '\n');
  const fields = tryYaml(text, firstLine);
  if (!(fields instanceof Refusal)) return fields;
  const repaired = tryYaml(quotePlainValues(text), firstLine);
  if (repaired instanceof Refusal) throw fields;
  return repaired;
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

/** Quotes plain values, some of which YAML takes for something else: `description: Use when: asked`, `allowed-tools: *`. */
function quotePlainValues(text: string): string {
  const untabbed = text.replace(/^[\t ]+/gm, (blanks) => blanks.replaceAll('\t', '  '));
  return untabbed.replace(FIELD, (field: string, indent: string, key: string, lines: string) => {
    const parts = lines.split('\n').map((line) => line.replace(/ #.*/, '').trim());
    const value = parts.join(' ').trimEnd();
    return SPECIAL.test(value) ? field : `${indent}${key}: '${value.replaceAll("'", "''")}'`;
  });
}
