import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { sha256Hex } from '../integrity/digest.ts';
import type { VerifierKey } from '../integrity/signed-note.ts';
import { closing, namesIn, openPrivate, readStart, syncFolder, target, WARILY } from '../private-files.ts';
import { isGone } from '../storage/process-identity.ts';
import { headIn, openIfValid } from './opening.ts';

/** A head that was signed and durable, as it is remembered outside the database, in one of two slots of a file. */
type Slot = Readonly<ReturnType<typeof slotsOf>[number]>;

/** The largest of them, and what the other slots say: whoever signs past a head that was lost has the largest. */
export type Remembered = Slot & { readonly older: readonly Slot[] };

/** A page of its own for each slot: a write that a power cut tears leaves the other whole. */
const SLOT_BYTES = 4_096;
const SYNC_MS = 1_000;

/** One slot: a checksum, the chain hash and the note, a line each but for the note, padded with zero bytes. */
export function encodeSlot(chainHash: string, note: string): Buffer {
  const body = `${chainHash}\n${note}`;
  const slot = Buffer.alloc(SLOT_BYTES);
  slot.write(`${sha256Hex(body)}\n${body}`);
  return slot;
}

/** The largest head that a process remembers and this key signed. Undefined: nobody can say what was signed last. */
export function readRemembered(folder: string, key: VerifierKey): Remembered | undefined {
  const slots = slotsIn(folder);
  // From the largest claim down: opening a signature is what takes time.
  const at = slots.findIndex(({ note }) => openIfValid(note, [key]) !== undefined);
  const largest = slots[at];
  return largest && { ...largest, older: slots.slice(at + 1) };
}

/** Removes the files of processes that are gone, once another remembers at least as much. */
export function forgetGone(folder: string, kept: Slot, now: number): void {
  const larger = new Set([kept.file]);
  for (const { file, size } of slotsIn(folder)) {
    if (size > kept.size) larger.add(file);
    const age = now - (target(file)?.mtimeMs ?? now);
    if (!larger.has(file) && isGone(basename(file), age)) fs.rmSync(file, { force: true });
  }
}

/** What the slots of all processes say, the largest first; nobody has checked a signature. */
export function slotsIn(folder: string) {
  const slots = namesIn(folder).flatMap((name) => slotsOf(join(folder, name)));
  return slots.sort((a, b) => b.size - a.size);
}

/** `chainHash` is that of row `size`; 64 zeros for size 0. */
function slotsOf(file: string) {
  const bytes = readStart(file, 2 * SLOT_BYTES) ?? Buffer.alloc(0);
  return [0, 1].flatMap((index) => {
    const text = bytes.toString('utf8', index * SLOT_BYTES, (index + 1) * SLOT_BYTES).replace(/\0+$/, '');
    const [chainHash, note] = [text.slice(65, 129), text.slice(130)];
    const size = sha256Hex(text.slice(65)) === text.slice(0, 64) ? headIn(note)?.size : undefined;
    return size === undefined ? [] : [{ file, index, size, note, chainHash }];
  });
}

/** The memory of one process: two slots that are written in turn, in place, and synced once a second. */
export class MemoryFile {
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  #fd: number | undefined;
  #next = 0;
  #last: Buffer | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(folder: string, process: string, onError: (error: unknown) => void) {
    this.#path = join(folder, process);
    this.#onError = onError;
  }

  /** Only for a head that an fsync of the database covers: it must not be contradicted after a power cut. */
  write({ chainHash, note }: Pick<Slot, 'chainHash' | 'note'>): void {
    this.#last = encodeSlot(chainHash, note);
    this.#put(this.#last);
    this.#timer ??= setTimeout(() => this.#sync(), SYNC_MS).unref();
  }

  /** Syncs what was written and lets go of the file. A later write opens it again. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) closing(fd, fs.fdatasyncSync);
  }

  #put(slot: Buffer): void {
    this.#fd ??= this.#open();
    fs.writeSync(this.#fd, slot, 0, SLOT_BYTES, this.#next * SLOT_BYTES);
    this.#next = 1 - this.#next;
  }

  /** The larger slot stays: it is the one that must survive a torn write. */
  #open(): number {
    const [newest] = slotsOf(this.#path).sort((a, b) => b.size - a.size);
    this.#next = newest?.index === 0 ? 1 : 0;
    const fd = openPrivate(this.#path, fs.constants.O_RDWR | fs.constants.O_CREAT | WARILY);
    syncFolder(dirname(this.#path));
    return fd;
  }

  #sync(): void {
    this.#timer = undefined;
    try {
      if (this.#fd === undefined || this.#last === undefined) return;
      // A process on another machine that shares the home folder may have taken this one for gone.
      if (fs.fstatSync(this.#fd).nlink === 0) {
        this.close();
        this.#put(this.#last);
      }
      const fd = this.#fd;
      // Closed meanwhile, it was synced by that.
      fs.fdatasync(fd, (error) => error !== null && fd === this.#fd && this.#onError(error));
    } catch (error) {
      this.#onError(error);
    }
  }
}
