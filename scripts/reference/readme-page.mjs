import { code, table } from './markdown.mjs';

const BEGIN = '<!-- The table is written by `node scripts/reference.mjs` from the code. -->';
const END = '<!-- End of the table. -->';

/** README.md with its table of tools as the code has them; everything else stays as a person wrote it. */
export function readmePage(readme, { tools }) {
  const [before, rest] = splitAt(readme, BEGIN);
  const [, after] = splitAt(rest, END);
  const rows = tools.map(({ name, summary, effect }) => [code(name), summary, effect]);
  return `${before}${BEGIN}\n\n${table(['Tool', 'Does', 'Effect'], rows)}\n\n${END}${after}`;
}

function splitAt(text, mark) {
  const at = text.indexOf(mark);
  if (at === -1) throw new Error(`README.md has lost its line ${mark}`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}
