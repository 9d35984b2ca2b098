import { existsSync } from 'node:fs';
import type { Config } from '../config.ts';
import { checkSeals } from '../domains/trail/index.ts';
import { asError, ColibriError } from '../errors.ts';
import { sha256Hex } from '../integrity/digest.ts';
import type { VerifierKey } from '../integrity/note-key.ts';
import { verifyInclusion } from '../integrity/proof-verifier.ts';
import { leafHash } from '../integrity/tree.ts';
import { originOf, PathMemory } from '../log/log-folder.ts';
import { claimedSize, type Evidence, type Judged, judge } from '../log/verify/evidence.ts';
import { auditRow, type Finding, type Report } from '../log/verify/finding.ts';
import { type Verified, verifyDatabase } from '../log/verify/verify.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { openSqlite, UnusableFileError } from '../storage/sqlite/engine.ts';
import type { Against } from './against.ts';
import { collectOutside, type Outside, outsideFinding } from './evidence.ts';
import type { Output } from './output.ts';
import { type AgainstVerdict, againstVerdict, findingOf, type Ranges, rangesOf } from './verdict.ts';

export interface DatabaseVerdict {
  readonly path: string;
  readonly origin: string | undefined;
  readonly size: number;
  readonly root: string;
  readonly ranges: Ranges;
  readonly judged: readonly Judged[];
  readonly against?: { readonly verdict: AgainstVerdict; readonly size: number; readonly message: string };
  /** Where the key came from. */
  readonly keyFrom: string;
  readonly remarks: readonly string[];
  readonly findings: readonly Finding[];
}

export interface FileToVerify {
  readonly config: Config;
  readonly path: string;
  readonly trustedKey: VerifierKey | undefined;
  readonly against: Against | undefined;
  readonly out: Output;
}

/** Verifies a database and holds it against everything that is known of it elsewhere. Never changes a byte of it. */
export async function verifyFile(options: FileToVerify): Promise<DatabaseVerdict> {
  const { config, path } = options;
  if (!existsSync(path)) {
    const seen = new PathMemory(config.configDir, path).read();
    return unreadable(
      path,
      outsideFinding('missing', path, `The database ${path} was the log ${seen} and is gone.`),
    );
  }
  let storage: StorageEngine;
  try {
    storage = await openSqlite({ path, readOnly: true });
  } catch (thrown) {
    return unreadable(path, damage(path, thrown));
  }
  try {
    return await verifyOpened(storage, options);
  } catch (thrown) {
    if (!isOfStorage(thrown)) throw thrown;
    return unreadable(path, damage(path, thrown));
  } finally {
    await storage.close();
  }
}

async function verifyOpened(storage: StorageEngine, options: FileToVerify): Promise<DatabaseVerdict> {
  const { config, path, against, out } = options;
  const findings: Finding[] = [];
  const report = (finding: Finding) => void findings.push(finding);
  const origin = await readOrigin(storage, config, path);
  // Heads are read before the snapshot is taken: a server may sign further rows at any moment.
  const outside = collectOutside(config, path, origin, options.trustedKey, report);
  const evidence = against === undefined ? outside.evidence : [...outside.evidence, asEvidence(against)];

  const bar = out.progress('verifying');
  const walked = await verifyDatabase(storage, {
    report,
    sizes: evidence.map(claimedSize),
    onProgress: bar.update,
  });
  bar.end();
  const verified = walked.findings === 0 ? await withSeals(storage, walked, report) : walked;

  const judged = evidence.map((head) => judge(head, outside.keys, { origin, ...verified }));
  const leftovers = verified.findings > 0;
  for (const head of judged) {
    const finding = findingOf(head, leftovers, verified.size);
    if (finding !== undefined) findings.push(finding);
  }
  const kept = against === undefined ? undefined : judged.at(-1);
  if (kept?.status === 'nothing') findings.push(outsideFinding('bad-checkpoint', kept.where, kept.message));
  if (against?.proof !== undefined) findings.push(...(await checkProof(storage, against)));
  return {
    path,
    origin,
    size: verified.size,
    root: verified.root,
    ranges: rangesOf(verified, judged),
    judged,
    ...(kept !== undefined && {
      against: { verdict: againstVerdict(kept), size: kept.size, message: kept.message },
    }),
    keyFrom: outside.keyFrom,
    remarks: remarksOn(outside, judged, verified),
    findings,
  };
}

/** Only where everything else agrees: elsewhere a seal that does not hold follows from what was found already. */
async function withSeals(storage: StorageEngine, walked: Verified, report: Report): Promise<Verified> {
  const forged: Finding[] = [];
  await storage.read((tx) => checkSeals(tx, (finding) => forged.push(finding)));
  for (const finding of forged) report(finding);
  const before = forged.map(({ position = 1 }) => position - 1);
  const intactThrough = Math.min(walked.intactThrough, ...before);
  return { ...walked, findings: forged.length, intactThrough };
}

function asEvidence({ where, note }: Against): Evidence {
  return { source: 'against', where, note };
}

/** The name of the log: that of its first row. Where damage hides that row, the one remembered of the path. */
async function readOrigin(storage: StorageEngine, config: Config, path: string): Promise<string | undefined> {
  try {
    const first = await storage.read((tx) =>
      tx.get<{ content_hash: string }>('SELECT content_hash FROM actions WHERE position = 1'),
    );
    return first === undefined ? undefined : originOf(first.content_hash);
  } catch (thrown) {
    if (!isOfStorage(thrown)) throw thrown;
    return new PathMemory(config.configDir, path).read() ?? undefined;
  }
}

/** The record a proof speaks of must be the one that stands there now. */
async function checkProof(storage: StorageEngine, { where, note, proof }: Against): Promise<Finding[]> {
  if (proof === undefined) return [];
  const position = proof.index + 1;
  const row = await storage.read((tx) =>
    tx.get<{ text: string }>('SELECT text FROM actions WHERE position = ?', position),
  );
  const base = { table: 'actions', record: auditRow(position), position };
  if (row === undefined)
    return [{ ...base, kind: 'missing', message: `Audit row ${position}, which ${where} proves, is gone.` }];
  const [, size = '', root = ''] = note.split('\n');
  try {
    verifyInclusion({
      index: proof.index,
      size: Number(size),
      leafHash: leafHash(sha256Hex(row.text)),
      root: Buffer.from(root, 'base64').toString('hex'),
      proof: proof.proof,
    });
    return [];
  } catch (error) {
    const message = `Audit row ${position} is not the one that ${where} proves: ${asError(error).message}.`;
    return [{ ...base, kind: 'altered', message }];
  }
}

function remarksOn(outside: Outside, judged: readonly Judged[], verified: Verified): string[] {
  const unchecked = judged.filter(({ status }) => status === 'unchecked');
  const givenUp = judged.filter(({ status }) => status === 'given-up');
  return [
    ...outside.remarks,
    ...(outside.keys.current.length === 0 && verified.size > 0
      ? ['No key of this log is known here: signatures were not checked. Give the key with --key.']
      : unchecked.map(({ message }) => message)),
    ...(givenUp.length === 0
      ? []
      : [`${givenUp.length} older checkpoint(s) disagree; "colibri checkpoint --adopt" gave them up.`]),
  ];
}

/** An error of the engine or of its driver; anything else is a mistake of ours and no finding. */
function isOfStorage(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  if (thrown instanceof ColibriError || thrown instanceof UnusableFileError || 'code' in thrown) return true;
  return isOfStorage(thrown.cause);
}

function damage(path: string, thrown: unknown): Finding {
  const { message } = asError(thrown);
  return { kind: 'damaged', table: 'file', record: path, message: `${path} cannot be read: ${message}` };
}

function unreadable(path: string, finding: Finding): DatabaseVerdict {
  const ranges = {
    intactThrough: 0,
    checkpointedThrough: 0,
    anchoredThrough: 0,
    anchoredBy: [],
    unanchoredTail: 0,
  };
  const findings = [finding];
  return {
    path,
    origin: undefined,
    size: 0,
    root: '',
    ranges,
    judged: [],
    keyFrom: '',
    remarks: [],
    findings,
  };
}
