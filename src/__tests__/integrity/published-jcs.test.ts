import { expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { canonicalJson, canonicalNumber, isInexactInteger } from '../../integrity/canonical-json.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { isTaken } from './exact-json.ts';
import { describePublished, readPublished, readPublishedJson } from './published.ts';

interface EdgeCase {
  readonly id: string;
  readonly json_ascii?: string;
  readonly bytes_hex?: string;
  readonly canonical?: string;
}

describePublished(proving('vectors.json', 'published canonical JSON'), () => {
  test.each(['arrays', 'french', 'structures', 'unicode', 'values', 'weird'])(
    '%s has its canonical bytes',
    (name) => {
      const text = canonicalJson(readPublishedJson('jcs', 'input', `${name}.json`));
      const hex = readPublished('jcs', 'outhex', `${name}.txt`).toString().replace(/\s/g, '');

      expect(Buffer.from(text)).toEqual(readPublished('jcs', 'output', `${name}.json`));
      expect(Buffer.from(text).toString('hex')).toBe(hex);
    },
  );

  test('ten thousand numbers have their text, or are integers that a record may not hold', () => {
    const file = readPublished('jcs', 'es6-numbers-10000.txt');
    const lines = file.toString().trimEnd().split('\n');
    let refused = 0;
    for (const line of lines) {
      const [bits = '', text] = line.split(',');
      const value = Buffer.from(bits.padStart(16, '0'), 'hex').readDoubleBE();

      expect(canonicalNumber(value)).toBe(text);
      if (isInexactInteger(value)) refused += 1;
      if (isInexactInteger(value)) expect(() => canonicalJson(value)).toThrow('beyond 2^53');
      else expect(canonicalJson(value)).toBe(text);
    }

    expect(lines).toHaveLength(10_000);
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThan(500);
    const { es6_number_checksums } = readPublishedJson<{ es6_number_checksums: Record<string, string> }>(
      'jcs',
      'SOURCE.json',
    );
    expect(sha256Hex(file)).toBe(es6_number_checksums['10000']);
  });

  const edges = readPublishedJson<Record<'must_reject' | 'must_accept', readonly EdgeCase[]>>(
    'jcs',
    'edge-cases.json',
  );
  const inputOf = ({ json_ascii, bytes_hex = '' }: EdgeCase) => json_ascii ?? Buffer.from(bytes_hex, 'hex');

  test.each(edges.must_reject)('$id is refused', (edge) => {
    expect(isTaken(inputOf(edge))).toBe(false);
  });

  test.each(edges.must_accept)('$id has its canonical text', (edge) => {
    expect(canonicalJson(JSON.parse(inputOf(edge).toString()))).toBe(edge.canonical);
    expect(isTaken(edge.canonical ?? '')).toBe(true);
  });
});
