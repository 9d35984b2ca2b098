import { Refusal } from './disk.ts';
import type { Cut } from './front-matter.ts';
import { SKILL_LIMITS } from './limits.ts';
import { type Fields, oneLine, readFields } from './yaml.ts';

/** What a SKILL.md says about its skill. Every text is one well-formed line within the limits. */
export interface Declaration {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly capabilities: readonly string[];
  /** Where the file departs from the public format, although the skill was loaded. */
  readonly diagnostics: readonly string[];
}

/** Fields of the public format, those Colibri itself reads, and those known clients add. */
const KNOWN_FIELDS: ReadonlySet<unknown> = new Set([
  ...['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools'],
  ...['version', 'capabilities'],
  ...['disable-model-invocation', 'user-invocable', 'argument-hint', 'context', 'agent', 'model', 'effort'],
  ...['hooks', 'paths'],
]);

/**
 * What the front matter declares. A description is enough to be a skill; anything else that is wrong becomes a
 * diagnostic. The folder's name stands in for a missing one.
 */
export function readDeclaration(cut: Cut, folder: string, fileName: string): Declaration {
  const diagnostics = [...cut.diagnostics];
  const fields = readFields(cut, diagnostics);
  if (fileName !== 'SKILL.md') diagnostics.push('the file is not called SKILL.md');
  const description = readDescription(fields.get('description'), diagnostics);
  const name = readName(fields.get('name'), folder, diagnostics);
  const metadata = readMetadata(fields.get('metadata'), diagnostics);
  const version = readVersion(fields.get('version') ?? metadata.get('version'), diagnostics);
  const listed = fields.get('capabilities') ?? metadata.get('capabilities');
  const capabilities = readCapabilities(listed, diagnostics);
  checkCompatibility(fields.get('compatibility'), diagnostics);
  const unknown = [...fields.keys()].filter((key) => !KNOWN_FIELDS.has(key));
  if (unknown.length > 0) diagnostics.push(`fields outside the format: ${quote(unknown)}`);
  return { name, version, description, capabilities, diagnostics };
}

function readDescription(value: unknown, diagnostics: string[]): string {
  if (isMissing(value)) throw new Refusal('no description');
  if (typeof value !== 'string') throw new Refusal('the description is not text');
  const whole = oneLine(value, Number.POSITIVE_INFINITY);
  if (whole === '') throw new Refusal('no description');
  const max = SKILL_LIMITS.descriptionCharsMax;
  if (whole.length > max)
    diagnostics.push(`the description has ${whole.length} characters; shown are ${max}`);
  return oneLine(whole, max);
}

/** The name the author gave, unless it could be taken for a path or for several lines. */
function readName(value: unknown, folder: string, diagnostics: string[]): string {
  const own = oneLine(folder, SKILL_LIMITS.nameCharsMax);
  const written = typeof value === 'string' ? value.trim() : '';
  const name = oneLine(written, SKILL_LIMITS.nameCharsMax);
  if (name === '' || name !== written || /^\.|[/\\]/.test(name)) {
    const problem = isMissing(value) || value === '' ? 'no name' : 'the name cannot be used';
    diagnostics.push(`${problem}; the folder’s is taken`);
    return own;
  }
  if (!isFormatName(name))
    diagnostics.push('the name is not of lower-case letters, digits and single hyphens');
  if (name !== own) diagnostics.push(`the name differs from the folder’s, ${own}`);
  return name;
}

function isFormatName(name: string): boolean {
  const isNormal = name === name.toLowerCase() && name === name.normalize('NFKC');
  return isNormal && name.split('-').every((part) => /^[\p{L}\p{N}]+$/u.test(part));
}

function readMetadata(value: unknown, diagnostics: string[]): Fields {
  if (isMissing(value)) return new Map();
  if (!(value instanceof Map)) {
    diagnostics.push('metadata is not a map');
    return new Map();
  }
  const odd = [...value].filter(([, held]) => typeof held !== 'string').map(([key]) => key);
  if (odd.length > 0) diagnostics.push(`metadata that is not text: ${quote(odd)}`);
  return value;
}

function readVersion(value: unknown, diagnostics: string[]): string {
  const version = typeof value === 'string' ? oneLine(value, SKILL_LIMITS.versionCharsMax) : '';
  if (version === '' && !isMissing(value)) diagnostics.push('the version is not text');
  return version === '' ? '0.0.0' : version;
}

function readCapabilities(value: unknown, diagnostics: string[]): readonly string[] {
  if (isMissing(value)) return [];
  const items: unknown = typeof value === 'string' ? value.split(/[\s,]/) : value;
  const texts = Array.isArray(items) ? items.filter((item) => typeof item === 'string') : [];
  if (!Array.isArray(items) || texts.length < items.length) {
    diagnostics.push('capabilities are not a list of text');
  }
  const clean = new Set(texts.map((text) => oneLine(text, SKILL_LIMITS.capabilityCharsMax)));
  clean.delete('');
  const max = SKILL_LIMITS.capabilitiesMax;
  if (clean.size > max) diagnostics.push(`${clean.size} capabilities; shown are ${max}`);
  return [...clean].slice(0, max);
}

function checkCompatibility(value: unknown, diagnostics: string[]): void {
  const max = SKILL_LIMITS.compatibilityCharsMax;
  if (value === undefined) return;
  if (typeof value !== 'string') diagnostics.push('compatibility is not text');
  else if (value === '' || value.length > max) {
    diagnostics.push(`compatibility is not of 1 to ${max} characters`);
  }
}

function isMissing(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** The first few keys from a file, short enough for one line. */
function quote(keys: readonly unknown[]): string {
  const shown = keys
    .slice(0, SKILL_LIMITS.quotedMax)
    .map((key) =>
      typeof key === 'string' ? oneLine(key, SKILL_LIMITS.nameCharsMax) : 'one that is not text',
    );
  return shown.join(', ') + (keys.length > shown.length ? ` and ${keys.length - shown.length} more` : '');
}
