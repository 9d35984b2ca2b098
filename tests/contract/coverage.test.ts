import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { sections } from './requirements.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TESTS = ['tests', join('src', '__tests__')];

/** A call of `proves` or `proving` with its first argument: one id, or a list of them. */
const PROOF = /\bprov(?:es|ing)\(\s*(\[[^\]]*\]|'[^']*')/g;

const required = new Map<string, string>(
  sections.flatMap(({ requirements }) => Object.entries<string>(requirements)),
);
const proofs = TESTS.flatMap((folder) => testFiles(join(ROOT, folder))).flatMap(proofsIn);

test('no two sections promise under the same id', () => {
  const ids = sections.flatMap(({ requirements }) => Object.keys(requirements));

  expect(ids).toHaveLength(new Set(ids).size);
});

test('every requirement has a proof', () => {
  const proved = new Set(proofs.map(({ id }) => id));

  expect([...required.keys()].filter((id) => !proved.has(id))).toEqual([]);
});

test('every proof names a requirement', () => {
  expect(proofs.filter(({ id }) => !required.has(id))).toEqual([]);
});

test('every requirement is a whole sentence', () => {
  expect([...required].filter(([, sentence]) => !/^\S.{10,}\.$/.test(sentence))).toEqual([]);
});

function proofsIn(file: string): { id: string; file: string }[] {
  const calls = readFileSync(file, 'utf8').matchAll(PROOF);
  return [...calls].flatMap(([, ids = '']) =>
    [...ids.matchAll(/'([^']*)'/g)].map(([, id = '']) => ({ id, file: file.slice(ROOT.length) })),
  );
}

function testFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /(?:\.test|-cases)\.ts$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
}
