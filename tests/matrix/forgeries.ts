import { BIT_FORGERIES } from './forgeries/bits.ts';
import { ERASURE_FORGERIES } from './forgeries/erasures.ts';
import type { Forgery } from './forgeries/forgery.ts';
import { HEAD_FORGERIES } from './forgeries/heads.ts';
import { ROW_FORGERIES } from './forgeries/rows.ts';
import { ARGUMENT_FORGERIES, RULE_FORGERIES } from './forgeries/rules.ts';
import { COLUMN_FORGERIES, DERIVED_FORGERIES, STATE_FORGERIES } from './forgeries/state.ts';
import { TRANSFER_FORGERIES } from './forgeries/transfers.ts';

/** Every forgery of the matrix that begins with a database. */
export const FORGERIES: readonly Forgery[] = [
  ...ROW_FORGERIES,
  ...HEAD_FORGERIES,
  ...RULE_FORGERIES,
  ...ARGUMENT_FORGERIES,
  ...STATE_FORGERIES,
  ...ERASURE_FORGERIES,
  ...TRANSFER_FORGERIES,
  ...COLUMN_FORGERIES,
  ...DERIVED_FORGERIES,
  ...BIT_FORGERIES,
];

/** The ones that run in `npm test`: at least one of each kind. */
export const SAMPLE: ReadonlySet<string> = new Set([
  'V1 a ping rewrites a thought, without the key',
  'V2 a legal call is appended without the key',
  'V3 a call that took less than no time',
  'V4 a bit of a key of action_payloads',
  'V5 the salt of arguments takes over their body',
  'V6 a file too many that the sums name',
  'V6 a marker with a verdict of its own',
  'V9 a row fifty places on, without the key',
  'V10 the last row is of the year 9999',
  'V15 a kept checkpoint whose R is of small order',
  'heads: the head is removed',
  'heads: replaced by that of another key',
  'a move that no transition allows',
  'a proof-grade task is finished while its session is open',
  'a wrong default: priority',
  'a session is sealed twice',
  'a refusal though the rule allows it',
  'texts: a different salt in the row than in the call',
  'derived: unmet',
  'erasure: the text is still there',
  'erasure: the title of another task',
  'derived: erased_texts lacks a text',
  'A10 kept: the checkpoint of a seal is deleted',
  'A10 kept: the checkpoint of a clean stop is deleted',
  'transfer: a call follows it',
  'transfer: a log is received that nobody transferred',
]);
