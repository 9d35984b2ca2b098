import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatTlogProof, parseCheckpoint, parseTlogProof } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import { verifyInclusion } from '../../integrity/proof-verifier.ts';
import { FormatError, openNote, parseVerifierKey } from '../../integrity/signed-note.ts';
import { leafHash } from '../../integrity/tree.ts';
import { readVectors } from './test-key.ts';

const HEADER = 'c2sp.org/tlog-proof@v1';
const HASH = Buffer.alloc(32, 1).toString('base64');
const CHECKPOINT = 'log\n1\nroot\n\n\u2014 log AAAAAAA=\n';

const hashes = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('hex'));

describe('a tlog-proof', () => {
  test('is read back as it was written, with and without extra data', () => {
    fc.assert(
      fc.property(
        fc.maxSafeNat(),
        fc.array(hashes, { maxLength: 53 }),
        fc.uint8Array(),
        (index, proof, extra) => {
          const written = { index, proof, checkpoint: CHECKPOINT };
          const text = formatTlogProof({ ...written, extra });
          const read = parseTlogProof(text);

          expect({ ...read, extra: Buffer.from(read.extra ?? []) }).toEqual({
            ...written,
            extra: Buffer.from(extra),
          });
          expect(formatTlogProof(read)).toBe(text);
        },
      ),
    );
  });

  test('holds everything needed to verify a record offline', () => {
    const vectors = readVectors('signed-note.json');
    const { index, proof, checkpoint, extra } = parseTlogProof(vectors.proof.text);
    const { text } = openNote(checkpoint, [parseVerifierKey(vectors.verifier_key)]);
    const { size, root } = parseCheckpoint(text);

    expect(Buffer.from(extra ?? []).toString()).toBe('colibri');
    verifyInclusion({ index, size, root, proof, leafHash: leafHash(sha256Hex(`record ${index}`)) });
  });

  test.each([
    ['nothing', ''],
    ['another header', `c2sp.org/tlog-proof@v2\nindex 0\n\n${CHECKPOINT}`],
    ['a line before the header', `\n${HEADER}\nindex 0\n\n${CHECKPOINT}`],
    ['no index', `${HEADER}\n\n${CHECKPOINT}`],
    ['a hash before the index', `${HEADER}\n${HASH}\nindex 0\n\n${CHECKPOINT}`],
    ['the index twice', `${HEADER}\nindex 0\nindex 0\n\n${CHECKPOINT}`],
    ['extra data after the index', `${HEADER}\nindex 0\nextra AA==\n\n${CHECKPOINT}`],
    ['extra data twice', `${HEADER}\nextra AA==\nextra AA==\nindex 0\n\n${CHECKPOINT}`],
    ['an empty extra line', `${HEADER}\nextra \nindex 0\n\n${CHECKPOINT}`],
    ['an extra line without its space', `${HEADER}\nextra\nindex 0\n\n${CHECKPOINT}`],
    ['extra data with stray bits', `${HEADER}\nextra AB==\nindex 0\n\n${CHECKPOINT}`],
    ['an index with a leading zero', `${HEADER}\nindex 00\n\n${CHECKPOINT}`],
    ['a negative index', `${HEADER}\nindex -1\n\n${CHECKPOINT}`],
    ['an index that is not exact', `${HEADER}\nindex 9007199254740992\n\n${CHECKPOINT}`],
    ['two spaces before the index', `${HEADER}\nindex  0\n\n${CHECKPOINT}`],
    ['a short hash', `${HEADER}\nindex 0\n${Buffer.alloc(31).toString('base64')}\n\n${CHECKPOINT}`],
    ['a hash in hex', `${HEADER}\nindex 0\n${'0'.repeat(64)}\n\n${CHECKPOINT}`],
    ['a space after a hash', `${HEADER}\nindex 0\n${HASH} \n\n${CHECKPOINT}`],
    ['54 hashes', `${HEADER}\nindex 0\n${`${HASH}\n`.repeat(54)}\n${CHECKPOINT}`],
    ['carriage returns', `${HEADER}\nindex 0\n\n${CHECKPOINT}`.replaceAll('\n', '\r\n')],
    ['no checkpoint', `${HEADER}\nindex 0\n\n`],
    ['no blank line', `${HEADER}\nindex 0\n`],
    ['two blank lines', `${HEADER}\nindex 0\n\n\n${CHECKPOINT}`],
    ['a checkpoint cut short', `${HEADER}\nindex 0\n\n${CHECKPOINT.slice(0, -1)}`],
  ])('is refused with %s', (_, text) => {
    expect(() => parseTlogProof(text)).toThrow(FormatError);
  });

  test.each([
    ['a negative index', { index: -1, proof: [], checkpoint: CHECKPOINT }],
    ['a hash that is none', { index: 0, proof: [''], checkpoint: CHECKPOINT }],
    ['no checkpoint', { index: 0, proof: [], checkpoint: '' }],
    ['54 hashes', { index: 0, proof: new Array<string>(54).fill('0'.repeat(64)), checkpoint: CHECKPOINT }],
  ])('is not written with %s', (_, proof) => {
    expect(() => formatTlogProof(proof)).toThrow(FormatError);
  });
});
