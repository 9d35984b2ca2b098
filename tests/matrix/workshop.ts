import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Playground } from '../driver/playground.ts';
import { ForgedLog } from './forge.ts';
import type { Forgery } from './forgeries/forgery.ts';
import { type HonestLog, makeHonestLog } from './honest-log.ts';
import { exportTo, type Found, foundIn, type Judgement, type Place, placeIn, rangesIn } from './sources.ts';

/** A forged log on the disk, and what must be found in it. */
export interface Forged {
  readonly place: Place;
  readonly expected: readonly Found[];
}

/** One honest log, and any number of forged ones made from it. */
export class Workshop {
  readonly folder: string;
  readonly #colibri: Playground;
  readonly #honest: HonestLog;
  #made = 0;

  static async open(): Promise<Workshop> {
    const colibri = new Playground();
    try {
      return new Workshop(colibri, await makeHonestLog(colibri));
    } catch (error) {
      await colibri.dispose();
      throw error;
    }
  }

  private constructor(colibri: Playground, honest: HonestLog) {
    this.#colibri = colibri;
    this.#honest = honest;
    // Hundreds of files that live for a second: where there is a folder in memory, there.
    const kept = process.env.COLIBRI_MATRIX_KEEP;
    this.folder =
      kept ?? mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'colibri-matrix-'));
  }

  /** The log as the server left it, byte for byte. */
  untouched(): Place {
    const place = this.#place(this.log().origin);
    cpSync(this.#honest.dbPath, place.dbPath);
    cpSync(this.#honest.configDir, place.configDir, { recursive: true });
    return place;
  }

  log(): ForgedLog {
    const { dbPath, configDir, versions } = this.#honest;
    return new ForgedLog(dbPath, configDir, versions);
  }

  /** What a change leaves when everything else is made to agree. */
  write(log: ForgedLog): Place {
    const place = this.#place(log.origin);
    log.write(place.dbPath, place.configDir);
    return place;
  }

  forge({ forge, damage }: Forgery): Forged {
    const log = this.log();
    const found = [forge(log)].flat();
    const place = this.write(log);
    return { place, expected: [...found, ...[damage?.(place.dbPath, log) ?? []].flat()] };
  }

  /** A folder and a zip of the log. */
  async bundles(place: Place): Promise<{ readonly folder: string; readonly zip: string }> {
    const [folder, zip] = [join(place.folder, 'bundle'), join(place.folder, 'bundle.zip')];
    for (const path of [folder, zip]) await exportTo(place, path);
    return { folder, zip };
  }

  /** Leaves what was found of a log beside it, for other versions of Node to find the same. */
  keep(place: Place, judged: Readonly<Record<string, Judgement>>): void {
    if (process.env.COLIBRI_MATRIX_KEEP === undefined) return;
    const said = Object.fromEntries(
      Object.entries(judged).map(([file, one]) => [file, { found: foundIn(one), ranges: rangesIn(one) }]),
    );
    writeFileSync(join(place.folder, 'judged.json'), JSON.stringify({ origin: place.origin, said }));
  }

  /** A forged log that is done with. */
  clear(place: Place): void {
    if (process.env.COLIBRI_MATRIX_KEEP === undefined) rmSync(place.folder, { recursive: true, force: true });
  }

  async close(): Promise<string[]> {
    if (process.env.COLIBRI_MATRIX_KEEP === undefined) rmSync(this.folder, { recursive: true, force: true });
    return await this.#colibri.dispose();
  }

  #place(origin: string): Place {
    this.#made += 1;
    return placeIn(join(this.folder, String(this.#made)), origin);
  }
}
