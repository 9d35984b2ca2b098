import type { StorageEngine } from '../../storage/engine.ts';
import type { Finding } from '../../verify/finding.ts';
import { DatabaseSource } from '../../verify/sources/database.ts';
import { verify } from '../../verify/verify.ts';

/** What the one verifier finds in a database. */
export async function findingsOf(storage: StorageEngine): Promise<Finding[]> {
  const findings: Finding[] = [];
  await storage.read((tx) =>
    verify(new DatabaseSource(storage, tx), {
      report: (finding) => findings.push(finding),
      now: Date.now(),
      keys: { trusted: [] },
    }),
  );
  return findings;
}
