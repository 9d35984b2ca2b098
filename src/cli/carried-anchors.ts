import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { AnchorMemory } from '../trust/anchors.ts';
import { ANCHOR_REF, commitsHeld } from '../trust/anchors-git.ts';
import { checkStamp } from '../trust/anchors-tsr.ts';
import { ProgramError } from '../trust/programs.ts';
import type { Report } from '../verify/finding.ts';
import { commitAlgorithm, commitPreimage } from '../verify/sources/anchor-file.ts';
import type { CarriedAnchor } from '../verify/sources/carried.ts';
import { folderOf, outsideFinding } from './evidence.ts';

/** An anchor that a bundle or certificate names, and whether it was found outside of it. */
export interface LookedUp extends CarriedAnchor {
  /** The id of a commit. */
  readonly commit?: string;
  /** Where it was found, or which authority made it; undefined where that cannot be told here. */
  readonly found: string | undefined;
  /** How to check it where it was not found. */
  readonly check: string;
}

/**
 * Looks for anchors where whoever made the bundle could not have put them: commits in the repository of the workspace,
 * tokens under the authorities that the user trusts. An anchor that is not found is named, never counted.
 */
export function lookUpAnchors(
  anchors: readonly CarriedAnchor[],
  config: Config,
  given: { readonly origin: string | undefined; readonly authority: string | undefined },
  report: Report,
): LookedUp[] {
  const authorities =
    given.authority === undefined ? knownAuthorities(config, given.origin) : [given.authority];
  const held = heldHere(anchors.filter(({ kind }) => kind === 'git').map(commitId), config.workspace);
  return anchors.map((anchor) => {
    if (anchor.kind === 'tsr') return askAuthority(anchor, authorities, report);
    const { ref = ANCHOR_REF } = anchor;
    const commit = commitId(anchor);
    const check = `In a clone of the repository it was pushed to: git fetch origin ${ref} && git cat-file commit ${commit}`;
    return {
      ...anchor,
      commit,
      found: held.has(commit) ? `the repository of ${config.workspace}` : undefined,
      check,
    };
  });
}

/** The commits that the repository of the workspace holds. */
function heldHere(commits: readonly string[], workspace: string): ReadonlySet<string> {
  try {
    return commits.length === 0 ? new Set() : commitsHeld(workspace, commits);
  } catch (error) {
    // Without git, nothing was looked up, and nothing is counted as found.
    if (error instanceof ProgramError) return new Set();
    throw error;
  }
}

/** Computed from its bytes, so that it cannot be claimed. */
function commitId({ bytes }: CarriedAnchor): string {
  const algorithm = commitAlgorithm(bytes).replace('-', '').toLowerCase();
  return createHash(algorithm).update(commitPreimage(bytes)).digest('hex');
}

function knownAuthorities(config: Config, origin: string | undefined): string[] {
  const folder = folderOf(config, origin);
  return folder === undefined ? [] : new AnchorMemory(folder.path).authorities();
}

/** openssl needs files, and a bundle may be a zip. */
function askAuthority(anchor: CarriedAnchor, authorities: readonly string[], report: Report): LookedUp {
  const check =
    'With the certificate of its authority: colibri verify … --ca FILE, or openssl ts -verify with the checkpoint as data';
  const folder = mkdtempSync(join(tmpdir(), 'colibri-token-'));
  try {
    const [notePath, tokenPath] = [join(folder, 'note'), join(folder, 'token')];
    writeFileSync(notePath, anchor.note);
    writeFileSync(tokenPath, anchor.bytes);
    const verdict = checkStamp({ notePath, tokenPath, note: anchor.note }, authorities);
    if (verdict.state === 'wrong') {
      const message = `${anchor.name} is not a time stamp of the checkpoint of ${anchor.size} audit rows by an authority that you named.`;
      report(outsideFinding('bad-anchor', anchor.name, message));
    }
    const found = verdict.state === 'valid' ? `an authority you named, at ${verdict.time}` : undefined;
    return { ...anchor, found, check };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
