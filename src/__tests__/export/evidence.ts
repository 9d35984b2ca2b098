import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Random } from '../../../tests/driver/random.ts';
import { readConfig } from '../../config.ts';
import { type WrittenBundle, writeBundle } from '../../export/bundle.ts';
import { buildCertificate } from '../../export/certificate.ts';
import { type OpenedFiles, openBundle } from '../../export/files.ts';
import { parseVerifierKey } from '../../integrity/signed-note.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { openStorage } from '../../storage/open.ts';
import type { Finding } from '../../verify/finding.ts';
import type { Source } from '../../verify/source.ts';
import type { CarriedAnchor } from '../../verify/sources/anchor-file.ts';
import { type CarriedSource, carriedSource } from '../../verify/sources/carried.ts';
import { type Certificate, openCertificate } from '../../verify/sources/certificate.ts';
import { DatabaseSource } from '../../verify/sources/database.ts';
import type { Verdict } from '../../verify/verdict.ts';
import { verify } from '../../verify/verify.ts';
import type { RealLog } from './real-log.ts';

interface Trust {
  readonly trustedKey?: string;
  readonly against?: string;
}

const SCRIPT = fileURLToPath(new URL('../../../docs/verify-bundle.py', import.meta.url));

export async function exportTo(log: RealLog, path: string, page?: string): Promise<WrittenBundle> {
  return await reading(log, (storage) => writeBundle(storage, { ...placeOf(log), page }, path));
}

export async function prove(log: RealLog, subject: string): Promise<Certificate> {
  return await reading(log, (storage) => buildCertificate(storage, placeOf(log), subject));
}

/** A test may name a copy of the file. */
function placeOf({ colibri, dbPath, configDir }: RealLog) {
  if (!colibri.isOnFile) return { ...readConfig(colibri.environment, colibri.path()), configDir };
  return { dbPath, besideDb: dbPath, configDir, workspace: dirname(dbPath) };
}

async function reading<T>(log: RealLog, work: (storage: StorageEngine) => Promise<T>): Promise<T> {
  const storage = await openStorage(placeOf(log), { readOnly: true });
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

export interface Checked {
  readonly verdict: Verdict;
  readonly findings: Finding[];
}

/** Verifies any source, with a key that is pinned and a checkpoint that is kept elsewhere. */
async function checkSource(source: Source, { trustedKey, against }: Trust = {}): Promise<Checked> {
  const findings: Finding[] = [];
  const verdict = await verify(source, {
    report: (finding) => void findings.push(finding),
    now: Date.now(),
    keys: { trusted: trustedKey === undefined ? [] : [parseVerifierKey(trustedKey)] },
    evidence: against === undefined ? [] : [{ source: 'against', where: 'the one you gave', note: against }],
  });
  return { verdict, findings };
}

export async function checkDatabase(log: RealLog, trust: Trust = {}): Promise<Checked> {
  return await reading(log, (storage) =>
    storage.read((tx) => checkSource(new DatabaseSource(storage, tx), trust)),
  );
}

export async function checkBundle(path: string, trust: Trust = {}): Promise<CheckedCarried> {
  let files: OpenedFiles | undefined;
  const source = await carriedSource(async () => {
    files = await openBundle(path);
    return { files };
  });
  try {
    return await checkCarried(source, trust);
  } finally {
    files?.close();
  }
}

export async function checkCertificate(text: string, trust: Trust = {}): Promise<CheckedCarried> {
  return await checkCarried(await carriedSource(() => openCertificate(text)), trust);
}

interface CheckedCarried extends Checked {
  readonly subject: string;
  readonly anchors: readonly CarriedAnchor[];
}

async function checkCarried(source: CarriedSource, trust: Trust): Promise<CheckedCarried> {
  const checked = await checkSource(source, trust);
  return { ...checked, subject: source.subject, anchors: source.anchors };
}

/** The second verifier: Python and openssl. */
export async function checkWithPython(
  path: string,
  ...args: string[]
): Promise<{ code: number; output: string }> {
  return await new Promise((resolve) => {
    execFile('python3', [SCRIPT, path, ...args], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr });
    });
  });
}

/** Runs the script once for each path, in one process, because an interpreter takes longer to start than a bundle to check. */
const DRIVER = `
import contextlib, io, json, runpy, sys
script, paths, codes = sys.argv[1], json.load(sys.stdin), []
for path in paths:
    sys.argv = [script, path]
    try:
        with contextlib.redirect_stdout(io.StringIO()): runpy.run_path(script, run_name="__main__")
        codes.append(0)
    except SystemExit as end: codes.append(end.code if isinstance(end.code, int) else 1)
    except Exception: codes.append(1)
json.dump(codes, sys.stdout)`;

export async function checkManyWithPython(paths: readonly string[]): Promise<number[]> {
  return await new Promise((resolve, reject) => {
    const python = execFile('python3', ['-c', DRIVER, SCRIPT], (error, stdout) => {
      if (error === null) resolve(JSON.parse(stdout) as number[]);
      else reject(error);
    });
    python.stdin?.end(JSON.stringify(paths));
  });
}

export function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort();
}

/** Changes one byte of a file to any other value, and says which. */
export function damage(path: string, random: Random): string {
  const bytes = readFileSync(path);
  const at = random.between(0, bytes.length - 1);
  bytes[at] = (bytes[at] ?? 0) ^ random.between(1, 255);
  writeFileSync(path, bytes);
  return `byte ${at} of ${path}`;
}

/** What a forger does who knows of the sums. */
export function recomputeSums(folder: string): void {
  const lines = filesIn(folder)
    .filter((name) => name !== 'SHA256SUMS')
    .map((name) => {
      const hash = createHash('sha256').update(readFileSync(join(folder, name)));
      return `${hash.digest('hex')}  ${name}\n`;
    });
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}
