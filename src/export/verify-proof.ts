import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { decodeBase64 } from '../integrity/c2sp-text.ts';
import type { Checkpoint } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import type { VerifierKey } from '../integrity/note-key.ts';
import { readStrictJson } from '../integrity/strict-json.ts';
import { parseTlogProof } from '../integrity/tlog-proof.ts';
import { Frontier } from '../integrity/tree.ts';
import { exactText } from '../integrity/utf8.ts';
import { formatId } from '../log/state.ts';
import { SESSIONS } from '../log/tables.ts';
import { auditRow, type Finding, type Report } from '../log/verify/finding.ts';
import { type CarriedAnchor, openAnchor } from './anchors.ts';
import {
  CERTIFICATE_BYTES_MAX,
  type Certificate,
  CertificateShape,
  formatCertificate,
} from './certificate.ts';
import { parseConsistency } from './consistency.ts';
import { readAuditRow } from './formats.ts';
import { RowWalk } from './row-walk.ts';
import { isSealOf, StateWalk } from './state-walk.ts';
import { rowsOf, shownCalls, summarize } from './summary.ts';
import { checkTask, checkThoughts } from './task-rules.ts';
import {
  attempt,
  checkConsistency,
  checkInclusion,
  checkTlogProof,
  openCheckpoint,
  TrustError,
  trustKey,
} from './trust.ts';
import { countFindings } from './verify-bundle.ts';

export interface ProofVerdict {
  readonly subject: string;
  readonly origin: string;
  readonly size: number;
  readonly findings: number;
  /** What it proves, for people. */
  readonly lines: readonly string[];
  /** The key that the checkpoint was opened with, in its text form. */
  readonly key: string | undefined;
  /** What others may hold of its checkpoint. None of it was looked up. */
  readonly anchors: readonly CarriedAnchor[];
}

export interface ProofOptions {
  readonly report: Report;
  /** The verifier key to believe, in its text form. */
  readonly trustedKey?: string;
  /** The text of a signed checkpoint kept elsewhere. */
  readonly against?: string;
  /** The key that is known of a log, for proofs that bring none along. */
  readonly knownKey?: (origin: string) => string | undefined;
}

const NOTHING = { subject: '', origin: '', size: 0, lines: [], key: undefined, anchors: [] } as const;

/**
 * Verifies what `colibri prove` wrote, or a .tlog-proof file out of a bundle, alone. Hostile input enters here: findings,
 * never a crash.
 */
export async function verifyProofFile(path: string, options: ProofOptions): Promise<ProofVerdict> {
  const tally = countFindings(options.report);
  const inner = { ...options, report: tally.report };
  const place = { table: 'proof', record: 'proof' };
  const text = attempt(tally.report, place, () => readBounded(path));
  if (text === undefined) return { ...NOTHING, findings: tally.verdict(0).findings };
  const alone = ALONE.find(([beginning]) => text.startsWith(beginning))?.[1];
  const verdict =
    alone === undefined
      ? verifyCertificate(text, inner)
      : attempt(tally.report, place, () => alone(text, inner));
  return { ...(verdict ?? NOTHING), findings: tally.verdict(0).findings };
}

type Verdict = Omit<ProofVerdict, 'findings'>;

function readBounded(path: string): string {
  const fd = openSync(path, 'r');
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile() || stat.size > CERTIFICATE_BYTES_MAX)
      throw new TrustError(`The proof is no file, or larger than ${CERTIFICATE_BYTES_MAX} bytes.`);
    const text = exactText(readFileSync(fd));
    if (text === undefined) throw new TrustError('The proof is no UTF-8 text.');
    return text;
  } finally {
    closeSync(fd);
  }
}

/** Proofs that bring no key along. Each throws what is wrong with it. */
const ALONE: readonly (readonly [
  beginning: string,
  verify: (text: string, options: ProofOptions) => Verdict,
])[] = [
  ['c2sp.org/tlog-proof@', verifyTlogProof],
  ['old ', verifyConsistencyProof],
];

function keyFor(checkpoint: string, { trustedKey, knownKey }: ProofOptions): string | undefined {
  return trustedKey ?? knownKey?.(checkpoint.slice(0, Math.max(0, checkpoint.indexOf('\n'))));
}

/** The log at the newer size begins with the log that an older checkpoint, kept elsewhere, speaks of. */
function verifyConsistencyProof(text: string, options: ProofOptions): Verdict {
  const { old, proof, checkpoint } = parseConsistency(text);
  const keyText = keyFor(checkpoint, options);
  const key = trustKey(undefined, keyText);
  const head = openCheckpoint(checkpoint, key, 'The checkpoint');
  if (options.against === undefined)
    throw new TrustError('There is no older checkpoint to go on from: give the one you kept with --against.');
  const kept = openCheckpoint(options.against, key, 'The checkpoint you gave');
  if (kept.size !== old)
    throw new TrustError(
      `The checkpoint you gave is of ${kept.size} rows, and the proof goes on from ${old}.`,
    );
  checkConsistency(kept, proof, head);
  const line = `the log of ${head.size} audit rows begins with the ${old} of the checkpoint you gave`;
  return {
    subject: `${old}`,
    origin: head.origin,
    size: head.size,
    lines: [line],
    key: keyText,
    anchors: [],
  };
}

/** A proof out of a bundle carries its audit row along, but no key. */
function verifyTlogProof(text: string, options: ProofOptions): Verdict {
  const { index, extra, checkpoint } = parseTlogProof(text);
  const row = readAuditRow(exactText(extra ?? Buffer.alloc(0)) ?? '');
  if (row === undefined || extra === undefined)
    throw new TrustError('The proof carries no audit row along, so there is nothing it proves.');
  const keyText = keyFor(checkpoint, options);
  const key = trustKey(undefined, keyText);
  const head = openCheckpoint(checkpoint, key, 'The checkpoint');
  checkTlogProof(text, { position: row.position, contentHash: sha256Hex(extra), checkpoint }, head);
  compareHeads(head, options.against, key, options.report);
  return {
    subject: auditRow(index + 1),
    origin: head.origin,
    size: head.size,
    lines: [describeRow(row.position, row.tool, row.stage, row.actor, row.at)],
    key: keyText,
    anchors: [],
  };
}

function verifyCertificate(text: string, options: ProofOptions): Verdict | undefined {
  const { report } = options;
  const certificate = attempt(report, { table: 'proof' }, () => parseCertificate(text));
  if (certificate === undefined) return undefined;
  const key = attempt(report, { table: 'key' }, () => trustKey(certificate.key, options.trustedKey));
  const head =
    key &&
    attempt(report, { table: 'checkpoint' }, () =>
      openCheckpoint(certificate.checkpoint, key, 'The checkpoint'),
    );
  if (key === undefined || head === undefined) return undefined;
  compareHeads(head, options.against, key, report);
  const rows = checkRows(certificate, head, report);
  const state = new StateWalk(rows, report, false);
  const vouched = certificate.state.map((line) => state.add(line)).filter((row) => row !== undefined);
  const named = new Map(vouched.map(({ table, row }) => [formatId(table, row.id), row]));
  checkSeals(certificate, rows, state, report);
  const calls = shownCalls(certificate);
  const { subject } = certificate;
  if (subject.startsWith('#') ? !rows.hashes.get(Number(subject.slice(1))) : !named.has(subject))
    report(finding('missing', subject, `${subject} itself is not in the certificate.`));
  if (subject.startsWith('T-')) checkTask(certificate, calls, named, report);
  if (!subject.startsWith('A-') && !subject.startsWith('#')) checkThoughts(calls, named, subject, report);
  return {
    subject,
    origin: head.origin,
    size: head.size,
    lines: describe(certificate, state),
    key: certificate.key,
    anchors: checkAnchors(certificate, head, report),
  };
}

function checkAnchors(
  { anchors, checkpoint: note }: Certificate,
  { size }: Checkpoint,
  report: Report,
): CarriedAnchor[] {
  return Object.entries(anchors).flatMap(([name, text]) => {
    const anchor = attempt(report, { table: name }, () => {
      const bytes = decodeBase64(text);
      if (bytes === undefined) throw new TrustError(`${name} is not base64.`);
      return openAnchor(name, bytes, [{ note, size }]);
    });
    return anchor === undefined ? [] : [anchor];
  });
}

function parseCertificate(text: string): Certificate {
  const read = CertificateShape.safeParse(readStrictJson(text));
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new TrustError(`This is no certificate of Colibri: ${issue?.path.join('.')}: ${issue?.message}.`);
  }
  if (formatCertificate(read.data) !== text)
    throw new TrustError('The certificate is not spelled as Colibri spells it.');
  return read.data;
}

/** Every row by itself, against its neighbours, with what lies beside it, and in the tree the checkpoint signs. */
function checkRows(certificate: Certificate, head: Checkpoint, report: Report): RowWalk {
  const walk = new RowWalk(report, false);
  const { log, payloads, proofs } = certificate;
  const rows = rowsOf(certificate);
  const used = rows.map(({ payload }) => payload?.position).filter((position) => position !== undefined);
  if (log.length !== proofs.length || used.join() !== payloads.map(({ position }) => position).join())
    report(finding('stray', 'payloads', 'There are proofs or payloads that belong to no audit row.'));
  for (const { text, payload, proof } of rows) {
    const walked = walk.add(text);
    if (walked === undefined) continue;
    const { position } = walked.row;
    walk.checkPayload(walked, payload);
    attempt(report, { table: 'actions', position }, () =>
      checkInclusion(position, walked.contentHash, proof, head),
    );
  }
  return walk;
}

/** The hashes of a seal give the root that the session's row and the log hold, and those of the shown records are among them. */
function checkSeals({ seals }: Certificate, rows: RowWalk, state: StateWalk, report: Report): void {
  const left = new Map(Object.entries(seals));
  for (const { row, hashes: shown } of state.sessions.values()) {
    const id = formatId(SESSIONS, row.id);
    const [hashes, logged] = [left.get(id), rows.seals.get(id)];
    left.delete(id);
    if (hashes === undefined && logged === undefined && row.status === 'open') continue;
    if (hashes === undefined || logged === undefined || row.status === 'open')
      report(finding('missing', id, `The seal of ${id} is missing, or there is one of an open session.`));
    else if (!isSealOf(row, logged, treeOver(hashes)) || !isWithin(shown, hashes))
      report(finding('altered', id, `The seal of ${id} does not hold.`));
  }
  for (const id of left.keys())
    report(finding('stray', id, `There is a seal of ${id}, which is not in the certificate.`));
}

function treeOver(hashes: readonly string[]): Frontier {
  const tree = new Frontier();
  for (const hash of hashes) tree.add(hash);
  return tree;
}

/** Whether some of the hashes are these, in this order. */
function isWithin(some: readonly string[], hashes: readonly string[]): boolean {
  let found = 0;
  for (const hash of hashes) if (hash === some[found]) found += 1;
  return found === some.length;
}

/** A certificate speaks of one size only; another can be compared with the whole log and not with it. */
function compareHeads(head: Checkpoint, against: string | undefined, key: VerifierKey, report: Report): void {
  if (against === undefined) return;
  attempt(report, { table: 'checkpoint' }, () => {
    const given = openCheckpoint(against, key, 'The checkpoint you gave');
    if (given.size === head.size && given.root === head.root) return;
    throw new TrustError(
      given.size === head.size
        ? `The checkpoint you gave is of another history of the same ${head.size} rows.`
        : `The checkpoint you gave is of ${given.size} rows and the proof's of ${head.size}: a proof of one record cannot compare them, a bundle of the whole log can.`,
    );
  });
}

function describe(certificate: Certificate, { sessions }: StateWalk): string[] {
  const { subject, log, state } = certificate;
  const { transitions, thoughts, skills } = summarize(certificate);
  const sealed = [...sessions.values()].map(({ row }) => row).filter(({ status }) => status === 'finalized');
  return [
    `${subject}: ${log.length} audit rows and ${state.length} records, each in the signed log`,
    ...transitions.map(
      ({ at, by, from, to }) => `${at} ${from === null ? 'created in' : `${from} to`} ${to} by ${by}`,
    ),
    ...thoughts.map(({ at, by, record, type }) => `${at} ${record} ${type} by ${by}`),
    ...sealed.map(
      ({ id, position, leaf_count }) =>
        `${formatId(SESSIONS, id)} sealed at ${auditRow(position)} over ${leaf_count} records`,
    ),
    ...skills.map(({ name, digest }) => `skill in force: ${name} ${digest}`),
  ];
}

function describeRow(position: number, tool: string, stage: string, actor: string, at: string): string {
  return `${auditRow(position)} is in the signed log: ${stage} of ${tool} by ${actor} at ${at}`;
}

function finding(kind: Finding['kind'], record: string, message: string): Finding {
  return { kind, table: 'proof', record, message };
}
