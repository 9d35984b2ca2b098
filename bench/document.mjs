// Makes the tables of docs/performance.md and docs/scale.md and the plots beside them of bench/results.json. `node bench/document.mjs` writes
// them; with --check it writes nothing and exits 1 where they are not what the results say.
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { growthPlot, rivalsPlot } from './document/plots.mjs';
import { rivalsGrowth, rivalsKept, rivalsNotes, rivalsSpeed } from './document/rivals-tables.mjs';
import { delayTable, measuredText, processesTable } from './document/scale.mjs';
import {
  barsTable,
  machineText,
  missedText,
  seriesTable,
  sustainedText,
  verdictText,
} from './document/tables.mjs';
import { readResults } from './results.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const docs = (name) => fileURLToPath(new URL(`../docs/${name}`, import.meta.url));
const IMAGES = fileURLToPath(new URL('../docs/images/', import.meta.url));

/** The parts of each page, by their marks. */
const PERFORMANCE = {
  verdict: verdictText,
  bars: barsTable,
  sustained: sustainedText,
  missed: missedText,
  series: seriesTable,
  'rivals-speed': rivalsSpeed,
  'rivals-growth': rivalsGrowth,
  'rivals-kept': rivalsKept,
  'rivals-notes': rivalsNotes,
  machine: machineText,
};
const SCALE = {
  'scale-measured': measuredText,
  'scale-processes': processesTable,
  'scale-delay': delayTable,
};
const PAGES = { 'performance.md': PERFORMANCE, 'scale.md': SCALE };

if (realpathSync(process.argv[1] ?? '') === fileURLToPath(import.meta.url)) {
  if (process.argv.includes('--check')) check();
  else for (const file of writeDocument()) console.log(`wrote ${file}`);
}

/** Writes what is out of date; returns the files written. */
export function writeDocument() {
  const stale = staleFiles();
  for (const { file, text } of stale) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return stale.map(({ file }) => relative(root, file));
}

function check() {
  const stale = staleFiles().map(({ file }) => relative(root, file));
  if (stale.length === 0) return;
  console.error(`not what bench/results.json says: ${stale.join(', ')}. Run: node bench/document.mjs`);
  process.exitCode = 1;
}

function staleFiles() {
  const results = readResults();
  const files = [
    ...Object.entries(PAGES).map(([name, parts]) => ({
      file: docs(name),
      text: filledPage(name, readFileSync(docs(name), 'utf8'), parts, results),
    })),
    { file: `${IMAGES}latency.svg`, text: growthPlot(results.growth) },
    { file: `${IMAGES}rivals.svg`, text: rivalsPlot(results.rivals) },
  ];
  return files.filter(({ file, text }) => readText(file) !== text);
}

/** The page with each part between its marks made anew. A mark without a part, or a part without marks, is a mistake. */
function filledPage(file, page, parts, results) {
  const found = new Set();
  const filled = page.replace(
    /(<!-- bench:([\w-]+) -->\n).*?(<!-- \/bench -->)/gs,
    (_, open, name, close) => {
      if (parts[name] === undefined) throw new Error(`${file} asks for "${name}", which nobody makes`);
      found.add(name);
      return `${open}\n${parts[name](results)}\n\n${close}`;
    },
  );
  const missing = Object.keys(parts).filter((name) => !found.has(name));
  if (missing.length > 0) throw new Error(`${file} has no place for ${missing.join(', ')}`);
  return filled;
}

function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
