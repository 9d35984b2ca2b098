import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findAnchors } from '../../trust/anchors.ts';
import { anchorInGit } from '../../trust/anchors-git.ts';
import { KeyFolder } from '../../trust/key-folder.ts';
import { scratchFolder } from '../storage/scratch.ts';

test('anchors are found where they were put, and those of another log in the same repository are not', () => {
  const scratch = scratchFolder();
  const [workspace, kept] = [join(scratch, 'workspace'), join(scratch, 'kept')];
  mkdirSync(workspace);
  spawnSync('git', ['init', '-q', workspace]);
  const [own, other] = [KeyFolder.create(scratch), KeyFolder.create(scratch)];
  const noteOf = ({ origin }: KeyFolder, size: number) => `${origin}\n${size}\nroot\n\nsignature\n`;
  for (const [folder, size] of [
    [own, 1],
    [other, 2],
    [own, 3],
  ] as const)
    anchorInGit(workspace, noteOf(folder, size), size);
  writeFileSync(kept, noteOf(own, 2));
  own.addAnchor('files', kept);
  own.addAnchor('files', join(scratch, 'gone'));

  const { anchors, remarks } = findAnchors({ dbPath: join(workspace, 'colibri.db'), workspace, folder: own });

  expect(anchors.map(({ source, note }) => [source, note])).toEqual([
    ['file', noteOf(own, 2)],
    ['git', noteOf(own, 3)],
    ['git', noteOf(own, 1)],
  ]);
  expect(remarks).toEqual([expect.stringContaining('is no longer there')]);
});
