/// <reference lib="dom" />
import { existsSync, readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserContext, Page, Route } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { CALLS_PAGE, CARDS_PAGE } from '../../src/report/filter.ts';
import { proving } from '../contract/proves.ts';
import { StayingCommand } from '../driver/command-line.ts';
import { openDatabase } from '../driver/database.ts';
import { type Edit, forgeDatabase, HOSTILE } from '../driver/hostile-database.ts';
import { Playground } from '../driver/playground.ts';
import type { ServerProcess } from '../driver/server-process.ts';
import { axeInAllViews, barColours, onPaper, settled, shownText, TABS, watchPage } from './chromium.ts';
import { COMMIT, MANY, type PlayedLog } from './played-log.ts';

/** Starts the live page of a log and answers its address. */
async function startLive(
  colibri: Playground,
  env: Readonly<Record<string, string>> = {},
): Promise<{ url: string; served: StayingCommand }> {
  const served = new StayingCommand(colibri, ['serve', '--json'], { holdsInput: true, env });
  await served.printed('}');
  return { url: JSON.parse(served.stdout).url, served };
}

/** The live page in a real browser, on the log that the tests of the report have played. */
export function liveCases(context: BrowserContext, played: () => PlayedLog): void {
  describe('the live page', () => {
    let url: string;
    let served: StayingCommand;

    beforeAll(async () => {
      ({ url, served } = await startLive(played().colibri));
    }, 120_000);

    /** A tab of its own. Whatever else it looks at, the page must have said nothing bad and asked only its server. */
    const inTab = (sentence: string, act: (page: Page) => Promise<void>, base = () => url) =>
      test(sentence, { timeout: 180_000 }, async () => {
        const { page, complaints } = await watchPage(context);
        try {
          await act(page);
          expect(complaints.filter((line) => !line.startsWith(`request: ${base()}`))).toEqual([]);
        } finally {
          await page.unrouteAll({ behavior: 'ignoreErrors' });
          await page.close();
        }
      });
    const open = async (page: Page, hash = '') => {
      await page.goto(`${url}${hash}`);
      await page.waitForSelector('body[data-ready=true]');
      await settled(page);
    };
    const show = async (page: Page, tab: string) => {
      await page.click(`#tab-${tab}`);
      await settled(page);
    };
    const banner = (page: Page) => shownText(page, '.verdict');

    inTab(
      proving(
        ['live.proved', 'live.word', 'page.anchors'],
        'shows what the report shows, and whose word each is',
      ),
      async (page) => {
        await open(page);
        const summary = await shownText(page, '#panel-summary');
        await show(page, 'board');
        const board = await shownText(page, '.board-view');
        await show(page, 'trail');
        const trail = await page.locator('.list-row .entry').allInnerTexts();
        await show(page, 'sessions');
        await page.selectOption('#session-choice', 'A-0003');
        await settled(page);
        const session = await shownText(page, '#panel-sessions');
        await show(page, 'checks');
        await page.waitForSelector('text=Verified at');
        const checks = await shownText(page, '#panel-checks');
        await page.waitForSelector('.verdict[data-tone=good]');
        const bars = await barColours(page);

        expect(bars).toEqual({
          good: ['Signed through (checked here)'],
          grey: ['Intact', 'Replayed', 'Anchored'].map((name) => `${name} through (claimed by the server)`),
        });
        expect(summary).toMatch(/1\s+task finished\s+of 5; 3 open, 1 cancelled/);
        expect(summary).toMatch(/Counted by the server, through row (\d+) of \1; not proved/);
        expect(summary).toContain(`${COMMIT.slice(0, 12)} on footing`);
        expect(board).toMatch(/T-0001\s+high\s+proof\s+Foundations/);
        expect(trail[0]).toContain('Paint needs a dry week.');
        expect(trail.at(-1)).toContain('Foundations');
        expect(session).toContain(`Leaves 1 to 16 of ${MANY}`);
        expect(session).toContain('The seal is valid');
        expect(checks).toMatch(/is under the newest signed head\s+✓ holds\s+[1-9]/);
        expect(checks).toMatch(/Claimed by the server[\s\S]*Replayed through\s+\d+/);
        expect(checks).toContain('prepared: only on this machine');
        expect(checks).toContain('the key that created the log');
        const text = await banner(page);
        expect(text).toMatch(/Checked in this browser: [1-9]\d* rows sent so far/);
        expect(text).toMatch(
          /Replayed through \(claimed by the server\)\s+(\d+) of \1\s+Verified \d+ \w+ ago/,
        );
        expect(text).toContain('cannot replace a verify.html from a source you trust');
      },
    );

    inTab(proving('live.proved', 'opens a task, a thought and a call by their links'), async (page) => {
      await open(page, '#T-0005');
      const task = await shownText(page, 'dialog');
      await page.click('dialog a:has-text("T-0002")');
      await page.waitForSelector('#detail-title:has-text("T-0002")');
      await page.evaluate(() => {
        location.hash = 'Θ-0001';
      });
      await page.waitForSelector('#detail-title:has-text("Θ-0001")');
      const thought = await shownText(page, 'dialog');

      expect(task).toMatch(/depends on T-0002\s+Roof/);
      expect(task).toContain('3 h');
      expect(thought).toContain(COMMIT);
      expect(thought).toContain('soil test, water test');
      expect(thought).toMatch(/hashes lead from its last row to the root of the signed head/);
    });

    inTab(proving('live.proved', 'filters by project, agent, day, words and ids'), async (page) => {
      await open(page);
      await show(page, 'board');
      await page.selectOption('#filter-project', 'house');
      await settled(page);
      const cards = (await page.locator('.task .id').allInnerTexts()).sort();
      await show(page, 'trail');
      await page.click('text=Clear');
      await page.selectOption('#filter-agent', 'painter');
      await settled(page);
      const painter = await page.locator('.list-row .entry').allInnerTexts();
      await page.click('text=Clear');
      const found: string[][] = [];
      for (const words of ['Θ-0003', 'slate TILES', 'A-0002', 'nothing of the kind']) {
        await page.fill('#filter-words', words);
        await settled(page);
        found.push(await page.locator('.list-row .entry').allInnerTexts());
      }
      await page.click('text=Clear');
      await page.fill('#filter-until', '2001-01-01');
      await settled(page);

      expect(cards).toEqual(['T-0001', 'T-0002', 'T-0005']);
      expect(painter).toEqual([expect.stringContaining('Paint needs a dry week.')]);
      expect(found[0]).toEqual([expect.stringContaining('Slate, not tiles.')]);
      expect(found[1]).toEqual([expect.stringContaining('Slate, not tiles.')]);
      expect(found[2]?.join('\n')).toContain('session opened');
      expect(found[3]).toEqual([]);
      expect(await page.locator('.list-row').count()).toBe(0);
    });

    inTab(proving('live.proved', 'compares a key and a checkpoint that somebody kept'), async (page) => {
      const [key, note] = ['keys', 'checkpoint'].map((name) =>
        readFileSync(`${played().folder}/${name}`, 'utf8'),
      );
      await open(page);
      await show(page, 'checks');
      const answers: string[] = [];
      for (const text of [key, note, note?.replace(/\n[1-9]\d*\n/, '\n7\n'), 'x+01234567+AAAA']) {
        await page.fill('#compare', text ?? '');
        await page.click('.compare button');
        await settled(page);
        answers.push(await shownText(page, '.compare .seal'));
      }

      expect(answers[0]).toMatch(/has signed the head over \d+ rows/);
      expect(answers[1]).toMatch(/agrees with the first \d+ audit rows/);
      expect(answers[2]).toContain('has not signed the checkpoint');
      expect(answers[3]).toContain('another key');
    });

    inTab(proving('live.grows', 'is updated in every tab as rows arrive'), async (page) => {
      const second = await watchPage(context);
      await open(page, '#board');
      await second.page.goto(`${url}#trail`);
      await second.page.waitForSelector('body[data-ready=true]');
      const server = await played().colibri.start({ clientName: 'gardener' });
      await server.call('task_create', { title: 'Fence', project: 'garden' });
      await page.bringToFront();
      await page.waitForSelector('.task:has-text("Fence")');
      await second.page.bringToFront();
      await second.page.waitForSelector('.list-row:has-text("Fence")');
      await server.closeInput();
      await page.bringToFront();
      await page.waitForFunction(() =>
        /\d+ heads since row \d+ each extend the previous one/.test(
          document.querySelector('.verdict')?.textContent ?? '',
        ),
      );
      await second.page.close();

      expect(await page.locator('#filter-agent option').allTextContents()).toContain('gardener');
    });

    inTab(
      proving('page.usable', 'has nothing that axe finds, in the light and in the dark, and fits a phone'),
      async (page) => {
        await open(page);
        // The report shows the same views in the light.
        const found = await axeInAllViews(page, 'dark');
        await page.setViewportSize({ width: 360, height: 740 });
        const wide: string[] = [];
        for (const tab of TABS) {
          await show(page, tab);
          const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          if (excess > 0) wide.push(`${tab} by ${excess}`);
        }

        expect(found).toEqual([]);
        expect(wide).toEqual([]);
      },
    );

    inTab(
      proving('page.usable', 'is used with the keyboard alone, and printed without its controls'),
      async (page) => {
        await open(page);
        await page.focus('#tab-summary');
        await page.keyboard.press('ArrowRight');
        await settled(page);
        await page.locator('.task').first().focus();
        await page.keyboard.press('Enter');
        await page.waitForSelector('dialog[open]');
        const opened = await shownText(page, '#detail-title');
        // The board is drawn anew under the box, so what opened it is no longer there.
        const server = await played().colibri.start({ clientName: 'gardener' });
        await server.call('task_create', { title: 'Gate', project: 'garden' });
        await server.closeInput();
        await page.waitForSelector('.task:has-text("Gate")', { state: 'attached' });
        await page.keyboard.press('Escape');
        await settled(page);
        const back = await page.evaluate(() => document.activeElement?.getAttribute('data-key'));
        await page.focus('#filter-words');
        await page.keyboard.type('slate');
        await settled(page);
        const cards = await page.locator('.task').count();
        await page.fill('#filter-words', '');
        await settled(page);
        const { views } = await onPaper(page);

        expect(opened).toMatch(/^T-\d+$/);
        expect(back).toBe(opened);
        expect(cards).toBe(0);
        for (const [name, seen] of Object.entries(views))
          expect(seen, name).toMatchObject({ controls: 0, wide: 0, page: name === 'task' ? 0 : 1 });
      },
    );

    describe('with a server that lies', () => {
      /** Changes what the server answers to one question. */
      const lie = (page: Page, question: string, change: (body: string) => string) =>
        page.route(`${url}${question}?*`, async (route: Route) => {
          const response = await route.fetch();
          await route.fulfill({ response, body: change(await response.text()) });
        });

      inTab(proving('live.alarm', 'shows nothing of an answer in which a text was changed'), async (page) => {
        await lie(page, 'trail', (body) => body.replace('Slate, not tiles.', 'Tiles, not slate.'));
        await open(page, '#trail');
        await page.waitForSelector('.verdict[data-tone=bad]');

        expect(await page.locator('.list-row').count()).toBe(0);
        expect(await banner(page)).toMatch(
          /This is not the same log as before\s+A check of what the server sent failed/,
        );
      });

      inTab(
        proving('live.alarm', 'shows nothing of an answer in which a title, a row or a proof was changed'),
        async (page) => {
          const lies: readonly ((body: string) => string)[] = [
            (body) => body.replace('"text":"Foundations"', '"text":"Foundation"'),
            (body) => body.replace('\\"actor\\":\\"builder\\"', '\\"actor\\":\\"burglar\\"'),
            (body) => body.replace(/("proofs[^[]*\[[^[]*\[\\")[0-9a-f]{8}/, '$100000000'),
            (body) => body.replace(/"status\\":\\"in_progress/, '"status\\":\\"cancelled'),
          ];
          let tried = 0;
          for (const change of lies) {
            await lie(page, 'board', (body) => {
              const changed = change(body);
              if (changed !== body) tried += 1;
              return changed;
            });
            await open(page, '#board');
            await page.reload();
            await page.waitForSelector('.verdict[data-tone=bad]');
            expect(await page.locator('.task').count()).toBe(0);
            await page.unrouteAll({ behavior: 'wait' });
          }
          expect(tried).toBeGreaterThanOrEqual(lies.length);
        },
      );

      inTab(
        proving('live.alarm', 'sees that the log became shorter, another one, or was rewritten'),
        async (page) => {
          const first = await (await fetch(`${url}head?at=0`)).text();
          const [preamble = ''] = first.split('\n');
          const server = await played().colibri.start({ clientName: 'gardener' });
          await server.call('server_ping', {});
          await server.closeInput();
          const { origin } = JSON.parse(preamble);

          await open(page);
          await lie(page, 'head', () => first);
          await page.waitForSelector('.verdict[data-tone=bad]');
          const shorter = await banner(page);
          await page.unrouteAll({ behavior: 'wait' });
          await page.waitForResponse(`${url}head?*`);
          const stays = await banner(page);
          await page.reload();
          await page.waitForSelector('body[data-ready=true]');
          await lie(page, 'head', (body) => body.replace(origin, `colibri/${'0'.repeat(32)}`));
          await page.waitForSelector('.verdict[data-tone=bad]');
          const other = await banner(page);
          await page.unrouteAll({ behavior: 'wait' });
          await page.reload();
          await page.waitForSelector('body[data-ready=true]');
          for (const question of ['head', 'summary', 'choices'])
            await lie(page, question, (body) =>
              body.replace(/"consistency":\["[0-9a-f]{64}/, `"consistency":["${'0'.repeat(64)}`),
            );
          const again = await played().colibri.start({ clientName: 'gardener' });
          await again.call('server_ping', {});
          await again.closeInput();
          await page.waitForSelector('.verdict[data-tone=bad]');
          const rewritten = await banner(page);

          expect(shorter).toMatch(/rows were removed while this page was open/);
          expect(stays).toMatch(/rows were removed while this page was open/);
          expect(other).toMatch(/head that its key has not signed|another log/);
          expect(rewritten).toMatch(/it was rewritten while this page was open/);
        },
      );
    });

    test(
      proving(
        ['live.alarm', 'live.word'],
        'a database that was changed is found by the browser and by the server',
      ),
      async () => {
        const colibri = new Playground();
        const server: ServerProcess = await colibri.start({ clientName: 'builder' });
        await server.call('task_create', { title: 'Foundations', project: 'house' });
        await server.call('task_create', { title: 'Roof', project: 'house' });
        await server.closeInput();
        const db = openDatabase(colibri.dbPath);
        db.exec("UPDATE tasks SET priority = 'critical' WHERE id = 2");
        db.close();
        const live = await startLive(colibri);
        const { page } = await watchPage(context);
        await page.goto(`${live.url}#board`);
        await page.waitForSelector('.verdict[data-tone=bad]');
        const text = await banner(page);
        const cards = await page.locator('.task').count();
        await page.waitForFunction(() =>
          /1 finding/.test(document.querySelector('#panel-checks')?.textContent ?? ''),
        );
        await page.close();
        await live.served.ended('SIGTERM');
        await colibri.dispose();

        expect(text).toMatch(/T-0002/);
        expect(cards).toBe(0);
      },
    );

    test(proving(
      ['live.closed', 'live.bounded'],
      'a database of strangers shows nothing as proved, acts nowhere and leaves the server up',
    ), async () => {
      const { colibri } = played();
      const texts = (row: Readonly<Record<string, unknown>>) =>
        Object.keys(row).filter((name) => typeof row[name] === 'string');
      const edits: Readonly<Record<string, Edit>> = {
        everything: (_, row) => Object.fromEntries(texts(row).map((name) => [name, HOSTILE])),
        state: (table, row) =>
          table === 'tasks'
            ? { status: HOSTILE, workflow: HOSTILE, project: HOSTILE, position: -1, priority: String(row.id) }
            : {},
        huge: (table, { text }) =>
          table === 'texts' && text === 'Roof' ? { text: 'x'.repeat(8_000_000) } : {},
      };
      const shown: Record<string, unknown> = {};
      for (const [name, edit] of Object.entries(edits)) {
        const dbPath = colibri.path('strangers', `${name}.db`);
        forgeDatabase(colibri.dbPath, dbPath, edit);
        const live = await startLive(colibri, { COLIBRI_DB_PATH: dbPath });
        const { page, complaints } = await watchPage(context);
        await page.goto(`${live.url}#board`);
        await page.waitForSelector('body[data-ready=true]');
        for (const tab of TABS) await show(page, tab);
        const bad = complaints.filter((line) => !line.startsWith(`request: ${live.url}`));
        const tone = await page.getAttribute('.verdict', 'data-tone');
        shown[name] = [
          bad,
          await page.locator('.task, .list-row').count(),
          tone === 'good',
          await page.title(),
        ];
        await page.close();
        expect((await live.served.ended('SIGTERM')).code).toBe(0);
      }

      expect(shown).toEqual({
        everything: [[], 0, false, 'Colibri'],
        state: [[], expect.any(Number), false, 'Colibri'],
        huge: [[], expect.any(Number), false, 'Colibri'],
      });
    }, 180_000);

    inTab(proving('live.ends', 'says so when its server has ended'), async (page) => {
      await open(page);
      served.closeInput();
      const ended = await served.ended();
      await page.waitForSelector('.verdict-title:has-text("The server does not answer")');

      expect(ended.code).toBe(0);
      expect(served.stderr).toBe('');
      await page.route('**', (route) => route.abort());
    });
  });
}

/** The live page of a large log: never more than a part of it is sent, and who does not read what is sent keeps nothing. */
export function largeLiveCase(context: BrowserContext, large: () => Playground, rows: string): void {
  test(proving(
    ['live.large', 'live.bounded'],
    'are served in parts, to readers and to who does not read',
  ), async () => {
    const { url, served } = await startLive(large());
    const { page, complaints } = await watchPage(context);
    const sizes: number[] = [];
    page.on('response', async (response) => {
      sizes.push((await response.body().catch(() => Buffer.alloc(0))).length);
    });
    await page.goto(url);
    // Counted in the background, and shown as far as it is, although no row arrives meanwhile.
    await page.waitForSelector(`#panel-summary :text("through row ${rows} of ${rows}")`);
    await page.goto(`${url}#board`);
    await page.waitForSelector('body[data-ready=true]');
    await settled(page);
    const cards = await page.locator('.task').count();
    await page.locator('.column .more').first().click();
    await settled(page);
    const more = await page.locator('.task').count();
    await page.click('#tab-trail');
    await settled(page);
    const calls = await page.locator('.list-row').count();
    await page.locator('.trail .more').click();
    await settled(page);
    const further = await page.locator('.list-row').count();
    await page.fill('#filter-words', 'T-0001');
    await settled(page);
    const newest = await shownText(page, '.list-row');
    await page.fill('#filter-words', 'nothing of the kind');
    await settled(page);
    const none = await shownText(page, '.trail > .note');
    await page.close();
    const silent = await readNothing(url);
    const bytes = residentBytes(served.pid);
    for (const socket of silent) socket.destroy();
    const ended = await served.ended('SIGTERM');

    expect(complaints.filter((line) => !line.startsWith(`request: ${url}`))).toEqual([]);
    expect([cards, calls]).toEqual([expect.any(Number), CALLS_PAGE]);
    expect(more).toBe(cards + CARDS_PAGE);
    expect(further).toBe(2 * CALLS_PAGE);
    expect(newest).toContain('T-0001');
    expect(none).toMatch(/^No call matches\. There may be more\.|^No call matches\. That is all\./);
    expect(Math.max(...sizes)).toBeLessThan(3_000_000);
    expect(bytes).toBeLessThan(500_000_000);
    expect(ended).toEqual({ code: 0, signal: null });
  }, 180_000);
}

/** Connections that ask for a lot and read none of it. */
async function readNothing(url: string): Promise<Socket[]> {
  const { host, port, pathname } = new URL(url);
  const request = `GET ${pathname}trail?newestFirst=true HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  const sockets = Array.from({ length: 60 }, () =>
    connect(Number(port), '127.0.0.1').on('error', () => undefined),
  );
  for (let round = 0; round < 15; round += 1) {
    for (const socket of sockets) if (!socket.destroyed) socket.pause().write(request);
    await sleep(100);
  }
  return sockets;
}

/** Memory of a process, as Linux tells it; 0 elsewhere. */
function residentBytes(pid: number): number {
  const path = `/proc/${pid}/status`;
  const status = existsSync(path) ? readFileSync(path, 'utf8') : '';
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024;
}
