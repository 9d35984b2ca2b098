import { basename, dirname, join } from 'node:path';
import { sha256Hex } from '../../integrity/digest.ts';
import type { Declaration } from './declaration.ts';
import {
  close,
  isRefusal,
  openFile,
  type Refusal,
  type RegularFile,
  readNext,
  regularFile,
  type Seen,
} from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';
import type { Budget, Scan, SkillFile } from './scan.ts';
import type { SkillFolder } from './search.ts';

/** A SKILL.md that makes its folder a skill. */
export interface DeclaredSkill {
  readonly declared: Declaration;
  readonly sha256: string;
  readonly bytes: number;
}

/** What the SKILL.md of a folder declares, or why it is not used. */
export async function declareSkill(
  scan: Scan,
  folder: SkillFolder,
  budget: Budget,
): Promise<DeclaredSkill | Refusal> {
  const path = join(folder.path, folder.fileName);
  const file = regularFile(path, scan.fences);
  if (isRefusal(file)) return file;
  if (file.seen.bytes > SKILL_LIMITS.skillFileBytesMax) {
    return { reason: `larger than ${SKILL_LIMITS.skillFileBytesMax / 1024} KiB` };
  }
  const over = budget.spend('yamlBytes', 0);
  if (over !== undefined) return over;
  const read = await readSkillFile(scan, path, file);
  if (isRefusal(read)) return read;
  budget.spend('yamlBytes', read.yamlBytes);
  const { declared, sha256 } = read;
  return isRefusal(declared) ? declared : { declared, sha256, bytes: file.seen.bytes };
}

/** The YAML parser takes 4 ms to load, which a server need not spend before it has a skill to read. */
let parser: Promise<typeof import('./declaration.ts')> | undefined;

/** Remembered by `path`, not by what it may link to: the folder it stands in is part of what it says. */
async function readSkillFile(
  scan: Scan,
  path: string,
  { real, seen }: RegularFile,
): Promise<SkillFile | Refusal> {
  const known = scan.skillFiles.find(path, seen);
  if (known !== undefined) return known;
  const opened = openFile(real, scan.fences);
  if (isRefusal(opened)) return opened;
  const bytes = readWhole(opened);
  if (!Buffer.isBuffer(bytes)) return bytes;
  parser ??= import('./declaration.ts');
  const { readDeclaration } = await parser;
  const file = {
    sha256: sha256Hex(bytes),
    ...readDeclaration(bytes, basename(dirname(path)), basename(path)),
  };
  scan.skillFiles.keep(path, opened.seen, file);
  await scan.rest();
  return file;
}

function readWhole({ fd, seen }: { readonly fd: number; readonly seen: Seen }): Buffer | Refusal {
  try {
    const bytes = Buffer.alloc(Math.min(seen.bytes, SKILL_LIMITS.skillFileBytesMax));
    let filled = 0;
    while (filled < bytes.length) {
      const read = readNext(fd, bytes.subarray(filled));
      if (typeof read !== 'number') return read;
      if (read === 0) break;
      filled += read;
    }
    return bytes.subarray(0, filled);
  } finally {
    close(fd);
  }
}
