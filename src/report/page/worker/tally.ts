import type { Finding } from '../../../log/verify/finding.ts';
import { CHECKS, type CheckName, type CheckView, type FindingView } from '../protocol.ts';

const FINDINGS_KEPT_MAX = 1_000;

/** What was looked at, and what was wrong with it. Nothing counts as held that was not counted here. */
export class Tally {
  readonly findings: FindingView[] = [];
  /** Positions of rows that something is wrong with. */
  readonly wrongAt = new Set<number>();
  findingCount = 0;
  #firstBad = Number.POSITIVE_INFINITY;
  readonly #wrong = new Set<CheckName>();
  readonly #counts = new Map<CheckName, { count: number; unit: string }>();
  readonly #reasons = new Map<CheckName, string>();

  say(check: CheckName, finding: Finding): void {
    this.findingCount += 1;
    this.#wrong.add(check);
    if (finding.position !== undefined) {
      this.#firstBad = Math.min(this.#firstBad, finding.position);
      this.wrongAt.add(finding.position);
    }
    if (this.findings.length < FINDINGS_KEPT_MAX) this.findings.push({ ...finding, check });
  }

  /** A check was carried out on so many things. */
  looked(check: CheckName, count: number, unit: string): void {
    this.#counts.set(check, { count, unit });
  }

  /** A check, or a part of it, could not be carried out. */
  skip(check: CheckName, reason: string): void {
    this.#reasons.set(check, reason);
  }

  intactThrough(last: number): number {
    return Math.max(0, Math.min(last, this.#firstBad - 1));
  }

  checks(): CheckView[] {
    return (Object.keys(CHECKS) as CheckName[]).map((name) => {
      const { count, unit } = this.#counts.get(name) ?? { count: 0, unit: '' };
      const reason = this.#reasons.get(name);
      if (this.#wrong.has(name)) return { name, state: 'wrong', count, unit };
      if (reason !== undefined) return { name, state: 'unchecked', count, unit, reason };
      if (unit === '')
        return { name, state: 'unchecked', count, unit, reason: 'there was nothing to check it on' };
      return { name, state: 'holds', count, unit };
    });
  }
}
