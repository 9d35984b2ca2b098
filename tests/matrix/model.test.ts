import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/integrity/canonical-json.ts';
import { formatId } from '../../src/log/tables.ts';
import { type Random, seededRandom } from '../driver/random.ts';
import { figure, tier } from '../driver/tier.ts';
import { type Cells, ForgedLog, type ForgedRow, isWriting, type JsonObject, object } from './forge.ts';
import { type PlayedHistory, playHistory } from './random-history.ts';
import { judgeDatabase, type Place, placeIn } from './sources.ts';

// Random legal histories replay clean, and one illegal change anywhere in one is always found and named. The log is put
// together again and signed by the owner of the key each time, so that nothing but the rules can tell.

const HISTORIES = tier(1, 40);
const CALLS = tier(120, 300);
const CHANGES = tier(12, 100);

const folder = mkdtempSync(join(tmpdir(), 'colibri-model-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(Array.from({ length: HISTORIES }, (_, i) => i + 1))('R38: history %i', (number) => {
  const random = seededRandom(`model-${number}`);
  let played: PlayedHistory;

  test('replays clean', async () => {
    played = await playHistory(join(folder, `honest-${number}`), random, CALLS);
    const place = placeOf(played);

    const { findings, verdict } = await judgeDatabase(place);

    expect(findings).toEqual([]);
    expect(verdict.replayedThrough).toBe(verdict.size);
    // A history in which nothing succeeds, or nothing is refused, shows little.
    expect(played.ends.get('ok')).toBeGreaterThan(2);
    expect(played.ends.size).toBeGreaterThan(3);
  });

  test('with one illegal change in one row, is always found out, and the row is named', async () => {
    const missed: string[] = [];
    for (let i = 0; i < CHANGES; i += 1) {
      const log = new ForgedLog(played.dbPath, played.configDir, played.versions);
      const { what, records } = changeOne(log, random);
      const place = placeIn(join(folder, `forged-${number}-${i}`), log.origin);
      log.write(place.dbPath, place.configDir);

      const { findings } = await judgeDatabase(place);

      if (!findings.some(({ record }) => records.includes(record)))
        missed.push(`${what}: ${JSON.stringify(findings.map(({ record, message }) => [record, message]))}`);
      rmSync(place.folder, { recursive: true, force: true });
    }

    expect(missed).toEqual([]);
    figure('R38', { history: number, calls: CALLS, illegal_changes: CHANGES });
  });
});

function placeOf({ dbPath, configDir, versions }: PlayedHistory): Place {
  const { origin } = new ForgedLog(dbPath, configDir, versions);
  return { folder: join(dbPath, '..', '..'), dbPath, configDir, origin };
}

interface Change {
  readonly what: string;
  /** The records that may be named for it. */
  readonly records: readonly string[];
}

/** One change that the rules do not allow, in one row of one call. */
function changeOne(log: ForgedLog, random: Random): Change {
  const exits = log.rows.filter(
    ({ fields }) => fields.stage === 'exit' && isWriting(fields.tool) && fields.schema_valid,
  );
  const succeeded = exits.filter(({ writes }) => writes.length > 0);
  return random.pick([
    () => changeState(log, random.pick(succeeded), random),
    () => changeState(log, random.pick(succeeded), random),
    () => changeResult(log, random.pick(succeeded), random),
    () =>
      changeOutcome(
        log,
        random.pick(exits.filter(({ fields }) => fields.error_code !== null && fields.outcome === 'error')),
      ),
    () => changeField(log, random.pick(exits), random),
  ])();
}

/** A column of a row of state, as the call left it. Later calls carry it along. */
function changeState(log: ForgedLog, exit: ForgedRow, random: Random): Change {
  const { table, row } = random.pick(exit.writes);
  const fixed = ['id', 'position', ...table.texts, ...COMPUTED];
  const column = random.pick(table.facts.filter((name) => !fixed.includes(name)));
  const before = row[column];
  log.change(exit, table, Number(row.id), { [column]: another(column, before ?? null) });
  const id = formatId(table, Number(row.id));
  return {
    what: `${table.name}.${column} of ${id} at #${exit.fields.position}`,
    records: [id, ...recordsOf(exit)],
  };
}

/** Columns that the forger computes anew, so that a change of them would be undone. */
const COMPUTED = ['hash', 'previous_hash', 'merkle_root', 'tree_depth', 'leaf_count', 'chain_position'];

function changeResult(log: ForgedLog, exit: ForgedRow, random: Random): Change {
  const result = log.resultOf(exit);
  const field = random.pick(
    Object.keys(result).filter((name) => !COMPUTED.includes(name) && name !== 'warnings'),
  );
  const value = result[field];
  const body = object(exit.payload?.body);
  body.result = {
    ...result,
    [field]: typeof value === 'number' ? value + 1 : typeof value === 'boolean' ? !value : `${value}x`,
  };
  return { what: `result.${field} at #${exit.fields.position}`, records: recordsOf(exit) };
}

/** A refusal under another code. */
function changeOutcome(log: ForgedLog, exit: ForgedRow): Change {
  const code = exit.fields.error_code === 'ERR_NO_RECORDS' ? 'ERR_TASK_NOT_FOUND' : 'ERR_NO_RECORDS';
  exit.fields.error_code = code;
  const body: JsonObject = object(exit.payload?.body);
  body.error = { ...object(body.error), code };
  return { what: `error_code at #${exit.fields.position} of ${log.origin}`, records: recordsOf(exit) };
}

/** A field of the exit row that its enter row says otherwise. */
function changeField(log: ForgedLog, exit: ForgedRow, random: Random): Change {
  const change = random.pick<[string, () => void]>([
    ['actor', () => (exit.fields.actor = `${exit.fields.actor}x`)],
    ['tool', () => (exit.fields.tool = 'task_get')],
    ['source', () => (exit.fields.source = 'cli')],
    ['duration_ms', () => (exit.fields.duration_ms = -1)],
    [
      'correlation_id',
      () => (exit.fields.correlation_id = log.rows[0] === exit ? '' : '00000000-0000-4000-8000-000000000000'),
    ],
    ['at', () => (exit.fields.at = 'tomorrow')],
  ]);
  change[1]();
  return { what: `${change[0]} at #${exit.fields.position}`, records: recordsOf(exit) };
}

/** The rows of the call, and everything it wrote. */
function recordsOf({ fields, writes }: ForgedRow): string[] {
  const written = writes.map(({ table, row }) => formatId(table, Number(row.id)));
  return [`#${fields.position}`, `#${fields.sequence_no}`, ...written];
}

const NUMBERS = [
  'estimate_hours',
  'parent_id',
  'session_id',
  'sealed_task_id',
  'description_call',
  'blocked_reason_call',
];

/** A value that the column takes and that is not this one. */
function another(column: string, value: Cells[string]): Cells[string] {
  if (value === null) return NUMBERS.includes(column) ? 1 : 'planted';
  if (typeof value === 'number') return value + 1_000;
  return value.startsWith('[') ? canonicalJson([...(JSON.parse(value) as unknown[]), 1]) : `${value}x`;
}
