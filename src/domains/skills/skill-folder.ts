import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type Part, skillDigest } from './digest.ts';
import {
  close,
  followLink,
  isRefusal,
  linkText,
  look,
  openFile,
  type Refusal,
  type RegularFile,
  readNext,
  regularFile,
} from './disk.ts';
import { SKILL_LIMITS } from './limits.ts';
import { type Budget, isIgnored, listFolder, type Scan } from './scan.ts';
import type { SkillFolder } from './search.ts';
import type { DeclaredSkill } from './skill-file.ts';

/** The digest over everything in a skill's folder, or why there is none. Nothing is read before all sizes are known. */
export async function sealSkill(
  scan: Scan,
  folder: SkillFolder,
  skill: DeclaredSkill,
  budget: Budget,
): Promise<string | Refusal> {
  const contents = await collect(scan, folder, skill.bytes, budget);
  if (isRefusal(contents)) return contents;
  const parts: Part[] = [{ path: folder.fileName, kind: 'file', sha256: skill.sha256 }, ...contents.parts];
  for (const file of contents.files) {
    const hash = await hashOf(scan, file);
    if (typeof hash === 'string') parts.push({ path: file.path, kind: 'file', sha256: hash });
    else {
      scan.skip(join(folder.path, file.path), hash.reason);
      parts.push({ path: file.path, kind: 'unread' });
    }
  }
  return skillDigest(parts);
}

interface Contents {
  /** Files still to be hashed. */
  readonly files: (RegularFile & { readonly path: string })[];
  /** What has no bytes to hash. */
  readonly parts: Part[];
}

async function collect(
  scan: Scan,
  folder: SkillFolder,
  skillFileBytes: number,
  budget: Budget,
): Promise<Contents | Refusal> {
  const contents: Contents = { files: [], parts: [] };
  const folders = [{ path: '', names: folder.names }];
  let bytes = skillFileBytes;
  // The list of folders grows while it is walked.
  for (const { path, names } of folders) {
    for (const name of names) {
      if (isIgnored(name) || (path === '' && name === folder.fileName)) continue;
      const over = budget.spend('entries', 1);
      if (over !== undefined) return over;
      const entry = collectEntry(scan, folder.path, path === '' ? name : `${path}/${name}`, contents);
      if (entry?.kind === 'folder') folders.push({ path: entry.path, names: entry.names });
      if (entry?.kind === 'file') bytes += entry.bytes;
      if (contents.files.length + contents.parts.length >= SKILL_LIMITS.filesMax) {
        return { reason: `its folder holds more than ${SKILL_LIMITS.filesMax} files` };
      }
      if (folders.length > SKILL_LIMITS.filesMax) {
        return { reason: `its folder holds more than ${SKILL_LIMITS.filesMax} folders` };
      }
    }
    await scan.rest();
  }
  if (bytes > SKILL_LIMITS.bytesMax) {
    return {
      reason: `the files in its folder are larger than ${SKILL_LIMITS.bytesMax / 1_048_576} MiB together`,
    };
  }
  return budget.spend('bytes', bytes) ?? contents;
}

type Entry =
  | { readonly kind: 'folder'; readonly path: string; readonly names: readonly string[] }
  | { readonly kind: 'file'; readonly bytes: number };

function collectEntry(scan: Scan, folder: string, path: string, contents: Contents): Entry | undefined {
  const place = join(folder, path);
  const seen = look(place);
  if (seen === undefined) return undefined;
  if (isRefusal(seen)) return leaveUnread(scan, place, path, seen, contents);
  if (seen.kind === 'link') return collectLink(scan, folder, path, contents);
  if (seen.kind === 'file') {
    contents.files.push({ path, real: place, seen });
    return { kind: 'file', bytes: seen.bytes };
  }
  const names = listFolder(scan, place, seen);
  if (isRefusal(names)) return leaveUnread(scan, place, path, names, contents);
  return { kind: 'folder', path, names };
}

/** A link to a file inside the roots is that file; any other is its own text, and what is behind it stays unread. */
function collectLink(scan: Scan, folder: string, path: string, contents: Contents): Entry | undefined {
  const place = join(folder, path);
  const file = regularFile(place, scan.fences);
  if (!isRefusal(file)) {
    contents.files.push({ path, ...file });
    return { kind: 'file', bytes: file.seen.bytes };
  }
  const target = linkText(place);
  if (typeof target !== 'string') return leaveUnread(scan, place, path, target, contents);
  contents.parts.push({ path, kind: 'link', target });
  // A link to a folder of the same skill hides nothing: that folder is covered where it lies.
  if (typeof followLink(place, [folder]) !== 'string') scan.skip(place, file.reason);
  return undefined;
}

function leaveUnread(
  scan: Scan,
  place: string,
  path: string,
  { reason }: Refusal,
  contents: Contents,
): undefined {
  scan.skip(place, reason);
  contents.parts.push({ path, kind: 'unread' });
}

const CHUNK_BYTES = 1_048_576;

async function hashOf(scan: Scan, { real, seen }: RegularFile): Promise<string | Refusal> {
  const known = scan.hashes.find(real, seen);
  if (known !== undefined) return known;
  const opened = openFile(real, scan.fences);
  if (isRefusal(opened)) return opened;
  try {
    const hash = createHash('sha256');
    const chunk = Buffer.alloc(Math.min(opened.seen.bytes, CHUNK_BYTES));
    for (let left = opened.seen.bytes; left > 0; ) {
      const read = readNext(opened.fd, chunk);
      if (typeof read !== 'number') return read;
      if (read === 0) break;
      hash.update(chunk.subarray(0, Math.min(read, left)));
      left -= read;
      await scan.rest();
    }
    const digest = hash.digest('hex');
    scan.hashes.keep(real, opened.seen, digest);
    return digest;
  } finally {
    close(opened.fd);
  }
}
