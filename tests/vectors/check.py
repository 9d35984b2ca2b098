"""Checks the vectors beside this file with nothing but Python's standard library.

It is a second reader: it shares no code with Colibri, follows the definitions in the standards rather than the
faster walks Colibri uses, and ends with status 1 at the first vector that does not hold.
"""

import base64
import hashlib
import json
import pathlib
from decimal import Decimal

HERE = pathlib.Path(__file__).parent
INTEGER_MAX = 2**53 - 1
DEPTH_MAX = 64


def main():
    counts = {
        "canonical texts": check_canonical_json(load("canonical-json.json")),
        "trees and proofs": check_tree(load("tree.json")),
        "notes and keys": check_signed_note(load("signed-note.json"), load("tree.json")),
    }
    print(", ".join(f"{count} {what}" for what, count in counts.items()))


def load(name):
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def require(holds, what):
    if not holds:
        raise SystemExit(f"does not hold: {what}")


# Canonical JSON: RFC 8785 over the strict subset that Colibri accepts.


def check_canonical_json(vectors):
    for case in vectors["cases"]:
        text = canonical(read_strict(case["input"]))
        require(text == case["canonical"], case["name"])
        require(sha256(text.encode()).hex() == case["sha256"], case["name"] + " (digest)")
    for case in vectors["refused"]:
        require(is_refused(case["input"]), "refusal of " + case["name"])
    return len(vectors["cases"]) + len(vectors["refused"])


def is_refused(text):
    try:
        canonical(read_strict(text))
    except ValueError:
        return True
    return False


def read_strict(text):
    return json.loads(
        text,
        object_pairs_hook=unique_members,
        parse_int=read_integer,
        parse_float=read_float,
        parse_constant=refuse,
    )


def unique_members(pairs):
    members = dict(pairs)
    return members if len(members) == len(pairs) else refuse("a repeated name")


def read_integer(text):
    value = int(text)
    return value if abs(value) <= INTEGER_MAX else refuse(text)


def read_float(text):
    value = float(text)
    if value in (float("inf"), float("-inf")):
        refuse(text)
    inexact = value.is_integer() and INTEGER_MAX < abs(value) < 1e21
    return refuse(text) if inexact else value


def refuse(what):
    raise ValueError(what)


def canonical(value, depth=0):
    if isinstance(value, str):
        return canonical_string(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return canonical_number(value)
    if depth == DEPTH_MAX:
        refuse("too deep")
    if isinstance(value, list):
        return "[" + ",".join(canonical(item, depth + 1) for item in value) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(canonical_string(n) + ":" + canonical(value[n], depth + 1) for n in names) + "}"


def canonical_string(text):
    text.encode("utf-8")  # A lone surrogate is a UnicodeEncodeError, which is a ValueError.
    return json.dumps(text, ensure_ascii=False)


def canonical_number(value):
    """ECMAScript's Number::toString, from the shortest digits, which Python's repr finds too."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    _, digit_tuple, exponent = Decimal(repr(abs(value))).normalize().as_tuple()
    digits = "".join(map(str, digit_tuple))
    point = len(digits) + exponent
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
    return f"{sign}{mantissa}e{point - 1:+d}"


# Trees: RFC 6962 2.1, by its recursive definitions.


def check_tree(vectors):
    hashes = [sha256(text.encode()) for text in vectors["records"]]
    require([h.hex() for h in hashes] == vectors["record_hashes"], "record hashes")
    leaves = [sha256(b"\x00" + h) for h in hashes]
    require([leaf.hex() for leaf in leaves] == vectors["leaf_hashes"], "leaf hashes")
    for size, expected in enumerate(vectors["roots"]):
        require(root(leaves[:size]).hex() == expected, f"root at size {size}")
    for case in vectors["inclusion"]:
        proof = inclusion_path(case["index"], leaves[: case["size"]])
        require([h.hex() for h in proof] == case["proof"], f"inclusion {case['index']} of {case['size']}")
    for case in vectors["consistency"]:
        proof = consistency_path(case["size1"], leaves[: case["size2"]], True)
        require([h.hex() for h in proof] == case["proof"], f"consistency {case['size1']} to {case['size2']}")
    return len(vectors["roots"]) + len(vectors["inclusion"]) + len(vectors["consistency"])


def root(leaves):
    if not leaves:
        return sha256(b"")
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return sha256(b"\x01" + root(leaves[:k]) + root(leaves[k:]))


def inclusion_path(index, leaves):
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if index < k:
        return inclusion_path(index, leaves[:k]) + [root(leaves[k:])]
    return inclusion_path(index - k, leaves[k:]) + [root(leaves[:k])]


def consistency_path(size, leaves, whole):
    if size == len(leaves):
        return [] if whole else [root(leaves)]
    k = split(len(leaves))
    if size <= k:
        return consistency_path(size, leaves[:k], whole) + [root(leaves[k:])]
    return consistency_path(size - k, leaves[k:], False) + [root(leaves[:k])]


def split(count):
    return 1 << (count - 1).bit_length() - 1


def sha256(data):
    return hashlib.sha256(data).digest()


# Notes: C2SP signed-note, tlog-checkpoint and tlog-proof, with Ed25519 by the equations of RFC 8032 5.1.


def check_signed_note(vectors, tree):
    public = public_key(bytes.fromhex(vectors["seed_hex"]))
    name = vectors["name"]
    require(verifier_key(name, public) == vectors["verifier_key"], "verifier key")
    checkpoint = vectors["checkpoint"]
    head = base64.b64encode(bytes.fromhex(checkpoint["root"])).decode()
    text = f"{checkpoint['origin']}\n{checkpoint['size']}\n{head}\n"
    require(text == vectors["text"], "checkpoint text")
    require(checkpoint["root"] == tree["roots"][checkpoint["size"]], "checkpoint root")
    require(note_verifies(vectors["note"], text, name, public), "note")
    proof = vectors["proof"]
    path = next(c for c in tree["inclusion"] if (c["index"], c["size"]) == (proof["index"], checkpoint["size"]))
    lines = ["c2sp.org/tlog-proof@v1", f"extra {proof['extra']}", f"index {proof['index']}"]
    lines += [base64.b64encode(bytes.fromhex(h)).decode() for h in path["proof"]]
    require(proof["text"] == "\n".join(lines) + "\n\n" + vectors["note"], "tlog-proof")
    for weak in vectors["weak_public_keys_hex"]:
        require(is_weak(bytes.fromhex(weak)), "weakness of " + weak)
    return 4 + len(vectors["weak_public_keys_hex"])


def verifier_key(name, public):
    return f"{name}+{key_id(name, public).hex()}+{base64.b64encode(bytes([1]) + public).decode()}"


def key_id(name, public):
    return sha256(name.encode() + b"\n\x01" + public)[:4]


def note_verifies(note, text, name, public):
    prefix = f"{text}\n\u2014 {name} "
    if not note.startswith(prefix) or not note.endswith("\n"):
        return False
    signature = base64.b64decode(note[len(prefix) : -1], validate=True)
    return signature[:4] == key_id(name, public) and ed25519_verifies(public, text.encode(), signature[4:])


P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def ed25519_verifies(public, message, signature):
    s = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or s >= ORDER:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    return multiply(s, BASE) == add(decode_point(signature[:32]), multiply(k, decode_point(public)))


def public_key(seed):
    scalar = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little")
    scalar = scalar & ((1 << 254) - 8) | (1 << 254)
    return encode_point(multiply(scalar, BASE))


def is_weak(encoded):
    """A y that is not below the prime, or a point that eight times itself is the neutral one."""
    y = int.from_bytes(encoded, "little") % 2**255
    return y >= P or multiply(8, decode_point(encoded)) == (0, 1)


def add(a, b):
    (x1, y1), (x2, y2) = a, b
    product = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + product, P - 2, P)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, P - 2, P)
    return x % P, y % P


def multiply(scalar, point):
    total = (0, 1)
    while scalar > 0:
        if scalar % 2 == 1:
            total = add(total, point)
        point = add(point, point)
        scalar //= 2
    return total


def decode_point(encoded):
    number = int.from_bytes(encoded, "little")
    return x_of(number % 2**255, number >> 255), number % 2**255


def encode_point(point):
    return (point[1] | (point[0] % 2) << 255).to_bytes(32, "little")


def x_of(y, odd):
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    require(x * x % P == square, "a point lies on the curve")
    return P - x if x % 2 != odd and x != 0 else x


BASE = (x_of(4 * pow(5, P - 2, P) % P, 0), 4 * pow(5, P - 2, P) % P)

if __name__ == "__main__":
    main()
