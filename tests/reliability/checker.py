#!/usr/bin/env python3
"""The second reader: judges a database by the documents alone.

It shares no code with the server: docs/verify-database.py judges the rows, with another SQLite in another language.
What is added here are the tables and columns that are derived from the rows, and the calls that a client was told of.

Reads one job a line from stdin, a JSON object:

    {"db": path, "acked": [call, ...], "settled": bool}

and answers each with one line: {"findings": [...], "rows": n, "lost": n, ...}. "acked" are the calls whose answer
the client has read: {"tool", "data"} for a success, {"tool", "code"} for a refusal. "settled" says that a server
has started since, so that no call may be left open. The files are copied first; the originals are not touched.
"""

import collections
import json
import os
import pathlib
import runpy
import shutil
import sqlite3
import sys
import tempfile

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
sys.dont_write_bytecode = True
sys.path.insert(0, str(DOCS))

from colibri_formats import Tree, canonical  # noqa: E402
from colibri_tools import TRANSITIONS, WRITING_TOOLS  # noqa: E402

VERIFIER = runpy.run_path(str(DOCS / "verify-database.py"), run_name="verify_database")
BLOCK_ROWS = 256


def text_of(column):
    """The text that a column of a task names, in SQL."""
    return (f"SELECT text FROM texts WHERE texts.id BETWEEN 8 * {column}_call AND 8 * {column}_call + 7 "
            f"AND digest = {column}")


class DerivedCheck(VERIFIER["DatabaseCheck"]):
    """Judges the rows, and what is derived from them."""

    def __init__(self, db):
        super().__init__(VERIFIER["DatabaseSource"](db), None)
        self.db = db
        self.block, self.blocks, self.task_calls = Tree(), [], []

    def run(self):
        """First the rows."""
        super().run()
        self.check_tasks()
        self.check_words()
        self.check_tables()

    def check_time(self, where, row):
        """Remembers the root of each full block of rows."""
        super().check_time(where, row)
        self.block.add(self.row_hash)
        if self.block.size == BLOCK_ROWS:
            self.blocks.append(self.block.root())
            self.block = Tree()

    def check_effects(self, where, row, args, answer):
        """Remembers writing calls by the task that they name, or that task_create made."""
        super().check_effects(where, row, args, answer)
        if row["tool"] in WRITING_TOOLS and row["schema_valid"]:
            made = row["tool"] == "task_create" and row["outcome"] == "ok"
            name = answer.get("result", {}).get("task_id") if made else args.get("task_id")
            if isinstance(name, str) and name.startswith("T-") and name[2:].isdecimal():
                self.task_calls.append((int(name[2:]), row["position"]))

    def check_tasks(self):
        """Counters of a task: is it final, does it wait to be done, and how many tasks does it wait for."""
        tasks = self.db.execute(
            "SELECT id, workflow, status, parent_id, depends_on, is_final, queue, unmet FROM tasks").fetchall()
        unfinished, children = set(), {}
        for number, workflow, status, parent, *_ in tasks:
            if TRANSITIONS.get(workflow, {}).get(status) != []:
                unfinished.add(number)
                children.setdefault(parent, set()).add(number)
        for number, _, status, _, depends_on, *found in tasks:
            waits_for = children.get(number, set()) | (set(json.loads(depends_on)) & unfinished)
            queue = {"blocked": 2, "todo": 1, "INIT": 1}.get(status, 0)
            if found != [int(number not in unfinished), queue, len(waits_for)]:
                self.finding(f"T-{number:04d}", "is_final, queue or unmet is not what its tasks give")

    def check_words(self):
        """The index for search holds the words of each title and description, and no others. The newest tasks may wait."""
        indexed, = self.db.execute("SELECT coalesce(max(rowid), 0) FROM main.task_words").fetchone()
        waiting, = self.db.execute("SELECT count(*) FROM main.tasks WHERE id > ?", (indexed,)).fetchone()
        if waiting >= 128:
            self.finding("task_words", "too many tasks wait for the index for search")
        self.db.execute("CREATE VIRTUAL TABLE temp.words USING fts5 "
                        "(title, description, tokenize = 'unicode61 remove_diacritics 2')")
        self.db.execute(
            "INSERT INTO temp.words (rowid, title, description) SELECT id, "
            f"coalesce(({text_of('title')}), ''), coalesce(({text_of('description')}), '') FROM main.tasks "
            "WHERE id <= ?", (indexed,))
        self.db.execute("CREATE VIRTUAL TABLE temp.due USING fts5vocab (temp, words, instance)")
        self.db.execute("CREATE VIRTUAL TABLE temp.found USING fts5vocab (main, task_words, instance)")
        rows = "SELECT rowid, title, description FROM"
        for due, found in (("temp.due", "temp.found"), (f"({rows} temp.words)", f"({rows} main.task_words)")):
            for one, other in ((due, found), (found, due)):
                if self.db.execute(f"SELECT * FROM {one} EXCEPT SELECT * FROM {other} LIMIT 1").fetchone():
                    self.finding("task_words", "the index for search is not that of the tasks")
                    return

    def check_tables(self):
        """Tables that are worked out from others hold what these give."""
        labels, dependencies = set(), set()
        for number, texts, depends_on in self.db.execute("SELECT id, labels, depends_on FROM tasks"):
            labels.update((label, number) for label in json.loads(texts))
            dependencies.update((number, other) for other in json.loads(depends_on))
        still_open = [row for row, _ in self.open_calls.values()]
        still_open = [row for row in still_open if row["tool"] in WRITING_TOOLS and row["schema_valid"]]
        self.compare("task_labels (label, task_id)", labels)
        self.compare("task_dependencies (task_id, depends_on)", dependencies)
        self.compare("open_calls (position, process)", {(row["position"], row["process"]) for row in still_open})
        self.compare("processes (process, actor, last_seen)", {(*key, at) for key, at in self.last_seen.items()})
        self.compare("task_calls (task_id, position)", set(self.task_calls))
        self.compare("log_blocks (block, hash)", set(enumerate(self.blocks)))

    def compare(self, table, due):
        """A table holds these rows and no others."""
        name, columns = table.rstrip(")").split(" (")
        found = set(self.db.execute(f"SELECT {columns} FROM {name}"))
        for row in sorted(due - found, key=str):
            self.finding(name, f"{row} is missing")
        for row in sorted(found - due, key=str):
            self.finding(name, f"{row} should not be there")


class ToldCheck(DerivedCheck):
    """Judges the database, and remembers what every call answered."""

    def __init__(self, db):
        super().__init__(db)
        self.answers, self.outcomes = collections.Counter(), collections.Counter()

    def check_effects(self, where, row, args, answer):
        """An answer is known by its tool and its very text, a refusal by its code."""
        super().check_effects(where, row, args, answer)
        told = canonical(answer["result"]) if "result" in answer else row["error_code"]
        self.answers[row["tool"], told] += 1
        self.outcomes[row["outcome"]] += 1
        self.outcomes["written"] += row["outcome"] == "ok" and row["tool"] in WRITING_TOOLS

    def lost(self, acked):
        """Acked calls that the log knows nothing of. Each answer is found only once."""
        lost = []
        for call in acked:
            key = call["tool"], canonical(call["data"]) if "data" in call else call["code"]
            if self.answers[key] == 0:
                lost.append(call)
            self.answers[key] -= 1
        return lost


def judge(job):
    """Copies the files and judges the copy, which SQLite may repair from its WAL."""
    acked = job.get("acked", [])
    with tempfile.TemporaryDirectory(prefix="colibri-checker-") as folder:
        path = os.path.join(folder, "copy.db")
        # -shm is left behind on purpose: what is only there is not on the disk.
        for end in ("", "-wal", "-journal"):
            if os.path.exists(job["db"] + end):
                shutil.copyfile(job["db"] + end, path + end)
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            return verdict(["there is no database"] if acked else [], lost=len(acked))
        db = sqlite3.connect(path, isolation_level=None)
        db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        try:
            return judge_open(db, acked, job.get("settled", False))
        except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
            return verdict([f"it cannot be read: {error!r}"], lost=len(acked))
        finally:
            db.close()


def verdict(findings, **facts):
    """What is said of a file, with zeros where nothing is known."""
    return {"findings": findings, "rows": 0, "version": 0, "lost": 0, "open": 0, "crashed": 0, "ok": 0, **facts}


def judge_open(db, acked, settled):
    """The file, then the calls that the client was told of."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    objects = [name for name, in db.execute("SELECT name FROM sqlite_schema ORDER BY name")]
    if "actions" not in objects:
        return verdict([], version=version, objects=objects, lost=len(acked))
    check = ToldCheck(db)
    check.run()
    findings = list(check.findings)
    if settled and check.open_calls:
        findings.append(f"calls {sorted(check.open_calls)} are still unexplained after a start")
    lost = check.lost(acked)
    findings += [f"acked and lost: {json.dumps(call)[:200]}" for call in lost[:5]]
    return verdict(
        findings,
        rows=check.size,
        version=version,
        objects=objects,
        lost=len(lost),
        open=len(check.open_calls),
        crashed=check.outcomes["crashed"],
        ok=check.outcomes["written"],
        head=[check.chain_hash] if check.size else None,
    )


def main():
    """One job a line, one verdict a line."""
    for line in sys.stdin:
        print(json.dumps(judge(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
