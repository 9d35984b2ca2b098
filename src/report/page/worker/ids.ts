import type { AuditRow } from '../../../log/row.ts';
import { type Fields, textOf } from './fields.ts';

/** The task a call is about, as its arguments, its answer or its effects name it. */
export function taskOf(args: Fields, result: Fields, exit: AuditRow | undefined): string {
  const named = [args.task_id, result.task_id].map(textOf).find((id) => /^T-\d{4,15}$/.test(id));
  return named ?? exit?.effects.find(({ table }) => table === 'tasks')?.id ?? '';
}

export function sessionOf(args: Fields, result: Fields): string {
  return [args.session_id, result.session_id].map(textOf).find((id) => /^A-\d{4,15}$/.test(id)) ?? '';
}
