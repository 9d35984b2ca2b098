import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as z from 'zod';
import { type CallContext, defineTool, type Tool } from '../../tool.ts';
import { SKILL_LIMITS } from './limits.ts';
import type { Skill, SkillListing, SkillRegistry, Skipped } from './registry.ts';
import { SkillListInput, SkillListOutput } from './schema.ts';

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

/** A turn of the event loop first: only then can a call have arrived that waits. */
async function letOthersPass(call: CallContext): Promise<void> {
  await nextTurn();
  await call.breathe();
}

function answer(
  { skills, skipped }: SkillListing,
  { search, capability }: z.output<typeof SkillListInput>,
): z.input<typeof SkillListOutput> {
  const words = search?.toLowerCase() ?? '';
  const matching = skills.filter(
    (skill) =>
      (skill.name.toLowerCase().includes(words) || skill.description.toLowerCase().includes(words)) &&
      (capability === undefined || skill.capabilities.includes(capability)),
  );
  return {
    skills: matching.map(view),
    total_count: matching.length,
    ...(skipped.length > 0 && { skipped: shorten(skipped) }),
  };
}

function view({ name, version, description, capabilities, path, digest, diagnostics }: Skill) {
  return {
    name,
    version,
    description,
    capabilities: [...capabilities],
    path,
    digest,
    ...(diagnostics.length > 0 && { diagnostics: [...diagnostics] }),
  };
}

function shorten(skipped: readonly Skipped[]): Skipped[] {
  const shown = skipped.slice(0, SKILL_LIMITS.skippedShownMax);
  const left = skipped.length - shown.length;
  return left === 0 ? shown : [...shown, { path: '', reason: `${left} more are not shown` }];
}
