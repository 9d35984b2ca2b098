import { sha256Hex } from '../../../integrity/digest.ts';
import { verifyInclusion } from '../../../integrity/proof-verifier.ts';
import { inclusionProof, type NodeReader, nodesInMemory } from '../../../integrity/proofs.ts';
import { leafHash } from '../../../integrity/tree.ts';
import type { Judged } from '../../../verify/rules/heads.ts';
import type { SourceRow } from '../../../verify/source.ts';
import type { CallDetail, Comparison, RowDetail } from '../protocol.ts';
import { readJson } from './fields.ts';
import type { OpenedSource } from './open.ts';
import { textFields } from './texts.ts';

/** The rows of a call with what lies beside them, and the way of the last one to a signed root. */
export async function detailOf(opened: OpenedSource, positions: readonly number[]): Promise<CallDetail> {
  const rows = positions
    .map((position) => opened.source.read.get(position))
    .filter((row) => row !== undefined);
  const last = rows.at(-1);
  return {
    rows: rows.map((row) => rowDetail(opened, row)),
    proof: last === undefined ? undefined : await proofOf(opened, last),
  };
}

function rowDetail({ texts }: OpenedSource, { position, text = '', payload }: SourceRow): RowDetail {
  const { stage, rules, tool } = readJson(text);
  const args = stage === 'enter' ? readJson(payload?.body) : {};
  const fields = textFields(rules, tool).filter((field) => args[field] !== undefined);
  return {
    position,
    text,
    contentHash: sha256Hex(text),
    payload: payload?.body,
    texts: fields.map((field) => [field, texts.shown(args[field])] as const),
  };
}

/** Leads a row to the root of the newest head that covers it, as an outsider would. */
async function proofOf(
  opened: OpenedSource,
  { position, text = '', proof }: SourceRow,
): Promise<CallDetail['proof']> {
  const head = newestHead(opened.verdict.judged);
  if (head === undefined || head.size < position) return undefined;
  const { size, root } = head;
  try {
    const index = position - 1;
    const steps = opened.source.whole
      ? await inclusionProof(treeOf(opened, size), index, size)
      : (proof ?? []);
    verifyInclusion({ index, size, leafHash: leafHash(sha256Hex(text)), root, proof: steps });
    return { size, steps: steps.length, holds: true };
  } catch {
    return { size, steps: 0, holds: false };
  }
}

function newestHead(judged: readonly Judged[]): Judged | undefined {
  return judged
    .filter(({ status }) => status === 'consistent')
    .reduce<Judged | undefined>(
      (best, one) => (best !== undefined && best.size >= one.size ? best : one),
      undefined,
    );
}

const trees = new WeakMap<OpenedSource, NodeReader>();

/** The tree over the rows, hashed once and only when somebody asks. */
function treeOf(opened: OpenedSource, size: number): NodeReader {
  const known = trees.get(opened);
  if (known !== undefined) return known;
  const { read } = opened.source;
  const leaves = Array.from({ length: size }, (_, i) => leafHash(sha256Hex(read.get(i + 1)?.text ?? '')));
  const tree = nodesInMemory(leaves);
  trees.set(opened, tree);
  return tree;
}

/** Holds a key that somebody got another way against those that signed. */
export function compareKey({ verdict }: OpenedSource, text: string): Comparison {
  const own = verdict.checkpointed.find(({ key, known }) => known && key === text);
  if (own !== undefined)
    return {
      state: 'agrees',
      message: `The key you gave has signed the first ${own.through} rows of this log.`,
    };
  return {
    state: 'disagrees',
    message: 'The key you gave has signed nothing here: somebody else signed this.',
  };
}

/** What the verifier says of a checkpoint that somebody kept. */
export function comparisonOf({ status, message, key }: Judged): Comparison {
  if (status === 'consistent') return { state: key === undefined ? 'unknown' : 'agrees', message };
  return { state: status === 'unchecked' || status === 'nothing' ? 'unknown' : 'disagrees', message };
}
