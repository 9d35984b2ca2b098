import { createReadStream, createWriteStream, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../clock.ts';
import { heldTasks, onlooker } from '../domains/tasks/holders.ts';
import { type BundleRequest, writeBundle } from '../export/bundle.ts';
import { formatId, TASKS } from '../log/tables.ts';
import {
  isThere,
  makePrivateFolder,
  makeTemporaryFolder,
  openPrivate,
  readStart,
  readWhole,
} from '../private-files.ts';
import type { StorageEngine } from '../storage/engine.ts';
import { jsonText } from '../untrusted.ts';
import * as forms from '../verify/sources/forms.ts';
import type { Period } from './glance.ts';
import type { Abandoned } from './live/form.ts';

/** The empty page holds this once; the data replaces it. */
export const NO_BUNDLE = '<script type="application/json" id="bundle">null</script>';
/** The title is in the first lines of a page. */
const HEAD_BYTES = 65_536;
const OPEN = '<script type="application/json" id="bundle">{"name":';

/**
 * The page that checks bundles, without one inside: `verify.html` in a bundle. The build puts it next to the command line;
 * run from source, it is in `dist`, or nowhere before the first build.
 */
export function reportPage(): string | undefined {
  for (const place of ['verify.html', '../../dist/verify.html']) {
    const page = readWhole(fileURLToPath(new URL(place, import.meta.url)), undefined, true);
    if (page !== undefined) return page.toString('utf8');
  }
  return undefined;
}

/** The same, where nothing can be done without it. */
export function requirePage(): string {
  const page = reportPage();
  if (page?.split(NO_BUNDLE).length !== 2)
    throw new Error('verify.html is missing: the installation is incomplete. Reinstall Colibri.');
  return page;
}

/** The scripts that check bundles without Colibri, by name in a bundle; none where the installation has none. */
export function bundleScripts(): ReadonlyMap<string, string> {
  const found = forms.SCRIPTS.flatMap((name) => {
    const file = name.slice(name.indexOf('/') + 1);
    const places = [`../docs/${file}`, `../../docs/${file}`].map((place) => new URL(place, import.meta.url));
    const [bytes] = places.flatMap((place) => readWhole(fileURLToPath(place), undefined, true) ?? []);
    return bytes === undefined ? [] : [[name, bytes.toString('utf8')] as const];
  });
  return new Map(found.length === forms.SCRIPTS.length ? found : []);
}

/**
 * Writes the page with a bundle inside as one file. The bundle is the very zip that `colibri export` makes, so that the
 * page has one kind of input and can hand it out again.
 */
export async function writeReport(
  storage: StorageEngine,
  request: BundleRequest & { readonly leaseMinutes: number },
  path: string,
  /** What the summary looks at more closely. */
  period?: Period,
) {
  const target = resolve(path);
  // Only a report of ours may be overwritten.
  if (isThere(target) && readStart(target, HEAD_BYTES)?.includes('<title>Colibri report</title>') !== true)
    throw new Error(
      `${target} exists and is not a report, so it was not overwritten. Name another file with -o.`,
    );
  const page = requirePage();
  const folder = makeTemporaryFolder('report');
  try {
    const zip = join(folder, 'bundle.zip');
    const written = await writeBundle(storage, { ...request, page, scripts: bundleScripts() }, zip);
    makePrivateFolder(dirname(target), false);
    const abandoned = await readAbandoned(storage, request.leaseMinutes);
    await writePage(target, page, zip, { abandoned, ...(period && { period }) });
    return { ...written, bytes: statSync(target).size };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What only this machine can see and no log can prove: whose holders are gone or silent now. The page says when that was. */
export async function readAbandoned(
  storage: Pick<StorageEngine, 'read'>,
  leaseMinutes: number,
): Promise<Abandoned> {
  const looker = onlooker(systemClock, leaseMinutes);
  const all = Number.MAX_SAFE_INTEGER;
  const { abandoned } = await storage.read((tx) => heldTasks(tx, undefined, looker, all));
  return { at: looker.at, tasks: abandoned.map(({ id }) => formatId(TASKS, id)) };
}

/** The file appears at the target only when it is complete. Only its owner may read it: calls may have been given secrets. */
async function writePage(target: string, page: string, zip: string, said: object): Promise<void> {
  const [before, after] = page.split(NO_BUNDLE);
  // JSON that cannot end the script element it is in.
  const name = jsonText(`${basename(target).replace(/\.html?$/i, '')}.zip`).replaceAll('<', '\\u003c');
  const making = join(dirname(target), `.${basename(target)}.${systemClock.salt()}.new`);
  async function* parts() {
    // Members of the same object: what is known beside the bundle.
    yield `${before}${OPEN}${name},${jsonText(said).slice(1, -1)},"zip":"`;
    yield* createReadStream(zip, 'base64');
    yield `"}</script>${after}`;
  }
  try {
    await pipeline(parts, createWriteStream('', { fd: openPrivate(making, 'wx') }));
    renameSync(making, target);
  } catch (error) {
    rmSync(making, { force: true });
    throw error;
  }
}
