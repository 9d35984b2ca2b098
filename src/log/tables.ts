import type { StateTable } from './state.ts';

/** The tables whose every row the log vouches for. The verifier walks this list; a test holds it against the schema. */
export const TASKS: StateTable = { name: 'tasks', noun: 'task', prefix: 'T', createdBy: 'task_create' };
export const THOUGHTS: StateTable = {
  name: 'thoughts',
  noun: 'thought',
  prefix: 'Θ',
  createdBy: 'thought_record',
};
export const SESSIONS: StateTable = {
  name: 'sessions',
  noun: 'session',
  prefix: 'A',
  createdBy: 'audit_session_start',
};
export const SESSION_RECORDS: StateTable = {
  name: 'session_records',
  noun: 'session record',
  prefix: 'R',
  createdBy: 'thought_record',
};

export const STATE_TABLES: readonly StateTable[] = [TASKS, THOUGHTS, SESSIONS, SESSION_RECORDS];
