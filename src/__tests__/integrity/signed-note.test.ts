import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  FormatError,
  generateNoteKey,
  NOTE_BYTES_MAX,
  NOTE_SIGNATURES_MAX,
  NoKnownKeyError,
  noteSigner,
  openNote,
  parseVerifierKey,
  signNote,
} from '../../integrity/signed-note.ts';

const TEXT = 'example.com/log\n7\nroot\n';

function aSigner(name = 'example.com/log') {
  const { privateKeyPem, verifierKey } = generateNoteKey(name);
  return { signer: noteSigner(name, privateKeyPem), key: parseVerifierKey(verifierKey) };
}

const { signer, key } = aSigner();
const other = aSigner('example.com/witness');
const NOTE = signNote(TEXT, signer);
const SIGNATURE = signatureOf(NOTE);
const OTHER_SIGNATURE = signatureOf(signNote(TEXT, other.signer));

function signatureOf(note: string): string {
  return note.slice(note.lastIndexOf('\n\n') + 2);
}

function faultOf(open: () => unknown): string {
  try {
    open();
    return 'none';
  } catch (error) {
    if (error instanceof NoKnownKeyError) return 'no-known-key';
    if (!(error instanceof FormatError)) throw error;
    if (/^the signature by .* is not valid$/.test(error.message)) return 'bad-signature';
    return /^two known keys are /.test(error.message) ? 'ambiguous-key' : 'malformed';
  }
}

// Everything a note may say: lines of any characters but the control characters.
const texts = fc
  .string({ unit: 'binary' })
  .map((text) => `${[...text].filter((c) => c >= ' ' || c === '\n').join('')}\n`);

describe('openNote', () => {
  test('opens what signNote signed, whatever the text', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const note = signNote(text, signer);

        expect(openNote(note, [key]).text).toBe(text);
        expect(openNote(Buffer.from(note), [key]).text).toBe(text);
      }),
    );
  });

  test('refuses a note with any one byte changed, added or left out', () => {
    fc.assert(
      fc.property(texts, fc.nat(), fc.integer({ min: 1, max: 255 }), (text, place, change) => {
        const note = Buffer.from(signNote(text, signer));
        const at = place % note.length;
        const [head, tail] = [note.subarray(0, at), note.subarray(at + 1)];
        const byte = Buffer.of(note[at]! ^ change);

        for (const parts of [
          [head, byte, tail],
          [head, tail],
          [head, byte, note.subarray(at)],
        ]) {
          expect(() => openNote(Buffer.concat(parts), [key])).toThrow(FormatError);
        }
      }),
      { numRuns: 300 },
    );
  });

  test('refuses every single changed bit of one note', () => {
    for (let bit = 0; bit < Buffer.byteLength(NOTE) * 8; bit += 1) {
      const note = Buffer.from(NOTE);
      note[bit >> 3]! ^= 1 << (bit & 7);

      expect(() => openNote(note, [key]), `bit ${bit}`).toThrow(FormatError);
    }
  });

  test('passes over a signature by an unknown key', () => {
    const note = openNote(NOTE + OTHER_SIGNATURE, [key]);

    expect(note.verified.map(({ name, id }) => ({ name, id }))).toEqual([{ name: key.name, id: key.id }]);
  });

  test('needs one known key, and not more than one', () => {
    expect(faultOf(() => openNote(NOTE, []))).toBe('no-known-key');
    expect(faultOf(() => openNote(NOTE, [other.key]))).toBe('no-known-key');
    expect(faultOf(() => openNote(NOTE, [key, other.key]))).toBe('none');
  });

  test('does not take a key of the same name or the same id for the known one', () => {
    const namesake = aSigner(key.name);

    expect(faultOf(() => openNote(NOTE, [namesake.key]))).toBe('no-known-key');
    expect(faultOf(() => openNote(NOTE, [{ ...other.key, id: key.id }]))).toBe('no-known-key');
  });

  test('refuses the whole note for one bad signature by a known key', () => {
    const forged = signatureOf(signNote('another text\n', other.signer));

    expect(faultOf(() => openNote(NOTE + forged, [key]))).toBe('none');
    expect(faultOf(() => openNote(NOTE + forged, [key, other.key]))).toBe('bad-signature');
  });

  test('refuses to choose between two known keys of one name and id', () => {
    expect(faultOf(() => openNote(NOTE, [key, key]))).toBe('ambiguous-key');
  });

  test('lists a repeated signature once', () => {
    const note = openNote(NOTE + SIGNATURE + OTHER_SIGNATURE + OTHER_SIGNATURE, [key]);

    expect(note.verified).toHaveLength(1);
  });

  test('lets only the first signature of a known key count', () => {
    const forged = signatureOf(signNote('another text\n', signer));

    expect(faultOf(() => openNote(NOTE + forged, [key]))).toBe('none');
    expect(faultOf(() => openNote(`${TEXT}\n${forged}${SIGNATURE}`, [key]))).toBe('bad-signature');
  });

  test('refuses a signature that is longer or shorter than Ed25519 makes them', () => {
    const [name, base64] = SIGNATURE.slice(2, -1).split(' ');
    const bytes = Buffer.from(base64!, 'base64');

    for (const changed of [
      Buffer.concat([bytes, Buffer.of(0)]),
      bytes.subarray(0, -1),
      bytes.subarray(0, 5),
    ]) {
      const note = `${TEXT}\n\u2014 ${name} ${changed.toString('base64')}\n`;
      expect(faultOf(() => openNote(note, [key]))).toBe('bad-signature');
    }
  });

  test('takes the last blank line for the end of the text', () => {
    const text = `first\n\n${SIGNATURE}\n\nlast\n`;

    expect(openNote(signNote(text, signer), [key]).text).toBe(text);
  });

  test.each([
    ['nothing', ''],
    ['no signature', `${TEXT}\n`],
    ['no blank line', `${TEXT}${SIGNATURE}`],
    ['no final newline', NOTE.slice(0, -1)],
    ['a blank line at the end', `${NOTE}\n`],
    ['another line after the signatures', `${NOTE}more\n`],
    ['a hyphen for the dash', NOTE.replace('\u2014', '-')],
    ['no space after the dash', NOTE.replace('\u2014 ', '\u2014')],
    ['two spaces after the name', NOTE.replace(`${key.name} `, `${key.name}  `)],
    ['a space at the end of a line', `${NOTE.slice(0, -1)} \n`],
    ['a signature without a name', `${TEXT}\n\u2014  AAAAAAA=\n`],
    ['a signature without bytes', `${TEXT}\n\u2014 name \n`],
    ['a signature of a key id only', `${TEXT}\n\u2014 name AAAAAA==\n`],
    ['base64 with stray bits', `${TEXT}\n\u2014 name AAAAAAB=\n${SIGNATURE}`],
    ['base64 without padding', `${TEXT}\n\u2014 name AAAAAAA\n${SIGNATURE}`],
    ['base64 for addresses', `${TEXT}\n\u2014 name AAAAAA-_\n${SIGNATURE}`],
    ['a carriage return', NOTE.replaceAll('\n', '\r\n')],
    ['a null character', `\u0000${NOTE}`],
    ['a lone surrogate', `\ud800${NOTE}`],
  ])('calls a note with %s malformed', (_, note) => {
    expect(faultOf(() => openNote(note, [key]))).toBe('malformed');
  });

  test('accepts as many signatures as allowed and refuses one more', () => {
    const full = NOTE + OTHER_SIGNATURE.repeat(NOTE_SIGNATURES_MAX - 1);

    expect(faultOf(() => openNote(full, [key]))).toBe('none');
    expect(faultOf(() => openNote(full + OTHER_SIGNATURE, [key]))).toBe('malformed');
  });

  test('accepts a note as large as allowed and refuses one byte more', () => {
    const room = NOTE_BYTES_MAX - Buffer.byteLength(`\n\n${SIGNATURE}`);
    const full = signNote(`${'x'.repeat(room)}\n`, signer);

    expect(Buffer.byteLength(full)).toBe(NOTE_BYTES_MAX);
    expect(faultOf(() => openNote(full, [key]))).toBe('none');
    expect(faultOf(() => openNote(`x${full}`, [key]))).toBe('malformed');
    expect(faultOf(() => signNote(`${'x'.repeat(room + 1)}\n`, signer))).toBe('malformed');
  });

  test('opens a good note after it refused bytes that are no UTF-8', () => {
    expect(faultOf(() => openNote(Buffer.of(0xe2, 0x80), [key]))).toBe('malformed');
    expect(faultOf(() => openNote(Buffer.from(NOTE), [key]))).toBe('none');
  });
});

describe('signNote', () => {
  test.each([
    ['does not end in a newline', 'abc'],
    ['is empty', ''],
    ['holds a tab', 'a\tb\n'],
    ['holds a lone surrogate', '\ud800\n'],
  ])('refuses a text that %s', (_, text) => {
    expect(faultOf(() => signNote(text, signer))).toBe('malformed');
  });
});
