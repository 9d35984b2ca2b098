import { isUtf8 } from 'node:buffer';
import { FAILSAFE_SCHEMA, load, nullCoreTag, realMapTag, YAMLException } from 'js-yaml';
import { redactText } from '../../secrets.ts';
import { Refusal } from './disk.ts';
import type { Cut } from './front-matter.ts';
import { SKILL_LIMITS } from './limits.ts';

export type Fields = ReadonlyMap<unknown, unknown>;

/** Reads the fields the way people really write them. Hostile input enters here; nothing in it is executed. */
export function readFields(cut: Cut, diagnostics: string[]): Fields {
  if (!isUtf8(cut.yaml)) diagnostics.push('not all of the front matter is UTF-8; the rest was replaced');
  const text = cut.yaml.toString('utf8');
  if (text.includes('\r\n')) diagnostics.push('lines end with CRLF');
  return readYaml(text.replaceAll('\r\n', '\n'), cut.firstLine, diagnostics);
}

/** Reads the text as it is, or else with plain values quoted: a colon in a description is the commonest mistake. */
function readYaml(text: string, firstLine: number, diagnostics: string[]): Fields {
  const fields = tryYaml(text, firstLine);
  if (!(fields instanceof Refusal)) return fields;
  const repaired = quotePlainValues(text);
  const second = repaired.text === text ? fields : tryYaml(repaired.text, firstLine);
  if (second instanceof Refusal) throw fields;
  const keys = repaired.quoted.slice(0, SKILL_LIMITS.quotedMax).join(', ');
  const how = keys === '' ? 'tabs as blanks' : `${keys} in quotes`;
  diagnostics.push(`${fields.message}; read with ${how}`);
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
    return new Refusal(`not valid YAML: ${describeError(error, firstLine)}`);
  }
}

function describeError(error: unknown, firstLine: number): string {
  if (!(error instanceof YAMLException)) return 'the parser gave up';
  const what = oneLine(error.reason, SKILL_LIMITS.quoteCharsMax);
  return error.mark === undefined ? what : `${what} (line ${error.mark.line + firstLine})`;
}

/** Text from a file as one well-formed line without known secrets or control characters, at most `charsMax` long. */
export function oneLine(text: string, charsMax: number): string {
  // One class, one quantifier: no input makes this expression backtrack.
  const line = redactText(text)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  // A cut through a surrogate pair leaves half a character, which toWellFormed replaces.
  return line.slice(0, charsMax).toWellFormed();
}

/**
 * Quotes the plain values that YAML takes for something else: `description: Use when: asked`, `argument-hint: [a] [b]`,
 * `allowed-tools: *`. It examines line by line; no pattern can backtrack. `quoted` are the keys of those values.
 */
function quotePlainValues(text: string): { text: string; quoted: string[] } {
  const lines = text.split('\n').map(blanksForTabs);
  const out: string[] = [];
  const quoted: string[] = [];
  for (let i = 0, end = 0; i < lines.length; i = end) {
    const field = asField(lines[i] ?? '');
    // Deeper lines after a value continue it, whatever they look like.
    end = field === undefined ? i + 1 : endOfDeeper(lines, i + 1, field.indent);
    const more = lines.slice(i + 1, end).map((line) => line.trim());
    const value = [field?.value, ...more].join(' ').trimEnd();
    if (field === undefined || !isMisread(value)) out.push(...lines.slice(i, end));
    else {
      out.push(`${' '.repeat(field.indent)}${field.key}: '${value.replaceAll("'", "''")}'`);
      quoted.push(field.key);
    }
  }
  return { text: out.join('\n'), quoted };
}

function blanksForTabs(line: string): string {
  const content = line.trimStart();
  return line.slice(0, line.length - content.length).replaceAll('\t', '  ') + content;
}

const KEY = /^[\w.-]+$/;

/** The key and value on a line, if it has both. */
function asField(line: string): { indent: number; key: string; value: string } | undefined {
  const trimmed = line.trimStart();
  const colon = trimmed.indexOf(':');
  const key = trimmed.slice(0, Math.max(0, colon));
  const after = trimmed.slice(colon + 1);
  const value = after.trim();
  if (!KEY.test(key) || !after.startsWith(' ') || value === '' || value.startsWith('#')) return undefined;
  return { indent: line.length - trimmed.length, key, value };
}

function endOfDeeper(lines: readonly string[], from: number, indent: number): number {
  let end = from;
  for (let i = from; i < lines.length; i += 1) {
    const line = lines[i] ?? '';
    const trimmed = line.trimStart();
    if (trimmed === '') continue;
    if (line.length - trimmed.length <= indent) break;
    end = i + 1;
  }
  return end;
}

/** Whether a value that was meant as plain text means something else in YAML. */
function isMisread(value: string): boolean {
  const first = value.charAt(0);
  if ('"\'|>&'.includes(first)) return false;
  if ('@`%'.includes(first)) return true;
  if (first === '!') return value[1] !== '!' && value[1] !== '<';
  // A lone alias stays an alias, and is refused as one.
  if (first === '*') return value === '*' || value.includes(' ');
  if (first === '[') return closesEarly(value, '[', ']');
  if (first === '{') return closesEarly(value, '{', '}');
  const text = value.replace(/ #.*/s, '').trimEnd();
  return text.includes(': ') || text.endsWith(':') || text.startsWith('- ') || text.startsWith('? ');
}

/** Whether the bracket at the start of the value is closed before the end, and text follows. */
function closesEarly(value: string, open: string, close: string): boolean {
  let depth = 0;
  for (let i = 0; i < value.length; i += 1) {
    if (value[i] === open) depth += 1;
    if (value[i] === close) depth -= 1;
    if (depth > 0) continue;
    const rest = value.slice(i + 1).trim();
    return rest !== '' && !rest.startsWith('#');
  }
  return false;
}
