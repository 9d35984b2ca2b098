import { FILES_MAX, type Files, isEntryName, SourceError } from './files.ts';
import { openZip, type RandomBytes, type Unpacker } from './zip.ts';

// What a browser hands over. Node has the same classes, so that tests run all of it there too.

/** The files of a folder that was chosen in a browser. Their paths begin with the name of the folder. */
export function blobFiles(given: Iterable<readonly [path: string, blob: Blob]>): Files {
  const all = [...given];
  if (all.length > FILES_MAX) throw new SourceError(`there are more than ${FILES_MAX} files`);
  const prefix = commonFolder(all.map(([path]) => path));
  const files = new Map<string, Blob>();
  for (const [path, blob] of all) {
    const name = path.slice(prefix.length);
    if (!isEntryName(name)) throw new SourceError(`${JSON.stringify(name)} does not belong in a bundle`);
    if (files.has(name)) throw new SourceError(`there are two files ${name}`);
    files.set(name, blob);
  }
  return {
    names: [...files.keys()],
    size: (name) => files.get(name)?.size ?? 0,
    stream(name) {
      const blob = files.get(name);
      if (blob === undefined) throw new SourceError(`there is no ${name}`);
      return chunksOf(blob.stream());
    },
  };
}

/** A zip that was chosen in a browser. */
export async function openZipBlob(zip: Blob): Promise<Files> {
  const bytes: RandomBytes = {
    size: zip.size,
    read: async (from, length) => new Uint8Array(await zip.slice(from, from + length).arrayBuffer()),
  };
  return await openZip(bytes, BROWSER);
}

const BROWSER: Unpacker = {
  async *inflate(packed) {
    const stream = new DecompressionStream('deflate-raw');
    const feeding = feed(stream.writable.getWriter(), packed);
    // Whoever reads meets the same failure; without this it would count as one that nobody handles.
    feeding.catch(() => undefined);
    yield* chunksOf(stream.readable);
    await feeding;
  },
};

async function feed(
  writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>,
  packed: AsyncIterable<Uint8Array>,
): Promise<void> {
  try {
    for await (const chunk of packed) await writer.write(Uint8Array.from(chunk));
    await writer.close();
  } catch (error) {
    await writer.abort(error);
    throw error;
  }
}

interface ByteStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
    cancel(): Promise<void>;
  };
}

// Not every browser can iterate a stream.
async function* chunksOf(stream: ByteStream): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read())
      if (part.value !== undefined) yield part.value;
  } finally {
    // Stops the source where whoever reads has seen enough.
    await reader.cancel().catch(() => undefined);
  }
}

/** Files of a chosen folder come with its name before them. */
function commonFolder(names: readonly string[]): string {
  const marker = names.find((name) => name === 'bundle.json' || name.endsWith('/bundle.json')) ?? '';
  const prefix = marker.slice(0, -'bundle.json'.length);
  return names.every((name) => name.startsWith(prefix)) ? prefix : '';
}
