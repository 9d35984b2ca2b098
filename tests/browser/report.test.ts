/// <reference lib="dom" />
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fillDatabase } from '../../bench/fill-database.ts';
import { sha256Hex } from '../../src/integrity/digest.ts';
import type { Finding } from '../../src/verify/finding.ts';
import { proving } from '../contract/proves.ts';
import { runColibri } from '../driver/command-line.ts';
import { Playground } from '../driver/playground.ts';
import { tier } from '../driver/tier.ts';
import {
  axeFindings,
  axeInAllViews,
  type Browser,
  barColours,
  choose,
  onPaper,
  openPage,
  settled,
  shownText,
  startBrowser,
  TABS,
  verdictOf,
  type WatchedPage,
  watchPage,
} from './chromium.ts';
import { DAMAGES, DamagedBundle } from './damage.ts';
import { largeLiveCase, liveCases } from './live-cases.ts';
import {
  COMMIT,
  HOSTILE_THOUGHT,
  HOSTILE_TITLE,
  MANY,
  mustRun,
  type PlayedLog,
  playLog,
} from './played-log.ts';

/** Of the large log. The page is promised to stay usable with the larger number. */
const ROWS = tier(10_000, 50_000);
const TASKS = ROWS * 0.18;
const THOUGHTS = ROWS * 0.06;

const EMPTY_PAGE = fileURLToPath(new URL('../../dist/verify.html', import.meta.url));

let log: PlayedLog;
const browser: Browser = await startBrowser();

beforeAll(async () => {
  log = await playLog();
}, 240_000);

afterAll(async () => {
  if ('context' in browser) await browser.close();
  expect(await log.colibri.dispose()).toEqual([]);
});

interface Shown {
  readonly page: Page;
}

/** A test in a page of its own. Whatever else it looks at, the page must have said nothing bad and asked nobody. */
function inBrowser(sentence: string, path: () => string, act: (shown: Shown) => Promise<void>): void {
  if ('reason' in browser) {
    test.skip(`${sentence} — skipped: ${browser.reason}`);
    return;
  }
  test(sentence, { timeout: 180_000 }, async () => {
    const { page, complaints } = await freshTab(browser.context);
    await page.goto(pathToFileURL(path()).href);
    await act({ page });
    expect(complaints).toEqual([]);
  });
}

let tab: WatchedPage | undefined;

/** The tab of all tests, as if it were new: a tab of its own for each takes a process for each. */
async function freshTab(context: BrowserContext): Promise<WatchedPage> {
  tab ??= await watchPage(context);
  await tab.page.goto('about:blank');
  await tab.page.setViewportSize({ width: 1280, height: 900 });
  await tab.page.emulateMedia({ media: null, colorScheme: null });
  tab.complaints.length = 0;
  return tab;
}

const report = () => log.report;
const show = async (page: Page, tab: string) => {
  await page.click(`#tab-${tab}`);
  await settled(page);
};
const fill = async (page: Page, words: string) => {
  await page.fill('#filter-words', words);
  await settled(page);
};

describe('the report', () => {
  inBrowser(
    proving(['page.verifies', 'verdict.ranges'], 'checks itself and says how far it is intact and signed'),
    report,
    async ({ page }) => {
      const verdict = await verdictOf(page);

      expect(verdict.tone).toBe('good');
      expect(verdict.title).toMatch(/^Intact through row \d+$/);
      expect(verdict.text).toMatch(/Replayed through\s+(\d+) of \1/);
      expect(verdict.text).toMatch(/Checkpointed through\s+(\d+) of \1\s+by [0-9a-f]{8}/);
      expect(verdict.wrong).toEqual([]);
      expect(verdict.unchecked).toEqual([]);
    },
  );

  inBrowser(
    proving('page.summary', 'tells a manager what was done and by whom'),
    report,
    async ({ page }) => {
      await verdictOf(page);

      const text = await shownText(page, '#panel-summary');

      expect(text).toMatch(/1\s+task finished\s+of 5; 3 open, 1 cancelled/);
      expect(text).toMatch(/\d+\s+calls in the log\s+\d+ refused or failed/);
      expect(text).toContain(`${COMMIT.slice(0, 12)} on footing`);
      expect(text).toContain('Foundations');
      // Created, started, finished.
      expect(text).toMatch(/builder\s+5\s+3\s+1\s/);
      expect(text).toContain('painter');
      expect(text).toContain('2\nsessions sealed');
    },
  );

  inBrowser(
    proving(
      ['page.honest', 'page.summary', 'bundle.anchors'],
      'names its anchors with how to look them up, and never says that it did',
    ),
    report,
    async ({ page }) => {
      const verdict = await verdictOf(page);
      const { good, grey } = await barColours(page);
      const summary = await shownText(page, '#panel-summary');
      await show(page, 'checks');
      const table = await shownText(page, '[aria-label=Anchors]');
      const commit = log.git('rev-parse', 'refs/colibri/checkpoints').trim();

      expect(verdict.text).toMatch(/Named by an anchor, not checked here\s+(\d+) of \1/);
      expect(verdict.text).toMatch(/did not check them; Checks says how to/);
      // What the page did not check does not look like what it did.
      expect(grey).toEqual(['Named by an anchor, not checked here']);
      expect(good).toEqual(['Intact through', 'Replayed through', 'Checkpointed through']);
      expect(table).toContain('Not checked here');
      expect(table).toContain(
        `refs/colibri/checkpoints:refs/remotes/origin/colibri/checkpoints && git cat-file commit ${commit}`,
      );
      expect(table).toMatch(/git commit\s+prepared\s+20\d\d-\d\d-\d\d/);
      expect(table).toMatch(/time stamp\s+prepared\s+20\d\d-\d\d-\d\d/);
      expect(verdict.text).toMatch(/Anchored through\s+0 of/);
      expect(summary).not.toMatch(/anchored|verified/i);
    },
  );

  inBrowser(
    proving('page.board', 'shows the board, and finds a task by its label'),
    report,
    async ({ page }) => {
      await verdictOf(page);
      await show(page, 'board');

      expect(await shownText(page, '[data-status=done]')).toContain('Foundations');
      await fill(page, 'wood');

      expect(await page.locator('.task').allInnerTexts()).toEqual([expect.stringContaining('Roof')]);
    },
  );

  inBrowser(
    proving(
      ['page.board', 'tasks.abandoned'],
      'says who holds a task, and which were abandoned when it was made',
    ),
    report,
    async ({ page }) => {
      await verdictOf(page);
      await show(page, 'board');

      expect(await shownText(page, '[data-status=in_progress]')).toMatch(
        /Roof[\s\S]*held by builder\s+abandoned/,
      );
      expect(await shownText(page, '[data-status=gather]')).toContain('abandoned');
      // What a card says besides: project, labels, who, and since when.
      expect(await shownText(page, '[data-status=in_progress] .task')).toMatch(
        /^T-0002[\s\S]*house\s+#wood\s+carpenter\s+since \d{4}-\d\d-\d\d/,
      );
      expect(await shownText(page, '.board-view > .note')).toContain('gone or silent when this was checked');
      await page.click('[data-status=in_progress] .task');
      expect(await shownText(page, 'dialog')).toMatch(
        /held by\s+builder\s+held since\s+\S+ \S+\s+last seen\s+\S+ \S+/,
      );
    },
  );

  inBrowser(proving('page.trail', 'filters the trail by kind, actor and words'), report, async ({ page }) => {
    await verdictOf(page);
    await show(page, 'trail');
    const texts = () => page.locator('.list-row .entry').allInnerTexts();

    await page.click('label[data-kind=thought]');
    await settled(page);
    expect(await shownText(page, '.trail > .note')).toMatch(new RegExp(`^${MANY + 5} of \\d+ calls$`));
    await page.selectOption('#filter-agent', 'painter');
    await settled(page);
    expect(await texts()).toEqual([expect.stringContaining('Paint needs a dry week.')]);
    await page.selectOption('#filter-agent', '');
    await page.click('label[data-kind=thought]');
    await page.click('label[data-kind=failure]');
    await settled(page);
    expect((await texts()).join()).toContain('ERR_TASK_NOT_FOUND');
    await page.click('label[data-kind=failure]');
    await fill(page, 'slate tiles');
    expect(await texts()).toEqual([expect.stringContaining('Slate, not tiles.')]);
  });

  inBrowser(
    proving(['page.trail', 'page.board'], 'filters board and trail by project and by day, and finds ids'),
    report,
    async ({ page }) => {
      await verdictOf(page);
      await show(page, 'board');
      const cards = async () => (await page.locator('.task .id').allInnerTexts()).sort();
      const calls = () => page.locator('.list-row .entry').allInnerTexts();
      const today = new Date().toISOString().slice(0, 10);
      const set = async (control: string, value: string) => {
        await page.locator(control).evaluate((element, text) => {
          (element as HTMLInputElement).value = text;
          element.dispatchEvent(new Event('change'));
        }, value);
        await settled(page);
      };

      await set('#filter-project', 'house');
      expect(await cards()).toEqual(['T-0001', 'T-0002', 'T-0005']);
      await set('#filter-until', '2001-01-01');
      expect(await cards()).toEqual([]);
      await set('#filter-until', '');
      await set('#filter-since', today);
      expect(await cards()).toEqual(['T-0001', 'T-0002', 'T-0005']);
      await show(page, 'trail');
      expect((await calls()).join('\n')).not.toMatch(/T-0003|T-0004/);
      expect((await calls()).join('\n')).toContain('Slate, not tiles.');
      await page.click('text=Clear');
      await fill(page, 'Θ-0003');
      expect(await calls()).toEqual([expect.stringContaining('Slate, not tiles.')]);
      await fill(page, 't-0005');
      expect((await calls()).every((line) => line.includes('T-0005'))).toBe(true);
      expect((await calls()).length).toBe(2);
    },
  );

  inBrowser(
    proving(['page.board', 'page.trail'], 'opens a task, a thought and a session by their links'),
    report,
    async ({ page }) => {
      await verdictOf(page);
      const follow = async (hash: string) => {
        await page.evaluate((to) => {
          location.hash = to;
        }, hash);
        await settled(page);
        return await shownText(page, hash.startsWith('A') ? '#panel-sessions' : 'dialog');
      };

      const chimney = await follow('T-0005');
      const foundations = await follow('T-0001');
      const thought = await follow('Θ-0001');
      await page.keyboard.press('Escape');
      await settled(page);
      const closed = await page.evaluate(() => location.hash);
      const session = await follow('A-0003');

      expect(chimney).toMatch(/depends on T-0002\s+Roof/);
      expect(chimney).toContain('3 h');
      expect(foundations).toMatch(/refused\s+ERR_INVALID_TRANSITION/);
      expect(foundations).toContain('Dig to two metres.');
      expect(thought).toMatch(/Θ-0001/);
      expect(thought).toContain('footing (named by the agent)');
      expect(thought).toContain(COMMIT);
      expect(thought).toContain('soil test, water test');
      expect(closed).toBe('');
      expect(session).toContain(`Leaves 1 to 16 of ${MANY}`);
      expect(await follow('T-9999')).toContain('T-9999 is not here.');
    },
  );

  inBrowser(
    proving('page.verifies', 'shows a call with its rows and its way to the signed root'),
    report,
    async ({ page }) => {
      await verdictOf(page);
      await show(page, 'trail');
      await page.locator('.list-row').first().click();
      await page.waitForSelector('.detail .seal[data-tone=good]');

      await page.locator('.detail summary').first().click();

      const text = await shownText(page, '.detail details pre');
      const hash = await shownText(page, '.detail details code.break');
      expect(text).toContain('"tool":"task_create"');
      expect(sha256Hex(text)).toBe(hash);
    },
  );

  inBrowser(proving('page.tree', 'lights the way of a leaf to the root'), report, async ({ page }) => {
    await verdictOf(page);
    await show(page, 'sessions');
    await page.selectOption('#session-choice', 'A-0001');
    await settled(page);
    const leaves = page.locator('.node.leaf[role=button]');
    const count = await leaves.count();
    const depth = Math.ceil(Math.log2(count));

    await leaves.nth(2).click();

    expect(count).toBeGreaterThan(4);
    expect(await page.locator('.node.path').count()).toBe(depth + 1);
    expect(await page.locator('.node.sibling').count()).toBe(depth);
    expect(await page.locator('.node.root.path').count()).toBe(1);
    expect(await leaves.nth(2).getAttribute('aria-pressed')).toBe('true');
    expect(await shownText(page, '.proof .seal')).toContain('lead to the root in the session’s seal');
  });

  inBrowser(
    proving('page.tree', 'draws a long session in parts, and folds the rest of its tree'),
    report,
    async ({ page }) => {
      await verdictOf(page);
      await show(page, 'sessions');
      await page.selectOption('#session-choice', 'A-0003');
      await settled(page);
      const first = await shownText(page, '.pager span');
      const folded = await page.locator('.node.folded').count();

      await page.click('.pager button:last-child');
      await page.locator('.node.leaf[role=button]').last().click();

      expect(first).toBe(`Leaves 1 to 16 of ${MANY}`);
      expect(folded).toBe(1);
      expect(await page.locator('.node.leaf[role=button]').count()).toBe(MANY - 16);
      expect(await page.locator('.node.folded.sibling').count()).toBe(1);
      expect(await shownText(page, '.proof .seal')).toContain('lead to the root in the session’s seal');
    },
  );

  inBrowser(
    proving('verdict.against', 'holds a key and a checkpoint against those somebody kept'),
    report,
    async ({ page }) => {
      await verdictOf(page);
      await show(page, 'checks');
      const compare = async (text: string) => {
        const before = await page.textContent('.compare .seal');
        await page.fill('#compare', text);
        await page.click('.compare button');
        await page.waitForFunction(
          (old) => document.querySelector('.compare .seal')?.textContent !== old,
          before,
        );
        return await shownText(page, '.compare .seal');
      };
      const note = readFileSync(`${log.folder}/checkpoint`, 'utf8');

      expect(await compare(readFileSync(`${log.folder}/keys`, 'utf8'))).toMatch(
        /has signed the first \d+ rows/,
      );
      expect(await compare('colibri/0123456789abcdef+01234567+AAAA')).toContain('has signed nothing here');
      expect(await compare(note)).toMatch(/agrees with the first \d+ audit rows/);
      expect(await compare(note.replace(/\n[1-9]\d*\n/, '\n7\n'))).toContain('not a valid checkpoint');
    },
  );

  inBrowser('gives back the very bundle it was made of', report, async ({ page }) => {
    await verdictOf(page);

    const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Save the bundle')]);

    expect(readFileSync(await download.path()).equals(readFileSync(log.zip))).toBe(true);
  });

  inBrowser(
    proving('page.hostile', 'keeps hostile text inert and inside its box'),
    report,
    async ({ page }) => {
      await verdictOf(page);
      await show(page, 'board');
      await page.locator('.task', { hasText: 'T-0003' }).click();
      await page.waitForSelector('dialog[open]');
      const title = await shownText(page, '.detail .big');
      await page.click('.detail .close');
      await show(page, 'trail');
      await fill(page, 'reversed');
      await page.locator('.list-row').first().click();
      await page.waitForSelector('dialog[open]');
      const thought = await shownText(page, '.detail pre');

      expect(title).toContain('<script>document.title="owned"</script><img src=x onerror=alert(1)>');
      expect(title).toContain('U+202E');
      expect(title).not.toContain('\u202E');
      expect(thought).toContain(HOSTILE_THOUGHT.slice(-4_800));
      expect(await page.title()).toBe('Colibri report');
      expect(
        await page
          .locator(
            'main img, main script, main iframe, main a, dialog img, dialog script, dialog a:not([href^="#"])',
          )
          .count(),
      ).toBe(0);
      expect(HOSTILE_TITLE).toContain('\u202E');
    },
  );

  inBrowser(proving('page.usable', 'is used with the keyboard alone'), report, async ({ page }) => {
    await verdictOf(page);
    await page.focus('#tab-summary');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await settled(page);
    const tab = await page.evaluate(() => document.activeElement?.id);
    await page.locator('.list-row').first().focus();
    for (let i = 0; i < 3; i += 1) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForSelector('dialog[open]');
    const opened = await shownText(page, '#detail-title');
    await page.keyboard.press('Escape');
    await settled(page);
    const back = await page.evaluate(() => document.activeElement?.className);
    await show(page, 'sessions');
    await page.locator('.node.leaf[role=button]').first().focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');

    expect(tab).toBe('tab-trail');
    expect(opened).toBe('Call #7');
    expect(back).toBe('list-row');
    expect(await page.locator('.node.leaf[aria-pressed=true]').getAttribute('aria-label')).toContain(
      'Leaf 2',
    );
  });

  inBrowser(
    proving('page.usable', 'has nothing that axe finds, in the light and in the dark'),
    report,
    async ({ page }) => {
      await verdictOf(page);
      // The live page shows the same views in the dark.
      const found = await axeInAllViews(page, 'light');
      const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      await page.emulateMedia({ colorScheme: 'dark' });
      const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      await choose(page, log.certificate);
      found.push(...(await axeFindings(page, 'certificate')));

      expect(dark).not.toBe(light);
      expect(found).toEqual([]);
    },
  );

  inBrowser(
    proving('page.usable', 'is printed without its controls, on white, and says what it leaves out'),
    report,
    async ({ page }) => {
      await verdictOf(page);
      const { views, position, pdf } = await onPaper(page);

      for (const [name, seen] of Object.entries(views))
        expect(seen, name).toMatchObject({ controls: 0, wide: 0, cut: 0, page: name === 'task' ? 0 : 1 });
      expect(new Set(Object.values(views).map(({ background }) => background))).toEqual(
        new Set(['rgb(255, 255, 255)']),
      );
      // What is fixed over the page would stand on every sheet.
      expect(position).toBe('absolute');
      expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');
    },
  );

  inBrowser(proving('page.usable', 'fits a phone without scrolling sideways'), report, async ({ page }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await verdictOf(page);
    const wider: string[] = [];

    for (const tab of TABS) {
      await show(page, tab);
      const excess = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (excess > 0) wider.push(`${tab} by ${excess}`);
    }

    expect(wider).toEqual([]);
  });
});

describe('the page in a bundle', () => {
  inBrowser(
    proving('page.honest', 'claims nothing before it is given something'),
    () => EMPTY_PAGE,
    async ({ page }) => {
      const text = await shownText(page, 'body');

      expect(text).toContain('Nothing is open');
      expect(text).not.toMatch(/verified|intact/i);
    },
  );

  inBrowser(
    proving('page.drop', 'checks a zip and a folder'),
    () => EMPTY_PAGE,
    async ({ page }) => {
      for (const path of [log.zip, log.folder]) {
        const verdict = await choose(page, path);

        expect(verdict).toMatchObject({ tone: 'good', wrong: [], unchecked: [] });
        expect((await barColours(page)).grey).toEqual(['Named by an anchor, not checked here']);
      }
    },
  );

  inBrowser(
    proving('page.drop', 'checks what is dropped on it'),
    () => EMPTY_PAGE,
    async ({ page }) => {
      const base64 = readFileSync(log.zip).toString('base64');
      const dataTransfer = await page.evaluateHandle((text) => {
        const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
        const transfer = new DataTransfer();
        transfer.items.add(new File([bytes], 'dropped.zip'));
        return transfer;
      }, base64);

      await page.dispatchEvent('body', 'drop', { dataTransfer });

      expect(await verdictOf(page)).toMatchObject({ tone: 'good' });
    },
  );

  inBrowser(
    proving(
      ['page.honest', 'page.verifies'],
      'checks one session by its proofs and says what it could not check',
    ),
    () => EMPTY_PAGE,
    async ({ page }) => {
      const verdict = await choose(page, log.session);

      expect(verdict).toMatchObject({
        tone: 'good',
        title: 'Intact: A-0001',
        wrong: [],
        unchecked: ['chain', 'replay'],
      });
      expect(verdict.text).not.toContain('Intact through');
    },
  );

  inBrowser(
    proving(
      ['page.drop', 'page.verifies', 'page.certificate'],
      'checks a certificate, and tells it in the order a person asks',
    ),
    () => EMPTY_PAGE,
    async ({ page }) => {
      const verdict = await choose(page, log.certificate);
      const certificate = await shownText(page, '#panel-certificate');
      await show(page, 'board');

      expect(verdict).toMatchObject({ tone: 'good', title: 'Intact: T-0001', wrong: [] });
      expect(await shownText(page, '.board-view')).toContain('Foundations');
      // What was done and by whom, the reasons in order, the gate, the seal, and what the proof rests on.
      const order = [
        'T-0001 Foundations',
        'moved',
        'Dig to two metres.',
        'Water at one metre.',
        'Finished by',
      ];
      const places = [
        ...order,
        'proof-grade, so it also needed a sealed session',
        'The seal',
        'signed by the key',
      ].map((part) => certificate.indexOf(part));
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      expect(places.every((place) => place >= 0)).toBe(true);
      expect(certificate).toMatch(/builder/);
      expect(certificate).toMatch(/Prepared: a (?:git commit|time stamp)|contains no anchor/);

      const forged = log.colibri.path('forged.json');
      writeFileSync(
        forged,
        readFileSync(log.certificate, 'utf8').replace('Dig to two metres.', 'Dig to one metre.'),
      );
      expect(await choose(page, forged)).toMatchObject({ tone: 'bad', wrong: ['texts'] });
      expect(await shownText(page, '.verdict')).not.toMatch(/through|anchor/);
      const tampered = await shownText(page, '#panel-certificate');
      expect(tampered).toMatch(/^This certificate is not valid: 1 finding\. Nothing in it is proved\./);
      expect(tampered).not.toMatch(/Dig to one metre|rests on|Finished by/);
    },
  );

  inBrowser(
    proving('verdict.ranges', 'gives the ranges of the command line, whatever it is given'),
    () => EMPTY_PAGE,
    async ({ page }) => {
      for (const path of [log.folder, log.zip, log.session, log.certificate]) {
        const { findings, ranges } = await choose(page, path);

        expect({ findings, ranges }, path).toEqual(await verifyAsStranger(path));
      }
    },
  );

  inBrowser(
    proving('page.damage', 'names the damage in every damaged bundle, as the command line does'),
    () => EMPTY_PAGE,
    async ({ page }) => {
      for (const damage of DAMAGES) {
        const bundle = new DamagedBundle(log.folder, log.colibri.path('damaged'));
        damage.do(bundle);

        const shown = await choose(page, bundle.folder);
        const told = await verifyAsStranger(bundle.folder);

        expect(shown.tone, damage.what).toBe('bad');
        expect(shown.title, damage.what).toMatch(
          /^(?:Not intact: [\d,]+ findings?|This could not be checked)$/,
        );
        expect(shown.wrong, damage.what).toContain(damage.check);
        expect(shown.text, damage.what).not.toMatch(/agree with|cover all/);
        expect(shown.findings, damage.what).toEqual(told.findings);
        expect(shown.ranges, damage.what).toEqual(told.ranges);
        if (damage.from !== undefined) expect(told.ranges[0], damage.what).toBeLessThan(damage.from);
      }
    },
  );

  inBrowser(
    proving(
      ['page.honest', 'verdict.key'],
      'cannot tell a log that was signed anew with another key, but holds it against the key one knows',
    ),
    () => EMPTY_PAGE,
    async ({ page }) => {
      const bundle = new DamagedBundle(log.folder, log.colibri.path('forged'));
      const knownKey = bundle.read('keys');
      bundle.makeAnew();

      const verdict = await choose(page, bundle.folder);
      await show(page, 'checks');
      await page.fill('#compare', knownKey);
      await page.click('.compare button');
      await page.waitForSelector('.compare .seal[data-tone]');

      expect(verdict).toMatchObject({ tone: 'good', wrong: [] });
      expect(verdict.text).toContain('The key came with it');
      expect(await shownText(page, '.compare .seal')).toContain('someone else signed this');
    },
  );

  inBrowser(
    proving('bundle.hostile', 'refuses what is no bundle, in a sentence'),
    () => EMPTY_PAGE,
    async ({ page }) => {
      const cut = log.colibri.path('cut.zip');
      writeFileSync(cut, readFileSync(log.zip).subarray(0, -5));
      const other = log.colibri.path('other.zip');
      writeFileSync(other, 'PK, but no zip');

      for (const path of [cut, other]) {
        const verdict = await choose(page, path);

        expect(verdict).toMatchObject({ tone: 'bad', title: 'This could not be checked' });
      }
    },
  );
});

describe('the policy of the page', () => {
  if ('reason' in browser) {
    test.skip(`lets nothing out even if something in it tried — skipped: ${browser.reason}`);
    return;
  }

  test(proving('page.offline', 'lets nothing out even if something in it tried'), async () => {
    const asked: string[] = [];
    const listener = createServer((request, response) => {
      asked.push(String(request.url));
      response.setHeader('Access-Control-Allow-Origin', '*').end('ok');
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const address = listener.address();
    const { page } = await openPage(browser.context, log.report);
    await verdictOf(page);

    const tried = await tryToGetOut(
      page,
      `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    );
    await page.close();
    listener.close();

    expect(tried).toEqual(['fetch refused', 'image refused', 'script refused', 'markup refused']);
    expect(asked).toEqual([]);
  });
});

describe('where the browser offers no cryptography', () => {
  if ('reason' in browser) {
    test.skip(`comes to the same verdict — skipped: ${browser.reason}`);
    return;
  }

  test(proving('page.verifies', 'comes to the same verdict'), async () => {
    const { page } = await watchPage(browser.context);
    // WebCrypto exists in secure contexts only, and plain http is none. Nothing leaves: the answer is given here.
    await page.route('http://colibri.test/**', (route) =>
      route.fulfill({ contentType: 'text/html', body: readFileSync(log.report, 'utf8') }),
    );
    await page.goto('http://colibri.test/report.html');

    const verdict = await verdictOf(page);
    await page.close();

    expect(verdict).toMatchObject({ tone: 'good', wrong: [], unchecked: [] });
    expect(verdict.text).toMatch(/Checkpointed through\s+(\d+) of \1/);
  });
});

if ('context' in browser) liveCases(browser.context, () => log);

describe(`${shown(ROWS)} audit rows`, () => {
  let large: Playground;

  beforeAll(async () => {
    if ('reason' in browser) return;
    large = new Playground();
    const server = await large.start();
    await server.call('server_ping', {});
    await server.closeInput();
    await fillDatabase(large.dbPath, {
      tasks: TASKS,
      rows: ROWS,
      thoughtsOnFirst: THOUGHTS,
      configDir: large.path('config', 'colibri'),
    });
    await mustRun(large, ['checkpoint']);
    await mustRun(large, ['report', '-o', large.path('large.html')]);
  }, 240_000);

  afterAll(async () => {
    await large?.dispose();
  });

  inBrowser(
    proving('page.large', 'are checked, listed and filtered without a wait that is felt'),
    () => large.path('large.html'),
    async ({ page }) => {
      const began = performance.now();
      const verdict = await verdictOf(page);
      const checkedMs = performance.now() - began;
      await show(page, 'trail');
      const drawn = await page.locator('.list-row').count();
      const filterMs = await timed(() => fill(page, `step ${THOUGHTS - 1}`));
      const found = await shownText(page, '.trail > .note');
      await fill(page, '');
      const moreMs = await timed(async () => {
        await page.locator('.trail .more').click();
        await settled(page);
      });
      const more = await page.locator('.list-row').count();
      const turnMs = await timed(async () => {
        await page.click('#trail-newest');
        await settled(page);
      });
      const last = await page.locator('.list-row').first().textContent();
      await show(page, 'board');
      const cards = await page.locator('.task').count();

      process.stderr.write(`${shown(ROWS)} rows checked in the browser in ${Math.round(checkedMs)} ms\n`);
      expect(verdict).toMatchObject({ tone: 'good', title: `Intact through row ${shown(ROWS)}` });
      expect(drawn).toBeLessThan(400);
      expect(more).toBeGreaterThan(drawn);
      expect(found).toMatch(new RegExp(`^[1-9]\\d* of ${shown(ROWS / 2)} calls$`));
      expect(last).toContain(`#${ROWS - 1}`);
      expect(cards).toBeLessThan(400);
      // Under the same load: none of them goes through the rows as checking them does.
      expect(Math.max(filterMs, moreMs, turnMs)).toBeLessThan(checkedMs);
    },
  );

  if ('context' in browser) largeLiveCase(browser.context, () => large, shown(ROWS));
});

describe('colibri report', () => {
  test('writes a file only its owner can read, and replaces nothing but a report', async () => {
    const [mine, theirs] = [log.colibri.path('mine.html'), log.colibri.path('theirs.html')];
    copyFileSync(log.report, mine);
    writeFileSync(theirs, '<title>My page</title>');

    const again = await runColibri(log.colibri, ['report', '-o', mine, '--json']);
    const refused = await runColibri(log.colibri, ['report', '-o', theirs]);

    expect(again.code).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({ path: mine, bytes: statSync(mine).size });
    expect(statSync(mine).mode & 0o777).toBe(0o600);
    expect(refused).toMatchObject({ code: 1 });
    expect(readFileSync(theirs, 'utf8')).toBe('<title>My page</title>');
  });

  test(
    proving(['page.one-file', 'page.offline'], 'the page asks for nothing and allows only what is in it'),
    () => {
      const page = readFileSync(EMPTY_PAGE, 'utf8');
      const policy = /Content-Security-Policy" content="([^"]+)"/.exec(page)?.[1] ?? '';
      const [, script = ''] = /<script>(.*?)<\/script>/s.exec(page) ?? [];
      const [, style = ''] = /<style>(.*?)<\/style>/s.exec(page) ?? [];
      const digest = (text: string) => `'sha256-${Buffer.from(sha256Hex(text), 'hex').toString('base64')}'`;

      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain(`script-src ${digest(script)};`);
      expect(policy).toContain(`style-src ${digest(style)};`);
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(page.replace(script, '')).not.toMatch(/<link|\ssrc=|\son\w+=|https?:/);
      expect(Buffer.byteLength(page)).toBeLessThan(210_000);
    },
  );
});

/** A number as the page writes it. */
function shown(number: number): string {
  return number.toLocaleString('en');
}

/** What the command line says to somebody who has neither the key nor the repository. */
async function verifyAsStranger(path: string) {
  const away = mkdtempSync(join(tmpdir(), 'colibri-stranger-'));
  try {
    const { code, stdout } = await runColibri(log.colibri, ['verify', path, '--json'], {
      cwd: away,
      env: { XDG_CONFIG_HOME: away, COLIBRI_DB_PATH: join(away, 'none.db') },
    });
    const { findings, ...said } = JSON.parse(stdout);
    expect(code).toBe(findings.length === 0 ? 0 : 1);
    return {
      findings: findings.map(({ kind, record, message }: Finding) => [kind, record, message]),
      ranges: [said.intact_through, said.replayed_through, said.checkpointed_through, said.anchored_through],
    };
  } finally {
    rmSync(away, { recursive: true });
  }
}

async function timed(act: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await act();
  return performance.now() - began;
}

/** What hostile text would do if it ever ran. */
async function tryToGetOut(page: Page, outside: string): Promise<string[]> {
  return await page.evaluate(async (target) => {
    const fetched = await fetch(`${target}/fetch`).then(
      () => 'fetch went out',
      () => 'fetch refused',
    );
    const image = await new Promise<string>((resolve) => {
      const element = new Image();
      element.onload = () => resolve('image went out');
      element.onerror = () => resolve('image refused');
      element.src = `${target}/image`;
    });
    const refusal = (what: string, act: () => void) => {
      try {
        act();
        return `${what} went in`;
      } catch {
        return `${what} refused`;
      }
    };
    const script = refusal('script', () => {
      document.createElement('script').src = `${target}/script`;
    });
    const markup = refusal('markup', () => {
      document.createElement('div').innerHTML = '<b>x</b>';
    });
    return [fetched, image, script, markup];
  }, outside);
}
