import { verifyInclusion } from '../../../integrity/proof-verifier.ts';
import { inclusionProof, type NodeReader, nodesInMemory, rootAt } from '../../../integrity/proofs.ts';
import { leafHash } from '../../../integrity/tree.ts';
import { exactText } from '../../../integrity/utf8.ts';
import type { CallDetail, Comparison, RowDetail } from '../protocol.ts';
import { openHead, reason } from './heads.ts';
import type { Walked } from './verify.ts';

const trees = new WeakMap<Walked, NodeReader>();

/** The tree over all rows, hashed once and only when somebody asks. */
function treeOf(walked: Walked): NodeReader {
  const known = trees.get(walked);
  if (known !== undefined) return known;
  const tree = nodesInMemory([...walked.log.hashes.values()].map(leafHash));
  trees.set(walked, tree);
  return tree;
}

export async function detailOf(walked: Walked, positions: readonly number[]): Promise<CallDetail> {
  const rows = positions
    .map((position): RowDetail | undefined => {
      const row = walked.rows.get(position);
      const contentHash = walked.log.hashes.get(position);
      if (row === undefined || contentHash === undefined) return undefined;
      return { position, text: exactText(row.line) ?? '', contentHash, payload: row.payload };
    })
    .filter((row) => row !== undefined);
  const last = rows.at(-1);
  return { rows, proof: last === undefined ? undefined : await proofOf(walked, last) };
}

/** Leads a row to the root of the newest checkpoint that covers it, as an outsider would. */
async function proofOf(walked: Walked, { position, contentHash }: RowDetail): Promise<CallDetail['proof']> {
  const head = walked.heads.all.findLast(({ size }) => size >= position);
  if (!walked.isWhole || head === undefined || head.size > walked.log.last) return undefined;
  const [index, size] = [position - 1, head.size];
  try {
    const proof = await inclusionProof(treeOf(walked), index, size);
    const holds = isIncluded(index, size, contentHash, head.root, proof);
    return { size, steps: proof.length, holds };
  } catch {
    return { size, steps: 0, holds: false };
  }
}

function isIncluded(index: number, size: number, hash: string, root: string, proof: readonly string[]) {
  try {
    verifyInclusion({ index, size, leafHash: leafHash(hash), root, proof });
    return true;
  } catch {
    return false;
  }
}

/** Holds a key or a checkpoint that somebody kept elsewhere against the bundle. */
export async function compare(walked: Walked, given: string): Promise<Comparison> {
  const { key, keyText } = walked.heads;
  const text = given.trim();
  if (key === undefined || keyText === undefined)
    return {
      state: 'unknown',
      message: 'The bundle has no key that could be used, so nothing can be compared.',
    };
  if (!text.includes('\n')) {
    if (!/^[^+]+\+[0-9a-f]{8}\+/.test(text))
      return {
        state: 'unknown',
        message: 'This is neither a key (name+id+key) nor a checkpoint of several lines.',
      };
    return text === keyText
      ? { state: 'agrees', message: 'The key in the bundle is the one you gave.' }
      : {
          state: 'disagrees',
          message: 'The key in the bundle is not the one you gave: somebody else signed this.',
        };
  }
  try {
    const head = await openHead(`${text}\n`, key);
    if (!walked.isWhole)
      return {
        state: 'unknown',
        message: 'A bundle of one session cannot be compared with a checkpoint; take one of the whole log.',
      };
    if (head.origin !== walked.verdict.origin)
      return { state: 'disagrees', message: `Your checkpoint is of another log, ${head.origin}.` };
    if (head.size > walked.log.last)
      return {
        state: 'disagrees',
        message: `Your checkpoint covers ${head.size} rows, but only ${walked.log.last} are here: the newest were cut off.`,
      };
    const agrees = head.size > 0 && (await rootAt(treeOf(walked), head.size)) === head.root;
    const unchecked = head.signature === 'valid' ? '' : ' Its signature was not checked.';
    return agrees
      ? {
          state: 'agrees',
          message: `The first ${head.size} rows are those your checkpoint was made of.${unchecked}`,
        }
      : {
          state: 'disagrees',
          message: `The first ${head.size} rows are not those your checkpoint was made of: history was rewritten.${unchecked}`,
        };
  } catch (error) {
    return {
      state: 'disagrees',
      message: `Your checkpoint is not to be believed with the key of this bundle: ${reason(error)}.`,
    };
  }
}
