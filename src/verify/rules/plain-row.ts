import type { AuditRow } from '../../log/row.ts';
import type { StateTableName } from '../../log/tables.ts';

// In a text without escapes the layout alone is the canonical form: nothing is left that could be written in two ways.
// One pass of a regular expression takes half the time of parsing the text and writing it again. Whatever it does not
// match is left to the reader that can say why.

const PLAIN = '[ !#-\\[\\]-~]';
const HASH = '[0-9a-f]{64}';
const COUNT = '[1-9][0-9]{0,14}';
const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}';
const ROW = new RegExp(
  `^\\{"actor":"(${PLAIN}+)",(?:"args_hash":"(${HASH})",)?"at":"(${PLAIN}{24})","correlation_id":"(${UUID})",(?:"duration_ms":(0|${COUNT}),)?(?:"effects":\\[([^\\]]+)\\],)?(?:"error_code":"([A-Z_]+)",)?"outcome":"([a-z]+)","position":(${COUNT}),"process":"(${PLAIN}+)",(?:"result_hash":"(${HASH})",)?"rules":([1-9][0-9]{0,8}),"schema_valid":(true|false),"sequence_no":(${COUNT}),"source":"(mcp|cli)","stage":"(enter|exit)","tool":"(${PLAIN}{1,64})"\\}$`,
);

/** The row in a text that has only the fields of one, without escapes, or undefined. Their values are still to be checked. */
export function readPlainRow(text: string): AuditRow | undefined {
  const match = ROW.exec(text);
  const outcome = match === null ? undefined : OUTCOMES.get(match[8] ?? '');
  const effects = match === null ? undefined : readPlainEffects(match[6] ?? '');
  if (match === null || outcome === undefined || effects === undefined) return undefined;
  const duration = match[5];
  return {
    actor: match[1] ?? '',
    args_hash: match[2] ?? null,
    at: match[3] ?? '',
    correlation_id: match[4] ?? '',
    duration_ms: duration === undefined ? null : Number(duration),
    effects,
    error_code: match[7] ?? null,
    outcome,
    position: Number(match[9]),
    process: match[10] ?? '',
    repaired: NONE,
    result_hash: match[11] ?? null,
    rules: Number(match[12]),
    schema_valid: match[13] === 'true',
    sequence_no: Number(match[14]),
    source: match[15] === 'cli' ? 'cli' : 'mcp',
    stage: match[16] === 'enter' ? 'enter' : 'exit',
    tool: match[17] ?? '',
  };
}

const NONE: readonly never[] = [];

const OUTCOMES: ReadonlyMap<string, AuditRow['outcome']> = new Map(
  (['running', 'ok', 'error', 'rejected', 'denied', 'crashed'] as const).map((outcome) => [outcome, outcome]),
);

const EFFECT = new RegExp(
  `\\{"hash":"(${HASH})","id":"([TΘAR]-(?:[0-9]{4}|[1-9][0-9]{4,14}))","previous":(0|${COUNT}),"table":"([a-z_]+)"\\}(?:,(?=\\{)|$)`,
  'y',
);

const PREFIXES: Readonly<Record<StateTableName, string>> = {
  tasks: 'T',
  thoughts: 'Θ',
  sessions: 'A',
  session_records: 'R',
};

/** Effects without a seal. */
function readPlainEffects(inner: string): AuditRow['effects'] | undefined {
  if (inner === '') return NONE;
  const effects: AuditRow['effects'][number][] = [];
  for (EFFECT.lastIndex = 0; EFFECT.lastIndex < inner.length; ) {
    const match = EFFECT.exec(inner);
    const [, hash = '', id = '', previous, table = ''] = match ?? [];
    if (match === null || !isTable(table) || PREFIXES[table] !== id[0]) return undefined;
    effects.push({ hash, id, previous: Number(previous), table });
  }
  return effects;
}

function isTable(name: string): name is StateTableName {
  return Object.hasOwn(PREFIXES, name);
}

/** A text that keeps nothing else in memory: what a regular expression finds is a piece of the whole text, and keeps all of it. */
export function ownText(text: string): string {
  return `${text} `.slice(0, -1);
}
