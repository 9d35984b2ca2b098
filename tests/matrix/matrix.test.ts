import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { generateNoteKey, noteSigner } from '../../src/integrity/signed-note.ts';
import { treeRoot } from '../../src/integrity/tree.ts';
import { THOUGHTS } from '../../src/log/tables.ts';
import { formatCertificate } from '../../src/verify/sources/certificate.ts';
import { FULL } from '../driver/tier.ts';
import { BundleFolder, CERTIFICATE_SPOILINGS, SPOILINGS } from './forgeries/bundles.ts';
import { type Forgery, malformed } from './forgeries/forgery.ts';
import { FORGERIES, SAMPLE } from './forgeries.ts';
import * as legal from './legal.ts';
import { makeCertificate } from './made-certificate.ts';
import { ServerDatabase } from './on-server.ts';
import { MatrixPage } from './page.ts';
import {
  foundIn,
  type Judgement,
  judgeBundle,
  judgeByPython,
  judgeCertificate,
  judgeDatabase,
  judged,
  type Place,
  proveTo,
  rangesIn,
} from './sources.ts';
import { Workshop } from './workshop.ts';
import { packFolder } from './zip-folder.ts';

// Every forgery over every source that can hold it: the same verdict, the same findings, the same ranges.
// A sample runs always; all of them, and the page in Chromium, in "npm run test:matrix".

let workshop: Workshop;
let page: MatrixPage | undefined;
let server: ServerDatabase | undefined;

beforeAll(async () => {
  workshop = await Workshop.open();
  server = await ServerDatabase.open();
  page = FULL ? await MatrixPage.open() : undefined;
}, 120_000);

afterAll(async () => {
  const forgeries = FORGERIES.length + SPOILINGS.length + CERTIFICATE_SPOILINGS.length;
  if (FULL) console.error(JSON.stringify({ forgeries, judged, node: process.version }));
  const complaints = [...((await page?.close()) ?? []), ...(await workshop.close())];
  await server?.stop();
  expect(complaints).toEqual([]);
});

test('every forgery has a name of its own, and the sample names some of them', () => {
  const ids = [...FORGERIES, ...SPOILINGS, ...CERTIFICATE_SPOILINGS].map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect([...SAMPLE].filter((id) => !ids.includes(id))).toEqual([]);
});

describe('logs that nobody has touched give no findings on any source', () => {
  test('the one the server left', async () => {
    await expectSound(workshop.untouched());
  });

  test('the same, taken apart and put together again', async () => {
    await expectSound(workshop.write(workshop.log()));
  });

  test('one with further calls that the rules allow', async () => {
    const log = workshop.log();
    legal.create(log, {
      description: 'd',
      labels: ['x'],
      priority: 'high',
      parent_id: 'T-0002',
      depends_on: ['T-0008'],
    });
    legal.create(log, { workflow: 'pipeline', project: 'core' });
    legal.update(log, 8, { title: 'Other', progress: 5 });
    for (const status of ['todo', 'in_progress']) legal.update(log, 8, { status });
    legal.update(log, 8, { status: 'blocked', blocked_reason: 'Rain.' });
    legal.update(log, 11, { status: 'ANALYZE' }, legal.restarted(log, 11, 'bob'));
    legal.update(log, 11, { takeover: true }, { result: { taken_over_from: legal.former(log, 11) } });
    legal.refuse(log, 'task_update', { task_id: 'T-0011', status: 'PLAN' }, 'ERR_TASK_HELD', {
      actor: 'bob',
    });
    legal.update(log, 11, { assignee: 'bob' });
    const handedOver = { actor: 'bob', result: { taken_over_from: legal.former(log, 11) } };
    legal.update(log, 11, { status: 'PLAN' }, handedOver);
    const person = { source: 'cli', actor: 'dora' } as const;
    legal.update(
      log,
      11,
      { status: 'APPLY', takeover: true },
      { ...person, result: { taken_over_from: legal.former(log, 11) } },
    );
    legal.update(log, 11, { status: 'VERIFY' }, person);
    legal.think(log, 8, { tests_run: ['a'], metadata: { a: 1 } });
    legal.think(log, 8);
    legal.open(log, 8, { reason: 'r' });
    legal.seal(log, 3);
    legal.refuse(log, 'task_update', { task_id: 'T-0008', status: 'done' }, 'ERR_INVALID_TRANSITION');
    legal.read(log);
    legal.adopt(log);
    await expectSound(workshop.write(log));
  });

  test('one that was transferred, received, and transferred again', async () => {
    const log = workshop.log();
    legal.transfer(log);
    legal.receive(log);
    legal.update(log, 1, { labels: ['later'] }, { cells: { labels: '["later"]' } });
    legal.transfer(log);
    const place = workshop.write(log);

    await expectSound(place);

    expect((await judgeDatabase(place)).verdict.remarks.join(' ')).toContain('transferred to postgres:team');
  });

  test('one in which the owner has erased texts', async () => {
    const log = workshop.log();
    legal.erase(log, 'T-0001', 'T-0001');
    legal.erase(log, 'Θ-0003', `T-000${log.state(THOUGHTS, 3).task_id}`);
    legal.erase(log, 'A-0001', 'T-0004');
    legal.erase(log, 'T-0004', 'T-0004');
    const refused = log.exit('task_create', 'ERR_PROJECT_NOT_FOUND').fields.sequence_no;
    legal.erase(log, `#${refused}`, undefined);
    legal.update(log, 1, { labels: ['later'] }, { cells: { labels: '["later"]' } });
    const place = workshop.write(log);

    await expectSound(place);

    const { erased } = (await judgeDatabase(place)).verdict;
    expect(erased.map(({ record }) => record)).toEqual([
      'T-0001',
      'Θ-0003',
      'A-0001',
      'T-0004',
      `#${refused}`,
    ]);
    for (const { by, because, texts } of erased) {
      expect({ by, because }).toEqual({ by: 'alice', because: 'They asked for it.' });
      expect(texts.length).toBeGreaterThan(0);
    }
    const { folder } = await workshop.bundles(place);
    expect((await judgeBundle(place, folder)).verdict.erased).toEqual(erased);
    expect((await judgeByPython('verify-bundle.py', folder)).output).toContain(
      'T-0001 was erased by alice because: They asked for it.',
    );
  });

  test('an older copy that the owner has accepted', async () => {
    const log = workshop.log();
    const size = log.rows.length;
    const [last] = log.kept.slice(-1);
    log.rows.splice(-2, 2);
    legal.adopt(log, 'cli', size);
    log.remembers = false;
    // The kept checkpoint and the memory speak of rows that are gone.
    log.editHeads((_, kept) => {
      const others = kept.filter((note) => note.size < size);
      kept.splice(0, kept.length, ...others, ...(last === undefined ? [] : [last]));
    });
    const place = workshop.write(log);
    await expectSound(place);
    expect((await judgeDatabase(place)).verdict.remarks.join(' ')).toContain('The owner has accepted that.');
  });
});

describe('forged logs', () => {
  for (const forgery of FORGERIES.filter(({ id }) => FULL || SAMPLE.has(id))) {
    test(forgery.id, async () => {
      const { place, expected } = workshop.forge(forgery);
      const database = await judgeDatabase(place);
      expect(foundIn(database)).toEqual(foundIn({ findings: expected }));
      workshop.keep(place, { database });
      if (forgery.onlyInFile === undefined) await expectSameOnServer(place, database);
      const isEverywhere = forgery.holds === 'everywhere';
      // Both scripts judge rows with the same module; the sample asks one of them.
      const byPython = FULL || !isEverywhere ? [await judgeByPython('verify-database.py', place.dbPath)] : [];
      if (isEverywhere) {
        const { folder, zip } = await workshop.bundles(place);
        for (const path of [folder, zip]) expectSame(await judgeBundle(place, path), database);
        workshop.keep(place, { database, bundle: database });
        byPython.push(await judgeByPython('verify-bundle.py', folder));
        await expectSameInPage(place, zip);
      }
      const sounds = byPython.map(({ isSound }) => isSound);
      expect(new Set(sounds).size, byPython.map(({ output }) => output).join('\n')).toBe(1);
      if (forgery.takesReplay === undefined && forgery.isBesideRows === undefined)
        expect(sounds).not.toContain(true);
      await expectInCertificate(forgery, place, database);
      workshop.clear(place);
    });
  }
});

describe('bundles whose files lie', () => {
  for (const { id, spoil } of SPOILINGS.filter(({ id }) => FULL || SAMPLE.has(id))) {
    test(id, async () => {
      const place = workshop.write(workshop.log());
      const { folder: good } = await workshop.bundles(place);
      const bundle = new BundleFolder(join(place.folder, 'spoiled'));
      cpSync(good, bundle.folder, { recursive: true });
      const expected = [spoil(bundle)].flat();
      bundle.finish();
      const zip = await packFolder(bundle.folder);
      const judged = await judgeBundle(place, bundle.folder);
      expect(foundIn(judged)).toEqual(foundIn({ findings: expected }));
      expectSame(await judgeBundle(place, zip), judged);
      await expectSameInPage(place, zip);
      for (const path of [bundle.folder, zip])
        expect(await judgeByPython('verify-bundle.py', path)).toMatchObject({ isSound: false });
      workshop.clear(place);
    });
  }
});

describe.runIf(FULL)('certificates that lie', () => {
  for (const { id, subject, spoil } of CERTIFICATE_SPOILINGS) {
    test(id, async () => {
      const place = workshop.write(workshop.log());
      const path = join(place.folder, 'certificate.json');
      const certificate = JSON.parse(await proveTo(place, subject, path));
      const expected = [spoil(certificate)].flat();
      const judged = await judgeCertificate(place, formatCertificate(certificate));
      expect(foundIn(judged)).toEqual(foundIn({ findings: expected }));
    });
  }
});

describe('certificates of a row that Colibri does not write', () => {
  test.each([[{}], ['x'], [[null]], [[{ table: 'tasks', id: 4 }]]])(
    'are written and show it: effects %j',
    async (effects) => {
      const log = workshop.log();
      const exit = legal.read(log);
      exit.patch = (fields) => void Object.assign(fields, { effects });
      const place = workshop.write(log);
      const subject = `#${exit.fields.position}`;
      const text = await proveTo(place, subject, join(place.folder, 'certificate.json'));

      expect(foundIn(await judgeCertificate(place, text))).toEqual(foundIn({ findings: [malformed(exit)] }));
      workshop.clear(place);
    },
  );
});

describe('certificates put together by a stranger', () => {
  test.each([
    ['a larger head of their own', 2],
    ['a head of their own of the same size', 0],
  ])('of a rewritten log, in which the owner has accepted it, under %s', async (_, more) => {
    const log = workshop.log();
    const [own] = log.heads;
    const size = log.rows.length;
    log.rows.splice(more === 0 ? -2 : -4, more === 0 ? 2 : 4);
    for (const { fields } of log.rows.slice(0, 2)) fields.actor = 'mallory';
    const stranger = noteSigner(log.origin, generateNoteKey(log.origin).privateKeyPem);
    const lost = { size, root: 'a'.repeat(64), key: log.signer.verifierKey };
    log.append({
      ...{ tool: 'owner_adopt', actor: 'mallory', source: 'cli', args: { key: stranger.verifierKey, lost } },
      ...{
        texts: { reason: 'Mine now.' },
        result: { adopted_rows: log.rows.length + 1, key: stranger.verifierKey },
      },
    });
    const act = log.last.fields.position;
    for (let i = 0; i < more; i += 1) legal.read(log);
    const theirs = {
      key: stranger.verifierKey,
      checkpoint: log.note(log.rows.length, treeRoot(log.contentHashes()), stranger),
    };
    const ours = { key: log.signer.verifierKey, checkpoint: own?.checkpoint ?? '' };
    for (const heads of [[theirs], [theirs, ours], [ours, theirs]]) {
      const text = await makeCertificate(log, [1, 2, act - 1, act], heads);
      for (const knowsKey of [true, false])
        expect(foundIn(await judgeCertificate(workshop.untouched(), text, knowsKey))).not.toEqual([]);
    }
  });
});

/** No findings, and everything is intact, replayed and signed through the last row. */
async function expectSound(place: Place): Promise<void> {
  const database = await judgeDatabase(place);
  const { size } = database.verdict;
  expect(foundIn(database)).toEqual([]);
  expect(rangesIn(database)).toMatchObject({
    intactThrough: size,
    replayedThrough: size,
    checkpointedThrough: size,
  });
  await expectSameOnServer(place, database);
  const { folder, zip } = await workshop.bundles(place);
  for (const path of [folder, zip]) expectSame(await judgeBundle(place, path), database);
  await expectSameInPage(place, zip);
  for (const subject of ['T-0001', 'T-0004', 'Θ-0003', 'A-0001', 'A-0002', '#3']) {
    const text = await proveTo(place, subject, join(place.folder, 'certificate.json'));
    expect(foundIn(await judgeCertificate(place, text)), subject).toEqual([]);
  }
  expect(await judgeByPython('verify-database.py', place.dbPath)).toMatchObject({ isSound: true });
  // Python judges sound folders in tests/contract/bundle.test.ts as well; the sample asks for the zip.
  for (const path of FULL ? [folder, zip] : [zip])
    expect(await judgeByPython('verify-bundle.py', path)).toMatchObject({ isSound: true });
}

function expectSame(other: Judgement, one: Judgement): void {
  expect(foundIn(other)).toEqual(foundIn(one));
  expect(rangesIn(other)).toEqual(rangesIn(one));
}

/** The same rows on a server, where PostgreSQL is installed. */
async function expectSameOnServer(place: Place, database: Judgement): Promise<void> {
  if (server !== undefined) expectSame(await server.judge(place), database);
}

/** The page is not told which key to believe, so it is held against a bundle that is judged like that. */
async function expectSameInPage(place: Place, zip: string): Promise<void> {
  if (page === undefined) return;
  const judged = await judgeBundle(place, zip, false);
  const { root: _, ...ranges } = rangesIn(judged);
  const shown = await page.judge(zip);
  expect(foundIn(shown)).toEqual(foundIn(judged));
  expect(shown.ranges).toEqual(ranges);
}

/** A certificate of the record says what the whole log says of it, and nothing else. */
async function expectInCertificate(
  { shownBy, takesReplay }: Forgery,
  place: Place,
  database: Judgement,
): Promise<void> {
  if (shownBy === undefined) return;
  const text = await proveTo(place, shownBy, join(place.folder, 'certificate.json'));
  const found = foundIn(await judgeCertificate(place, text));
  const whole = foundIn(database);
  for (const finding of found) expect(whole).toContainEqual(finding);
  if (takesReplay === undefined) expect(found).not.toEqual([]);
}
