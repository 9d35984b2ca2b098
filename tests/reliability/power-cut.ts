import { writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Random } from '../driver/random.ts';
import type { TraceEvent } from './trace.ts';

/** What becomes of writes that no sync has covered yet. */
export type Fate = 'none' | 'half' | 'all';

const SECTOR_BYTES = 512;

interface Content {
  readonly at: number;
  readonly done: number;
  apply(image: Image, kept: () => boolean): void;
}

/** One file for as long as it has one name; made again under the same name it is another. */
interface Inode {
  readonly contents: Content[];
  readonly syncs: { at: number; done: number }[];
}

type NameChange = {
  readonly at: number;
  readonly done: number;
  readonly path: string;
  readonly inode?: Inode;
};

/**
 * A disk that forgets. Built from a trace, it tells what lies in a folder after the power failed at any moment: of each
 * file what was over before its last finished sync began, of the folder the names made or removed before the folder's
 * last sync, and of everything later as much as the given fate says. A write that is kept in part is torn by sectors.
 */
export class ForgetfulDisk {
  readonly #folder: string;
  readonly #names: NameChange[] = [];
  readonly #folderSyncs: { at: number; done: number }[] = [];
  /** One for all cuts: a new one each time would be gigabytes of garbage. */
  readonly #image = new Image();

  /** `before` is what lay there, safe on the disk, when the trace began. */
  constructor(
    events: readonly TraceEvent[],
    dbPath: string,
    before: ReadonlyMap<string, Buffer> = new Map(),
  ) {
    this.#folder = dirname(dbPath);
    const wanted = new Set(['', '-wal', '-journal'].map((end) => dbPath + end));
    const living = new Map<string, Inode>();
    for (const [path, bytes] of before) {
      const whole = { at: -1, done: -1, apply: (image: Image) => image.write(0, bytes, () => true) };
      const inode: Inode = { contents: [whole], syncs: [] };
      living.set(path, inode);
      this.#names.push({ at: -1, done: -1, path, inode });
    }
    const make = (path: string, event: TraceEvent): Inode => {
      const inode: Inode = { contents: [], syncs: [] };
      living.set(path, inode);
      this.#names.push({ at: event.at, done: event.done, path, inode });
      return inode;
    };
    for (const event of events) {
      if (event.kind === 'output') continue;
      if (event.kind === 'sync' && event.path === this.#folder) this.#folderSyncs.push(event);
      if (!wanted.has(event.path)) continue;
      if (event.kind === 'unlink') {
        living.delete(event.path);
        this.#names.push({ at: event.at, done: event.done, path: event.path });
        continue;
      }
      const inode = living.get(event.path) ?? make(event.path, event);
      if (event.kind === 'sync') inode.syncs.push(event);
      const content = contentOf(event);
      if (content !== undefined) inode.contents.push(content);
    }
  }

  /** Writes what is left after a cut at `moment` into another folder, under the same names. */
  writeOut(moment: number, fate: Fate, random: Random, folder: string): void {
    for (const [path, inode] of this.#namesAt(moment, fate, random)) {
      if (inode !== undefined)
        writeFileSync(join(folder, basename(path)), imageAt(this.#image, inode, moment, fate, random));
    }
  }

  /** Names change in their order, or not at all: a folder is journalled. */
  #namesAt(moment: number, fate: Fate, random: Random): Map<string, Inode | undefined> {
    const sure = surelyBefore(this.#folderSyncs, moment);
    const pending = this.#names.filter(({ at, done }) => done >= sure && at < moment);
    const kept = fate === 'all' ? pending.length : fate === 'none' ? 0 : random.between(0, pending.length);
    const changes = [...this.#names.filter(({ done }) => done < sure), ...pending.slice(0, kept)];
    return new Map(changes.map(({ path, inode }) => [path, inode]));
  }
}

function contentOf(event: TraceEvent): Content | undefined {
  const { at, done } = event;
  switch (event.kind) {
    case 'write':
      return { at, done, apply: (image, kept) => image.write(event.offset, event.bytes, kept) };
    case 'truncate':
      return { at, done, apply: (image, kept) => kept() && image.resize(event.size) };
    case 'open':
      return event.truncates ? { at, done, apply: (image) => image.resize(0) } : undefined;
    default:
      return undefined;
  }
}

/** When the last sync that was over by then began. What was over before is safe. */
function surelyBefore(syncs: readonly { at: number; done: number }[], moment: number): number {
  return Math.max(0, ...syncs.filter(({ done }) => done < moment).map(({ at }) => at));
}

/** Fills `image` with what is left of a file. */
function imageAt(image: Image, inode: Inode, moment: number, fate: Fate, random: Random): Buffer {
  const sure = surelyBefore(inode.syncs, moment);
  image.resize(0);
  for (const content of inode.contents) {
    if (content.at >= moment) break;
    if (content.done < sure || fate === 'all') content.apply(image, () => true);
    else if (fate === 'half' && random.oneIn(2)) {
      const torn = random.oneIn(2);
      content.apply(image, () => !torn || random.oneIn(2));
    }
  }
  return image.bytes;
}

/** The bytes of one file. Grows in large steps: a log is written in thousands of small ones. */
class Image {
  #room = Buffer.alloc(65_536);
  #length = 0;

  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }

  resize(size: number): void {
    if (size > this.#room.length) {
      const larger = Buffer.alloc(Math.max(size, this.#room.length * 2));
      this.#room.copy(larger, 0, 0, this.#length);
      this.#room = larger;
    }
    // What lies beyond the end reads as zeros when the file grows again.
    if (size < this.#length) this.#room.fill(0, size, this.#length);
    this.#length = size;
  }

  write(offset: number, data: Buffer, kept: () => boolean): void {
    if (offset + data.length > this.#length) this.resize(offset + data.length);
    for (let from = 0; from < data.length; from += SECTOR_BYTES) {
      if (kept()) data.copy(this.#room, offset + from, from, from + SECTOR_BYTES);
    }
  }
}
