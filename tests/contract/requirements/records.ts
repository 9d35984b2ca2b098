/** SPEC section 4: ids, times, actors, audit rows, recovery, thoughts, canonical JSON. */
export const RECORDS = {
  'ids.global': 'T-, Θ- and A- ids count globally, four digits and growing.',
  'ids.sequence': 'sequence counts per project.',
  'times.utc': 'Times are ISO-8601 in UTC with milliseconds.',
  'times.never-back':
    'A stored time is never earlier than the one before it, unless that one is more than a day ahead of the clock.',
  'actor.configured': 'The actor is COLIBRI_AGENT_ID where set.',
  'actor.client': 'Else it is the name the client gives itself, in either era.',
  'actor.unknown': 'Else it is unknown.',
  'actor.any-name': 'No name a client may give itself keeps its calls out of the log.',
  'log.positions': 'Positions are 1, 2, 3 … without gaps.',
  'log.pairs': 'The two rows of a call share sequence_no and correlation_id, a uuid v4.',
  'log.fields': 'A row has exactly the documented fields, and the columns of the table say the same.',
  'log.outcomes': 'Outcomes are running on enter, and ok, error, rejected, denied or crashed on exit.',
  'log.process': 'A row says which process wrote it.',
  'log.salted': 'args_hash and result_hash are salted digests of what lies beside the row.',
  'log.complete':
    'The arguments, with defaults written in, and what was seen outside are kept with every writing call, refused or not.',
  'log.one-time': 'A call has one time, that of its exit row, and every time it writes is that time.',
  'log.texts':
    'A free text is committed to by a salted digest, the same in the call and in the row it wrote.',
  'log.erasable':
    'Erasing a text with its salt leaves every hash of the log as it was, and no way back to what was erased.',
  'log.effects':
    'effects lists table, id, the position that wrote the row before, and its digest after the write, without what is counted from others.',
  'log.text': 'content_hash is the SHA-256 of the canonical text that is stored.',
  'log.chain': 'chain_hash is the SHA-256 of content_hash and the previous chain_hash, 64 zeros first.',
  'log.seat-belt':
    'Triggers refuse UPDATE and DELETE on actions and thoughts, and of a text everything but its erasure.',
  'erase.bytes':
    'colibri erase leaves nothing of a text in the bytes of the database, its index, its log or its free pages, beside a running server too.',
  'erase.calls':
    'It takes the texts and salts of the record, of the calls that carried them and of refused calls about the same.',
  'erase.on-record':
    'Who erased what, when and why is on the record, as an owner’s act from the command line.',
  'erase.verifies':
    'Verification says erased by … because …; every digest, link, proof, replay, bundle and certificate still holds.',
  'erase.shown': 'Tools show "[erased]" and erased: true, and searching finds nothing of it.',
  'erase.interrupted':
    'A kill in the middle leaves a sound log, and the same command run again does the rest.',
  'erase.readers': 'While somebody reads an older state it waits, bounded, and then says what to do.',
  'erase.honest':
    'It says what it cannot do: copies, earlier bundles, notes, and that a short thought can be guessed.',
  'erase.refused':
    'It erases nothing without a reason, a yes, a record that is there, and the key of the log.',
  'recovery.crashed':
    'A call begun by a process that is gone gets an exit row crashed at the next start, once.',
  'recovery.living': 'A call of a process that still lives is left to it.',
  'thoughts.chain': 'Thoughts chain per task, previous_hash null first.',
  'thoughts.hash': 'A thought’s hash is the SHA-256 of the six documented fields in their order.',
  'thoughts.effects': 'The other columns of a thought are covered by the effects of its audit row.',
  'json.canonical': 'What is hashed as JSON is hashed in its RFC 8785 form.',
  'json.depth': 'Nesting beyond the limit is INVALID_PARAMS, at any depth, and never breaks the process.',
  'json.surrogates': 'A lone surrogate is refused at validation, wherever it stands.',
  'json.numbers': 'Numbers JSON cannot carry exactly are refused at validation, never rounded.',
  'json.names':
    'Names like __proto__ are data or refused; they never reach a prototype and are never dropped.',
  'json.text': 'Any well-formed text comes back as it was sent, or is refused by name.',
} as const;
