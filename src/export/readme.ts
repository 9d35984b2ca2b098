import { packageVersion } from '../config.ts';
import { visibleLine } from '../untrusted.ts';
import type { BundleRequest, WrittenBundle } from './bundle.ts';

const PAGE = `  verify.html       shows and checks the bundle in a browser, without a network. Use a page from a source you trust,
                    because someone who forges a bundle can forge the page inside
`;

const ANCHORS = `  anchors/          copies of anchored checkpoints, each file named after its SHA-256: git commits as git stores them
                    ("git hash-object -t commit FILE" prints the id to look for in a clone), and replies of time-stamping
                    authorities ("openssl ts -verify -in FILE -data CHECKPOINT -CAfile CERTIFICATE"). The bundle alone
                    does not prove that anyone else has them
`;

const SCRIPTS = `  scripts/          verify-bundle.py and the five files it needs, in plain Python, from this version of Colibri:
                    "python3 scripts/verify-bundle.py ." checks the rows. Read them first, or use scripts from a source
                    you trust, because someone who forges a bundle can forge the scripts inside
`;

/** What someone reads who finds the bundle and has never heard of Colibri. */
export function readmeText(written: WrittenBundle, { page, scripts }: BundleRequest): string {
  const hasScripts = scripts !== undefined && scripts.size > 0;
  const { origin = '(never signed)', size, checkpointedThrough, anchors } = written;
  return `A Colibri bundle
================

Written by Colibri ${packageVersion()}. It contains the whole log ${visibleLine(origin)}: ${size} audit rows, of which a signed checkpoint covers ${checkpointedThrough}.
You can check everything without Colibri, with sha256sum, openssl and a few lines of any language.

  SHA256SUMS        run "sha256sum -c SHA256SUMS"
  bundle.json       what this is; size and root of the log as exported
  log.jsonl         one audit row per line, in order; the SHA-256 of a line is the row's content_hash
  payloads.jsonl    arguments and results of calls: SHA-256(salt, body) is the row's args_hash or result_hash. The salt
                    is 16 bytes, written here as 32 hex digits; the body is hashed as UTF-8
  texts.jsonl       the free texts, ordered by call: SHA-256(salt, text) is the digest that replaces a text everywhere
                    else. A missing text was erased by the owner, and a row of the log says so
  state.jsonl       tasks, thoughts, sessions, session records; the SHA-256 of a line is the hash in the effects of the
                    audit row named by its "position", the last one that wrote it
  checkpoint        the newest signed head of the log (C2SP tlog-checkpoint: origin, size, base64 root, signature)
  heads/            the newest head of each key, by the id of the key
  checkpoints/      older heads that were kept, by size and key
  keys              the keys that signed them, one per line: name+id+base64(0x01, Ed25519 public key)
  seals/            for each sealed session, the hashes of its records in order; their root is in its row of state.jsonl
  proofs/           C2SP tlog-proof files: they prove that the row that sealed a session is in the signed log
${anchors > 0 ? ANCHORS : ''}${page === undefined ? '' : PAGE}${hasScripts ? SCRIPTS : ''}
The log is a tree as in RFC 6962 (section 2.1). A leaf is SHA-256(0x00, content_hash), an inner node
SHA-256(0x01, left, right), hashes as 32 bytes. The chain is SHA-256(content_hash + previous chain_hash), with hashes as
64 hex digits, and 64 zeros before the first row. A session's tree is built the same way over its records' hashes: the "hash" of a
thought, the content_hash of a change. The name of the log is colibri/ and the first 32 hex digits of the SHA-256 of the
32-byte public key that created it.

What the bundle proves depends on the keys. Compare them with keys you got from another source, or compare the
checkpoint with one you kept. verify-bundle.py (in scripts/, and in docs/ of Colibri) checks the rows in plain Python;
"colibri verify" also runs every call again.
`;
}
