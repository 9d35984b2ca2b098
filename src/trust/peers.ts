import type { VerifierKey } from '../integrity/signed-note.ts';
import type { Reader } from '../storage/engine.ts';
import { keyIn, originOfKey } from './opening.ts';
import { ADOPTED, actsOnRecord, type LogView, type RecordedAct } from './own-log.ts';
import { adoptionId } from './statement.ts';

/** The other machines that share a log, as the log itself tells of them. `own` is the key of this one, once it has one. */
export class Peers {
  readonly keys = new Map<string, VerifierKey>();
  #adoptions: string[] = [];
  /** How far the log was read for them; 0 before the first time. */
  #readThrough = 0;

  /** Adoptions on the record, by their ids. */
  get adoptions(): readonly string[] {
    return this.#adoptions;
  }

  /** What was recorded since the last time. */
  async news(tx: Reader): Promise<readonly RecordedAct[]> {
    return this.#readThrough > 0 ? await actsOnRecord(tx, this.#readThrough) : [];
  }

  /** Takes in acts that were read from the log. */
  learn(acts: readonly RecordedAct[], { origin, last }: LogView, own: string | undefined): void {
    for (const act of acts) {
      this.#add(act.key, origin, own);
      if (act.act === ADOPTED) this.#adoptions.push(adoptionId(act));
    }
    if (this.#readThrough > 0) this.#readThrough = last.position;
  }

  /** Learns the keys of those who signed. One that is not on the record is a stranger's. */
  async meet(tx: Reader, view: LogView, own: string | undefined): Promise<void> {
    const strange = view.heads.filter(({ key }) => key !== own && !this.keys.has(key));
    // Where nobody else signs, nobody else is on the record.
    const isRead = this.#readThrough > 0 || view.heads.every(({ key }) => key === own);
    if (strange.length === 0 && isRead) return;
    if (this.#readThrough === 0) this.learn(await actsOnRecord(tx, 0), view, own);
    for (const { key } of strange) if (originOfKey(key) === view.origin) this.#add(key, view.origin, own);
    this.#readThrough = view.last.position;
  }

  /** What was read may be of rows that are gone. A key that was met stays met. */
  forget(): void {
    this.#readThrough = 0;
    this.#adoptions = [];
  }

  #add(text: string, origin: string | undefined, own: string | undefined): void {
    const key = keyIn(text);
    if (key !== undefined && key.name === origin && text !== own) this.keys.set(text, key);
  }
}
