import { closeSync, openSync, readSync } from 'node:fs';

/**
 * What a traced server did to its files, in the order strace saw it. `at` is when a thing began, `done` when it was
 * over: a sync vouches only for what was over before it began.
 */
export type TraceEvent = { readonly at: number; readonly done: number; readonly thread: number } & (
  | { readonly kind: 'write'; readonly path: string; readonly offset: number; readonly bytes: Buffer }
  | { readonly kind: 'append'; readonly path: string; readonly bytes: Buffer }
  | { readonly kind: 'truncate'; readonly path: string; readonly size: number }
  | { readonly kind: 'sync'; readonly path: string }
  | { readonly kind: 'open'; readonly path: string; readonly truncates: boolean }
  | { readonly kind: 'unlink'; readonly path: string }
  | { readonly kind: 'rename'; readonly path: string; readonly to: string }
  | { readonly kind: 'output'; readonly bytes: Buffer }
);

/** For `-y -xx -s 70000`: paths beside descriptors, every byte of every write, all in hex. */
export const TRACE_ARGUMENTS = ['-y', '-xx', '-s', '70000'];

const CALL = /^(\d+) +([a-z_0-9]+)\((.*)$/s;
const RESUMED = /^(\d+) +<\.\.\. ([a-z_0-9]+) resumed>(.*)$/s;
const UNFINISHED = ' <unfinished ...>';

export function readTrace(path: string): TraceEvent[] {
  const events: TraceEvent[] = [];
  const begun = new Map<string, { name: string; text: string; at: number }>();
  let line = 0;
  for (const text of linesOf(path)) {
    line += 1;
    const resumed = RESUMED.exec(text);
    const call = resumed === null ? CALL.exec(text) : null;
    if (resumed !== null) {
      const [, pid = '', , rest = ''] = resumed;
      const start = begun.get(pid);
      begun.delete(pid);
      if (start !== undefined) add(pid, start.name, start.text + rest, start.at, line);
    } else if (call !== null) {
      const [, pid = '', name = '', rest = ''] = call;
      if (rest.endsWith(UNFINISHED))
        begun.set(pid, { name, text: rest.slice(0, -UNFINISHED.length), at: line });
      else add(pid, name, rest, line, line);
    }
  }
  return events.sort((a, b) => a.at - b.at);

  function add(pid: string, name: string, text: string, at: number, done: number): void {
    const result = /= (-?\d+)[^=]*$/.exec(text)?.[1];
    if (result === undefined || Number(result) < 0) return;
    const event = READERS[name]?.(text, Number(result));
    if (event !== undefined) events.push({ ...event, at, done, thread: Number(pid) } as TraceEvent);
  }
}

type Plain = TraceEvent extends infer E
  ? E extends TraceEvent
    ? Omit<E, 'at' | 'done' | 'thread'>
    : never
  : never;

const WRITE = /^(\d+)<([^>]*)>, "([^"]*)", \d+(?:, (\d+))?/s;
const ON_FILE = /^\d+<([^>]*)>(?:, (\d+))?/s;
const OPEN = /^[^,]+, "([^"]*)", ([A-Z_|0-9]+)/s;

const READERS: Readonly<Record<string, (text: string, result: number) => Plain | undefined>> = {
  pwrite64(text, result) {
    const [, , path = '', data = '', offset = '0'] = WRITE.exec(text) ?? [];
    return {
      kind: 'write',
      path: decode(path),
      offset: Number(offset),
      bytes: bytesOf(data).subarray(0, result),
    };
  },
  write(text, result) {
    const [, fd = '', path = '', data = ''] = WRITE.exec(text) ?? [];
    const bytes = bytesOf(data).subarray(0, result);
    return fd === '1' ? { kind: 'output', bytes } : { kind: 'append', path: decode(path), bytes };
  },
  writev(text, result) {
    const [, fd = '', path = ''] = /^(\d+)<([^>]*)>/.exec(text) ?? [];
    const parts = [...text.matchAll(/iov_base="([^"]*)"/g)].map(([, data = '']) => bytesOf(data));
    const bytes = Buffer.concat(parts).subarray(0, result);
    return fd === '1' ? { kind: 'output', bytes } : { kind: 'append', path: decode(path), bytes };
  },
  pwritev: () => {
    throw new Error('SQLite has never used pwritev here; teach the trace reader');
  },
  fsync: (text) => ({ kind: 'sync', path: decode(ON_FILE.exec(text)?.[1] ?? '') }),
  fdatasync: (text) => ({ kind: 'sync', path: decode(ON_FILE.exec(text)?.[1] ?? '') }),
  ftruncate(text) {
    const [, path = '', size = '0'] = ON_FILE.exec(text) ?? [];
    return { kind: 'truncate', path: decode(path), size: Number(size) };
  },
  openat(text) {
    const [, path = '', flags = ''] = OPEN.exec(text) ?? [];
    if (!flags.includes('O_CREAT')) return undefined;
    return { kind: 'open', path: decode(path), truncates: flags.includes('O_TRUNC') };
  },
  unlink: (text) => ({ kind: 'unlink', path: decode(/^"([^"]*)"/.exec(text)?.[1] ?? '') }),
  rename(text) {
    const [, from = '', to = ''] = /^"([^"]*)", "([^"]*)"/.exec(text) ?? [];
    return { kind: 'rename', path: decode(from), to: decode(to) };
  },
};

function decode(hex: string): string {
  return bytesOf(hex).toString('utf8');
}

function bytesOf(hex: string): Buffer {
  return Buffer.from(hex.replaceAll('\\x', ''), 'hex');
}

/** The file may be larger than the longest string. */
function* linesOf(path: string): Generator<string> {
  const fd = openSync(path, 'r');
  const chunk = Buffer.alloc(4_194_304);
  let rest = '';
  try {
    for (;;) {
      const count = readSync(fd, chunk);
      if (count === 0) break;
      const lines = (rest + chunk.toString('latin1', 0, count)).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    closeSync(fd);
  }
}
