import { inclusionProof, type NodeReader } from '../integrity/proofs.ts';
import { logNodes } from '../log/tree.ts';
import type { Reader, StorageEngine } from '../storage/engine.ts';
import type { Source, SourceHead, SourceRow } from '../verify/source.ts';
import { DatabaseSource } from '../verify/sources/database.ts';

/** Rows per query. */
const PAGE = 100;

interface PartRow {
  readonly position: number;
  readonly text: string;
  readonly content_hash: string;
  readonly chain_hash: string;
  readonly previous: string | null;
  readonly salt: string | null;
  readonly body: string | null;
}

/**
 * Some rows of a log in a database, each with its proof under one head, as a source for the verifier: what it says then
 * holds for these rows, without reading the whole log.
 */
export function partOfLog(
  storage: StorageEngine,
  tx: Reader,
  head: SourceHead & { readonly size: number },
  positions: readonly number[],
  complete?: string,
): Source {
  const database = new DatabaseSource(storage, tx);
  return {
    whole: false,
    ...(complete !== undefined && /^[TA]-/.test(complete) && { complete: new Set([complete]) }),
    origin: () => database.origin(),
    heads: () => Promise.resolve([head]),
    kept: () => Promise.resolve([]),
    count: () => Promise.resolve(positions.length),
    rows: () => readRows(tx, head.size, positions),
    texts: (digests) => database.texts(digests),
    states: (table, ids) => database.states(table, ids),
    checkRest: () => Promise.resolve(),
  };
}

async function* readRows(
  tx: Reader,
  size: number,
  positions: readonly number[],
): AsyncGenerator<SourceRow[]> {
  const nodes = logNodes(tx);
  const ordered = [...new Set(positions)].sort((a, b) => a - b);
  for (let i = 0; i < ordered.length; i += PAGE) {
    const page = ordered.slice(i, i + PAGE);
    const found = await tx.all<PartRow>(
      `SELECT a.position, a.text, a.content_hash, a.chain_hash, b.chain_hash AS previous, p.salt, p.body
       FROM actions a
       LEFT JOIN actions b ON b.position = a.position - 1
       LEFT JOIN action_payloads p ON p.position = a.position
       WHERE a.position IN (${page.map(() => '?').join(', ')}) ORDER BY a.position`,
      ...page,
    );
    const rows: SourceRow[] = [];
    for (const row of found)
      rows.push({ ...asSourceRow(row), ...(await proofOf(nodes, row.position, size)) });
    yield rows;
  }
}

function asSourceRow({ position, text, content_hash, chain_hash, previous, salt, body }: PartRow): SourceRow {
  return {
    position,
    text,
    content_hash,
    chain_hash,
    ...(previous !== null && { previous_chain_hash: previous }),
    ...(body !== null && { payload: { salt: salt ?? '', body } }),
  };
}

/** Where rows are gone there is no proof, and the verifier says so. */
async function proofOf(nodes: NodeReader, position: number, size: number): Promise<Pick<SourceRow, 'proof'>> {
  try {
    return { proof: await inclusionProof(nodes, position - 1, size) };
  } catch {
    return {};
  }
}
