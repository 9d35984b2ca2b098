/** SPEC section 5, ζ and η, and the session tree of section 6. */
export const TRAIL_AND_PROOFS = {
  'trail.seed-examples':
    'The printed examples of the trail and proof tools work as printed, read through the envelope.',
  'trail.pattern-a':
    'A domain error of a trail tool is {ok: false, error} with isError, its message begins with the code.',
  'trail.next-step': 'Every error of the trail says what to do next.',
  'trail.hash': 'A thought’s hash can be recomputed from the listing, whatever its text holds.',
  'trail.script':
    'docs/verify-thoughts.py recomputes hashes, links and session roots from the tools’ answers, and refuses altered ones.',
  'trail.record.fields': 'thought_record takes each field up to its limit and nothing beyond it.',
  'trail.record.output': 'thought_record answers the thought’s id, hash, link, time, actor and position.',
  'trail.record.binding':
    'A thought binds to the session named, else to the open session of its task, else to none.',
  'trail.record.errors': 'thought_record names an unknown task, and a session that is unknown or elsewhere.',
  'trail.list.fields':
    'thought_record_list takes a task, a session, both or neither, a type, a limit of at most 500 and an offset, and shows 100 unasked.',
  'trail.list.count': 'thought_count counts all that match, however many are shown.',
  'trail.list.verify':
    'With verify_chain it says whether the chain holds, and at which positions it does not.',
  'trail.list.errors': 'thought_record_list names an unknown task or session.',
  'trail.verify.output':
    'audit_verify_chain answers for a task and for a session; full_trace adds every hash in order.',
  'trail.verify.errors': 'audit_verify_chain says ERR_NOT_FOUND of an unknown task or session.',
  'trail.verify.columns':
    'An edit of any column of a session, its records or its thoughts is found with the record and the column.',
  'trail.verify.audit-rows':
    'An edit of the audit rows behind a session is found with the row and the column.',
  'trail.verify.all': 'Verification lists every break, not the first one only, and scores below 100.',
  'trail.verify.deleted': 'A thought or a record that was deleted, moved or cut off is found.',
  'trail.verify.waiting': 'Other calls are answered while a long chain is walked.',
  'trail.git.observed':
    'An omitted branch or commit is filled in from the repository and marked as observed; a claim is not.',
  'trail.git.broken': 'A broken repository is no error.',

  'proof.pattern-b':
    'A domain error of a proof tool is {ok: true, data: {ok: false, error}} with isError, and says what to do next.',
  'proof.start.fields':
    'audit_session_start takes each field up to its limit and nothing beyond it; scope is shallow unasked.',
  'proof.start.one': 'A task has one open session; a second is ERR_SESSION_EXISTS and names the first.',
  'proof.start.skills': 'A session records name and digest of the skills in force when it began.',
  'proof.records.order':
    'A session collects every thought and every change of its task while it is open, in the order written.',
  'proof.records.deep':
    'A deep session collects those of all descendants, also of children created later; a shallow one does not.',
  'proof.records.several': 'A task under several open sessions is recorded in each of them.',
  'proof.root': 'The root is that of RFC 6962 over the record hashes in their order.',
  'proof.depth': 'tree_depth counts levels: 1 for one leaf, 4 for five to eight.',
  'proof.finalize.task': 'merkle_finalize with task_id seals the records of that task only.',
  'proof.finalize.errors':
    'merkle_finalize names an unknown session or task, a finalized session and one without records.',
  'proof.root.open': 'merkle_root of an open session is the root so far, of an empty one ERR_NOT_FINALIZED.',
  'proof.root.final': 'merkle_root of a finalized session is the sealed root for ever.',
  'proof.frozen': 'A finalized session takes no thought, no change and no second seal.',
  'proof.seal-in-log': 'The exit row of a seal carries root and leaf count.',
  'proof.grade':
    'A proof-grade task takes thoughts only into an open session and ends only with a finalized one.',
} as const;
