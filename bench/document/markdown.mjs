import { short } from '../table.mjs';

/** A table of rows of cells; columns of figures to the right. */
export function table(columns, rows) {
  const line = (cells) => `| ${cells.map((cell) => cell ?? '').join(' | ')} |`;
  return [
    line(columns.map(({ title }) => title)),
    line(columns.map(({ figure }) => (figure ? '--:' : '---'))),
    ...rows.map((row) => line(columns.map(({ of }) => of(row)))),
  ].join('\n');
}

export const figure = (title, of) => ({ title, figure: true, of: (row) => cell(of(row)) });
export const words = (title, of) => ({ title, of: (row) => of(row) ?? '' });

const cell = (value) => (value === undefined ? '–' : typeof value === 'number' ? short(value) : value);
