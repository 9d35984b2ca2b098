import { expect, test } from 'vitest';
import { proving } from '../../../tests/contract/proves.ts';
import { formatCheckpoint, parseCheckpoint } from '../../integrity/checkpoint.ts';
import { sha256Hex } from '../../integrity/digest.ts';
import {
  FormatError,
  generateNoteKey,
  noteSigner,
  openNote,
  parseVerifierKey,
  signNote,
} from '../../integrity/signed-note.ts';
import { describePublished, readPublishedJson } from './published.ts';

interface Notes {
  readonly cases: readonly {
    readonly name: string;
    readonly vkeys: readonly string[];
    readonly note_b64: string;
    readonly ok: boolean;
    readonly verified?: readonly string[];
  }[];
  readonly sign: {
    readonly text: string;
    readonly expected_note: string;
    readonly must_refuse_text: readonly string[];
  };
  readonly bad_vkeys: readonly string[];
  readonly tree_head: { readonly text: string; readonly root_is_leaf_hash_of: string };
}

describePublished(proving(['vectors.notes', 'checkpoint.format'], 'published notes'), () => {
  const notes = readPublishedJson<Notes>('signed-note', 'notes.json');
  const vkey = notes.cases[0]!.vkeys[0]!;

  test.each(notes.cases)('$name: is judged as published', ({ vkeys, note_b64, ok, verified }) => {
    const open = () => openNote(Buffer.from(note_b64, 'base64'), vkeys.map(parseVerifierKey));

    if (ok) expect(open().verified.map(({ name }) => name)).toEqual(verified);
    else expect(open).toThrow(FormatError);
  });

  test('there are 13 of them', () => {
    expect(notes.cases).toHaveLength(13);
  });

  test.each(notes.bad_vkeys)('the verifier key %s is refused', (text) => {
    expect(() => parseVerifierKey(text)).toThrow(FormatError);
  });

  test('every part of a verifier key is refused for the whole', () => {
    for (let from = 0; from < vkey.length; from += 1) {
      for (let to = from; to <= vkey.length; to += 1) {
        const part = vkey.slice(from, to);
        if (part !== vkey) expect(() => parseVerifierKey(part), part).toThrow(FormatError);
      }
    }
  });

  test('a verifier key with any one byte increased is refused', () => {
    for (let i = 0; i < vkey.length; i += 1) {
      const changed = Buffer.from(vkey);
      changed[i]! += 1;

      expect(() => parseVerifierKey(changed.toString('latin1'))).toThrow(FormatError);
    }
  });

  test('the signed text opens with its key, and a text that may not be signed is refused', () => {
    const signer = noteSigner('a', generateNoteKey('a').privateKeyPem);

    expect(openNote(notes.sign.expected_note, [parseVerifierKey(vkey)]).text).toBe(notes.sign.text);
    for (const text of notes.sign.must_refuse_text) expect(() => signNote(text, signer)).toThrow(FormatError);
  });

  test('the tree head is read and written as published', () => {
    const { text, root_is_leaf_hash_of: data } = notes.tree_head;
    const head = parseCheckpoint(text);

    expect(head.root).toBe(sha256Hex(Buffer.concat([Buffer.of(0), Buffer.from(data)])));
    expect(formatCheckpoint(head)).toBe(text);
  });
});
