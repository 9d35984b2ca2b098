import { basename, join } from 'node:path';
import { sha256Hex } from '../../integrity/digest.ts';
import type { Declaration } from './declaration.ts';
import { type Part, skillDigest } from './digest.ts';
import * as disk from './disk.ts';
import { attempt, Refusal } from './disk.ts';
import { cutFrontMatter } from './front-matter.ts';
import { SKILL_LIMITS } from './limits.ts';
import { isIgnored, type Scan, type SkillFolder, spend } from './search.ts';

/** A SKILL.md that makes its folder a skill. */
export interface SkillFile {
  readonly declared: Declaration;
  readonly sha256: string;
  readonly bytes: number;
}

/** Reads the SKILL.md of a folder. */
export async function readSkillFile(scan: Scan, folder: SkillFolder): Promise<SkillFile> {
  const path = findSkillFile(scan, folder);
  spend(scan.budget, 'yamlBytes', 0);
  const file = disk.readFile(path, scan.roots, SKILL_LIMITS.skillFileBytesMax);
  const cut = cutFrontMatter(file);
  // The file that exceeds the budget is still read; the next one is not.
  scan.budget.yamlBytes += cut.yaml.length;
  // The YAML parser takes 4 ms to load; a server does not need it before it has a skill to read.
  const { readDeclaration } = await import('./declaration.ts');
  const declared = readDeclaration(cut, basename(folder.path), folder.fileName);
  return { declared, sha256: sha256Hex(file), bytes: file.length };
}

function findSkillFile(scan: Scan, folder: SkillFolder): string {
  const max = SKILL_LIMITS.skillFileBytesMax;
  const file = disk.look(join(folder.path, folder.fileName), scan.roots);
  if (file === undefined) throw new Refusal(disk.VANISHED);
  if (file.kind === 'folder') throw new Refusal(file.isLink ? disk.LINK_TO_NO_FILE : 'a folder, not a file');
  if (file.bytes > max) throw new Refusal(`larger than ${max / 1024} KiB`);
  return file.path;
}

/** What is in a skill's folder. Paths are relative to that folder. */
interface Contents {
  readonly folder: SkillFolder;
  /** Folders to walk; the first is the skill's own. */
  readonly folders: string[];
  /** Files to hash, with their real paths. */
  readonly files: { readonly path: string; readonly real: string }[];
  readonly parts: Part[];
  /** The size of all files together. */
  bytes: number;
}

/** The digest over everything in a skill's folder. All sizes are checked before files are read. */
export async function sealSkill(scan: Scan, folder: SkillFolder, skill: SkillFile): Promise<string> {
  const parts: Part[] = [{ path: folder.fileName, kind: 'file', sha256: skill.sha256 }];
  const contents: Contents = { folder, folders: [''], files: [], parts, bytes: skill.bytes };
  // The list of folders grows while it is walked.
  for (const path of contents.folders) {
    addFolder(scan, contents, path);
    await scan.rest();
  }
  checkBytes(contents);
  spend(scan.budget, 'bytes', contents.bytes);
  for (const { path, real } of contents.files) {
    addFile(scan, contents, path, real);
    await scan.rest();
  }
  return skillDigest(parts);
}

function addFolder(scan: Scan, contents: Contents, path: string): void {
  const { folder } = contents;
  const names = attempt(
    () => disk.namesIn(join(folder.path, path)),
    (reason) => addUnread(scan, contents, path, reason),
  );
  for (const name of names ?? []) {
    if (isIgnored(name) || (path === '' && name === folder.fileName)) continue;
    spend(scan.budget, 'entries', 1);
    addEntry(scan, contents, path === '' ? name : `${path}/${name}`);
    checkCounts(contents);
  }
}

function addEntry(scan: Scan, contents: Contents, path: string): void {
  const place = join(contents.folder.path, path);
  const entry = attempt(
    () => disk.look(place, scan.roots),
    (reason) => addLink(scan, contents, path, reason),
  );
  if (entry?.kind === 'file') {
    contents.files.push({ path, real: entry.path });
    contents.bytes += entry.bytes;
  } else if (entry?.isLink) addLink(scan, contents, path, disk.LINK_TO_NO_FILE, entry.path);
  else if (entry !== undefined) contents.folders.push(path);
}

/** A link that does not lead to a file inside the roots counts as its own text; its target is not read. */
function addLink(scan: Scan, contents: Contents, path: string, reason: string, real = ''): undefined {
  const { folder, parts } = contents;
  const place = join(folder.path, path);
  const target = disk.linkText(place);
  if (target === undefined) return addUnread(scan, contents, path, reason);
  parts.push({ path, kind: 'link', target });
  // A link to a folder of the same skill hides nothing: that folder is covered where it is.
  if (!disk.isInside(real, folder.path)) scan.skip(place, reason);
}

function addFile(scan: Scan, contents: Contents, path: string, real: string): void {
  attempt(
    () => {
      const sha256 = sha256Hex(disk.readFile(real, scan.roots, SKILL_LIMITS.bytesMax));
      contents.parts.push({ path, kind: 'file', sha256 });
    },
    (reason) => addUnread(scan, contents, path, reason),
  );
}

function addUnread(scan: Scan, { folder, parts }: Contents, path: string, reason: string): undefined {
  scan.skip(join(folder.path, path), reason);
  parts.push({ path, kind: 'unread' });
}

function checkCounts({ files, parts, folders }: Contents): void {
  const max = SKILL_LIMITS.filesMax;
  if (files.length + parts.length > max) throw new Refusal(`its folder holds more than ${max} files`);
  if (folders.length > max) throw new Refusal(`its folder holds more than ${max} folders`);
}

function checkBytes({ bytes }: Contents): void {
  const max = SKILL_LIMITS.bytesMax;
  if (bytes <= max) return;
  throw new Refusal(`the files in its folder are larger than ${max / 1_048_576} MiB together`);
}
