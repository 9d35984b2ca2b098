import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { code, GENERATED, page, table } from './markdown.mjs';
import { root } from './source.mjs';

/** docs/reference/limits.md. The reasons are the comments in the code, so they are read from its text. */
export function limitsPage() {
  return page(
    '# Limits',
    GENERATED,
    'Exceeding a limit gives an error, or a partial result that says what was left out. All limits are inclusive.',
    '## Server',
    limitsIn('src/limits.ts'),
    '## Skills folders',
    limitsIn('src/domains/skills/skill-folder.ts'),
  );
}

const COMMENT = /^\s*\/\*\* (.*) \*\/$/;
const ENTRY = /^\s*(\w+): ([\d_.]+),$/;

/** A comment stands above the first of the limits it explains. */
function limitsIn(file) {
  const rows = [];
  let reason = '';
  for (const line of readFileSync(join(root, file), 'utf8').split('\n')) {
    const comment = COMMENT.exec(line);
    const entry = ENTRY.exec(line);
    if (comment !== null) reason = comment[1];
    if (entry === null) continue;
    rows.push([code(entry[1]), Number(entry[2].replaceAll('_', '')).toLocaleString('en'), reason]);
    reason = '';
  }
  if (rows.length === 0) throw new Error(`no limits found in ${file}`);
  return table(['Name', 'Value', 'Why'], rows);
}
