import { LIMITS } from '../limits.ts';
import { mayHoldSecret, redactText } from '../secrets.ts';
import { isPlainObject } from './repair.ts';

/**
 * Arguments without the secrets in them, names of fields included. `notes` receives what was taken out and where, never
 * the secret. What holds none is returned as it is, uncopied. Depth was judged before: going down cannot overflow.
 */
export function redact(value: unknown, notes: string[]): unknown {
  return holdsAny(value) ? copyClean(value, notes, '') : value;
}

function copyClean(value: unknown, notes: string[], path: string): unknown {
  if (typeof value === 'string') return redactText(value, (kind) => note(notes, kind, path));
  if (Array.isArray(value)) return value.map((item, i) => copyClean(item, notes, `${path}[${i}]`));
  return isPlainObject(value) ? copyCleanFields(value, notes, path) : value;
}

function holdsAny(value: unknown): boolean {
  if (typeof value === 'string') return mayHoldSecret(value);
  if (Array.isArray(value)) return value.some(holdsAny);
  if (!isPlainObject(value)) return false;
  for (const key in value) if (mayHoldSecret(key) || holdsAny(value[key])) return true;
  return false;
}

function copyCleanFields(value: Record<string, unknown>, notes: string[], path: string): object {
  const clean = new Map<string, unknown>();
  for (const [key, field] of Object.entries(value)) {
    const own = redactText(key, (kind) => note(notes, kind, `a name in ${path === '' ? 'arguments' : path}`));
    // Two secrets of a kind leave the same mark; as names of fields they must stay two.
    let name = own;
    for (let i = clean.size + 1; clean.has(name); i += 1) name = `${own} ${i}`;
    clean.set(name, copyClean(field, notes, path === '' ? name : `${path}.${name}`));
  }
  return Object.fromEntries(clean);
}

/** Notes go into an audit row: few, short, and each once. */
function note(notes: string[], kind: string, path: string): void {
  const where = path === '' ? 'arguments' : path.slice(0, LIMITS.nameCharsMax).toWellFormed();
  const text = `${where}: ${kind} redacted`;
  if (notes.length < LIMITS.issuesMax && !notes.includes(text)) notes.push(text);
}
