import { createRowProver, type RowProver } from '../export/row-proofs.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { rootAt } from '../integrity/proofs.ts';
import { checkStamp, type FoundAnchor, type StampVerdict } from '../log/anchors-found.ts';
import { payloadHash } from '../log/row.ts';
import { logNodes } from '../log/tree.ts';
import { auditRow, type Finding } from '../log/verify/finding.ts';
import type { Reader } from '../storage/engine.ts';
import type { PastCall, PastRow } from './history.ts';
import type { AnchoredHead, SignedHead, SignedHeads } from './signed-heads.ts';

/**
 * How well an audit row is proved. `anchored` and `checkpointed`: its text was hashed here and leads to the root of a head
 * whose signature was checked here. `unsigned`: no head covers it yet. `unchecked`: no key of the log is known here.
 * `wrong`: it is not what was signed, or what lies beside it is not what it says.
 */
export type ProofState = 'anchored' | 'checkpointed' | 'unsigned' | 'unchecked' | 'wrong';

/** The weakest of a call's rows speaks for the call. */
const WEAKEST_FIRST: readonly ProofState[] = ['wrong', 'unchecked', 'unsigned', 'checkpointed', 'anchored'];

export interface ShownAnchor {
  readonly source: FoundAnchor['source'];
  readonly where: string;
  /** Audit rows that the anchored checkpoint covers. */
  readonly size: number;
  /** What a time stamp says. */
  readonly time?: string;
}

export interface RowProof {
  readonly state: ProofState;
  /** Audit rows that the checkpoint covers which the row leads to. */
  readonly checkpoint?: number;
  readonly anchors: readonly ShownAnchor[];
}

/** Of several heads that cover a row the oldest tells most of since when it stands; the newest serves many rows at once. */
type Order = 'oldest' | 'newest';

/**
 * Proves single rows against what is signed and anchored, without reading the log as a whole. What it says of a row holds
 * for that row; that nothing else was changed is for `colibri verify` to say.
 */
export class ProofDesk {
  /** Heads that what was proved so far contradicts. */
  readonly contradictions = new Map<SignedHead, Finding>();
  readonly #tx: Reader;
  readonly #heads: SignedHeads;
  readonly #size: number;
  readonly #provers = new Map<SignedHead, RowProver>();
  readonly #stamps = new Map<string, StampVerdict>();

  private constructor(tx: Reader, heads: SignedHeads, size: number) {
    this.#tx = tx;
    this.#heads = heads;
    this.#size = size;
  }

  /** The heads must have been read before the snapshot was taken: one that reaches further then means that rows were cut off. */
  static async open(tx: Reader, heads: SignedHeads): Promise<ProofDesk> {
    const last = await tx.get<{ size: number | null }>('SELECT max(position) AS size FROM actions');
    return new ProofDesk(tx, heads, last?.size ?? 0);
  }

  /** What could not be looked at. */
  get remarks(): readonly string[] {
    const unchecked = [...this.#stamps.values()].flatMap((stamp) =>
      stamp.state === 'valid' ? [] : stamp.message,
    );
    return [...this.#heads.remarks, ...unchecked];
  }

  async prove(position: number, text: string, order: Order): Promise<RowProof> {
    if (!this.#heads.knowsKey) return { state: 'unchecked', anchors: [] };
    const contentHash = sha256Hex(text);
    const anchors: ShownAnchor[] = [];
    let covered = false;
    for (const source of ['git', 'tsr', 'file'] as const) {
      const head = covering(this.#heads.anchors, position, order).find(
        ({ anchor }) => anchor.source === source && this.#counts(anchor),
      );
      covered ||= head !== undefined && !head.isRetired;
      if (head !== undefined && (await this.#leadsTo(head, position, contentHash)))
        anchors.push(this.#describe(head));
    }
    const heads = covering(this.#heads.checkpoints, position, order);
    covered ||= heads.some(({ isRetired }) => !isRetired);
    // A second one, from the other end: where the newest rows were cut off, an older head still vouches for this one.
    const tried = heads.length < 2 ? heads : [heads[0], heads.at(-1)];
    let checkpoint: number | undefined;
    for (const head of tried)
      if (checkpoint === undefined && head && (await this.#leadsTo(head, position, contentHash)))
        checkpoint = head.size;
    const proved = anchors.length > 0 ? 'anchored' : checkpoint === undefined ? undefined : 'checkpointed';
    return {
      state: proved ?? (covered ? 'wrong' : 'unsigned'),
      ...(checkpoint !== undefined && { checkpoint }),
      anchors,
    };
  }

  /** A call is proved when both of its rows are, and what lies beside them is what they say. */
  async ofCall({ enter, exit }: PastCall): Promise<ProofState> {
    const rows = enter === undefined ? [exit] : [enter, exit];
    if (rows.some(isChanged)) return 'wrong';
    const states: ProofState[] = [];
    for (const { position, text } of rows) states.push((await this.prove(position, text, 'newest')).state);
    return WEAKEST_FIRST.find((state) => states.includes(state)) ?? 'unsigned';
  }

  /** Audit rows under the newest signed checkpoint that the log, as its stored hashes tell it, leads to. */
  async signedThrough(): Promise<number> {
    const nodes = logNodes(this.#tx);
    for (const { size, root } of this.#heads.checkpoints.toReversed())
      if (size <= this.#size && (await rootAt(nodes, size).catch(() => undefined)) === root) return size;
    return 0;
  }

  async #leadsTo(head: SignedHead, position: number, contentHash: string): Promise<boolean> {
    if (head.size > this.#size) {
      const message = `${head.where} covers ${head.size} audit rows, but only ${this.#size} are there: the newest were cut off.`;
      return this.#contradict(head, { kind: 'cut-tail', table: 'checkpoint', record: head.where, message });
    }
    const prover = this.#provers.get(head) ?? createRowProver(this.#tx, head);
    this.#provers.set(head, prover);
    try {
      await prover(position, contentHash);
      return true;
    } catch {
      // Rows that are gone, that are no hashes, or that lead to another root: in each case it is not what was signed.
      const message = `Audit row ${position} is not in the log of ${head.size} rows that ${head.where} signs: history was rewritten.`;
      const record = auditRow(position);
      return this.#contradict(head, { kind: 'rewritten', table: 'checkpoint', record, position, message });
    }
  }

  #contradict(head: SignedHead, finding: Finding): false {
    if (!head.isRetired && !this.contradictions.has(head)) this.contradictions.set(head, finding);
    return false;
  }

  /** A time stamp counts only once its authority was checked. */
  #counts(anchor: FoundAnchor): boolean {
    return anchor.source !== 'tsr' || this.#stampOf(anchor)?.state === 'valid';
  }

  #stampOf(anchor: FoundAnchor): StampVerdict | undefined {
    if (anchor.source !== 'tsr') return undefined;
    const { tokenPath } = anchor.stamped;
    const verdict = this.#stamps.get(tokenPath) ?? checkStamp(anchor.stamped, this.#heads.authorities);
    this.#stamps.set(tokenPath, verdict);
    return verdict;
  }

  #describe({ size, where, anchor }: AnchoredHead): ShownAnchor {
    const stamp = this.#stampOf(anchor);
    return { source: anchor.source, where, size, ...(stamp?.state === 'valid' && { time: stamp.time }) };
  }
}

/** Whether a row's text is not what its hash says, or what lies beside it not what the row says. */
function isChanged({ text, contentHash, payload, digest }: PastRow): boolean {
  if (sha256Hex(text) !== contentHash) return true;
  return payload !== undefined && payloadHash(payload.salt, payload.body) !== digest;
}

function covering<H extends SignedHead>(heads: readonly H[], position: number, order: Order): H[] {
  const those = heads.filter(({ size }) => size >= position);
  return order === 'oldest' ? those : those.reverse();
}
