#!/usr/bin/env python3
"""Checks a Colibri bundle (folder or zip) or certificate with Python's standard library and openssl, nothing of Colibri.
usage: verify-bundle.py BUNDLE|CERTIFICATE [KEY]    KEY: the verifier key you trust. Exit 0: it holds. Exit 1: it does not."""
import base64, functools, hashlib, json, os, subprocess, sys, tempfile, zipfile
def need(holds, what):
    if not holds: raise ValueError(what)
def sha(data): return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()
def node(*hashes):  # RFC 6962 2.1: of one record the leaf, of two hashes the node above them.
    need(all(len(h) == 64 and bytes.fromhex(h).hex() == h for h in hashes), "something is no hash")
    return sha(bytes([len(hashes) - 1]) + bytes.fromhex("".join(hashes)))
def join(peaks, top, height=0):  # A tree is the list of its full subtrees, (root, height), the largest first; this adds one.
    if not peaks or peaks[-1][1] != height: return [*peaks, (top, height)]
    return join(peaks[:-1], node(peaks[-1][0], top), height + 1)
def root(peaks): return functools.reduce(lambda right, left: node(left, right), [top for top, _ in reversed(peaks)])
def climb(index, size, record, proof):  # RFC 6962 2.1.1: the root that an inclusion proof leads to.
    if size < 2: return node(record) if index == 0 and not proof else ""
    *below, other, half = *proof, 1 << (size - 1).bit_length() - 1
    if index < half: return node(climb(index, half, record, below), other)
    return node(other, climb(index - half, size - half, record, below))
def unbase64(text):
    need(base64.b64encode(data := base64.b64decode(text, validate=True)).decode() == text, "base64 in a second spelling")
    return data
def open_note(note, key):  # C2SP signed-note and tlog-checkpoint: size and root, once openssl accepts the signature.
    (text, marks), (origin, key_id, raw) = note.split("\n\n"), key.split("+", 2)
    (dash, signer, mark), raw = marks.split("\n")[0].split(" "), unbase64(raw)  # Further lines are by witnesses.
    need(len(raw) == 33 and raw[0] == 1 and sha(f"{origin}\n".encode() + raw)[:8] == key_id, "the key is damaged")
    need((dash, signer, unbase64(mark)[:4].hex(), marks[-1]) == ("\u2014", origin, key_id, "\n"), "not signed by this key")
    pem = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + raw[1:]).decode()
    pem = f"-----BEGIN PUBLIC KEY-----\n{pem}\n-----END PUBLIC KEY-----\n"
    with tempfile.TemporaryDirectory() as folder:
        for part, data in ("pem", pem.encode()), ("text", f"{text}\n".encode()), ("mark", unbase64(mark)[4:]):
            with open(os.path.join(folder, part), "wb") as file: file.write(data)
        tool = "openssl pkeyutl -verify -pubin -inkey pem -rawin -in text -sigfile mark".split()
        need(subprocess.run(tool, cwd=folder, capture_output=True).returncode == 0, "the signature does not hold")
    signed, size, top = text.split("\n")
    need(signed == origin, "the checkpoint is of another log")
    return int(size), unbase64(top).hex()
def read_bundle(path):  # A bundle in the shape of a certificate, which is one JSON object.
    if os.path.isdir(path):
        paths = [os.path.join(folder, file) for folder, _, files in os.walk(path) for file in files]
        files = {os.path.relpath(file, path): open(file, "rb").read().decode() for file in paths}
    else:
        with zipfile.ZipFile(path) as zipped: files = {file: zipped.read(file).decode() for file in zipped.namelist()}
    sums = files.pop("SHA256SUMS")
    need(sums == "".join(f"{sha(files[file])}  {file}\n" for file in sorted(files)), "a file is not what SHA256SUMS says")
    log, payloads, state = [files[f"{part}.jsonl"].split("\n")[:-1] for part in ("log", "payloads", "state")]
    ways = [f"proofs/{json.loads(line)['position']}.tlog-proof" for line in log if '"scope":"log"' not in files["bundle.json"]]
    proofs = [[unbase64(h).hex() for h in files[way].split("\n\n")[0].split("\n")[3:]] for way in ways]
    older, seals = [[files[file] for file in files if file.startswith(folder)] for folder in ("checkpoints/", "seals/")]
    return {"log": log, "payloads": [*map(json.loads, payloads)], "state": state, "seals": [*map(json.loads, seals)],
            "checkpoint": files["checkpoint"], "older": older, "key": files["key.pub"].removesuffix("\n"), "proofs": proofs,
            "bundle": json.loads(files["bundle.json"])}
def read_certificate(path):
    shown = json.loads(text := open(path, "rb").read().decode())
    need((shown["kind"], shown["version"]) == ("colibri-certificate", 1), "no certificate")
    need(json.dumps(shown, ensure_ascii=False, indent=2, sort_keys=True) + "\n" == text, "the certificate is respelled")
    return shown
def check(shown):
    key, marker, subject = shown["key"], shown.get("bundle"), shown.get("subject")
    whole, proofs = subject is None and marker["scope"] == "log", iter(shown["proofs"])
    (size, top), beside = open_note(shown["checkpoint"], key), {p["position"]: p for p in shown["payloads"]}
    due = dict(open_note(note, key) for note in [shown["checkpoint"], *shown.get("older", [])])
    at, chain, peaks, hashes, wrote, sealed, sessions = 0, "0" * 64, [], {}, {}, {}, {}
    summary = {"skills": [], "thoughts": [], "transitions": []}
    for line in shown["log"]:
        row, digest, before, at = json.loads(line), sha(line), at, json.loads(line)["position"]
        need(at == before + 1 if whole else at > before, f"the row after {before} is missing or misplaced")
        hashes[f"#{at}"], chain, peaks = digest, sha(digest + chain), join(peaks, node(digest))
        if at in due and whole: need(due.pop(at) == root(peaks), f"the checkpoint of {at} rows is of another log")
        need(whole or climb(at - 1, size, digest, next(proofs)) == top, f"the proof of row {at} does not hold")
        enters, payload = row["stage"] == "enter", beside.pop(at, None)
        kept = row["schema_valid"] if enters else row["outcome"] == "ok" and row["effects"] != []
        digest = row["args_hash" if enters else "result_hash"] if kept else None
        need(digest == (payload and sha(payload["salt"] + payload["body"])), f"what lies beside row {at} is not what it says")
        wrote |= {(effect["table"], effect["id"]): effect["hash"] for effect in row["effects"]}
        sealed |= {effect["id"]: {"position": at, **effect["seal"]} for effect in row["effects"] if "seal" in effect}
        verb, body = {"task_create": "created", "task_update": "updated"}.get(row["tool"]), json.loads(payload["body"]) if payload else {}
        if subject and verb and not enters and body.get("task_id") == subject and (verb == "created" or "previous_status" in body):
            step = {"at": body[f"{verb}_at"], "by": body[f"{verb}_by"], "from": body.get("previous_status"), "to": body["status"]}
            summary["transitions"].append({**step, "position": at})
    left = {digest: place for place, digest in wrote.items()}
    for line in shown["state"]:
        row, (table, name) = json.loads(line), left.pop(sha(line), ("", ""))
        need(table, f"a row of state is not as the log left it: {line[:60]}")
        hashes[name] = row.get("hash", "")
        if table == "thoughts":
            thought = {"at": row["recorded_at"], "by": row["recorded_by"], "record": name}
            summary["thoughts"].append({**thought, "position": row["position"], "type": row["type"]})
        if table == "sessions":
            sessions[row["id"]] = row, []
            summary["skills"] += [s for s in json.loads(row["skills"]) if s not in summary["skills"]]
        if table == "session_records" and sessions[row["session_id"]][0]["sealed_task_id"] in (None, row["task_id"]):
            record = f"Θ-{row['ref']:04d}" if row["kind"] == "thought" else f"#{row['ref']}"
            described = {"hash": hashes[record], "kind": row["kind"], "record": record, "task_id": f"T-{row['task_id']:04d}"}
            sessions[row["session_id"]][1].append(described)
    seals = {seal["session_id"]: seal for seal in shown["seals"]}
    need(len(seals) == len(shown["seals"]), "a session is sealed twice")
    for row, records in sessions.values():
        seal, task = seals.pop(name := f"A-{row['id']:04d}", None), row["sealed_task_id"]
        need((row["status"] == "finalized") == (seal is not None), f"the seal of {name} is missing or too many")
        if seal is None: continue
        listed = [record["hash"] for record in seal["records"]]
        facts = {fact: row[fact] for fact in ("leaf_count", "merkle_root", "position", "tree_depth")}
        facts |= {"session_id": name, "records": seal["records"], "sealed_task_id": task and f"T-{task:04d}"}
        need(seal == facts and seal.items() >= sealed[name].items(), f"the seal of {name} is not the one in the log")
        need([r for r in seal["records"] if "kind" in r or not subject] == records, f"the seal of {name} lists other records")
        need(len(listed) == row["leaf_count"] and root(functools.reduce(join, map(node, listed), [])) == row["merkle_root"], name)
    need(not (beside or seals or [*proofs] or whole and (left or due)), "something is missing, or too many")
    logged = marker and (marker["rows"], marker["chain_hash"], marker["root"], key.split("+")[0])
    need(not whole or logged == (at, chain, root(peaks), f"colibri/{hashes['#1'][:16]}"), "bundle.json or the key is of another log")
    need(subject is None or subject in hashes and summary == shown["summary"], "the subject is missing or the summary is wrong")
    held = f"{subject or marker['scope']}: {len(shown['log'])} audit rows hold"
    return f"{held}, of a log signed through {size} with root {top}\nkey {key}"
try:
    evidence = (read_bundle if os.path.isdir(sys.argv[1]) or zipfile.is_zipfile(sys.argv[1]) else read_certificate)(sys.argv[1])
    need(sys.argv[2:] in ([], [evidence["key"]]), "signed with another key than the one you trust")
    print(check(evidence))
except (ValueError, LookupError, TypeError, AttributeError, OSError, RecursionError, zipfile.BadZipFile) as error:
    sys.exit(f"does not hold: {error or type(error).__name__}")
