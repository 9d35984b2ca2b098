/** Marks a file as Colibri's: the bytes "Coli" in the SQLite header. */
export const APPLICATION_ID = 0x436f6c69;

/**
 * The schema as a list of steps; step n takes a file from version n - 1 to n. A released step is never edited: a test
 * compares each with the digest recorded at its release. Tables are STRICT so that a value keeps the type it was hashed with.
 */
export const MIGRATIONS: readonly string[] = [
  // 1: the audit log.
  `
  -- "text" is the canonical JSON of the row and the only thing that is hashed. The other columns are read from it on
  -- demand for whoever looks at the file with SQL; they are stored nowhere and so cannot disagree.
  CREATE TABLE actions (
    position       INTEGER PRIMARY KEY,
    text           TEXT NOT NULL,
    content_hash   TEXT NOT NULL,
    chain_hash     TEXT NOT NULL,
    sequence_no    INTEGER GENERATED ALWAYS AS (json_extract(text, '$.sequence_no')) VIRTUAL,
    stage          TEXT GENERATED ALWAYS AS (json_extract(text, '$.stage')) VIRTUAL,
    tool           TEXT GENERATED ALWAYS AS (json_extract(text, '$.tool')) VIRTUAL,
    actor          TEXT GENERATED ALWAYS AS (json_extract(text, '$.actor')) VIRTUAL,
    correlation_id TEXT GENERATED ALWAYS AS (json_extract(text, '$.correlation_id')) VIRTUAL,
    at             TEXT GENERATED ALWAYS AS (json_extract(text, '$.at')) VIRTUAL,
    schema_valid   INTEGER GENERATED ALWAYS AS (json_extract(text, '$.schema_valid')) VIRTUAL,
    args_hash      TEXT GENERATED ALWAYS AS (json_extract(text, '$.args_hash')) VIRTUAL,
    outcome        TEXT GENERATED ALWAYS AS (json_extract(text, '$.outcome')) VIRTUAL,
    error_code     TEXT GENERATED ALWAYS AS (json_extract(text, '$.error_code')) VIRTUAL,
    duration_ms    REAL GENERATED ALWAYS AS (json_extract(text, '$.duration_ms')) VIRTUAL,
    result_hash    TEXT GENERATED ALWAYS AS (json_extract(text, '$.result_hash')) VIRTUAL,
    effects        TEXT GENERATED ALWAYS AS (json_extract(text, '$.effects')) VIRTUAL,
    process        TEXT GENERATED ALWAYS AS (json_extract(text, '$.process')) VIRTUAL,
    repaired       TEXT GENERATED ALWAYS AS (json_extract(text, '$.repaired')) VIRTUAL
  ) STRICT;

  -- Arguments and results lie beside the log, committed to by salted digests, so that one can be erased and every proof holds.
  CREATE TABLE action_payloads (
    position INTEGER PRIMARY KEY,
    salt     TEXT NOT NULL,
    body     TEXT NOT NULL
  ) STRICT;

  -- Writing calls that were begun and have not ended. Empty when every call is explained.
  CREATE TABLE open_calls (
    position INTEGER PRIMARY KEY,
    process  TEXT NOT NULL
  ) STRICT;

  -- Root of each full block of 256 rows, so that a proof reads a few thousand hashes of a million rows, not all of them.
  CREATE TABLE log_blocks (
    block INTEGER PRIMARY KEY,
    hash  TEXT NOT NULL
  ) STRICT;

  -- A seat belt against accidents. Whoever holds the file can drop it; the hashes are the proof.
  CREATE TRIGGER actions_no_update BEFORE UPDATE ON actions BEGIN SELECT RAISE(ABORT, 'actions is append-only'); END;
  CREATE TRIGGER actions_no_delete BEFORE DELETE ON actions BEGIN SELECT RAISE(ABORT, 'actions is append-only'); END;
  `,

  // 2: tasks. The row is the truth; the three tables below it are indexes kept by triggers and compared by the verifier.
  `
  CREATE TABLE tasks (
    id             INTEGER PRIMARY KEY,
    project        TEXT NOT NULL,
    sequence       INTEGER NOT NULL,
    title          TEXT NOT NULL,
    description    TEXT NOT NULL,
    workflow       TEXT NOT NULL,
    status         TEXT NOT NULL,
    status_since   TEXT NOT NULL,
    status_by      TEXT NOT NULL,
    is_final       INTEGER NOT NULL,
    -- How the task takes part in "what next": 1 waits to be done, 2 is blocked, 0 neither.
    queue          INTEGER NOT NULL,
    -- Unfinished children and dependencies; kept current so that "what next" is one walk along an index.
    unmet          INTEGER NOT NULL,
    blocked_reason TEXT,
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
    salt           TEXT NOT NULL,
    position       INTEGER NOT NULL,
    urgency        INTEGER GENERATED ALWAYS AS (
      CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END
    ) VIRTUAL
  ) STRICT;

  CREATE UNIQUE INDEX tasks_by_project ON tasks (project, sequence);
  CREATE INDEX tasks_by_parent ON tasks (parent_id) WHERE parent_id IS NOT NULL;
  CREATE INDEX tasks_by_update ON tasks (updated_at, id);
  CREATE INDEX tasks_next ON tasks (queue, (unmet > 0), urgency, id) WHERE queue > 0;
  CREATE INDEX tasks_next_in_project ON tasks (project, queue, (unmet > 0), urgency, id) WHERE queue > 0;

  CREATE TABLE task_labels (label TEXT NOT NULL, task_id INTEGER NOT NULL, PRIMARY KEY (label, task_id)) STRICT, WITHOUT ROWID;
  CREATE TABLE task_dependencies (
    task_id INTEGER NOT NULL, depends_on INTEGER NOT NULL, PRIMARY KEY (task_id, depends_on)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX task_dependents ON task_dependencies (depends_on);
  CREATE VIRTUAL TABLE task_words USING fts5 (title, description, tokenize = 'unicode61 remove_diacritics 2');

  CREATE TRIGGER tasks_inserted AFTER INSERT ON tasks BEGIN
    INSERT INTO task_words (rowid, title, description) VALUES (new.id, new.title, new.description);
    INSERT INTO task_labels (label, task_id) SELECT DISTINCT value, new.id FROM json_each(new.labels);
    INSERT INTO task_dependencies (task_id, depends_on) SELECT DISTINCT new.id, value FROM json_each(new.depends_on);
  END;
  CREATE TRIGGER tasks_reworded AFTER UPDATE OF title, description ON tasks BEGIN
    UPDATE task_words SET title = new.title, description = new.description WHERE rowid = new.id;
  END;
  CREATE TRIGGER tasks_relabelled AFTER UPDATE OF labels ON tasks BEGIN
    DELETE FROM task_labels WHERE task_id = new.id AND label IN (SELECT value FROM json_each(old.labels));
    INSERT INTO task_labels (label, task_id) SELECT DISTINCT value, new.id FROM json_each(new.labels);
  END;
  CREATE TRIGGER tasks_rewired AFTER UPDATE OF depends_on ON tasks BEGIN
    DELETE FROM task_dependencies WHERE task_id = new.id;
    INSERT INTO task_dependencies (task_id, depends_on) SELECT DISTINCT new.id, value FROM json_each(new.depends_on);
  END;
  CREATE TRIGGER tasks_no_delete BEFORE DELETE ON tasks BEGIN SELECT RAISE(ABORT, 'tasks are never deleted'); END;
  `,
  // 3: thoughts and sessions.
  `
  CREATE TABLE thoughts (
    id             INTEGER PRIMARY KEY,
    task_id        INTEGER NOT NULL REFERENCES tasks (id),
    session_id     INTEGER,
    type           TEXT NOT NULL,
    content        TEXT NOT NULL,
    previous_hash  TEXT,
    hash           TEXT NOT NULL,
    chain_position INTEGER NOT NULL,
    recorded_at    TEXT NOT NULL,
    recorded_by    TEXT NOT NULL,
    branch         TEXT,
    commit_sha     TEXT,
    -- Which of branch and commit_sha the server read from the repository itself, as a JSON array of their names.
    observed       TEXT NOT NULL,
    tests_run      TEXT NOT NULL,
    blockers       TEXT NOT NULL,
    metadata       TEXT,
    salt           TEXT NOT NULL,
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
    reason         TEXT,
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
    salt           TEXT NOT NULL,
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
    salt       TEXT NOT NULL,
    position   INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX session_records_in_order ON session_records (session_id, id);
  CREATE TRIGGER session_records_no_update BEFORE UPDATE ON session_records BEGIN
    SELECT RAISE(ABORT, 'session_records is append-only');
  END;
  CREATE TRIGGER session_records_no_delete BEFORE DELETE ON session_records BEGIN
    SELECT RAISE(ABORT, 'session_records is append-only');
  END;
  `,

  // 4: "what next" is answered from its index alone.
  `
  -- Spelled out instead of "urgency": SQLite never takes a virtual column from an index. With every column of the answer
  -- in here, twenty tasks come from three neighbouring pages instead of twenty scattered ones.
  DROP INDEX tasks_next;
  DROP INDEX tasks_next_in_project;
  CREATE INDEX tasks_next ON tasks (
    queue, (unmet > 0),
    (CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END),
    id, title, priority, assignee, estimate_hours, parent_id, unmet
  ) WHERE queue > 0;
  CREATE INDEX tasks_next_in_project ON tasks (
    project, queue, (unmet > 0),
    (CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END),
    id, title, priority, assignee, estimate_hours, parent_id, unmet
  ) WHERE queue > 0;
  `,
];
