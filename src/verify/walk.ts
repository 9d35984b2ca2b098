import { READING_TOOLS } from '../domains/rules.ts';
import { HASH_CHARS, sha256Hex } from '../integrity/digest.ts';
import {
  formatId,
  parseId,
  rowText,
  STATE_TABLES,
  type StateTable,
  type StateTableName,
  TASKS,
} from '../log/tables.ts';
import { isReceipt, isTransfer } from '../log/transfer.ts';
import type { NamedText } from '../storage/text-ids.ts';
import { type Report, rowFinding } from './finding.ts';
import { LastSeen } from './last-seen.ts';
import { type Entry, Memory, type RowsById } from './memory.ts';
import { TaskCalls } from './named.ts';
import { type Difference, forbidden, isRefused, NEWEST_RULES, replay, writingRule } from './replay.ts';
import { checkArguments, FORMS, ofTool } from './rules/arguments.ts';
import { checkEffects, checkStateRow, differingColumns } from './rules/effects.ts';
import { Filings } from './rules/filings.ts';
import type { KeyAct } from './rules/heads.ts';
import { Links, LostRows } from './rules/links.ts';
import { type OpenCall, Pairing } from './rules/pairing.ts';
import { checkPayload, type JsonObject, objectIn, parseBody, textsIn } from './rules/payloads.ts';
import { FormError, type ReadEffect, type ReadRow, readRow } from './rules/row-form.ts';
import { Texts } from './rules/texts.ts';
import { Times } from './rules/times.ts';
import type { Source, SourceRow, SourceText } from './source.ts';

/** A row as it was read, before anything about it is believed. */
interface Read {
  readonly source: SourceRow;
  readonly row: ReadRow | undefined;
  readonly fault: FormError | undefined;
  readonly body: JsonObject | undefined;
}

/** What a page of rows needs besides the rows, and what is left to do when it was judged. */
interface Page {
  readonly texts: ReadonlyMap<number, SourceText>;
  readonly states: ReadonlyMap<StateTableName, ReadonlyMap<number, string>>;
  readonly differences: Difference[];
}

/**
 * Reads the rows in their order and holds each against every rule. What is fetched is fetched for a page at a time; in
 * between everything is one loop without a pause.
 */
export class Walk {
  readonly links: Links;
  readonly texts: Texts;
  readonly acts: KeyAct[] = [];
  readonly filings = new Filings();
  /** The first position whose call could not be run again. */
  firstUnreplayed = Number.POSITIVE_INFINITY;
  readonly #memory: Memory;
  readonly #source: Source;
  readonly #report: Report;
  readonly #lost = new LostRows();
  readonly #times = new Times();
  readonly #pairing: Pairing;
  readonly #lastSeen = new LastSeen();
  readonly #taskCalls = new TaskCalls();
  readonly #hashes = new Map<number, string>();
  /** Where the log was transferred last, and how the place is called that it went to. */
  transfer: { readonly position: number; readonly to: string } | undefined;
  #payloads = 0;
  #isNewer = false;
  #isDamaged = false;
  #lostArguments = false;
  /** The last exit row that ends no call as it says. */
  #lastUnpaired = 0;
  readonly #doubtfulExits = new Set<number>();

  constructor(source: Source, report: Report, sizes: Iterable<number>) {
    const { whole } = source;
    this.#source = source;
    this.#report = report;
    this.links = new Links({ whole, lost: this.#lost, report, sizes });
    this.texts = new Texts(report);
    this.#memory = new Memory(source, this.#lost, this.#lastSeen);
    this.#pairing = new Pairing(this.#lost, report);
  }

  async page(rows: readonly SourceRow[]): Promise<void> {
    const read = rows.map(readSourceRow);
    const page = await this.#fetch(read);
    // From the end, and gone when it was judged: what is no longer needed is not moved by the garbage collector.
    read.reverse();
    for (let one = read.pop(); one !== undefined; one = read.pop()) this.#judge(one, page);
    for (const difference of page.differences) await this.#tellDifference(difference);
  }

  /** The source broke off: what follows is unknown. */
  breakOff(): void {
    this.#isDamaged = true;
    this.links.firstBreak = Math.min(this.links.firstBreak, this.links.position + 1);
    this.#lost.add(this.links.position + 1, Number.MAX_SAFE_INTEGER);
  }

  /** After the last row. */
  async end(now: number): Promise<void> {
    this.#times.end(now, this.#report);
    await this.texts.lookAgain(this.#source);
    if (!this.#isNewer && !this.#isDamaged) this.texts.finish(this.#memory.isStrict);
    for (const table of STATE_TABLES) if (!table.appendOnly) await this.#checkFinal(table);
  }

  /** What a source compares the rest of itself with. `found` are the records that a finding was made against, as findings name them. */
  walked(found: ReadonlySet<string>) {
    const open = new Map<number, string>();
    const doubtful = new Set<number>();
    for (const [position, { enter }] of this.#pairing.open) {
      open.set(position, enter.process);
      if (position < Math.max(this.#lost.last, this.#lastUnpaired)) doubtful.add(position);
    }
    return {
      found,
      /** The last position that was read, and how many rows were. */
      size: this.links.position,
      rows: this.links.rows,
      root: this.links.root(),
      /** Root of each full block of 256 rows. Only of a whole log. */
      blocks: this.links.blocks,
      /** Undefined for a row that is not there or not as it was written. */
      contentHashAt: (position: number) => this.#hashes.get(position),
      /** Calls that have no exit row yet, with the process that began each. */
      open,
      /** Calls of which nobody can say whether they ended: a row behind them is lost or ends no call, and was reported. */
      doubtful,
      /** Exit rows whose calls are not what they say: what was derived from them follows from that. */
      doubtfulExits: this.#doubtfulExits,
      /** The time of the last row of each process and actor; undefined where rows name one that cannot be theirs. */
      lastSeen: this.#lastUnpaired > 0 ? undefined : this.#lastSeen,
      /** How many rows each table of state must have: the largest id that was ever written. */
      created: this.#memory.created,
      /** How many texts the rows name and the source has; undefined where arguments are lost, so that nobody can say. */
      texts: this.#lostArguments ? undefined : this.texts.present,
      missingTexts: this.texts.missing,
      /** Texts that are not what was said. */
      badTexts: this.texts.bad,
      /** The texts that the owner has erased, with the exit row that says so and the task it names. */
      erasedTexts: this.texts.erasedBy,
      /** How many payloads there are beside rows. */
      payloads: this.#payloads,
      /** Exit positions of writing calls by the task they name or made; undefined where lost rows leave gaps in them. */
      taskCalls: this.#lost.isEmpty ? this.#taskCalls : undefined,
      /** Derived columns of a task as they must be; undefined where nobody can say. */
      derivedOf: (task: number) => this.#memory.derivedOf(task),
      /** Whether every row was read and is as it was written. Else what the lost ones said cannot be told. */
      isComplete: this.#lost.isEmpty,
      /** Whether a position is lost: its row is missing or unreadable. */
      isLost: (position: number) => this.#lost.has(position),
    };
  }

  async #fetch(read: readonly Read[]): Promise<Page> {
    const named: NamedText[] = [];
    const ids = new Map<StateTable, number[]>();
    for (const { source, row, body } of read) {
      if (row === undefined) continue;
      if (row.stage === 'enter') {
        for (const field of writingRule(row.rules, row.tool)?.texts ?? []) {
          const value = body?.[field];
          if (typeof value === 'string' && value.length === HASH_CHARS)
            named.push({ call: source.position, digest: value });
        }
      }
      for (const { of, number } of row.effects) {
        // Tasks change often and are read once, in the end; in part of a log they are all there is to know them by.
        if (of === TASKS && this.#source.whole) continue;
        const wanted = ids.get(of);
        if (wanted === undefined) ids.set(of, [number]);
        else wanted.push(number);
      }
    }
    const texts = named.length === 0 ? new Map<number, SourceText>() : await this.#source.texts(named);
    const states = new Map<StateTableName, ReadonlyMap<number, string>>();
    for (const [table, numbers] of ids) states.set(table.name, await this.#source.states(table, numbers));
    return { texts, states, differences: [] };
  }

  #judge(read: Read, page: Page): void {
    const { source } = read;
    if (source.payload !== undefined) this.#payloads += 1;
    const contentHash = this.links.follow(source);
    if (contentHash === undefined) return;
    if (this.#source.hashed?.has(source.position)) this.#hashes.set(source.position, contentHash);
    const row = this.#formed(read);
    if (row === undefined) {
      this.#lost.add(source.position);
      return;
    }
    const mark = this.links.marks.get(row.position);
    if (mark !== undefined) mark.at = row.at;
    if (isReceipt(row) || row.position - 1 === this.transfer?.position) this.#checkTransfer(row);
    this.#times.follow(row.position, row.at, this.#report);
    this.#lastSeen.note(row.process, row.actor, row.at);
    this.filings.follow(row);
    if (row.stage === 'enter') this.#judgeEnter(row, read, page);
    else this.#judgeExit(row, contentHash, read, page);
  }

  /** The row, if it is one that Colibri writes. Reports one that is not. */
  #formed({ source: { position }, row, fault }: Read): ReadRow | undefined {
    if (this.#isNewer) return undefined;
    if (row?.position === position) return row;
    if (fault?.newer !== undefined) {
      this.#isNewer = true;
      this.#notReplayed(position);
      const message = `Audit row ${position} was written under version ${fault.newer} of the rules, and this verifier knows them up to ${NEWEST_RULES}: from there on, only hashes and links were checked. Use a newer Colibri.`;
      this.#report(rowFinding('newer-rules', position, message));
      return undefined;
    }
    const why = fault?.message ?? `it says that it is row ${row?.position}`;
    const message = `Audit row ${position} is not one that Colibri writes: ${why}.`;
    this.#report(rowFinding('malformed', position, message, { columns: ['text'] }));
    return undefined;
  }

  #judgeEnter(row: ReadRow, { source, body: parsed }: Read, { texts }: Page): void {
    const { position, tool } = row;
    const rule = writingRule(row.rules, tool);
    if (rule === undefined && row.schema_valid && !READING_TOOLS.has(tool)) {
      const message = `Audit row ${position} says that ${JSON.stringify(tool)} was called and accepted, but there is no such tool.`;
      this.#report(rowFinding('forbidden', position, message, { columns: ['tool'] }));
    }
    const forms = ofTool(FORMS, row.rules, tool);
    const args = checkPayload(row, source.payload, parsed, forms, this.#report);
    if (args === undefined) {
      if (rule !== undefined && row.schema_valid) this.#lostArguments = true;
      this.#pairing.open.set(position, { enter: row, args, text: undefined, isFit: true });
      return;
    }
    const said = this.texts.check(position, args, rule?.texts ?? [], texts);
    const isFit = checkArguments(row, forms, args, said, this.#report);
    this.#pairing.open.set(position, { enter: row, args, text: said.content ?? said.reason, isFit });
  }

  #judgeExit(exit: ReadRow, contentHash: string, { source, body: parsed }: Read, page: Page): void {
    const { position, effects } = exit;
    const ended = this.#pairing.end(exit);
    if (ended === 'none') {
      // It says nothing that can be relied on.
      this.#lastUnpaired = position;
      this.#lostArguments = true;
      this.#doubtfulExits.add(position);
      this.#notReplayed(position);
      checkEffects(exit, this.#memory, this.#report);
      this.#distrust(exit, contentHash, storedRows(effects, page.states));
      return;
    }
    const call = ended === 'lost' ? undefined : ended;
    const rule = writingRule(exit.rules, exit.tool);
    const forms = ofTool(FORMS, exit.rules, exit.tool);
    const body = checkPayload(exit, source.payload, parsed, forms, this.#report);
    if (rule === undefined) {
      if (effects.length > 0) this.#tellReadingEffects(exit, contentHash);
    } else {
      const difference = this.#runAgain(exit, rule, call, body, contentHash, page);
      if (difference !== undefined) page.differences.push(difference);
      const lacks = call?.args === undefined || (exit.outcome !== 'crashed' && body === undefined);
      if (difference !== undefined || (exit.schema_valid && lacks)) this.#doubtfulExits.add(position);
    }
    if (isTransfer(exit)) this.transfer = { position, to: String(objectIn(body?.result)?.to ?? '') };
    this.texts.end(exit, call?.args);
    if (exit.tool === 'owner_erase' && exit.outcome === 'ok' && call?.args !== undefined)
      this.texts.erase(
        { exit, args: call.args, digests: textsIn(objectIn(body?.result)?.digests), because: call.text },
        this.#memory.isStrict,
      );
  }

  /** A log that was transferred goes on with the row that receives it, and that row follows nothing else. */
  #checkTransfer(row: ReadRow): void {
    const { position, tool } = row;
    const isDue = position - 1 === this.transfer?.position;
    if (isDue && isReceipt(row)) return;
    // What came before it, nobody can say here.
    if (!isDue && !(this.#source.whole && !this.#lost.has(position - 1))) return;
    const why = isDue
      ? `follows the transfer of the log, which only owner_receive may`
      : `receives a log that was not transferred`;
    this.#report(forbidden(row, `Audit row ${position} (${tool}) ${why}.`, ['tool']));
  }

  #runAgain(
    exit: ReadRow,
    rule: NonNullable<ReturnType<typeof writingRule>>,
    call: OpenCall | undefined,
    body: JsonObject | undefined,
    contentHash: string,
    { states }: Page,
  ): Difference | undefined {
    const { position, effects } = exit;
    const arePossible = checkEffects(exit, this.#memory, this.#report);
    const args = arePossible && call?.isFit === true ? call.args : undefined;
    const rows = storedRows(effects, states);
    const refused = isRefused(exit);
    const result = objectIn(body?.result);
    const ended = { exit, contentHash, refused, args, body, result, rows, content: call?.text };
    const replayed = replay(rule, ended, this.#memory);
    const { written, texts } = replayed;
    if (!replayed.isJudged) this.#notReplayed(position);
    for (let i = 0; i < effects.length; i += 1) {
      const effect = effects[i];
      if (effect?.of.appendOnly !== true) continue;
      const text = states.get(effect.of.name)?.get(effect.number);
      if (text === undefined || text !== texts[i])
        checkStateRow(effect, position, text, written[i]?.row, this.#report);
    }
    if (call?.args !== undefined) this.#note(exit, call.args);
    return replayed.difference;
  }

  /** What the ranges and the derived tables need of a call. */
  #note({ position, tool, outcome, effects }: ReadRow, args: JsonObject): void {
    const made = tool === TASKS.createdBy ? effects.find(({ of }) => of === TASKS)?.id : args.task_id;
    const task = typeof made === 'string' ? parseId(TASKS, made) : undefined;
    if (task !== undefined) this.#taskCalls.add(task, position);
    if (outcome !== 'ok' || typeof args.key !== 'string' || !KEY_ACTS.has(tool)) return;
    this.acts.push({ position, tool, key: args.key, args });
  }

  #notReplayed(position: number): void {
    this.firstUnreplayed = Math.min(this.firstUnreplayed, position);
  }

  /** Takes in effects that no rule explains. */
  #distrust(exit: ReadRow, contentHash: string, rows: RowsById): void {
    this.#memory.learn({ exit, contentHash, refused: false, rows }, true);
  }

  #tellReadingEffects(exit: ReadRow, contentHash: string): void {
    const { position, tool, effects } = exit;
    this.#distrust(exit, contentHash, new Map());
    const message = `Audit row ${position} says that ${tool}, which only reads, wrote ${effects.map(({ id }) => id).join(', ')}.`;
    this.#report(forbidden(exit, message, ['effects']));
  }

  /** The columns of a row that is not what the rules give are known if it is still the row that the call wrote. */
  async #tellDifference({ row, ...finding }: Difference): Promise<void> {
    if (row === undefined) {
      this.#report(finding);
      return;
    }
    const text = (await this.#source.states(row.of, [row.id])).get(row.id);
    const actual = text !== undefined && sha256Hex(text) === row.hash ? parseBody(text) : undefined;
    const columns = actual === undefined ? ['effects'] : differingColumns(row.of, row.expected, actual);
    const what =
      actual === undefined ? 'the row they give has another digest' : `${columns.join(', ')} must be another`;
    this.#report({ ...finding, columns, message: `${finding.message}: ${what}.` });
  }

  /** Rows of state that can change, each as its last effect left it. */
  async #checkFinal(table: StateTable): Promise<void> {
    const entries = [...(this.#memory.entriesOf(table) ?? [])].filter(([, { last }]) => last > 0);
    for (let i = 0; i < entries.length; i += FINAL_PAGE) {
      const page = entries.slice(i, i + FINAL_PAGE);
      const ids = page.map(([id]) => id);
      const found = await this.#source.states(table, ids);
      for (const [id, entry] of page) this.#checkFinalRow(table, id, entry, found.get(id));
    }
  }

  #checkFinalRow(table: StateTable, id: number, entry: Entry, text: string | undefined): void {
    const { row, last, hash: said } = entry;
    const name = formatId(table, id);
    const expected = row?.position === last ? objectIn(row) : undefined;
    const expectedText = expected === undefined ? undefined : rowText(table, expected);
    if (text !== undefined && (said === undefined ? text === expectedText : sha256Hex(text) === said)) return;
    const hash = said ?? sha256Hex(expectedText ?? '');
    const isOurs = this.#source.whole || this.#source.complete?.has(name) === true;
    const position = text === undefined ? undefined : parseBody(text)?.position;
    // Whoever wrote it after that is not here.
    if (!isOurs && (text === undefined || (typeof position === 'number' && position > last))) return;
    if (typeof position === 'number' && position !== last && this.#lost.has(position)) return;
    checkStateRow({ of: table, id: name, hash }, last, text, expected, this.#report);
  }
}

const FINAL_PAGE = 500;
const KEY_ACTS: ReadonlySet<string> = new Set(['owner_adopt', 'owner_trust', 'key_join']);

function readSourceRow(source: SourceRow): Read {
  const { text, payload } = source;
  if (text === undefined) return { source, row: undefined, fault: undefined, body: undefined };
  try {
    const row = readRow(text, NEWEST_RULES);
    const body = payload === undefined ? undefined : parseBody(payload.body);
    return { source, row, fault: undefined, body };
  } catch (error) {
    if (!(error instanceof FormError)) throw error;
    return { source, row: undefined, fault: error, body: undefined };
  }
}

/** The rows of state that a call left, as far as they are still there. */
function storedRows(effects: readonly ReadEffect[], states: Page['states']): RowsById {
  return {
    get(id) {
      const effect = effects.find((one) => one.id === id);
      const text = effect === undefined ? undefined : states.get(effect.of.name)?.get(effect.number);
      return text !== undefined && sha256Hex(text) === effect?.hash ? parseBody(text) : undefined;
    },
  };
}
