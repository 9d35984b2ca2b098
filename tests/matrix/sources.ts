import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeBundle } from '../../src/export/bundle.ts';
import { buildCertificate } from '../../src/export/certificate.ts';
import { openBundle } from '../../src/export/files.ts';
import { parseVerifierKey } from '../../src/integrity/signed-note.ts';
import type { StorageEngine } from '../../src/storage/engine.ts';
import { ForeignSchema } from '../../src/storage/engine.ts';
import { openSqlite } from '../../src/storage/sqlite/engine.ts';
import { KeyFolder } from '../../src/trust/key-folder.ts';
import { readRemembered } from '../../src/trust/memory.ts';
import type { Finding } from '../../src/verify/finding.ts';
import type { Evidence } from '../../src/verify/rules/heads.ts';
import type { Source } from '../../src/verify/source.ts';
import { carriedSource, damagedSource } from '../../src/verify/sources/carried.ts';
import { formatCertificate, openCertificate } from '../../src/verify/sources/certificate.ts';
import { DatabaseSource } from '../../src/verify/sources/database.ts';
import type { Verdict } from '../../src/verify/verdict.ts';
import { verify } from '../../src/verify/verify.ts';

/** A log on the disk: the database, and the folder with its key. */
export interface Place {
  readonly folder: string;
  readonly dbPath: string;
  readonly configDir: string;
  readonly origin: string;
}

/** What a verification found, without what differs in wording. */
export interface Judgement {
  readonly findings: readonly Finding[];
  readonly verdict: Verdict;
}

/** A finding as every source must make it. */
export interface Found {
  readonly kind: Finding['kind'];
  readonly record: string;
  readonly columns?: readonly string[];
  readonly position?: number;
}

/** How often each kind of source was judged, for the figures. */
export const judged = { database: 0, server: 0, bundle: 0, certificate: 0, page: 0, python: 0 };

export function placeIn(folder: string, origin: string): Place {
  return { folder, dbPath: join(folder, 'db', 'colibri.db'), configDir: join(folder, 'config'), origin };
}

/** The database with what the key folder remembers, as `colibri verify` sees it. */
export async function judgeDatabase(place: Place): Promise<Judgement> {
  judged.database += 1;
  try {
    return await withStorage(place, (storage) =>
      storage.read((tx) => judge(new DatabaseSource(storage, tx), place, remembered(place))),
    );
  } catch (thrown) {
    if (!(thrown instanceof ForeignSchema)) throw thrown;
    const { verdict } = await judge(damagedSource(thrown.message), place, []);
    return { findings: [...thrown.problems], verdict };
  }
}

export function remembered({ configDir, origin }: Place): Evidence[] {
  const folder = new KeyFolder(configDir, origin);
  const key = folder.verifierKey();
  const last = key === undefined ? undefined : readRemembered(folder.signedPath, parseVerifierKey(key));
  return last === undefined
    ? []
    : [{ source: 'last-signed', where: 'what was signed last', note: last.note, filed: folder.kept() }];
}

/** Writes what `colibri export` makes of the database. */
export async function exportTo(place: Place, path: string): Promise<void> {
  const { dbPath, configDir, folder } = place;
  const request = { besideDb: dbPath, configDir, workspace: folder };
  await withStorage(place, (storage) => writeBundle(storage, request, path));
}

/** A bundle in a folder or a zip, with the key that whoever verifies knows, or with the one that came with it. */
export async function judgeBundle(place: Place, path: string, knowsKey = true): Promise<Judgement> {
  judged.bundle += 1;
  const files = await openBundle(path);
  try {
    return await judge(await carriedSource(() => ({ files })), place, [], knowsKey);
  } finally {
    files.close();
  }
}

/** Writes what `colibri prove` makes of one record. */
export async function proveTo(place: Place, subject: string, path: string): Promise<string> {
  const { dbPath, configDir } = place;
  const text = await withStorage(place, async (storage) =>
    formatCertificate(
      await buildCertificate(storage, { besideDb: dbPath, configDir, workspace: place.folder }, subject),
    ),
  );
  writeFileSync(path, text);
  return text;
}

export async function judgeCertificate(place: Place, text: string, knowsKey = true): Promise<Judgement> {
  judged.certificate += 1;
  return await judge(await carriedSource(() => openCertificate(text)), place, [], knowsKey);
}

export async function judge(
  source: Source,
  { configDir, origin }: Place,
  evidence: readonly Evidence[],
  knowsKey = true,
): Promise<Judgement> {
  const findings: Finding[] = [];
  const keys = knowsKey ? new KeyFolder(configDir, origin).keys().map(parseVerifierKey) : [];
  const verdict = await verify(source, {
    report: (finding) => findings.push(finding),
    now: Date.now(),
    keys: { trusted: keys },
    evidence,
  });
  return { findings, verdict };
}

async function withStorage<T>({ dbPath }: Place, work: (storage: StorageEngine) => Promise<T>): Promise<T> {
  const storage = await openSqlite({ path: dbPath, readOnly: true });
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

/** Findings in an order of their own: sources may come across them differently. */
export function foundIn({ findings }: { readonly findings: readonly Found[] }): Found[] {
  return findings
    .map(({ kind, record, columns, position }) => ({
      ...{ kind, record },
      ...(columns !== undefined && { columns: [...columns].sort() }),
      ...(position !== undefined && { position }),
    }))
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

function keyOf({ kind, record, columns }: Found): string {
  return `${record} ${kind} ${columns?.join()}`;
}

/** The ranges, which must be the same wherever the whole log is. */
export function rangesIn({ verdict }: Judgement) {
  const { size, root, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough } = verdict;
  return { size, root, intactThrough, replayedThrough, checkpointedThrough, anchoredThrough };
}

/** What a Python script says of a file. */
export async function judgeByPython(
  script: 'verify-database.py' | 'verify-bundle.py',
  path: string,
  ...options: readonly string[]
): Promise<{ readonly isSound: boolean; readonly output: string }> {
  judged.python += 1;
  const file = fileURLToPath(new URL(`../../docs/${script}`, import.meta.url));
  const child = spawn('python3', ['-B', file, path, ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  if (code !== 0 && code !== 1) throw new Error(`${script} ended with ${code}: ${output}`);
  return { isSound: code === 0, output };
}
