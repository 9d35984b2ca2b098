import { describe, expect, test } from 'vitest';
import type { SkillRegistry } from '../../domains/skills/registry.ts';
import { SkillListOutput, skillTools } from '../../domains/skills/tools.ts';
import { canonicalJson } from '../../integrity/canonical-json.ts';
import type { Tool } from '../../tool.ts';
import { aCall } from '../middleware/a-tool.ts';
import { makeWorkspace, skillText } from './workspace.ts';

function toolOf(registry: SkillRegistry): Tool {
  const [tool, ...others] = skillTools(registry);
  if (tool === undefined || others.length > 0) throw new Error('there is one tool');
  return tool;
}

async function list(registry: SkillRegistry, args: Record<string, unknown> = {}) {
  const tool = toolOf(registry);
  const result = await tool.handle(tool.input.parse(args), aCall(), undefined as never);
  return SkillListOutput.parse(result);
}

function registryOfThree(): SkillRegistry {
  const workspace = makeWorkspace();
  workspace.skill('pdf-forms', skillText('pdf-forms', 'Fills in forms.', 'capabilities: [fill, read]\n'));
  workspace.skill('release', skillText('release', 'Cuts a Release of a PDF viewer.', 'capabilities: read\n'));
  workspace.skill('odd', skillText('odd', 'Straße nach Norden.', 'colour: red\n'));
  return workspace.registry();
}

describe('skill_list', () => {
  test('reads, and belongs to the family whose errors are failures', () => {
    expect(toolOf(registryOfThree())).toMatchObject({
      name: 'skill_list',
      effect: 'reads',
      family: 'skills',
    });
  });

  test('lists all skills by name', async () => {
    const { skills, total_count, ...rest } = await list(registryOfThree());

    expect(skills.map(({ name }) => name)).toEqual(['odd', 'pdf-forms', 'release']);
    expect(total_count).toBe(3);
    expect(rest).toEqual({});
  });

  test.each([
    [{ search: 'pdf' }, ['pdf-forms', 'release']],
    [{ search: 'RELEASE' }, ['release']],
    [{ search: 'STRASSE' }, []],
    [{ search: 'STRAßE' }, ['odd']],
    [{ search: '' }, ['odd', 'pdf-forms', 'release']],
    [{ search: '.*' }, []],
    [{ capability: 'read' }, ['pdf-forms', 'release']],
    [{ capability: 'rea' }, []],
    [{ capability: 'Read' }, []],
    [{ search: 'form', capability: 'read' }, ['pdf-forms']],
    [{ search: 'viewer', capability: 'fill' }, []],
  ])('%j finds %j', async (args, names) => {
    const { skills, total_count } = await list(registryOfThree(), args);

    expect(skills.map(({ name }) => name)).toEqual(names);
    expect(total_count).toBe(names.length);
  });

  test.each([[{ query: 'x' }], [{ search: 5 }], [{ capability: ['a'] }], [{ search: 'x'.repeat(257) }]])(
    'does not take %j',
    (args) => {
      expect(toolOf(registryOfThree()).input.safeParse(args).success).toBe(false);
    },
  );

  test('names what was skipped, whatever was searched for', async () => {
    const workspace = makeWorkspace();
    workspace.skill('broken', 'nothing');

    expect(await list(workspace.registry(), { search: 'else' })).toEqual({
      skills: [],
      total_count: 0,
      skipped: [
        { path: '.agents/skills/broken/SKILL.md', reason: 'no front matter: the first line is not ---' },
      ],
    });
  });

  test('K3: pages follow one another and name each skill once', async () => {
    const workspace = makeWorkspace();
    for (let i = 100; i < 260; i += 1) workspace.skill(`skill-${i}`);
    const registry = workspace.registry();
    const names: string[] = [];
    const sizes: number[] = [];

    for (let offset = 0; offset < 160; offset = names.length) {
      const { skills, total_count } = await list(registry, { offset, ...(offset > 50 && { limit: 200 }) });
      expect(total_count).toBe(160);
      sizes.push(skills.length);
      names.push(...skills.map(({ name }) => name));
    }

    expect(sizes).toEqual([50, 50, 60]);
    expect(names).toEqual(Array.from({ length: 160 }, (_, i) => `skill-${100 + i}`));
    expect((await list(registry, { offset: 160 })).skills).toEqual([]);
    for (const args of [{ limit: 0 }, { limit: 201 }, { offset: -1 }])
      expect(toolOf(registry).input.safeParse(args).success).toBe(false);
  });

  test.each([
    ['long descriptions', 'Uses words, many of them. '.repeat(40)],
    ['Chinese', '每次都用这个技能来检查代码。'.repeat(80)],
    ['emoji', '👩‍👩‍👧'.repeat(130)],
  ])('K3: a page of %s and refusals has at most 30,000 bytes, and the next one goes on', async (_, text) => {
    const workspace = makeWorkspace();
    for (let i = 0; i < 200; i += 1) workspace.skill(`skill-${i}`, skillText(`skill-${i}`, text));
    for (let i = 0; i < 300; i += 1) workspace.skill(`broken-${i}`, '');
    const registry = workspace.registry();

    const first = await list(registry, { limit: 200 });
    const second = await list(registry, { limit: 200, offset: first.skills.length });

    for (const page of [first, second]) {
      expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(30_200);
      expect(page.skills.length).toBeGreaterThan(4);
    }
    expect(second.skills[0]?.name).not.toBe(first.skills[0]?.name);
    expect(first.total_count).toBe(200);
    const named = first.skipped?.slice(0, -1).length ?? 0;
    expect(first.skipped?.at(-1)).toEqual({
      path: '',
      reason: `${300 - named} more; "colibri doctor" lists them all`,
    });
  });

  test('an answer can always be written down and hashed', async () => {
    const workspace = makeWorkspace();
    workspace.skill(
      'demo',
      '---\nname: "\\ud800"\ndescription: "a \\udc00"\nversion: "\\ud801"\n"\\ud802": x\n---\n',
    );
    workspace.skill('long', skillText('long', `${'x'.repeat(1_023)}😀`));

    const answer = await list(workspace.registry());

    expect(canonicalJson(answer)).toContain('demo');
    expect(answer.skills).toHaveLength(2);
  });
});
