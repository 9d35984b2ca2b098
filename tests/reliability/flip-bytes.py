"""Flips one bit after the other in a bundle and says which of them docs/verify-bundle.py lets pass.
usage: flip-bytes.py SCRIPT BUNDLE COUNT SEED    prints one JSON object."""
import contextlib, hashlib, io, json, pathlib, random, sys

sys.dont_write_bytecode = True
script, bundle, count, seed = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
code = compile(pathlib.Path(script).read_text(), script, "exec")
rnd = random.Random(seed)


def accepts(name=None):
    """The script as it stands, in this process: five thousand starts of Python would take minutes. Where it is told
    which of its own copies was changed, it must say so: nothing signs them, and another version has others."""
    sys.argv = [script, str(bundle)]
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()):
        try:
            exec(code, {"__name__": "__main__", "__doc__": "", "__file__": script})
        except SystemExit as end:
            return end.code in (None, 0) and f"note: {name} is not the script" not in said.getvalue()
        except Exception:
            return False
    return True


def make_sums_fit():
    names = sorted(str(f.relative_to(bundle)) for f in bundle.rglob("*") if f.is_file() and f.name != "SHA256SUMS")
    lines = (f"{hashlib.sha256((bundle / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    (bundle / "SHA256SUMS").write_text("".join(lines))


# What only the sums protect. Everything else the signature covers, directly or through hashes.
UNSIGNED = {"README.txt", "verify.html", "SHA256SUMS"}

files = sorted(f for f in bundle.rglob("*") if f.is_file())
missed, forged, original = [], 0, accepts()
sums = (bundle / "SHA256SUMS").read_bytes()
for i in range(count):
    # Every file gets its turn; in one round of eight the forger makes the sums fit again.
    file = files[i % len(files)]
    whole = file.read_bytes()
    at, bit = rnd.randrange(len(whole)), rnd.randrange(8)
    changed = bytearray(whole)
    changed[at] ^= 1 << bit
    file.write_bytes(changed)
    fits = file.name not in UNSIGNED and (i // len(files)) % 8 == 7
    if fits:
        make_sums_fit()
        forged += 1
    if accepts(file.relative_to(bundle).as_posix()):
        missed.append(f"bit {bit} of byte {at} of {file.relative_to(bundle)}{', sums made to fit' if fits else ''}")
    file.write_bytes(whole)
    (bundle / "SHA256SUMS").write_bytes(sums)
print(json.dumps({"original": original, "again": accepts(), "tried": count, "forged": forged, "missed": missed}))
