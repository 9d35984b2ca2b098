// Writes the pages of docs/reference that repeat what the code says. `--check` writes
// nothing and exits 1 where a page on disk is not what the code says.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { clientsPage } from './reference/clients-page.mjs';
import { commandsPage } from './reference/commands-page.mjs';
import { environmentPage } from './reference/environment-page.mjs';
import { errorsPage } from './reference/errors-page.mjs';
import { runExamples } from './reference/examples.mjs';
import { limitsPage } from './reference/limits-page.mjs';
import { missingSentences } from './reference/sentences.mjs';
import { loadSource } from './reference/source.mjs';
import { toolsPage } from './reference/tools-page.mjs';

const folder = new URL('../docs/reference/', import.meta.url);
const source = await loadSource();
const examples = await runExamples(source);

const pages = {
  'clients.md': clientsPage(source),
  'commands.md': commandsPage(source),
  'environment.md': environmentPage(source, examples),
  'errors.md': errorsPage(source, examples),
  'limits.md': limitsPage(source),
  'tools.md': toolsPage(source, examples),
};

for (const missing of missingSentences()) console.error(`no sentence yet: ${missing}`);
if (process.argv.includes('--check')) check();
else write();

function check() {
  const stale = Object.keys(pages).filter((name) => readPage(name) !== pages[name]);
  if (stale.length === 0) return;
  console.error(
    `out of date, seen from docs/reference: ${stale.join(', ')}. Run: node scripts/reference.mjs`,
  );
  process.exitCode = 1;
}

function write() {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(pages)) {
    if (readPage(name) === text) continue;
    writeFileSync(new URL(name, folder), text);
    console.log(`wrote ${fileURLToPath(new URL(name, folder))}`);
  }
}

function readPage(name) {
  try {
    return readFileSync(new URL(name, folder), 'utf8');
  } catch {
    return undefined;
  }
}
