import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import type { CarriedAnchor } from '../export/anchors.ts';
import { AnchorMemory } from '../log/anchors.ts';
import { checkStamp } from '../log/anchors-found.ts';
import { ANCHOR_REF, commitsHeld, GitError } from '../log/anchors-git.ts';
import { LogFolder } from '../log/log-folder.ts';
import type { Finding } from '../log/verify/finding.ts';
import { outsideFinding } from './evidence.ts';

/** An anchor that a bundle names, and whether it was found where the bundle is not. */
export interface LookedUp extends CarriedAnchor {
  /** Where it was found or by whom it is; undefined where nobody here can say. */
  readonly found: string | undefined;
  /** What to do where it was not found, as a sentence. */
  readonly check: string;
}

/**
 * Looks for the anchors of a bundle where whoever made the bundle could not have put them: commits in the repository one
 * stands in, tokens under the authorities one trusts. What is not found is named, never counted.
 */
export function lookUpAnchors(
  anchors: readonly CarriedAnchor[],
  config: Config,
  given: { readonly origin: string | undefined; readonly authority: string | undefined },
  report: (finding: Finding) => void,
): LookedUp[] {
  const authorities =
    given.authority === undefined ? knownAuthorities(config, given.origin) : [given.authority];
  const held = heldHere(anchors, config.workspace);
  return anchors.map((anchor) => {
    if (anchor.kind === 'tsr') return askAuthority(anchor, authorities, report);
    const { commit = '', ref = ANCHOR_REF } = anchor;
    const check = `In a clone of the repository it was pushed to: git fetch origin ${ref} && git cat-file commit ${commit}`;
    return {
      ...anchor,
      found: held.has(commit) ? `the repository of ${config.workspace}` : undefined,
      check,
    };
  });
}

/** The commits among them that the repository one stands in holds. */
function heldHere(anchors: readonly CarriedAnchor[], workspace: string): ReadonlySet<string> {
  const commits = anchors.flatMap(({ commit }) => commit ?? []);
  try {
    return commits.length === 0 ? new Set() : commitsHeld(workspace, commits);
  } catch (error) {
    // Without git nothing was looked up, which is what an empty answer says.
    if (error instanceof GitError) return new Set();
    throw error;
  }
}

/** The log's own folder of this user, where the name is one that Colibri gives. */
export function knownLog(config: Config, origin: string | undefined): LogFolder | undefined {
  if (origin === undefined || !/^colibri\/[0-9a-f]{16}$/.test(origin)) return undefined;
  const folder = new LogFolder(config.configDir, origin);
  return folder.exists ? folder : undefined;
}

function knownAuthorities(config: Config, origin: string | undefined): string[] {
  const folder = knownLog(config, origin);
  return folder === undefined ? [] : new AnchorMemory(folder.path).authorities();
}

/** openssl wants files, and a bundle may be a zip. */
function askAuthority(
  anchor: CarriedAnchor,
  authorities: readonly string[],
  report: (finding: Finding) => void,
): LookedUp {
  const check =
    'With the certificate of its authority: colibri verify … --ca FILE, or openssl ts -verify with the checkpoint as data';
  const folder = mkdtempSync(join(tmpdir(), 'colibri-token-'));
  try {
    const [notePath, tokenPath] = [join(folder, 'note'), join(folder, 'token')];
    writeFileSync(notePath, anchor.note);
    writeFileSync(tokenPath, anchor.bytes);
    const verdict = checkStamp({ notePath, tokenPath, note: anchor.note }, authorities);
    if (verdict.state === 'wrong') {
      const message = `${anchor.name} is no time stamp of the checkpoint at ${anchor.size} rows by an authority that was named.`;
      report(outsideFinding('bad-anchor', anchor.name, message));
    }
    const found = verdict.state === 'valid' ? `an authority you named, at ${verdict.time}` : undefined;
    return { ...anchor, found, check };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
