import { Refusal } from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';

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
  if (isUtf16(file)) throw new Refusal('the file is UTF-16; save it as UTF-8');
  const begin = file.subarray(0, BOM.length).equals(BOM) ? BOM.length : 0;
  const bytesMax = SKILL_LIMITS.frontMatterBytesMax;
  const isCut = begin + bytesMax < file.length;
  // In Latin-1 every byte is one character, so the bytes of the YAML can be restored.
  const lines = file.toString('latin1', begin, begin + bytesMax).split('\n');
  if (isCut) lines.pop();

  const open = lines.findIndex((line) => line.trimEnd() !== '');
  if (open !== -1 && !isFence(lines[open])) throw new Refusal('no front matter: the first line is not ---');
  const close = lines.findIndex((line, i) => i > open && isFence(line));
  if (close === -1 && isCut) {
    throw new Refusal(`the front matter is not closed within ${bytesMax / 1024} KiB`);
  }
  if (open === -1) throw new Refusal('no front matter');
  if (close === -1) throw new Refusal('the front matter is never closed with ---');
  const yaml = lines.slice(open + 1, close).map((line) => `${line}\n`);
  const diagnostics = [
    ...(begin > 0 ? ['the file begins with a byte order mark'] : []),
    ...(open > 0 ? ['blank lines before the front matter'] : []),
  ];
  return { yaml: Buffer.from(yaml.join(''), 'latin1'), firstLine: open + 2, diagnostics };
}

function isUtf16(file: Buffer): boolean {
  return (file[0] === 0xff && file[1] === 0xfe) || (file[0] === 0xfe && file[1] === 0xff);
}

function isFence(line: string | undefined): boolean {
  return line?.trimEnd() === '---';
}
