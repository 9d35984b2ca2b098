"""The rules that the rows of a Colibri log keep, one function each.

verify-database.py and verify-bundle.py read a log and hand it to LogCheck. It is sound if there are no
findings; one cause may lead to several. Left to `colibri verify`: running every call again, column by column.
"""

import argparse
import collections
import datetime
import json
import pathlib
import re
import sys

from colibri_formats import Key, Tree, is_count, is_hex, read_canonical, read_time, salted_digest, sha256
from colibri_formats import show
from colibri_tools import TABLES, WRITING_TOOLS, ToolRules, record_id

READING_TOOLS = {
    "task_get", "task_list", "task_next_actions", "thought_record_list", "audit_verify_chain",
    "merkle_root", "skill_list", "server_ping", "server_health",
}

# An audit row as it lies there. The hashes beside it may be absent (None); `payload` is (salt, body) or None.
StoredRow = collections.namedtuple("StoredRow", "position text content_hash chain_hash payload")


class Head:
    """A signed checkpoint, its key, and what lies beside it. The signer is known once the note was opened."""

    def __init__(self, where, key, note, **beside):
        self.where, self.key, self.note, self.beside = where, key, note, beside
        self.signer, self.size, self.root = None, 0, None


# ---- The form of an audit row ----
FIELDS = {
    "actor", "args_hash", "at", "correlation_id", "duration_ms", "effects", "error_code", "outcome",
    "position", "process", "repaired", "result_hash", "rules", "schema_valid", "sequence_no", "source",
    "stage", "tool",
}
CODES = {
    "error": [
        "HANDLER_ERROR", "AUDIT_ENTER_FAILED", "ERR_TASK_NOT_FOUND", "ERR_PROJECT_NOT_FOUND",
        "ERR_SESSION_NOT_FOUND", "ERR_NOT_FOUND", "ERR_INVALID_TRANSITION", "ERR_WRITEBACK_REQUIRED",
        "ERR_PROOF_REQUIRED", "ERR_CIRCULAR_DEPENDENCY", "ERR_SESSION_EXISTS", "ERR_SESSION_REQUIRED",
        "ERR_TASK_HELD", "ERR_ALREADY_FINALIZED", "ERR_NOT_FINALIZED", "ERR_NO_RECORDS",
        "ERR_STORAGE_FULL", "ERR_STORAGE_BUSY", "ERR_STORAGE_UNCERTAIN",
        "ERR_INIT_FAILED", "ERR_CONFIG_INVALID", "ERR_INVALID_MODE",
    ],
    "rejected": ["INVALID_PARAMS", "HANDLER_ERROR"],
    "denied": ["TOOL_NOT_ADMITTED"],
}
UUID_4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
ZEROS = "0" * 64
DAY = datetime.timedelta(days=1)


def form_faults(row, position):
    """The fields of an audit row that do not have the form they must have."""
    if row is None or set(row) != FIELDS:
        return ["the list of its fields"]
    enter, number, outcome = row["stage"] == "enter", row["sequence_no"], str(row["outcome"])
    outcomes = ["ok", "error", "denied", "crashed"] if row["schema_valid"] else ["rejected", "crashed"]
    untimed, repaired, effects = outcome in ("running", "crashed"), row["repaired"], row["effects"]
    holds = {
        "position": is_count(row["position"]) and row["position"] == position > 0,
        "sequence_no": is_count(number) and (number == position if enter else 0 < number < position),
        "stage": row["stage"] in ("enter", "exit"),
        "tool": is_text(row["tool"]) and 0 < len(row["tool"]) <= 64,
        "actor": is_text(row["actor"]) and row["actor"] != "",
        "process": is_text(row["process"]) and row["process"] != "",
        "source": row["source"] in ("mcp", "cli"),
        "correlation_id": re.fullmatch(UUID_4, str(row["correlation_id"])),
        "at": read_time(row["at"]),
        "rules": is_count(row["rules"]) and row["rules"] == 1,
        "schema_valid": isinstance(row["schema_valid"], bool),
        "outcome": row["outcome"] in (["running"] if enter else outcomes),
        "error_code": row["error_code"] in CODES.get(outcome, [None]),
        "args_hash": is_hex(row["args_hash"]) if enter else row["args_hash"] is None,
        "result_hash": row["result_hash"] is None or (is_hex(row["result_hash"]) and not enter),
        "repaired": isinstance(repaired, list) and (enter or not repaired) and all(map(is_text, repaired)),
        "effects": isinstance(effects, list) and not (enter and effects) and all(map(is_effect, effects)),
        "duration_ms": row["duration_ms"] is None if untimed else is_count(row["duration_ms"]),
    }
    return [name for name, fits in holds.items() if not fits]


def is_text(value):
    """A text, perhaps an empty one."""
    return isinstance(value, str)


def is_effect(effect):
    """Table, id, hash of the row of state, the position that wrote the row before, and perhaps a seal."""
    if not isinstance(effect, dict) or set(effect) - {"seal"} != {"table", "id", "hash", "previous"}:
        return False
    number = re.fullmatch(".-([0-9]{4,15})", str(effect["id"]))
    if str(effect["table"]) not in TABLES or not number or int(number[1]) == 0:
        return False
    seal = effect.get("seal", {"leaf_count": 1, "merkle_root": ZEROS})
    is_seal = isinstance(seal, dict) and set(seal) == {"leaf_count", "merkle_root"}
    is_seal = is_seal and is_count(seal["leaf_count"]) and is_hex(seal["merkle_root"])
    is_id = record_id(effect["table"], int(number[1])) == effect["id"]
    return is_id and is_seal and is_hex(effect["hash"]) and is_count(effect["previous"])


# ---- The rules ----
class LogCheck(ToolRules):
    """Walks a log once, from the first row to the last, and collects what breaks a rule."""

    def __init__(self, source, trusted_key=None):
        self.source, self.trusted_key = source, trusted_key
        self.findings, self.remarks = [], []
        # Along the rows. `roots` is for the signatures: what the log was like at each size that was signed.
        self.size, self.chain_hash, self.tree, self.roots = 0, ZEROS, Tree(), {}
        self.row_hash, self.last_row = None, None
        self.open_calls = {}  # The enter row and the arguments of each, by position.
        # What the calls left: the last effect on each row of state, and what its columns must hold.
        self.written, self.due, self.count = {}, {}, dict.fromkeys(TABLES, 0)
        self.tasks, self.sessions, self.sealed_thoughts = {}, {}, set()
        # Texts that calls name, texts that are absent, texts that the owner erased.
        self.named, self.missing, self.erased = set(), {}, {}
        # The owner's acts: (position, key) of each trusted key, (position, size) of each head given up.
        self.trusted, self.given_up, self.vouched = [], [], 0

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
        if self.source.whole:
            self.check_links(where, stored)
        row = read_canonical(stored.text)
        faults = form_faults(row, stored.position)
        if faults:
            self.finding(where, f"the form of the row is wrong: {', '.join(faults)}")
            return
        self.check_time(where, row)
        if self.source.whole and self.size in self.roots:
            self.roots[self.size] = {
                "size": self.size, "root": self.tree.root(), "frontier": "".join(self.tree.peaks),
                "chain_hash": self.chain_hash, "at": row["at"],
            }
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
        for name in WRITING_TOOLS.get(row["tool"], []):
            if name in args:
                self.check_text(where, name, args[name])
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

    def check_text(self, where, name, digest):
        """Each text is named by one argument alone, and its digest was made of it; or it is absent."""
        if not is_hex(digest) or digest in self.named:
            self.finding(where, f"{name} is not the digest of a text of its own")
            return
        self.named.add(digest)
        found = self.source.text(digest)
        if found is None:
            self.missing[digest] = f"{where}: {name}"
        elif not is_hex(found[0], 32) or salted_digest(*found) != digest:
            self.finding(where, f"{name} is not the text that the digest was made of")

    def check_texts(self):
        """A text is absent only if the owner erased it. An erased text, or one of no call, is not there."""
        for digest, where in self.missing.items():
            if digest in self.erased:
                self.remarks.append(f"{where} was erased by the owner in {self.erased[digest]}")
            else:
                self.finding(where, "the text is missing")
        for digest in self.source.text_digests():
            if digest in self.erased or digest not in self.named:
                self.finding("texts", f"the text {digest} was erased, or no call names it")

    # -- What calls write --

    def check_effects(self, where, row, args, answer):
        """Only a writing call that went well has effects: those that its tool has, in their order."""
        due, tool, found = [], row["tool"], row["effects"]
        rule = getattr(self, tool, self.owner_act) if tool in WRITING_TOOLS else None
        if row["outcome"] == "ok" and rule and (self.source.whole or rule == self.owner_act):
            try:
                due = rule(where, row, args, answer)
            except (LookupError, TypeError, ValueError):
                self.finding(where, "it speaks of something that does not exist")
        elif row["outcome"] == "ok" and rule:
            due = found  # In part of a log, nobody can tell.
        elif row["outcome"] == "ok" and tool not in READING_TOOLS:
            self.finding(where, "there is no tool of this name")
        sealed = [{"seal": None, **effect} for effect in found]
        if len(found) != len(due) or sealed != [{**one, **other} for one, other in zip(sealed, due)]:
            self.finding(where, "its effects are not those that this call has")
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
        for table, name in self.written if self.source.whole else []:
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
        found = self.source.text(row["content"]) if row["table"] == "thoughts" else None
        if found is None:
            return
        fields = {"task_id": record_id("tasks", row["task_id"]), "type": row["type"], "content": found[1]}
        fields.update({column: row[column] for column in ("previous_hash", "recorded_at", "recorded_by")})
        if row["hash"] != sha256(json.dumps(fields, ensure_ascii=False, separators=(",", ":"))):
            self.finding(name, "its hash is not the one that its content gives")

    # -- Signatures --

    def newest_head(self):
        """The head of the largest size, if there is one."""
        return max(self.source.heads, key=lambda head: head.size, default=None)

    def open_heads(self):
        """Opens every signed head, and notes the sizes at which the tree is to be looked at on the way."""
        for head in [*self.source.heads, *self.source.checkpoints]:
            try:
                signer = Key(head.key)
                head.size, head.root = signer.open(head.note)
                head.signer, self.roots[head.size] = signer, {}
            except ValueError as error:
                self.finding(head.where, f"the signed head cannot be believed: {error}")
        newest = self.newest_head()
        if newest and not self.source.whole:
            self.roots = {newest.size: {"root": newest.root}}  # The proofs of a part lead to it.

    def check_signatures(self):
        """Heads and kept checkpoints are signed by known keys and fit the log; every row is under a head."""
        known = self.known_keys()
        own = [head for head in self.source.heads if head.signer and head.key in known]
        self.vouched = max([head.size for head in own], default=0)
        agreed = self.agreed_size(known)
        given_up = max([size for position, size in self.given_up if position <= agreed], default=0)
        for head in [*self.source.heads, *self.source.checkpoints]:
            if head.signer and head.key not in known:
                self.finding(head.where, f"it is signed by a key that nobody vouches for: {head.key}")
            elif head.signer:
                self.check_head(head, given_up)
        if self.source.origin is None and not self.source.heads:
            self.remarks.append("nothing in this log was ever signed")
        elif self.source.whole and self.vouched < self.size:
            self.finding(f"#{self.vouched + 1} to #{self.size}", "signed by nobody")

    def known_keys(self):
        """The key you trust, the one the log is named after, and those that rows under a known head trust."""
        signers = [head.signer for head in self.source.heads if head.signer]
        known = {signer.text for signer in signers if signer.text == self.trusted_key}
        if known or self.trusted_key is None:
            names = {signer.text: f"colibri/{sha256(signer.public_key)[:32]}" for signer in signers}
            known |= {key for key, name in names.items() if name == self.source.origin}
        else:
            self.finding("heads", "none is signed by the key you trust")
        before = None
        while before != known:
            before, agreed = set(known), self.agreed_size(known)
            known |= {key for position, key in self.trusted if position <= agreed}
        return known

    def agreed_size(self, known):
        """How far known heads reach that agree with the rows: under an older one may be anybody's rows."""
        heads = [head for head in self.source.heads if head.signer and head.key in known]
        agreeing = [head for head in heads if self.roots.get(head.size, {}).get("root") == head.root]
        return max([head.size for head in agreeing], default=0)

    def check_head(self, head, given_up):
        """The root is that of the log at this size, and so is everything that lies beside the note."""
        there = self.roots.get(head.size, {})
        agrees = there.get("root") == head.root
        if head.signer.name != self.source.origin:
            self.finding(head.where, "it is about another log")
        elif head.size == 0 or not self.source.whole:
            return
        elif not agrees and head.size <= given_up:
            self.remarks.append(f"{head.where}: the owner has given it up")
        elif not agrees:
            self.finding(head.where, f"{head.size} rows were signed, and they are not those that are here")
        elif {**there, **head.beside} != there:
            self.finding(head.where, "what lies beside the note is not what the rows give")


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
