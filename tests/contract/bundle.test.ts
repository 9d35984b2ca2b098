import { execFile } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import {
  checkBundle,
  checkManyWithPython,
  checkWithPython,
  damage,
  exportTo,
  filesIn,
  recomputeSums,
} from '../../src/__tests__/export/evidence.ts';
import { playRealLog, type RealLog } from '../../src/__tests__/export/real-log.ts';
import { anchorEverywhere } from '../driver/anchor-places.ts';
import { sha256 } from '../driver/audit-file.ts';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { seededRandom } from '../driver/random.ts';
import { NODE } from '../driver/server-process.ts';
import { tier } from '../driver/tier.ts';
import { proving } from './proves.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));
const PAGE = fileURLToPath(new URL('../../dist/verify.html', import.meta.url));
const DOCS = fileURLToPath(new URL('../../docs', import.meta.url));
/** What an auditor runs and reads. The last three must lie beside the first. */
const SCRIPTS = [
  'verify-bundle.py',
  ...['rows', 'form', 'heads', 'tools', 'formats'].map((part) => `colibri_${part}.py`),
];
const DAMAGES = tier(25, 200);

let log: RealLog;
let bundle: string;
let places: Awaited<ReturnType<typeof anchorEverywhere>>;

beforeAll(async () => {
  log = await playRealLog(new Playground());
  places = await anchorEverywhere(log.colibri);
  bundle = log.colibri.path('original');
  await exportTo(log, bundle, readFileSync(PAGE, 'utf8'));
});

afterAll(async () => {
  await log.colibri.dispose();
});

test(
  proving(
    ['bundle.forms', 'bundle.alone'],
    'a bundle is accepted by Colibri and by Python with openssl, as folder, zip and session',
  ),
  async () => {
    await exportTo(log, log.colibri.path('bundle.zip'));

    for (const path of [bundle, log.colibri.path('bundle.zip')]) {
      const python = await checkWithPython(path);
      expect(python.output).toContain('nothing is wrong');
      expect(python.code).toBe(0);
      const { findings, anchors } = await checkBundle(path);
      expect(findings).toEqual([]);
      expect(anchors.map(({ kind }) => kind).sort()).toEqual(['git', 'tsr']);
    }
  },
);

test(proving('bundle.alone', 'Python accepts what is changed after a task is finished'), async () => {
  const colibri = new Playground();
  onTestFinished(async () => void (await colibri.dispose()));
  const server = await colibri.start();
  await server.call('task_create', { title: 'a task', project: 'web' });
  await server.call('thought_record', { task_id: 'T-0001', type: 'decision', content: 'because' });
  for (const status of ['todo', 'in_progress', 'review', 'done'])
    await server.call('task_update', { task_id: 'T-0001', status });
  await server.call('task_update', { task_id: 'T-0001', progress: 3 });
  await server.closeInput();
  const path = colibri.path('bundle');

  expect(await runColibri(colibri, ['export', '-o', path])).toMatchObject({ code: 0 });

  expect(await checkWithPython(path)).toMatchObject({
    code: 0,
    output: expect.stringContaining('nothing is wrong'),
  });
});

test(
  proving(
    'bundle.files',
    'a bundle holds the log, its state, its heads, its key, seals, proofs and the page',
  ),
  () => {
    const names = filesIn(bundle).filter((name) => !/^(?:anchors|checkpoints|heads)\//.test(name));
    const lines = (name: string) => readFileSync(join(bundle, name), 'utf8').split('\n').slice(0, -1);
    const stored = log.colibri.readAudit().entries.map(({ text }) => text);
    const effects = new Set(
      lines('log.jsonl').flatMap((line) => line.match(/(?<="hash":")[0-9a-f]{64}/g) ?? []),
    );

    expect(names).toEqual([
      'README.txt',
      'SHA256SUMS',
      'bundle.json',
      'checkpoint',
      'keys',
      'log.jsonl',
      'payloads.jsonl',
      'proofs/A-0001.tlog-proof',
      'seals/A-0001',
      'state.jsonl',
      'texts.jsonl',
      'verify.html',
    ]);
    expect(lines('log.jsonl')).toEqual(stored);
    expect(lines('state.jsonl').filter((line) => !effects.has(sha256(line)))).toEqual([]);
    expect(filesIn(bundle).filter((name) => name.startsWith('checkpoints/')).length).toBeGreaterThan(0);
  },
);

test(
  proving('bundle.anchors', 'a bundle carries the commit as git keeps it and the token as it was answered'),
  () => {
    const files = filesIn(bundle).filter((name) => name.startsWith('anchors/'));
    const commit = places.git('rev-parse', 'refs/colibri/checkpoints').trim();
    const [committed = '', stamped = ''] = ['.commit', '.tsr'].map((kind) =>
      join(bundle, files.find((name) => name.endsWith(kind)) ?? ''),
    );

    expect(files).toHaveLength(2);
    expect(places.git('hash-object', '-t', 'commit', committed).trim()).toBe(commit);
    expect(readFileSync(committed, 'utf8')).toBe(places.git('cat-file', 'commit', commit));
    expect(readFileSync(stamped)).toEqual(readFileSync(places.token));
  },
);

test(proving(
  'bundle.damage',
  `a bundle with any byte of any file changed is refused by both, ${DAMAGES} times`,
), {
  timeout: 300_000,
}, async () => {
  const random = seededRandom('bundle damage');
  const names = filesIn(bundle);
  const where = new Map<string, string>();
  for (let i = 0; i < DAMAGES; i += 1) {
    const folder = log.colibri.path(`damaged-${i}`);
    restore(folder);
    // Every file gets its turn; in every other round the forger makes the sums fit again.
    const name = names[i % names.length] ?? '';
    where.set(folder, damage(join(folder, name), random));
    if (Math.floor(i / names.length) % 2 === 1 && SIGNED.test(name)) recomputeSums(folder);
  }

  const codes = await checkManyWithPython([...where.keys(), bundle]);

  expect(codes.pop()).toBe(0);
  expect([...where.values()].filter((_, i) => codes[i] !== 1)).toEqual([]);
  for (const [folder, byte] of where) expect((await checkBundle(folder)).findings, byte).not.toEqual([]);
});

/** Files that the signature covers, directly or through hashes, or that have their digest for a name; the others only the sums protect. */
const SIGNED = /^(?:log\.jsonl|state\.jsonl|payloads\.jsonl|texts\.jsonl|keys|heads|checkpoint|anchors)/;

test(
  proving('bundle.forged', 'with the sums recomputed Colibri finds any change but one in what people read'),
  async () => {
    const random = seededRandom('forged bundle');
    const folder = log.colibri.path('forged');
    const unsigned = new Set(['README.txt', 'verify.html', 'SHA256SUMS']);
    const names = filesIn(bundle).filter((name) => !unsigned.has(name));
    for (let i = 0; i < DAMAGES; i += 1) {
      restore(folder);
      const where = damage(join(folder, random.pick(names)), random);
      recomputeSums(folder);

      expect((await checkBundle(folder)).findings, where).not.toEqual([]);
    }
  },
);

test(proving('bundle.alone', 'the scripts are short enough to be read before they are run'), () => {
  const files = SCRIPTS.map((name) => readFileSync(join(DOCS, name), 'utf8').split('\n').slice(0, -1));

  // About 200 lines each.
  expect(files.map((lines) => lines.length > 285)).toEqual(SCRIPTS.map(() => false));
  expect(files.flat().filter((line) => line.length > 110)).toEqual([]);
});

test(proving(
  'bundle.guide',
  'every command of the auditing guide does what it says, with several anchors and a log that has grown since',
), { timeout: 120_000 }, async () => {
  const work = log.colibri.path('guide');
  mkdirSync(join(work, 'bin'), { recursive: true });
  writeFileSync(join(work, 'bin', 'colibri'), `#!/bin/sh\nexec "${NODE}" "${CLI}" "$@"\n`);
  chmodSync(join(work, 'bin', 'colibri'), 0o755);
  copyFileSync(places.authority.certificate, join(work, 'authority.pem'));
  // From elsewhere, not from the bundle.
  writeFileSync(join(work, 'trusted.key'), `${await readTrustedKey()}\n`);
  // P3: a second anchor of each kind, and rows behind both.
  await grow('after the first anchors');
  await places.anchorAgain();
  await grow('after the last anchors');
  const guide = readFileSync(join(DOCS, 'guides', 'auditing.md'), 'utf8');
  const blocks = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, commands = '']) => commands);

  const outputs: string[] = [];
  for (const commands of blocks) outputs.push(await runShell(commands, work));

  const [, sums, row, payload, effects, signature, committed, stamped, everything, colibri] = outputs;
  const read = (name: string) => readFileSync(join(work, 'bundle', name), 'utf8');
  expect(blocks).toHaveLength(10);
  expect(sums).toBe('');
  expect(existsSync(join(work, 'bundle', 'verify.html'))).toBe(true);
  const [first = '', name = ''] = (row ?? '').split('\n');
  expect(first).toBe(`colibri/${name}`);
  expect(payload).toContain('builder called task_create with {');
  expect(Number(effects)).toBeGreaterThan(0);
  expect(signature).toContain('Signature Verified Successfully');
  expect(committed).toMatch(/^(?:commit [0-9a-f]{40}: at \d+ audit rows\n){2}$/);
  expect(stamped).toMatch(/^(?:\d+ audit rows\. Time stamp: .*\n){2}$/);
  expect(everything?.match(/nothing is wrong/g)).toHaveLength(2);
  expect(colibri?.match(/Nothing is wrong/g)).toHaveLength(2);
  expect(colibri).toContain('Why, in the order in which it was recorded');
  // It names the version and the scripts it needs, and the bundle carries them.
  const { version } = JSON.parse(readFileSync(join(DOCS, '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  expect(read('README.txt')).toContain(`Written by Colibri ${version}.`);
  for (const script of SCRIPTS) {
    expect(guide).toContain(script);
    expect(read(`scripts/${script}`)).toBe(readFileSync(join(DOCS, script), 'utf8'));
  }
});

async function readTrustedKey(): Promise<string> {
  const { stdout } = await runColibri(log.colibri, ['checkpoint', '--json']);
  return (JSON.parse(stdout) as { key: string }).key;
}

async function grow(title: string): Promise<void> {
  await runColibri(log.colibri, ['add', title, '--project', 'grown']);
}

function restore(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  cpSync(bundle, folder, { recursive: true });
}

async function runShell(commands: string, cwd: string): Promise<string> {
  const env = { ...log.colibri.environment, PATH: `${join(cwd, 'bin')}:${process.env.PATH}` };
  return await new Promise((resolve, reject) => {
    execFile('sh', ['-e', '-c', commands], { cwd, env }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${commands}\n${stderr}`, { cause: error }));
    });
  });
}
