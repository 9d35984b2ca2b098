import { describe, expect, test } from 'vitest';
import { generateNoteKey, noteSigner, parseVerifierKey } from '../../integrity/signed-note.ts';
import { originOfKey } from '../../trust/opening.ts';
import { adoptionId, followVouches, isStatedBy, signStatement } from '../../trust/statement.ts';

const { privateKeyPem, verifierKey: made } = generateNoteKey('first');
const origin = originOfKey(made) ?? '';
const founder = noteSigner(origin, privateKeyPem);
const [ada, bob, eve] = [aKey(), aKey(), aKey()];

function aKey() {
  return noteSigner(origin, generateNoteKey(origin).privateKeyPem);
}

function vouch(by: typeof founder, key: string) {
  const args = { key };
  return { tool: 'owner_trust', args: { ...args, signed: signStatement(by, { tool: 'owner_trust', args }) } };
}

function vouchedBy(...acts: ReturnType<typeof vouch>[]): string[] {
  const vouched = new Map([[founder.verifierKey, parseVerifierKey(founder.verifierKey)]]);
  followVouches(vouched, origin, acts, parseVerifierKey);
  return [...vouched.keys()].filter((key) => key !== founder.verifierKey);
}

describe('a key is vouched for', () => {
  test('by the key that the log is named after, and by those that this one vouches for, in any order', () => {
    const acts = [vouch(ada, bob.verifierKey), vouch(founder, ada.verifierKey)];

    expect(vouchedBy(...acts)).toEqual([ada.verifierKey, bob.verifierKey]);
  });

  test('never by itself, nor by keys that vouch for each other', () => {
    expect(vouchedBy(vouch(eve, eve.verifierKey))).toEqual([]);
    expect(vouchedBy(vouch(eve, bob.verifierKey), vouch(bob, eve.verifierKey))).toEqual([]);
  });

  test('not where the key was exchanged, the signature is another one, or there is none', () => {
    const { tool, args } = vouch(founder, ada.verifierKey);

    for (const signed of [args.signed, vouch(eve, eve.verifierKey).args.signed, '', 'x', undefined as never])
      expect(vouchedBy({ tool, args: { key: eve.verifierKey, signed } })).toEqual([]);
  });
});

test('what is signed is the call, its members and the log: nothing of it can be used elsewhere', () => {
  const said = {
    key: ada.verifierKey,
    rows: 3,
    lost: { size: 9, root: 'a'.repeat(64), key: ada.verifierKey },
  };
  const signed = signStatement(ada, { tool: 'owner_adopt', args: said });
  const keys = [parseVerifierKey(ada.verifierKey)];
  const isStated = (changes: object, tool = 'owner_adopt', log = origin) =>
    isStatedBy(keys, log, { tool, args: { ...said, signed, reason: 'any', ...changes } });

  expect(isStated({})).toBe(true);
  expect(isStated({ signed: `${signed}\n\u2014 ${origin} ${signed}` })).toBe(false);
  expect(isStated({ signed: `${signed}\n` })).toBe(false);
  expect(isStated({ rows: 4 })).toBe(false);
  expect(isStated({ lost: undefined })).toBe(false);
  expect(isStated({ lost: { ...said.lost, size: 10 } })).toBe(false);
  expect(isStated({}, 'owner_trust')).toBe(false);
  expect(isStated({}, 'owner_adopt', `colibri/${'0'.repeat(32)}`)).toBe(false);
  expect(adoptionId({ args: { ...said, signed } })).toBe(adoptionId({ args: { signed } }));
});
