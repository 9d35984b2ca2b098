"""Checks the rows of a Colibri bundle without Colibri's code: python3 verify-bundle.py BUNDLE [--key KEY]

The bundle is a folder or a zip. The five files colibri_*.py must be in the same folder as this
file. The key that the log is named after is believed; with --key, only what that verifier key vouches for.
Left to `colibri verify`: what the anchors say, and whether anybody else has them.

It prints a line for each thing that is wrong, then a summary. Exit 0: sound. 1: something is wrong. 2: usage.
"""

import base64
import pathlib
import re
import sys
import zipfile

sys.dont_write_bytecode = True  # Leaves nothing behind.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from colibri_formats import Tree, is_hex, read_base64, read_canonical, root_by_proof, sha256
from colibri_heads import Head
from colibri_rows import ZEROS, LogCheck, StoredRow, main
from colibri_tools import TABLES, record_id

REQUIRED = {
    "log.jsonl", "payloads.jsonl", "texts.jsonl", "state.jsonl", "bundle.json", "keys", "README.txt",
    "SHA256SUMS",
}

PARTS = ["verify-bundle", "colibri_rows", "colibri_form", "colibri_heads", "colibri_tools", "colibri_formats"]
OPTIONAL = {"verify.html", *(f"scripts/{part}.py" for part in PARTS)}


def read_folder(path):
    """The files of a folder by name."""
    files = [file for file in path.rglob("*") if not file.is_dir()]
    return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}


def read_zip(path):
    """The files of a zip by name; none is there twice, and nothing lies before, between or behind them."""
    with zipfile.ZipFile(path) as opened:
        entries = opened.infolist()
        size = 22 + sum(30 + 46 + 2 * len(entry.filename) + entry.compress_size for entry in entries)
        if len(set(opened.namelist())) != len(entries) or size != path.stat().st_size:
            raise ValueError("the zip holds more than its files; unpack it and check the folder")
        return {entry.filename: opened.read(entry) for entry in entries}


class BundleSource:
    """Reads a log from the files of a bundle."""

    def __init__(self, files):
        self.files, self.faults = files, []
        self.marker = self.read_marker()
        self.origin = self.marker["origin"]
        self.keys = {line.split("+")[1]: line for line in self.lines("keys")}
        self.heads = list(self.signed_heads("heads/()([0-9a-f]{8})"))
        self.checkpoints = list(self.signed_heads("checkpoints/([1-9][0-9]{0,14})-([0-9a-f]{8})"))
        self.payloads = self.objects("payloads.jsonl", position=int, body=str, salt=str)
        self.texts = self.objects("texts.jsonl", id=int, digest=str, salt=str, text=str)
        self.row_texts = dict(enumerate(self.lines("log.jsonl"), 1))

    def file_text(self, name):
        """A file as text, empty where it is absent. Bytes that are no UTF-8 are kept as such."""
        return self.files.get(name, b"").decode("utf-8", "surrogateescape")

    def lines(self, name):
        """The lines of a file, each of which must end."""
        lines = self.file_text(name).split("\n")
        if lines.pop() != "":
            self.faults.append((name, "its last line does not end"))
        return lines

    def objects(self, name, **members):
        """The lines of a file as objects with exactly these members, by the first of them, which grows."""
        found, first, last = {}, next(iter(members)), None
        for number, line in enumerate(self.lines(name), 1):
            value = read_canonical(line) or {}
            has_form = {member: type(part) for member, part in value.items()} == members
            if not has_form or (last is not None and value[first] <= last):
                self.faults.append((name, f"line {number} is not as it must be, or not in its place"))
            else:
                found[value[first]], last = value, value[first]
        return found

    def read_marker(self):
        """The marker says what the bundle is about, in values of a fixed form."""
        text = self.file_text("bundle.json")
        marker = (read_canonical(text[:-1]) if text.endswith("\n") else None) or {}
        self.shared = marker.get("shared") is True
        marker.pop("shared" if self.shared else None, None)
        names = {"kind", "version", "origin", "size", "root"}
        has_form = set(marker) == names and (marker["kind"], marker["version"]) == ("colibri-bundle", 4)
        if not has_form or not re.fullmatch("colibri/[0-9a-f]{32}|None", str(marker["origin"])):
            raise ValueError("bundle.json is missing, or is not the marker of a bundle of this version")
        return marker

    def signed_heads(self, pattern):
        """The signed notes whose file names have this form: a size perhaps, and the id of the key."""
        for name in sorted(self.files):
            found = re.fullmatch(pattern, name)
            if found and found[2] in self.keys:
                beside = {"size": int(found[1])} if found[1] else {}
                yield Head(name, self.keys[found[2]], self.file_text(name), **beside)

    def rows(self):
        """Every audit row with the payload beside it."""
        for position, text in self.row_texts.items():
            found = self.payloads.get(position)
            yield StoredRow(position, text, None, None, found and (found["salt"], found["body"]))

    def text(self, number):
        """(digest, salt, text) of the text with this id, or None."""
        found = self.texts.get(number)
        return found and (found["digest"], found["salt"], found["text"])

    def text_ids(self):
        """The id of every text."""
        return self.texts

    def state(self):
        """Every row of state, by table and id."""
        last = (0, 0)
        for line in self.lines("state.jsonl"):
            row = read_canonical(line)
            place = (list(TABLES).index(row["table"]), row["id"])
            if place <= last:
                self.faults.append(("state.jsonl", f"a row is there twice, or misplaced: {place}"))
            last = place
            yield row["table"], line


class BundleCheck(LogCheck):
    """The rules of the log, and those of a bundle."""

    def run(self):
        """First the log, then the files around it."""
        super().run()
        heads = [*self.source.heads, *self.source.checkpoints]
        self.belonging = REQUIRED | {head.where for head in heads}
        self.check_marker()
        if sorted({head.key for head in heads}) != sorted(self.source.lines("keys")):
            self.finding("keys", "they are not the keys that signed something here")
        self.check_newest()
        self.check_seals()
        for position in set(self.source.payloads) - set(self.source.row_texts):
            self.finding(f"#{position}", "a payload of a row that is not there")
        self.check_files()
        for name, what in self.source.faults:
            self.finding(name, what)

    def check_marker(self):
        """The marker gives the number of rows and the root of the log."""
        marker = self.source.marker
        if (self.size, self.tree.root()) != (marker["size"], marker["root"]):
            self.finding("bundle.json", "it is about another log than the one that is here")

    def check_newest(self):
        """The file `checkpoint` is the newest of the heads once more."""
        newest = [head.note for head in self.source.heads if head.size == self.newest_head().size]
        self.belonging |= {"checkpoint"} if newest else set()
        if newest and self.source.file_text("checkpoint") not in newest:
            self.finding("checkpoint", "it is not the newest of the heads")

    def check_seals(self):
        """Beside each sealed session lie its records, whose tree has the root of the seal, and a proof."""
        state = {table: [] for table in TABLES}
        for table, text in self.source.state():
            state[table].append(read_canonical(text))
        thoughts = {thought["id"]: thought["hash"] for thought in state["thoughts"]}
        for session in [row for row in state["sessions"] if row["status"] == "finalized"]:
            only, name = session["sealed_task_id"], record_id("sessions", session["id"])
            records = [row for row in state["session_records"] if row["session_id"] == session["id"]]
            leaves = [self.leaf(row, thoughts) for row in records if only in (None, row["task_id"])]
            tree = Tree(leaves)
            seal = {"leaf_count": tree.size, "merkle_root": tree.root(), "tree_depth": tree.depth()}
            if {**session, **seal} != session:
                self.finding(name, "its records do not give its seal")
            self.belonging.add(f"seals/{name}")
            if self.source.lines(f"seals/{name}") != leaves:
                self.finding(f"seals/{name}", "it is not what the records of the session give")
            if self.newest_head() and session["position"] <= self.newest_head().size:
                self.check_proof(name, session["position"])

    def leaf(self, record, thoughts):
        """The hash of a record: that of a thought, or of the audit row of a change."""
        if record["kind"] == "change":
            return sha256(self.source.row_texts.get(record["ref"], ""))
        return thoughts.get(record["ref"], ZEROS)

    def check_proof(self, name, position):
        """A proof leads from the audit row, which it carries, to the root of the newest head."""
        file_name, newest = f"proofs/{name}.tlog-proof", self.newest_head()
        notes = [head.note for head in self.source.heads if head.size == newest.size]
        text = self.source.row_texts.get(position, "")
        self.belonging.add(file_name)
        extra = base64.b64encode(text.encode("utf-8", "surrogateescape")).decode()
        start = f"c2sp.org/tlog-proof@v1\nextra {extra}\nindex {position - 1}\n"
        proof, _, note = self.source.file_text(file_name).partition("\n\n")
        hashes = [read_base64(line).hex() for line in f"{proof}\n"[len(start):].split("\n")[:-1]]
        has_form = f"{proof}\n".startswith(start) and note in notes and all(map(is_hex, hashes))
        leaf = Tree([sha256(text)]).root()
        if not has_form or root_by_proof(position - 1, newest.size, leaf, hashes) != newest.root:
            self.finding(file_name, f"it does not prove that #{position} is in the log that was signed")

    def check_files(self):
        """Exactly the files that belong here are here, anchors are named after their hash, sums are right."""
        sums = {name: sha256(self.source.files[name]) for name in sorted(self.source.files)}
        anchors = {f"anchors/{digest}.{kind}" for digest in sums.values() for kind in ("commit", "tsr")}
        self.belonging |= anchors & set(sums)
        for name in sorted(self.belonging.symmetric_difference(sums) - OPTIONAL):
            self.finding(name, "it is missing" if name in self.belonging else "it does not belong here")
        text = "".join(f"{digest}  {name}\n" for name, digest in sums.items() if name != "SHA256SUMS")
        if self.source.file_text("SHA256SUMS") != text:
            self.finding("SHA256SUMS", "it is not the list of these files and their sums")
        for name in sorted(set(sums) & OPTIONAL - {"verify.html"}):
            here = pathlib.Path(__file__).with_name(name.removeprefix("scripts/"))
            if sums[name] != sha256(here.read_bytes()):
                why = "it is of another version, or was changed"
                self.remarks.append(f"{name} is not the script that runs here: {why}")


def open_check(path, key):
    """Opens a folder or a zip."""
    return BundleCheck(BundleSource(read_folder(path) if path.is_dir() else read_zip(path)), key)


if __name__ == "__main__":
    sys.exit(main(__doc__, open_check))
