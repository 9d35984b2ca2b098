import { isUtf8 } from 'node:buffer';
import { FAILSAFE_SCHEMA, load, nullCoreTag, realMapTag, YAMLException } from 'js-yaml';
import { isRefusal, type Refusal } from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';
import { oneLine } from './one-line.ts';
import { quotePlainValues } from './yaml-repair.ts';

/** The fields between the two fences, and what was odd about them. */
export interface FrontMatter {
  readonly fields: ReadonlyMap<unknown, unknown>;
  readonly diagnostics: readonly string[];
}

/** Reads the fields as people really write them. Strangers' bytes enter here; nothing in them is executed. */
export function readFrontMatter(cut: Cut): FrontMatter | Refusal {
  const diagnostics = [...cut.diagnostics];
  if (!isUtf8(cut.yaml)) diagnostics.push('not all of the front matter is UTF-8; the rest was replaced');
  const text = cut.yaml.toString('utf8');
  if (text.includes('\r\n')) diagnostics.push('lines end with CRLF');

  const read = readYaml(text.replaceAll('\r\n', '\n'), cut.firstLine);
  if (isRefusal(read)) return read;
  return { fields: read.fields, diagnostics: [...diagnostics, ...read.diagnostics] };
}

/** The head of a SKILL.md, not read yet. */
export interface Cut {
  readonly yaml: Buffer;
  /** Number of the first line of YAML in the file, for messages. */
  readonly firstLine: number;
  readonly diagnostics: readonly string[];
}

const BOM = Buffer.of(0xef, 0xbb, 0xbf);

/** The bytes between the first fence and the next one. A fence is a line of three hyphens, blanks may follow. */
export function cutFrontMatter(file: Buffer): Cut | Refusal {
  if (isUtf16(file)) return { reason: 'the file is UTF-16; save it as UTF-8' };
  const diagnostics: string[] = [];
  const begin = file.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
  if (begin > 0) diagnostics.push('the file begins with a byte order mark');
  // Latin-1 gives one character a byte, so places in this text are places in the file.
  const head = file.toString('latin1', begin, begin + SKILL_LIMITS.frontMatterBytesMax);
  const isCut = begin + head.length < file.length;

  let yamlAt: number | undefined;
  let firstLine = 0;
  for (let at = 0, number = 1; at < head.length; number += 1) {
    const next = head.indexOf('\n', at);
    if (next === -1 && isCut) break;
    const end = next === -1 ? head.length : next + 1;
    const line = head.slice(at, end).trimEnd();
    if (yamlAt === undefined) {
      if (line === '---') [yamlAt, firstLine] = [end, number + 1];
      else if (line !== '') return { reason: 'no front matter: the first line is not ---' };
    } else if (line === '---') {
      if (firstLine > 2) diagnostics.push('blank lines before the front matter');
      return { yaml: file.subarray(begin + yamlAt, begin + at), firstLine, diagnostics };
    }
    at = end;
  }
  if (isCut) {
    return {
      reason: `the front matter is not closed within ${SKILL_LIMITS.frontMatterBytesMax / 1024} KiB`,
    };
  }
  return { reason: yamlAt === undefined ? 'no front matter' : 'the front matter is never closed with ---' };
}

function isUtf16(file: Buffer): boolean {
  return (file[0] === 0xff && file[1] === 0xfe) || (file[0] === 0xfe && file[1] === 0xff);
}

/** As it is, else once more with plain values quoted: a colon in a description is the commonest mistake of all. */
function readYaml(text: string, firstLine: number): FrontMatter | Refusal {
  const asWritten = tryYaml(text, firstLine);
  if (!isRefusal(asWritten)) return { fields: asWritten, diagnostics: [] };
  const repaired = quotePlainValues(text);
  const second = repaired.text === text ? asWritten : tryYaml(repaired.text, firstLine);
  if (isRefusal(second)) return asWritten;
  const keys = repaired.quoted.slice(0, SKILL_LIMITS.quotedMax).join(', ');
  return {
    fields: second,
    diagnostics: [`${asWritten.reason}; read with ${keys === '' ? 'tabs as blanks' : `${keys} in quotes`}`],
  };
}

// Scalars stay the text they are, so version 1.10 does not become 1.1; maps are Maps, so no key reaches a prototype.
// No tag but those of text, list and map exists. Duplicate keys are an error.
const SCHEMA = FAILSAFE_SCHEMA.withTags(nullCoreTag, realMapTag);

function tryYaml(text: string, firstLine: number): ReadonlyMap<unknown, unknown> | Refusal {
  try {
    const value = load(text, { schema: SCHEMA, maxDepth: SKILL_LIMITS.yamlDepthMax, maxAliases: 0 });
    return value instanceof Map ? value : { reason: 'the front matter holds no fields' };
  } catch (error) {
    // Whatever the parser throws on strangers' text is about that text, a stack overflow included.
    return { reason: `not valid YAML: ${describeError(error, firstLine)}` };
  }
}

function describeError(error: unknown, firstLine: number): string {
  if (!(error instanceof YAMLException)) return 'the parser gave up';
  const what = oneLine(error.reason, SKILL_LIMITS.quoteCharsMax);
  return error.mark === undefined ? what : `${what} (line ${error.mark.line + firstLine})`;
}
