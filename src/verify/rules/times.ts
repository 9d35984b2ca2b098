import { type Finding, type Report, rowFinding } from '../finding.ts';

const DAY_MS = 86_400_000;

/**
 * A time is never earlier than the last one, unless that one was more than a day ahead of the clock: then it was the
 * wrong one. Times are compared as texts, which is their order in this form.
 */
export class Times {
  #bound = '';
  #boundAt = 0;

  follow(position: number, at: string, report: Report): void {
    if (at < this.#bound) report(this.#backwards(position, at));
    this.#bound = at;
    this.#boundAt = position;
  }

  /** After the last row: its time has no successor to show that it is ahead. */
  end(now: number, report: Report): void {
    if (this.#bound !== '' && Date.parse(this.#bound) > now + DAY_MS) report(this.#ahead());
  }

  #backwards(position: number, at: string): Finding {
    if (Date.parse(this.#bound) - Date.parse(at) > DAY_MS) return this.#ahead();
    const message = `Audit row ${position} has the time ${at}, which is before that of row ${this.#boundAt}.`;
    return rowFinding('malformed', position, message, { columns: ['at'], expected: this.#bound, actual: at });
  }

  #ahead(): Finding {
    const [position, at] = [this.#boundAt, this.#bound];
    const message = `Audit row ${position} has the time ${at}, more than a day after it can have been written.`;
    return rowFinding('malformed', position, message, { columns: ['at'], actual: at });
  }
}
