import * as z from 'zod';
import { type Tool, toolsOf } from '../../tool.ts';
import { texts } from '../fields.ts';
import type { SkillListing, SkillRegistry } from './registry.ts';
import { SKILL_LIMITS } from './skill-folder.ts';

/** Longer than any name or capability can be. */
const SEARCH_CHARS_MAX = 256;

const SkillListInput = z.strictObject({
  search: z.string().max(SEARCH_CHARS_MAX).optional(),
  capability: z.string().max(SEARCH_CHARS_MAX).optional(),
});

export const SkillListOutput = z.strictObject({
  skills: z.array(
    z.strictObject({
      ...texts('name', 'version', 'description', 'path', 'digest'),
      capabilities: z.array(z.string()),
    }),
  ),
  total_count: z.int().nonnegative(),
  skipped: z.array(z.strictObject(texts('path', 'reason'))).optional(),
});

const tool = toolsOf('skills');

export function skillTools(registry: SkillRegistry): Tool[] {
  return [
    tool({
      name: 'skill_list',
      title: 'List skills',
      summary: 'Skills in force, with digests, and files skipped, with reasons.',
      effect: 'reads',
      kind: 'snapshot',
      input: SkillListInput,
      output: SkillListOutput,
      handle: async (args) => answer(await registry.list(), args),
    }),
  ];
}

function answer(listing: SkillListing, { search, capability }: z.output<typeof SkillListInput>) {
  const words = search?.toLowerCase() ?? '';
  const matching = listing.skills.filter(
    ({ name, description, capabilities }) =>
      [name, description].some((text) => text.toLowerCase().includes(words)) &&
      (capability === undefined || capabilities.includes(capability)),
  );
  const skipped = listing.skipped.slice(0, SKILL_LIMITS.skippedShownMax);
  const left = listing.skipped.length - skipped.length;
  if (left > 0) skipped.push({ path: '', reason: `${left} more are not shown` });
  return {
    skills: matching.map((skill) => ({ ...skill, capabilities: [...skill.capabilities] })),
    total_count: matching.length,
    ...(skipped.length > 0 && { skipped }),
  };
}
