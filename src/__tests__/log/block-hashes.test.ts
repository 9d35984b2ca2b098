import { expect, test } from 'vitest';
import { sha256Hex } from '../../integrity/digest.ts';
import { treeRoot } from '../../integrity/tree.ts';
import { chainHash, GENESIS } from '../../log/row.ts';
import { BLOCK_ROWS, blockHashes } from '../../log/verify/block-hashes.ts';

test('the root and the links of a block are those of its rows one by one, block after block', () => {
  const hashes = blockHashes();
  if (hashes === undefined) throw new Error('this machine has no vectors for WebAssembly');
  let before = GENESIS;

  for (let block = 0; block < 20; block += 1) {
    const contents = Array.from({ length: BLOCK_ROWS }, (_, i) => sha256Hex(`${block}/${i}`));
    const chain: string[] = [];
    for (const content of contents) chain.push(chainHash(content, chain.at(-1) ?? before));

    expect(hashes.root(contents)).toBe(treeRoot(contents));
    expect(hashes.links(contents.join(''), before, chain.join(''))).toBe(chain.join(''));

    before = chain.at(-1) ?? '';
  }
});
