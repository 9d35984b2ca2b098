import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { anchorEverywhere } from '../../../tests/driver/anchor-places.ts';
import { Playground } from '../../../tests/driver/playground.ts';
import { seededRandom } from '../../../tests/driver/random.ts';
import { formatCertificate } from '../../export/certificate.ts';
import { describeCertificate } from '../../export/summary.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { generateNoteKey } from '../../integrity/note-key.ts';
import type { Certificate } from '../../verify/sources/certificate.ts';
import { checkProofFile } from '../../verify/sources/proofs.ts';
import { checkCertificate, damage, exportTo, prove } from './evidence.ts';
import { playRealLog, type RealLog } from './real-log.ts';

let log: RealLog;
let key: string;

beforeAll(async () => {
  log = await playRealLog(new Playground());
  await anchorEverywhere(log.colibri);
  await exportTo(log, log.colibri.path('whole'));
  key = readFileSync(log.colibri.path('whole', 'keys'), 'utf8').trim();
});

afterAll(async () => {
  await log.colibri.dispose();
});

test.each(['T-0001', 'T-0002', 'T-0003', 'Θ-0001', 'Θ-0002', 'A-0001', 'A-0002', '#1', '#12', '#20', '#44'])(
  proving(['certificate.records', 'certificate.alone', 'log-tree.inclusion'], 'the certificate of %s holds'),
  async (subject) => {
    const text = formatCertificate(await prove(log, subject));

    const checked = await checkCertificate(text, { trustedKey: key });

    expect(checked.findings).toEqual([]);
    expect(checked.subject).toBe(subject);
    expect(checked.verdict).toMatchObject({ origin: key.split('+')[0], size: 44, checkpointedThrough: 44 });
  },
);

test(
  proving(
    'certificate.task',
    'a completion certificate tells every step, by whom and when, and the seal behind it',
  ),
  async () => {
    const certificate = await prove(log, log.task);

    const lines = describeCertificate(certificate);

    expect(lines[0]).toBe(`${log.task} "Roof": 26 audit rows and 11 records`);
    expect(lines.filter((line) => / to |created/.test(line)).map((line) => line.slice(25))).toEqual([
      'created in backlog by builder',
      'backlog to todo by builder',
      'todo to in_progress by builder',
      'in_progress to review by builder',
      'review to done by builder',
    ]);
    expect(lines.filter((line) => line.includes('Θ'))).toHaveLength(2);
    expect(certificate.seals['A-0001']).toHaveLength(7);
    expect(lines).toContain('A-0001 sealed at #34 over 7 records');
    // Refused steps concern the task too: their calls are among the rows.
    expect(certificate.rows.some(({ text }) => text.includes('ERR_INVALID_TRANSITION'))).toBe(true);
  },
);

test(
  proving(
    'bundle.anchors',
    'a certificate carries the anchors of its checkpoint, and claims nothing of them',
  ),
  async () => {
    const { anchors, verdict } = await checkCertificate(formatCertificate(await prove(log, log.task)));

    expect(anchors.map(({ kind, size }) => [kind, size]).sort()).toEqual([
      ['git', 44],
      ['tsr', 44],
    ]);
    expect(verdict).toMatchObject({ anchoredThrough: 0, anchoredBy: [] });
  },
);

test('a certificate is proved against the oldest anchored checkpoint that covers it', async () => {
  const later = await log.colibri.start();
  await later.call('task_create', { title: 'later', project: 'house' });
  await later.closeInput();

  const [before, after] = await Promise.all([prove(log, 'T-0003'), prove(log, 'T-0004')]);

  expect(before.heads[0]?.checkpoint.split('\n')[1]).toBe('44');
  expect(Object.keys(before.anchors)).toHaveLength(2);
  expect(after.heads[0]?.checkpoint.split('\n')[1]).toBe('46');
  expect(after.anchors).toEqual({});
});

test('a certificate of a thought shows no other thought', async () => {
  const certificate = await prove(log, 'Θ-0002');

  expect(certificate.rows).toHaveLength(2);
  expect(certificate.texts.filter(({ text }) => text.startsWith('naïve'))).toHaveLength(1);
});

test.each(['T-9999', 'Θ-9999', 'A-9999', '#9999'])('there is no certificate of %s', async (subject) => {
  await expect(prove(log, subject)).rejects.toThrow(/[Tt]here is no/);
});

test('a seal proof out of a bundle is checked alone, with the key', () => {
  const text = readFileSync(log.colibri.path('whole', 'proofs', 'A-0001.tlog-proof'), 'utf8');

  expect(checkProofFile(text, { keyOf: () => key })).toMatchObject({ subject: '#34', size: 44, key });
  expect(() => checkProofFile(text, { keyOf: () => undefined })).toThrow('there is no key');
  expect(() => checkProofFile(text.replace('index 33', 'index 32'), { keyOf: () => key })).toThrow(
    'does not hold',
  );
});

test(proving('verdict.key', 'another key, or a checkpoint of another history, is a finding'), async () => {
  const text = formatCertificate(await prove(log, log.task));
  const newest = readFileSync(log.colibri.path('whole', 'checkpoint'), 'utf8');
  const other = generateNoteKey(key.split('+')[0] ?? '').verifierKey;

  expect((await checkCertificate(text, { against: newest })).findings).toEqual([]);
  expect((await checkCertificate(text, { trustedKey: other })).findings).not.toEqual([]);
});

const FORGERIES: Readonly<Record<string, (certificate: Certificate) => unknown>> = {
  'a row left out': (c) => ({ ...c, rows: c.rows.slice(1) }),
  'a call left out': (c) => ({ ...c, rows: c.rows.slice(2) }),
  'a proof left out': (c) => ({ ...c, rows: c.rows.with(0, { ...row(c, 0), proof: [] }) }),
  'proofs swapped': (c) => ({
    ...c,
    rows: c.rows
      .with(0, { ...row(c, 0), proof: row(c, 1).proof })
      .with(1, { ...row(c, 1), proof: row(c, 0).proof }),
  }),
  'another place': (c) => ({ ...c, rows: c.rows.with(0, { ...row(c, 0), position: 1 }) }),
  'another link': (c) => ({ ...c, rows: c.rows.with(1, { ...row(c, 1), previous: '0'.repeat(64) }) }),
  'a text left out': (c) => ({ ...c, texts: c.texts.slice(1) }),
  'a text changed': (c) => ({ ...c, texts: c.texts.map((one) => ({ ...one, text: `${one.text}!` })) }),
  'a text too many': (c) => ({ ...c, texts: [...c.texts, { digest: sha256Hex(''), salt: '', text: '' }] }),
  'a payload emptied into its salt': (c) => ({
    ...c,
    payloads: c.payloads.map((one) => ({
      ...one,
      body: '',
      salt: one.salt + Buffer.from(one.body).toString('hex'),
    })),
  }),
  'the task’s row left out': (c) => ({ ...c, state: c.state.slice(1) }),
  'the task’s row changed': (c) => ({
    ...c,
    state: c.state.map((line) => line.replace('"progress":100', '"progress":99')),
  }),
  'another task’s row': (c) => ({
    ...c,
    state: [...c.state.slice(0, 1), (c.state[0] ?? '').replace('"id":3', '"id":4'), ...c.state.slice(1)],
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
  'rows swapped': (c) => ({ ...c, rows: c.rows.toReversed() }),
  'no head': (c) => ({ ...c, heads: [] }),
  'another name': (c) => ({ ...c, origin: `colibri/${'0'.repeat(32)}` }),
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
  'another version': (c) => ({ ...c, version: 1 }),
  'another kind': (c) => ({ ...c, kind: 'colibri-bundle' }),
  'another subject': (c) => ({ ...c, subject: 'T-0001' }),
  'the session as its subject': (c) => ({ ...c, subject: 'A-0002' }),
  'a subject that writes': (c) => ({ ...c, subject: '\u001b[2J' }),
  'an unknown member': (c) => ({ ...c, note: 'trust me' }),
  'nothing at all': () => ({}),
  'a list': () => [],
};

test.each(Object.entries(FORGERIES))(proving('certificate.damage', '%s is found'), async (_, forge) => {
  const forged = forge(await prove(log, log.task));

  const { findings } = await checkCertificate(formatCertificate(forged as Certificate));

  expect(findings).not.toEqual([]);
  for (const { message } of findings) expect(message).toMatch(/^[^\p{Cc}]+\.$/u);
});

test.each(['', '{', '[[[[', 'null', '{"kind":1,"kind":2}', '\uFEFF{}', 'c2sp.org/tlog-proof@v1\n\n', '\0'])(
  proving('bundle.hostile', '%j is a finding, never a crash'),
  async (text) => {
    const { findings } = await checkCertificate(text);

    expect(findings.map(({ kind }) => kind)).toEqual(['damaged']);
  },
);

test(proving('certificate.damage', 'after any byte was changed a certificate does not hold'), async () => {
  const random = seededRandom('certificate damage');
  const text = formatCertificate(await prove(log, log.task));
  const path = log.colibri.path('damaged.json');
  for (let i = 0; i < 300; i += 1) {
    writeFileSync(path, text);
    const where = damage(path, random);

    const { findings } = await checkCertificate(readFileSync(path, 'utf8'));

    expect(findings, where).not.toEqual([]);
  }
});

function row({ rows }: Certificate, index: number): Certificate['rows'][number] {
  const found = rows[index];
  if (found === undefined) throw new Error(`the certificate has no row ${index}`);
  return found;
}

function sealed({ seals }: Certificate): readonly string[] {
  return seals['A-0001'] ?? [];
}
