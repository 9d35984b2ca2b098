import { readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Config } from '../config.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { isThere, readText, replaceFile, target } from '../private-files.ts';
import { isBeside } from '../trust/anchors.ts';
import { anchorInGit, pushedFrom } from '../trust/anchors-git.ts';
import {
  formatQuery,
  keepForStamp,
  readReply,
  readToken,
  type StampedCheckpoint,
  stampedCheckpoints,
  verifyToken,
} from '../trust/anchors-tsr.ts';
import { KeyFolder } from '../trust/key-folder.ts';
import { ANCHOR_REF, headIn, PUSH } from '../trust/opening.ts';
import { readView } from '../trust/own-log.ts';
import { shellQuote } from '../untrusted.ts';
import { existingFile } from './brought.ts';
import { keepNewest } from './checkpoint.ts';
import { command, UsageError } from './command.ts';
import { type AnchorState, collectEvidence } from './evidence.ts';
import { withLog, withOwner } from './open.ts';
import type { Output } from './output.ts';
import { type Column, printTable } from './table.ts';

/** Copies the newest checkpoint to a place that somebody who changes the database cannot change as well. */
export const anchor = command({
  name: 'anchor',
  usage: '--git | --file PATH | --tsq FILE | --tsr FILE [--ca FILE] | --list',
  summary: 'keep the newest checkpoint outside the database',
  details: `--git adds a commit to its own reference (${ANCHOR_REF}). A commit that is only on this machine is prepared and protects nothing yet: push it, then fetch it back so that git knows. --file copies the checkpoint to a file you keep elsewhere, for example on a USB stick or a share. --tsq writes a request to an RFC 3161 time-stamping authority; send it with "curl -H 'Content-Type: application/timestamp-query' --data-binary @FILE URL". --tsr stores the reply. "colibri verify" checks all of them.`,
  options: {
    git: { help: 'commit it to a ref in the workspace’s repository' },
    file: { value: 'PATH', help: 'copy it to a file; "colibri verify" compares it from now on' },
    tsq: { value: 'FILE', help: 'write a request to a time-stamping authority' },
    tsr: { value: 'FILE', help: 'store the authority’s reply' },
    ca: { value: 'FILE', help: 'the authority’s certificate, as PEM; kept for later checks' },
    list: { help: 'list the anchors and their state: prepared, pushed, time-stamped or kept' },
  },
  async run({ values: { git, file, tsq, tsr, ca, list }, out, config }) {
    if ([git, file, tsq, tsr, list].filter((place) => place !== undefined).length !== 1)
      throw new UsageError('Name one place: --git, --file PATH, --tsq FILE or --tsr FILE; or --list.');
    if (ca !== undefined && tsr === undefined) throw new UsageError('--ca goes with --tsr.');
    if (list === true) return await listAnchors(config, out);
    const head = await readHead(config, out);
    if ('refused' in head) return out.data(head, () => out.error(head.refused), false);
    if (file !== undefined) return toFile(head, resolve(file), out);
    if (tsq !== undefined) return writeRequest(head, resolve(tsq), out);
    if (tsr !== undefined) return fileReply(head, existingFile(tsr), ca && existingFile(ca), out);
    return toGit(head, out);
  },
});

/** What "colibri anchor" left anywhere, and what each of them is worth. */
async function listAnchors(config: Config, out: Output): Promise<number> {
  const { origin } = await withLog(config, out, (storage) => storage.read(readView));
  const { anchors, findings, remarks } = collectEvidence(config, config.dbPath, origin);
  const rows = anchors.sort((a, b) => a.size - b.size);
  return out.data(
    { anchors: rows, remarks },
    () => {
      if (rows.length === 0) out.line('There are no anchors yet.');
      else printTable(rows, ANCHOR_COLUMNS, out);
      for (const remark of remarks) out.line(out.paint('yellow', remark));
      for (const { message } of findings) out.line(out.paint('red', message));
    },
    findings.length === 0,
  );
}

const ANCHOR_COLUMNS: readonly Column<AnchorState>[] = [
  {
    name: 'state',
    text: ({ state }) => state,
    colour: ({ state }) =>
      (({ prepared: 'yellow', wrong: 'red' }) as const)[state as 'prepared' | 'wrong'] ?? 'green',
  },
  { name: 'rows', text: ({ size }) => String(size) },
  { name: 'kind', text: ({ kind }) => ({ git: 'git', tsr: 'time stamp', file: 'file' })[kind] },
  { name: 'time', text: ({ time = '' }) => time },
  {
    name: 'where',
    text: ({ where, commit }) => (commit === undefined ? where : `${where}, commit ${commit.slice(0, 12)}`),
  },
];

/** The newest signed head, and the log it belongs to. */
type Head = Exclude<Awaited<ReturnType<typeof readHead>>, { readonly refused: string }>;

async function readHead(config: Config, out: Output) {
  return await withOwner(config, out, async (stages) => {
    const newest = await keepNewest(config, stages);
    if ('refused' in newest) return newest;
    const sql = 'SELECT size, note FROM checkpoints ORDER BY size';
    /** Every checkpoint that the log keeps. */
    const kept = await stages.storage.read((tx) => tx.all<{ size: number; note: string }>(sql));
    return { ...newest, config, kept, folder: new KeyFolder(config.configDir, newest.origin) };
  });
}

function toGit({ config, note, size, folder }: Head, out: Output): number {
  const { commit, already, repository } = anchorInGit(config.workspace, note, size);
  folder.addAnchor('git', config.workspace);
  const [ref, push] = [ANCHOR_REF, PUSH];
  const where = repository === realpathSync(config.workspace) ? ref : `${ref} in ${repository}`;
  const state = pushedFrom(config.workspace).has(commit) ? 'pushed' : 'prepared';
  return out.data({ state, size, ref, repository, commit, already, push }, () => {
    out.line(
      already
        ? `${where} already ends with the checkpoint of ${size} audit rows.`
        : `The checkpoint of ${size} audit rows is commit ${commit.slice(0, 12)} on ${where}.`,
    );
    if (state === 'pushed') return out.line('A remote is known to have it.');
    out.line('It is prepared. It protects you once a remote has it, and counts once git knows that it does:');
    out.verbatim(push);
  });
}

function toFile({ config, origin, size, note, folder }: Head, path: string, out: Output): number {
  if (target(path)?.isDirectory() === true)
    throw new UsageError(`${path} is a folder. Name a file in it, for example ${join(path, 'checkpoint')}.`);
  if (target(dirname(path))?.isDirectory() !== true)
    throw new UsageError(`There is no folder ${dirname(path)}.`);
  const older = headIn(readText(path) ?? '');
  // Only a checkpoint of the same log is overwritten: the file is the user's.
  if (isThere(path) && !(older?.origin === origin && older.size <= size))
    throw new UsageError(
      `${path} contains something other than an older checkpoint of this log. Name another file.`,
    );
  replaceFile(path, note);
  const kept = join(realpathSync(dirname(path)), basename(path));
  folder.addAnchor('files', kept);
  const isPrepared = config.server === undefined && isBeside(kept, config.dbPath);
  return out.data({ size, path: kept }, () => {
    out.line(`The checkpoint of ${size} audit rows is in ${kept}. "colibri verify" compares it.`);
    if (isPrepared)
      out.line('It is only prepared, because it is in the folder of the database. Keep a copy elsewhere.');
  });
}

function writeRequest({ config, size, note }: Head, path: string, out: Output): number {
  const { notePath } = keepForStamp(config.besideDb, size, note);
  replaceFile(path, formatQuery(note));
  return out.data({ size, query: path, note: notePath }, () => {
    out.line(`The time-stamp request for the checkpoint of ${size} audit rows is in ${path}.`);
    out.verbatim(
      `Send it: curl -H 'Content-Type: application/timestamp-query' --data-binary ${shellQuote(`@${path}`)} URL > reply.tsr`,
    );
    out.line('Then store the reply: colibri anchor --tsr reply.tsr --ca CERTIFICATE');
  });
}

function fileReply(head: Head, reply: string, ca: string | undefined, out: Output): number {
  const bytes = readReply(reply, true);
  const token = bytes && readToken(bytes);
  if (bytes === undefined || token === undefined)
    throw new UsageError(`${reply} is not a reply from a time-stamping authority.`);
  const stamped = checkpointOf(head, token.imprint);
  if (stamped === undefined)
    throw new Error(
      `${reply} is not a time stamp for any checkpoint kept here. Make a new request with "colibri anchor --tsq FILE".`,
    );
  const reason = ca && verifyToken(bytes, stamped.note, [ca]);
  if (reason !== undefined) throw new Error(`${reply} is not valid under ${ca}: ${reason}.`);
  replaceFile(stamped.tokenPath, bytes);
  if (ca !== undefined) head.folder.addAuthority(readFileSync(ca, 'utf8'));
  const { size, tokenPath } = stamped;
  const checked = ca === undefined ? 'imprint' : 'authority';
  return out.data({ size, time: token.time, token: tokenPath, checked }, () => {
    out.line(`The checkpoint of ${size} audit rows existed at ${token.time}, according to ${tokenPath}.`);
    out.line(
      ca === undefined
        ? 'Only its digest was compared, with "openssl ts -reply". It counts as an anchor once you name the authority with --ca.'
        : 'Its authority was checked with "openssl ts -verify".',
    );
  });
}

/** The checkpoint that a token covers: among those a request was written for, those kept, and the newest. */
function checkpointOf(head: Head, imprint: string): StampedCheckpoint | undefined {
  const { besideDb } = head.config;
  const isCovered = ({ note }: { readonly note: string }) => sha256Hex(note) === imprint;
  const found = [...head.kept, head].find(isCovered);
  const asked = stampedCheckpoints(besideDb).stamps.find(isCovered);
  return asked ?? (found && keepForStamp(besideDb, found.size, found.note));
}
