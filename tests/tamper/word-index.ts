import Sqlite from 'better-sqlite3';
import { checkWordIndex } from '../../src/log/verify/word-index.ts';
import { openSqlite } from '../../src/storage/sqlite/engine.ts';
import { APPLICATION_ID, MIGRATIONS } from '../../src/storage/sqlite/migrations.ts';
import type { Random } from '../driver/random.ts';

/** A word index of its own that grows as tasks do: new ones, reworded ones, a few of many words, some words everywhere. */
export class GrowingIndex {
  readonly path: string;
  readonly db: Sqlite.Database;
  readonly #random: Random;
  #tasks = 0;

  constructor(path: string, random: Random) {
    this.path = path;
    this.db = new Sqlite(path);
    this.#random = random;
    this.db.unsafeMode(true);
    this.db.pragma('journal_mode = WAL');
    this.db.pragma('synchronous = OFF');
    for (const step of MIGRATIONS) this.db.exec(step);
    this.db.pragma(`application_id = ${APPLICATION_ID}`);
    this.db.pragma(`user_version = ${MIGRATIONS.length}`);
  }

  grow(tasks: number): void {
    for (const end = this.#tasks + tasks; this.#tasks < end; ) {
      this.#tasks += 1;
      const words = this.#random.between(0, this.#random.oneIn(50) ? 1_500 : 60);
      this.db
        .prepare('INSERT INTO task_words (rowid, title, description) VALUES (?, ?, ?)')
        .run(this.#tasks, this.#text(5), this.#text(words));
      if (this.#random.oneIn(3))
        this.db
          .prepare('UPDATE task_words SET title = ? WHERE rowid = ?')
          .run(this.#text(5), this.#random.between(1, this.#tasks));
    }
  }

  /** What SQLite and the verifier say of the index, in sentences. */
  async complaints(): Promise<string[]> {
    const storage = await openSqlite({ path: this.path, readOnly: true });
    try {
      return await storage.read(async (tx) => {
        const complaints = await storage.selfCheck(tx);
        await checkWordIndex(tx, ({ message }) => complaints.push(message));
        return complaints;
      });
    } finally {
      await storage.close();
    }
  }

  #text(words: number): string {
    return Array.from({ length: words }, () =>
      this.#random.oneIn(3) ? 'common' : `w${this.#random.between(0, 60_000).toString(36)}`,
    ).join(' ');
  }
}
