import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { LastSigned } from '../../trust/last-signed.ts';

const folder = mkdtempSync(join(tmpdir(), 'colibri-last-signed-'));
const path = join(folder, 'last-signed');
afterEach(() => rmSync(path, { force: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const head = (size: number) => ({
  key: 'k',
  size,
  chain_hash: 'c',
  at: '2026-11-18T00:00:00.000Z',
  frontier: '',
  checkpoint: 'n',
});

it('a head that was noted is found by another process, and no other is', () => {
  const [mine, theirs] = [new LastSigned(path), new LastSigned(path)];

  mine.note(head(12));

  expect([theirs.has(head(12)), theirs.has(head(1)), theirs.has(head(11))]).toEqual([true, false, false]);
});

it.each([
  ['shorter', 'not'],
  ['empty', ''],
  ['longer by zero bytes', 'note\0\0'],
])('a head whose checkpoint is %s is not the one that was noted', (_, checkpoint) => {
  const noted = new LastSigned(path);
  noted.note({ ...head(1), checkpoint: 'note' });

  expect(noted.has({ ...head(1), checkpoint })).toBe(false);
});

it.each([
  ['deleted', rmSync],
  ['moved away', (from: string) => renameSync(from, `${from}.old`)],
])('a note that somebody has %s is not what was signed last', (_, remove) => {
  const [mine, theirs] = [new LastSigned(path), new LastSigned(path)];
  mine.note(head(1));
  remove(path);
  theirs.note(head(2));

  const found = [mine.has(head(1)), mine.has(head(2))];

  expect(found).toEqual([false, true]);
});

const canLimit = spawnSync('prlimit', ['--version']).status === 0;

/** The disk takes no more than so many bytes of a file, as one that is full or a quota would. */
function limitFiles(bytes: number | 'unlimited'): void {
  spawnSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:unlimited`]);
}

it.skipIf(!canLimit)('a head of which only a part could be noted leaves no older one behind', () => {
  const [mine, theirs] = [new LastSigned(path), new LastSigned(path)];
  mine.note(head(1));
  try {
    limitFiles(3);
    mine.note(head(2));
  } finally {
    limitFiles('unlimited');
  }

  expect([theirs.has(head(1)), theirs.has(head(2)), readFileSync(path, 'utf8')]).toEqual([false, false, '']);
});
