import { listIn } from '../../../untrusted.ts';
import { isObject } from '../../../verify/rules/payloads.ts';
import type { OpenedSource } from './open.ts';

/** What a certificate is about, in the order in which a person asks. */
export type CertificateView = NonNullable<ReturnType<typeof certificateOf>>;

/** Nothing for a bundle. Every text is a stranger's, and none is proved where there are findings. */
export function certificateOf({ source, calls, tasks, thoughts, sessions }: OpenedSource) {
  if (source.whole) return undefined;
  const { subject } = source;
  const isAbout = ({ ids }: { readonly ids: readonly string[] }) => ids.includes(subject);
  const thought = thoughts.find(({ id }) => id === subject);
  const session = sessions.find(({ id }) => id === subject);
  const about = session?.task ?? thought?.task ?? subject;
  const done = calls.filter(({ kind }) => kind !== 'read' && kind !== 'thought');
  return {
    subject,
    task: tasks.find(({ id }) => id === about),
    thought,
    session,
    /** What was done, the oldest first, refusals included. */
    steps: session === undefined ? done.filter(isAbout) : done,
    /** The reasons, in the order in which they were recorded. */
    reasons: thoughts.filter(({ id, task }) => [id, task].includes(subject) || session !== undefined),
    seals: sessions.filter(({ isSealed }) => isSealed),
    skills: [...new Set(sessions.flatMap(({ skills }) => listIn(skills).filter(isObject).map(skillName)))],
  };
}

function skillName({ name, version }: Readonly<Record<string, unknown>>): string {
  const texts = [name, version].filter((part) => typeof part === 'string');
  return texts.join(' ');
}
