import { fstatSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../clock.ts';
import { asError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import { createFile, makeTemporaryFolder } from '../private-files.ts';
import { liveAnswers } from '../report/live/answers.ts';
import type { ServerAnchor, ServerVerdict } from '../report/live/form.ts';
import { listen } from '../report/live/http.ts';
import { livePage } from '../report/live/page.ts';
import { Replay } from '../report/live/replay.ts';
import { readAbandoned } from '../report/report.ts';
import { openOnDesktop, runOwnAside } from '../trust/programs.ts';
import type { Finding } from '../verify/finding.ts';
import { command, EXIT, UsageError } from './command.ts';
import { withLog } from './open.ts';

const FINDINGS_MAX = 50;
const ANCHORS_MAX = 50;

/** The log as a page in the browser that follows it. */
export const serve = command({
  name: 'serve',
  usage: '[--port N] [--no-open]',
  summary: 'show the board, trail, sessions and checks in the browser, live',
  details:
    'The page is served only on the loopback address, and only to someone who knows the secret in its address, so do not share the address. It cannot change anything. Your browser checks that each row it shows is in the log under the newest signed head, and that each head extends the previous one. What only a full verification can show comes from this process, and the page says so. It stops on Ctrl-C, or when the terminal closes.',
  options: {
    port: { value: 'N', help: 'the port (default: any free port)' },
    'no-open': { help: 'only print the address; open no browser' },
  },
  async run({ values, out, config }) {
    const port = readPort(values.port);
    const page = livePage();
    const stop = untilGone();
    return await withLog(config, out, async (storage) => {
      const replay = new Replay(() => judgeLog(stop), systemClock);
      const answers = liveAnswers(storage, {
        clock: systemClock,
        replay,
        abandoned: (tx) => readAbandoned({ read: (work) => work(tx) }, config.leaseMinutes),
      });
      const token = `${systemClock.salt()}${systemClock.salt()}`;
      const failed = (error: unknown) => out.error(asError(error).message.replaceAll(token, 'TOKEN'));
      const { url, close } = await listen({ page, token, failed, answer: answers.answer }, port).catch(
        (error) => {
          throw new UsageError(`The port ${port} cannot be used: ${asError(error).message}.`);
        },
      );
      const wantsBrowser = values['no-open'] !== true && !out.json && process.stdout.isTTY === true;
      const leave = wantsBrowser ? showInBrowser(url) : undefined;
      out.data({ url }, () => {
        out.verbatim(url);
        out.line('Keep the address secret: anyone who has it can read the log. Press Ctrl-C to stop.');
        if (wantsBrowser && leave === undefined) out.line('Open it in your browser.');
      });
      await stopped(stop);
      process.stdin.destroy();
      answers.stop();
      close();
      leave?.();
      return EXIT.fine;
    });
  },
});

function readPort(given: string | undefined): number {
  const port = Number(given ?? 0);
  if (given === undefined || (/^\d{1,5}$/.test(given) && port >= 1 && port <= 65_535)) return port;
  throw new UsageError(`--port takes a number from 1 to 65535, not "${given}".`);
}

/**
 * Ends when the terminal or whoever started it goes: a signal, the end of what it reads, or a parent that is gone. A
 * terminal itself is not read: that would stop a command in the background.
 */
function untilGone(): AbortSignal {
  const stop = new AbortController();
  const go = () => stop.abort();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, go);
  process.stdout.once('error', go);
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) go();
  }, LIMITS.parentCheckMs).unref();
  if (isPipe(0)) process.stdin.once('end', go).once('error', go).resume();
  return stop.signal;
}

/** Neither a terminal nor a file nor nothing at all: somebody holds the other end. */
function isPipe(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return stat.isFIFO() || stat.isSocket();
  } catch {
    return false;
  }
}

function stopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/**
 * Opens the address by way of a file that only this user can read: among the arguments of a program, every user of the
 * machine could read it. Answers how to remove the file; undefined where there is no browser to open.
 */
function showInBrowser(url: string): (() => void) | undefined {
  const folder = makeTemporaryFolder('page');
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const file = join(folder, 'colibri.html');
  createFile(file, `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${url}">`);
  if (openOnDesktop(file)) return remove;
  remove();
  return undefined;
}

/** What "colibri verify" says of the log, run beside this process so that the page is answered meanwhile. */
async function judgeLog(signal: AbortSignal) {
  const said = JSON.parse(await runOwnAside('cli.js', ['verify', '--json'], signal));
  const findings: readonly Finding[] = said.findings;
  const anchors: readonly ServerAnchor[] = said.anchors ?? [];
  return {
    size: said.size,
    intactThrough: said.intact_through,
    replayedThrough: said.replayed_through,
    checkpointedThrough: said.checkpointed_through,
    anchoredThrough: said.anchored_through,
    findingCount: findings.length,
    findings: findings.slice(0, FINDINGS_MAX).map(({ kind, record, message }) => ({ kind, record, message })),
    remarks: said.remarks,
    anchors: anchors.toSorted((a, b) => b.size - a.size).slice(0, ANCHORS_MAX),
  } satisfies Omit<ServerVerdict, 'checkedAt'>;
}
