import type { Tool } from './tool.ts';

export const MODES = ['FULL', 'READONLY', 'TEST', 'MINIMAL'] as const;

/** Fixed for the life of the process. */
export type RuntimeMode = (typeof MODES)[number];

interface ModeCapabilities {
  /** Where records live: the configured file, memory only, or nowhere. */
  readonly database: 'file' | 'memory' | 'none';
  readonly admits: (tool: Pick<Tool, 'name' | 'effect'>) => boolean;
}

const SYSTEM_TOOLS: readonly string[] = ['server_ping', 'server_health'];

const CAPABILITIES: Readonly<Record<RuntimeMode, ModeCapabilities>> = {
  FULL: { database: 'file', admits: () => true },
  READONLY: { database: 'file', admits: (tool) => tool.effect === 'reads' },
  TEST: { database: 'memory', admits: () => true },
  MINIMAL: { database: 'none', admits: (tool) => SYSTEM_TOOLS.includes(tool.name) },
};

/** What the mode allows, as data. */
export function capabilitiesFor(mode: RuntimeMode): ModeCapabilities {
  return CAPABILITIES[mode];
}
