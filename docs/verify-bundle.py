#!/usr/bin/env python3
"""Checks a bundle (folder or zip) or a certificate with Python's standard library and openssl, nothing of Colibri.
usage: verify-bundle.py BUNDLE|CERTIFICATE [KEY]    KEY: the verifier key you trust. Exit 0: it holds. Exit 1: not."""
import base64, functools, hashlib, json, os, pathlib, subprocess, sys, tempfile, zipfile
def need(holds, what): return holds or sys.exit(f"does not hold: {what}")
def sha(data): return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()
def node(*hashes):  # RFC 6962, 2.1: of one record the leaf, of two hashes the node above them.
    need(all(len(h) == 64 and bytes.fromhex(h).hex() == h for h in hashes), "something is no hash")
    return sha(bytes([len(hashes) - 1]) + bytes.fromhex("".join(hashes)))
def join(peaks, top, height=0):  # A tree is the list of its full subtrees, (root, height); this adds one at the end.
    if not peaks or peaks[-1][1] != height: return [*peaks, (top, height)]
    return join(peaks[:-1], node(peaks[-1][0], top), height + 1)
def root(peaks): return functools.reduce(lambda right, left: node(left, right), [top for top, _ in reversed(peaks)])
def climb(index, size, record, proof):  # RFC 6962, 2.1.1: the root that an inclusion proof leads to.
    if size < 2: return node(record) if index == 0 and not proof else ""
    *below, other, half = *proof, 1 << (size - 1).bit_length() - 1
    if index < half: return node(climb(index, half, record, below), other)
    return node(other, climb(index - half, size - half, record, below))
def open_note(note, key):  # C2SP signed-note and tlog-checkpoint: size and root, once openssl accepts the signature.
    (text, mark), (origin, _, raw) = note.split("\n\n"), key.split("+", 2)
    signature, raw = base64.b64decode(mark.split(" ")[-1])[4:], base64.b64decode(raw)
    key_id = bytes.fromhex(sha(f"{origin}\n".encode() + raw)[:8])
    need(raw[0] == 1 and key == f"{origin}+{key_id.hex()}+{base64.b64encode(raw).decode()}", "the key is damaged")
    need(mark == f"\u2014 {origin} {base64.b64encode(key_id + signature).decode()}\n", "it is not signed by this key")
    der = bytes.fromhex("302a300506032b6570032100") + raw[1:]  # RFC 8410: an Ed25519 public key.
    with tempfile.TemporaryDirectory() as folder:
        for name, data in ("key", der), ("text", f"{text}\n".encode()), ("signature", signature):
            pathlib.Path(folder, name).write_bytes(data)
        tool = "openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in text -sigfile signature".split()
        need(subprocess.run(tool, cwd=folder, capture_output=True).returncode == 0, "the signature does not hold")
    log, size, top = text.split("\n")
    return need(log == origin and (int(size), base64.b64decode(top).hex()), "the checkpoint is of another log")
def check_bundle(path):
    top = pathlib.Path(path).resolve() if os.path.isdir(path) else zipfile.Path(path)
    found = [file for entry in top.iterdir() for file in (entry.iterdir() if entry.is_dir() else [entry])]
    files = {str(file)[len(str(top)):].strip("/"): file.read_bytes().decode() for file in found}
    sums = "".join(f"{sha(files[name])}  {name}\n" for name in sorted(files) if name != "SHA256SUMS")
    need(sums == files["SHA256SUMS"], "a file is not what SHA256SUMS says")
    log, state, beside = ([*filter(None, files[f"{f}.jsonl"].split("\n"))] for f in ("log", "state", "payloads"))
    key, payloads = files["key.pub"].removesuffix("\n"), [json.loads(line) for line in beside]
    again = [json.dumps(p, ensure_ascii=False, separators=(",", ":"), sort_keys=True) for p in payloads]
    need(again == beside, "a payload is spelled in another way")
    told, older = json.loads(files["bundle.json"]), [files[f] for f in files if f.startswith("checkpoints/")]
    proofs = [f"proofs/{json.loads(line)['position']}.tlog-proof" for line in log if told["scope"] != "log"]
    proofs = [[base64.b64decode(h).hex() for h in files[f].split("\n\n")[0].split("\n")[3:]] for f in proofs]
    seals = {f[6:-5]: [r["hash"] for r in json.loads(files[f])["records"]] for f in files if f.startswith("seals/")}
    return check(told, older, "", 1, told["scope"], key, files["checkpoint"], log, payloads, proofs, state, seals)
def check_certificate(path):
    shown = json.loads(text := open(path, "rb").read().decode()) | {"kind": "colibri-certificate", "version": 1}
    need(text == json.dumps(shown, ensure_ascii=False, indent=2, sort_keys=True) + "\n", "this is no certificate")
    return check({}, [], **shown)
def check(told, older, /, kind, version, subject, key, checkpoint, log, payloads, proofs, state, seals):
    need(trusted in ([], [key]), "signed with another key than the one you trust")
    heads, proofs, whole = {open_note(note, key) for note in [checkpoint, *older]}, iter(proofs), subject == "log"
    payloads = ((payload["position"], sha(payload["salt"] + payload["body"])) for payload in payloads)
    at, chain, peaks, vouched, sizes, (size, top) = 0, "0" * 64, [], {"log": {}}, dict(heads), max(heads)
    for line in log:
        row, digest = json.loads(line), sha(line)
        need(at < (at := row["position"]), f"row {at} is misplaced")
        chain, peaks = sha(digest + chain), join(peaks, node(digest))
        if at in sizes: heads.discard((at, root(peaks)))
        need(whole or climb(at - 1, size, digest, next(proofs)) == top, f"the proof of row {at} does not hold")
        kept = row["schema_valid"] and row["args_hash"] or row["effects"] and row["result_hash"]
        need(not kept or next(payloads, None) == (at, kept), f"what lies beside row {at} is not what it says")
        vouched |= {f"#{at}": {}} | {effect["id"]: effect for effect in row["effects"]}
    left = {effect["hash"]: name for name, effect in vouched.items() if effect}
    for line in state:
        row, name = json.loads(line), need(left.pop(sha(line), ""), f"not as the log left it: {line[:60]}")
        if row.get("status") == "finalized":
            hashes = need(seals.pop(name, []), f"{name} has no seal")
            seal = {"leaf_count": len(hashes), "merkle_root": root(functools.reduce(join, map(node, hashes), []))}
            need(seal == vouched[name]["seal"] and seal.items() <= row.items(), f"the seal of {name} does not hold")
    extra, missing = seals or [*payloads, *proofs], subject in left.values() or subject not in vouched
    need(not (extra or missing or whole and (left or heads or at != len(log))), "something is missing, or too much")
    seen = {"rows": at, "root": root(peaks), "chain_hash": chain, "origin": f"colibri/{sha(log[0])[:16]}"}
    need(not whole or seen.items() <= told.items() and key.split("+")[0] == seen["origin"], "it is of another log")
    return f"{subject}: {len(log)} audit rows hold, of a log signed through {size} with root {top}\nkey {key}"
sys.tracebacklimit = 0  # What cannot even be read ends in an exception, which is status 1 as well.
path, *trusted = sys.argv[1:] or sys.exit(__doc__)
print((check_bundle if os.path.isdir(path) or zipfile.is_zipfile(path) else check_certificate)(path))
