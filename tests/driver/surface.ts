import type { Message } from './message.ts';
import { Playground } from './playground.ts';

/** The fourteen tools, by family. */
export const FOURTEEN = [
  'task_create',
  'task_get',
  'task_update',
  'task_list',
  'task_next_actions',
  'skill_list',
  'thought_record',
  'thought_record_list',
  'audit_verify_chain',
  'audit_session_start',
  'merkle_finalize',
  'merkle_root',
  'server_ping',
  'server_health',
] as const;

/** A tool as tools/list shows it. */
export interface ListedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  readonly annotations: Readonly<Record<string, boolean>>;
}

export interface JsonSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly maxLength?: number;
  readonly maxItems?: number;
  readonly [keyword: string]: unknown;
}

export function listedTools(answer: Message): readonly ListedTool[] {
  return answer.result?.tools as readonly ListedTool[];
}

let offered: Promise<readonly string[]> | undefined;

/** Why a proof that needs these tools cannot be given with the server as built, or undefined. Asked once a test file. */
export async function toolsMissing(...names: (typeof FOURTEEN)[number][]): Promise<string | undefined> {
  offered ??= askForTools();
  const known = await offered;
  const missing = names.filter((name) => !known.includes(name));
  return missing.length === 0 ? undefined : `the built server has no ${missing.join(', ')}`;
}

async function askForTools(): Promise<readonly string[]> {
  const colibri = new Playground();
  try {
    const server = await colibri.start({ env: { COLIBRI_MODE: 'TEST' } });
    return listedTools(await server.request('tools/list')).map((tool) => tool.name);
  } finally {
    await colibri.dispose();
  }
}
