import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type LogDesk, proves } from '../log-desk.ts';

const ORDER = 2n ** 252n + 27_742_317_777_372_353_535_851_937_790_883_648_493n;

// A signature whose R is the neutral point fits the equation, and OpenSSL before 3.5 accepts it. Every Node must say no.

proves(
  ['head.checked', 'checkpoint.format'],
  'V15: a head signed with an R of small order is refused, whatever Node reads it',
  async (desk) => {
    await desk.work();
    const forged = signWithNeutralPoint(desk, desk.head);
    desk.tamper((db) => db.prepare('UPDATE log_heads SET checkpoint = ?').run(forged));

    const kinds = await desk.findings();
    const { health } = await desk.refusalAtStart();

    expect(forged).not.toBe(desk.lastSigned);
    expect(kinds).toContain('bad-head');
    expect(health.log.refused).toContain('signed head');
  },
);

function signWithNeutralPoint(desk: LogDesk, note: string): string {
  const key = createPrivateKey(readFileSync(join(desk.logFolder, 'key.pem')));
  const text = note.slice(0, note.indexOf('\n\n') + 1);
  const a = Buffer.from(createPublicKey(key).export({ format: 'jwk' }).x ?? '', 'base64url');
  const r = Buffer.alloc(32);
  r[0] = 1;
  const k = littleEndian(sha512(r, a, Buffer.from(text))) % ORDER;
  const s = (k * scalarOf(Buffer.from(key.export({ format: 'jwk' }).d ?? '', 'base64url'))) % ORDER;
  const signature = Buffer.concat([r, Buffer.from(s.toString(16).padStart(64, '0'), 'hex').reverse()]);
  return note.replace(/([A-Za-z0-9+/=]+)\n$/, (_, base64: string) => {
    const id = Buffer.from(base64, 'base64').subarray(0, 4);
    return `${Buffer.concat([id, signature]).toString('base64')}\n`;
  });
}

function scalarOf(seed: Buffer): bigint {
  const half = sha512(seed).subarray(0, 32);
  half.writeUInt8(half.readUInt8(0) & 248, 0);
  half.writeUInt8((half.readUInt8(31) & 127) | 64, 31);
  return littleEndian(half);
}

function sha512(...parts: readonly Buffer[]): Buffer {
  return createHash('sha512').update(Buffer.concat(parts)).digest();
}

function littleEndian(bytes: Buffer): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}
