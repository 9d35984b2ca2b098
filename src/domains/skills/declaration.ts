import { isRefusal, type Refusal } from './disk.ts';
import { cutFrontMatter, type FrontMatter, readFrontMatter } from './front-matter.ts';
import { SKILL_LIMITS } from './limits.ts';
import { oneLine } from './one-line.ts';

/** What a SKILL.md says of its skill. All text is one well-formed line within the limits. */
export interface Declaration {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly capabilities: readonly string[];
  /** What the public format would not have, though the skill was loaded. */
  readonly diagnostics: readonly string[];
}

type Fields = ReadonlyMap<unknown, unknown>;

/** Fields of the public format, those Colibri itself reads, and those known clients add. */
const KNOWN_FIELDS: ReadonlySet<unknown> = new Set([
  ...['name', 'description', 'license', 'compatibility', 'metadata', 'allowed-tools'],
  ...['version', 'capabilities'],
  ...['disable-model-invocation', 'user-invocable', 'argument-hint', 'context', 'agent', 'model', 'effort'],
  ...['hooks', 'paths'],
]);

/** Reads the head of a SKILL.md, and says how much YAML that took. */
export function readDeclaration(
  file: Buffer,
  folder: string,
  fileName: string,
): { readonly yamlBytes: number; readonly declared: Declaration | Refusal } {
  const cut = cutFrontMatter(file);
  if (isRefusal(cut)) return { yamlBytes: 0, declared: cut };
  const head = readFrontMatter(cut);
  return { yamlBytes: cut.yaml.length, declared: isRefusal(head) ? head : declare(head, folder, fileName) };
}

/** A description is enough to be a skill. Everything else that is wrong is said, not punished. */
function declare(head: FrontMatter, folder: string, fileName: string): Declaration | Refusal {
  const { fields } = head;
  const say: string[] = [...head.diagnostics];
  if (fileName !== 'SKILL.md') say.push('the file is not called SKILL.md');

  const description = readDescription(fields, say);
  if (typeof description === 'object') return description;
  const name = readName(fields, folder, say);
  const metadata = readMetadata(fields, say);
  const version = readVersion(fields.get('version') ?? metadata.get('version'), say);
  const capabilities = readCapabilities(fields.get('capabilities') ?? metadata.get('capabilities'), say);
  checkCompatibility(fields.get('compatibility'), say);
  const unknown = [...fields.keys()].filter((key) => !KNOWN_FIELDS.has(key));
  if (unknown.length > 0) say.push(`fields outside the format: ${quote(unknown)}`);
  return { name, version, description, capabilities, diagnostics: say };
}

function readDescription(fields: Fields, say: string[]): string | Refusal {
  const value = fields.get('description') ?? undefined;
  if (value === undefined) return { reason: 'no description' };
  if (typeof value !== 'string') return { reason: 'the description is not text' };
  const whole = oneLine(value, Number.POSITIVE_INFINITY);
  if (whole === '') return { reason: 'no description' };
  const max = SKILL_LIMITS.descriptionCharsMax;
  if (whole.length > max) say.push(`the description has ${whole.length} characters; shown are ${max}`);
  return oneLine(whole, max);
}

/** The name the author gave, unless it could be taken for a path or for several lines. */
function readName(fields: Fields, folder: string, say: string[]): string {
  const own = oneLine(folder, SKILL_LIMITS.nameCharsMax);
  const value = fields.get('name') ?? undefined;
  if (value === undefined || value === '') {
    say.push('no name; the folder’s is taken');
    return own;
  }
  const written = typeof value === 'string' ? value.trim() : '';
  const name = oneLine(written, SKILL_LIMITS.nameCharsMax);
  if (name === '' || name !== written || name.includes('/') || name.includes('\\') || name.startsWith('.')) {
    say.push('the name cannot be used; the folder’s is taken');
    return own;
  }
  if (!isFormatName(name)) say.push('the name is not of lower-case letters, digits and single hyphens');
  if (name !== own) say.push(`the name differs from the folder’s, ${own}`);
  return name;
}

function isFormatName(name: string): boolean {
  return (
    name === name.toLowerCase() &&
    name.normalize('NFKC') === name &&
    name.split('-').every((part) => /^[\p{L}\p{N}]+$/u.test(part))
  );
}

function readMetadata(fields: Fields, say: string[]): Fields {
  const value = fields.get('metadata') ?? undefined;
  if (value === undefined) return new Map();
  if (!(value instanceof Map)) {
    say.push('metadata is not a map');
    return new Map();
  }
  const odd = [...value].filter(([, held]) => typeof held !== 'string').map(([key]) => key);
  if (odd.length > 0) say.push(`metadata that is not text: ${quote(odd)}`);
  return value;
}

function readVersion(value: unknown, say: string[]): string {
  const version = typeof value === 'string' ? oneLine(value, SKILL_LIMITS.versionCharsMax) : '';
  if (version !== '') return version;
  if (value !== undefined && value !== null) say.push('the version is not text');
  return '0.0.0';
}

function readCapabilities(value: unknown, say: string[]): readonly string[] {
  if (value === undefined || value === null) return [];
  const items: unknown[] =
    typeof value === 'string' ? value.split(/[\s,]/) : Array.isArray(value) ? value : [{}];
  const texts = items.filter((item) => typeof item === 'string');
  if (texts.length < items.length) say.push('capabilities are not a list of text');
  const clean = texts
    .map((text) => oneLine(text, SKILL_LIMITS.capabilityCharsMax))
    .filter((text) => text !== '');
  const distinct = [...new Set(clean)];
  if (distinct.length > SKILL_LIMITS.capabilitiesMax) {
    say.push(`${distinct.length} capabilities; shown are ${SKILL_LIMITS.capabilitiesMax}`);
  }
  return distinct.slice(0, SKILL_LIMITS.capabilitiesMax);
}

function checkCompatibility(value: unknown, say: string[]): void {
  if (value === undefined) return;
  if (typeof value !== 'string') say.push('compatibility is not text');
  else if (value === '' || value.length > SKILL_LIMITS.compatibilityCharsMax) {
    say.push(`compatibility is not of 1 to ${SKILL_LIMITS.compatibilityCharsMax} characters`);
  }
}

/** The first few of strangers' keys, short enough for one line. */
function quote(keys: readonly unknown[]): string {
  const shown = keys
    .slice(0, SKILL_LIMITS.quotedMax)
    .map((key) =>
      typeof key === 'string' ? oneLine(key, SKILL_LIMITS.nameCharsMax) : 'one that is not text',
    );
  return shown.join(', ') + (keys.length > shown.length ? ` and ${keys.length - shown.length} more` : '');
}
