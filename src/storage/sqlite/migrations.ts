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

  -- A seat belt against accidents. Whoever holds the file can drop it; the hashes are the proof.
  CREATE TRIGGER actions_no_update BEFORE UPDATE ON actions BEGIN SELECT RAISE(ABORT, 'actions is append-only'); END;
  CREATE TRIGGER actions_no_delete BEFORE DELETE ON actions BEGIN SELECT RAISE(ABORT, 'actions is append-only'); END;
  `,
];
