import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Random } from '../../../tests/driver/random.ts';
import { type WrittenBundle, writeBundle } from '../../export/bundle.ts';
import { buildCertificate, type Certificate } from '../../export/certificate.ts';
import { type BundleVerdict, verifyBundle } from '../../export/verify-bundle.ts';
import { type ProofVerdict, verifyProofFile } from '../../export/verify-proof.ts';
import type { Finding } from '../../log/verify/finding.ts';
import type { StorageEngine } from '../../storage/engine.ts';
import { openSqlite } from '../../storage/sqlite/engine.ts';
import type { RealLog } from './real-log.ts';

interface Trust {
  readonly trustedKey?: string;
  readonly against?: string;
}

export const SCRIPT = fileURLToPath(new URL('../../../docs/verify-bundle.py', import.meta.url));

export async function exportTo(
  log: RealLog,
  path: string,
  session?: string,
  page?: string,
): Promise<WrittenBundle> {
  const { dbPath, configDir } = log;
  return await reading(log, (storage) => writeBundle(storage, { dbPath, configDir, session, page }, path));
}

export async function prove(log: RealLog, subject: string): Promise<Certificate> {
  const { dbPath, configDir } = log;
  return await reading(log, (storage) => buildCertificate(storage, { dbPath, configDir }, subject));
}

async function reading<T>(log: RealLog, work: (storage: StorageEngine) => Promise<T>): Promise<T> {
  const storage = await openSqlite({ path: log.dbPath, readOnly: true });
  try {
    return await work(storage);
  } finally {
    await storage.close();
  }
}

export async function checkBundle(
  path: string,
  trust: Trust = {},
): Promise<{ verdict: BundleVerdict; findings: Finding[] }> {
  const findings: Finding[] = [];
  const verdict = await verifyBundle(path, { report: (finding) => void findings.push(finding), ...trust });
  return { verdict, findings };
}

export async function checkProof(
  path: string,
  trust: Trust = {},
): Promise<{ verdict: ProofVerdict; findings: Finding[] }> {
  const findings: Finding[] = [];
  const verdict = await verifyProofFile(path, { report: (finding) => void findings.push(finding), ...trust });
  return { verdict, findings };
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
