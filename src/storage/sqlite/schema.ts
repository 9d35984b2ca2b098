import { WORD_INDEX } from './word-index.ts';

/** Marks a file as Colibri's: the bytes "Coli" in the SQLite header. */
export const APPLICATION_ID = 0x436f6c69;

export { SCHEMA_VERSION } from '../engine.ts';

/**
 * The whole schema. Tables are STRICT so that a value keeps the type it was hashed with. A column is one of three kinds:
 * a fact, which the log vouches for; a text, stored as its salted digest and kept in `texts`; or derived, which the
 * verifier computes again (docs/reference/database.md).
 */
export const SCHEMA = `
  -- One row: the name of the log, fixed when its first key was made and never changed. Without it nothing is signed.
  CREATE TABLE log (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    origin TEXT NOT NULL
  ) STRICT;

  -- "text" is the canonical JSON of the row and the only thing that is hashed; "content" and "chain" are the 32 bytes of
  -- its two hashes.
  CREATE TABLE actions (
    position INTEGER PRIMARY KEY,
    text     TEXT NOT NULL,
    content  BLOB NOT NULL,
    chain    BLOB NOT NULL
  ) STRICT;

  -- The same rows with a column for each field. It stores nothing, so it cannot disagree with them. A hash that is not
  -- bytes reads as none, even where its hex would be the same. The fields of a text that is not JSON are NULL.
  CREATE VIEW audit_rows AS SELECT
    position,
    text,
    iif(typeof(content) = 'blob', lower(hex(content)), '') AS content_hash,
    iif(typeof(chain) = 'blob', lower(hex(chain)), '') AS chain_hash,
    json_extract(said, '$.sequence_no') AS sequence_no,
    json_extract(said, '$.stage') AS stage,
    json_extract(said, '$.tool') AS tool,
    json_extract(said, '$.actor') AS actor,
    json_extract(said, '$.source') AS source,
    json_extract(said, '$.correlation_id') AS correlation_id,
    json_extract(said, '$.at') AS at,
    json_extract(said, '$.rules') AS rules,
    json_extract(said, '$.schema_valid') AS schema_valid,
    json_extract(said, '$.args_hash') AS args_hash,
    json_extract(said, '$.outcome') AS outcome,
    json_extract(said, '$.error_code') AS error_code,
    json_extract(said, '$.duration_ms') AS duration_ms,
    json_extract(said, '$.result_hash') AS result_hash,
    json_extract(said, '$.effects') AS effects,
    json_extract(said, '$.process') AS process,
    json_extract(said, '$.repaired') AS repaired
  FROM (SELECT *, iif(json_valid(text), text, NULL) AS said FROM actions);

  -- Arguments of valid calls and results of writing calls, committed to by salted digests in their rows.
  CREATE TABLE action_payloads (
    position INTEGER PRIMARY KEY,
    salt     TEXT NOT NULL,
    body     TEXT NOT NULL
  ) STRICT;

  -- Every free text, with SHA-256(salt, text). Arguments and rows hold the digest, so that a text can be erased with its
  -- salt and every other digest, link and proof still holds. The id follows from the call that carried it, so that texts
  -- lie in the order of the calls; an index on the digests, which are random, would be written all over.
  CREATE TABLE texts (
    id     INTEGER PRIMARY KEY,
    digest TEXT NOT NULL,
    salt   TEXT NOT NULL,
    text   TEXT NOT NULL
  ) STRICT;

  -- Derived: the texts that the owner has erased, the task each was about, and the exit row that says so.
  CREATE TABLE erased_texts (
    digest   TEXT PRIMARY KEY,
    task_id  INTEGER,
    position INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- The newest signed head of each key, renewed by every commit that adds rows.
  CREATE TABLE log_heads (
    key        TEXT PRIMARY KEY,
    size       INTEGER NOT NULL,
    chain_hash TEXT NOT NULL,
    at         TEXT NOT NULL,
    -- Roots of the full subtrees of the global tree, the largest first, 64 hex digits each.
    frontier   TEXT NOT NULL,
    checkpoint TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;

  -- Signed heads kept for good: of a sealed session, a clean stop, "colibri checkpoint".
  CREATE TABLE checkpoints (
    size INTEGER NOT NULL,
    key  TEXT NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (size, key)
  ) STRICT, WITHOUT ROWID;

  -- Writing calls that were begun and have not ended. Empty when every call is explained.
  CREATE TABLE open_calls (
    position INTEGER PRIMARY KEY,
    process  TEXT NOT NULL
  ) STRICT;

  -- Derived: when each server process last wrote a row for each actor it serves, to the second: the time of the first row in it.
  CREATE TABLE processes (
    process   TEXT NOT NULL,
    actor     TEXT NOT NULL,
    last_seen TEXT NOT NULL,
    PRIMARY KEY (process, actor)
  ) STRICT, WITHOUT ROWID;

  -- Derived: the exit rows of writing calls by the task they name or made, refused ones included.
  CREATE TABLE task_calls (
    task_id  INTEGER NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (task_id, position)
  ) STRICT, WITHOUT ROWID;

  -- Derived: root of each full block of 256 rows, so that a proof reads a few thousand hashes of a million rows.
  CREATE TABLE log_blocks (
    block INTEGER PRIMARY KEY,
    hash  TEXT NOT NULL
  ) STRICT;

  -- A safeguard against accidents. Whoever holds the file can drop it; the hashes are the proof.
  CREATE TRIGGER actions_no_update BEFORE UPDATE ON actions BEGIN SELECT RAISE(ABORT, 'actions is append-only'); END;
  CREATE TRIGGER actions_no_delete BEFORE DELETE ON actions BEGIN SELECT RAISE(ABORT, 'actions is append-only'); END;
  CREATE TRIGGER action_payloads_no_update BEFORE UPDATE ON action_payloads BEGIN
    SELECT RAISE(ABORT, 'action_payloads is append-only');
  END;
  CREATE TRIGGER action_payloads_no_delete BEFORE DELETE ON action_payloads BEGIN
    SELECT RAISE(ABORT, 'action_payloads is append-only');
  END;
  -- A text never changes. It is deleted when the owner erases it, which is written down first.
  CREATE TRIGGER texts_no_update BEFORE UPDATE ON texts BEGIN SELECT RAISE(ABORT, 'a text never changes'); END;
  CREATE TRIGGER texts_no_delete BEFORE DELETE ON texts
  WHEN NOT EXISTS (SELECT 1 FROM erased_texts WHERE digest = old.digest) BEGIN
    SELECT RAISE(ABORT, 'only the owner erases a text');
  END;
  CREATE TRIGGER erased_texts_no_update BEFORE UPDATE ON erased_texts BEGIN
    SELECT RAISE(ABORT, 'erased_texts is append-only');
  END;
  CREATE TRIGGER erased_texts_no_delete BEFORE DELETE ON erased_texts BEGIN
    SELECT RAISE(ABORT, 'erased_texts is append-only');
  END;
  CREATE TRIGGER log_no_update BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the name of a log never changes'); END;
  CREATE TRIGGER log_no_delete BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the name of a log never changes'); END;

  CREATE TABLE tasks (
    id             INTEGER PRIMARY KEY,
    project        TEXT NOT NULL,
    sequence       INTEGER NOT NULL,
    -- Digests of texts, each with the enter row of the call that carried it.
    title          TEXT NOT NULL,
    title_call     INTEGER NOT NULL,
    description    TEXT,
    description_call INTEGER,
    blocked_reason TEXT,
    blocked_reason_call INTEGER,
    workflow       TEXT NOT NULL,
    status         TEXT NOT NULL,
    status_since   TEXT NOT NULL,
    status_by      TEXT NOT NULL,
    -- Who has the task in progress: the actor, the server process, and since when.
    held_by        TEXT,
    held_process   TEXT,
    held_since     TEXT,
    progress       REAL NOT NULL,
    priority       TEXT NOT NULL,
    type           TEXT,
    proof_grade    INTEGER NOT NULL,
    assignee       TEXT NOT NULL,
    labels         TEXT NOT NULL,
    estimate_hours REAL,
    parent_id      INTEGER REFERENCES tasks (id),
    depends_on     TEXT NOT NULL,
    created_at     TEXT NOT NULL,
    created_by     TEXT NOT NULL,
    updated_at     TEXT NOT NULL,
    updated_by     TEXT NOT NULL,
    position       INTEGER NOT NULL,
    -- Derived, and in no digest. Unfinished children and dependencies.
    unmet          INTEGER NOT NULL DEFAULT 0,
    is_final       INTEGER NOT NULL DEFAULT 0,
    -- How the task takes part in "what next": 1 waits to be done, 2 is blocked, 0 neither.
    queue          INTEGER NOT NULL DEFAULT 0,
    urgency        INTEGER GENERATED ALWAYS AS (
      CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END
    ) VIRTUAL
  ) STRICT;

  CREATE UNIQUE INDEX tasks_by_project ON tasks (project, sequence);
  CREATE INDEX tasks_by_parent ON tasks (parent_id) WHERE parent_id IS NOT NULL;
  CREATE INDEX tasks_by_update ON tasks (updated_at, id);
  -- Spelled out instead of "urgency": SQLite never takes a virtual column from an index. With every column of the answer
  -- but the title in here, twenty tasks come from a few neighbouring pages instead of twenty scattered ones.
  CREATE INDEX tasks_next ON tasks (
    queue, (unmet > 0),
    (CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END),
    id, title, title_call, priority, assignee, estimate_hours, parent_id, unmet, status
  ) WHERE queue > 0;
  CREATE INDEX tasks_next_in_project ON tasks (
    project, queue, (unmet > 0),
    (CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END),
    id, title, title_call, priority, assignee, estimate_hours, parent_id, unmet, status
  ) WHERE queue > 0;
  -- For "yours" and "abandoned": the tasks of each holder.
  CREATE INDEX tasks_held ON tasks (held_by, held_process, id) WHERE held_by IS NOT NULL;
  -- For the hint where nothing is ready: what can be brought forward, in the order of "what next".
  CREATE INDEX tasks_waiting ON tasks (
    status, project, (unmet > 0),
    (CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END),
    id
  ) WHERE status = 'backlog' OR status = 'review';

  -- Derived from tasks and their texts, and compared by the verifier. Triggers keep the first two. The words of new tasks
  -- are added many at a time, in the order of the tasks: each time, the index writes a part of its own.
  CREATE TABLE task_labels (label TEXT NOT NULL, task_id INTEGER NOT NULL, PRIMARY KEY (label, task_id)) STRICT, WITHOUT ROWID;
  CREATE TABLE task_dependencies (
    task_id INTEGER NOT NULL, depends_on INTEGER NOT NULL, PRIMARY KEY (task_id, depends_on)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX task_dependents ON task_dependencies (depends_on);
  CREATE VIRTUAL TABLE task_words USING ${WORD_INDEX};
  -- The words of the index, for the verifier. It stores nothing.
  CREATE VIRTUAL TABLE task_terms USING fts5vocab (task_words, row);

  CREATE TRIGGER tasks_labelled AFTER INSERT ON tasks WHEN new.labels <> '[]' BEGIN
    INSERT INTO task_labels (label, task_id) SELECT DISTINCT value, new.id FROM json_each(new.labels);
  END;
  CREATE TRIGGER tasks_wired AFTER INSERT ON tasks WHEN new.depends_on <> '[]' BEGIN
    INSERT INTO task_dependencies (task_id, depends_on) SELECT DISTINCT new.id, value FROM json_each(new.depends_on);
  END;
  CREATE TRIGGER tasks_relabelled AFTER UPDATE OF labels ON tasks WHEN new.labels IS NOT old.labels BEGIN
    DELETE FROM task_labels WHERE task_id = new.id AND label IN (SELECT value FROM json_each(old.labels));
    INSERT INTO task_labels (label, task_id) SELECT DISTINCT value, new.id FROM json_each(new.labels);
  END;
  CREATE TRIGGER tasks_rewired AFTER UPDATE OF depends_on ON tasks WHEN new.depends_on IS NOT old.depends_on BEGIN
    DELETE FROM task_dependencies WHERE task_id = new.id;
    INSERT INTO task_dependencies (task_id, depends_on) SELECT DISTINCT new.id, value FROM json_each(new.depends_on);
  END;
  CREATE TRIGGER tasks_no_delete BEFORE DELETE ON tasks BEGIN SELECT RAISE(ABORT, 'tasks are never deleted'); END;

  CREATE TABLE thoughts (
    id             INTEGER PRIMARY KEY,
    task_id        INTEGER NOT NULL REFERENCES tasks (id),
    session_id     INTEGER,
    type           TEXT NOT NULL,
    -- Digests of texts, and the enter row of the call that carried them.
    content        TEXT NOT NULL,
    tests_run      TEXT,
    blockers       TEXT,
    metadata       TEXT,
    call           INTEGER NOT NULL,
    previous_hash  TEXT,
    hash           TEXT NOT NULL,
    chain_position INTEGER NOT NULL,
    recorded_at    TEXT NOT NULL,
    recorded_by    TEXT NOT NULL,
    branch         TEXT,
    commit_sha     TEXT,
    -- Which of branch and commit_sha the server read from the repository itself, as a JSON array of their names.
    observed       TEXT NOT NULL,
    position       INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX thoughts_by_task ON thoughts (task_id, chain_position);
  CREATE INDEX thoughts_by_session ON thoughts (session_id, id) WHERE session_id IS NOT NULL;
  CREATE TRIGGER thoughts_no_update BEFORE UPDATE ON thoughts BEGIN SELECT RAISE(ABORT, 'thoughts is append-only'); END;
  CREATE TRIGGER thoughts_no_delete BEFORE DELETE ON thoughts BEGIN SELECT RAISE(ABORT, 'thoughts is append-only'); END;

  CREATE TABLE sessions (
    id             INTEGER PRIMARY KEY,
    task_id        INTEGER NOT NULL REFERENCES tasks (id),
    auditor_id     TEXT NOT NULL,
    -- Digest of a text, and the enter row of the call that carried it.
    reason         TEXT,
    call           INTEGER NOT NULL,
    scope          TEXT NOT NULL,
    status         TEXT NOT NULL,
    started_at     TEXT NOT NULL,
    started_by     TEXT NOT NULL,
    -- Name and digest of each skill in force at the start, as a JSON array.
    skills         TEXT NOT NULL,
    sealed_task_id INTEGER,
    merkle_root    TEXT,
    tree_depth     INTEGER,
    leaf_count     INTEGER,
    finalized_at   TEXT,
    finalized_by   TEXT,
    position       INTEGER NOT NULL
  ) STRICT;
  CREATE UNIQUE INDEX sessions_open ON sessions (task_id) WHERE status = 'open';
  CREATE INDEX sessions_by_task ON sessions (task_id, status);
  CREATE TRIGGER sessions_no_delete BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'sessions are never deleted'); END;

  CREATE TABLE session_records (
    id         INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions (id),
    task_id    INTEGER NOT NULL,
    -- A thought by its id, or a task change by the position of its exit row.
    kind       TEXT NOT NULL,
    ref        INTEGER NOT NULL,
    position   INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX session_records_in_order ON session_records (session_id, id);
  CREATE INDEX session_records_by_ref ON session_records (ref, kind);
  CREATE TRIGGER session_records_no_update BEFORE UPDATE ON session_records BEGIN
    SELECT RAISE(ABORT, 'session_records is append-only');
  END;
  CREATE TRIGGER session_records_no_delete BEFORE DELETE ON session_records BEGIN
    SELECT RAISE(ABORT, 'session_records is append-only');
  END;
`;
