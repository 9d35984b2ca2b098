import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { seededRandom } from '../../tests/driver/random.ts';
import { allSecrets } from '../../tests/driver/secrets.ts';
import { redactText } from '../secrets.ts';

const random = seededRandom('known secrets');
const secrets = allSecrets(random);

/** Whatever stands around a secret in real texts. */
const PLACES: readonly (readonly [before: string, after: string])[] = [
  ['', ''],
  ['Use ', ' for the deploy.'],
  ['TOKEN=', '\nNEXT=1'],
  ['"', '"'],
  ['{\\"key\\":\\"', '\\"}'],
  ['first line\\n', '\\nlast line'],
  ['(', ')'],
  ['it is `', '`, keep it'],
];

describe('R37: a known secret', () => {
  test.each(secrets)('of kind $kind is taken out wherever it stands', ({ kind, secret, text }) => {
    for (const [before, after] of PLACES) {
      const kinds: string[] = [];

      const clean = redactText(`${before}${text}${after}`, (found) => kinds.push(found));

      expect(clean).not.toContain(secret);
      expect(clean.startsWith(before) && clean.endsWith(after)).toBe(true);
      expect(clean).toContain(`[redacted: ${kind}]`);
      expect(kinds).toEqual([kind]);
    }
  });

  test('leaves nothing longer than it was, and is not found a second time', () => {
    const part = fc.oneof(
      fc.constantFrom(...secrets.map(({ text }) => text), 'amqp://a:b@c', 'Authorization: Basic YTpi'),
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.constantFrom('[redacted: JWT]', '***', '-----BEGIN ', '://', '@', ':', ' '),
    );

    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        const clean = redactText(text);

        expect(clean.length).toBeLessThanOrEqual(text.length);
        expect(redactText(clean)).toBe(clean);
      }),
      { seed: random.seed, numRuns: 500 },
    );
  });

  test('too short for its mark is replaced by asterisks', () => {
    expect(redactText('redis://:pw@cache')).toBe('redis://:**@cache');
    expect(redactText('Authorization: Basic YTpi')).toBe('Authorization: Basic ***');
  });
});

describe('nothing is taken out of', () => {
  test.each([
    'T-0001 Θ-0001 A-0001',
    '3f0b7e1c9a5d2846bb17c0de4a9f6e2358d1c7a0b94e6f3d2c8b5a7190e4f6d2',
    '7e48b88b1d5c5cf2e42fb1a86c2d2a0f3a9c4e5b',
    '1b4e28ba-2fa1-41d2-883f-0016d3cca427',
    'commit 7e48b88, branch feature/token-refresh, docs/adr/0003-one-shared-fsync-before-the-answer.md',
    'see https://example.org:8443/@scope/package?user=a:b and mail a@b.example',
    'postgres://app:$DB_PASSWORD@db/main, redis://:{secret}@cache, amqp://a:{{password}}@b',
    'http://localhost:3000/path@2x.png',
    'task-oriented risk-free desk-bound sk-eleton global-configuration-settings-of-everything',
    'npm_config_registry npm_lifecycle_event hf_transfer github_pat_ ghp_ AKIA SG.1 hvs.py',
    'the header Authorization: Bearer <token> or Authorization: Bearer $TOKEN',
    'the file starts with -----BEGIN RSA PRIVATE KEY----- and must not be committed',
    'const secretAccessKey = process.env.AWS_SECRET_ACCESS_KEY ?? readSecretAccessKey(config);',
    'example.org+7e48b88b+AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=',
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  ])('%s', (text) => {
    expect(redactText(text)).toBe(text);
  });

  test('hashes, ids, numbers and words in any order', () => {
    const hex = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 32, maxLength: 64 });
    const word = fc.oneof(
      hex,
      fc.uuid(),
      fc.integer().map(String),
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
      fc.string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz'), maxLength: 14 }),
      fc.webUrl(),
      fc.emailAddress(),
      fc.constantFrom('{', '}', '=>', ';', '"', "'", '\n', '-', '::', '://', '@', '=', '- [ ]', '…', 'Θ'),
    );

    fc.assert(
      fc.property(fc.array(word, { maxLength: 40 }), fc.constantFrom(' ', '', '-', '/'), (words, between) => {
        const text = words.join(between);
        // Glued together, words can by chance make a URL with a password.
        fc.pre(!/:\/\/[^\s/?#]*@/.test(text));
        expect(redactText(text)).toBe(text);
      }),
      { seed: random.seed, numRuns: 500 },
    );
  });
});

describe('time grows with the length of the text and no faster', () => {
  const CHARS = 300_000;

  test.each([
    'eyJ',
    'eyJaaaaaaaa.',
    'eyJaaaaaaaa-eyJaaaaaaaa.',
    '-----BEGIN RSA PRIVATE KEY-----',
    '-----BEGIN RSA PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n',
    'a://b:',
    'a://b:c@',
    'https://user:password',
    'Authorization: Bearer ',
    'authorization=basic ',
    'secret_access_key: ',
    'ghp_',
    'sk-',
    'sk-ant-',
    'sk-proj-aaaa-',
    'xoxb-1-',
    'MTkA',
    'MTkAaaaaaaaaaaaaaaaaaaaa.aaaaaa.',
    'AccountKey=',
    '12345678:AA',
    'PRIVATE+KEY+a+',
    'hooks.slack.com/',
    'a',
    ':',
    '-',
    '\\n',
    `dop_v1_${'a'.repeat(64)}`,
  ])('%s again and again', (part) => {
    const msOf = (chars: number) => {
      const text = part.repeat(Math.ceil(chars / part.length));
      const began = performance.now();
      redactText(text);
      return performance.now() - began;
    };
    msOf(CHARS / 100);

    const [short, long] = [Math.max(1, msOf(CHARS / 10)), msOf(CHARS)];

    // Ten times the text takes ten times as long; a square would take a hundred times. The rest is for a busy machine.
    expect(long).toBeLessThan(50 * short + 200);
  });
});
