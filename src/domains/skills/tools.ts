import * as z from 'zod';
import { type Tool, toolsOf } from '../../tool.ts';
import { otherwise, pageOffset, texts } from '../fields.ts';
import type { SkillListing, SkillRegistry } from './registry.ts';
import { SKILL_LIMITS } from './skill-folder.ts';

/** Longer than any name or capability can be. */
const SEARCH_CHARS_MAX = 256;
const PAGE_DEFAULT = 50;

const SkillListInput = z.strictObject({
  search: z.string().max(SEARCH_CHARS_MAX).optional().describe('part of the name or description'),
  capability: z.string().max(SEARCH_CHARS_MAX).optional().describe('exact name'),
  limit: otherwise(z.int().min(1).max(SKILL_LIMITS.pageMax), PAGE_DEFAULT),
  offset: pageOffset,
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
      summary: 'List the skills in force with their digests, and skipped files with the reasons.',
      effect: 'reads',
      kind: 'snapshot',
      input: SkillListInput,
      output: SkillListOutput,
      example: { search: 'review' },
      handle: async (args) => answer(await registry.list(), args),
    }),
  ];
}

function answer(listing: SkillListing, args: z.output<typeof SkillListInput>) {
  const { search = '', capability, limit = PAGE_DEFAULT, offset = 0 } = args;
  const words = search.toLowerCase();
  const matching = listing.skills.filter(
    ({ name, description, capabilities }) =>
      [name, description].some((text) => text.toLowerCase().includes(words)) &&
      (capability === undefined || capabilities.includes(capability)),
  );
  const skipped = fitting(listing.skipped, SKILL_LIMITS.skippedBytesMax);
  const left = listing.skipped.length - skipped.length;
  if (left > 0) skipped.push({ path: '', reason: `${left} more; "colibri doctor" lists them all` });
  const room = SKILL_LIMITS.pageBytesMax - bytesOf(skipped);
  return {
    skills: fitting(matching.slice(offset, offset + limit), room).map((skill) => ({
      ...skill,
      capabilities: [...skill.capabilities],
    })),
    total_count: matching.length,
    ...(skipped.length > 0 && { skipped }),
  };
}

/** The first of them that fit into so many bytes of JSON, but at least one: else no page would follow. */
function fitting<T>(items: readonly T[], bytesMax: number): T[] {
  let bytes = 0;
  const end = items.findIndex((item, i) => {
    bytes += bytesOf(item) + 1;
    return bytes > bytesMax && i > 0;
  });
  return items.slice(0, end === -1 ? undefined : end);
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value));
}
