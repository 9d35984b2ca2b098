import { existsSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '../clock.ts';
import { openBundle } from '../export/open-bundle.ts';
import { describeCertificateText } from '../export/summary.ts';
import type { VerifierKey } from '../integrity/note-key.ts';
import { exactText } from '../integrity/utf8.ts';
import type { Finding } from '../verify/finding.ts';
import type { Evidence } from '../verify/rules/heads.ts';
import { bundleSource } from '../verify/sources/bundle.ts';
import { type CarriedSource, damagedSource } from '../verify/sources/carried.ts';
import { CERTIFICATE_BYTES_MAX, certificateSource } from '../verify/sources/certificate.ts';
import { SourceError } from '../verify/sources/files.ts';
import { checkProofFile, isProofFile, type ProofVerdict } from '../verify/sources/proofs.ts';
import type { Verdict } from '../verify/verdict.ts';
import { verify } from '../verify/verify.ts';
import { type Against, againstEvidence } from './against.ts';
import { type LookedUp, lookUpAnchors } from './carried-anchors.ts';
import { EXIT, type Invocation, UsageError } from './command.ts';
import { folderOf, ownKey } from './evidence.ts';
import type { Output } from './output.ts';
import { printable } from './text.ts';
import {
  ANCHOR_NAMES,
  keyId,
  printConclusion,
  printFindings,
  showVerified,
  type Verified,
} from './verdict.ts';

/** What whoever verifies brings along. */
export interface Brought {
  readonly key: { readonly text: string; readonly parsed: VerifierKey } | undefined;
  readonly against: Against | undefined;
}

/** Verifies a bundle: a folder or a zip. */
export async function showBundle(path: string, brought: Brought, invocation: Invocation): Promise<number> {
  try {
    const files = await openBundle(path);
    try {
      const source = await bundleSource(files);
      return showVerified(await verifyCarried('bundle', path, source, brought, invocation), invocation.out);
    } finally {
      files.close();
    }
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    const source = damagedSource(error.message);
    return showVerified(await verifyCarried('bundle', path, source, brought, invocation), invocation.out);
  }
}

/** Verifies a certificate, or a proof that was taken out of a bundle. */
export async function showProof(path: string, brought: Brought, invocation: Invocation): Promise<number> {
  const text = statSync(path).size > CERTIFICATE_BYTES_MAX ? undefined : exactText(readFileSync(path));
  if (text !== undefined && isProofFile(text)) return showProofFile(path, text, brought, invocation);
  const source = text === undefined ? damagedSource('it is too large or not UTF-8') : certificateSource(text);
  const told = text === undefined ? [] : describeCertificateText(text);
  return showVerified(await verifyCarried('proof', path, source, brought, invocation, told), invocation.out);
}

async function verifyCarried(
  what: 'bundle' | 'proof',
  path: string,
  source: CarriedSource,
  { key, against }: Brought,
  invocation: Invocation,
  told: readonly string[] = [],
): Promise<Verified> {
  const config = invocation.config();
  const findings: Finding[] = [];
  const report = (finding: Finding) => void findings.push(finding);
  const origin = await source.origin();
  const trusted = key?.parsed ?? ownKey(config, origin);
  const authority = readAuthority(invocation);
  const anchors = lookUpAnchors(source.anchors, config, { origin, authority }, report);
  const bar = invocation.out.progress('verifying');
  const verdict = await verify(source, {
    report,
    now: systemClock.now(),
    keys: { trusted: trusted === undefined ? [] : [trusted] },
    evidence: [
      ...anchors.flatMap(anchorEvidence),
      ...(against === undefined ? [] : [againstEvidence(against)]),
    ],
    onProgress: bar.update,
  }).finally(() => bar.end());
  const keyFrom = key !== undefined ? '--key' : trusted !== undefined ? 'known' : 'bundle';
  const about = what === 'bundle' ? { scope: source.subject } : { subject: source.subject };
  return {
    what,
    path,
    whole: source.whole,
    verdict,
    findings,
    remarks: verdict.remarks,
    data: { ...about, key_from: keyFrom, anchors: anchors.map(describeAnchor) },
    print(out) {
      if (!source.whole && findings.length === 0)
        out.line(
          `${source.subject}: each of its audit rows is in the log that the checkpoint of ${verdict.size} rows signs`,
        );
      printKeys(verdict, keyFrom, out);
      printAnchors(anchors, out);
      // Only what is proved is told: of one that is wrong, the findings are all there is to say.
      if (findings.length === 0) for (const line of told) out.line(printable(line));
    },
  };
}

function anchorEvidence({ kind, name, note, found }: LookedUp): Evidence[] {
  return found === undefined ? [] : [{ source: kind, where: name, note }];
}

/** Whose word the signatures are. `bundle`: the key came with what it signs. */
type KeyFrom = '--key' | 'known' | 'bundle';

const KEY_SENTENCES: Readonly<Record<KeyFrom, string>> = {
  '--key': 'the one you gave.',
  known: 'the one that this user’s folder holds for this log.',
  bundle:
    'which came with it: it agrees with itself, but that does not show who signed it. Give the key you know with --key.',
};

function printKeys({ checkpointed }: Verdict, keyFrom: KeyFrom, out: Output): void {
  const [first, ...more] = checkpointed.filter(({ known }) => known);
  if (first === undefined) return;
  const others = more.length === 0 ? '' : `, and ${more.length} more that it leads to`;
  const sentence = `Signed by key ${keyId(first.key)}${others}, ${KEY_SENTENCES[keyFrom]}`;
  out.line(out.paint(keyFrom === 'bundle' ? 'yellow' : 'green', sentence));
}

function readAuthority({ values }: Invocation): string | undefined {
  if (typeof values.ca !== 'string') return undefined;
  const path = resolve(values.ca);
  if (!existsSync(path)) throw new UsageError(`There is no file ${path}.`);
  return path;
}

function describeAnchor({ kind, name, size, commit, ref, time, found, check }: LookedUp): object {
  return {
    kind,
    name,
    size,
    ...(kind === 'git' && { commit, ref }),
    claimed_time: time,
    checked: found !== undefined,
    ...(found === undefined ? { check } : { found }),
  };
}

/** The oldest of each kind says since when, the newest how far; the others say nothing more. */
function printAnchors(anchors: readonly LookedUp[], out: Output): void {
  for (const kind of ['git', 'tsr'] as const)
    for (const isFound of [true, false]) {
      const some = anchors.filter(
        (anchor) => anchor.kind === kind && (anchor.found !== undefined) === isFound,
      );
      for (const anchor of new Set([some[0], some.at(-1)]))
        if (anchor !== undefined) printAnchor(anchor, out);
      if (some.length > 2) out.line(`… and ${some.length - 2} between them; --json prints all.`);
    }
}

function printAnchor({ kind, size, commit, time, found, check }: LookedUp, out: Output): void {
  const what =
    kind === 'git'
      ? `git commit ${printable(commit ?? '')}`
      : `${ANCHOR_NAMES.tsr} claiming ${printable(time ?? 'no time')}`;
  out.line(
    found === undefined
      ? out.paint(
          'yellow',
          `Not checked here: ${what}, of the checkpoint of ${size} rows. ${printable(check)}`,
        )
      : out.paint('green', `Anchored: ${what}, of the checkpoint of ${size} rows, in ${printable(found)}.`),
  );
}

function showProofFile(
  path: string,
  text: string,
  { key, against }: Brought,
  invocation: Invocation,
): number {
  const { out } = invocation;
  const config = invocation.config();
  const findings: Finding[] = [];
  let verdict: ProofVerdict | undefined;
  try {
    verdict = checkProofFile(text, {
      keyOf: (origin) => key?.text ?? folderOf(config, origin)?.verifierKey(),
      against: against?.note,
    });
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    findings.push({
      kind: 'bad-checkpoint',
      table: 'proof',
      record: path,
      message: `It shows nothing: ${error.message}.`,
    });
  }
  const { subject, origin, size, line, key: signer } = verdict ?? {};
  const proves = line === undefined ? [] : [line];
  out.data(
    { ok: findings.length === 0, what: 'proof', path, subject, origin, size, proves, key: signer, findings },
    () => {
      printFindings(findings, out);
      for (const sentence of proves) out.line(printable(sentence));
      printConclusion(findings, out);
    },
  );
  return findings.length === 0 ? EXIT.fine : EXIT.found;
}
