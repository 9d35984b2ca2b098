import type { AuditRow } from '../../log/row.ts';
import { type Report, rowFinding } from '../finding.ts';
import type { LostRows } from './links.ts';
import type { JsonObject } from './payloads.ts';

/** A call between its two rows, with what later rules need of its beginning. */
export interface OpenCall {
  readonly enter: AuditRow;
  /** The kept arguments; undefined where there are none or they are not what was hashed. */
  readonly args: JsonObject | undefined;
  /** The text that its end is judged with: the content of a thought, or why the owner did something. */
  readonly text: string | undefined;
  /** Whether a server would have taken them; else no rule can be run on them. */
  readonly isFit: boolean;
}

const SHARED = ['tool', 'actor', 'source', 'correlation_id', 'rules', 'schema_valid'] as const;

/** Every exit row ends one open call and agrees with its enter row. Keeps the calls that have not ended. */
export class Pairing {
  readonly open = new Map<number, OpenCall>();
  readonly #lost: LostRows;
  readonly #report: Report;

  constructor(lost: LostRows, report: Report) {
    this.#lost = lost;
    this.#report = report;
  }

  /** The call that this row ends. `lost` where its beginning is, `none` where it does not end one as it says, which is reported. */
  end(exit: AuditRow): OpenCall | 'lost' | 'none' {
    const call = this.open.get(exit.sequence_no);
    if (call === undefined) {
      if (this.#lost.has(exit.sequence_no)) return 'lost';
      return this.#tell(exit, ['sequence_no'], `ends call ${exit.sequence_no}, which was not running`);
    }
    this.open.delete(exit.sequence_no);
    const wrong: string[] = [];
    for (const field of SHARED) if (call.enter[field] !== exit[field]) wrong.push(field);
    if (exit.outcome !== 'crashed' && call.enter.process !== exit.process) wrong.push('process');
    if (wrong.length === 0) return call;
    return this.#tell(exit, wrong, `does not agree with row ${call.enter.position}, which began its call`);
  }

  #tell({ position }: AuditRow, columns: string[], what: string): 'none' {
    const message = `Audit row ${position} ${what}: ${columns.join(', ')}.`;
    this.#report(rowFinding('unpaired', position, message, { columns }));
    return 'none';
  }
}
