import { expect, test } from 'vitest';
import { formatId, TASKS } from '../../log/tables.ts';
import { LastSeen } from '../../verify/last-seen.ts';
import { Memory } from '../../verify/memory.ts';
import { checkEffects } from '../../verify/rules/effects.ts';
import { LostRows } from '../../verify/rules/links.ts';

// What must not take the square of the time: whoever forges a log chooses how many there are.

const MANY = 100_000;

test('a call with a hundred thousand effects is judged', () => {
  const reported: string[] = [];
  const effects = Array.from({ length: MANY }, (_, i) => ({
    ...{ table: TASKS.name, of: TASKS, id: formatId(TASKS, i + 1), number: i + 1, previous: 0, hash: '' },
  }));

  const memory = new Memory({ whole: true }, new LostRows(), new LastSeen());
  const exit = { position: 2, tool: 'task_create', effects };

  const arePossible = checkEffects(exit, memory, ({ message }) => reported.push(message));

  expect([arePossible, reported]).toEqual([true, []]);
});

test('a log of which every second row is lost is looked through', () => {
  const lost = new LostRows();
  for (let position = 2; position <= 2 * MANY; position += 2) lost.add(position);

  const found = Array.from({ length: 2 * MANY }, (_, i) => lost.has(i + 1));

  expect(found.filter((isLost, i) => isLost !== ((i + 1) % 2 === 0))).toEqual([]);
});
