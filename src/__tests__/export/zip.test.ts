import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { seededRandom } from '../../../tests/driver/random.ts';
import { tier } from '../../../tests/driver/tier.ts';
import { crc32 as nodeCrc32, openBundle, ZipWriter } from '../../export/files.ts';
import { openZipBlob } from '../../verify/sources/blobs.ts';
import { type Files, isEntryName, SourceError } from '../../verify/sources/files.ts';
import { crc32 } from '../../verify/sources/zip.ts';
import { damage } from './evidence.ts';

const folder = mkdtempSync(join(tmpdir(), 'colibri-zip-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CONTENTS: Readonly<Record<string, string>> = {
  'log.jsonl': 'a line\n'.repeat(50_000),
  empty: '',
  'seals/A-0001.json': '{"Θ":"漢字"}',
};

let count = 0;
async function zip(contents = CONTENTS): Promise<string> {
  count += 1;
  const path = join(folder, `${count}.zip`);
  const writer = new ZipWriter(path);
  for (const [name, text] of Object.entries(contents)) await writer.add(name, [Buffer.from(text)]);
  writer.close();
  return path;
}

async function read(files: Files): Promise<Record<string, string>> {
  const contents: Record<string, string> = {};
  for (const name of files.names) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of files.stream(name)) chunks.push(chunk);
    contents[name] = Buffer.concat(chunks).toString();
  }
  return contents;
}

async function unzip(path: string): Promise<Record<string, string>> {
  const files = await openBundle(path);
  try {
    return await read(files);
  } finally {
    files.close();
  }
}

/** The same with what a browser has. */
async function unzipAsPage(path: string): Promise<Record<string, string>> {
  return await read(await openZipBlob(new Blob([readFileSync(path)])));
}

test('what goes in comes out, here, in a page and with Python', async () => {
  const path = await zip();

  const byPython = execFileSync('python3', ['-m', 'zipfile', '-t', path], { encoding: 'utf8' });

  expect(await unzip(path)).toEqual(CONTENTS);
  expect(await unzipAsPage(path)).toEqual(CONTENTS);
  expect(byPython).toContain('Done testing');
});

test('both ways to a CRC-32 give the published check value', () => {
  const check = Buffer.from('123456789');

  expect(nodeCrc32(check, 0)).toBe(0xcbf43926);
  expect(crc32(check, 0)).toBe(0xcbf43926);
  expect(crc32(check.subarray(4), crc32(check.subarray(0, 4), 0))).toBe(0xcbf43926);
});

test.each(['../up', '/root', 'a/../b', 'a/b/c', '.hidden', 'a\\b', '', 'a/', 'x'.repeat(101), 'n\u0000l'])(
  '%j is not a name inside a bundle',
  (name) => {
    expect(isEntryName(name)).toBe(false);
  },
);

test('a name that leads out of the folder is refused in a foreign zip', async () => {
  const path = await zip({ 'abcdefghi.txt': 'x' });
  const bytes = readFileSync(path).toString('latin1').replaceAll('abcdefghi.txt', '../../etc/abc');
  writeFileSync(path, Buffer.from(bytes, 'latin1'));

  await expect(openBundle(path)).rejects.toThrow('is not a name');
});

test('a name that stands there twice is refused', async () => {
  const path = await zip({ aa: '1', ab: '2' });
  const bytes = readFileSync(path).toString('latin1').replaceAll('ab', 'aa');
  writeFileSync(path, Buffer.from(bytes, 'latin1'));

  await expect(openBundle(path)).rejects.toThrow('twice');
});

test('a zip bomb is refused before it is unpacked', async () => {
  const path = await zip({ bomb: '\u0000'.repeat(90_000_000) });

  expect(deflateRawSync(Buffer.alloc(20_000_000)).length).toBeLessThan(25_000);
  await expect(openBundle(path)).rejects.toThrow('zip bomb');
});

test('something in front of, behind or between the entries is refused', async () => {
  const path = await zip();
  const bytes = readFileSync(path);

  for (const other of [
    Buffer.concat([Buffer.from('x'), bytes]),
    Buffer.concat([bytes, Buffer.from('x')]),
    bytes.subarray(0, -1),
    bytes.subarray(0, 10),
    Buffer.alloc(0),
  ]) {
    writeFileSync(path, other);
    await expect(openBundle(path)).rejects.toThrow(SourceError);
  }
});

test('a zip by another program is refused with advice', async () => {
  const path = join(folder, 'foreign.zip');
  writeFileSync(join(folder, 'file'), 'text');
  execFileSync('python3', ['-m', 'zipfile', '-c', path, join(folder, 'file')]);

  await expect(openBundle(path)).rejects.toThrow('unpack it with that program');
});

test(proving('bundle.hostile', 'after any byte was changed a zip is refused or holds the same'), async () => {
  const random = seededRandom('zip damage');
  for (let i = 0; i < tier(100, 300); i += 1) {
    const path = await zip();
    const where = damage(path, random);

    for (const way of [unzip, unzipAsPage]) {
      const found = await way(path).catch((error: unknown) => error);

      if (found instanceof Error) expect(found, where).toBeInstanceOf(SourceError);
      else expect(found, where).toEqual(CONTENTS);
    }
  }
});
