"""The formats of a Colibri log: digests, canonical JSON, trees, signatures (docs/reference/database.md)."""

import base64
import datetime
import hashlib
import json
import re
from decimal import Decimal


def show(text):
    """Somebody else's text, safe to print: what is not a printable character is spelled out."""
    return "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in str(text)[:300])


def sha256(data):
    """SHA-256 of bytes, or of the UTF-8 of a text, in lowercase hex."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    return hashlib.sha256(data).hexdigest()


def salted_digest(salt, text):
    """SHA-256 of the 16 bytes of the salt and the UTF-8 of the text."""
    return sha256(bytes.fromhex(salt) + text.encode("utf-8", "surrogateescape"))


def is_hex(value, digits=64):
    """Exactly that many lowercase hex digits: 64 for a hash, 32 for a salt."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{%d}" % digits, value) is not None


def is_count(value):
    """A whole number from 0 on; true and false are no numbers."""
    return type(value) is int and 0 <= value < 2**53


def read_time(text):
    """The instant of `2026-01-31T12:00:00.000Z`, or None for another form or a day that does not exist."""
    try:
        time = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
        return time if time.isoformat(timespec="milliseconds") + "Z" == text else None
    except (TypeError, ValueError):
        return None


# ---- Canonical JSON (RFC 8785) ----
def canonical(value):
    """The one way to write a JSON value. ValueError or OverflowError for what cannot be written."""
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return canonical_number(value)
    text = json.dumps(value, ensure_ascii=False)
    text.encode("utf-8")  # Half of a surrogate pair is no text, and raises.
    return text


def canonical_number(value):
    """A number as ECMAScript writes it. A whole number beyond 2^53 is refused: readers differ on it."""
    if value == int(value) and abs(value) < 2**53:
        return str(int(value))
    if value == int(value) and abs(value) < 1e21:
        raise ValueError("a whole number that is not exact everywhere")
    if 1e-6 <= abs(value) < 1e21:
        return format(Decimal(repr(value)), "f")
    digits, exponent = repr(float(value)).split("e")
    return f"{digits}e{int(exponent):+d}"


def read_canonical(text):
    """The object that a canonical text holds, or None where the text is anything else."""
    try:
        value = json.loads(text)
        return value if isinstance(value, dict) and canonical(value) == text else None
    except (ValueError, OverflowError, RecursionError):
        return None


# ---- The Merkle tree (RFC 6962) ----
class Tree:
    """A tree that only grows: it keeps the roots of its full subtrees, the largest first."""

    def __init__(self, hashes=()):
        self.size, self.peaks = 0, []
        for record_hash in hashes:
            self.add(record_hash)

    def add(self, record_hash):
        """A leaf is SHA-256(0x00, hash); wherever two subtrees of one height meet they become one."""
        node, size = sha256(b"\x00" + bytes.fromhex(record_hash)), self.size
        while size % 2 == 1:
            node = tree_node(self.peaks.pop(), node)
            size //= 2
        self.peaks.append(node)
        self.size += 1

    def root(self):
        """All subtrees joined, from the smallest up; SHA-256 of nothing for a tree without leaves."""
        if not self.peaks:
            return sha256(b"")
        node = self.peaks[-1]
        for left in reversed(self.peaks[:-1]):
            node = tree_node(left, node)
        return node

    def depth(self):
        """How many levels there are: 1 leaf has 1, 8 leaves have 4."""
        return (self.size - 1).bit_length() + 1 if self.size else 0


def tree_node(left, right):
    """SHA-256(0x01, left, right)."""
    return sha256(b"\x01" + bytes.fromhex(left) + bytes.fromhex(right))


def root_by_proof(index, size, node, proof):
    """The root that a proof of inclusion leads to from a node; None where the proof has the wrong length."""
    if size == 1 or not proof:
        return node if size == 1 and not proof else None
    half = 1 << (size - 1).bit_length() - 1
    if index < half:
        left = root_by_proof(index, half, node, proof[:-1])
        return left and tree_node(left, proof[-1])
    right = root_by_proof(index - half, size - half, node, proof[:-1])
    return right and tree_node(proof[-1], right)


# ---- Ed25519 (RFC 8032): a point is (X, Y, Z, T) ----
FIELD = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE_D = -121665 * pow(121666, -1, FIELD) % FIELD


def add_points(p, q):
    """The sum of two points (5.1.4)."""
    a, b = (p[1] - p[0]) * (q[1] - q[0]), (p[1] + p[0]) * (q[1] + q[0])
    c, d = 2 * p[3] * q[3] * CURVE_D, 2 * p[2] * q[2]
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % FIELD, g * h % FIELD, f * g % FIELD, e * h % FIELD)


def multiply(number, point):
    """The point added to itself, one binary digit of the number at a time."""
    total = (0, 1, 1, 0)
    for digit in bin(number)[2:]:
        total = add_points(total, total)
        total = add_points(total, point) if digit == "1" else total
    return total


def same_point(p, q):
    """Whether two sets of coordinates name one point."""
    return (p[0] * q[2] - q[0] * p[2]) % FIELD == 0 and (p[1] * q[2] - q[1] * p[2]) % FIELD == 0


def decode_point(data):
    """The point that 32 bytes name (5.1.3), or None. Verifiers disagree on those of small order: None too."""
    sign, y = divmod(int.from_bytes(data, "little"), 2**255)
    square = (y * y - 1) * pow(CURVE_D * y * y + 1, -1, FIELD) % FIELD
    x = pow(square, (FIELD + 3) // 8, FIELD)
    if x * x % FIELD != square:
        x = x * pow(2, (FIELD - 1) // 4, FIELD) % FIELD  # Times the root of minus one.
    if y >= FIELD or x * x % FIELD != square or (x == 0 and sign):
        return None
    x = x if x % 2 == sign else FIELD - x
    point = (x, y, 1, x * y % FIELD)
    return None if same_point(multiply(8, point), (0, 1, 1, 0)) else point


BASE_POINT = decode_point((4 * pow(5, -1, FIELD) % FIELD).to_bytes(32, "little"))


def signature_holds(public_key, message, signature):
    """S * B = R + SHA-512(R, key, message) * key, with S below the order (5.1.7)."""
    key, r = decode_point(public_key), decode_point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if len(signature) != 64 or key is None or r is None or s >= ORDER:
        return False
    number = int.from_bytes(hashlib.sha512(signature[:32] + public_key + message).digest(), "little") % ORDER
    return same_point(multiply(s, BASE_POINT), add_points(r, multiply(number, key)))


# ---- Signed notes and checkpoints (C2SP) ----
def read_base64(text):
    """The bytes of standard base64 in its only spelling; none for anything else."""
    try:
        data = base64.b64decode(text, validate=True)
        return data if base64.b64encode(data).decode() == text else b""
    except ValueError:
        return b""


class Key:
    """A verifier key, `name+id+base64(1, public key)`. ValueError for a text that is none."""

    def __init__(self, text):
        self.text = text
        self.name, self.id, encoded = (text.split("+", 2) + ["", ""])[:3]
        data = read_base64(encoded)
        if len(data) != 33 or data[0] != 1 or decode_point(data[1:]) is None:
            raise ValueError("it is no Ed25519 key")
        if sha256(f"{self.name}\n".encode() + data)[:8] != self.id:
            raise ValueError("its id does not belong to its name and key")
        self.public_key = data[1:]

    def states(self, origin, tool, args):
        """Whether this key signed what a call of the owner says for every machine."""
        said = {name: args[name] for name in ("key", "lost", "rows") if name in args}
        mark = read_base64(args.get("signed", ""))
        text = f"{origin}\n{tool}\n{canonical(said)}\n"
        signed = self.name == origin and mark[:4].hex() == self.id
        return signed and signature_holds(self.public_key, text.encode(), mark[4:])

    def open(self, note):
        """Size and root of a checkpoint that this key has signed; ValueError says why there is none."""
        text, _, signatures = note.rpartition("\n\n")
        marks = re.findall("^\u2014 (\\S+) (\\S+)$", signatures, re.MULTILINE)
        if signatures != "".join(f"\u2014 {name} {mark}\n" for name, mark in marks):
            raise ValueError("it is no signed note")
        own = [read_base64(mark) for name, mark in marks if name == self.name]
        own = [mark[4:] for mark in own if mark[:4].hex() == self.id]
        if not own or not signature_holds(self.public_key, f"{text}\n".encode(), own[0]):
            raise ValueError("the key has not signed it")
        lines = text.split("\n")
        origin, size, root = (lines + ["", ""])[:3]
        has_form = re.fullmatch("0|[1-9][0-9]{0,15}", size) and len(read_base64(root)) == 32
        if "" in lines or not has_form or origin != self.name:
            raise ValueError("it is no checkpoint of this log")
        return int(size), read_base64(root).hex()
