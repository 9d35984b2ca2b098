import { existsSync } from 'node:fs';
import { systemClock } from '../clock.ts';
import type { Config } from '../config.ts';
import { asError } from '../errors.ts';
import type { VerifierKey } from '../integrity/note-key.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { openSqlite } from '../storage/sqlite/engine.ts';
import { readView } from '../trust/own-log.ts';
import { PathMemory } from '../trust/path-memory.ts';
import type { Finding } from '../verify/finding.ts';
import type { HeadStatus, Judged } from '../verify/rules/heads.ts';
import { DatabaseSource } from '../verify/sources/database.ts';
import type { Verdict } from '../verify/verdict.ts';
import { verify } from '../verify/verify.ts';
import { type Against, againstEvidence, checkProvedRecord } from './against.ts';
import { collectEvidence, outsideFinding, ownKey } from './evidence.ts';
import type { Output } from './output.ts';
import { printable } from './text.ts';
import type { Verified } from './verdict.ts';

export interface DatabaseToVerify {
  readonly config: Config;
  readonly path: string;
  readonly key?: VerifierKey | undefined;
  readonly against?: Against | undefined;
  readonly out: Output;
}

/** Verifies a database and compares it with everything known about it elsewhere. Never changes a byte of it. */
export async function verifyDatabase(given: DatabaseToVerify): Promise<Verified> {
  const { config, path } = given;
  if (!existsSync(path)) {
    const before = new PathMemory(config.configDir, path).seen().join(', ');
    const message = `The database ${path} was the log ${before} and is gone.`;
    return unreadable(path, outsideFinding('missing', path, message));
  }
  let storage: StorageEngine;
  try {
    storage = await openSqlite({ path, readOnly: true });
  } catch (thrown) {
    const message = `${path} cannot be read: ${asError(thrown).message}`;
    return unreadable(path, { kind: 'damaged', table: 'file', record: path, message });
  }
  try {
    return await verifyOpened(storage, given);
  } finally {
    await storage.close();
  }
}

async function verifyOpened(storage: StorageEngine, given: DatabaseToVerify): Promise<Verified> {
  const { config, path, against, out } = given;
  const findings: Finding[] = [];
  const report = (finding: Finding) => void findings.push(finding);
  const origin = await readOrigin(storage, config, path);
  const outside = collectEvidence(config, path, origin, report);
  const key = given.key ?? ownKey(config, origin);
  const bar = out.progress('verifying');
  const options = {
    report,
    now: systemClock.now(),
    keys: { trusted: key === undefined ? [] : [key] },
    evidence: [...outside.evidence, ...(against === undefined ? [] : [againstEvidence(against)])],
    onProgress: bar.update,
  };
  const verdict = await storage
    .read((tx) => verify(new DatabaseSource(storage, tx), options))
    .finally(() => bar.end());
  if (against !== undefined) await storage.read((tx) => checkProvedRecord(against, tx, report));
  const compared = verdict.judged.find(({ source }) => source === 'against');
  return {
    what: 'database',
    path,
    whole: true,
    verdict,
    findings,
    remarks: [...outside.remarks, ...verdict.remarks],
    ...(compared !== undefined && describeComparison(compared)),
  };
}

const COMPARISONS: Readonly<Partial<Record<HeadStatus, string>>> = {
  consistent: 'consistent',
  cut: 'inconsistent',
  rewritten: 'inconsistent',
};

function describeComparison({ status, size, message }: Judged): Pick<Verified, 'data' | 'print'> {
  const verdict = COMPARISONS[status] ?? 'not comparable';
  return {
    data: { against: { verdict, size, message } },
    print: (out) => out.line(`against               ${verdict}: ${printable(message)}`),
  };
}

/** The name the log gives itself. Where damage hides it, the one remembered for the path. */
async function readOrigin(storage: StorageEngine, config: Config, path: string): Promise<string | undefined> {
  try {
    return (await storage.read(readView)).origin;
  } catch {
    // Whatever it is, the verifier meets it too and reports it.
    return new PathMemory(config.configDir, path).seen()[0];
  }
}

function unreadable(path: string, finding: Finding): Verified {
  const verdict: Verdict = {
    origin: undefined,
    size: 0,
    root: '',
    intactThrough: 0,
    replayedThrough: 0,
    checkpointed: [],
    checkpointedThrough: 0,
    anchoredThrough: 0,
    anchoredBy: [],
    unanchoredTail: 0,
    findings: 1,
    erased: [],
    judged: [],
    remarks: [],
  };
  return { what: 'database', path, whole: true, verdict, findings: [finding], remarks: [] };
}
