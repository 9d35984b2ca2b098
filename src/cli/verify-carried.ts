import { asError } from '../errors.ts';
import { type OpenedFiles, openBundle } from '../export/files.ts';
import { exactText } from '../integrity/digest.ts';
import { readWhole } from '../private-files.ts';
import { readCertificate } from '../report/certificate.ts';
import { pushedFrom } from '../trust/anchors-git.ts';
import { stampChecker } from '../trust/anchors-tsr.ts';
import { keyId, keyIn, originOfKey } from '../trust/opening.ts';
import type { Finding } from '../verify/finding.ts';
import type { Evidence } from '../verify/rules/heads.ts';
import { type CarriedAnchor, howToCheck } from '../verify/sources/anchor-file.ts';
import { type CarriedSource, carriedSource, damagedSource } from '../verify/sources/carried.ts';
import { CERTIFICATE_BYTES_MAX, openCertificate } from '../verify/sources/certificate.ts';
import { checkProofFile, isProofFile } from '../verify/sources/proofs.ts';
import type { Verdict } from '../verify/verdict.ts';
import { printCertificate } from './certificate.ts';
import { check, folderOf, outsideFinding, ownKey } from './evidence.ts';
import type { Output } from './output.ts';
import type { ToVerify, Verified } from './verdict.ts';

/** Verifies a bundle: a folder or a zip. */
export async function verifyBundle(given: ToVerify): Promise<Verified> {
  let files: OpenedFiles | undefined;
  const source = await carriedSource(async () => {
    files = await openBundle(given.path);
    return { files };
  });
  try {
    return await verifyCarried('bundle', source, given);
  } finally {
    files?.close();
  }
}

/** Verifies a certificate, or a proof that was taken out of a bundle. */
export async function verifyProof(given: ToVerify): Promise<Verified> {
  const { path } = given;
  const bytes = readWhole(path, CERTIFICATE_BYTES_MAX, true);
  const text = bytes && exactText(bytes);
  if (text === undefined)
    return await verifyCarried('proof', damagedSource('it is too large or not UTF-8'), given);
  if (isProofFile(text)) return verifyProofFile(text, given);
  const open = () => carriedSource(() => openCertificate(text));
  return await verifyCarried('proof', await open(), given, async () => readCertificate(await open()));
}

async function verifyCarried(
  what: 'bundle' | 'proof',
  source: CarriedSource,
  given: ToVerify,
  /** Reads what it shows, where nothing is wrong. */
  read?: () => ReturnType<typeof readCertificate>,
): Promise<Verified> {
  const { config, key, against, out } = given;
  const origin = await source.origin();
  const trusted = keyIn(key) ?? ownKey(config, origin);
  const { anchors, ...outside } = lookUpAnchors(source.anchors, origin, given);
  const evidence = [...outside.evidence, against ?? []].flat();
  const checked = await out.progress('verifying', (onProgress) =>
    check(source, trusted, { evidence, onProgress }),
  );
  const { verdict } = checked;
  const findings = [...outside.findings, ...checked.findings];
  const told = findings.length === 0 ? await read?.() : undefined;
  const keyFrom = key !== undefined ? '--key' : trusted !== undefined ? 'known' : 'bundle';
  const about = what === 'bundle' ? {} : { subject: source.subject };
  const summary = `${source.subject}: each of its audit rows is in the log that the signed checkpoint of ${verdict.size} rows covers`;
  return {
    what,
    findings,
    verdict,
    whole: source.whole,
    data: { ...about, key_from: keyFrom, anchors },
    print() {
      // Only what is proved is told: of one that is wrong, the findings are all there is to say.
      if (findings.length > 0) return;
      if (told !== undefined) printCertificate(told, out);
      if (!source.whole) out.line(summary);
      printKeys(verdict, trusted?.id, keyFrom, out);
      printAnchors(anchors, out);
      if (!source.whole)
        out.line(
          'It proves that these records are in the log, but not that the log contains no others; a bundle proves both.',
        );
    },
  };
}

/** Whose word the signatures are. `bundle`: the key came with what it signs. */
const KEY_SENTENCES = {
  '--key': 'the one you gave.',
  known: 'the one that this user has for this log.',
  bundle:
    'which came with it: the file is consistent, but that does not show who signed it. Give the key you trust with --key.',
};

/** `trusted`: the id of the key that is believed. Without one, it is the key that the log is named after. */
function printKeys(
  { checkpointed, origin }: Verdict,
  trusted: string | undefined,
  keyFrom: keyof typeof KEY_SENTENCES,
  out: Output,
): void {
  const isBelieved = (key: string) =>
    trusted === undefined ? originOfKey(key) === origin : keyId(key) === trusted;
  const believed = checkpointed.find(({ key }) => isBelieved(key)) ?? checkpointed[0];
  if (believed === undefined) return;
  const others = checkpointed.filter((one) => one !== believed).map(({ key }) => keyId(key));
  const also = others.length === 0 ? '' : ` Also signed by ${others.join(', ')}.`;
  const sentence = `Signed by key ${keyId(believed.key)}, ${KEY_SENTENCES[keyFrom]}${also}`;
  out.line(out.paint(keyFrom === 'bundle' ? 'yellow' : 'green', sentence));
}

type LookedUp = ReturnType<typeof lookUpAnchors>['anchors'][number];

/**
 * Looks for anchors where the maker of the bundle could not have put them: commits that a remote of the workspace's repository has,
 * tokens under the authorities that the user trusts. An anchor that is not found is named, never counted.
 */
function lookUpAnchors(carried: readonly CarriedAnchor[], origin: string | undefined, given: ToVerify) {
  const { config, authority } = given;
  const named = folderOf(config, origin)?.authorities() ?? [];
  const checkStamp = stampChecker(authority === undefined ? named : [authority]);
  const pushed = carried.some(({ kind }) => kind === 'git') ? pushedFrom(config.workspace) : new Set();
  const evidence: Evidence[] = [];
  const findings: Finding[] = [];
  const anchors = carried.map((anchor) => {
    const { kind, name, size, note, time: claimed_time, commit } = anchor;
    const stamp =
      kind === 'git'
        ? undefined
        : checkStamp({ note, token: anchor.bytes, notePath: 'its note', tokenPath: name });
    const message = `${name} is not a time stamp for the checkpoint of ${size} audit rows from an authority that you named.`;
    if (stamp?.state === 'wrong') findings.push(outsideFinding('bad-anchor', name, message));
    const found =
      commit !== undefined && pushed.has(commit)
        ? `a remote of the repository of ${config.workspace}`
        : stamp?.state === 'valid'
          ? `an authority you named, at ${stamp.time}`
          : undefined;
    if (found) evidence.push({ source: kind, where: name, note });
    const check = found ? undefined : howToCheck(anchor);
    const state = found === undefined ? 'not checked' : kind === 'git' ? 'pushed' : 'time-stamped';
    return { kind, state, name, size, commit, claimed_time, checked: found !== undefined, found, check };
  });
  return { anchors, evidence, findings };
}

/** The oldest of each kind says since when, the newest how far; the others say nothing more. */
function printAnchors(anchors: readonly LookedUp[], out: Output): void {
  for (const kind of ['git', 'tsr'])
    for (const isFound of [true, false]) {
      const some = anchors.filter(({ kind: one, checked }) => one === kind && checked === isFound);
      for (const anchor of new Set([...some.slice(0, 1), ...some.slice(-1)])) printAnchor(anchor, out);
      if (some.length > 2) out.line(`… and ${some.length - 2} between them; --json prints all.`);
    }
}

function printAnchor({ size, commit, claimed_time = 'no time', found, check }: LookedUp, out: Output): void {
  const token = commit === undefined ? `time stamp claiming ${claimed_time}` : `git commit ${commit}`;
  const what = `${token}, of the checkpoint of ${size} rows`;
  const state = commit === undefined ? 'Time-stamped' : 'Pushed';
  const line = found
    ? `${state}: ${what}, ${commit === undefined ? 'by' : 'in'} ${found}.`
    : `Not checked here: ${what}. ${check}`;
  out.line(out.paint(found ? 'green' : 'yellow', line));
}

/** A file that proves one thing: it has no ranges, only what it shows. */
function verifyProofFile(text: string, given: ToVerify): Verified {
  const { path, out } = given;
  const keyOf = (origin: string) => given.key ?? folderOf(given.config, origin)?.verifierKey();
  try {
    const { line, ...shown } = checkProofFile(text, keyOf, given.against?.note);
    const print = () => out.line(line);
    return { what: 'proof', findings: [], data: { ...shown, proves: [line] }, print };
  } catch (error) {
    const message = `The proof is not valid, so it shows nothing: ${asError(error).message}.`;
    const finding: Finding = { kind: 'bad-checkpoint', table: 'proof', record: path, message };
    return { what: 'proof', findings: [finding], data: { proves: [] } };
  }
}
