import { copyFileSync, existsSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Config } from '../config.ts';
import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { AnchorMemory } from '../trust/anchors.ts';
import { ANCHOR_REF, anchorInGit } from '../trust/anchors-git.ts';
import {
  AnchorFiles,
  readToken,
  type StampedCheckpoint,
  verifyToken,
  writeQuery,
} from '../trust/anchors-tsr.ts';
import { KeyFolder } from '../trust/key-folder.ts';
import { keepNewest } from './checkpoint.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';
import { type OwnerStages, withOwner } from './stages.ts';

/** Copies the newest checkpoint to a place that whoever changes the database cannot also change. */
export const anchor: Command = {
  name: 'anchor',
  usage: '--git | --file PATH | --tsq FILE | --tsr FILE [--ca FILE]',
  summary: 'keep the newest checkpoint outside the database',
  details: `--git adds a commit to its own reference (${ANCHOR_REF}); push it. --file copies the checkpoint to any file you keep, for example on a stick or a share. --tsq writes a request to an RFC 3161 time-stamping authority; send it with "curl -H 'Content-Type: application/timestamp-query' --data-binary @FILE URL". --tsr files the reply. "colibri verify" checks all of them.`,
  options: {
    git: { type: 'boolean', help: 'commit it to a reference of the workspace’s repository' },
    ref: { type: 'string', value: 'REF', help: `the reference to use (${ANCHOR_REF})` },
    file: {
      type: 'string',
      value: 'PATH',
      help: 'copy it to a file that "colibri verify" compares from now on',
    },
    tsq: { type: 'string', value: 'FILE', help: 'write the request to a time-stamping authority' },
    tsr: { type: 'string', value: 'FILE', help: 'file the authority’s reply' },
    ca: { type: 'string', value: 'FILE', help: 'the authority’s certificate, in PEM; kept for later checks' },
  },
  positionals: [0, 0],
  async run(invocation) {
    const [place, ...more] = PLACES.filter(({ option }) => given(invocation, option));
    if (place === undefined || more.length > 0)
      throw new UsageError('Name one place: --git, --file PATH, --tsq FILE or --tsr FILE.');
    refuseStray(invocation, place.option);
    const { out } = invocation;
    const config = invocation.config();
    const head = await withOwner(config, out, (stages) => newestHead(config, stages));
    if ('refused' in head) {
      out.data(head, () => out.error(head.refused));
      return EXIT.found;
    }
    return place.run(head, invocation);
  },
};

/** The newest signed head, and the log it belongs to. */
interface Head extends Checkpoint {
  readonly config: Config;
  readonly note: string;
  readonly key: string;
  /** Every checkpoint that the log keeps. */
  readonly kept: readonly { readonly size: number; readonly note: string }[];
  readonly memory: AnchorMemory;
}

interface Place {
  readonly option: string;
  /** The option that goes with it. */
  readonly with?: string;
  run(head: Head, invocation: Invocation): number;
}

const PLACES: readonly Place[] = [
  { option: 'git', with: 'ref', run: toGit },
  { option: 'file', run: toFile },
  { option: 'tsq', run: writeRequest },
  { option: 'tsr', with: 'ca', run: fileReply },
];

function toGit(head: Head, { values, out }: Invocation): number {
  const { config, note, size, memory, key } = head;
  const ref = typeof values.ref === 'string' ? values.ref : ANCHOR_REF;
  const { commit, already } = anchorInGit({
    folder: config.workspace,
    ref,
    note,
    size,
    key,
  });
  memory.add('git', { repository: config.workspace, ref });
  const push = `git push origin ${ref}`;
  out.data({ size, ref, commit, already, push }, () => {
    out.line(
      already
        ? `${ref} already ends in the checkpoint of ${size} audit rows.`
        : `The checkpoint of ${size} audit rows is commit ${commit.slice(0, 12)} on ${ref}.`,
    );
    out.verbatim(`It protects you once a remote has it: ${push}`);
  });
  return EXIT.fine;
}

function toFile(head: Head, invocation: Invocation): number {
  const path = resolve(text(invocation, 'file'));
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
    throw new UsageError(`${path} is a folder. Name a file in it, for example ${join(path, 'checkpoint')}.`);
  if (!existsSync(dirname(path))) throw new UsageError(`There is no folder ${dirname(path)}.`);
  if (existsSync(path) && !isOlderHead(path, head))
    throw new UsageError(
      `${path} holds something other than an older checkpoint of this log. Name another file.`,
    );
  writeFileSync(path, head.note);
  const kept = join(realpathSync(dirname(path)), basename(path));
  head.memory.add('files', kept);
  invocation.out.data({ size: head.size, path: kept }, () => {
    invocation.out.line(
      `The checkpoint of ${head.size} audit rows is in ${kept}. "colibri verify" compares it.`,
    );
  });
  return EXIT.fine;
}

/** Only a checkpoint of the same log is overwritten: the file is the user's. */
function isOlderHead(path: string, { origin, size }: Head): boolean {
  try {
    const found = parse(readFileSync(path, 'utf8'));
    return found.origin === origin && found.size <= size;
  } catch {
    return false;
  }
}

function writeRequest(head: Head, invocation: Invocation): number {
  const path = resolve(text(invocation, 'tsq'));
  const kept = new AnchorFiles(head.config.dbPath).keep(head.size, head.note);
  writeQuery(kept.notePath, path);
  invocation.out.data({ size: head.size, query: path, note: kept.notePath }, () => {
    invocation.out.line(
      `The time-stamp request for the checkpoint of ${head.size} audit rows is in ${path}.`,
    );
    invocation.out.verbatim(
      `Send it: curl -H 'Content-Type: application/timestamp-query' --data-binary @${path} URL > reply.tsr`,
    );
    invocation.out.line('Then file the reply: colibri anchor --tsr reply.tsr --ca CERTIFICATE');
  });
  return EXIT.fine;
}

function fileReply(head: Head, invocation: Invocation): number {
  const { out, values } = invocation;
  const reply = resolve(text(invocation, 'tsr'));
  requireFile(reply);
  const ca = typeof values.ca === 'string' ? resolve(values.ca) : undefined;
  if (ca !== undefined) requireFile(ca);
  const token = readToken(reply);
  if (token === undefined) throw new UsageError(`${reply} is not a reply of a time-stamping authority.`);
  const stamped = checkpointOf(head, token.imprint);
  if (stamped === undefined) {
    out.error(
      `${reply} is not a time stamp of any checkpoint kept here. Make a new request with "colibri anchor --tsq FILE".`,
    );
    return EXIT.found;
  }
  const reason = ca === undefined ? undefined : verifyToken(reply, stamped.notePath, [ca]);
  if (reason !== undefined) {
    out.error(`${reply} is not valid under ${ca}: ${reason}.`);
    return EXIT.found;
  }
  copyFileSync(reply, stamped.tokenPath);
  if (ca !== undefined) head.memory.addAuthority(readFileSync(ca, 'utf8'));
  const checked = ca === undefined ? 'imprint' : 'authority';
  out.data({ size: stamped.size, time: token.time, token: stamped.tokenPath, checked }, () => {
    out.line(
      `The checkpoint of ${stamped.size} audit rows existed at ${token.time}, according to ${stamped.tokenPath}.`,
    );
    out.line(
      ca === undefined
        ? 'Only its digest was compared, with "openssl ts -reply". It counts as an anchor once you name the authority with --ca.'
        : 'Its authority was checked with "openssl ts -verify".',
    );
  });
  return EXIT.fine;
}

/** The checkpoint that a token covers: among those a request was written for, those kept, and the newest. */
function checkpointOf(head: Head, imprint: string): StampedCheckpoint | undefined {
  const anchors = new AnchorFiles(head.config.dbPath);
  const asked = anchors.all().find(({ note }) => sha256Hex(note) === imprint);
  if (asked !== undefined) return asked;
  const found = [...head.kept, { size: head.size, note: head.note }].find(
    ({ note }) => sha256Hex(note) === imprint,
  );
  return found === undefined ? undefined : anchors.keep(found.size, found.note);
}

async function newestHead(config: Config, stages: OwnerStages): Promise<Head | { readonly refused: string }> {
  const newest = await keepNewest(config, stages);
  if (newest.note === undefined) return newest;
  const kept = await stages.storage.read((tx) =>
    tx.all<{ size: number; note: string }>('SELECT size, note FROM checkpoints ORDER BY size'),
  );
  const checkpoint = parse(newest.note);
  const { path } = new KeyFolder(config.configDir, checkpoint.origin);
  return { ...checkpoint, ...newest, config, kept, memory: new AnchorMemory(path) };
}

function parse(note: string): Checkpoint {
  return parseCheckpoint(note.slice(0, note.lastIndexOf('\n\n') + 1));
}

function given({ values }: Invocation, option: string): boolean {
  return values[option] !== undefined && values[option] !== false;
}

function text({ values }: Invocation, option: string): string {
  const value = values[option];
  if (typeof value !== 'string' || value === '') throw new UsageError(`--${option} needs a file.`);
  return value;
}

function refuseStray(invocation: Invocation, option: string): void {
  for (const place of PLACES)
    if (place.with !== undefined && place.option !== option && given(invocation, place.with))
      throw new UsageError(`--${place.with} goes with --${place.option}.`);
}

function requireFile(path: string): void {
  if (!existsSync(path)) throw new UsageError(`There is no file ${path}.`);
}
