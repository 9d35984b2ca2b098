import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AnchorMemory } from '../../trust/anchors.ts';
import { AnchorFiles } from '../../trust/anchors-tsr.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'colibri-anchors-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('where heads are kept', () => {
  test('each place is remembered once, in the order it was added', () => {
    const memory = new AnchorMemory(folder);
    memory.add('files', '/a');
    memory.add('files', '/b');
    memory.add('files', '/a');
    memory.add('git', { repository: '/repository', ref: 'refs/x' });
    memory.add('git', { repository: '/repository', ref: 'refs/x' });

    expect(new AnchorMemory(folder).read()).toEqual({
      files: ['/a', '/b'],
      git: [{ repository: '/repository', ref: 'refs/x' }],
    });
  });

  test('a damaged memory is an empty one', () => {
    writeFileSync(join(folder, 'anchors.json'), '{"files":');

    expect(new AnchorMemory(folder).read()).toEqual({ files: [], git: [] });
  });

  test('a checkpoint is kept for a token that comes later, and other files are left alone', () => {
    const files = new AnchorFiles(join(folder, 'db'));
    mkdirSync(files.folder);
    writeFileSync(join(files.folder, 'notes.txt'), 'mine');
    const kept = files.keep(12, 'note\n');
    files.keep(3, 'older\n');

    const before = files.all();
    writeFileSync(kept.tokenPath, 'token');

    expect(before.map(({ size, hasToken }) => [size, hasToken])).toEqual([
      [3, false],
      [12, false],
    ]);
    expect(files.all().at(-1)).toMatchObject({ size: 12, note: 'note\n', hasToken: true });
  });

  test('a link or a pipe in the place of a kept checkpoint is neither followed nor waited for', () => {
    const files = new AnchorFiles(join(folder, 'db'));
    mkdirSync(files.folder);
    writeFileSync(join(folder, 'elsewhere'), 'secret');
    symlinkSync(join(folder, 'elsewhere'), join(files.folder, '5.note'));
    spawnSync('mkfifo', [join(files.folder, '6.note')]);

    expect(files.all().map(({ note }) => note)).toEqual(['', '']);
  });
});
