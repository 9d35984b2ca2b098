import * as z from 'zod';
import { LIMITS } from '../../limits.ts';
import { type Tool, toolsOf } from '../../tool.ts';
import { line } from '../fields.ts';
import { ruled } from '../ruled.ts';
import { OWNER_RULES } from './rules.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);

export const AdoptInput = z.strictObject({
  reason: line(LIMITS.reasonCharsMax),
  /** The signed head that the log no longer extends, where there is one. */
  lost: z.strictObject({ size: z.int().min(0), root: hash, key: z.string().max(512) }).optional(),
  /** The key that signs from now on. */
  key: z.string().max(512),
});

const AdoptOutput = z.strictObject({ adopted_rows: z.int(), key: z.string() });

export type AdoptArgs = z.output<typeof AdoptInput>;

const tool = toolsOf('owner');

/** What only the owner does, from the command line: none of it can be reached over MCP. */
export function ownerTools(): Tool[] {
  return [
    tool({
      name: 'owner_adopt',
      title: 'Adopt log',
      summary: 'Accept the log as it is, and sign it from here on.',
      input: AdoptInput,
      output: AdoptOutput,
      ...ruled(OWNER_RULES.owner_adopt),
    }),
  ];
}
