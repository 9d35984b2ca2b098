import { OWNER_RULES } from './owner/rules.ts';
import { PROOF_RULES } from './proof/rules.ts';
import type { WritingRule } from './rule.ts';
import { TASK_RULES } from './tasks/rules.ts';
import { TRAIL_RULES } from './trail/rules.ts';

/** Every released version of the rules, by the number that audit rows carry. Version 1 may change until 0.2.0 is released. */
export const RULES: Readonly<Record<number, Readonly<Record<string, WritingRule>>>> = {
  1: { ...TASK_RULES, ...TRAIL_RULES, ...PROOF_RULES, ...OWNER_RULES },
};

/** Tools that only read. Any other name is of no tool at all: a call of it can only have been rejected. */
export const READING_TOOLS: ReadonlySet<string> = new Set([
  ...['task_get', 'task_list', 'task_next_actions', 'thought_record_list', 'audit_verify_chain'],
  ...['merkle_root', 'skill_list', 'server_ping', 'server_health'],
]);
