"""Checks the rows of a Colibri database without Colibri's code: python3 verify-database.py FILE [--key KEY]

The five files colibri_*.py must be in the same folder as this file. With --key only what that
verifier key vouches for counts. Needs Python 3.9 with SQLite 3.37 or newer. Changes nothing.
Left to `colibri verify`: the text of the schema, and what is derived from rows (counters, indexes, search).

It prints a line for each thing that is wrong, then a summary. Exit 0: sound. 1: something is wrong. 2: usage.
"""

import pathlib
import sqlite3
import sys

sys.dont_write_bytecode = True  # Leaves nothing behind.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from colibri_formats import canonical
from colibri_heads import Head
from colibri_rows import LogCheck, StoredRow, main
from colibri_tools import TABLES

SCHEMA_VERSION = 7
DERIVED_COLUMNS = {"is_final", "queue", "unmet", "urgency"}


class DatabaseSource:
    """Reads a log from the tables of a database."""

    def __init__(self, db):
        self.db = db
        self.origin = next((origin for origin, in db.execute("SELECT origin FROM log")), None)
        self.heads = [
            Head(f"log_heads {key}", key, note, size=size, chain_hash=chain_hash, at=at, frontier=frontier)
            for key, size, chain_hash, at, frontier, note in db.execute(
                "SELECT key, size, chain_hash, at, frontier, checkpoint FROM log_heads ORDER BY key")
        ]
        self.checkpoints = [
            Head(f"checkpoints {size} {key}", key, note, size=size)
            for size, key, note in db.execute("SELECT size, key, note FROM checkpoints ORDER BY size, key")
        ]

    def rows(self):
        """Every audit row with the payload beside it."""
        for position, text, content, chain, salt, body in self.db.execute(
            "SELECT a.position, a.text, a.content, a.chain, p.salt, p.body FROM actions a "
            "LEFT JOIN action_payloads p ON p.position = a.position ORDER BY a.position"
        ):
            payload = None if salt is None else (salt, body)
            yield StoredRow(position, text, hex_of(content), hex_of(chain), payload)

    def text(self, number):
        """(digest, salt, text) of the text with this id, or None."""
        return self.db.execute("SELECT digest, salt, text FROM texts WHERE id = ?", (number,)).fetchone()

    def text_ids(self):
        """The id of every text."""
        return (number for number, in self.db.execute("SELECT id FROM texts"))

    def state(self):
        """Every row of state, as the text that is hashed."""
        for table in TABLES:
            found = self.db.execute(f"SELECT * FROM {table} ORDER BY id")
            names = [column[0] for column in found.description]
            for values in found:
                row = {name: value for name, value in zip(names, values) if name not in DERIVED_COLUMNS}
                yield table, canonical({**row, "table": table})


def hex_of(cell):
    """A stored hash in hex; what is not bytes is the hash of nothing."""
    return cell.hex() if isinstance(cell, bytes) else ""


class DatabaseCheck(LogCheck):
    """The rules of the log, and those of a file."""

    def run(self):
        """First the file, then the log."""
        self.check_file()
        super().run()
        self.check_payload_rows()

    def check_file(self):
        """SQLite finds the file sound, and it has the version that this script knows."""
        for problem, in self.source.db.execute("PRAGMA integrity_check"):
            if problem != "ok":
                self.finding("the file", problem)
        if self.source.db.execute("PRAGMA user_version").fetchone() != (SCHEMA_VERSION,):
            self.finding("the file", f"its schema is not of version {SCHEMA_VERSION}")

    def check_payload_rows(self):
        """No payload lies beside a row that is not there."""
        for position, in self.source.db.execute(
            "SELECT position FROM action_payloads WHERE position NOT IN (SELECT position FROM actions)"
        ):
            self.finding(f"#{position}", "a payload of a row that is not there")


def open_check(path, key):
    """Opens the file for reading only, and looks at one moment of it."""
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
    db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    db.execute("BEGIN")
    return DatabaseCheck(DatabaseSource(db), key)


if __name__ == "__main__":
    sys.exit(main(__doc__, open_check))
