import * as z from 'zod';

/** Longer than any name or capability there can be. */
const SEARCH_CHARS_MAX = 256;

export const SkillListInput = z.strictObject({
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
