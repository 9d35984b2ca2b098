import { type Checkpoint, parseCheckpoint } from '../../integrity/checkpoint.ts';
import type { VerifierKey } from '../../integrity/note-key.ts';
import { NoteError, openNote } from '../../integrity/signed-note.ts';

/** Who kept a head of the log. `git`, `tsr` and `file` are anchors: kept where the database is not. */
export type Source = 'last-signed' | 'newest' | 'kept' | 'git' | 'tsr' | 'file' | 'against';

/** A head somebody kept. Hostile input enters here: whoever changed the database may have changed this too. */
export interface Evidence {
  readonly source: Source;
  /** Where it was found, for people. */
  readonly where: string;
  readonly note: string;
}

/** What is trusted, and what once was. */
export interface Keyring {
  readonly current: readonly VerifierKey[];
  /** Given up by the owner: what they signed is known, but the log need not go on from it. */
  readonly retired: readonly VerifierKey[];
}

/** What the walk over the log found, as far as heads are concerned. */
export interface LogFacts {
  readonly origin: string | undefined;
  readonly size: number;
  readonly complete: boolean;
  readonly roots: ReadonlyMap<number, readonly string[]>;
}

/**
 * `consistent`: the log begins with it. `unchecked`: nobody here can tell. `given-up`: it disagrees, and the owner has
 * accepted that. `nothing`: a head of no rows. The others are findings.
 */
type Status =
  | 'consistent'
  | 'unchecked'
  | 'given-up'
  | 'nothing'
  | 'cut'
  | 'rewritten'
  | 'other-log'
  | 'foreign-key'
  | 'malformed';

export interface Judged extends Evidence {
  readonly status: Status;
  readonly size: number;
  readonly root: string;
  readonly origin: string;
  /** A whole sentence. */
  readonly message: string;
}

/** The size a note speaks of, before anything about it is believed: so that one walk can compute every root. */
export function claimedSize({ note }: Evidence): number {
  try {
    return textOf(note).size;
  } catch {
    return 0;
  }
}

/** Compares one kept head with the log as it was read. */
export function judge(evidence: Evidence, keys: Keyring, log: LogFacts): Judged {
  const opened = open(evidence, keys);
  const { origin, size, root } = opened.checkpoint ?? { origin: '', size: 0, root: '' };
  const verdict = (status: Status, message: string): Judged => ({
    ...evidence,
    status,
    size,
    root,
    origin,
    message,
  });
  if (opened.checkpoint === undefined) return verdict('malformed', `${evidence.where}: ${opened.reason}.`);
  if (origin !== log.origin)
    return verdict(
      'other-log',
      `${evidence.where} is a head of the log ${origin}, and this is ${log.origin ?? 'a log without rows'}: another database, or one rewritten from its first row.`,
    );
  if (opened.by === undefined && opened.known)
    return verdict('foreign-key', `${evidence.where}: ${opened.reason}.`);
  if (size === 0) return verdict('nothing', `${evidence.where} is a head of no rows and says nothing.`);
  const compared = compare(size, root, log, evidence.where);
  const disagrees = compared.status === 'cut' || compared.status === 'rewritten';
  if (disagrees && opened.by === 'retired' && evidence.source !== 'against')
    return verdict('given-up', `${compared.message} Its key was given up, and with it what it signed.`);
  if (opened.by !== undefined) return verdict(compared.status, compared.message);
  // A root that somebody kept is evidence even unsigned, if it comes from outside; beside the database it is not.
  const believed = disagrees || evidence.source === 'against';
  const message = `${compared.message} (${opened.reason}.)`;
  return verdict(believed ? compared.status : 'unchecked', message);
}

function compare(
  size: number,
  root: string,
  log: LogFacts,
  where: string,
): { status: Status; message: string } {
  if (size > log.size) {
    return log.complete
      ? { status: 'cut', message: `${where} covers ${size} audit rows, but only ${log.size} are there.` }
      : { status: 'unchecked', message: `${where} covers ${size} audit rows, which the damage hides.` };
  }
  if (log.roots.get(size)?.includes(root))
    return { status: 'consistent', message: `${where} agrees with the first ${size} audit rows.` };
  return {
    status: 'rewritten',
    message: `The first ${size} audit rows are not those that ${where} was made of: history was rewritten.`,
  };
}

interface Opened {
  readonly checkpoint?: Checkpoint;
  readonly by?: 'current' | 'retired';
  /** Whether any key is known at all. */
  readonly known: boolean;
  readonly reason?: string;
}

function open({ note }: Evidence, { current, retired }: Keyring): Opened {
  const known = current.length > 0;
  try {
    const { text, verified } = openNote(note, [...current, ...retired]);
    const isCurrent = verified.some(({ id }) => current.some((key) => key.id === id));
    return { checkpoint: parseCheckpoint(text), by: isCurrent ? 'current' : 'retired', known };
  } catch (error) {
    if (!(error instanceof NoteError) || error.fault !== 'no-known-key')
      return { known, reason: `not a valid checkpoint (${error instanceof Error ? error.message : error})` };
  }
  try {
    const reason = known
      ? 'it is signed by another key than this log’s'
      : 'Its signature was not checked: no key of this log is known here; give it with --key';
    return { checkpoint: textOf(note), known, reason };
  } catch (error) {
    return { known, reason: `not a checkpoint (${error instanceof Error ? error.message : error})` };
  }
}

/** The head in a note, unverified. */
function textOf(note: string): Checkpoint {
  return parseCheckpoint(note.slice(0, note.lastIndexOf('\n\n') + 1));
}
