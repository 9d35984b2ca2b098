import * as z from 'zod';
import { LIMITS } from '../../limits.ts';
import { line } from '../fields.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);

export const AdoptInput = z.strictObject({
  reason: line(LIMITS.reasonCharsMax),
  /** The signed head that the log no longer extends, where there is one. */
  lost: z.strictObject({ size: z.int().min(0), root: hash, key: z.string().max(512) }).optional(),
  /** The key that signs from now on. */
  key: z.string().max(512),
});

export const AdoptOutput = z.strictObject({ adopted_rows: z.int(), key: z.string() });

export type AdoptArgs = z.output<typeof AdoptInput>;
