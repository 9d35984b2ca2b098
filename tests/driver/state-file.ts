import { canonical, readAuditFile, sha256, withDatabase } from './audit-file.ts';

const STATE_TABLES = ['tasks', 'thoughts', 'sessions', 'session_records'] as const;
const PREFIX = { tasks: 'T', thoughts: 'Θ', sessions: 'A', session_records: 'R' } as const;
/** Counted from other rows, and in no digest. */
const DERIVED: readonly string[] = ['unmet', 'is_final', 'queue'];

/** Everything that does not agree between the rows of state and the effects the log tells of. Empty when both are whole. */
export function stateFindings(path: string): string[] {
  const told = new Map<string, string>();
  const wrote = new Map<string, number>();
  const findings: string[] = [];
  const { rows } = readAuditFile(path);
  for (const { position, effects } of rows) {
    for (const { table, id, hash, previous } of effects) {
      const row = `${table} ${id}`;
      if (previous !== (wrote.get(row) ?? 0))
        findings.push(`${row}: row ${previous} did not write it before ${position}`);
      told.set(row, hash);
      wrote.set(row, position);
    }
  }
  for (const [row, hash] of storedRows(path)) {
    if (!told.has(row)) findings.push(`${row}: no call tells of it`);
    else if (told.get(row) !== hash) findings.push(`${row}: not what the last call wrote`);
    told.delete(row);
  }
  return [...findings, ...[...told.keys()].map((row) => `${row}: told of and not there`)];
}

/** `table id` and the digest of the row: every column that is not counted from others, and the name of the table. */
function storedRows(path: string): [row: string, hash: string][] {
  return withDatabase(path, (db) =>
    STATE_TABLES.flatMap((table) => {
      const stored = (db.pragma(`table_info(${table})`) as { name: string }[]).map(({ name }) => name);
      const columns = stored.filter((name) => !DERIVED.includes(name));
      const rows = db.prepare(`SELECT ${columns.join(', ')} FROM ${table}`).all() as { id: number }[];
      return rows.map((row): [string, string] => [
        `${table} ${PREFIX[table]}-${String(row.id).padStart(4, '0')}`,
        sha256(canonical({ ...row, table })),
      ]);
    }),
  );
}

/** Positions of calls marked as running. */
export function openCalls(path: string): number[] {
  return withDatabase(path, (db) => db.prepare('SELECT position FROM open_calls').pluck().all() as number[]);
}
