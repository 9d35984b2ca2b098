import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateRawSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { seededRandom } from '../../../tests/driver/random.ts';
import { crc32, crc32ByTable, ZipError, ZipReader, ZipWriter } from '../../export/zip.ts';
import { isEntryName } from '../../export/zip-format.ts';
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

async function unzip(path: string): Promise<Record<string, string>> {
  const reader = new ZipReader(path);
  try {
    const contents: Record<string, string> = {};
    for (const name of reader.names) {
      const chunks: Buffer[] = [];
      for await (const chunk of reader.stream(name)) chunks.push(chunk);
      contents[name] = Buffer.concat(chunks).toString();
    }
    return contents;
  } finally {
    reader.close();
  }
}

test('what goes in comes out, here and with Python', async () => {
  const path = await zip();

  const byPython = execFileSync('python3', ['-m', 'zipfile', '-t', path], { encoding: 'utf8' });

  expect(await unzip(path)).toEqual(CONTENTS);
  expect(byPython).toContain('Done testing');
});

test('both ways to a CRC-32 give the published check value', () => {
  const check = Buffer.from('123456789');

  expect(crc32(check, 0)).toBe(0xcbf43926);
  expect(crc32ByTable(check, 0)).toBe(0xcbf43926);
  expect(crc32ByTable(check.subarray(4), crc32ByTable(check.subarray(0, 4), 0))).toBe(0xcbf43926);
});

test.each(['../up', '/root', 'a/../b', 'a/b/c', '.hidden', 'a\\b', '', 'a/', 'x'.repeat(101), 'n\u0000l'])(
  '%j is no name inside a bundle',
  (name) => {
    expect(isEntryName(name)).toBe(false);
  },
);

test('a name that leads out of the folder is refused in a foreign zip', async () => {
  const path = await zip({ 'abcdefghi.txt': 'x' });
  const bytes = readFileSync(path).toString('latin1').replaceAll('abcdefghi.txt', '../../etc/abc');
  writeFileSync(path, Buffer.from(bytes, 'latin1'));

  expect(() => new ZipReader(path)).toThrow('is no name');
});

test('a name that stands there twice is refused', async () => {
  const path = await zip({ aa: '1', ab: '2' });
  const bytes = readFileSync(path).toString('latin1').replaceAll('ab', 'aa');
  writeFileSync(path, Buffer.from(bytes, 'latin1'));

  expect(() => new ZipReader(path)).toThrow('twice');
});

test('a zip bomb is refused before it is unpacked', async () => {
  const path = await zip({ bomb: '\u0000'.repeat(20_000_000) });

  expect(deflateRawSync(Buffer.alloc(20_000_000)).length).toBeLessThan(25_000);
  expect(() => new ZipReader(path)).toThrow('zip bomb');
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
    expect(() => new ZipReader(path)).toThrow(ZipError);
  }
});

test('a zip by another program is refused with advice', () => {
  const path = join(folder, 'foreign.zip');
  writeFileSync(join(folder, 'file'), 'text');
  execFileSync('python3', ['-m', 'zipfile', '-c', path, join(folder, 'file')]);

  expect(() => new ZipReader(path)).toThrow('unpack the zip with another program');
});

test(proving('bundle.hostile', 'after any byte was changed a zip is refused or holds the same'), async () => {
  const random = seededRandom('zip damage');
  for (let i = 0; i < 300; i += 1) {
    const path = await zip();
    const where = damage(path, random);

    const read = await unzip(path).catch((error: unknown) => error);

    if (read instanceof Error) expect(read, where).toBeInstanceOf(ZipError);
    else expect(read, where).toEqual(CONTENTS);
  }
});
