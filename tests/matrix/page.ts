import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import type { Browser } from '../browser/chromium.ts';
import { startBrowser, watchPage } from '../browser/chromium.ts';
import { type Found, judged } from './sources.ts';

const PAGE_FILE = fileURLToPath(new URL('../../dist/verify.html', import.meta.url));

/** What the page's worker told the page. */
interface Told {
  readonly unreadable?: string;
  readonly answer?: {
    /** Of what was opened; other questions have other answers. */
    readonly verdict?: { readonly findings: readonly Found[]; readonly findingCount: number } & Ranges;
  };
}

interface Ranges {
  readonly size: number;
  readonly intactThrough: number;
  readonly replayedThrough: number;
  readonly checkpointedThrough: number;
  readonly anchoredThrough: number;
}

/** The built page in a real browser. What its worker says is read as it is said, before anything is shown. */
export class MatrixPage {
  readonly #browser: Extract<Browser, { context: unknown }>;
  readonly #page: Page;
  readonly #complaints: string[];

  static async open(): Promise<MatrixPage> {
    const browser = await startBrowser();
    if ('reason' in browser) throw new Error(browser.reason);
    const { page, complaints } = await watchPage(browser.context);
    await page.addInitScript(listen);
    await page.goto(pathToFileURL(PAGE_FILE).href);
    return new MatrixPage(browser, page, complaints);
  }

  private constructor(browser: Extract<Browser, { context: unknown }>, page: Page, complaints: string[]) {
    this.#browser = browser;
    this.#page = page;
    this.#complaints = complaints;
  }

  async judge(path: string): Promise<{ readonly findings: readonly Found[]; readonly ranges: Ranges }> {
    judged.page += 1;
    await this.#page.evaluate(() => {
      document.body.dataset.ready = 'false';
    });
    await this.#page.setInputFiles('#choose-file', path);
    await this.#page.waitForSelector('body[data-ready=true]');
    const told: Told = await this.#page.evaluate(() => JSON.parse(document.body.dataset.told ?? '{}'));
    if (told.answer?.verdict === undefined) throw new Error(`the page could not open it: ${told.unreadable}`);
    const { findings, size, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough } =
      told.answer.verdict;
    return {
      findings,
      ranges: { size, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough },
    };
  }

  async close(): Promise<string[]> {
    await this.#browser.close();
    return this.#complaints;
  }
}

/** Runs in the page, before anything else does. */
function listen(): void {
  const Native = window.Worker;
  window.Worker = class extends Native {
    constructor(url: string | URL, options?: WorkerOptions) {
      super(url, options);
      this.addEventListener('message', ({ data }: MessageEvent<Told>) => {
        const { unreadable, answer } = data;
        if (unreadable === undefined && answer?.verdict === undefined) return;
        document.body.dataset.told = JSON.stringify({ unreadable, answer: { verdict: answer?.verdict } });
      });
    }
  };
}
