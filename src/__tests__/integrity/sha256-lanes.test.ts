import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sha256Hex } from '../../integrity/digest.ts';
import { createLanes, LANES_FREE, type Lanes } from '../../integrity/sha256-lanes.ts';

const BLOCKS_MAX = 6;

/** Puts a message into the memory of a lane, padded by the standard, and answers how many blocks it has. */
function place({ memory }: Lanes, at: number, message: Uint8Array): number {
  const blocks = Math.ceil((message.length + 9) / 64);
  memory.fill(0, at, at + 64 * blocks);
  memory.set(message, at);
  memory[at + message.length] = 0x80;
  memory.writeUInt32BE(8 * message.length, at + 64 * blocks - 4);
  return blocks;
}

test('four messages side by side have the digests that Node gives them, and leave nothing behind', () => {
  const lanes = createLanes();
  if (lanes === undefined) throw new Error('this machine has no vectors for WebAssembly');
  const messages = fc
    .integer({ min: 0, max: 64 * BLOCKS_MAX - 9 })
    .chain((length) =>
      fc.array(fc.uint8Array({ minLength: length, maxLength: length }), { minLength: 4, maxLength: 4 }),
    );
  // Not on an even address: neither messages nor digests need one.
  const [first, second, third, fourth] = [0, 1, 2, 3].map((i) => LANES_FREE + 1 + 64 * BLOCKS_MAX * i) as [
    number,
    number,
    number,
    number,
  ];

  fc.assert(
    fc.property(messages, (four) => {
      const places = [first, second, third, fourth];
      const blocks = four.map((message, i) => place(lanes, places[i] ?? 0, message))[0] ?? 0;

      lanes.begin();
      for (let i = 0; i < blocks; i += 1)
        lanes.take(first + 64 * i, second + 64 * i, third + 64 * i, fourth + 64 * i);
      lanes.end(first, second, third, fourth);

      const digests = places.map((at) => lanes.memory.toString('hex', at, at + 32));
      expect(digests).toEqual(four.map((message) => sha256Hex(message)));
    }),
    { numRuns: 500 },
  );
});
