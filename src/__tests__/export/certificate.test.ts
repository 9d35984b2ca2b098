import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { anchorEverywhere } from '../../../tests/driver/anchor-places.ts';
import { Playground } from '../../../tests/driver/playground.ts';
import { seededRandom } from '../../../tests/driver/random.ts';
import { type Certificate, formatCertificate } from '../../export/certificate.ts';
import { summarize } from '../../export/summary.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { checkManyWithPython, checkProof, checkWithPython, damage, exportTo, prove } from './evidence.ts';
import { playRealLog, type RealLog } from './real-log.ts';

let log: RealLog;
let key: string;

beforeAll(async () => {
  log = await playRealLog(new Playground());
  await anchorEverywhere(log.colibri);
  await exportTo(log, log.colibri.path('whole'));
  key = readFileSync(log.colibri.path('whole', 'key.pub'), 'utf8').trim();
});

afterAll(async () => {
  await log.colibri.dispose();
});

test.each(['T-0001', 'T-0002', 'T-0003', 'Θ-0001', 'Θ-0002', 'A-0001', 'A-0002', '#1', '#12', '#20', '#44'])(
  proving(
    ['certificate.records', 'certificate.alone', 'log-tree.inclusion'],
    'the certificate of %s holds, here and with Python',
  ),
  async (subject) => {
    const path = await write(`${subject}.json`, await prove(log, subject));

    const { verdict, findings } = await checkProof(path, { trustedKey: key });
    const python = await checkWithPython(path, key);

    expect(findings).toEqual([]);
    expect(verdict).toMatchObject({ subject, origin: key.split('+')[0], size: 44 });
    expect(python.output).toContain(`${subject}: `);
    expect(python.code).toBe(0);
  },
);

test(
  proving(
    'certificate.task',
    'a completion certificate tells every step, by whom and when, and the seal behind it',
  ),
  async () => {
    const certificate = await prove(log, log.task);

    const { transitions, thoughts } = summarize(certificate);
    const { verdict } = await checkProof(await write('completion.json', certificate));

    expect(transitions.map(({ from, to, by }) => [from, to, by])).toEqual([
      [null, 'backlog', 'builder'],
      ['backlog', 'todo', 'builder'],
      ['todo', 'in_progress', 'builder'],
      ['in_progress', 'review', 'builder'],
      ['review', 'done', 'builder'],
    ]);
    expect(thoughts.map(({ record }) => record)).toEqual(['Θ-0001', 'Θ-0002']);
    expect(certificate.seals['A-0001']).toHaveLength(7);
    expect(verdict.lines.filter((line) => line.includes(' by builder'))).toHaveLength(7);
    expect(verdict.lines).toContain('A-0001 sealed at #34 over 7 records');
    // Refused steps concern the task too: their calls are among the rows.
    expect(certificate.log.some((text) => text.includes('ERR_INVALID_TRANSITION'))).toBe(true);
  },
);

test(
  proving(
    'bundle.anchors',
    'a certificate carries the anchors of its checkpoint, and claims nothing of them',
  ),
  async () => {
    const { verdict } = await checkProof(await write('anchored.json', await prove(log, log.task)));

    expect(verdict.anchors.map(({ kind, size }) => [kind, size]).sort()).toEqual([
      ['git', 44],
      ['tsr', 44],
    ]);
    expect(verdict.lines.join()).not.toContain('anchor');
  },
);

test('a certificate is proved against the oldest anchored checkpoint that covers it', async () => {
  const later = await log.colibri.start();
  await later.call('task_create', { title: 'later', project: 'house' });
  await later.closeInput();

  const [before, after] = await Promise.all([prove(log, 'T-0003'), prove(log, 'T-0004')]);

  expect(before.checkpoint.split('\n')[1]).toBe('44');
  expect(Object.keys(before.anchors)).toHaveLength(2);
  expect(after.checkpoint.split('\n')[1]).toBe('46');
  expect(after.anchors).toEqual({});
});

test('a certificate of a thought shows the hashes before it and not what was thought', async () => {
  const certificate = await prove(log, 'Θ-0002');

  expect(certificate.log).toHaveLength(3);
  expect(certificate.payloads.filter(({ body }) => body.includes('"content"'))).toHaveLength(1);
});

test.each(['T-9999', 'Θ-9999', 'A-9999', '#9999'])('there is no certificate of %s', async (subject) => {
  await expect(prove(log, subject)).rejects.toThrow(/[Tt]here is no/);
});

test('a seal proof out of a bundle is checked alone, with the key', async () => {
  const path = log.colibri.path('whole', 'proofs', 'A-0001.tlog-proof');

  const { verdict, findings } = await checkProof(path, { trustedKey: key });

  expect(findings).toEqual([]);
  expect(verdict.subject).toBe('#34');
  expect((await checkProof(path)).findings).not.toEqual([]);
});

test(
  proving('verdict.key', 'another key, or a checkpoint that cannot be compared, is a finding'),
  async () => {
    const path = await write('task.json', await prove(log, log.task));
    const older = readFileSync(log.colibri.path('whole', 'checkpoints', '34'), 'utf8');
    const newest = readFileSync(log.colibri.path('whole', 'checkpoint'), 'utf8');

    expect((await checkProof(path, { against: newest })).findings).toEqual([]);
    expect((await checkProof(path, { against: older })).findings).not.toEqual([]);
    expect((await checkProof(path, { trustedKey: key.replace('colibri', 'colibry') })).findings).not.toEqual(
      [],
    );
  },
);

const FORGERIES: Readonly<Record<string, (certificate: Certificate) => unknown>> = {
  'a row left out': (c) => ({ ...c, log: c.log.slice(1), proofs: c.proofs.slice(1) }),
  'a proof left out': (c) => ({ ...c, proofs: c.proofs.slice(1) }),
  'proofs swapped': (c) => ({ ...c, proofs: c.proofs.toReversed() }),
  'the task’s row left out': (c) => ({ ...c, state: c.state.slice(1) }),
  'the task’s row changed': (c) => ({
    ...c,
    state: c.state.map((line) => line.replace('"progress":100', '"progress":99')),
  }),
  'no seal': (c) => ({ ...c, seals: {} }),
  'a seal of no session': (c) => ({ ...c, seals: { ...c.seals, 'A-0099': sealed(c) } }),
  'an empty seal': (c) => ({ ...c, seals: { 'A-0001': [] } }),
  'sealed records swapped': (c) => ({ ...c, seals: { 'A-0001': sealed(c).toReversed() } }),
  'a sealed record left out': (c) => ({ ...c, seals: { 'A-0001': sealed(c).slice(1) } }),
  'a sealed record in capitals': (c) => ({
    ...c,
    seals: { 'A-0001': sealed(c).map((hash) => hash.toUpperCase()) },
  }),
  'no payloads': (c) => ({ ...c, payloads: [] }),
  'a payload that belongs to nothing': (c) => ({
    ...c,
    payloads: [...c.payloads, { body: '{}', position: 999, salt: '' }],
  }),
  'payloads swapped': (c) => ({ ...c, payloads: c.payloads.toReversed() }),
  'rows swapped': (c) => ({ ...c, log: c.log.toReversed(), proofs: c.proofs.toReversed() }),
  'an anchor under another name': (c) => ({
    ...c,
    anchors: Object.fromEntries(
      Object.entries(c.anchors).map(([name, data]) => [name.replace('/', '/0'), data]),
    ),
  }),
  'an anchor spelled in another way': (c) => ({
    ...c,
    anchors: Object.fromEntries(Object.entries(c.anchors).map(([name, data]) => [name, ` ${data}`])),
  }),
  'an anchor of nothing here': (c) => ({
    ...c,
    anchors: { [`anchors/${sha256Hex('')}.tsr`]: '' },
  }),
  'another version': (c) => ({ ...c, version: 2 }),
  'another kind': (c) => ({ ...c, kind: 'colibri-bundle' }),
  'another subject': (c) => ({ ...c, subject: 'T-0001' }),
  'an unknown member': (c) => ({ ...c, note: 'trust me' }),
  'nothing at all': () => ({}),
  'a list': () => [],
};

test.each(Object.entries(FORGERIES))(
  proving('certificate.damage', '%s is found, here and by Python'),
  async (what, forge) => {
    const forged = forge(await prove(log, log.task));
    const path = log.colibri.path(`${what.replaceAll(/\W/g, '-')}.json`);
    writeFileSync(path, formatCertificate(forged as Certificate));

    const { findings } = await checkProof(path);
    const python = await checkWithPython(path);

    expect(findings).not.toEqual([]);
    for (const { message } of findings) expect(message).toMatch(/^[^\n]+\.$/);
    expect(python.code, python.output).toBe(1);
  },
);

test.each(['', '{', '[[[[', 'null', '{"kind":1,"kind":2}', '\uFEFF{}', 'c2sp.org/tlog-proof@v1\n\n', '\0'])(
  proving('bundle.hostile', '%j is a finding, never a crash'),
  async (text) => {
    const path = log.colibri.path('odd.json');
    writeFileSync(path, text);

    expect((await checkProof(path)).findings).toHaveLength(1);
  },
);

test(
  proving(
    'certificate.damage',
    'after any byte was changed a certificate does not hold, here and with Python',
  ),
  async () => {
    const random = seededRandom('certificate damage');
    const text = formatCertificate(await prove(log, log.task));
    const where = new Map<string, string>();
    for (let i = 0; i < 200; i += 1) {
      const path = log.colibri.path(`damaged-${i}.json`);
      writeFileSync(path, text);
      where.set(path, damage(path, random));
    }

    const codes = await checkManyWithPython([...where.keys()]);

    expect([...where.values()].filter((_, i) => codes[i] !== 1)).toEqual([]);
    for (const [path, byte] of where) expect((await checkProof(path)).findings, byte).not.toEqual([]);
  },
);

function sealed({ seals }: Certificate): string[] {
  return seals['A-0001'] ?? [];
}

async function write(name: string, certificate: Certificate): Promise<string> {
  const path = log.colibri.path(name);
  writeFileSync(path, formatCertificate(certificate));
  return path;
}
