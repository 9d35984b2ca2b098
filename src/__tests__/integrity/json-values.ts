import fc from 'fast-check';
import { isInexactInteger } from '../../integrity/canonical-json.ts';

const text = fc.string({ unit: 'binary' });

const numbers = fc.oneof(
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !isInexactInteger(value)),
);

/** Any value that Colibri's canonical form has a text for, hostile names and characters included. */
export const jsonValues: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    text,
    numbers,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 5 }),
    fc
      .array(fc.tuple(fc.oneof(text, fc.constantFrom('__proto__', 'constructor', '10', '9')), tie('value')))
      .map((members) => Object.fromEntries(members)),
  ),
})).value;

/** The same value with the members of every object written down in another order. */
export function reordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [name, reordered(member)] as const);
  return Object.fromEntries(members.reverse());
}
