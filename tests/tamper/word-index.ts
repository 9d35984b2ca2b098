import { openSqlite } from '../../src/storage/sqlite/engine.ts';
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from '../../src/storage/sqlite/schema.ts';
import { namedText, textId } from '../../src/storage/text-ids.ts';
import { sha256 } from '../driver/audit-file.ts';
import { type Database, openDatabase } from '../driver/database.ts';
import type { Random } from '../driver/random.ts';

type Stored = readonly [call: number, digest: string];

/** A word index of its own that grows as tasks do: new ones, reworded ones, a few of many words, some words everywhere. */
export class GrowingIndex {
  readonly path: string;
  readonly db: Database;
  readonly #random: Random;
  #tasks = 0;
  #calls = 0;

  constructor(path: string, random: Random) {
    this.path = path;
    this.db = openDatabase(path);
    this.#random = random;
    this.db.pragma('journal_mode = WAL');
    this.db.pragma('synchronous = OFF');
    this.db.exec(SCHEMA);
    this.db.pragma(`application_id = ${APPLICATION_ID}`);
    this.db.pragma(`user_version = ${SCHEMA_VERSION}`);
  }

  grow(tasks: number): void {
    for (const end = this.#tasks + tasks; this.#tasks < end; ) {
      this.#tasks += 1;
      const words = this.#random.between(0, this.#random.oneIn(50) ? 1_500 : 60);
      this.#create(this.#tasks, this.#stored(5), this.#stored(words));
      this.#index(this.#tasks);
      if (!this.#random.oneIn(3)) continue;
      const reworded = this.#random.between(1, this.#tasks);
      this.db
        .prepare('UPDATE tasks SET title_call = ?, title = ? WHERE id = ?')
        .run(...this.#stored(5), reworded);
      this.#index(reworded);
    }
  }

  /** As a commit does. */
  #index(id: number): void {
    const text = (column: string) => namedText(`tasks.${column}_call`, `tasks.${column}`);
    const sql = `INSERT OR REPLACE INTO task_words (rowid, title, description)
      SELECT id, ${text('title')}, ${text('description')} FROM tasks WHERE id = ?`;
    this.db.prepare(sql).run(id);
  }

  #create(id: number, title: Stored, description: Stored): void {
    this.db
      .prepare(
        `INSERT INTO tasks (id, project, sequence, title_call, title, description_call, description, workflow, status, status_since, status_by, progress,
           priority, proof_grade, assignee, labels, depends_on, created_at, created_by, updated_at, updated_by, position)
         VALUES (?, 'demo', ?, ?, ?, ?, ?, 'kanban', 'backlog', '', '', 0, 'normal', 0, '', '[]', '[]', '', '', '', '', 1)`,
      )
      .run(id, id, ...title, ...description);
  }

  /** Puts a text where tasks find it, and answers what they call it. */
  #stored(words: number): Stored {
    const text = this.#text(words);
    const digest = sha256(text);
    this.#calls += 1;
    this.db.prepare("INSERT INTO texts VALUES (?, ?, '', ?)").run(textId(this.#calls, 0), digest, text);
    return [this.#calls, digest];
  }

  /** What the storage says of the index, in sentences. */
  async complaints(): Promise<string[]> {
    const storage = await openSqlite({ path: this.path, readOnly: true });
    try {
      return await storage.read(async (tx) => (await storage.selfCheck(tx)).map(({ message }) => message));
    } finally {
      await storage.close();
    }
  }

  #text(words: number): string {
    return Array.from({ length: words }, () =>
      this.#random.oneIn(3) ? 'common' : `w${this.#random.between(0, 6_000).toString(36)}`,
    ).join(' ');
  }
}
