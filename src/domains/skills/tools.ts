import { setImmediate as nextTurn } from 'node:timers/promises';
import * as z from 'zod';
import { type CallContext, defineTool, type Tool } from '../../tool.ts';
import { SKILL_LIMITS } from './limits.ts';
import type { SkillListing, SkillRegistry, Skipped } from './registry.ts';

/** Longer than any name or capability can be. */
const SEARCH_CHARS_MAX = 256;

const SkillListInput = z.strictObject({
  search: z.string().max(SEARCH_CHARS_MAX).optional(),
  capability: z.string().max(SEARCH_CHARS_MAX).optional(),
});

export const SkillListOutput = z.strictObject({
  skills: z.array(
    z.strictObject({
      name: z.string(),
      version: z.string(),
      description: z.string(),
      capabilities: z.array(z.string()),
      path: z.string(),
      digest: z.string(),
      diagnostics: z.array(z.string()).optional(),
    }),
  ),
  total_count: z.int().nonnegative(),
  skipped: z.array(z.strictObject({ path: z.string(), reason: z.string() })).optional(),
});

export function skillTools(registry: SkillRegistry): Tool[] {
  return [
    defineTool({
      name: 'skill_list',
      title: 'List skills',
      summary: 'Skills in force, with digests, and files skipped, with reasons.',
      family: 'skills',
      effect: 'reads',
      input: SkillListInput,
      output: SkillListOutput,
      handle: async (args, call) => answer(await registry.list(() => letOthersPass(call)), args),
    }),
  ];
}

/** Waits one turn of the event loop first: only then can a waiting call have arrived. */
async function letOthersPass(call: CallContext): Promise<void> {
  await nextTurn();
  await call.yieldToWaiting();
}

function answer(
  { skills, skipped }: SkillListing,
  { search, capability }: z.output<typeof SkillListInput>,
): z.input<typeof SkillListOutput> {
  const words = search?.toLowerCase() ?? '';
  const matching = skills.filter(
    ({ name, description, capabilities }) =>
      (name.toLowerCase().includes(words) || description.toLowerCase().includes(words)) &&
      (capability === undefined || capabilities.includes(capability)),
  );
  return {
    skills: matching.map(({ diagnostics, ...skill }) => ({
      ...skill,
      capabilities: [...skill.capabilities],
      ...(diagnostics.length > 0 && { diagnostics: [...diagnostics] }),
    })),
    total_count: matching.length,
    ...(skipped.length > 0 && { skipped: shorten(skipped) }),
  };
}

function shorten(skipped: readonly Skipped[]): Skipped[] {
  const shown = skipped.slice(0, SKILL_LIMITS.skippedShownMax);
  const left = skipped.length - shown.length;
  return left === 0 ? shown : [...shown, { path: '', reason: `${left} more are not shown` }];
}
