import type { Config } from '../config.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { readView } from '../trust/own-log.ts';
import { visibleLine } from '../untrusted.ts';
import type { Finding } from '../verify/finding.ts';
import type { Verdict } from '../verify/verdict.ts';
import { checkDatabase, collectEvidence, ownKey } from './evidence.ts';
import type { Output } from './output.ts';

/** Verifying that many rows takes some seconds: more than a command does on the side. */
export const ROWS_ASIDE_MAX = 100_000;

/** What is wrong with a log, as one sentence, and how many rows were too many to look. */
export interface Trouble {
  readonly trouble?: string;
  /** Set where the log was too long to verify on the side. */
  readonly unverified?: number;
}

/** Verifies the log on the side, for commands that do something else with it. Nobody should build on a log that was changed. */
export async function lookForTrouble(
  config: Config,
  storage: StorageEngine,
  out: Output,
  rowsMax = Number.POSITIVE_INFINITY,
): Promise<Trouble> {
  const { origin, last } = await storage.read(readView);
  if (last.position > rowsMax) return { unverified: last.position };
  const outside = collectEvidence(config, config.dbPath, origin);
  const key = ownKey(config, origin);
  const { verdict, findings } = await checkDatabase(storage, key, outside.evidence, out);
  const trouble = troubleOf(verdict, [...findings, ...outside.findings]);
  return trouble === undefined ? {} : { trouble };
}

/** Prints what a command did with a log, and first what is wrong with the log, if anything. Answers the exit code. */
export function tellWithTrouble(trouble: string | undefined, data: object, print: () => void, out: Output) {
  if (trouble !== undefined) out.error(trouble);
  return out.data({ ...data, ...(trouble && { trouble }) }, print, trouble === undefined);
}

/** The first thing that is wrong; undefined where nothing is. */
export function troubleOf(verdict: Verdict, findings: readonly Finding[]): string | undefined {
  const { size, replayedThrough } = verdict;
  const unreplayed = replayedThrough < size ? `calls after row ${replayedThrough} cannot be replayed.` : '';
  const first = visibleLine(findings[0]?.message ?? '') || unreplayed;
  const more = findings.length > 1 ? ` That is one of ${findings.length} findings.` : '';
  return first === ''
    ? undefined
    : `Something is wrong with the log: ${first}${more} "colibri verify" shows everything.`;
}
