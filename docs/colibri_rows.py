"""The rules that the rows of a Colibri log keep, one function each.

verify-database.py and verify-bundle.py read a log and hand it to LogCheck. It is sound if there are no
findings; one cause may lead to several. Left to `colibri verify`: running every call again, column by column.
"""

import argparse
import collections
import datetime
import json
import pathlib
import sys

from colibri_form import LastSeen, form_faults, read_row
from colibri_formats import Key, Tree, is_hex, read_canonical, read_time, salted_digest, sha256, show
from colibri_heads import HeadRules
from colibri_tools import TABLES, WRITING_TOOLS, ToolRules, record_id, text_id

READING_TOOLS = {
    "task_get", "task_list", "task_next_actions", "thought_record_list", "audit_verify_chain",
    "merkle_root", "skill_list", "server_ping", "server_health",
}

# An audit row as it lies there. The hashes beside it may be absent (None); `payload` is (salt, body) or None.
StoredRow = collections.namedtuple("StoredRow", "position text content_hash chain_hash payload")


ZEROS = "0" * 64
DAY = datetime.timedelta(days=1)


class LogCheck(ToolRules, HeadRules):
    """Walks a log once, from the first row to the last, and collects what breaks a rule."""

    def __init__(self, source, trusted_key=None):
        self.source, self.trusted_key = source, trusted_key
        self.findings, self.remarks = [], []
        # Along the rows. `roots` is for the signatures: what the log was like at each size that was signed.
        self.size, self.chain_hash, self.tree, self.roots = 0, ZEROS, Tree(), {}
        self.row_hash, self.last_row = None, None
        self.last_seen = LastSeen()
        self.open_calls = {}  # The enter row and the arguments of each, by position.
        # What the calls left: the last effect on each row of state, and what its columns must hold.
        self.written, self.due, self.count = {}, {}, dict.fromkeys(TABLES, 0)
        self.tasks, self.sessions, self.sealed_thoughts = {}, {}, set()
        # Ids of texts that calls name, texts that are absent or that the owner erased, and what carried each.
        self.named, self.missing, self.erased, self.carriers = {}, {}, {}, {}
        # (position, tool, arguments) of calls that vouch for a key, adopt the log or let a key join.
        self.key_acts, self.vouched = [], 0

    def finding(self, where, what):
        """Something is wrong; `where` names the record."""
        self.findings.append(f"{show(where)}: {show(what)}")

    def run(self):
        """Every rule, over everything there is."""
        self.open_heads()
        for stored in self.source.rows():
            self.check_row(stored)
        now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
        if self.last_row and read_time(self.last_row["at"]) - now > DAY:
            self.finding(f"#{self.last_row['position']}", "its time is more than a day ahead of the clock")
        self.check_state()
        self.check_texts()
        self.check_signatures()

    def summary(self):
        """What was looked at, in one line."""
        return f"{self.size} audit rows, root {self.tree.root()}, signed through {self.vouched}"

    # -- One row after the other --

    def check_row(self, stored):
        """A row has its place, hashes and form; then what it says is held against what came before."""
        where, self.row_hash = f"#{stored.position}", sha256(stored.text)
        self.size += 1
        self.check_links(where, stored)
        row = read_row(stored.text)
        faults = form_faults(row, stored.position)
        if faults:
            self.finding(where, f"the form of the row is wrong: {', '.join(faults)}")
            return
        self.follow_heads(where, row)
        self.check_time(where, row)
        if self.size in self.roots:
            self.roots[self.size] = {
                "size": self.size, "root": self.tree.root(), "frontier": "".join(self.tree.peaks),
                "chain_hash": self.chain_hash, "at": row["at"],
            }
        self.last_seen.note(row)
        if row["stage"] == "enter":
            self.open_calls[row["position"]] = (row, self.check_arguments(where, row, stored.payload))
        else:
            args = self.check_pair(where, row)
            self.check_effects(where, row, args, self.check_answer(where, row, stored.payload))

    def check_links(self, where, stored):
        """Positions count 1, 2, 3 ...; a row's hash is that of its text, and is chained to the row before."""
        self.chain_hash = sha256(self.row_hash + self.chain_hash)
        self.tree.add(self.row_hash)
        if stored.position != self.size:
            self.finding(where, f"row {self.size} was due here")
        if stored.content_hash not in (None, self.row_hash):
            self.finding(where, "content_hash is not the hash of the row")
        if stored.chain_hash not in (None, self.chain_hash):
            self.finding(where, "chain_hash does not follow from the row before")

    def check_time(self, where, row):
        """No time is earlier than the one before; if it is by more than a day, the one before was wrong."""
        before, self.last_row = self.last_row, row
        if before and read_time(before["at"]) - read_time(row["at"]) > DAY:
            self.finding(f"#{before['position']}", "its time is more than a day ahead of the row after it")
        elif before and row["at"] < before["at"]:
            self.finding(where, "its time is earlier than that of the row before")

    def check_pair(self, where, row):
        """An exit row ends one call that began before it, and repeats what the enter row says of the call."""
        enter, args = self.open_calls.pop(row["sequence_no"], (None, {}))
        if enter is None:
            self.finding(where, "it ends a call that did not begin, or has ended already")
            return args
        for name in ["tool", "actor", "source", "correlation_id", "rules", "schema_valid", "process"]:
            if row[name] != enter[name] and (name, row["outcome"]) != ("process", "crashed"):
                self.finding(where, f"its {name} is not that of #{row['sequence_no']}")
        return args

    # -- Payloads and texts --

    def check_arguments(self, where, row, payload):
        """The arguments of a valid call lie beside its enter row; of an invalid one nothing does."""
        if not row["schema_valid"]:
            return self.no_payload(where, payload)
        args = self.open_payload(where, row["args_hash"], payload)
        given = [name for name in WRITING_TOOLS.get(row["tool"], []) if name in args]
        for number, name in enumerate(given):
            self.check_text(where, name, args[name], text_id(row["position"], number))
        return args

    def check_answer(self, where, row, payload):
        """The answer of a writing call lies beside its exit row; that of a reading call is only hashed."""
        if row["tool"] not in WRITING_TOOLS or not row["schema_valid"] or row["outcome"] == "crashed":
            if is_hex(row["result_hash"]) != (row["tool"] in READING_TOOLS and row["outcome"] == "ok"):
                self.finding(where, "result_hash does not fit the outcome")
            return self.no_payload(where, payload)
        body = self.open_payload(where, row["result_hash"], payload)
        kind = "result" if row["outcome"] == "ok" else "error"
        has_form = set(body) == {kind, "outside"} and all(isinstance(part, dict) for part in body.values())
        if has_form and kind == "error":
            due = {"code": row["error_code"], "message": str(body["error"].get("message"))}
            has_form = body["error"] == due
        if body and not has_form:
            self.finding(where, f"its payload is not the {kind} of this call, and what was seen outside")
        return body if has_form else {}

    def no_payload(self, where, payload):
        """Nothing lies beside such a row."""
        if payload is not None:
            self.finding(where, "it has a payload, but nothing is kept of such a row")
        return {}

    def open_payload(self, where, digest, payload):
        """The object in a payload whose salt has its fixed form and whose salted digest the row holds."""
        if payload is None:
            self.finding(where, "its payload is missing")
        elif not is_hex(payload[0], 32) or salted_digest(*payload) != digest:
            self.finding(where, "its payload is not the one that the row holds the digest of")
        elif read_canonical(payload[1]) is None:
            self.finding(where, "its payload is not canonical JSON")
        else:
            return read_canonical(payload[1])
        return {}

    def check_text(self, where, name, digest, number):
        """Each text is named by one argument alone, and its digest was made of it; or it is absent."""
        if not is_hex(digest) or digest in self.named:
            self.finding(where, f"{name} is not the digest of a text of its own")
            return
        self.named[digest] = number
        stored, *found = self.source.text(number) or (None,)
        if not found:
            self.missing[digest] = f"{where}: {name}"
        elif stored != digest or not is_hex(found[0], 32) or salted_digest(*found) != digest:
            self.finding(where, f"{name} is not the text that the digest was made of")

    def check_texts(self):
        """A text is absent only if the owner erased it. An erased text, or one of no call, is not there."""
        for digest, where in self.missing.items():
            if digest not in self.erased:
                self.finding(where, "the text is missing")
        there = {number for digest, number in self.named.items() if digest not in self.erased}
        for number in self.source.text_ids():
            if number not in there:
                self.finding("texts", f"the text {number} was erased, or no call names it")

    # -- What calls write --

    def check_effects(self, where, row, args, answer):
        """Only a writing call that went well has effects: those that its tool has, in their order."""
        due, tool, found = [], row["tool"], row["effects"]
        rule = getattr(self, tool, self.owner_act) if tool in WRITING_TOOLS else None
        if row["outcome"] == "ok" and rule:
            try:
                due = rule(where, row, args, answer)
            except (LookupError, TypeError, ValueError):
                self.finding(where, "it names something that does not exist")
        elif row["outcome"] == "ok" and tool not in READING_TOOLS:
            self.finding(where, "there is no tool of this name")
        sealed = [{"seal": None, **effect} for effect in found]
        if len(found) != len(due) or sealed != [{**one, **other} for one, other in zip(sealed, due)]:
            self.finding(where, "its effects are not those that this call has")
        wrote = found[0]["id"] if found and row["outcome"] == "ok" else None
        task = args.get("task_id", wrote if tool == "task_create" else None)
        carrier = {"position": row["sequence_no"], "tool": tool, "task": task, "wrote": wrote}
        for name in WRITING_TOOLS.get(tool, []):
            self.carriers[str(args.get(name))] = carrier
        for effect in found:
            call = {"position": row["position"], "at": row["at"], "actor": row["actor"]}
            self.written[effect["table"], effect["id"]] = {**effect, **call}

    # -- State --

    def check_state(self):
        """Each row of state is the one that the last effect on it names, and no effect is without its row."""
        for table, text in self.source.state():
            row = read_canonical(text)
            name = record_id(table, row["id"])
            effect = self.written.pop((table, name), None)
            if effect is None:
                self.finding(name, "no call wrote it")
            elif sha256(text) != effect["hash"]:
                self.finding(name, f"it is not as #{effect['position']} left it")
            else:
                self.check_columns(name, row, effect, self.due.get((table, name), {}))
                self.check_thought(name, row)
        for table, name in self.written:
            self.finding(name, "a call wrote it and it is gone")

    def check_columns(self, name, row, effect, due):
        """A row holds what the rules give; position, time and actor of its last call; and its seal."""
        due = {**due, "position": effect["position"]}
        due.update({column: effect["at"] for column in ("updated_at", "recorded_at") if column in row})
        due.update({column: effect["actor"] for column in ("updated_by", "recorded_by") if column in row})
        if row["table"] == "sessions":
            due.update(effect.get("seal", {"leaf_count": None, "merkle_root": None}))
            due["finalized_at"] = effect["at"] if "seal" in effect else None
        wrong = [column for column, value in due.items() if row[column] != value]
        if wrong:
            self.finding(name, f"#{effect['position']} gives other values: {', '.join(wrong)}")

    def check_thought(self, name, row):
        """The published formula: six fields in this order, as JSON. An erased text cannot be hashed."""
        found = self.source.text(text_id(row["call"], 0)) if row["table"] == "thoughts" else None
        if found is None:
            return
        fields = {"task_id": record_id("tasks", row["task_id"]), "type": row["type"], "content": found[2]}
        fields.update({column: row[column] for column in ("previous_hash", "recorded_at", "recorded_by")})
        if row["hash"] != sha256(json.dumps(fields, ensure_ascii=False, separators=(",", ":"))):
            self.finding(name, "its hash is not the one that its content gives")


def main(description, open_check):
    """Reads the command line, runs the check, prints findings and a summary. The answer is the exit code."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("file", type=pathlib.Path)
    options.add_argument("--key", type=Key, help="the verifier key you trust")
    given = options.parse_args()
    if not given.file.exists():
        options.error("there is no such file")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    check = None
    try:
        check = open_check(given.file, given.key and given.key.text)
        check.run()
    except Exception as error:  # What strangers wrote may break anything; whatever it breaks is a finding.
        if check is None:
            print(f"it cannot be read: {show(error)}")
            return 1
        check.finding("the rest", f"it cannot be read: {error!r}")
    for line in [*check.findings, *(f"note: {show(remark)}" for remark in check.remarks)]:
        print(line)
    count = len(check.findings)
    verdict = {0: "nothing is wrong", 1: "one thing is wrong"}.get(count, f"{count} things are wrong")
    print(f"{check.summary()}: {verdict}")
    return 1 if check.findings else 0
