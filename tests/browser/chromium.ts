/// <reference lib="dom" />
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type BrowserContext, chromium, type Page } from 'playwright-core';

/** A browser nobody else uses, or why there is none. */
export type Browser =
  | { readonly context: BrowserContext; close(): Promise<void> }
  | { readonly reason: string };

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const USUAL_PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/opt/google/chrome/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
];

/** Starts a Chromium with a profile of its own. */
export async function startBrowser(): Promise<Browser> {
  const places = process.env.COLIBRI_CHROMIUM === undefined ? USUAL_PLACES : [process.env.COLIBRI_CHROMIUM];
  const executablePath = places.find((place) => existsSync(place));
  if (executablePath === undefined)
    return { reason: `no Chromium at ${places.join(', ')}; name one with COLIBRI_CHROMIUM` };
  const profile = mkdtempSync(join(tmpdir(), 'colibri-browser-'));
  const removeProfile = () => rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  try {
    const context = await chromium.launchPersistentContext(profile, {
      executablePath,
      args: FLAGS,
      headless: true,
      viewport: { width: 1280, height: 900 },
    });
    // A test has a limit of its own; a busy machine takes its time with any one step.
    context.setDefaultTimeout(120_000);
    return {
      context,
      async close() {
        await context.close();
        removeProfile();
      },
    };
  } catch (error) {
    removeProfile();
    const [line] = String(error).split('\n');
    return { reason: `${executablePath} does not start: ${line}` };
  }
}

/** A page with everything it said and asked for that it should not have. */
export interface WatchedPage {
  readonly page: Page;
  readonly complaints: string[];
}

export async function openPage(context: BrowserContext, path: string): Promise<WatchedPage> {
  const watched = await watchPage(context);
  await watched.page.goto(pathToFileURL(path).href);
  return watched;
}

export async function watchPage(context: BrowserContext): Promise<WatchedPage> {
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!/^(file|blob|data):/.test(request.url())) complaints.push(`request: ${request.url()}`);
  });
  return { page, complaints };
}

/** Waits until the page has said what it thinks of a bundle. */
export async function verdictOf(page: Page) {
  await page.waitForSelector('body[data-ready=true]');
  return {
    tone: await page.getAttribute('.verdict', 'data-tone'),
    title: (await page.textContent('.verdict-title')) ?? '',
    text: await shownText(page, '.verdict'),
    wrong: await page.$$eval('[data-state=wrong]', (all) => all.map((one) => one.getAttribute('data-check'))),
    unchecked: await page.$$eval('[data-state=unchecked]', (all) =>
      all.map((one) => one.getAttribute('data-check')),
    ),
    /** Kind, record and message of each, as far as the page lists them. */
    findings: await page.evaluate(() => {
      const more = document.querySelector<HTMLButtonElement>('.findings + .more');
      while (more?.hidden === false) more.click();
      return [...document.querySelectorAll('.findings li')].map((one) =>
        [...one.children].map((part) => part.textContent ?? ''),
      );
    }),
    ranges: rangesIn(await shownText(page, '.verdict')),
  };
}

/** The numbers of the bars: intact, replayed, checkpointed, anchored; null for one that is not shown. */
function rangesIn(text: string): (number | null)[] {
  return ['Intact', 'Replayed', 'Checkpointed', 'Anchored'].map((name) => {
    const digits = new RegExp(`${name} through\\s+([\\d,]+) of`).exec(text)?.[1];
    return digits === undefined ? null : Number(digits.replaceAll(',', ''));
  });
}

/** The names of the bars that are painted in the colour of something good, and of those in grey; empty ones have no colour. */
export async function barColours(page: Page): Promise<{ good: string[]; grey: string[] }> {
  const named: Record<'good' | 'grey', string[]> = { good: [], grey: [] };
  await settled(page);
  // One picture of all: a live page may draw the bars anew at any moment, in the same places.
  const bars = await page.evaluate(() =>
    [...document.querySelectorAll('.range')].map((bar) => {
      const meter = bar.querySelector('meter');
      const { x = 0, y = 0, height = 0 } = meter?.getBoundingClientRect() ?? {};
      const at = [x + scrollX + 8, y + scrollY + height / 2] as const;
      return { name: bar.querySelector('span')?.innerText ?? '', isEmpty: meter?.value === 0, at };
    }),
  );
  const picture = await page.screenshot({ fullPage: true, scale: 'css' });
  const colours = await page.evaluate(
    async ({ base64, places }) => {
      const bytes = Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
      const image = await createImageBitmap(new Blob([bytes]));
      const drawing = new OffscreenCanvas(image.width, image.height).getContext('2d', {
        willReadFrequently: true,
      });
      drawing?.drawImage(image, 0, 0);
      return places.map(([x, y]) => [...(drawing?.getImageData(x, y, 1, 1).data ?? [])]);
    },
    { base64: picture.toString('base64'), places: bars.map(({ at }) => at) },
  );
  for (const [i, { name, isEmpty }] of bars.entries()) {
    const [red = 0, green = 0, blue = 0] = colours[i] ?? [];
    const isGood = green > 1.5 * Math.max(red, blue);
    const isGrey = Math.max(red, green, blue) - Math.min(red, green, blue) < 24;
    if (!isEmpty && (isGood || isGrey)) named[isGood ? 'good' : 'grey'].push(name);
  }
  return named;
}

/** Waits until the page has drawn what was asked of it last: by a click, a key, typed words or its address. */
export async function settled(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const turn = () => new Promise((resolve) => setTimeout(resolve));
    do {
      // The events of a new address and of a closed box come a turn after what caused them.
      await turn();
      await turn();
    } while (document.querySelector('main [aria-busy], main [data-waits]') !== null);
  });
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What axe finds on the page as it is shown, each with the elements it is about; all of its rules unless some are named. */
export async function axeFindings(
  page: Page,
  where: string,
  rules: readonly string[] = [],
): Promise<string[]> {
  // By the debugger, which no policy of the page holds back.
  const hasAxe = await page.evaluate(() => 'axe' in window);
  if (!hasAxe) await page.evaluate(`{ const module = undefined, define = undefined; ${AXE} }; undefined`);
  const only = rules.length === 0 ? {} : { runOnly: rules };
  const found: readonly { id: string; nodes: readonly { html: string }[] }[] = await page.evaluate(
    `axe.run(document, ${JSON.stringify({ resultTypes: ['violations'], ...only })}).then(({ violations }) => violations)`,
  );
  return found.map(
    ({ id, nodes }) => `${where}: ${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
  );
}

export const TABS = ['summary', 'board', 'trail', 'sessions', 'checks'] as const;

/** Everything that axe finds in every view and in the dialogs of a task, a thought and a call; the colours in the dark as well. */
export async function axeInAllViews(page: Page, colorScheme: 'light' | 'dark'): Promise<string[]> {
  const found: string[] = [];
  await page.emulateMedia({ colorScheme });
  const look = async (what: string) => {
    const rules = colorScheme === 'dark' ? ['color-contrast'] : [];
    found.push(...(await axeFindings(page, `${colorScheme} ${what}`, rules)));
  };
  for (const tab of TABS) {
    await page.click(`#tab-${tab}`);
    await settled(page);
    await look(tab);
  }
  for (const id of ['T-0001', 'Θ-0001', 'row-1', 'T-9999']) {
    await page.evaluate((hash) => {
      location.hash = hash;
    }, id);
    await page.waitForSelector('dialog[open]');
    await settled(page);
    await look(id);
    await page.keyboard.press('Escape');
    // The page takes the id out of its address when the box is closed, which is a moment later.
    await page.waitForFunction(() => location.hash === '');
  }
  return found;
}

/** What is left of each view, and of an open record, on paper. */
export async function onPaper(page: Page) {
  // A person who looks at it in the dark has white paper all the same.
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const look = () =>
    page.evaluate(() => {
      const seen = (selector: string) =>
        [...document.querySelectorAll<HTMLElement>(selector)].filter((one) => one.checkVisibility());
      const { backgroundColor } = getComputedStyle(document.body);
      return {
        background: backgroundColor,
        controls: seen('button:not(.task, .list-row, .line, .more), select, input, textarea, [role=tab]')
          .length,
        hidden: seen('.more').map((one) => one.textContent),
        page: seen('main').length,
        wide: document.documentElement.scrollWidth - innerWidth,
        cut: seen('pre, .scroll, .detail-body').filter((one) => one.scrollHeight > one.clientHeight + 1)
          .length,
      };
    });
  await page.setViewportSize({ width: 794, height: 1_123 });
  const views: Record<string, Awaited<ReturnType<typeof look>>> = {};
  for (const tab of TABS) {
    // Nobody can press what is not there.
    await page.locator(`#tab-${tab}`).evaluate((one) => (one as HTMLElement).click());
    await settled(page);
    views[tab] = await look();
  }
  await page.evaluate(() => {
    location.hash = 'T-0001';
  });
  await page.waitForSelector('dialog[open]');
  views.task = await look();
  const { position } = await page.$eval('dialog', (one) => ({ position: getComputedStyle(one).position }));
  return { views, position, pdf: await page.pdf({ format: 'A4' }) };
}

/** Hands the page a folder, a zip or a certificate, as a person with a file chooser would. */
export async function choose(page: Page, path: string) {
  await page.evaluate(() => {
    document.body.dataset.ready = 'false';
  });
  await page.setInputFiles(/\.(?:zip|json)$/.test(path) ? '#choose-file' : '#choose-folder', path);
  return await verdictOf(page);
}

/** The text of the first such element once the page has drawn it: what is hidden does not count, and lines stay lines. */
export async function shownText(page: Page, selector: string): Promise<string> {
  await settled(page);
  const element = page.locator(selector).first();
  await element.waitFor();
  return await element.innerText();
}
