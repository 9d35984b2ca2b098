import { sha256Hex } from '../../../integrity/digest.ts';
import { inclusionProof, type NodeReader, nodesInMemory } from '../../../integrity/proofs.ts';
import { leafHash } from '../../../integrity/tree.ts';
import type { SourceRow } from '../../../verify/source.ts';
import { members } from '../../../verify/sources/forms.ts';
import { isIncluded } from '../../../verify/sources/proofs.ts';
import { textFields } from '../../telling.ts';
import { type Given, judgeAgain, type OpenedSource, openSource } from './open.ts';

// All hashing happens here, off the thread that draws.

let current: OpenedSource | undefined;
let tree: NodeReader | undefined;

function opened(): OpenedSource {
  if (current === undefined) throw new Error('nothing is open');
  return current;
}

const ANSWERS = {
  /** Checks a bundle or a certificate. */
  async open(given: Given) {
    current = undefined;
    tree = undefined;
    current = await openSource(given, tellProgress);
    return current.shown;
  },
  detail: (positions: readonly number[]) => detailOf(opened(), positions),
  compare: (text: string) => compare(opened(), text),
};
export type Answers = typeof ANSWERS;

export interface Message {
  /** Rows checked so far, and of how many. */
  readonly progress?: readonly [done: number, total: number];
  /** Why there is no answer, for people. */
  readonly unreadable?: string;
  readonly answer?: unknown;
}

self.onmessage = async ({ data: [name, given] }: MessageEvent<[keyof Answers, never]>) => {
  try {
    self.postMessage({ answer: await ANSWERS[name](given) } satisfies Message);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    self.postMessage({ unreadable: `This cannot be read: ${reason}.` } satisfies Message);
  }
};

let toldAt = 0;

/** A few times a second: each message makes the page draw. */
function tellProgress(done: number, total: number): void {
  const now = performance.now();
  if (now - toldAt < 100 && done !== total) return;
  toldAt = now;
  self.postMessage({ progress: [done, total] } satisfies Message);
}

export type CallDetail = Awaited<ReturnType<typeof detailOf>>;
export type RowDetail = CallDetail['rows'][number];

/** The rows of a call with their attached data, and the proof of the last one under a signed root. */
async function detailOf(opened: OpenedSource, positions: readonly number[]) {
  const rows = positions.flatMap((position) => opened.read.get(position) ?? []);
  const last = rows.at(-1);
  return {
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

/** The tree over the rows, hashed once and only when somebody asks. */
function treeOf({ read }: OpenedSource, size: number): NodeReader {
  const text = (i: number) => read.get(i + 1)?.text ?? '';
  tree ??= nodesInMemory(Array.from({ length: size }, (_, i) => leafHash(sha256Hex(text(i)))));
  return tree;
}

export interface Comparison {
  readonly tone: 'good' | 'bad' | 'partly';
  readonly message: string;
}

const KEY = /^[^\s+]+\+[0-9a-f]{8}\+\S+$/;

/** Compares a key or a checkpoint that somebody kept elsewhere with what was opened. */
async function compare(opened: OpenedSource, given: string): Promise<Comparison> {
  const text = given.trim();
  if (KEY.test(text)) return compareKey(opened, text);
  if (!text.includes('\n'))
    return unknown('This is neither a key (name+id+key) nor a checkpoint of several lines.');
  if (!opened.source.whole)
    return unknown('Only a bundle of the whole log can be compared with a checkpoint.');
  // The verifier is asked again, with the checkpoint: what it makes of one is not for this page to decide.
  const kept = { source: 'against', where: 'Your checkpoint', note: `${text}\n` } as const;
  const judged = await judgeAgain(opened.given, kept);
  if (judged === undefined) return unknown('Nothing could be compared.');
  const { status, message, key } = judged;
  if (status === 'consistent') return { tone: key === undefined ? 'partly' : 'good', message };
  return { tone: status === 'unchecked' || status === 'nothing' ? 'partly' : 'bad', message };
}

function compareKey({ verdict }: OpenedSource, text: string): Comparison {
  const own = verdict.checkpointed.find(({ key }) => key === text);
  return own === undefined
    ? { tone: 'bad', message: 'The key you gave has signed nothing here: somebody else signed this.' }
    : { tone: 'good', message: `The key you gave has signed the first ${own.through} rows of this log.` };
}

function unknown(message: string): Comparison {
  return { tone: 'partly', message };
}
