import { closeSync, constants, openSync, readSync, statSync } from 'node:fs';

/** A regular file, open for reading at any place. */
export interface OpenFile {
  readonly bytes: number;
  /** Up to `length` bytes from `position` on; fewer where the file ends. */
  read(position: number, length: number): Buffer;
}

/** Lends a regular file to `use`; nothing where there is none. A pipe or a device is never opened. */
export function withFile<T>(path: string, use: (file: OpenFile) => T): T | undefined {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isFile()) return undefined;
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    return use({
      bytes: stat.size,
      read(position, length) {
        const buffer = Buffer.alloc(Math.max(0, Math.min(length, stat.size - position)));
        return buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, position));
      },
    });
  } finally {
    closeSync(fd);
  }
}

/** The text of a small file without blanks at its ends; nothing where there is none or it is not small. */
export function readSmallText(path: string, bytesMax: number): string | undefined {
  return withFile(path, (file) =>
    file.bytes > bytesMax ? undefined : file.read(0, file.bytes).toString('utf8').trim(),
  );
}
