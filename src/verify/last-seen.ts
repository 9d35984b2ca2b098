import { seenAt } from '../log/row.ts';

/** When each server process last wrote a row for each actor. Rows of one of them follow each other, so most need no lookup. */
export class LastSeen {
  readonly #times = new Map<string, Map<string, Time>>();
  #process = '';
  #actor = '';
  #time: Time | undefined;

  note(process: string, actor: string, at: string): void {
    if (this.#time === undefined || process !== this.#process || actor !== this.#actor) {
      const actors = this.#times.get(process) ?? new Map<string, Time>();
      this.#times.set(process, actors);
      this.#time = actors.get(actor) ?? { at };
      actors.set(actor, this.#time);
      [this.#process, this.#actor] = [process, actor];
    }
    this.#time.at = seenAt(this.#time.at, at);
  }

  of(process: string, actor: string): string | undefined {
    return this.#times.get(process)?.get(actor)?.at;
  }

  *[Symbol.iterator](): Iterator<readonly [process: string, actor: string, at: string]> {
    for (const [process, actors] of this.#times)
      for (const [actor, { at }] of actors) yield [process, actor, at];
  }
}

interface Time {
  at: string;
}
