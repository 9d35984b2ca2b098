import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { sha256Hex } from '../../integrity/digest.ts';

/** A note to be written: path inside the export folder, with forward slashes, and text. */
export interface Note {
  readonly path: string;
  readonly text: string;
}

export interface VaultReport {
  readonly written: string[];
  readonly unchanged: number;
  readonly deleted: string[];
  /** Notes that somebody else wrote or edited; they were left as they are. */
  readonly kept: string[];
}

/** Holds the digest of each note as it was last written here: a note with another digest was edited and is not ours any more. */
const MANIFEST = '.colibri-notes.json';

/** Brings the folder up to date. Touches only files that are still exactly as it wrote them. */
export function writeNotes(folder: string, notes: readonly Note[]): VaultReport {
  const before = readManifest(folder);
  const after: Record<string, string> = {};
  const report: VaultReport & { unchanged: number } = { written: [], unchanged: 0, deleted: [], kept: [] };
  for (const note of notes) {
    const path = join(folder, note.path);
    const state = stateOf(path, before[note.path], note.text);
    if (state === 'foreign') {
      report.kept.push(note.path);
      // Still remembered: if it is put back as it was, it is ours again.
      const known = before[note.path];
      if (known !== undefined) after[note.path] = known;
      continue;
    }
    after[note.path] = sha256Hex(note.text);
    if (state === 'current') report.unchanged += 1;
    else {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, note.text);
      report.written.push(note.path);
    }
  }
  removeOld(folder, before, after, report);
  writeManifest(folder, before, after);
  return report;
}

/** Absent, ours and old, up to date, or somebody else's. A link or a folder in place of a note is never ours. */
function stateOf(
  path: string,
  known: string | undefined,
  text: string,
): 'absent' | 'ours' | 'current' | 'foreign' {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return 'absent';
  if (!stat.isFile()) return 'foreign';
  if (readFileSync(path, 'utf8') === text) return 'current';
  return isAsWritten(path, known) ? 'ours' : 'foreign';
}

function isAsWritten(path: string, known: string | undefined): boolean {
  return lstatSync(path).isFile() && known === sha256Hex(readFileSync(path, 'utf8'));
}

function removeOld(
  folder: string,
  before: Readonly<Record<string, string>>,
  after: Record<string, string>,
  report: VaultReport,
): void {
  for (const [name, known] of Object.entries(before)) {
    if (after[name] !== undefined || report.kept.includes(name) || !isInside(name)) continue;
    const path = join(folder, name);
    if (!existsSync(path)) continue;
    if (isAsWritten(path, known)) {
      rmSync(path);
      report.deleted.push(name);
    } else report.kept.push(name);
  }
}

/** The manifest is in the vault, where anybody can edit it: a name in it must not lead out of the folder. */
function isInside(name: string): boolean {
  return !name.split(/[\\/]/).includes('..') && !/^([\\/]|[a-z]:)/i.test(name) && name.endsWith('.md');
}

function readManifest(folder: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, MANIFEST), 'utf8'));
    if (typeof value !== 'object' || value === null) return {};
    return Object.fromEntries(
      Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  } catch {
    return {};
  }
}

function writeManifest(
  folder: string,
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): void {
  const text = (entries: Readonly<Record<string, string>>) =>
    `${JSON.stringify(Object.fromEntries(Object.entries(entries).sort(([a], [b]) => (a < b ? -1 : 1))), null, 1)}\n`;
  if (text(before) === text(after)) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, MANIFEST), text(after));
}
