import {
  FormatError,
  formatDecimal,
  hashFromBase64,
  hashToBase64,
  parseDecimal,
} from '../integrity/c2sp-text.ts';
import { verifyConsistency } from '../integrity/proof-verifier.ts';
import { consistencyProof, rootAt } from '../integrity/proofs.ts';
import { logNodes } from '../log/tree.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { assertNotCut, requireHead } from './bundle.ts';
import { type LogPlace, readHeads } from './heads.ts';

/** That the log at a signed size goes on from the log at an older size, as C2SP tlog-witness writes it. */
export interface Consistency {
  readonly old: number;
  readonly proof: readonly string[];
  /** The signed note of the newer size. */
  readonly checkpoint: string;
}

/** No tree with a safe size needs more. */
const HASHES_MAX = 63;

/** Shows that the newest checkpoint goes on from the log as it was at `old` rows. */
export async function buildConsistency(
  storage: StorageEngine,
  place: LogPlace,
  old: number,
): Promise<{ readonly text: string; readonly size: number }> {
  const heads = await storage.read((tx) => readHeads(tx, place));
  return await storage.read(async (tx) => {
    const rows = (await tx.get<{ size: number }>('SELECT count(*) AS size FROM actions'))?.size ?? 0;
    assertNotCut(heads, rows);
    const { size, root, note } = requireHead({ ...heads, anchors: [] }, old, rows);
    const nodes = logNodes(tx);
    const proof = await consistencyProof(nodes, old, size);
    const root1 = await rootAt(nodes, old);
    try {
      verifyConsistency({ size1: old, size2: size, root1, root2: root, proof });
    } catch (cause) {
      // A log that was changed must not hand out a proof that only others find wanting.
      throw new Error(
        `The log does not lead to the checkpoint of ${size} rows: it was changed after it was signed. "colibri verify" shows where.`,
        { cause },
      );
    }
    return { text: formatConsistency({ old, proof, checkpoint: note }), size };
  });
}

function formatConsistency({ old, proof, checkpoint }: Consistency): string {
  return `${[`old ${formatDecimal(old)}`, ...proof.map(hashToBase64)].join('\n')}\n\n${checkpoint}`;
}

/** Takes the text of a stranger apart. It checks the form only. */
export function parseConsistency(text: string): Consistency {
  const blank = text.indexOf('\n\n');
  const [first = '', ...lines] = text.slice(0, Math.max(0, blank)).split('\n');
  const old = first.startsWith('old ') ? parseDecimal(first.slice('old '.length)) : undefined;
  if (blank < 0 || old === undefined) throw new FormatError('it does not begin with an old size and hashes');
  if (lines.length > HASHES_MAX) throw new FormatError('it has too many hashes');
  const proof = lines.map((line) => {
    const hash = hashFromBase64(line);
    if (hash === undefined) throw new FormatError('a line is not the base64 of 32 bytes');
    return hash;
  });
  return { old, proof, checkpoint: text.slice(blank + 2) };
}
