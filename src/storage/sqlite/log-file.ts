import { closeSync, openSync, readSync } from 'node:fs';

/** Magic, version, page size, number of the log, salts, and the sum of these. */
const HEADER_BYTES = 32;
/** Page number, pages of the database, salts, and the sum of this and everything before it. */
const FRAME_HEADER_BYTES = 24;
const SUM_AT = 16;
/** Frames that one read takes; a call writes about 20. */
const FRAMES_AT_ONCE = 32;

/**
 * The write-ahead log as a file: a header, then one frame per page. SQLite takes from shared memory how many frames count,
 * and never looks whether they are still there: where the file was cut, the next commit leaves a hole before its frames.
 */
export class LogFile {
  readonly path: string;
  readonly #frameBytes: number;
  readonly #frames: Buffer;
  #opened: number | undefined;
  /** The log and how many of its frames were there at the last look. */
  #seen: { readonly header: Buffer; readonly frames: number } = { header: Buffer.alloc(0), frames: 0 };

  constructor(path: string, pageBytes: number) {
    this.path = path;
    this.#frameBytes = FRAME_HEADER_BYTES + pageBytes;
    this.#frames = Buffer.alloc(FRAMES_AT_ONCE * this.#frameBytes);
  }

  /** Opening and closing the log drops no lock: SQLite keeps its locks on the other two files. */
  get fd(): number {
    this.#opened ??= openSync(this.path, 'r+');
    return this.#opened;
  }

  /** How long the log was at the last look. The file may be longer: SQLite writes over what was merged. */
  get bytes(): number {
    return this.bytesOf(this.#seen.frames);
  }

  bytesOf(frames: number): number {
    return this.#start(frames + 1);
  }

  /** Whether frames that count are missing. Undefined where nobody can say now how many count. */
  isCut(countFrames: () => number | undefined): boolean | undefined {
    for (;;) {
      const frames = countFrames();
      if (frames === undefined) return undefined;
      if (this.#goesOn(frames)) return false;
      const header = this.#header();
      // A header of zeros would fit frames of zeros.
      if ((frames === 0 || isHeader(header)) && this.#isWhole(header, 1, frames)) return false;
      // Otherwise another process has started the log over meanwhile.
      if (frames === countFrames() && header.equals(this.#header())) return true;
    }
  }

  /** Whether nothing but new frames was added. The last one seen before still has the salts of its log, or it is another log. */
  #goesOn(frames: number): boolean {
    const { header, frames: seen } = this.#seen;
    return seen > 0 && seen <= frames && this.#isWhole(header, seen, frames);
  }

  /** Looks at the frames from `first` on. A hole ends where a frame begins: the byte before is blank. */
  #isWhole(header: Buffer, first: number, frames: number): boolean {
    for (let from = first; from <= frames; from += FRAMES_AT_ONCE) {
      const wanted = this.#frames.subarray(0, (frames - from + 1) * this.#frameBytes);
      if (this.#read(wanted, this.#start(from)) < wanted.length) return false;
      if (!hasSaltsOf(header, wanted)) return false;
      for (let end = this.#frameBytes; end <= wanted.length; end += this.#frameBytes)
        if (wanted[end - 1] === 0 && !this.#hasItsSum(header, wanted, from, end)) return false;
    }
    this.#seen = { header, frames };
    return true;
  }

  /** Whether the frame that ends there, of those from `first` on, is as SQLite wrote it. Its sum goes on from the one before. */
  #hasItsSum(header: Buffer, frames: Buffer, first: number, end: number): boolean {
    const begin = end - this.#frameBytes;
    const bytes = frames.subarray(begin, end);
    const sum =
      begin === 0 ? this.#sumBefore(first) : frames.subarray(begin - this.#frameBytes + SUM_AT, begin);
    // Without the salts of this log, nothing would be the right sum of nothing.
    if (!hasSaltsOf(header, bytes)) return false;
    // The rest of the frame's header is not part of the sum.
    const ofHeader = sumOver(header, bytes.subarray(0, 8), sum);
    return sumOver(header, bytes.subarray(FRAME_HEADER_BYTES), ofHeader).equals(
      bytes.subarray(SUM_AT, FRAME_HEADER_BYTES),
    );
  }

  #sumBefore(frame: number): Buffer {
    const sum = Buffer.alloc(8);
    this.#read(sum, frame === 1 ? HEADER_BYTES - 8 : this.#start(frame - 1) + SUM_AT);
    return sum;
  }

  #start(frame: number): number {
    return HEADER_BYTES + (frame - 1) * this.#frameBytes;
  }

  #header(): Buffer {
    const header = Buffer.alloc(HEADER_BYTES);
    this.#read(header, 0);
    return header;
  }

  /** What cannot be read is not there. */
  #read(into: Buffer, position: number): number {
    try {
      return readSync(this.fd, into, 0, into.length, position);
    } catch {
      return 0;
    }
  }

  close(): void {
    if (this.#opened !== undefined) closeSync(this.#opened);
  }
}

/** Whether this is the header of a log, as SQLite wrote it. */
function isHeader(header: Buffer): boolean {
  const sum = sumOver(header, header.subarray(0, HEADER_BYTES - 8), Buffer.alloc(8));
  return header.readUInt32BE() !== 0 && sum.equals(header.subarray(HEADER_BYTES - 8));
}

/** The sum that goes on from another one over these bytes: over numbers of 32 bits, in the order that the header says. */
function sumOver(header: Buffer, bytes: Buffer, sum: Buffer): Buffer {
  const isLittleEndian = header.readUInt32BE() % 2 === 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let [a, b] = [sum.readInt32BE(0), sum.readInt32BE(4)];
  for (let at = 0; at < bytes.length; at += 8) {
    a = (a + view.getInt32(at, isLittleEndian) + b) | 0;
    b = (b + view.getInt32(at + 4, isLittleEndian) + a) | 0;
  }
  const total = Buffer.alloc(8);
  total.writeInt32BE(a);
  total.writeInt32BE(b, 4);
  return total;
}

/** Whether a frame belongs to the log with this header. */
function hasSaltsOf(header: Buffer, frame: Buffer): boolean {
  return frame.compare(header, 16, 24, 8, 16) === 0;
}
