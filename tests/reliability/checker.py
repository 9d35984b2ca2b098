#!/usr/bin/env python3
"""The second reader: judges a database by the documents alone.

It shares no code with the server: own SQL, own canonical JSON, own hashing, another SQLite, another language.

Reads one job a line from stdin, a JSON object:

    {"db": path, "acked": [call, ...], "settled": bool}

and answers each with one line: {"findings": [...], "rows": n, "lost": n, ...}. "acked" are the calls whose answer
the client has read: {"tool", "data"} for a success, {"tool", "code"} for a refusal. "settled" says that a server
has started since, so that no call may be left open. The files are copied first; the originals are not touched.
"""

import collections
import hashlib
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from decimal import Decimal

ZEROS = "0" * 64
PREFIXES = {"tasks": "T", "thoughts": "\u0398", "sessions": "A", "session_records": "R"}
WRITING_TOOLS = {"task_create", "task_update", "thought_record", "audit_session_start", "merkle_finalize"}


def sha256(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def canonical(value):
    """RFC 8785 for what a column or a JSON text can hold."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(value[name]) for name in names) + "}"
    raise TypeError(f"no canonical form for {type(value).__name__}")


def number(value):
    """A finite double as ECMAScript writes it."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if 0 < point <= 21:
        body = text + "0" * (point - len(text)) if len(text) <= point else text[:point] + "." + text[point:]
    elif -6 < point <= 0:
        body = "0." + "0" * -point + text
    else:
        mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
        body = f"{mantissa}e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return ("-" if sign else "") + body


def judge(job):
    with tempfile.TemporaryDirectory(prefix="colibri-checker-") as folder:
        path = os.path.join(folder, "copy.db")
        # -shm is left behind on purpose: what is only there is not on the disk.
        for end in ("", "-wal", "-journal"):
            if os.path.exists(job["db"] + end):
                shutil.copyfile(job["db"] + end, path + end)
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            return verdict(["there is no database"] if job.get("acked") else [], lost=len(job.get("acked", [])))
        db = sqlite3.connect(path)
        try:
            return judge_open(db, job)
        except sqlite3.DatabaseError as error:
            return verdict([f"SQLite: {error}"], lost=len(job.get("acked", [])))
        finally:
            db.close()


def verdict(findings, **facts):
    return {"findings": findings, "rows": 0, "version": 0, "lost": 0, "open": 0, "crashed": 0, "ok": 0, **facts}


def judge_open(db, job):
    findings = [f"integrity_check: {row[0]}" for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
    version = db.execute("PRAGMA user_version").fetchone()[0]
    objects = [row[0] for row in db.execute("SELECT name FROM sqlite_schema ORDER BY name")]
    acked = job.get("acked", [])
    if "actions" not in objects:
        return verdict(findings, version=version, objects=objects, lost=len(acked))
    rows = read_chain(db, findings)
    payloads = {position: (salt, body) for position, salt, body in db.execute("SELECT * FROM action_payloads")}
    check_payloads(rows, payloads, findings)
    check_calls(db, rows, job.get("settled", False), findings)
    if "thoughts" in objects:
        check_state(db, rows, findings)
        check_thoughts(db, findings)
    lost = lost_calls(rows, payloads, acked)
    findings += [f"acked and lost: {json.dumps(call)[:200]}" for call in lost[:5]]
    exits = [row for row in rows if row["stage"] == "exit"]
    return verdict(
        findings,
        rows=len(rows),
        version=version,
        objects=objects,
        lost=len(lost),
        open=sum(row["stage"] == "enter" for row in rows) - len(exits),
        crashed=sum(row["outcome"] == "crashed" for row in exits),
        ok=sum(row["outcome"] == "ok" and row["tool"] in WRITING_TOOLS for row in exits),
        head=db.execute("SELECT chain_hash FROM actions ORDER BY position DESC LIMIT 1").fetchone(),
    )


def read_chain(db, findings):
    rows, previous, time = [], ZEROS, ""
    stored = db.execute("SELECT position, text, content_hash, chain_hash FROM actions ORDER BY position")
    for due, (position, text, content_hash, chain_hash) in enumerate(stored, start=1):
        row = json.loads(text)
        rows.append(row)
        if position != due or row["position"] != due:
            findings.append(f"audit row {position}: {due} was due")
        if canonical(row) != text:
            findings.append(f"audit row {position}: the text is not canonical")
        if sha256(text) != content_hash:
            findings.append(f"audit row {position}: content_hash is not that of the text")
        if sha256(content_hash + previous) != chain_hash:
            findings.append(f"audit row {position}: chain_hash does not follow")
        if row["at"] < time:
            findings.append(f"audit row {position}: time runs backwards")
        if (row["duration_ms"] or 0) < 0:
            findings.append(f"audit row {position}: a duration below zero")
        previous, time = chain_hash, row["at"]
    return rows


def check_payloads(rows, payloads, findings):
    for row in rows:
        if row["position"] in payloads:
            salt, body = payloads[row["position"]]
            due = row["args_hash"] if row["stage"] == "enter" else row["result_hash"]
            if sha256(salt + body) != due:
                findings.append(f"audit row {row['position']}: the payload is not the one that was hashed")
    for position in payloads:
        if not 0 < position <= len(rows):
            findings.append(f"a payload for audit row {position}, which is not there")


def check_calls(db, rows, settled, findings):
    """Every call ends at most once; those that have not are exactly the ones marked open."""
    exits = collections.Counter(row["sequence_no"] for row in rows if row["stage"] == "exit")
    enters = {row["position"] for row in rows if row["stage"] == "enter"}
    for sequence_no, count in exits.items():
        if count > 1:
            findings.append(f"call {sequence_no} was explained {count} times")
        if sequence_no not in enters:
            findings.append(f"call {sequence_no} ends but never began")
    unexplained = {position for position in enters if position not in exits}
    marked = {position for (position,) in db.execute("SELECT position FROM open_calls")}
    if unexplained != marked:
        findings.append(f"open calls are {sorted(unexplained)}, marked are {sorted(marked)}")
    if settled and unexplained:
        findings.append(f"calls {sorted(unexplained)} are still unexplained after a start")


def check_state(db, rows, findings):
    """The last effect of each row is the digest of the row as it is; no row without an effect, no effect without a row."""
    last = {}
    for row in rows:
        for effect in row["effects"]:
            last[effect["table"], effect["id"]] = effect["hash"]
    for table, prefix in PREFIXES.items():
        columns = [column[1] for column in db.execute(f"PRAGMA table_info({table})")]
        for values in db.execute(f"SELECT {', '.join(columns)} FROM {table}"):
            row = dict(zip(columns, values))
            name = f"{prefix}-{row['id']:04d}"
            due = last.pop((table, name), None)
            if due is None:
                findings.append(f"{table} {name}: no call wrote it")
            elif sha256(canonical(row)) != due:
                findings.append(f"{table} {name}: it is not what its last call left")
    findings += [f"{table} {name}: a call wrote it and it is gone" for table, name in last]


def check_thoughts(db, findings):
    previous = {}
    fields = "id, task_id, type, content, previous_hash, recorded_at, recorded_by, hash"
    for number_, task, kind, content, before, at, by, found in db.execute(f"SELECT {fields} FROM thoughts ORDER BY id"):
        text = json.dumps(
            {
                "task_id": f"T-{task:04d}",
                "type": kind,
                "content": content,
                "previous_hash": before,
                "recorded_at": at,
                "recorded_by": by,
            },
            ensure_ascii=False,
            separators=(",", ":"),
        )
        if before != previous.get(task) or sha256(text) != found:
            findings.append(f"thought {number_}: its hash or its link is wrong")
        previous[task] = found


def lost_calls(rows, payloads, acked):
    """Acked calls the log knows nothing of. An answer is found by its tool and its very text, and only once."""
    stored = collections.Counter()
    for row in rows:
        if row["stage"] == "exit":
            body = payloads.get(row["position"], ("", row["error_code"]))[1]
            stored[row["tool"], body] += 1
    lost = []
    for call in acked:
        key = call["tool"], canonical(call["data"]) if "data" in call else call["code"]
        if stored[key] > 0:
            stored[key] -= 1
        else:
            lost.append(call)
    return lost


def main():
    for line in sys.stdin:
        print(json.dumps(judge(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
