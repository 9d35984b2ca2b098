import { lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sha256Hex } from '../../integrity/digest.ts';

/** A note to be written: path inside the export folder, with forward slashes, and text. */
export interface Note {
  readonly path: string;
  readonly text: string;
}

/** Holds the digest of each note as it was last written here: a note with another digest was edited and is not ours any more. */
const MANIFEST = '.colibri-notes.json';

type Digests = Readonly<Record<string, string>>;

/**
 * Brings the folder up to date. Touches only files that are still exactly as it wrote them; those that somebody else
 * wrote or edited are `kept` as they are.
 */
export function writeNotes(folder: string, notes: readonly Note[]) {
  const before = readManifest(folder);
  const after: Record<string, string> = {};
  const report = { written: [] as string[], unchanged: 0, deleted: [] as string[], kept: [] as string[] };
  for (const { path: name, text } of notes) {
    const path = join(folder, name);
    const [known, wanted, found] = [before[name], sha256Hex(text), digestAt(path)];
    if (found === wanted) report.unchanged += 1;
    else if (found === undefined || found === known) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
      report.written.push(name);
    } else {
      report.kept.push(name);
      // Still remembered: if it is put back as it was, it is ours again.
      if (known !== undefined) after[name] = known;
      continue;
    }
    after[name] = wanted;
  }
  const stale = Object.keys(before).filter((name) => after[name] === undefined && isInside(name));
  for (const name of stale.filter((other) => !report.kept.includes(other))) {
    const found = digestAt(join(folder, name));
    if (found === undefined) continue;
    if (found === before[name]) rmSync(join(folder, name));
    report[found === before[name] ? 'deleted' : 'kept'].push(name);
  }
  if (textOf(before) !== textOf(after)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, MANIFEST), textOf(after));
  }
  return report;
}

/** The digest of the note at a path, undefined if nothing is there; null for a link or a folder, which is never ours. */
function digestAt(path: string): string | null | undefined {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return undefined;
  return stat.isFile() ? sha256Hex(readFileSync(path, 'utf8')) : null;
}

/** The manifest is in the vault, where anybody can edit it: a name in it must not lead out of the folder. */
function isInside(name: string): boolean {
  return !name.split(/[\\/]/).includes('..') && !/^([\\/]|[a-z]:)/i.test(name) && name.endsWith('.md');
}

function readManifest(folder: string): Digests {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8'));
    const entries = Object.entries(value ?? {});
    return Object.fromEntries(
      entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  } catch {
    return {};
  }
}

function textOf(digests: Digests): string {
  const sorted = Object.entries(digests).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify(Object.fromEntries(sorted), null, 1)}\n`;
}
