import { filesCheckpoint } from '../../log/row.ts';
import { headIn, keptName } from '../../trust/opening.ts';
import { auditRow, type Finding, type Report } from '../finding.ts';
import type { SourceNote } from '../source.ts';
import type { ReadRow } from './row-form.ts';

/** An exit row whose commit filed a checkpoint for good, and the last row that the commit can have ended with. */
interface Filing extends Pick<ReadRow, 'position' | 'tool' | 'process'> {
  through: number;
}

/** The rows that filed a checkpoint. Behind such a row, its commit holds nothing but ends of calls of the same process. */
export class Filings {
  readonly #all: Filing[] = [];
  /** Those whose commit may go on. */
  #open: Filing[] = [];

  follow(row: ReadRow): void {
    const { position, tool, process } = row;
    if (this.#open.length > 0 && (row.stage === 'enter' || this.#open[0]?.process !== process)) {
      for (const filing of this.#open) filing.through = position - 1;
      this.#open = [];
    }
    if (!filesCheckpoint(row)) return;
    const filing = { position, tool, process, through: Number.POSITIVE_INFINITY };
    this.#all.push(filing);
    this.#open.push(filing);
  }

  /**
   * Reports each checkpoint that must be among the kept ones and is not: those that the rows between `after` and `through`
   * filed, and those that this machine remembers. One that was changed is there: what is wrong with it was said.
   */
  check(
    kept: readonly SourceNote[],
    remembered: readonly string[],
    { after, through }: { readonly after: number; readonly through: number },
    report: Report,
  ): void {
    const there = kept.flatMap(({ size, key = '', note }) =>
      [size ?? 0, headIn(note)?.size ?? 0].map((one) => ({ size: one, name: keptName(one, key) })),
    );
    const sizes = there.map(({ size }) => size).sort((a, b) => a - b);
    const missing: Filing[] = [];
    let next = 0;
    for (const filing of this.#all) {
      if (filing.position <= after || filing.position > through) continue;
      while ((sizes[next] ?? Number.POSITIVE_INFINITY) < filing.position) next += 1;
      if ((sizes[next] ?? Number.POSITIVE_INFINITY) <= filing.through) continue;
      missing.push(filing);
      const what = `No kept checkpoint covers ${auditRow(filing.position)} (${filing.tool}), which filed one`;
      report(missingCheckpoint(auditRow(filing.position), what));
    }
    const names = new Set(there.map(({ name }) => name));
    for (const name of new Set(remembered)) {
      const [size = '', key] = name.split(' ');
      const isSaid = missing.some(
        (filing) => filing.position <= Number(size) && Number(size) <= filing.through,
      );
      if (names.has(name) || isSaid) continue;
      const record = `the kept checkpoint ${size} of key ${key}`;
      report(missingCheckpoint(record, `This machine has filed ${record}, and it is not there`));
    }
  }
}

function missingCheckpoint(record: string, what: string): Finding {
  const message = `${what}: it was deleted, or this is an older copy.`;
  return { kind: 'missing', table: 'checkpoints', record, message };
}
