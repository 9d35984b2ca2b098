import { inspect } from 'node:util';
import { LOG_LEVELS, type LogLevel } from './config.ts';
import { redactText } from './secrets.ts';
import { visible } from './untrusted.ts';

export type Logger = (...parts: unknown[]) => void;

export type Diagnostics = Readonly<Record<LogLevel, Logger>>;

/** One line an event, to stderr only: stdout belongs to the protocol. */
export function createDiagnostics(logger: Logger, level: LogLevel): Diagnostics {
  const at = (name: LogLevel): Logger => {
    if (LOG_LEVELS.indexOf(name) > LOG_LEVELS.indexOf(level)) return () => undefined;
    return (...parts) => logger('[colibri]', ...parts.map(harmless));
  };
  return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') };
}

/**
 * What is logged may repeat what a stranger sent: secrets are taken out, what acts on a terminal is spelled out, and
 * later lines are indented, so that none looks like one of ours. Anything else is passed on as it is.
 */
export function harmless(part: unknown): unknown {
  const text = typeof part === 'string' ? part : inspect(part);
  const clean = visible(redactText(text)).replace(/\n(?![ }])/g, '\n  ');
  return clean === text ? part : clean;
}
