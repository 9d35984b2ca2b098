import { sha256Hex } from '../../../integrity/digest.ts';
import { inclusionProof, type NodeReader, nodesInMemory } from '../../../integrity/proofs.ts';
import { leafHash } from '../../../integrity/tree.ts';
import type { SourceRow } from '../../../verify/source.ts';
import { members } from '../../../verify/sources/forms.ts';
import { isIncluded } from '../../../verify/sources/proofs.ts';
import type { Call, Thought } from '../../records.ts';
import { textFields } from '../../telling.ts';
import type { OpenedSource } from './open.ts';

/** A call with its rows, their attached data, and the proof of the last one under a signed root. */
export interface CallDetail {
  readonly call: Call;
  readonly thought: Thought | undefined;
  readonly rows: readonly RowDetail[];
  readonly proof: { readonly size: number; readonly steps: number; readonly holds: boolean } | undefined;
}

export type RowDetail = ReturnType<typeof rowDetail>;

export async function callDetail(opened: OpenedSource, call: Call): Promise<CallDetail> {
  const rows = [call.position, call.exit].flatMap((position) => opened.read.get(position) ?? []);
  const last = rows.at(-1);
  return {
    call,
    thought: opened.thoughts.find(({ id }) => id === call.thought),
    rows: rows.map((row) => rowDetail(opened, row)),
    proof: last === undefined ? undefined : await proofOf(opened, last),
  };
}

function rowDetail({ text: shown }: OpenedSource, { position, text = '', payload }: SourceRow) {
  const fields = members(text);
  const args = fields.stage === 'enter' ? members(payload?.body) : {};
  return {
    position,
    text,
    contentHash: sha256Hex(text),
    payload: payload?.body,
    /** The texts whose digests are in the payload, by field. */
    texts: textFields(fields, args).map((field) => [field, shown(args[field])] as const),
  };
}

/** Leads a row to the root of the newest head that covers it, as an outsider would. */
async function proofOf(opened: OpenedSource, { position, text = '', proof = [] }: SourceRow) {
  const good = opened.verdict.judged.filter(({ status }) => status === 'consistent');
  const [head] = good.sort((a, b) => b.size - a.size);
  if (head === undefined || head.size < position) return undefined;
  const { size } = head;
  const index = position - 1;
  const steps = opened.source.whole ? await inclusionProof(treeOf(opened, size), index, size) : proof;
  return { size, steps: steps.length, holds: isIncluded(index, steps, sha256Hex(text), head) };
}

const trees = new WeakMap<OpenedSource, NodeReader>();

/** The tree over the rows, hashed once and only when somebody asks. */
function treeOf(opened: OpenedSource, size: number): NodeReader {
  const text = (i: number) => opened.read.get(i + 1)?.text ?? '';
  const tree =
    trees.get(opened) ?? nodesInMemory(Array.from({ length: size }, (_, i) => leafHash(sha256Hex(text(i)))));
  trees.set(opened, tree);
  return tree;
}
