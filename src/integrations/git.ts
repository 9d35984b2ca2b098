import { join } from 'node:path';
import { systemClock } from '../clock.ts';
import type { GitEvidence } from '../domains/rule.ts';
import { findGitFolder, followPointer, readGitText } from '../git-folder.ts';
import { readWhole, target } from '../private-files.ts';

// The calls are synchronous and few. What a file said is remembered, and used only while it is still the same file.

const BRANCHES = 'refs/heads/';
/** A packed-refs with 100,000 branches has 7 MB and is searched in 5 ms. */
const PACKED_BYTES_MAX = 16_777_216;
/** SHA-1 or SHA-256, in hex. */
const OBJECT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
/** Some worktrees are made of links. */
const FOLLOW = true;

/** The branch and commit that are checked out, or nothing where there is no repository that can be read. */
export async function readGitEvidence(workspace: string): Promise<GitEvidence | undefined> {
  try {
    // What one checkout has for itself: HEAD. What all checkouts of a repository share: references.
    const own = findGitFolder(workspace);
    if (own === undefined) return undefined;
    const pointer = readGitText(join(own, 'commondir'));
    const common = pointer === undefined ? own : followPointer(own, pointer);
    const head = readOrRecall(join(own, 'HEAD')) ?? '';
    if (common === undefined) return undefined;
    if (OBJECT_ID.test(head)) return { commit_sha: head };
    const ref = head.startsWith('ref:') ? head.slice('ref:'.length).trim() : '';
    if (!isRefName(ref)) return undefined;
    const commit_sha = resolveRef(common, ref);
    return {
      ...(ref.startsWith(BRANCHES) && { branch: ref.slice(BRANCHES.length) }),
      ...(commit_sha !== undefined && { commit_sha }),
    };
  } catch (error) {
    // A broken repository is not an error of the call that asked: no evidence then.
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}

/**
 * Reads once for all that ask before this turn of the event loop is over. Calls that were taken together see the same
 * repository: to read it for each of them took a quarter of their time.
 */
export function oncePerTurn<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  const forget = () => {
    reading = undefined;
  };
  return () => {
    if (reading === undefined) queueMicrotask(forget);
    reading ??= read();
    return reading;
  };
}

/** What HEAD and the references said. Git replaces such a file, so another text is another file. */
const remembered = new Map<string, { readonly stamp: string; readonly text: string | undefined }>();
const REMEMBERED_MAX = 16;
/** Of a file that is younger, its times cannot tell whether it was replaced twice. */
const SETTLED_MS = 1_000;

/** The text of one of git’s files, recalled while it is the same file: to look takes a quarter of the time of reading. */
function readOrRecall(path: string): string | undefined {
  const found = target(path);
  if (found === undefined) return undefined;
  const { ino, size, mtimeMs, ctimeMs } = found;
  const stamp = `${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  const known = remembered.get(path);
  if (known?.stamp === stamp) return known.text;
  const text = readGitText(path);
  if (remembered.size >= REMEMBERED_MAX) remembered.clear();
  if (systemClock.now() - ctimeMs > SETTLED_MS) remembered.set(path, { stamp, text });
  return text;
}

/** The commit a branch stands at; a file of its own goes before the packed ones. */
function resolveRef(gitFolder: string, ref: string): string | undefined {
  const loose = readOrRecall(join(gitFolder, ref));
  // Only HEAD leads to another reference; git itself makes no other that does.
  if (loose !== undefined) return OBJECT_ID.test(loose) ? loose : undefined;
  const packed = readWhole(join(gitFolder, 'packed-refs'), PACKED_BYTES_MAX, FOLLOW);
  // No name holds a blank, so this can only be the second column.
  const blank = packed?.indexOf(` ${ref}\n`) ?? -1;
  if (packed === undefined || blank === -1) return undefined;
  const sha = packed.toString('latin1', packed.lastIndexOf('\n', blank) + 1, blank);
  return OBJECT_ID.test(sha) ? sha : undefined;
}

/** Git's rule for names, as far as it keeps a name inside its folder and printable. */
function isRefName(name: string): boolean {
  const parts = name.split('/');
  return (
    parts[0] === 'refs' &&
    parts.length > 2 &&
    !/[\s\p{Cc}~^:?*[\\]/u.test(name) &&
    parts.every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.lock'))
  );
}
