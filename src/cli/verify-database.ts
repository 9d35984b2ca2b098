import { existsSync } from 'node:fs';
import type { Config } from '../config.ts';
import { asError } from '../errors.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import { openSqlite } from '../storage/sqlite/engine.ts';
import { headIn, keyIn } from '../trust/opening.ts';
import { readView } from '../trust/own-log.ts';
import { PathMemory } from '../trust/path-memory.ts';
import { auditRow, type Finding } from '../verify/finding.ts';
import { damagedSource, isIncluded } from '../verify/sources/carried.ts';
import { DatabaseSource } from '../verify/sources/database.ts';
import type { Against } from './brought.ts';
import { check, collectEvidence, outsideFinding, ownKey } from './evidence.ts';
import type { Output } from './output.ts';
import { describeVerdict, type Verified } from './verdict.ts';

/** A file to verify, and what the user brings along. */
export interface ToVerify {
  readonly config: Config;
  readonly path: string;
  readonly out: Output;
  /** A verifier key in its text form. */
  readonly key?: string | undefined;
  readonly against?: Against | undefined;
  /** The certificate of a time-stamping authority. */
  readonly authority?: string | undefined;
}

/** Verifies a database and compares it with everything known about it elsewhere. Never changes a byte of it. */
export async function verifyDatabase(given: ToVerify): Promise<Verified> {
  const { config, path } = given;
  if (!existsSync(path)) {
    const before = new PathMemory(config.configDir, path).seen().join(', ');
    const message = `The database ${path} was the log ${before} and is gone.`;
    return await unreadable(path, outsideFinding('missing', path, message));
  }
  let storage: StorageEngine;
  try {
    storage = await openSqlite({ path, readOnly: true });
  } catch (thrown) {
    const message = `${path} cannot be read: ${asError(thrown).message}`;
    return await unreadable(path, { kind: 'damaged', table: 'file', record: path, message });
  }
  try {
    return await verifyOpened(storage, given);
  } finally {
    await storage.close();
  }
}

async function verifyOpened(storage: StorageEngine, given: ToVerify): Promise<Verified> {
  const { config, path, against, out } = given;
  const origin = await readOrigin(storage, config, path);
  const outside = collectEvidence(config, path, origin);
  const evidence = [...outside.evidence, against ?? []].flat();
  const key = keyIn(given.key) ?? ownKey(config, origin);
  const { verdict, findings } = await storage.read((tx) =>
    check(new DatabaseSource(storage, tx), key, { evidence, bar: out.progress('verifying') }),
  );
  const proved = against === undefined ? [] : await storage.read((tx) => checkProvedRecord(against, tx));
  return {
    what: 'database',
    path,
    findings: [...outside.findings, ...findings, ...proved],
    ...describeVerdict(verdict, true, { remarks: outside.remarks }),
  };
}

/** The record that a proof was made for must still be the one at its position. */
async function checkProvedRecord({ where, note, proof }: Against, tx: Reader): Promise<Finding[]> {
  const head = headIn(note);
  if (proof === undefined || head === undefined) return [];
  const position = proof.index + 1;
  const sql = 'SELECT content_hash FROM actions WHERE position = ?';
  const row = await tx.get<{ content_hash: string }>(sql, position);
  if (row === undefined || isIncluded(proof.index, proof.proof, row.content_hash, head)) return [];
  const message = `${where} proves another record than the audit row at ${position}.`;
  return [{ kind: 'altered', table: 'actions', record: auditRow(position), position, message }];
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

async function unreadable(path: string, finding: Finding): Promise<Verified> {
  const { verdict } = await check(damagedSource(finding.message), undefined);
  const nothing = { ...verdict, root: '', remarks: [] };
  return { what: 'database', path, findings: [finding], ...describeVerdict(nothing, true, {}) };
}
