import type { Finding } from '../../../verify/finding.ts';
import type { CheckName } from '../protocol.ts';
import { checkOf } from './checks.ts';

const KEPT_MAX = 1_000;

/** What the verifier found, as far as the page shows it: there may be as many findings as rows. */
export class Findings {
  /** The first ones. */
  readonly first: Finding[] = [];
  count = 0;
  /** Positions that findings speak of. */
  readonly positions = new Set<number>();
  /** Records that they speak of. */
  readonly records = new Set<string>();
  /** Digests of texts that are gone without having been erased. */
  readonly missingTexts = new Set<string>();
  readonly checks = new Set<CheckName>();

  add(finding: Finding): void {
    const { kind, table, record, position, expected } = finding;
    this.count += 1;
    if (this.first.length < KEPT_MAX) this.first.push(finding);
    if (position !== undefined) this.positions.add(position);
    this.records.add(record);
    this.checks.add(checkOf(finding));
    if (table === 'texts' && kind === 'missing' && expected !== undefined) this.missingTexts.add(expected);
  }
}
