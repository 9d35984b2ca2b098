import { type Files, isEntryName, SourceError } from './files.ts';
import { openZip } from './zip.ts';

// What a browser hands over. Node has the same classes, so that tests run all of it there too.

/** The files of a folder that was chosen in a browser. Their paths begin with the name of the folder. */
export function blobFiles(given: Iterable<readonly [path: string, blob: Blob]>): Files {
  const all = [...given];
  const prefix = commonFolder(all.map(([path]) => path));
  const files = new Map<string, Blob>();
  for (const [path, blob] of all) {
    const name = path.slice(prefix.length);
    if (!isEntryName(name)) throw new SourceError(`${JSON.stringify(name)} does not belong in a bundle`);
    if (files.has(name)) throw new SourceError(`there are two files ${name}`);
    files.set(name, blob);
  }
  return { names: [...files.keys()], stream: (name) => chunksOf((files.get(name) ?? new Blob()).stream()) };
}

/** A zip that was chosen in a browser. */
export async function openZipBlob(zip: Blob): Promise<Files> {
  return await openZip({
    size: zip.size,
    read: async (from, length) => new Uint8Array(await zip.slice(from, from + length).arrayBuffer()),
    inflated: (from, length) =>
      chunksOf(
        zip
          .slice(from, from + length)
          .stream()
          .pipeThrough(new DecompressionStream('deflate-raw')),
      ),
  });
}

// Not every browser can iterate a stream.
async function* chunksOf(stream: ReturnType<Blob['stream']>): AsyncGenerator<Uint8Array> {
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
