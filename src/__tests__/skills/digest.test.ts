import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { skillDigest } from '../../domains/skills/skill-folder.ts';
import { makeWorkspace, skillText } from './workspace.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

describe('the digest of a skill', () => {
  test('is what sha256sum says of the list of its files', async () => {
    const workspace = makeWorkspace();
    workspace.skill('demo');
    for (const name of [
      'a.txt',
      'B.txt',
      'scripts/run.sh',
      'scripts-2/x',
      'ünï/😀',
      'ünï/\uffee',
      'with blank',
      '-dash',
      'back\\slash',
      'new\nline',
      '.hidden',
    ])
      workspace.write(join('.agents/skills/demo', name), `content of ${name}`);
    const folder = join(workspace.path, '.agents', 'skills', 'demo');

    const [skill] = await workspace.registry().inForce();

    const command = "find . -type f -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum -- | sha256sum";
    const said = execFileSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' });
    expect(skill?.digest).toBe(said.slice(0, 64));
  });

  test('names a link as unread, wherever it leads', async () => {
    const workspace = makeWorkspace();
    workspace.skill('demo');
    workspace.write('.agents/skills/shared.txt', 'shared');
    const folder = join(workspace.path, '.agents', 'skills', 'demo');
    symlinkSync('../shared.txt', join(folder, 'shared'));
    symlinkSync('/etc/hostname', join(folder, 'away'));

    const { skills, skipped } = await workspace.registry().list();

    const lines = [`${sha256(skillText('demo'))}  SKILL.md\n`, 'unread  away\n', 'unread  shared\n'];
    expect(skills[0]?.digest).toBe(sha256(lines.join('')));
    const reason = 'a symbolic link, and links are not followed';
    expect(skipped).toEqual([
      { path: '.agents/skills/demo/away', reason },
      { path: '.agents/skills/demo/shared', reason },
    ]);
  });

  test('does not depend on the order in which the parts are found', () => {
    const parts = ['b', 'a', 'c/d'].map((path) => [path, sha256(path)] as const);

    expect(skillDigest(new Map(parts))).toBe(skillDigest(new Map(parts.toReversed())));
  });

  test('a name with a newline cannot pass for two files', () => {
    const one = skillDigest(new Map([[`a\n${sha256('x')}  b`, sha256('x')]]));
    const two = skillDigest(new Map(['a', 'b'].map((path) => [path, sha256('x')])));

    expect(one).not.toBe(two);
  });

  test('an unread thing is part of it', () => {
    const parts = new Map([
      ['SKILL.md', sha256('x')],
      ['pipe', 'unread'],
    ]);

    expect(skillDigest(parts)).toBe(sha256(`${sha256('x')}  SKILL.md\nunread  pipe\n`));
  });
});
