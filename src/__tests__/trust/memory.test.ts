import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { formatCheckpoint } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { type NoteSigner, noteSigner, parseVerifierKey, signNote } from '../../integrity/signed-note.ts';
import { processIdentity } from '../../storage/process-identity.ts';
import { KeyFolder, PathMemory } from '../../trust/key-folder.ts';
import { forgetGone, MemoryFile, readRemembered } from '../../trust/memory.ts';
import { scratchFolder } from '../storage/scratch.ts';

const fail = (error: unknown) => {
  throw error;
};

function aMemory() {
  const folder = KeyFolder.create(scratchFolder());
  const signer = noteSigner(folder.origin, folder.privateKeyPem()!);
  const key = parseVerifierKey(signer.verifierKey);
  return {
    signed: folder.signedPath,
    signer,
    key,
    file: (process: string) => new MemoryFile(folder.signedPath, process, fail),
    size: () => readRemembered(folder.signedPath, key)?.size,
  };
}

const head = (signer: NoteSigner, size: number, origin = signer.name) => ({
  chainHash: sha256Hex(`chain ${size}`),
  note: signNote(formatCheckpoint({ origin, size, root: sha256Hex(`root ${size}`) }), signer),
});

describe('what was signed last', () => {
  test('is nothing in a new folder, which is not the same as unknown', () => {
    const { size, signed } = aMemory();
    expect(size()).toBe(0);

    renameSync(signed, `${signed}.gone`);

    expect(size()).toBeUndefined();
  });

  test('is the largest of all processes, with the chain hash of its row', () => {
    const { file, signer, signed, key } = aMemory();
    const [one, two] = [file('one'), file('two')];
    for (const size of [1, 5, 6]) one.write(head(signer, size));
    for (const size of [2, 9]) two.write(head(signer, size));
    one.write(head(signer, 7));

    expect(readRemembered(signed, key)).toMatchObject({
      size: 9,
      ...head(signer, 9),
    });
    one.close();
    two.close();
  });

  test('survives a write that is torn at any byte, as the head before it', () => {
    const { file, signer, signed, size } = aMemory();
    const one = file('one');
    for (const written of [1, 2, 3]) one.write(head(signer, written));
    one.close();
    const path = join(signed, 'one');
    const before = readFileSync(path);
    const again = file('one');
    again.write(head(signer, 4));
    again.close();
    const after = readFileSync(path);

    for (let cut = 0; cut < after.length; cut += 97) {
      writeFileSync(path, Buffer.concat([after.subarray(0, cut), before.subarray(cut)]));
      expect([3, 4]).toContain(size());
      writeFileSync(path, Buffer.concat([before.subarray(0, cut), after.subarray(cut)]));
      expect([3, 4]).toContain(size());
    }
  });

  test('keeps two slots in a file that does not grow', () => {
    const { file, signer, signed, size } = aMemory();
    const one = file('one');
    for (let written = 1; written <= 100; written += 1) one.write(head(signer, written));
    one.close();

    expect(readFileSync(join(signed, 'one'))).toHaveLength(8_192);
    expect(size()).toBe(100);
  });

  test('does not believe a note of another key or another log, nor a link', () => {
    const { file, signer, signed, size } = aMemory();
    const other = aMemory();
    const one = file('one');
    one.write(head(signer, 3));
    one.close();
    const two = file('two');
    two.write(head(other.signer, 50));
    two.write(head(signer, 60, other.signer.name));
    two.close();
    const three = other.file('three');
    three.write(head(other.signer, 70));
    three.close();
    symlinkSync(join(other.signed, 'three'), join(signed, 'three'));

    expect(size()).toBe(3);
  });

  test('is forgotten of processes that are gone, once another remembers as much', () => {
    const { file, signer, signed, key } = aMemory();
    const gone = processIdentity().replace(/[^.]*$/, '0');
    const larger = processIdentity().replace(/[^.]*$/, '1');
    for (const [name, size] of [
      [gone, 4],
      [larger, 9],
      [processIdentity(), 5],
    ] as const) {
      const memory = file(name);
      memory.write(head(signer, size));
      memory.close();
    }
    const long = new Date(Date.now() - 3_600_000);
    utimesSync(join(signed, 'initial'), long, long);

    forgetGone(signed, readRemembered(signed, key)!, Date.now());

    expect(readdirSync(signed).sort()).toEqual([larger, processIdentity()].sort());
    expect(readRemembered(signed, key)?.size).toBe(9);
  });

  test('is written again where somebody removed the file under the process', async () => {
    const { file, signer, signed, size } = aMemory();
    const one = file('one');
    one.write(head(signer, 3));
    rmSync(join(signed, 'one'));
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    one.close();

    expect(size()).toBe(3);
  });
});

describe('the memory of a path', () => {
  test('holds under the name and under what it resolves to', () => {
    const folder = scratchFolder();
    const config = join(folder, 'config');
    mkdirSync(join(folder, 'real'));
    symlinkSync(join(folder, 'real'), join(folder, 'link'));
    new PathMemory(config, join(folder, 'link', 'db')).write('A');

    expect(new PathMemory(config, join(folder, 'real', 'db')).seen()).toEqual(['A']);
    expect(new PathMemory(config, join(folder, 'link', 'db')).seen()).toEqual(['A']);
    expect(new PathMemory(config, join(folder, 'other', 'db')).seen()).toEqual([]);
  });

  test('disagrees where either does', () => {
    const folder = scratchFolder();
    const config = join(folder, 'config');
    for (const name of ['one', 'two']) mkdirSync(join(folder, name));
    new PathMemory(config, join(folder, 'one', 'db')).write('A');
    new PathMemory(config, join(folder, 'two', 'db')).write('B');
    renameSync(join(folder, 'one'), join(folder, 'away'));
    symlinkSync(join(folder, 'two'), join(folder, 'one'));
    const paths = new PathMemory(config, join(folder, 'one', 'db'));

    expect(paths.otherThan('A')).toBe('B');
    expect(paths.otherThan('B')).toBe('A');
    expect(paths.otherThan(undefined)).toBe('A');
  });

  test('a damaged entry is none', () => {
    const folder = scratchFolder();
    const paths = new PathMemory(join(folder, 'config'), join(folder, 'db'));
    paths.write('A');
    for (const name of readdirSync(join(folder, 'config', 'paths')))
      writeFileSync(join(folder, 'config', 'paths', name), '{');

    expect(paths.seen()).toEqual([]);
    expect(existsSync(join(folder, 'db'))).toBe(false);
  });
});
