import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { keepForStamp, stampedCheckpoints } from '../../trust/anchors-tsr.ts';
import { KeyFolder } from '../../trust/key-folder.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'colibri-anchors-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('where heads are kept', () => {
  test('each place is remembered once, in the order it was added', () => {
    const memory = KeyFolder.create(folder);
    memory.addAnchor('files', '/a');
    memory.addAnchor('files', '/b');
    memory.addAnchor('files', '/a');
    memory.addAnchor('git', '/repository');
    memory.addAnchor('git', '/repository');

    expect(new KeyFolder(folder, memory.origin).anchors()).toEqual({
      files: ['/a', '/b'],
      git: ['/repository'],
    });
  });

  test('a damaged memory is an empty one', () => {
    const memory = KeyFolder.create(folder);
    writeFileSync(join(memory.path, 'anchors.json'), '{"files":');

    expect(memory.anchors()).toEqual({ files: [], git: [] });
  });

  test('a checkpoint is kept for a token that comes later, and other files are left alone', () => {
    const db = join(folder, 'db');
    mkdirSync(`${db}.anchors`);
    writeFileSync(join(`${db}.anchors`, 'notes.txt'), 'mine');
    const kept = keepForStamp(db, 12, 'note\n');
    keepForStamp(db, 3, 'older\n');

    const before = stampedCheckpoints(db).stamps;
    writeFileSync(kept.tokenPath, 'token');

    expect(before.map(({ size, token }) => [size, token])).toEqual([
      [12, undefined],
      [3, undefined],
    ]);
    expect(stampedCheckpoints(db).stamps[0]).toMatchObject({
      size: 12,
      note: 'note\n',
      token: Buffer.from('token'),
    });
  });

  test('a link or a pipe in the place of a kept checkpoint is neither followed nor waited for', () => {
    const db = join(folder, 'db');
    mkdirSync(`${db}.anchors`);
    writeFileSync(join(folder, 'elsewhere'), 'secret');
    symlinkSync(join(folder, 'elsewhere'), `${db}.anchors/5.note`);
    spawnSync('mkfifo', [`${db}.anchors/6.note`]);

    expect(stampedCheckpoints(db).stamps.map(({ note }) => note)).toEqual(['', '']);
  });
});
