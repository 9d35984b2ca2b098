const HASH_BYTES = 32;
const CHUNK_ROWS = 4_096;

/** The content hash of every row that was read, 32 bytes each. */
export class ContentHashes {
  readonly #chunks = new Map<number, Buffer>();

  set(position: number, hash: string): void {
    const index = Math.floor(position / CHUNK_ROWS);
    const chunk = this.#chunks.get(index) ?? Buffer.alloc(HASH_BYTES * CHUNK_ROWS);
    this.#chunks.set(index, chunk);
    chunk.write(hash, HASH_BYTES * (position % CHUNK_ROWS), 'hex');
  }

  get(position: number): string | undefined {
    const at = HASH_BYTES * (position % CHUNK_ROWS);
    const hash = this.#chunks.get(Math.floor(position / CHUNK_ROWS))?.toString('hex', at, at + HASH_BYTES);
    // No content has this hash.
    return hash === NONE ? undefined : hash;
  }
}

const NONE = '0'.repeat(2 * HASH_BYTES);
