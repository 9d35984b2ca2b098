import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { anchorEverywhere } from '../../../tests/driver/anchor-places.ts';
import { Playground } from '../../../tests/driver/playground.ts';
import { seededRandom } from '../../../tests/driver/random.ts';
import { tier } from '../../../tests/driver/tier.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { generateNoteKey } from '../../integrity/signed-note.ts';
import { readCertificate } from '../../report/certificate.ts';
import { carriedSource } from '../../verify/sources/carried.ts';
import { type Certificate, formatCertificate, openCertificate } from '../../verify/sources/certificate.ts';
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

    const text = formatCertificate(certificate);
    const told = await readCertificate(await carriedSource(() => openCertificate(text)));

    expect(told).toMatchObject({ subject: log.task, rows: 26, records: 11 });
    expect(told.task).toMatchObject({ title: 'Roof', status: 'done' });
    const steps = told.steps.filter(({ kind, task }) => kind === 'task' && task === log.task);
    expect(steps.map(({ verb, actor, text }) => `${verb} ${text} by ${actor}`)).toEqual([
      'created Roof by builder',
      'changed progress 10 by builder',
      'changed progress 20 by builder',
      'moved backlog → todo by builder',
      'moved todo → in_progress by builder',
      'moved in_progress → review by builder',
      'moved review → done by builder',
    ]);
    expect(told.reasons.map(({ recorded_by, content }) => [recorded_by, content !== ''])).toEqual([
      ['builder', true],
      ['builder', true],
    ]);
    expect(linesOf(certificate, 'seals/A-0001')).toHaveLength(7);
    expect(told.seals).toEqual([expect.objectContaining({ id: 'A-0001', sealed: 7, position: 34 })]);
    expect(told.gate).toEqual([
      expect.stringContaining('Finished by builder at'),
      expect.stringContaining('2 were recorded before'),
      expect.stringContaining('it also needed a sealed session: A-0001'),
      expect.stringContaining('refused on the way'),
    ]);
    // Refused steps concern the task too: their calls are among the rows.
    expect(linesOf(certificate, 'log.jsonl').join()).toContain('ERR_INVALID_TRANSITION');
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

  const head = `heads/${key.split('+')[1]}`;
  const anchors = ({ files }: Certificate) =>
    Object.keys(files).filter((name) => name.startsWith('anchors/'));
  expect(linesOf(before, head)[1]).toBe('44');
  expect(anchors(before)).toHaveLength(2);
  expect(linesOf(after, head)[1]).toBe('46');
  expect(anchors(after)).toEqual([]);
});

test('a certificate of a thought shows no other thought', async () => {
  const certificate = await prove(log, 'Θ-0002');

  expect(linesOf(certificate, 'log.jsonl')).toHaveLength(2);
  expect(linesOf(certificate, 'texts.jsonl').filter((line) => line.includes('"naïve'))).toHaveLength(1);
});

test.each(['T-9999', 'Θ-9999', 'A-9999', '#9999'])('there is no certificate of %s', async (subject) => {
  await expect(prove(log, subject)).rejects.toThrow(/[Tt]here is no/);
});

test('a seal proof out of a bundle is checked alone, with the key', () => {
  const text = readFileSync(log.colibri.path('whole', 'proofs', 'A-0001.tlog-proof'), 'utf8');

  expect(checkProofFile(text, () => key)).toMatchObject({ subject: '#34', size: 44, key });
  expect(() => checkProofFile(text, () => undefined)).toThrow('there is no key');
  expect(() => checkProofFile(text.replace('index 33', 'index 32'), () => key)).toThrow('the wrong one');
});

test(proving('verdict.key', 'another key, or a checkpoint of another history, is a finding'), async () => {
  const text = formatCertificate(await prove(log, log.task));
  const newest = readFileSync(log.colibri.path('whole', 'checkpoint'), 'utf8');
  const other = generateNoteKey(key.split('+')[0] ?? '').verifierKey;

  expect((await checkCertificate(text, { against: newest })).findings).toEqual([]);
  expect((await checkCertificate(text, { trustedKey: other })).findings).not.toEqual([]);
});

/** The certificate with other lines in a file; with none, without the file. */
function edited(
  c: Certificate,
  name: string,
  edit: (lines: readonly string[]) => readonly string[] | undefined,
) {
  const { [name]: _, ...others } = c.files;
  const lines = edit(linesOf(c, name));
  return { ...c, files: lines === undefined ? others : { ...others, [name]: lines } };
}

const editing =
  (name: string, edit: (lines: readonly string[]) => readonly string[] | undefined) => (c: Certificate) =>
    edited(c, name, edit);

const withAnchors = (c: Certificate, anchors: (given: [string, string][]) => [string, string][]) => {
  const isAnchor = (name: string) => name.startsWith('anchors/');
  const given = Object.entries(c.files).flatMap(([name, data]): [string, string][] =>
    isAnchor(name) ? [[name, String(data)]] : [],
  );
  const others = Object.entries(c.files).filter(([name]) => !isAnchor(name));
  return { ...c, files: Object.fromEntries([...others, ...anchors(given)]) };
};

const emptied = (line: string) => {
  const { body, position, salt } = JSON.parse(line) as { body: string; position: number; salt: string };
  return JSON.stringify({ body: '', position, salt: salt + Buffer.from(body).toString('hex') });
};

const [SEAL, ROWS, PROOFS] = ['seals/A-0001', 'log.jsonl', 'proofs.jsonl'];
const without = (count: number) => (lines: readonly string[]) => lines.slice(count);
const swapped = ([a = '', b = '', ...rest]: readonly string[]) => [b, a, ...rest];

const FORGERIES: Readonly<Record<string, (certificate: Certificate) => unknown>> = {
  'a row left out': (c) => edited(edited(c, ROWS, without(1)), PROOFS, without(1)),
  'a row left out, but not its proof': editing(ROWS, without(1)),
  'a call left out': (c) => edited(edited(c, ROWS, without(2)), PROOFS, without(2)),
  'a row changed': editing(ROWS, ([a = '', ...rest]) => [a.replace('builder', 'burglar'), ...rest]),
  'a hash of a proof left out': editing(PROOFS, ([a = '', ...rest]) => [
    a.replace(/"[0-9a-f]{64}",/, ''),
    ...rest,
  ]),
  'no proofs': editing(PROOFS, () => undefined),
  'a proof too many': editing(PROOFS, (lines) => [...lines, lines.at(-1) ?? '']),
  'proofs swapped': editing(PROOFS, swapped),
  'a proof in another spelling': editing(PROOFS, ([a = '', ...rest]) => [a.replace(':', ': '), ...rest]),
  'another place': editing(PROOFS, ([a = '', ...rest]) => [
    a.replace(/"position":\d+/, '"position":1'),
    ...rest,
  ]),
  'a text left out': editing('texts.jsonl', without(1)),
  'a text changed': editing('texts.jsonl', (lines) => lines.map((line) => line.replace('"}', '!"}'))),
  'a text too many': editing('texts.jsonl', (lines) => [
    ...lines,
    `{"digest":"${sha256Hex('')}","salt":"","text":""}`,
  ]),
  'a text twice': editing('texts.jsonl', ([a = '', ...rest]) => [a, a, ...rest]),
  'texts swapped': editing('texts.jsonl', swapped),
  'a payload emptied into its salt': editing('payloads.jsonl', (lines) => lines.map(emptied)),
  'the task’s row left out': editing('state.jsonl', without(1)),
  'the task’s row changed': editing('state.jsonl', (lines) =>
    lines.map((line) => line.replace('"progress":100', '"progress":99')),
  ),
  'another task’s row': editing('state.jsonl', ([a = '', ...rest]) => [
    a,
    a.replace('"id":3', '"id":4'),
    ...rest,
  ]),
  'no seal': editing(SEAL, () => undefined),
  'a seal of no session': (c) => edited(c, 'seals/A-0099', () => linesOf(c, SEAL)),
  'an empty seal': editing(SEAL, () => []),
  'sealed records swapped': editing(SEAL, (lines) => lines.toReversed()),
  'a sealed record left out': editing(SEAL, without(1)),
  'a sealed record in capitals': editing(SEAL, (lines) => lines.map((hash) => hash.toUpperCase())),
  'no payloads': editing('payloads.jsonl', () => []),
  'a payload that belongs to nothing': editing('payloads.jsonl', (lines) => [
    ...lines,
    '{"body":"{}","position":999,"salt":""}',
  ]),
  'payloads swapped': editing('payloads.jsonl', (lines) => lines.toReversed()),
  'rows swapped': (c) =>
    edited(
      edited(c, ROWS, (lines) => lines.toReversed()),
      PROOFS,
      (lines) => lines.toReversed(),
    ),
  'no head': (c) => edited(c, `heads/${key.split('+')[1]}`, () => undefined),
  'a kept checkpoint': (c) =>
    edited(c, `checkpoints/44-${key.split('+')[1]}`, () => linesOf(c, 'checkpoint')),
  'another checkpoint': editing('checkpoint', (lines) => lines.with(1, '43')),
  'no checkpoint': editing('checkpoint', () => undefined),
  'no key': editing('keys', () => []),
  'a key too many': editing('keys', (lines) => [...lines, generateNoteKey('x').verifierKey]),
  'a letter beside the log': (c) => edited(c, 'letter.txt', () => ['Trust me.']),
  'a marker of a bundle': (c) => edited(c, 'bundle.json', () => ['{}']),
  'a name that leads out': (c) => edited(c, '../letter.txt', () => ['Trust me.']),
  'another name': (c) => ({ ...c, origin: `colibri/${'0'.repeat(32)}` }),
  'an anchor under another name': (c) =>
    withAnchors(c, (given) => given.map(([name, data]) => [name.replace('/', '/0'), data])),
  'an anchor spelled in another way': (c) =>
    withAnchors(c, (given) => given.map(([name, data]) => [name, ` ${data}`])),
  'an anchor of nothing here': (c) => withAnchors(c, () => [[`anchors/${sha256Hex('')}.tsr`, '']]),
  'a file that is no list of lines': (c) => ({ ...c, files: { ...c.files, keys: `${key}\n` } }),
  'a line that is two': editing('state.jsonl', (lines) => [lines.join('\n')]),
  'another version': (c) => ({ ...c, version: 2 }),
  'another kind': (c) => ({ ...c, kind: 'colibri-bundle' }),
  'another subject': (c) => ({ ...c, subject: 'T-0001' }),
  'the session as its subject': (c) => ({ ...c, subject: 'A-0002' }),
  'a subject that writes': (c) => ({ ...c, subject: '\u001b[2J' }),
  'nothing at all': () => ({ files: {} }),
};

test.each(Object.entries(FORGERIES))(proving('certificate.damage', '%s is found'), async (_, forge) => {
  const forged = forge(await prove(log, log.task));

  const { findings } = await checkCertificate(formatCertificate(forged as Certificate));

  expect(findings).not.toEqual([]);
  for (const { message } of findings) expect(message).toMatch(/^[^\p{Cc}]+\.$/u);
});

test(proving('certificate.damage', 'a member too many is found'), async () => {
  const text = formatCertificate(await prove(log, log.task));

  const { findings } = await checkCertificate(text.replace('"kind"', '"note": "trust me",\n  "kind"'));

  expect(findings.map(({ kind }) => kind)).toEqual(['damaged']);
});

test.each([
  '',
  '{',
  '{}\n',
  '[]\n',
  '[[[[',
  'null',
  '{"kind":1,"kind":2}',
  '\uFEFF{}',
  'c2sp.org/tlog-proof@v1\n\n',
  '\0',
])(proving('bundle.hostile', '%j is a finding, never a crash'), async (text) => {
  const { findings } = await checkCertificate(text);

  expect(findings.map(({ kind }) => kind)).toEqual(['damaged']);
});

test(proving('certificate.damage', 'after any byte was changed a certificate does not hold'), async () => {
  const random = seededRandom('certificate damage');
  const text = formatCertificate(await prove(log, log.task));
  const path = log.colibri.path('damaged.json');
  for (let i = 0; i < tier(100, 300); i += 1) {
    writeFileSync(path, text);
    const where = damage(path, random);

    const { findings } = await checkCertificate(readFileSync(path, 'utf8'));

    expect(findings, where).not.toEqual([]);
  }
});

function linesOf({ files }: Certificate, name: string): readonly string[] {
  const lines = files[name];
  return Array.isArray(lines) ? lines : [];
}
