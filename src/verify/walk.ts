import { READING_TOOLS } from '../domains/rules.ts';
import { sha256Hex } from '../integrity/digest.ts';
import type { AuditRow } from '../log/row.ts';
import {
  formatId,
  parseId,
  STATE_TABLES,
  type StateTable,
  type StateTableName,
  TASKS,
} from '../log/tables.ts';
import { ContentHashes } from './content-hashes.ts';
import { auditRow, type Report } from './finding.ts';
import { Memory, type RowsById } from './memory.ts';
import { type Difference, NEWEST_RULES, replay, writingRule } from './replay.ts';
import { checkArguments } from './rules/arguments.ts';
import { type ReadEffect, readEffects, Writes } from './rules/effects.ts';
import type { KeyAct } from './rules/heads.ts';
import { Links } from './rules/links.ts';
import { LostRows } from './rules/lost.ts';
import { type OpenCall, Pairing } from './rules/pairing.ts';
import { checkPayload, isObject, type JsonObject, parseBody } from './rules/payloads.ts';
import { ownText } from './rules/plain-row.ts';
import { FormError, NewerRules, readRow } from './rules/row-form.ts';
import { checkStateRow, differingColumns } from './rules/state.ts';
import { erasedDigests, Texts, textDigests } from './rules/texts.ts';
import { Times } from './rules/times.ts';
import type { Source, SourceRow, SourceText, Walked } from './source.ts';
import { TaskCalls } from './task-calls.ts';

/** A row as it was read, before anything about it is believed. */
interface ReadRow {
  readonly source: SourceRow;
  readonly row: AuditRow | undefined;
  readonly fault: FormError | NewerRules | undefined;
  readonly body: JsonObject | undefined;
  readonly effects: readonly ReadEffect[];
}

/** What a page of rows needs besides the rows. */
interface Fetched {
  readonly texts: ReadonlyMap<string, SourceText>;
  readonly states: ReadonlyMap<StateTableName, ReadonlyMap<number, string>>;
}

const NO_EFFECTS: readonly ReadEffect[] = [];

/**
 * Reads the rows in their order and holds each against every rule. What is fetched is fetched for a page at a time; in
 * between everything is one loop without a pause.
 */
export class Walk {
  readonly links: Links;
  readonly texts: Texts;
  readonly writes: Writes;
  readonly memory: Memory;
  readonly acts: KeyAct[] = [];
  /** The first position whose call could not be run again. */
  firstUnreplayed = Number.POSITIVE_INFINITY;
  readonly #source: Source;
  readonly #report: Report;
  readonly #lost = new LostRows();
  readonly #times = new Times();
  readonly #pairing: Pairing;
  readonly #lastSeen = new Map<string, string>();
  readonly #taskCalls = new TaskCalls();
  readonly #hashes: ContentHashes | undefined;
  #payloads = 0;
  #isNewer = false;
  #isDamaged = false;
  #lostArguments = false;
  #hasUnpaired = false;
  readonly #doubtfulExits = new Set<number>();

  constructor(source: Source, report: Report, sizes: Iterable<number>) {
    const { whole, complete } = source;
    this.#source = source;
    this.#report = report;
    this.links = new Links({ whole, lost: this.#lost, report, sizes });
    this.texts = new Texts(report);
    this.writes = new Writes(whole, this.#lost, report);
    this.memory = new Memory({ whole, complete, lost: this.#lost });
    this.#pairing = new Pairing(this.#lost, report);
    this.#hashes = source.dropsContentHashes === true ? undefined : new ContentHashes();
  }

  async page(rows: readonly SourceRow[]): Promise<void> {
    const read = rows.map(readSourceRow);
    const fetched = await this.#fetch(read);
    const differences: Difference[] = [];
    const erasing: { readonly exit: AuditRow; readonly digests: readonly string[] }[] = [];
    for (const one of read) this.#judge(one, fetched, differences, erasing);
    for (const difference of differences) await this.#tellDifference(difference);
    for (const { exit, digests } of erasing)
      this.texts.erase(exit, digests, await this.#source.texts(digests));
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
    if (!this.#isNewer && !this.#isDamaged) this.texts.end();
    for (const table of STATE_TABLES) if (!table.appendOnly) await this.#checkFinal(table);
  }

  get isNewer(): boolean {
    return this.#isNewer;
  }

  walked(found: ReadonlySet<string>): Walked {
    const open = new Map<number, string>();
    const doubtful = new Set<number>();
    for (const [position, { enter }] of this.#pairing.open) {
      if (writingRule(enter.rules, enter.tool) === undefined) continue;
      open.set(position, enter.process);
      if (position < this.#lost.last) doubtful.add(position);
    }
    return {
      size: this.links.position,
      rows: this.links.rows,
      root: this.links.root(),
      chainHash: this.links.chainHash,
      contentHashAt: (position) => this.#hashes?.get(position),
      open,
      doubtful,
      doubtfulExits: this.#doubtfulExits,
      lastSeen: this.#hasUnpaired ? undefined : this.#lastSeen,
      created: this.writes.created,
      texts: this.#lostArguments ? undefined : this.texts.present,
      badTexts: this.texts.bad,
      found,
      payloads: this.#payloads,
      blocks: this.links.blocks,
      taskCalls: this.#lost.isEmpty ? this.#taskCalls : undefined,
      derivedOf: (task) => this.memory.derivedOf(task),
      isComplete: this.#lost.isEmpty,
      isLost: (position) => this.#lost.has(position),
    };
  }

  async #fetch(read: readonly ReadRow[]): Promise<Fetched> {
    const digests: string[] = [];
    const ids = new Map<StateTable, number[]>();
    for (const { row, body, effects } of read) {
      if (row?.stage === 'enter' && body !== undefined) {
        const fields = writingRule(row.rules, row.tool)?.texts;
        if (fields !== undefined && fields.length > 0) digests.push(...textDigests(body, fields));
      }
      for (const { of, number } of effects) {
        // Tasks change often and are read once, in the end; in part of a log they are all there is to know them by.
        if (of === TASKS && this.#source.whole) continue;
        const wanted = ids.get(of);
        if (wanted === undefined) ids.set(of, [number]);
        else wanted.push(number);
      }
    }
    const texts = digests.length === 0 ? new Map<string, SourceText>() : await this.#source.texts(digests);
    const states = new Map<StateTableName, ReadonlyMap<number, string>>();
    for (const [table, numbers] of ids) states.set(table.name, await this.#source.states(table, numbers));
    return { texts, states };
  }

  #judge(
    read: ReadRow,
    fetched: Fetched,
    differences: Difference[],
    erasing: { readonly exit: AuditRow; readonly digests: readonly string[] }[],
  ): void {
    const { source } = read;
    if (source.payload !== undefined) this.#payloads += 1;
    const contentHash = this.links.follow(source);
    if (contentHash === undefined) return;
    this.#hashes?.set(source.position, contentHash);
    const row = this.#formed(read);
    if (row === undefined) {
      this.#lost.add(source.position);
      return;
    }
    const mark = this.links.marks.get(row.position);
    if (mark !== undefined) mark.at = row.at;
    this.#times.follow(row.position, row.at, this.#report);
    this.#lastSeen.set(this.#lastSeen.has(row.process) ? row.process : ownText(row.process), row.at);
    const rule = writingRule(row.rules, row.tool);
    if (rule === undefined && row.stage === 'enter' && row.schema_valid && !READING_TOOLS.has(row.tool))
      this.#tellUnknownTool(row);
    if (row.stage === 'exit') {
      this.#judgeExit(row, contentHash, read, fetched, differences, erasing);
      return;
    }
    const body = checkPayload(row, source.payload, read.body, rule !== undefined, this.#report);
    if (body === undefined && rule !== undefined && row.schema_valid) this.#lostArguments = true;
    const isWhole =
      body !== undefined && rule !== undefined && this.texts.check(row, body, rule.texts, fetched.texts);
    const isFit =
      body === undefined || checkArguments(row, body, fetched.texts, this.texts.bad, this.#report);
    this.#pairing.begin(row, { args: body, texts: isWhole ? textOf(body, fetched.texts) : NO_TEXTS, isFit });
  }

  #judgeExit(
    exit: AuditRow,
    contentHash: string,
    read: ReadRow,
    fetched: Fetched,
    differences: Difference[],
    erasing: { readonly exit: AuditRow; readonly digests: readonly string[] }[],
  ): void {
    const call = this.#pairing.end(exit);
    if (call === 'none') {
      this.#distrust(exit, read.effects, contentHash, fetched);
      return;
    }
    const isWriting = writingRule(exit.rules, exit.tool) !== undefined;
    const body = checkPayload(exit, read.source.payload, read.body, isWriting, this.#report);
    const difference = this.#judgeEnd(
      exit,
      call === 'lost' ? undefined : call,
      body,
      contentHash,
      read,
      fetched,
    );
    if (difference !== undefined) differences.push(difference);
    const isValid = isWriting && exit.schema_valid;
    const lacksArguments = isValid && (call === 'lost' || call.args === undefined);
    const lacks = lacksArguments || (isValid && exit.outcome !== 'crashed' && body === undefined);
    if (difference !== undefined || lacks) this.#doubtfulExits.add(exit.position);
    if (exit.tool === 'owner_erase' && exit.outcome === 'ok' && body !== undefined)
      erasing.push({ exit, digests: erasedDigests(body) });
  }

  /** An exit row that does not belong to its call says nothing that can be relied on. */
  #distrust(exit: AuditRow, effects: readonly ReadEffect[], contentHash: string, fetched: Fetched): void {
    this.#hasUnpaired = true;
    this.#lostArguments = true;
    this.#doubtfulExits.add(exit.position);
    this.firstUnreplayed = Math.min(this.firstUnreplayed, exit.position);
    this.writes.follow(exit, effects);
    const rows = new StoredRows(effects, fetched.states);
    this.memory.learn({ effects, rows, args: {}, result: undefined }, contentHash, true);
  }

  /** The row, if it is one that Colibri writes. Reports one that is not. */
  #formed({ source, row, fault }: ReadRow): AuditRow | undefined {
    const { position } = source;
    if (row !== undefined && row.position === position && !this.#isNewer) return row;
    if (this.#isNewer) return undefined;
    const base = { table: 'actions', record: auditRow(position), position };
    if (fault instanceof NewerRules) {
      this.#isNewer = true;
      this.firstUnreplayed = Math.min(this.firstUnreplayed, position);
      const message = `Audit row ${position} was written under version ${fault.version} of the rules, and this verifier knows them up to ${NEWEST_RULES}: from there on only hashes and links were checked. Use a newer Colibri.`;
      this.#report({ ...base, kind: 'newer-rules', message });
      return undefined;
    }
    const why = fault?.message ?? `it says that it is row ${row?.position}`;
    const message = `Audit row ${position} is not one that Colibri writes: ${why}.`;
    this.#report({ ...base, kind: 'malformed', columns: ['text'], message });
    return undefined;
  }

  #judgeEnd(
    exit: AuditRow,
    call: OpenCall | undefined,
    body: JsonObject | undefined,
    contentHash: string,
    read: ReadRow,
    fetched: Fetched,
  ): Difference | undefined {
    const { effects } = read;
    const rule = writingRule(exit.rules, exit.tool);
    if (rule === undefined) {
      if (effects.length > 0) this.#tellReadingEffects(exit, effects, contentHash);
      return undefined;
    }
    const arePossible = this.writes.follow(exit, effects);
    const rows = new StoredRows(effects, fetched.states);
    const args = arePossible && call?.isFit === true ? call.args : undefined;
    const text = (digest: string) => call?.texts.get(digest);
    const { difference, isJudged, written } = replay(
      { exit, contentHash, args, body, effects, rows, text },
      this.memory,
    );
    if (!isJudged) this.firstUnreplayed = Math.min(this.firstUnreplayed, exit.position);
    for (const effect of effects) {
      if (!effect.of.appendOnly) continue;
      const expected = written.find(
        ({ table, row }) => table === effect.table && row.id === effect.number,
      )?.row;
      checkStateRow(
        effect,
        exit.position,
        fetched.states.get(effect.of.name)?.get(effect.number),
        expected,
        this.#report,
      );
    }
    if (call?.args !== undefined) this.#note(exit, call.args, effects);
    return difference;
  }

  /** What the ranges and the derived tables need of a call. */
  #note(exit: AuditRow, args: JsonObject, effects: readonly ReadEffect[]): void {
    const made = exit.tool === TASKS.createdBy ? effects.find(({ of }) => of === TASKS)?.id : args.task_id;
    const task = typeof made === 'string' ? parseId(TASKS, made) : undefined;
    if (task !== undefined) this.#taskCalls.add(task, exit.position);
    if (exit.outcome !== 'ok' || typeof args.key !== 'string' || !KEY_ACTS.has(exit.tool)) return;
    const size = isObject(args.lost) ? args.lost.size : undefined;
    const { position, tool } = exit;
    this.acts.push({ position, tool, key: args.key, ...(typeof size === 'number' && { lost: { size } }) });
  }

  #tellUnknownTool({ position, tool }: AuditRow): void {
    const message = `Audit row ${position} says that ${JSON.stringify(tool)} was called and accepted, and there is no such tool.`;
    this.#report({
      kind: 'forbidden',
      table: 'actions',
      record: auditRow(position),
      position,
      columns: ['tool'],
      message,
    });
  }

  #tellReadingEffects(exit: AuditRow, effects: readonly ReadEffect[], contentHash: string): void {
    this.writes.take(exit, effects);
    this.memory.learn({ effects, rows: new Map(), args: {}, result: undefined }, contentHash, true);
    const named = effects.map(({ id }) => id).join(', ');
    this.#report({
      kind: 'forbidden',
      table: effects[0]?.table ?? 'actions',
      record: effects[0]?.id ?? auditRow(exit.position),
      position: exit.position,
      columns: ['effects'],
      message: `Audit row ${exit.position} says that ${exit.tool}, which only reads, wrote ${named}.`,
    });
  }

  /** The columns of a row that is not what the rules give are known if it is still the row that the call wrote. */
  async #tellDifference({ row, ...difference }: Difference): Promise<void> {
    const { position, table, record } = difference;
    let { message, columns } = difference;
    if (row !== undefined) {
      const text = (await this.#source.states(row.table, [row.id])).get(row.id);
      const actual = text !== undefined && sha256Hex(text) === row.hash ? parseBody(text) : undefined;
      columns = actual === undefined ? ['effects'] : differingColumns(row.table, row.expected, actual);
      const what =
        actual === undefined
          ? 'the row they give has another digest'
          : `${columns.join(', ')} must be another`;
      message = `Audit row ${position} did not write ${record} as the rules say: ${what}.`;
    }
    this.#report({ kind: 'forbidden', table, record, position, columns, message });
  }

  /** Rows of state that can change, each as its last effect left it. */
  async #checkFinal(table: StateTable): Promise<void> {
    const last = this.writes.lastOf(table);
    const ids = [...last.keys()];
    for (let i = 0; i < ids.length; i += FINAL_PAGE) {
      const page = ids.slice(i, i + FINAL_PAGE);
      const found = await this.#source.states(table, page);
      for (const id of page) this.#checkFinalRow(table, id, found.get(id));
    }
  }

  #checkFinalRow(table: StateTable, id: number, text: string | undefined): void {
    const last = this.writes.lastOf(table).get(id);
    if (last === undefined) return;
    const name = formatId(table, id);
    const isOurs = this.#source.whole || this.#source.complete?.has(name) === true;
    const position = text === undefined ? undefined : parseBody(text)?.position;
    // Whoever wrote it after that is not here.
    if (!isOurs && (text === undefined || (typeof position === 'number' && position > last.position))) return;
    if (typeof position === 'number' && position !== last.position && this.#lost.has(position)) return;
    const expected = this.memory.rowOf(table.name, id);
    const effect = { of: table, id: name, hash: last.hash };
    checkStateRow(
      effect,
      last.position,
      text,
      expected?.position === last.position ? expected : undefined,
      this.#report,
    );
  }
}

const FINAL_PAGE = 500;
const KEY_ACTS: ReadonlySet<string> = new Set(['owner_adopt', 'owner_trust', 'key_join']);

function readSourceRow(source: SourceRow): ReadRow {
  const nothing = { source, row: undefined, fault: undefined, body: undefined, effects: NO_EFFECTS };
  if (source.text === undefined) return nothing;
  try {
    const row = readRow(source.text, NEWEST_RULES);
    const body = source.payload === undefined ? undefined : parseBody(source.payload.body);
    const effects = row.effects.length === 0 ? NO_EFFECTS : readEffects(row);
    return { source, row, fault: undefined, body, effects };
  } catch (error) {
    if (error instanceof FormError || error instanceof NewerRules) return { ...nothing, fault: error };
    throw error;
  }
}

const NO_TEXTS: ReadonlyMap<string, string> = new Map();

/** The text that the hash of a thought is made of. It is needed when the call ends, which may be a page later. */
function textOf(
  args: JsonObject | undefined,
  texts: ReadonlyMap<string, SourceText>,
): ReadonlyMap<string, string> {
  const content = args?.content;
  const text = typeof content === 'string' ? texts.get(content)?.text : undefined;
  return text === undefined || typeof content !== 'string' ? NO_TEXTS : new Map([[content, text]]);
}

/** The rows of state that a call left, as far as they are still there. */
class StoredRows implements RowsById {
  readonly #effects: readonly ReadEffect[];
  readonly #states: Fetched['states'];

  constructor(effects: readonly ReadEffect[], states: Fetched['states']) {
    this.#effects = effects;
    this.#states = states;
  }

  get(id: string): JsonObject | undefined {
    const effect = this.#effects.find((one) => one.id === id);
    const text = effect === undefined ? undefined : this.#states.get(effect.of.name)?.get(effect.number);
    return text !== undefined && sha256Hex(text) === effect?.hash ? parseBody(text) : undefined;
  }
}
