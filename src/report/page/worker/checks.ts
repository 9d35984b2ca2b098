import { STATE_TABLES } from '../../../log/tables.ts';
import type { Finding, FindingKind } from '../../../verify/finding.ts';
import { CHECKS, type CheckName, type CheckView } from '../protocol.ts';

const OF_HEADS: ReadonlySet<FindingKind> = new Set<FindingKind>([
  ...(['foreign', 'bad-head', 'cut-tail', 'older-copy', 'rewritten'] as const),
  ...(['replaced', 'foreign-key', 'bad-checkpoint', 'lost-key', 'lost-memory'] as const),
]);

/** Under which heading a finding is shown. */
export function checkOf({ kind, table }: Finding): CheckName {
  if (kind === 'forbidden' || kind === 'newer-rules') return 'replay';
  if (kind === 'bad-anchor') return 'anchors';
  if (OF_HEADS.has(kind)) return 'heads';
  if (table === 'actions') return kind === 'unlinked' ? 'chain' : 'rows';
  if (table === 'action_payloads') return 'payloads';
  if (table === 'texts') return 'texts';
  return STATE_TABLES.some(({ name }) => name === table) ? 'state' : 'files';
}

/** How many things a check was carried out on, or why it was not. */
export type Looked = { readonly count: number; readonly unit: string } | { readonly reason: string };

/** The checks as they are shown. Nothing counts as held that was not looked at. */
export function checksOf(
  looked: Readonly<Record<CheckName, Looked>>,
  wrong: ReadonlySet<CheckName>,
): CheckView[] {
  return Object.keys(CHECKS)
    .filter((name): name is CheckName => name in CHECKS)
    .map((name) => {
      const one = looked[name];
      const [count, unit] = 'unit' in one ? [one.count, one.unit] : [0, ''];
      if (wrong.has(name)) return { name, state: 'wrong', count, unit };
      return 'reason' in one
        ? { name, state: 'unchecked', count, unit, reason: one.reason }
        : { name, state: 'holds', count, unit };
    });
}
