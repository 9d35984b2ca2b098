import { ColibriError } from '../errors.ts';
import { capabilitiesFor, type RuntimeMode } from '../modes.ts';
import type { Tool } from '../tool.ts';

/** What stage 4 looks at before it lets a handler run. */
export interface Admission {
  readonly mode: RuntimeMode;
  /** Why there is no database, if there should be one. */
  readonly degraded: () => string | undefined;
}

/** Stage 4's gate, asked once, before a transaction is opened: a mode that admits no writing may stand on a file that takes none. */
export function assertAdmitted(admission: Admission, tool: Tool): void {
  if (!capabilitiesFor(admission.mode).admits(tool)) {
    throw new ColibriError(
      'TOOL_NOT_ADMITTED',
      `${tool.name} is not available in mode ${admission.mode}. Ask the owner to start Colibri with COLIBRI_MODE=FULL.`,
      { mode: admission.mode },
    );
  }
  const reason = admission.degraded();
  if (reason !== undefined && tool.family !== 'system') {
    throw new ColibriError(
      'ERR_INIT_FAILED',
      `Colibri runs without its database: ${reason} Then start it again.`,
      {
        reason,
      },
    );
  }
}
