"""Checks a bundle (folder or zip) or a certificate with Python's standard library and openssl, nothing of Colibri.
usage: verify-bundle.py BUNDLE|CERTIFICATE [KEY]    KEY: the verifier key you trust. Exit 0: it holds. Exit 1: not."""
import base64, functools, hashlib, json, os, pathlib, subprocess, sys, tempfile, zipfile
dump = functools.partial(json.dumps, ensure_ascii=False, sort_keys=True, default=lambda b: base64.b64encode(b).decode())
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
    (text, mark), raw = note.split("\n\n"), base64.b64decode(key.split("+", 2)[2])
    (origin, size, top), signature = text.split("\n"), base64.b64decode(mark.split(" ")[-1])[4:]
    key_id = bytes.fromhex(sha(f"{origin}\n".encode() + raw)[:8])
    need(raw[0] == 1 and key == f"{origin}+{key_id.hex()}+{base64.b64encode(raw).decode()}", "the key does not fit")
    need(mark == f"\u2014 {origin} {base64.b64encode(key_id + signature).decode()}\n", "it is not signed by this key")
    der = bytes.fromhex("302a300506032b6570032100") + raw[1:]  # RFC 8410: an Ed25519 public key.
    with tempfile.TemporaryDirectory() as folder:
        parts = {"key": der, "text": f"{text}\n".encode(), "signature": signature}
        for name in parts: pathlib.Path(folder, name).write_bytes(parts[name])
        tool = "openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in text -sigfile signature".split()
        need(subprocess.run(tool, cwd=folder, capture_output=True).returncode == 0, "the signature does not hold")
    return int(size), base64.b64decode(top).hex()
def check_bundle(path):
    found = {f.relative_to(path).as_posix(): f.read_bytes() for f in pathlib.Path(path).rglob("*") if f.is_file()}
    if zipfile.is_zipfile(path): found = {f: zipfile.ZipFile(path).read(f) for f in zipfile.ZipFile(path).namelist()}
    sums = found.pop("SHA256SUMS") == "".join(f"{sha(found[name])}  {name}\n" for name in sorted(found)).encode()
    anchors = {name: found.pop(name) for name in sorted(found) if name.startswith("anchors/")}
    files = need(sums, "a file is not what SHA256SUMS says") and {name: found[name].decode() for name in found}
    log, state, beside = ([*filter(None, files[f"{f}.jsonl"].split("\n"))] for f in ("log", "state", "payloads"))
    key, payloads = files["key.pub"].removesuffix("\n"), [json.loads(line) for line in beside]
    need([dump(p, separators=(",", ":")) for p in payloads] == beside, "a payload is spelled in another way")
    told, older = json.loads(files["bundle.json"]), [files[f] for f in files if f.startswith("checkpoints/")]
    proofs = [f"proofs/{json.loads(line)['position']}.tlog-proof" for line in log if told["scope"] != "log"]
    proofs = [[base64.b64decode(h).hex() for h in files[f].split("\n\n")[0].split("\n")[3:]] for f in proofs]
    seals = {f[6:-5]: [r["hash"] for r in json.loads(files[f])["records"]] for f in files if f.startswith("seals/")}
    return check(told, older, told["scope"], key, files["checkpoint"], log, payloads, proofs, state, seals, anchors)
def check_certificate(path):
    shown = json.loads(text := open(path, "rb").read().decode()) | {"kind": "colibri-certificate", "version": 1}
    shown["anchors"] = {name: base64.b64decode(data) for name, data in shown["anchors"].items()}
    need(text == dump(shown, indent=2) + "\n", "this is no certificate")
    return check({}, [], **shown)
def check(told, older, subject, key, checkpoint, log, payloads, proofs, state, seals, anchors, kind="", version=1):
    need(trusted in ([], [key]), "signed with another key than the one you trust")
    for name, data in anchors.items():  # Each has its digest for a name, and holds a checkpoint or the digest of one.
        holds = any(note.encode() in data or bytes.fromhex(sha(note)) in data for note in [checkpoint, *older])
        need(holds and name.rpartition(".")[0] == f"anchors/{sha(data)}", f"{name} is no anchor of a checkpoint here")
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
        tree = functools.reduce(join, map(node, hashes := seals.pop(name, [])), [])
        seal = {"leaf_count": len(hashes), "merkle_root": root(tree)} if tree else {}
        need(seal == vouched[name].get("seal", {}) and seal.items() <= row.items(), f"the seal of {name} does not hold")
    extra, missing = seals or [*payloads, *proofs], subject in left.values() or subject not in vouched
    need(not (extra or missing or whole and (left or heads or at != len(log))), "something is missing, or too much")
    seen = {"rows": at, "root": root(peaks), "chain_hash": chain, "origin": f"colibri/{sha(log[0])[:16]}"}
    need(not whole or seen.items() <= told.items() and key.split("+")[0] == seen["origin"], "it is of another log")
    return f"{subject}: {len(log)} audit rows hold, signed through {size} as {top}\nkey {key}\nunchecked: {[*anchors]}"
sys.tracebacklimit, (path, *trusted) = 0, sys.argv[1:] or sys.exit(__doc__)  # An exception is status 1 as well.
print((check_bundle if os.path.isdir(path) or zipfile.is_zipfile(path) else check_certificate)(path))
