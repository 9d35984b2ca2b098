"""Checks what Colibri's tools answer, without any of Colibri's code: python3 verify-thoughts.py FILE...

Each FILE holds the data of one answer as JSON, in any order:
  thought_record_list by task_id       every hash and every link is computed again; give all pages, without a type
  thought_record_list by session_id    the same, as far as the thoughts of one task follow each other
                                       (of a thought that the owner erased only the links can be checked)
  audit_verify_chain with full_trace   of a session: its Merkle root (RFC 6962) is computed again and printed
  merkle_finalize or merkle_root       the root it must be

Needs Python 3 and nothing else. Exit 0 when everything agrees, 1 when something does not.
"""
import hashlib
import json
import re
import sys

HASHED = ("task_id", "type", "content", "previous_hash", "recorded_at", "recorded_by")


def thought_hash(thought):
    text = json.dumps({key: thought[key] for key in HASHED}, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def tree(hashes):
    """A leaf is SHA-256(0x00, hash), a node SHA-256(0x01, left, right); split at the largest power of two below n."""
    if len(hashes) == 1:
        return hashlib.sha256(b"\x00" + bytes.fromhex(hashes[0])).digest()
    half = 1
    while half * 2 < len(hashes):
        half *= 2
    return hashlib.sha256(b"\x01" + tree(hashes[:half]) + tree(hashes[half:])).digest()


wrong, thoughts, whole, traces, sealed = [], {}, {}, {}, {}
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        answer = json.load(file)
    answer = answer.get("data", answer)
    for thought in answer.get("thoughts", []):
        thoughts[thought["task_id"], thought["chain_position"]] = thought
    if "thoughts" in answer and "task_id" in answer and "session_id" not in answer:
        whole[answer["task_id"]] = answer["thought_count"]
    if "trace" in answer and "session_id" in answer:
        traces[answer["session_id"]] = [(entry["record"], entry["hash"]) for entry in answer["trace"]]
    if "merkle_root" in answer:
        sealed[answer["session_id"]] = answer["merkle_root"], answer.get("leaf_count")

for (task, position), thought in sorted(thoughts.items()):
    if thought.get("erased"):
        print(f"{thought['thought_id']} was erased by the owner: its hash cannot be computed again")
    if not thought.get("erased") and thought["hash"] != thought_hash(thought):
        wrong.append(f"{thought['thought_id']}: its hash is not that of its content")
    before = thoughts.get((task, position - 1))
    linked = before["hash"] if before else None
    if (before or position == 1) and thought["previous_hash"] != linked:
        wrong.append(f"{thought['thought_id']}: it does not follow the thought before it")
for task, count in whole.items():
    places = sorted(place for of, place in thoughts if of == task)
    if len(places) != count or places != list(range(1, count + 1)):
        wrong.append(f"{task}: of {count} thoughts {len(places)} are here, or not those from 1 to {count}")

hash_of = {thought["thought_id"]: thought["hash"] for thought in thoughts.values()}
for session, records in traces.items():
    bad = [record for record, value in records if not re.fullmatch("[0-9a-f]{64}", value)]
    wrong += [f"{session}: {record} has no hash" for record in bad]
    wrong += [f"{session}: {record} has another hash" for record, value in records if hash_of.get(record, value) != value]
    if bad:
        continue
    root = tree([value for _, value in records]).hex() if records else hashlib.sha256(b"").hexdigest()
    expected, count = sealed.get(session, (root, None))
    if root != expected or count not in (None, len(records)):
        wrong.append(f"{session}: {len(records)} records give the root {root}, not {expected}")
    print(f"{session} {len(records)} records, root {root}")

print("\n".join(wrong) if wrong else f"{len(thoughts)} thoughts and {len(traces)} sessions are as they were recorded")
sys.exit(1 if wrong else 0)
