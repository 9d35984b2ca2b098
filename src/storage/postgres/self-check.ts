import type { Reader, StorageProblem } from '../engine.ts';
import { namedText } from '../text-ids.ts';
import { compareStructure, DEFINITIONS, type Definition } from './structure.ts';
import { indexedWords } from './words.ts';

/** What is wrong with the structure, and with the words that tasks are found by. */
export async function findProblems(tx: Reader): Promise<StorageProblem[]> {
  const structure = compareStructure(await tx.all<Definition>(DEFINITIONS));
  return [...structure, ...(await findWordProblems(tx))];
}

const PAGE = 500;

type Worded = Readonly<Record<'id' | 'words' | 'title' | 'description', unknown>>;

/** The words of every task must be those of its texts. */
async function findWordProblems(tx: Reader): Promise<StorageProblem[]> {
  const problems: StorageProblem[] = [];
  const tell = (id: unknown) => {
    const record = `T-${String(id).padStart(4, '0')}`;
    const message = `task_words disagrees with task ${id}: searching would miss tasks or find them wrongly.`;
    problems.push({ kind: 'index', table: 'task_words', record, message });
  };
  for (let last = -1; ; ) {
    const page = await tx.all<Worded>(
      `SELECT t.id, w.words, ${namedText('t.title_call', 't.title')} AS title,
         ${namedText('t.description_call', 't.description')} AS description
       FROM tasks t LEFT JOIN task_words w ON w.task_id = t.id
       WHERE t.id > ? ORDER BY t.id LIMIT ${PAGE}`,
      last,
    );
    for (const { id, words, title, description } of page)
      if (words !== indexedWords([String(title), String(description)])) tell(id);
    if (page.length < PAGE) break;
    last = Number(page.at(-1)?.id);
  }
  const stray = await tx.all<{ id: number }>(
    'SELECT task_id AS id FROM task_words WHERE task_id NOT IN (SELECT id FROM tasks) ORDER BY task_id LIMIT 100',
  );
  for (const { id } of stray) tell(id);
  return problems;
}
