import type { AuditSink } from '../audit-sink.ts';
import type { Diagnostics } from '../diagnostics.ts';

/** Where calls are written down when there is no database to write them to. Arguments stay out of it: it is plain text. */
export function createStderrSink(diagnostics: Diagnostics): AuditSink {
  return Object.freeze({
    enter() {
      // One line a call is enough here, and only the exit knows how it ended.
    },
    exit(event: Parameters<AuditSink['exit']>[0]) {
      const { tool, correlationId, outcome, errorCode, durationMs, entered } = event;
      // Whatever the level is set to: this line is the call's only record.
      diagnostics.error(
        'call',
        JSON.stringify({ tool, actor: entered.actor, correlationId, outcome, errorCode, durationMs }),
      );
    },
  });
}
