import { copyFileSync, existsSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Config } from '../config.ts';
import { type Checkpoint, parseCheckpoint } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import { AnchorFiles, AnchorMemory, type StampedCheckpoint } from '../log/anchors.ts';
import { ANCHOR_REF, anchorInGit } from '../log/anchors-git.ts';
import { readToken, verifyToken, writeQuery } from '../log/anchors-tsr.ts';
import { CheckpointFiles } from '../log/checkpoint-files.ts';
import { LogFolder } from '../log/log-folder.ts';
import { type Command, EXIT, type Invocation, UsageError } from './command.ts';
import { signNow, withWritable } from './signing.ts';

/** Puts the newest checkpoint where whoever changes the database cannot also change it. */
export const anchor: Command = {
  name: 'anchor',
  usage: '--git | --file PATH | --tsq FILE | --tsr FILE [--ca FILE]',
  summary: 'keep the newest checkpoint outside the database',
  details: `--git adds a commit to a reference of its own (${ANCHOR_REF}); push it. --file copies the checkpoint to any file you keep, on a stick or a share. --tsq writes a question for an RFC 3161 time-stamping authority, and --tsr files its answer: send the question with "curl -H 'Content-Type: application/timestamp-query' --data-binary @FILE URL". "colibri verify" looks at all of them.`,
  options: {
    git: { type: 'boolean', help: 'commit it to a reference of the workspace’s repository' },
    ref: { type: 'string', value: 'REF', help: `another reference than ${ANCHOR_REF}` },
    file: { type: 'string', value: 'PATH', help: 'copy it to a file, and remember to compare it there' },
    tsq: { type: 'string', value: 'FILE', help: 'write the question for a time-stamping authority' },
    tsr: { type: 'string', value: 'FILE', help: 'file the answer of the authority' },
    ca: { type: 'string', value: 'FILE', help: 'the authority’s certificate, in PEM; kept for later checks' },
  },
  positionals: [0, 0],
  async run(invocation) {
    const [way, ...more] = WAYS.filter(({ option }) => given(invocation, option));
    if (way === undefined || more.length > 0)
      throw new UsageError('Name one place: --git, --file PATH, --tsq FILE or --tsr FILE.');
    refuseStray(invocation, way.option);
    const config = invocation.config();
    const signed = await withWritable(config, (storage) => signNow(config, storage));
    if (signed.note === undefined) {
      invocation.out.data({ refused: signed.refused }, () => invocation.out.error(signed.refused));
      return EXIT.found;
    }
    return way.run(headOf(config, signed.note), invocation);
  },
};

/** The head that was just signed, and where it belongs. */
interface Head extends Checkpoint {
  readonly config: Config;
  readonly note: string;
  readonly folder: LogFolder;
  readonly memory: AnchorMemory;
}

interface Way {
  readonly option: string;
  /** The options that make sense with it. */
  readonly with?: string;
  run(head: Head, invocation: Invocation): number;
}

const WAYS: readonly Way[] = [
  { option: 'git', with: 'ref', run: toGit },
  { option: 'file', run: toFile },
  { option: 'tsq', run: writeQuestion },
  { option: 'tsr', with: 'ca', run: fileAnswer },
];

function toGit(head: Head, { values, out }: Invocation): number {
  const { config, note, size, memory, folder } = head;
  const ref = typeof values.ref === 'string' ? values.ref : ANCHOR_REF;
  const { commit, already } = anchorInGit({
    folder: config.workspace,
    ref,
    note,
    size,
    key: folder.verifierKey() ?? '',
  });
  memory.addGit(config.workspace, ref);
  const push = `git push origin ${ref}`;
  out.data({ size, ref, commit, already, push }, () => {
    out.line(
      already
        ? `${ref} ends in the checkpoint at ${size} audit rows already.`
        : `The checkpoint at ${size} audit rows is commit ${commit.slice(0, 12)} on ${ref}.`,
    );
    out.verbatim(`It protects once it is elsewhere: ${push}`);
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
      `${path} holds something else than an older checkpoint of this log. Name another file.`,
    );
  writeFileSync(path, head.note);
  const kept = join(realpathSync(dirname(path)), basename(path));
  head.memory.addFile(kept);
  invocation.out.data({ size: head.size, path: kept }, () => {
    invocation.out.line(
      `The checkpoint at ${head.size} audit rows is in ${kept}. "colibri verify" compares it.`,
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

function writeQuestion(head: Head, invocation: Invocation): number {
  const path = resolve(text(invocation, 'tsq'));
  const kept = new AnchorFiles(head.config.dbPath).keep(head.size, head.note);
  writeQuery(kept.notePath, path);
  invocation.out.data({ size: head.size, query: path, note: kept.notePath }, () => {
    invocation.out.line(`The question about the checkpoint at ${head.size} audit rows is in ${path}.`);
    invocation.out.verbatim(
      `Ask with: curl -H 'Content-Type: application/timestamp-query' --data-binary @${path} URL > answer.tsr`,
    );
    invocation.out.line('Then: colibri anchor --tsr answer.tsr --ca CERTIFICATE');
  });
  return EXIT.fine;
}

function fileAnswer(head: Head, invocation: Invocation): number {
  const { out, values } = invocation;
  const answer = resolve(text(invocation, 'tsr'));
  requireFile(answer);
  const ca = typeof values.ca === 'string' ? resolve(values.ca) : undefined;
  if (ca !== undefined) requireFile(ca);
  const token = readToken(answer);
  if (token === undefined) throw new UsageError(`${answer} is no answer of a time-stamping authority.`);
  const stamped = checkpointOf(head, token.imprint);
  if (stamped === undefined) {
    out.error(
      `${answer} is no time stamp of a checkpoint that is kept here. Ask again with "colibri anchor --tsq FILE".`,
    );
    return EXIT.found;
  }
  const reason = ca === undefined ? undefined : verifyToken(answer, stamped.notePath, [ca]);
  if (reason !== undefined) {
    out.error(`${answer} does not hold under ${ca}: ${reason}.`);
    return EXIT.found;
  }
  copyFileSync(answer, stamped.tokenPath);
  if (ca !== undefined) head.memory.addAuthority(readFileSync(ca, 'utf8'));
  const checked = ca === undefined ? 'imprint' : 'authority';
  out.data({ size: stamped.size, time: token.time, token: stamped.tokenPath, checked }, () => {
    out.line(
      `The checkpoint at ${stamped.size} audit rows existed at ${token.time}, says ${stamped.tokenPath}.`,
    );
    out.line(
      ca === undefined
        ? 'Only its digest was compared, with "openssl ts -reply". It counts as an anchor once the authority is named with --ca.'
        : 'Its authority was checked with "openssl ts -verify".',
    );
  });
  return EXIT.fine;
}

/** The checkpoint a token speaks of: among those a question was written for, those kept, and the newest. */
function checkpointOf(head: Head, imprint: string): StampedCheckpoint | undefined {
  const anchors = new AnchorFiles(head.config.dbPath);
  const asked = anchors.all().find(({ note }) => sha256Hex(note) === imprint);
  if (asked !== undefined) return asked;
  const kept = [...new CheckpointFiles(head.config.dbPath).kept(), { size: head.size, note: head.note }];
  const found = kept.find(({ note }) => sha256Hex(note) === imprint);
  return found === undefined ? undefined : anchors.keep(found.size, found.note);
}

function headOf(config: Config, note: string): Head {
  const checkpoint = parse(note);
  const folder = new LogFolder(config.configDir, checkpoint.origin);
  return { ...checkpoint, config, note, folder, memory: new AnchorMemory(folder.path) };
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
  for (const way of WAYS)
    if (way.with !== undefined && way.option !== option && given(invocation, way.with))
      throw new UsageError(`--${way.with} goes with --${way.option}.`);
}

function requireFile(path: string): void {
  if (!existsSync(path)) throw new UsageError(`There is no file ${path}.`);
}
