"""Checks a Colibri database without any of Colibri's code: python3 verify-database.py FILE

Formulas: docs/reference/database.md. Needs Python 3.9 with SQLite 3.37 or newer, and nothing else.
It cannot see a tail that was cut off, or a history that was computed anew: compare the root with a checkpoint for that.
"""
import hashlib
import json
import sqlite3
import sys
from decimal import Decimal


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value):
    """RFC 8785, as far as a stored row needs it."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key])}" for key in sorted(value)) + "}"
    if value == int(value):
        return str(int(value))
    text = repr(value)  # Python writes 1e-05 and 1e-07 where JavaScript writes 0.00001 and 1e-7.
    return format(Decimal(text), "f") if abs(value) >= 1e-6 else text.replace("e-0", "e-")


def tree(hashes):
    """RFC 6962 over record hashes."""
    if len(hashes) == 1:
        return hashlib.sha256(b"\x00" + bytes.fromhex(hashes[0])).digest()
    half = 1
    while half * 2 < len(hashes):
        half *= 2
    return hashlib.sha256(b"\x01" + tree(hashes[:half]) + tree(hashes[half:])).digest()


def root(hashes):
    return tree(hashes).hex() if hashes else sha("")


db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
db.row_factory = sqlite3.Row
wrong, effects, contents, before = [], {}, [], "0" * 64

# The log, what lies beside it, and what it says was written.
for count, stored in enumerate(db.execute("SELECT * FROM actions ORDER BY position"), 1):
    row, content = json.loads(stored["text"]), sha(stored["text"])
    if (stored["position"], row["position"]) != (count, count) or stored["content_hash"] != content:
        wrong.append(f"audit row {count}")
    if stored["chain_hash"] != sha(stored["content_hash"] + before):
        wrong.append(f"link of audit row {count}")
    before = stored["chain_hash"]
    contents.append(content)
    for effect in row["effects"]:
        effects[effect["table"], effect["id"]] = count, effect["hash"]
    kept = db.execute("SELECT salt, body FROM action_payloads WHERE position = ?", (count,)).fetchone()
    if kept and sha(kept["salt"] + kept["body"]) != (row["args_hash"] or row["result_hash"]):
        wrong.append(f"payload of audit row {count}")

# Every row of state, against the effect that wrote it last.
for table, prefix in (("tasks", "T"), ("thoughts", "Θ"), ("sessions", "A"), ("session_records", "R")):
    columns = ", ".join(column["name"] for column in db.execute(f"PRAGMA table_info({table})"))
    for row in map(dict, db.execute(f"SELECT {columns} FROM {table}")):
        name = f"{prefix}-{row['id']:04}"
        if effects.pop((table, name), None) != (row["position"], sha(canonical(row))):
            wrong.append(name)
wrong += [f"{name} is gone" for _, name in effects]

# The chain of thoughts of each task.
last = {}
for row in db.execute("SELECT * FROM thoughts ORDER BY task_id, chain_position"):
    record = {"task_id": f"T-{row['task_id']:04}"}
    record |= {key: row[key] for key in ("type", "content", "previous_hash", "recorded_at", "recorded_by")}
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    if row["hash"] != sha(text) or row["previous_hash"] != last.get(row["task_id"]):
        wrong.append(f"chain at thought {row['id']}")
    last[row["task_id"]] = row["hash"]

# The seal of each finalized session.
leaf = {
    "thought": "SELECT hash FROM thoughts WHERE id = ?",
    "change": "SELECT content_hash FROM actions WHERE position = ?",
}
for session in db.execute("SELECT * FROM sessions WHERE status = 'finalized'").fetchall():
    only = session["sealed_task_id"]
    records = db.execute("SELECT * FROM session_records WHERE session_id = ? ORDER BY id", (session["id"],))
    found = [
        db.execute(leaf[record["kind"]], (record["ref"],)).fetchone()
        for record in records.fetchall()
        if only in (None, record["task_id"])
    ]
    hashes = [row[0] for row in found if row]
    if (root(hashes), len(found)) != (session["merkle_root"], session["leaf_count"]):
        wrong.append(f"seal of session {session['id']}")

print(f"{len(contents)} audit rows, root {root(contents)}")
print("\n".join(wrong) or "nothing is wrong")
sys.exit(1 if wrong else 0)
