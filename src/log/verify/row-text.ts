import { canonicalJson } from '../../integrity/canonical-json.ts';
import type { Effect } from '../../tool.ts';
import type { AuditRow } from '../row.ts';

const FIELDS =
  'actor,args_hash,at,correlation_id,duration_ms,effects,error_code,outcome,position,process,repaired,result_hash,schema_valid,sequence_no,stage,tool';

/**
 * The audit row a text holds, or undefined unless the text is exactly one that Colibri writes: every field, of its type,
 * in canonical form. Hostile input enters here: whoever can recompute hashes can put any text under them.
 */
export function readRowText(text: string): AuditRow | undefined {
  return readPlain(text) ?? readAny(text);
}

// In a text without escapes the layout alone is the canonical form: nothing is left that could be written in two ways.
// Four of five microseconds of a row went into parsing and serialising again what this reads in one pass.
const TEXT = '"([^"\\\\\\u0000-\\u001f]*)"';
const HASH = '(?:null|"([0-9a-f]{64})")';
const COUNT = '(0|[1-9][0-9]{0,14})';
const PLAIN = new RegExp(
  `^\\{"actor":${TEXT},"args_hash":${HASH},"at":${TEXT},"correlation_id":${TEXT},"duration_ms":(?:null|${COUNT}),"effects":\\[([^\\]]*)\\],"error_code":(?:null|${TEXT}),"outcome":${TEXT},"position":${COUNT},"process":${TEXT},"repaired":\\[\\],"result_hash":${HASH},"schema_valid":(true|false),"sequence_no":${COUNT},"stage":"(enter|exit)","tool":${TEXT}\\}$`,
);

function readPlain(text: string): AuditRow | undefined {
  const match = text.isWellFormed() ? PLAIN.exec(text) : null;
  const effects = match === null ? undefined : readEffects(match[6] ?? '');
  if (match === null || effects === undefined) return undefined;
  const duration = match[5];
  return {
    actor: match[1] ?? '',
    args_hash: match[2] ?? null,
    at: match[3] ?? '',
    correlation_id: match[4] ?? '',
    duration_ms: duration === undefined ? null : Number(duration),
    effects,
    error_code: match[7] ?? null,
    outcome: match[8] as AuditRow['outcome'],
    position: Number(match[9]),
    process: match[10] ?? '',
    repaired: [],
    result_hash: match[11] ?? null,
    schema_valid: match[12] === 'true',
    sequence_no: Number(match[13]),
    stage: match[14] as AuditRow['stage'],
    tool: match[15] ?? '',
  };
}

const NO_EFFECTS: readonly Effect[] = [];

function readEffects(inner: string): readonly Effect[] | undefined {
  if (inner === '') return NO_EFFECTS;
  return readPlainEffects(inner) ?? readAnyEffects(inner);
}

const PLAIN_EFFECT = new RegExp(
  `\\{"columns":"([0-9a-f]*)","hash":"([0-9a-f]{64})","id":${TEXT},"table":${TEXT}\\}(?:,(?=\\{)|$)`,
  'y',
);

/** Effects without a seal and without escapes, for the same reason as above. */
function readPlainEffects(inner: string): readonly Effect[] | undefined {
  const effects: Effect[] = [];
  for (PLAIN_EFFECT.lastIndex = 0; PLAIN_EFFECT.lastIndex < inner.length; ) {
    const match = PLAIN_EFFECT.exec(inner);
    if (match === null) return undefined;
    const [, columns = '', hash = '', id = '', table = ''] = match;
    effects.push({ columns, hash, id, table });
  }
  return effects;
}

function readAnyEffects(inner: string): readonly Effect[] | undefined {
  try {
    const effects: unknown = JSON.parse(`[${inner}]`);
    return areEffects(effects) && canonicalJson(effects) === `[${inner}]` ? effects : undefined;
  } catch {
    return undefined;
  }
}

function readAny(text: string): AuditRow | undefined {
  try {
    const row: unknown = JSON.parse(text);
    return isRow(row) && canonicalJson(row) === text ? row : undefined;
  } catch {
    return undefined;
  }
}

function isRow(value: unknown): value is AuditRow {
  if (typeof value !== 'object' || value === null || Object.keys(value).join(',') !== FIELDS) return false;
  const row = value as Record<keyof AuditRow, unknown>;
  return (
    [row.actor, row.at, row.correlation_id, row.outcome, row.process, row.tool].every(isText) &&
    [row.args_hash, row.result_hash, row.error_code].every((field) => field === null || isText(field)) &&
    (row.duration_ms === null || typeof row.duration_ms === 'number') &&
    [row.position, row.sequence_no].every(Number.isSafeInteger) &&
    typeof row.schema_valid === 'boolean' &&
    (row.stage === 'enter' || row.stage === 'exit') &&
    Array.isArray(row.repaired) &&
    row.repaired.every(isText) &&
    areEffects(row.effects)
  );
}

function areEffects(value: unknown): value is Effect[] {
  return Array.isArray(value) && value.every(isEffect);
}

function isEffect(value: unknown): value is Effect {
  if (typeof value !== 'object' || value === null) return false;
  const { table, id, hash, columns } = value as Record<keyof Effect, unknown>;
  return [table, id, hash, columns].every(isText);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
