import { inspect } from 'node:util';
import { LOG_LEVELS, type LogLevel } from './config.ts';
import { redactText } from './secrets.ts';

export type Logger = (...parts: unknown[]) => void;

export type Diagnostics = Readonly<Record<LogLevel, Logger>>;

/** One line an event, to stderr only: stdout belongs to the protocol. */
export function createDiagnostics(logger: Logger, level: LogLevel): Diagnostics {
  const at = (name: LogLevel): Logger => {
    if (LOG_LEVELS.indexOf(name) > LOG_LEVELS.indexOf(level)) return () => undefined;
    return (...parts) => logger('[colibri]', ...parts.map(withoutSecrets));
  };
  return { error: at('error'), warn: at('warn'), info: at('info'), debug: at('debug') };
}

/** What is logged may repeat what a stranger sent. Anything without a secret is passed on as it is. */
export function withoutSecrets(part: unknown): unknown {
  const text = typeof part === 'string' ? part : inspect(part);
  const clean = redactText(text);
  return clean === text ? part : clean;
}
