import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { tier } from '../../../tests/driver/tier.ts';
import { createSkillRegistry } from '../../domains/skills/registry.ts';
import { spend } from '../../domains/skills/skill-folder.ts';
import { makePipe, makeWorkspace, skillText } from './workspace.ts';

const DIGEST = /^[0-9a-f]{64}$/;

describe('which skills are in force', () => {
  test('a skill has its name, description, path and digest', async () => {
    const workspace = makeWorkspace();
    workspace.skill('demo', skillText('demo', 'Shows.', 'version: 1.2.0\ncapabilities: [show]\n'));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills).toEqual([
      {
        name: 'demo',
        version: '1.2.0',
        description: 'Shows.',
        capabilities: ['show'],
        path: '.agents/skills/demo/SKILL.md',
        digest: expect.stringMatching(DIGEST),
      },
    ]);
    expect(skipped).toEqual([]);
  });

  test('folders that do not exist hold no skills and are no complaint', async () => {
    expect(await makeWorkspace().registry().list()).toEqual({ skills: [], skipped: [] });
  });

  test('they come by name, whatever their folders are called', async () => {
    const workspace = makeWorkspace();
    for (const name of ['zeta', 'alpha', 'mid', 'Beta']) workspace.skill(name);

    const { skills } = await workspace.registry().list();

    expect(skills.map(({ name }) => name)).toEqual(['Beta', 'alpha', 'mid', 'zeta']);
  });

  test('an earlier root shadows a later one, and that is reported with both files', async () => {
    const workspace = makeWorkspace();
    workspace.skill('demo', skillText('demo', 'From the project.'));
    workspace.write('.claude/skills/other/SKILL.md', skillText('demo', 'From somewhere else.'));

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ description }) => description)).toEqual(['From the project.']);
    expect(skipped).toEqual([
      {
        path: '.claude/skills/other/SKILL.md',
        reason: 'shadowed: .agents/skills/demo/SKILL.md has the same name, demo',
      },
    ]);
  });

  test('a skill outside the workspace is shown with its whole path', async () => {
    const workspace = makeWorkspace();
    const home = makeWorkspace();
    home.skill('mine');
    const root = join(home.path, '.agents', 'skills');

    const { skills } = await createSkillRegistry({ roots: [root], workspace: workspace.path }).list();

    expect(skills[0]?.path).toBe(join(root, 'mine', 'SKILL.md'));
  });

  test('skills may lie in groups, five folders deep, and what lies below a skill is part of it', async () => {
    const workspace = makeWorkspace();
    workspace.skill('a/b/c/d/deep', skillText('deep'));
    workspace.skill('a/b/c/d/e/too-deep');
    workspace.skill('outer');
    workspace.skill('outer/inner');

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ name }) => name)).toEqual(['deep', 'outer']);
    expect(skipped).toEqual([
      {
        path: '.agents/skills/outer/inner/SKILL.md',
        reason: 'part of the skill in .agents/skills/outer; move it out to make it a separate skill',
      },
      { path: '.agents/skills/a/b/c/d/e/too-deep', reason: 'deeper than 5 folders and not searched' },
    ]);
  });

  test('.git and node_modules are neither searched nor part of a digest', async () => {
    const workspace = makeWorkspace();
    workspace.skill('demo');
    const before = await workspace.registry().inForce();
    for (const hidden of ['.git', 'node_modules']) {
      workspace.skill(`${hidden}/x`);
      workspace.skill(`demo/${hidden}/y`);
    }

    const listing = await workspace.registry().list();

    expect(listing.skipped).toEqual([]);
    expect(listing.skills.map(({ name, digest }) => ({ name, digest }))).toEqual(before);
  });

  test('a SKILL.md directly in the root is named as misplaced and hides nothing', async () => {
    const workspace = makeWorkspace();
    workspace.write('.agents/skills/SKILL.md', skillText('root'));
    workspace.skill('demo');

    const { skills, skipped } = await workspace.registry().list();

    expect(skills.map(({ name }) => name)).toEqual(['demo']);
    expect(skipped.map(({ path }) => path)).toEqual(['.agents/skills/SKILL.md']);
  });

  test('a skill.md counts, unless there is a SKILL.md', async () => {
    const workspace = makeWorkspace();
    workspace.write('.agents/skills/demo/skill.md', skillText('demo', 'lower'));
    workspace.write('.agents/skills/both/skill.md', skillText('both', 'lower'));
    workspace.write('.agents/skills/both/SKILL.md', skillText('both', 'upper'));

    const { skills } = await workspace.registry().list();

    expect(skills.map(({ description }) => description)).toEqual(['upper', 'lower']);
  });

  test('inForce tells the same as list', async () => {
    const workspace = makeWorkspace();
    workspace.skill('one');
    workspace.skill('two');
    workspace.skill('bad', 'nothing');
    const registry = workspace.registry();

    const { skills } = await registry.list();

    expect(skills).toHaveLength(2);
    expect(await registry.inForce()).toEqual(skills.map(({ name, digest }) => ({ name, digest })));
  });
});

describe('disk is the truth', () => {
  const changes: [string, (folder: string) => void][] = [
    ['its SKILL.md changes', (folder) => writeFileSync(join(folder, 'SKILL.md'), skillText('demo', 'Else.'))],
    ['a file beside it changes', (folder) => writeFileSync(join(folder, 'scripts', 'run.sh'), 'echo b')],
    [
      'a file beside it changes and its time is set back',
      (folder) => {
        writeFileSync(join(folder, 'scripts', 'run.sh'), 'echo b');
        utimesSync(join(folder, 'scripts', 'run.sh'), 1_000, 1_000);
      },
    ],
    ['a file is added', (folder) => writeFileSync(join(folder, 'scripts', 'new.sh'), '')],
    ['a file is removed', (folder) => rmSync(join(folder, 'scripts', 'run.sh'))],
    [
      'a file is renamed',
      (folder) => renameSync(join(folder, 'scripts', 'run.sh'), join(folder, 'scripts', 'go.sh')),
    ],
    ['a folder is renamed', (folder) => renameSync(join(folder, 'scripts'), join(folder, 'tools'))],
    ['a link is added', (folder) => symlinkSync('/nowhere', join(folder, 'link'))],
    [
      'a file becomes a pipe',
      (folder) => {
        rmSync(join(folder, 'scripts', 'run.sh'));
        makePipe(join(folder, 'scripts', 'run.sh'));
      },
    ],
  ];

  test.each(changes)('the digest is another one when %s', async (_, change) => {
    const workspace = makeWorkspace();
    const folder = join(workspace.path, '.agents', 'skills', 'demo');
    workspace.skill('demo');
    workspace.write('.agents/skills/demo/scripts/run.sh', 'echo a');
    const registry = workspace.registry();
    const before = await registry.inForce();
    expect(await registry.inForce()).toEqual(before);

    change(folder);

    const after = await registry.inForce();
    expect(after).toHaveLength(1);
    expect(after).not.toEqual(before);
    expect(await workspace.registry().inForce()).toEqual(after);
  });

  test('a file rewritten again and again within one tick of the clock is never shown as it was', async () => {
    const workspace = makeWorkspace();
    const registry = workspace.registry();

    for (let i = 10; i < 60; i += 1) {
      workspace.skill('demo', skillText('demo', `number ${i}`));

      expect((await registry.list()).skills[0]?.description).toBe(`number ${i}`);
    }
  });

  test('a skill that appears, is renamed and goes is seen each time', async () => {
    const workspace = makeWorkspace();
    const registry = workspace.registry();
    const names = async () => (await registry.list()).skills.map(({ name }) => name);
    expect(await names()).toEqual([]);

    workspace.skill('demo', '---\ndescription: d\n---\n');
    expect(await names()).toEqual(['demo']);

    const root = join(workspace.path, '.agents', 'skills');
    renameSync(join(root, 'demo'), join(root, 'other'));
    expect(await names()).toEqual(['other']);

    rmSync(root, { recursive: true });
    expect(await names()).toEqual([]);
  });

  test('two scans at once do not disturb each other', async () => {
    const workspace = makeWorkspace();
    for (let i = 0; i < 50; i += 1) workspace.skill(`skill-${i}`);
    const registry = workspace.registry();

    const [a, b] = await Promise.all([registry.list(), registry.list(), registry.inForce()]);

    expect(a).toEqual(b);
    expect(a.skills).toHaveLength(50);
  });

  test('others may run between two slices of a long scan', async () => {
    const workspace = makeWorkspace();
    for (let i = 0; i < 20; i += 1) workspace.skill(`skill-${i}`);
    let ms = 0;
    const clock = { monotonic: () => (ms += 5) };
    let pauses = 0;

    await workspace.registry(['.agents/skills'], clock).list(async () => {
      pauses += 1;
    });

    expect(pauses).toBeGreaterThan(3);
  });

  test('others may run between two skills that are refused', async () => {
    const workspace = makeWorkspace();
    for (let i = 0; i < 20; i += 1) workspace.skill(`skill-${i}`, '---\nname: "x\n---\n');
    let ms = 0;
    let pauses = 0;

    await workspace.registry(['.agents/skills'], { monotonic: () => (ms += 20) }).list(async () => {
      pauses += 1;
    });

    // One for each of the 21 folders searched.
    expect(pauses).toBe(21);
  });
});

test.each(['entries', 'bytes', 'yamlBytes'] as const)('a root has a bounded amount of %s', (what) => {
  const max = { entries: 50_000, bytes: 268_435_456, yamlBytes: 4_194_304 }[what];
  const budget = { entries: 0, bytes: 0, yamlBytes: 0 };

  expect(() => spend(budget, what, max)).not.toThrow();
  expect(() => spend(budget, what, 1)).toThrow(`more than ${max}`);
});

const SKILLS = tier(200, 1_000);

test(`${SKILLS} skills, and what they cost`, async () => {
  const workspace = makeWorkspace();
  for (let i = 0; i < SKILLS; i += 1) {
    workspace.skill(
      `skill-${i}`,
      skillText(`skill-${i}`, 'Does a thing.', 'metadata:\n  version: "1.0"\n').padEnd(3_000, 'x'),
    );
    mkdirSync(join(workspace.path, '.agents', 'skills', `skill-${i}`, 'scripts'));
    workspace.write(`.agents/skills/skill-${i}/scripts/run.sh`, `echo ${i}`);
  }
  const timed = async <T>(act: () => T | Promise<T>): Promise<[T, string]> => {
    const began = performance.now();
    return [await act(), `${(performance.now() - began).toFixed(1)} ms`];
  };

  const [registry, start] = await timed(() => workspace.registry());
  const [first, cold] = await timed(() => registry.list());
  const [again, warm] = await timed(() => registry.list());

  console.error(`${SKILLS} skills of two files: at start ${start}, first list ${cold}, later ${warm}`);
  expect(first.skills).toHaveLength(SKILLS);
  expect(again).toEqual(first);
});
