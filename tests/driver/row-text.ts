import { canonicalJson } from '../../src/integrity/canonical-json.ts';

/** The text of an audit row with whatever fields a forger gives it. */
export function anyRowText(row: object): string {
  const said = Object.entries(row).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  );
  return canonicalJson(Object.fromEntries(said));
}
