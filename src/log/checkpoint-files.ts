import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateFolder } from '../folders.ts';
import { readIfPresent, replaceFile } from './private-files.ts';

/** Signed heads beside the database: the newest in one file, those worth keeping in a folder under their size. */
export class CheckpointFiles {
  readonly newestPath: string;
  readonly folder: string;

  constructor(dbPath: string) {
    this.newestPath = `${dbPath}.checkpoint`;
    this.folder = `${dbPath}.checkpoints`;
  }

  newest(): string | undefined {
    return readIfPresent(this.newestPath);
  }

  /** All that are kept, the smallest first. */
  kept(): { readonly size: number; readonly note: string }[] {
    if (!existsSync(this.folder)) return [];
    const sizes = readdirSync(this.folder)
      .filter((name) => /^\d{1,15}$/.test(name))
      .map(Number);
    return sizes
      .sort((a, b) => a - b)
      .map((size) => ({ size, note: readIfPresent(join(this.folder, String(size))) ?? '' }));
  }

  /** Makes `note` the newest; `keep` also files it for good, as a session's end or a clean stop deserves. */
  write(size: number, note: string, keep: boolean): void {
    replaceFile(this.newestPath, note);
    if (!keep) return;
    makePrivateFolder(this.folder);
    replaceFile(join(this.folder, String(size)), note);
  }
}
