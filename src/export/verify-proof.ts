import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { canonicalJson } from '../integrity/canonical-json.ts';
import type { Checkpoint } from '../integrity/checkpoint.ts';
import { sha256Hex } from '../integrity/digest.ts';
import type { VerifierKey } from '../integrity/note-key.ts';
import { readStrictJson } from '../integrity/strict-json.ts';
import { parseTlogProof } from '../integrity/tlog-proof.ts';
import { treeDepth, treeRoot } from '../integrity/tree.ts';
import { exactText } from '../integrity/utf8.ts';
import { formatId, parseId } from '../log/state.ts';
import { SESSIONS, TASKS } from '../log/tables.ts';
import { auditRow, type Finding, type Report } from '../log/verify/finding.ts';
import {
  CERTIFICATE_BYTES_MAX,
  type Certificate,
  CertificateShape,
  formatCertificate,
} from './certificate.ts';
import { readAuditRow } from './formats.ts';
import { RowWalk } from './row-walk.ts';
import { StateWalk } from './state-walk.ts';
import { rowsOf, shownCalls, summarize } from './summary.ts';
import { checkTask, checkThoughts } from './task-rules.ts';
import { attempt, checkInclusion, checkTlogProof, openCheckpoint, TrustError, trustKey } from './trust.ts';
import { countFindings } from './verify-bundle.ts';

export interface ProofVerdict {
  readonly subject: string;
  readonly origin: string;
  readonly size: number;
  readonly findings: number;
  /** What it proves, for people. */
  readonly lines: readonly string[];
}

export interface ProofOptions {
  readonly report: Report;
  /** The verifier key to believe, in its text form. */
  readonly trustedKey?: string;
  /** The text of a signed checkpoint kept elsewhere. */
  readonly against?: string;
}

const NOTHING = { subject: '', origin: '', size: 0, lines: [] } as const;

/**
 * Verifies a certificate that `colibri prove` wrote, or a .tlog-proof file out of a bundle, alone. Hostile input enters
 * here: findings, never a crash.
 */
export async function verifyProofFile(path: string, options: ProofOptions): Promise<ProofVerdict> {
  const tally = countFindings(options.report);
  const inner = { ...options, report: tally.report };
  const place = { table: 'proof', record: 'proof' };
  const text = attempt(tally.report, place, () => readBounded(path));
  if (text === undefined) return { ...NOTHING, findings: tally.verdict(0).findings };
  const verdict = text.startsWith('c2sp.org/tlog-proof@')
    ? attempt(tally.report, place, () => verifyTlogProof(text, inner))
    : verifyCertificate(text, inner);
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

/** A proof out of a bundle carries its audit row along, but no key. */
function verifyTlogProof(text: string, { trustedKey, against, report }: ProofOptions): Verdict {
  const { index, extra, checkpoint } = parseTlogProof(text);
  const row = readAuditRow(exactText(extra ?? Buffer.alloc(0)) ?? '');
  if (row === undefined || extra === undefined)
    throw new TrustError('The proof carries no audit row along, so there is nothing it proves.');
  const head = openCheckpoint(checkpoint, trustKey(undefined, trustedKey), 'The checkpoint');
  checkTlogProof(text, { position: row.position, contentHash: sha256Hex(extra), checkpoint }, head);
  compareHeads(head, against, trustKey(undefined, trustedKey), report);
  return {
    subject: auditRow(index + 1),
    origin: head.origin,
    size: head.size,
    lines: [describeRow(row.position, row.tool, row.stage, row.actor, row.at)],
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
  if (canonicalJson(summarize(certificate)) !== canonicalJson(certificate.summary))
    report(finding('altered', 'summary', 'The summary does not say what the rows say.'));
  return { subject, origin: head.origin, size: head.size, lines: describe(certificate) };
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

/** A seal's root over its records is the one the log holds, and the records it names are the ones that are shown. */
function checkSeals({ seals }: Certificate, rows: RowWalk, state: StateWalk, report: Report): void {
  const byId = new Map(seals.map((seal) => [seal.session_id, seal]));
  for (const { row } of state.sessions.values()) {
    const id = formatId(SESSIONS, row.id);
    if ((row.status === 'finalized') !== byId.has(id))
      report(finding('missing', id, `The seal of ${id} is missing, or there is one of an open session.`));
  }
  if (byId.size !== seals.length) report(finding('stray', 'seals', 'A session is sealed twice.'));
  for (const seal of seals) {
    const logged = rows.seals.get(seal.session_id);
    const session = state.sessions.get(parseId(SESSIONS, seal.session_id) ?? 0);
    const holds =
      logged?.position === seal.position &&
      logged.merkle_root === seal.merkle_root &&
      logged.leaf_count === seal.leaf_count &&
      treeRoot(seal.records.map(({ hash }) => hash)) === seal.merkle_root &&
      seal.records.length === seal.leaf_count &&
      treeDepth(seal.leaf_count) === seal.tree_depth &&
      session?.row.position === seal.position &&
      sameTask(session.row.sealed_task_id, seal.sealed_task_id) &&
      canonicalJson(seal.records.filter((record) => 'kind' in record)) === canonicalJson(session.records);
    if (!holds) report(finding('altered', seal.session_id, `The seal of ${seal.session_id} does not hold.`));
  }
}

function sameTask(stored: number | null, shown: string | null): boolean {
  return (stored === null ? null : formatId(TASKS, stored)) === shown;
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

function describe({ subject, summary, log, state, seals }: Certificate): string[] {
  const { transitions, thoughts, skills } = summary;
  return [
    `${subject}: ${log.length} audit rows and ${state.length} records, each in the signed log`,
    ...transitions.map(
      ({ at, by, from, to }) => `${at} ${from === null ? 'created in' : `${from} to`} ${to} by ${by}`,
    ),
    ...thoughts.map(({ at, by, record, type }) => `${at} ${record} ${type} by ${by}`),
    ...seals.map((seal) => `${seal.session_id} sealed at #${seal.position} over ${seal.leaf_count} records`),
    ...skills.map(({ name, digest }) => `skill in force: ${name} ${digest}`),
  ];
}

function describeRow(position: number, tool: string, stage: string, actor: string, at: string): string {
  return `${auditRow(position)} is in the signed log: ${stage} of ${tool} by ${actor} at ${at}`;
}

function finding(kind: Finding['kind'], record: string, message: string): Finding {
  return { kind, table: 'proof', record, message };
}
