import { ColibriError } from './errors.ts';

export const MODES = ['FULL', 'READONLY', 'TEST', 'MINIMAL'] as const;

/** Fixed for the life of the process. */
export type RuntimeMode = (typeof MODES)[number];

/** What a tool does to stored state; everything that depends on that reads this one word. */
export type ToolEffect = 'reads' | 'writes';

export interface ModeCapabilities {
  /** Where records live: the configured file, memory only, or nowhere. */
  readonly database: 'file' | 'memory' | 'none';
  readonly admits: (tool: { readonly name: string; readonly effect: ToolEffect }) => boolean;
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

/** The mode the environment asks for. Refuses every value it does not know, and the names of an older product. */
export function detectMode(env: Readonly<Record<string, string | undefined>>): RuntimeMode {
  if (env.AMS_MODE !== undefined) {
    throw new ColibriError(
      'ERR_CONFIG_INVALID',
      `AMS_MODE is set (to ${JSON.stringify(env.AMS_MODE)}), but Colibri reads COLIBRI_* variables only. Unset it and set COLIBRI_MODE.`,
      { variable: 'AMS_MODE', value: env.AMS_MODE },
    );
  }
  const asked = env.COLIBRI_MODE ?? 'FULL';
  const mode = MODES.find((known) => known === asked);
  if (mode !== undefined) return mode;
  throw new ColibriError(
    'ERR_INVALID_MODE',
    `COLIBRI_MODE is ${JSON.stringify(asked)}; allowed are ${MODES.join(', ')}. Set one of them, or unset it for FULL.`,
    { variable: 'COLIBRI_MODE', value: asked, allowed: MODES },
  );
}
