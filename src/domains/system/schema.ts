import * as z from 'zod';
import { MODES } from '../../modes.ts';
import { texts } from '../fields.ts';

export const NoInput = z.strictObject({});

const Identity = {
  version: z.string(),
  mode: z.enum(MODES),
  uptime_ms: z.int().nonnegative(),
  timestamp: z.iso.datetime(),
};

export const PingOutput = z.strictObject(Identity);

export const HealthOutput = z.strictObject({
  status: z.enum(['ok', 'degraded']),
  ...Identity,
  db: z.strictObject({
    open: z.boolean(),
    user_version: z.int(),
    ...texts('path', 'schema', 'engine', 'journal'),
    writable: z.boolean(),
    reason: z.string().optional(),
  }),
  log: z.strictObject({
    origin: z.string(),
    signed_through: z.int(),
    refused: z.string().optional(),
    keys: z.array(z.string()).optional(),
  }),
  middleware: z.strictObject({ stages: z.array(z.string()) }),
  tools: z.strictObject({ registered: z.int(), names: z.array(z.string()) }),
  process: z.strictObject({ pid: z.int(), memory_bytes: z.int() }),
  skills: z.strictObject({
    loaded: z.int(),
    skipped: z.int(),
    reasons: z.array(z.strictObject(texts('path', 'reason'))).optional(),
  }),
});
