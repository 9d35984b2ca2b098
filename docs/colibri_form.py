"""The form of an audit row: which fields it has, and which values each of them can have."""

import re

from colibri_formats import is_count, is_hex, read_canonical, read_time
from colibri_tools import TABLES, record_id

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
# What a row leaves out of its text where it has nothing to say.
UNSAID = {
    "args_hash": None, "duration_ms": None, "error_code": None, "result_hash": None,
    "effects": [], "repaired": [],
}
FIELDS = UNSAID.keys() | {
    "actor", "at", "correlation_id", "outcome", "position", "process",
    "rules", "schema_valid", "sequence_no", "source", "stage", "tool",
}
UUID_4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"


def read_row(text):
    """The row in a text. It leaves out what is null or an empty list, and must."""
    said = read_canonical(text)
    if said is None or any(value is None or value == [] for value in said.values()):
        return None
    return {**UNSAID, **said}


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
        "tool": is_text(row["tool"]) and len(row["tool"]) <= 64,
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
    seal = effect.get("seal", {"leaf_count": 1, "merkle_root": "0" * 64})
    is_seal = isinstance(seal, dict) and set(seal) == {"leaf_count", "merkle_root"}
    is_seal = is_seal and is_count(seal["leaf_count"]) and is_hex(seal["merkle_root"])
    is_id = record_id(effect["table"], int(number[1])) == effect["id"]
    return is_id and is_seal and is_hex(effect["hash"]) and is_count(effect["previous"])


class LastSeen(dict):
    """When each process last wrote a row for each actor, to the second: the first such row in that second."""

    def note(self, row):
        who, at = (row["process"], row["actor"]), row["at"]
        seen = self.get(who, "")
        # A clock that was days ahead may be set right. Any other time that goes backwards does not count.
        if seen[:10] != at[:10] or seen[:19] < at[:19]:
            self[who] = at
