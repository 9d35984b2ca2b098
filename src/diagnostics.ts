import type { LogLevel } from './config.ts';

export type Logger = (...parts: unknown[]) => void;

/** One line an event, to stderr only: stdout belongs to the protocol. */
export interface Diagnostics {
  readonly error: Logger;
  readonly warn: Logger;
  readonly info: Logger;
  readonly debug: Logger;
}

const ORDER: readonly LogLevel[] = ['error', 'warn', 'info', 'debug'];

export function createDiagnostics(logger: Logger, level: LogLevel): Diagnostics {
  const at = (name: LogLevel): Logger => {
    if (ORDER.indexOf(name) > ORDER.indexOf(level)) return () => undefined;
    return (...parts) => logger('[colibri]', ...parts);
  };
  return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') };
}
