/** SPEC section 6, but for the session tree, which stands with the tools that make it. */
export const TRANSPARENCY_LOG = {
  'vectors.tree': 'All published RFC 6962 proofs, trees, checkpoints and tiles are judged as published.',
  'vectors.notes': 'All published signed notes and verifier keys are judged as published.',
  'vectors.json': 'All published JCS texts and numbers have their canonical bytes.',
  'tree.hash':
    'A leaf is SHA-256(0x00, record hash), a node SHA-256(0x01, left, right), the empty tree SHA-256 of nothing.',
  'tree.shape': 'A tree is split at the largest power of two below its size; a lonely node rises unchanged.',
  'tree.hex': 'Wherever a hash is shown it is lowercase hex.',
  'log-tree.global':
    'One tree covers all audit rows by position, and a checkpoint names its root over their content_hash.',
  'log-tree.inclusion': 'Any record has an inclusion proof that leads to the signed root.',
  'log-tree.consistency': 'The log at any size is shown to be the beginning of the log at any later size.',
  'log-tree.strict':
    'Proofs are verified strictly: sizes fully consumed, every hash 32 bytes, size 0 refused.',
  'log-tree.stored': 'A proof reads stored roots and a block of rows, never the whole log.',

  'checkpoint.format':
    'A checkpoint is a C2SP tlog-checkpoint in a signed note, Ed25519: strict readers and openssl accept it.',
  'checkpoint.origin': 'A log’s origin names the key that created it and never changes.',
  'checkpoint.kept': 'A sealed session and a clean stop each leave a checkpoint for good.',
  'checkpoint.deleted':
    'A kept checkpoint that was deleted or replaced is a finding, until the owner adopts.',
  'checkpoint.command': 'colibri checkpoint keeps the newest signed head and prints it.',
  'checkpoint.unsigned':
    'Where a log must not be signed over, calls are answered unsigned, and _meta, health and verify say so.',
  'checkpoint.meta':
    'The newest durable checkpoint travels to the client in the _meta of each result; after a writing call it covers that call.',
  'checkpoint.private':
    'The private key and what was signed last are the owner’s alone and lie in the per-user folder, outside the workspace.',
  'checkpoint.extends': 'What does not extend the head that was signed last is never signed.',
  'checkpoint.next-start':
    'A restored older database, a cut tail and a rewritten history are caught at the next start: degraded, refused, the reason on stderr.',
  'checkpoint.one-lock': 'Several processes that sign at once make one history.',
  'checkpoint.modes': 'Nothing is signed in TEST and MINIMAL.',
  'checkpoint.lost-key': 'A lost, damaged or exchanged key is named; nothing is signed with another one.',
  'checkpoint.lost-memory':
    'A lost or damaged memory of what was signed last is named; nothing is signed without it.',
  'checkpoint.moved': 'On another machine a log is refused until its folder comes along.',
  'checkpoint.copies':
    'Of two databases with one key only one history is signed where they share the folder; where not, each denies the other.',
  'checkpoint.replaced': 'A database that was deleted or replaced is not quietly begun anew.',
  'checkpoint.adopt':
    'The owner can accept what was lost: what is given up is said, put aside and on the record, and the log goes on.',

  'head.every-commit':
    'Every commit that adds rows is signed: no honest log has a row beyond its newest head.',
  'head.foreign':
    'Rows that no known key has signed are named by verify and health, and signed over by no running server and no later start.',
  'head.checked':
    'A head that was removed, replaced, put back or made of another tree is found, and nothing is signed over it.',
  'head.durable': 'A checkpoint leaves the process only when an fsync covers it.',
  'head.constant-start': 'The checks at the start take a time that does not grow with the log.',

  'anchor.git':
    'colibri anchor --git commits the checkpoint to a reference of its own, touches nothing else, and verify finds it.',
  'anchor.file': 'colibri anchor --file keeps the checkpoint in any file, and verify compares it.',
  'anchor.stamp':
    'An RFC 3161 token counts as an anchor once openssl has checked it under an authority that was named.',
  'anchor.outside-calls': 'No tool call starts git, openssl or any other program.',

  'verdict.ranges':
    'A verdict is ranges: intact, replayed, checkpointed and anchored through, and the unanchored tail.',
  'verdict.locked': 'A file that another process has for itself is reported as locked, not as damaged.',
  'verdict.one': 'The same rules over every source give the same findings and ranges.',
  'verdict.replay':
    'Every call is run again through the rules of its version and must give what the log says, whoever signed it.',
  'verdict.columns': 'Where the whole log is there, a finding names the column.',
  'verdict.texts':
    'A text that is gone, with no erasure of it on the record, is a finding that names its call and field.',
  'verdict.forms': 'Salts, markers and lists of files have one exact form, and anything else is a finding.',
  'verdict.record':
    'show and log say of each record whether it is intact, checkpointed and anchored, as far as they checked it.',
  'verdict.against':
    'A checkpoint kept elsewhere, in any form, is found consistent, inconsistent or not comparable.',
  'verdict.key':
    'Whose key signatures were checked with is said; a key other than the known one is a finding.',
  'verdict.exit': 'Exit 0 is fine, 1 found something, 2 was used wrongly; --json prints every finding.',

  'bundle.forms': 'colibri export writes a folder or a zip, of the whole log.',
  'bundle.files':
    'A bundle holds log.jsonl, state.jsonl, texts.jsonl, payloads.jsonl, heads, checkpoints, keys, seals, proofs and verify.html; the same log makes the same bytes.',
  'bundle.alone':
    'A bundle is checked with sha256sum, openssl and Python alone, by a script of at most 200 lines.',
  'bundle.guide': 'Every command of the auditing guide does what the guide says.',
  'bundle.damage': 'A bundle with any byte of any file changed is refused, by Colibri and by the script.',
  'bundle.forged': 'A bundle that was changed and had its sums recomputed is refused.',
  'bundle.anchors':
    'A bundle carries the anchors that exist; they are named with how to check them and counted only where they were found.',
  'bundle.hostile': 'Whatever a stranger calls a bundle or a proof is findings, never a crash.',
  'certificate.task':
    'colibri prove of a task writes every transition, the thoughts, the calls, the skills in force and the seal, each proved.',
  'certificate.records': 'colibri prove does the same for a thought, a session and an audit row.',
  'certificate.alone': 'A certificate is verified alone, by Colibri and by the script.',
  'certificate.damage': 'A certificate with any byte changed is refused, by Colibri and by the script.',

  'page.one-file': 'verify.html is one file that allows nothing but what is in it (default-src none).',
  'page.offline': 'The page asks nobody for anything, and could not if something in it tried.',
  'page.verifies': 'The page verifies rows, chain, trees, effects, seals and signatures in the browser.',
  'page.damage': 'The page names the damage in every damaged bundle.',
  'page.board': 'The page shows the board.',
  'page.trail': 'The page shows the trail as a timeline with filters.',
  'page.tree': 'The page draws a session’s tree, and a leaf lights its way to the root.',
  'page.summary': 'The page tells a manager what was done, by whom, and what the verdict rests on.',
  'page.honest': 'The page never calls checked what it did not check.',
  'page.hostile': 'Hostile text in a record is inert in the page.',
  'page.usable': 'The page is used by keyboard and screen reader, in the light, in the dark, on a phone.',
  'page.large': 'The page stays usable with 50,000 rows.',
  'page.certificate':
    'The page tells a certificate in the order a person asks, and of one that was changed shows nothing as proved.',
  'page.anchors': 'The page calls an anchor prepared, pushed or time-stamped, and never more than it knows.',
  'live.proved':
    'On the live page every row shown is proved in the browser under a signed head; nothing else is shown.',
  'live.grows': 'The live page is updated as rows arrive, and checks that each head extends the one before.',
  'live.alarm':
    'A head or a row that a growing log cannot give raises an alarm on the live page, which stays.',
  'live.word': 'What is only the server’s word is marked as such, with its range and age.',
  'live.closed':
    'The live page listens on loopback, answers only who knows the token, from no other page and under no other name, and writes nothing.',
  'live.bounded': 'Slow, huge and malformed requests cost the live page bounded time and memory.',
  'live.ends': 'The live page ends with its terminal, its input or its parent.',
  'live.large': 'The live page answers from a log of any size in parts.',
  'page.drop': 'The page checks any other bundle it is given: zip, folder, or dropped.',

  'detect.column': 'Any change to any column of any table is found.',
  'detect.deleted': 'A deleted row is found.',
  'detect.inserted': 'An inserted row is found.',
  'detect.swapped': 'Swapped rows are found.',
  'detect.duplicated': 'A duplicated row is found.',
  'detect.cut-tail': 'A cut tail is found, with or without what the rows left behind.',
  'detect.rewritten': 'A history that was rewritten and recomputed is found.',
  'detect.older-copy': 'A restored older file is found.',
  'detect.forged-root': 'A forged root is found.',
  'detect.no-effect': 'A row of state with no effect behind it is found.',
  'detect.no-row': 'An effect with no row of state is found.',
  'detect.foreign-key': 'A checkpoint from another key is found.',
  'detect.bits': 'A flipped bit that changes a value is found, and a damaged page is a finding.',
  'detect.names': 'A finding names the record and what is wrong with it.',
  'detect.read-only': 'Verification never changes the database, and runs while servers write.',
  'detect.attacks': 'Every attack on hashing, trees and forms that PROOFS lists has its named finding.',
  'detect.beyond-hashing':
    'Split views, false clocks, changed names and a stolen key are found as far as PROOFS says they can be.',
} as const;
