import { sha256Hex } from '../../integrity/digest.ts';
import { chainHash, GENESIS } from '../../log/row.ts';
import type { Reader } from '../../storage/engine.ts';

/** An audit row that is not as it was written, and the columns that cannot be right. */
interface AuditRowFault {
  readonly position: number;
  readonly columns: string[];
  readonly expected: string;
  readonly actual: string;
}

interface Stored {
  readonly position: number;
  readonly text: string;
  readonly content_hash: string;
  readonly chain_hash: string;
  readonly previous: string | null;
}

/** Checks these rows by themselves and against the row before each. */
export async function faultyAuditRows(tx: Reader, positions: Iterable<number>): Promise<AuditRowFault[]> {
  const rows = await tx.all<Stored>(
    `SELECT a.position, a.text, a.content_hash, a.chain_hash,
       (SELECT p.chain_hash FROM actions p WHERE p.position = a.position - 1) AS previous
     FROM actions a WHERE a.position IN (SELECT value FROM json_each(?))`,
    JSON.stringify([...positions]),
  );
  return rows.flatMap((row) => {
    const actual = sha256Hex(row.text);
    const columns = wrongColumns(row, actual);
    const { position, content_hash: expected } = row;
    return columns.length === 0 ? [] : [{ position, columns, expected, actual }];
  });
}

/** Of text and content_hash, the chain hash tells which one is still the old one. */
function wrongColumns(row: Stored, actual: string): string[] {
  const previous = row.previous ?? GENESIS;
  const textHolds = chainHash(actual, previous) === row.chain_hash;
  if (actual === row.content_hash) return textHolds ? [] : ['chain_hash'];
  if (textHolds) return ['content_hash'];
  return chainHash(row.content_hash, previous) === row.chain_hash ? ['text'] : ['text', 'content_hash'];
}
