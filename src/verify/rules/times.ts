import { auditRow, type Report } from '../finding.ts';

const DAY_MS = 86_400_000;

/**
 * A time is never earlier than the last one, unless that one was more than a day ahead of the clock: then it was the
 * wrong one. Times are compared as texts, which is their order in this form.
 */
export class Times {
  #bound = '';
  #boundAt = 0;

  follow(position: number, at: string, report: Report): void {
    if (at < this.#bound) this.#reportBackwards(position, at, report);
    this.#bound = at;
    this.#boundAt = position;
  }

  /** After the last row: its time has no successor to show that it is ahead. */
  end(now: number, report: Report): void {
    if (this.#bound === '' || Date.parse(this.#bound) <= now + DAY_MS) return;
    report(ahead(this.#boundAt, this.#bound));
  }

  #reportBackwards(position: number, at: string, report: Report): void {
    if (Date.parse(this.#bound) - Date.parse(at) > DAY_MS) {
      report(ahead(this.#boundAt, this.#bound));
      return;
    }
    const message = `Audit row ${position} has the time ${at}, which is before that of row ${this.#boundAt}.`;
    const base = {
      kind: 'malformed',
      table: 'actions',
      record: auditRow(position),
      columns: ['at'],
    } as const;
    report({ ...base, position, message, expected: this.#bound, actual: at });
  }
}

function ahead(position: number, at: string) {
  const message = `Audit row ${position} has the time ${at}, more than a day after it can have been written.`;
  return {
    kind: 'malformed',
    table: 'actions',
    record: auditRow(position),
    columns: ['at'],
    position,
    message,
    actual: at,
  } as const;
}
