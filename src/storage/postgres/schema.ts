import { SCHEMA_VERSION } from '../engine.ts';
import { LEXEME_CHARS_MAX } from './words.ts';

/** The schema that holds everything. Nothing else of the database is touched. */
export const NAMESPACE = 'colibri';

/** What the table `log` is marked with once everything was made. */
export const MARK = `colibri schema ${SCHEMA_VERSION}`;

const URGENCY = "CASE priority WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'normal' THEN 2 ELSE 3 END";

/** A trigger that refuses an action on a table. */
function refusing(table: string, action: 'update' | 'delete', sentence: string): string {
  return `CREATE TRIGGER ${table}_no_${action} BEFORE ${action.toUpperCase()} ON ${table}
    FOR EACH ROW EXECUTE FUNCTION colibri.refuse('${sentence}');
  ${action === 'delete' ? `CREATE TRIGGER ${table}_no_truncate BEFORE TRUNCATE ON ${table} EXECUTE FUNCTION colibri.refuse('${sentence}');` : ''}`;
}

/** An append-only table. */
function appendOnly(table: string): string {
  const sentence = `${table} is append-only`;
  return refusing(table, 'update', sentence) + refusing(table, 'delete', sentence);
}

const field = (name: string) => `colibri.said(text) ->> '${name}' AS ${name}`;
const number = (name: string) =>
  `CASE jsonb_typeof(colibri.said(text) -> '${name}') WHEN 'number' THEN CAST(colibri.said(text) ->> '${name}' AS NUMERIC) END AS ${name}`;

/**
 * The tables of storage/sqlite/schema.ts with the same columns, keys and guards, and nothing in them that the other does not
 * have but the words of tasks. Texts compare by their bytes, as they do there; docs/reference/database.md explains every column.
 */
export const SCHEMA = `
  CREATE FUNCTION colibri.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$;

  -- The text of a row as JSON; NULL where it is none.
  CREATE FUNCTION colibri.said(said text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
    BEGIN RETURN CAST(said AS jsonb); EXCEPTION WHEN others THEN RETURN NULL; END $$;

  -- The words of a task for the index, each once.
  CREATE FUNCTION colibri.lexemes(words text) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT array_to_tsvector(ARRAY(
      SELECT DISTINCT left(word, ${LEXEME_CHARS_MAX}) FROM unnest(string_to_array(translate(words, E'\\n', ' '), ' ')) AS word WHERE word <> ''
    )) $$;

  CREATE TABLE log (
    id     BIGINT PRIMARY KEY CHECK (id = 1),
    origin TEXT COLLATE "C" NOT NULL
  );

  CREATE TABLE actions (
    position BIGINT PRIMARY KEY,
    text     TEXT COLLATE "C" NOT NULL,
    content  BYTEA NOT NULL,
    chain    BYTEA NOT NULL
  );

  CREATE VIEW audit_rows AS SELECT
    position,
    text,
    encode(content, 'hex') AS content_hash,
    encode(chain, 'hex') AS chain_hash,
    ${number('sequence_no')},
    ${['stage', 'tool', 'actor', 'source', 'correlation_id', 'at'].map(field).join(', ')},
    ${number('rules')},
    CASE colibri.said(text) ->> 'schema_valid' WHEN 'true' THEN 1 WHEN 'false' THEN 0 END AS schema_valid,
    ${['args_hash', 'outcome', 'error_code'].map(field).join(', ')},
    ${number('duration_ms')},
    ${['result_hash', 'effects', 'process', 'repaired'].map(field).join(', ')}
  FROM actions;

  CREATE TABLE action_payloads (
    position BIGINT PRIMARY KEY,
    salt     TEXT COLLATE "C" NOT NULL,
    body     TEXT COLLATE "C" NOT NULL
  );

  CREATE TABLE texts (
    id     BIGINT PRIMARY KEY,
    digest TEXT COLLATE "C" NOT NULL,
    salt   TEXT COLLATE "C" NOT NULL,
    text   TEXT COLLATE "C" NOT NULL
  );
  -- What is erased must not stay in the statistics of the planner, which nobody can clear for good.
  ALTER TABLE texts ALTER COLUMN text SET STATISTICS 0;

  CREATE TABLE erased_texts (
    digest   TEXT COLLATE "C" PRIMARY KEY,
    task_id  BIGINT,
    position BIGINT NOT NULL
  );

  CREATE TABLE log_heads (
    key        TEXT COLLATE "C" PRIMARY KEY,
    size       BIGINT NOT NULL,
    chain_hash TEXT COLLATE "C" NOT NULL,
    at         TEXT COLLATE "C" NOT NULL,
    frontier   TEXT COLLATE "C" NOT NULL,
    checkpoint TEXT COLLATE "C" NOT NULL
  ) WITH (fillfactor = 50);

  CREATE TABLE checkpoints (
    size BIGINT NOT NULL,
    key  TEXT COLLATE "C" NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (size, key)
  );

  CREATE TABLE open_calls (
    position BIGINT PRIMARY KEY,
    process  TEXT COLLATE "C" NOT NULL
  );

  CREATE TABLE processes (
    process   TEXT COLLATE "C" NOT NULL,
    actor     TEXT COLLATE "C" NOT NULL,
    last_seen TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (process, actor)
  ) WITH (fillfactor = 50);

  CREATE TABLE task_calls (
    task_id  BIGINT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (task_id, position)
  );

  CREATE TABLE log_blocks (
    block BIGINT PRIMARY KEY,
    hash  TEXT COLLATE "C" NOT NULL
  );

  ${appendOnly('actions')}
  ${appendOnly('action_payloads')}
  ${refusing('texts', 'update', 'a text never changes')}
  ${appendOnly('erased_texts')}
  ${refusing('log', 'update', 'the name of a log never changes')}
  ${refusing('log', 'delete', 'the name of a log never changes')}

  CREATE TABLE tasks (
    id             BIGINT PRIMARY KEY,
    project        TEXT COLLATE "C" NOT NULL,
    sequence       BIGINT NOT NULL,
    title          TEXT COLLATE "C" NOT NULL,
    title_call     BIGINT NOT NULL,
    description    TEXT COLLATE "C",
    description_call BIGINT,
    blocked_reason TEXT COLLATE "C",
    blocked_reason_call BIGINT,
    workflow       TEXT COLLATE "C" NOT NULL,
    status         TEXT COLLATE "C" NOT NULL,
    status_since   TEXT COLLATE "C" NOT NULL,
    status_by      TEXT COLLATE "C" NOT NULL,
    held_by        TEXT COLLATE "C",
    held_process   TEXT COLLATE "C",
    held_since     TEXT COLLATE "C",
    progress       DOUBLE PRECISION NOT NULL,
    priority       TEXT COLLATE "C" NOT NULL,
    type           TEXT COLLATE "C",
    proof_grade    BIGINT NOT NULL,
    assignee       TEXT COLLATE "C" NOT NULL,
    labels         TEXT COLLATE "C" NOT NULL,
    estimate_hours DOUBLE PRECISION,
    parent_id      BIGINT REFERENCES tasks (id),
    depends_on     TEXT COLLATE "C" NOT NULL,
    created_at     TEXT COLLATE "C" NOT NULL,
    created_by     TEXT COLLATE "C" NOT NULL,
    updated_at     TEXT COLLATE "C" NOT NULL,
    updated_by     TEXT COLLATE "C" NOT NULL,
    position       BIGINT NOT NULL,
    unmet          BIGINT NOT NULL DEFAULT 0,
    is_final       BIGINT NOT NULL DEFAULT 0,
    queue          BIGINT NOT NULL DEFAULT 0,
    urgency        BIGINT GENERATED ALWAYS AS (${URGENCY}) STORED
  );

  CREATE UNIQUE INDEX tasks_by_project ON tasks (project, sequence);
  CREATE INDEX tasks_by_parent ON tasks (parent_id) WHERE parent_id IS NOT NULL;
  CREATE INDEX tasks_by_update ON tasks (updated_at, id);
  CREATE INDEX tasks_next ON tasks (queue, (unmet > 0), (${URGENCY}), id) WHERE queue > 0;
  CREATE INDEX tasks_next_in_project ON tasks (project, queue, (unmet > 0), (${URGENCY}), id) WHERE queue > 0;

  CREATE INDEX tasks_held ON tasks (held_by, held_process, id) WHERE held_by IS NOT NULL;
  CREATE INDEX tasks_waiting ON tasks (status, project, (unmet > 0), (${URGENCY}), id) WHERE status = 'backlog' OR status = 'review';

  CREATE TABLE task_labels (
    label TEXT COLLATE "C" NOT NULL, task_id BIGINT NOT NULL, PRIMARY KEY (label, task_id)
  );
  CREATE INDEX task_labels_by_task ON task_labels (task_id);
  CREATE TABLE task_dependencies (
    task_id BIGINT NOT NULL, depends_on BIGINT NOT NULL, PRIMARY KEY (task_id, depends_on)
  );
  CREATE INDEX task_dependents ON task_dependencies (depends_on);

  -- Derived: the words of each task, split by Colibri and not by PostgreSQL, which takes src/log/state.ts for one.
  CREATE TABLE task_words (
    task_id BIGINT PRIMARY KEY,
    words   TEXT COLLATE "C" NOT NULL,
    lexemes TSVECTOR GENERATED ALWAYS AS (colibri.lexemes(words)) STORED
  );
  ALTER TABLE task_words ALTER COLUMN words SET STATISTICS 0, ALTER COLUMN lexemes SET STATISTICS 0;
  CREATE INDEX task_lexemes ON task_words USING gin (lexemes) WITH (fastupdate = off);

  -- A text is deleted when the owner erases it, which is written down first; its words go with it.
  CREATE FUNCTION colibri.erase_text() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'TRUNCATE' OR NOT EXISTS (SELECT 1 FROM colibri.erased_texts WHERE digest = OLD.digest) THEN
        RAISE EXCEPTION 'only the owner erases a text';
      END IF;
      UPDATE colibri.task_words w SET words =
        CASE OLD.digest WHEN t.title THEN '' ELSE split_part(words, E'\\n', 1) END || E'\\n' ||
        CASE OLD.digest WHEN t.description THEN '' ELSE split_part(words, E'\\n', 2) END
      FROM colibri.tasks t, colibri.erased_texts e
      WHERE e.digest = OLD.digest AND t.id = e.task_id AND w.task_id = t.id AND OLD.digest IN (t.title, t.description);
      RETURN OLD;
    END $$;
  CREATE TRIGGER texts_no_delete BEFORE DELETE ON texts FOR EACH ROW EXECUTE FUNCTION colibri.erase_text();
  CREATE TRIGGER texts_no_truncate BEFORE TRUNCATE ON texts EXECUTE FUNCTION colibri.erase_text();

  CREATE FUNCTION colibri.list_task() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'INSERT' OR NEW.labels IS DISTINCT FROM OLD.labels THEN
        DELETE FROM colibri.task_labels WHERE task_id = NEW.id;
        INSERT INTO colibri.task_labels (label, task_id)
          SELECT DISTINCT value, NEW.id FROM jsonb_array_elements_text(CAST(NEW.labels AS jsonb));
      END IF;
      IF TG_OP = 'INSERT' OR NEW.depends_on IS DISTINCT FROM OLD.depends_on THEN
        DELETE FROM colibri.task_dependencies WHERE task_id = NEW.id;
        INSERT INTO colibri.task_dependencies (task_id, depends_on)
          SELECT DISTINCT NEW.id, CAST(value AS BIGINT) FROM jsonb_array_elements_text(CAST(NEW.depends_on AS jsonb));
      END IF;
      RETURN NULL;
    END $$;
  CREATE TRIGGER tasks_listed AFTER INSERT OR UPDATE OF labels, depends_on ON tasks
    FOR EACH ROW EXECUTE FUNCTION colibri.list_task();
  ${refusing('tasks', 'delete', 'tasks are never deleted')}

  CREATE TABLE thoughts (
    id             BIGINT PRIMARY KEY,
    task_id        BIGINT NOT NULL REFERENCES tasks (id),
    session_id     BIGINT,
    type           TEXT COLLATE "C" NOT NULL,
    content        TEXT COLLATE "C" NOT NULL,
    tests_run      TEXT COLLATE "C",
    blockers       TEXT COLLATE "C",
    metadata       TEXT COLLATE "C",
    call           BIGINT NOT NULL,
    previous_hash  TEXT COLLATE "C",
    hash           TEXT COLLATE "C" NOT NULL,
    chain_position BIGINT NOT NULL,
    recorded_at    TEXT COLLATE "C" NOT NULL,
    recorded_by    TEXT COLLATE "C" NOT NULL,
    branch         TEXT COLLATE "C",
    commit_sha     TEXT COLLATE "C",
    observed       TEXT COLLATE "C" NOT NULL,
    position       BIGINT NOT NULL
  );
  CREATE UNIQUE INDEX thoughts_by_task ON thoughts (task_id, chain_position);
  CREATE INDEX thoughts_by_session ON thoughts (session_id, id) WHERE session_id IS NOT NULL;
  ${appendOnly('thoughts')}

  CREATE TABLE sessions (
    id             BIGINT PRIMARY KEY,
    task_id        BIGINT NOT NULL REFERENCES tasks (id),
    auditor_id     TEXT COLLATE "C" NOT NULL,
    reason         TEXT COLLATE "C",
    call           BIGINT NOT NULL,
    scope          TEXT COLLATE "C" NOT NULL,
    status         TEXT COLLATE "C" NOT NULL,
    started_at     TEXT COLLATE "C" NOT NULL,
    started_by     TEXT COLLATE "C" NOT NULL,
    skills         TEXT COLLATE "C" NOT NULL,
    sealed_task_id BIGINT,
    merkle_root    TEXT COLLATE "C",
    tree_depth     BIGINT,
    leaf_count     BIGINT,
    finalized_at   TEXT COLLATE "C",
    finalized_by   TEXT COLLATE "C",
    position       BIGINT NOT NULL
  );
  CREATE UNIQUE INDEX sessions_open ON sessions (task_id) WHERE status = 'open';
  CREATE INDEX sessions_by_task ON sessions (task_id, status);
  ${refusing('sessions', 'delete', 'sessions are never deleted')}

  CREATE TABLE session_records (
    id         BIGINT PRIMARY KEY,
    session_id BIGINT NOT NULL REFERENCES sessions (id),
    task_id    BIGINT NOT NULL,
    kind       TEXT COLLATE "C" NOT NULL,
    ref        BIGINT NOT NULL,
    position   BIGINT NOT NULL
  );
  CREATE INDEX session_records_in_order ON session_records (session_id, id);
  CREATE INDEX session_records_by_ref ON session_records (ref, kind);
  ${appendOnly('session_records')}

  COMMENT ON TABLE log IS '${MARK}';
`;
