import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CarriedAnchor } from '../export/anchors.ts';
import { verifyBundle } from '../export/verify-bundle.ts';
import { verifyProofFile } from '../export/verify-proof.ts';
import type { Finding } from '../log/verify/finding.ts';
import { EXIT, type Invocation, UsageError } from './command.ts';
import { outsideFinding } from './evidence.ts';
import { knownLog, type LookedUp, lookUpAnchors } from './look-up.ts';
import type { Output } from './output.ts';
import { printable } from './text.ts';
import { ANCHOR_NAMES, countOf, printFindings, printRanges, type Ranges } from './verdict.ts';

/** What whoever verifies brings along. */
export interface Brought {
  /** The key to believe, in its text form. */
  readonly key: string | undefined;
  /** A checkpoint kept elsewhere. */
  readonly against: string | undefined;
}

/** Whose word the signatures are. `bundle`: nobody's that is known here, the key came along with what it signs. */
type KeyFrom = '--key' | 'known' | 'bundle' | 'none';

/** Verifies a bundle: with what lies in it, and with what this user knows of its log. */
export async function checkBundle(path: string, brought: Brought, invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const findings: Finding[] = [];
  const bar = out.progress('verifying');
  const verdict = await verifyBundle(path, { ...optionsOf(brought, findings), onProgress: bar.update });
  bar.end();
  const { size, root, checkpointedThrough, origin, scope } = verdict;
  const outside = lookOutside(verdict, brought, invocation, findings);
  const ok = findings.length === 0;
  // Of one session the rows between are not shown: nothing can be said of all rows up to one.
  const isWhole = scope === 'log';
  const through = isWhole ? verdict.intactThrough : checkpointedThrough;
  const ranges = rangesOf(through, checkpointedThrough, outside.anchors);
  const data = {
    ok,
    what: 'bundle',
    path,
    origin,
    scope,
    size,
    root,
    intact_through: isWhole ? ranges.intactThrough : null,
    checkpointed_through: ranges.checkpointedThrough,
    anchored_through: ranges.anchoredThrough,
    anchored_by: ranges.anchoredBy,
    unanchored_tail: isWhole ? ranges.unanchoredTail : null,
    ...outside.data,
    findings,
  };
  out.data(data, () => {
    printFindings(findings, out);
    if (isWhole) printRanges(ranges, size, out);
    else if (ok)
      out.line(`${scope}: each of its audit rows is in the log that the checkpoint at ${size} rows signs`);
    outside.print(out);
    printEnd(findings, out);
  });
  return ok ? EXIT.fine : EXIT.found;
}

/** Verifies a certificate or a proof out of a bundle. */
export async function checkProof(path: string, brought: Brought, invocation: Invocation): Promise<number> {
  const { out } = invocation;
  const findings: Finding[] = [];
  const knownKey = (origin: string) => knownLog(invocation.config(), origin)?.verifierKey();
  const verdict = await verifyProofFile(path, { ...optionsOf(brought, findings), knownKey });
  const { subject, origin, size, lines } = verdict;
  const outside = lookOutside(verdict, brought, invocation, findings);
  const ok = findings.length === 0;
  const data = { ok, what: 'proof', path, subject, origin, size, proves: lines, ...outside.data, findings };
  out.data(data, () => {
    printFindings(findings, out);
    for (const line of lines) out.line(printable(line));
    outside.print(out);
    printEnd(findings, out);
  });
  return ok ? EXIT.fine : EXIT.found;
}

function optionsOf({ key, against }: Brought, findings: Finding[]) {
  return {
    report: (finding: Finding) => void findings.push(finding),
    ...(key !== undefined && { trustedKey: key }),
    ...(against !== undefined && { against }),
  };
}

interface Carried {
  readonly origin: string | undefined;
  readonly key: string | undefined;
  readonly anchors: readonly CarriedAnchor[];
}

/** Holds what is in the file against what is not: the key, and the anchors. */
function lookOutside(carried: Carried, brought: Brought, invocation: Invocation, findings: Finding[]) {
  const config = invocation.config();
  const keyFrom = judgeKey(carried, brought, invocation, findings);
  const anchors = lookUpAnchors(
    carried.anchors,
    config,
    { origin: carried.origin, authority: readAuthority(invocation) },
    (finding) => void findings.push(finding),
  );
  return {
    anchors,
    data: { key: carried.key, key_from: keyFrom, anchors: anchors.map(describe) },
    print(out: Output) {
      const id = printable(carried.key?.split('+')[1] ?? '');
      const [sentence, isSure] = KEY_SENTENCES[keyFrom];
      if (keyFrom !== 'none')
        out.line(out.paint(isSure ? 'green' : 'yellow', `Signed by key ${id}${sentence}`));
      printAnchors(anchors, out);
    },
  };
}

const KEY_SENTENCES: Readonly<Record<KeyFrom, readonly [sentence: string, isSure: boolean]>> = {
  '--key': [', the one you gave.', true],
  known: [', the one this user’s folder holds for this log.', true],
  bundle: [
    ', which came with it: this shows that it agrees with itself, not who signed it. Give the key you know with --key.',
    false,
  ],
  none: ['', false],
};

/** A key that comes with what it signs is taken at its word, unless this user knows the log and its key. */
function judgeKey(
  { origin, key }: Carried,
  brought: Brought,
  invocation: Invocation,
  findings: Finding[],
): KeyFrom {
  if (brought.key !== undefined) return '--key';
  if (key === undefined) return 'none';
  const folder = knownLog(invocation.config(), origin);
  const known = folder?.verifierKey();
  if (folder === undefined || known === undefined) return 'bundle';
  if (known === key) return 'known';
  const what = folder.retiredKeys().includes(key)
    ? `is signed by a key of ${origin} that was given up`
    : `is signed by another key than the one in ${folder.path}`;
  findings.push(outsideFinding('foreign-key', 'key', `It ${what}. To believe its key, give it with --key.`));
  return 'bundle';
}

function readAuthority({ values }: Invocation): string | undefined {
  if (typeof values.ca !== 'string') return undefined;
  const path = resolve(values.ca);
  if (!existsSync(path)) throw new UsageError(`There is no file ${path}.`);
  return path;
}

function rangesOf(intactThrough: number, checkpointed: number, anchors: readonly LookedUp[]): Ranges {
  const found = anchors.filter((anchor) => anchor.found !== undefined);
  const anchoredThrough = Math.min(intactThrough, Math.max(0, ...found.map(({ size }) => size)));
  return {
    intactThrough,
    checkpointedThrough: checkpointed,
    anchoredThrough,
    anchoredBy: (['git', 'tsr'] as const).filter((kind) => found.some((anchor) => anchor.kind === kind)),
    unanchoredTail: intactThrough - anchoredThrough,
  };
}

function describe({ kind, name, size, commit, ref, time, found, check }: LookedUp): object {
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

/** Of each kind the oldest says since when, the newest how far; the others say nothing more. */
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
  const what = kind === 'git' ? `git commit ${commit}` : `${ANCHOR_NAMES.tsr} claiming ${time ?? 'no time'}`;
  out.line(
    found === undefined
      ? out.paint('yellow', `Named, not checked here: ${what}, of the checkpoint at ${size} rows. ${check}`)
      : out.paint('green', `Anchored: ${what}, of the checkpoint at ${size} rows, by ${printable(found)}.`),
  );
}

function printEnd(findings: readonly Finding[], out: Output): void {
  out.line(
    findings.length === 0 ? out.paint('green', 'Nothing is wrong.') : out.paint('red', countOf(findings)),
  );
}
