"""What each writing tool of Colibri may do, and its effects on rows of state: one function for each tool."""

from colibri_formats import Tree

# The tools that write, and which of their arguments are free texts: the log holds a salted digest of each.
WRITING_TOOLS = {
    "task_create": ["title", "description"],
    "task_update": ["title", "description", "blocked_reason"],
    "thought_record": ["content", "tests_run", "blockers", "metadata"],
    "audit_session_start": ["reason"],
    "merkle_finalize": [],
    "owner_adopt": ["reason"],
    "owner_erase": ["reason"],
    "owner_trust": [],
    "owner_transfer": [],
    "owner_receive": [],
    "key_join": [],
}

# What the ids of each table of state begin with.
TABLES = {"tasks": "T", "thoughts": "\u0398", "sessions": "A", "session_records": "R"}

# Where a task may go from each status. It begins in the first one; those without a way out are final.
TRANSITIONS = {
    "kanban": {
        "backlog": ["todo", "cancelled"],
        "todo": ["in_progress", "blocked", "cancelled"],
        "in_progress": ["review", "blocked", "cancelled"],
        "blocked": ["todo", "in_progress", "cancelled"],
        "review": ["done", "backlog", "blocked", "cancelled"],
        "done": [], "cancelled": [],
    },
    "pipeline": {
        "INIT": ["GATHER", "CANCELLED"],
        "GATHER": ["ANALYZE", "CANCELLED"],
        "ANALYZE": ["PLAN", "CANCELLED"],
        "PLAN": ["APPLY", "CANCELLED"],
        "APPLY": ["VERIFY", "CANCELLED"],
        "VERIFY": ["DONE", "GATHER", "CANCELLED"],
        "DONE": [], "CANCELLED": [],
    },
}
FINISHED = ("done", "DONE")
# Whoever moves a task to one of these holds it until it leaves them.
UNDER_WAY = ("in_progress", "GATHER", "ANALYZE", "PLAN", "APPLY", "VERIFY")
HOLD = ("held_by", "held_process", "held_since")
NOBODY = dict.fromkeys(HOLD)


def record_id(table, number):
    """`T-0001`: what a row of state is called."""
    return f"{TABLES[table]}-{number:04d}"


def text_id(call, number):
    """What a text is stored under: the enter row of its call, and its number among the texts of the call."""
    return 8 * call + number


def texts_of(args, tool):
    """The digests of texts that a new row holds."""
    return {name: args.get(name) for name in WRITING_TOOLS[tool]}


def calls_of(names, row, args):
    """By which call each of these texts of a task came: the position of its enter row."""
    return {f"{name}_call": row["sequence_no"] if name in args else None for name in names}


# What the ids of the records begin with that a tool makes.
MAKES = {"task_create": "T-", "thought_record": "\u0398-", "audit_session_start": "A-"}


def is_text_of(record, task, carrier):
    """Whether erasing a record takes the texts of a call: those that wrote it, and refused calls about it."""
    if carrier is None or carrier["tool"].startswith("owner_"):
        return False
    if record.startswith("#"):
        return carrier["wrote"] is None and record == f"#{carrier['position']}"
    if carrier["task"] is None or carrier["task"] != task:
        return False
    if carrier["wrote"] is not None:
        return carrier["wrote"] == record
    return record == task or record.startswith(MAKES.get(carrier["tool"], "?"))


class ToolRules:
    """The part of LogCheck (colibri_rows.py) about tools. Speaking of what does not exist is a KeyError."""

    def task_create(self, _where, row, args, _answer):
        """A task begins in the first status of its workflow, below a parent that is there."""
        workflow, parent, proof = args["workflow"], args.get("parent_id"), args.get("proof_grade", False)
        status = next(iter(TRANSITIONS[workflow]))
        effect = self.new_row("tasks", {
            **texts_of(args, row["tool"]), **calls_of(["title", "description"], row, args),
            "workflow": workflow, "status": status, "proof_grade": int(proof),
            "parent_id": self.tasks[parent]["id"] if parent else None, "status_since": row["at"],
            "created_at": row["at"], "assignee": args.get("assignee", "unassigned"), **NOBODY,
        })
        self.tasks[effect["id"]] = {
            "id": self.count["tasks"], "workflow": workflow, "status": status, "parent": parent,
            "proof_grade": proof, "open_session": None, "thoughts": [], "newest_hash": None,
            "assignee": args.get("assignee", "unassigned"), "hold": NOBODY,
        }
        return [effect, *self.records(effect["id"], "change", row["position"], self.row_hash)]

    def task_update(self, where, row, args, answer):
        """A change of a task that is there; a change of its status is a move that its workflow allows."""
        name, task = args["task_id"], self.tasks[args["task_id"]]
        given = [*WRITING_TOOLS[row["tool"]], "assignee", "progress"]
        columns = {column: args[column] for column in given if column in args}
        columns.update(calls_of([name for name in WRITING_TOOLS[row["tool"]] if name in args], row, args))
        # A takeover with the status that a held task has takes the hold and moves nothing.
        takeover, status, held = args.get("takeover", False), args.get("status"), task["hold"]["held_by"]
        status = None if takeover and held and status == task["status"] else status
        if status:
            self.check_move(where, name, task, status)
            columns.update(status=status, status_since=row["at"])
            columns.update(blocked_reason=args.get("blocked_reason"))
            columns.update(calls_of(["blocked_reason"], row, args))
            columns.update({"progress": 100} if status in FINISHED else {})
        if takeover and not status and not held:
            self.finding(where, f"nobody holds {name}, so it cannot be taken over")
        if status or takeover:
            self.check_hold(where, row, name, task, takeover, answer)
            task["hold"] = self.hold_after(row, task, status or task["status"])
            columns.update(task["hold"])
        elif "taken_over_from" in answer["result"]:
            self.finding(where, f"it did not take {name} over from anybody")
        task.update(status=status or task["status"], assignee=args.get("assignee", task["assignee"]))
        effect = self.changed_row("tasks", name, columns)
        return [effect, *self.records(name, "change", row["position"], self.row_hash)]

    def check_move(self, where, name, task, status):
        """The workflow has this transition. Finishing takes a thought, a sealed one if proof is needed."""
        if status not in TRANSITIONS[task["workflow"]][task["status"]]:
            self.finding(where, f"{name} cannot move from {task['status']} to {status}")
        elif status in FINISHED and not task["thoughts"]:
            self.finding(where, f"{name} was finished without a thought")
        elif status in FINISHED and task["proof_grade"]:
            if task["open_session"] or task["thoughts"][-1] not in self.sealed_thoughts:
                self.finding(where, f"{name} was finished before its newest thought was sealed")

    def check_hold(self, where, row, name, task, takeover, answer):
        """Others move a held task only if they take it over, are its assignee, or were restarted."""
        held_by, process, since = (task["hold"][column] for column in HOLD)
        former = None
        if held_by is not None and not self.is_holder(row, task):
            # Whether a process was there, only the call itself can say. This very process was.
            is_seen = process in (None, row["process"])
            present = True if is_seen else answer["outside"]["holder"]["present"]
            is_restarted = held_by == row["actor"] and not present
            is_assignee = row["actor"] == task["assignee"]
            if not (takeover or is_restarted or is_assignee):
                self.finding(where, f"{name} was moved although {held_by} held it")
            former = {"held_by": held_by, "since": since, "present": present}
            former.update({"last_seen": self.last_seen[process, held_by]} if process else {})
        if answer["result"].get("taken_over_from") != former:
            self.finding(where, f"taken_over_from is not who held {name}")

    def is_holder(self, row, task):
        """The holder is an actor and a server process; from the command line an actor alone."""
        held_by, process, _ = (task["hold"][column] for column in HOLD)
        return held_by == row["actor"] and process in (None, row["process"])

    def hold_after(self, row, task, status):
        """Whoever moves a task that is under way, or takes it over, holds it from then on."""
        if status not in UNDER_WAY:
            return NOBODY
        if self.is_holder(row, task):
            return task["hold"]
        process = None if row["source"] == "cli" else row["process"]
        return {"held_by": row["actor"], "held_process": process, "held_since": row["at"]}

    def thought_record(self, where, row, args, answer):
        """A thought is the next link in the chain of its task; if that needs proof, a session covers it."""
        name, task, thought_hash = args["task_id"], self.tasks[args["task_id"]], answer["result"]["hash"]
        sessions = self.covering_sessions(name)
        if "session_id" in args and args["session_id"] not in sessions:
            self.finding(where, "the session that it names is not open, or does not cover the task")
        if task["proof_grade"] and not sessions:
            self.finding(where, f"{name} needs proof, and no session covers the thought")
        session = args.get("session_id", task["open_session"])
        session = session or (sessions[0] if task["proof_grade"] and sessions else None)
        effect = self.new_row("thoughts", {
            "session_id": self.sessions[session]["id"] if session else None,
            **texts_of(args, row["tool"]), "task_id": task["id"], "chain_position": len(task["thoughts"]) + 1,
            "previous_hash": task["newest_hash"], "hash": thought_hash, "call": row["sequence_no"],
        })
        task["thoughts"].append(self.count["thoughts"])
        task["newest_hash"] = thought_hash
        return [effect, *self.records(name, "thought", self.count["thoughts"], thought_hash)]

    def audit_session_start(self, where, row, args, _answer):
        """A task has one open session at most."""
        name, task = args["task_id"], self.tasks[args["task_id"]]
        if task["open_session"]:
            self.finding(where, f"{name} has an open session already")
        effect = self.new_row("sessions", {
            **texts_of(args, row["tool"]), "task_id": task["id"], "status": "open", "started_at": row["at"],
            "call": row["sequence_no"],
        })
        task["open_session"] = effect["id"]
        scope, number = args.get("scope", "shallow"), self.count["sessions"]
        self.sessions[effect["id"]] = {"id": number, "task": name, "scope": scope, "records": []}
        return [effect]

    def merkle_finalize(self, where, row, args, _answer):
        """An open session is sealed once, with the root of the tree over its records or those of one task."""
        name, only, session = args["session_id"], args.get("task_id"), self.sessions[args["session_id"]]
        task = self.tasks[session["task"]]
        records = [record for record in session["records"] if only in (None, record[2])]
        if task["open_session"] != name or not records:
            self.finding(where, f"{name} is not open or has no records, so it cannot be sealed")
        tree = Tree(record_hash for _, _, _, record_hash in records)
        self.sealed_thoughts.update(ref for kind, ref, _, _ in records if kind == "thought")
        task["open_session"] = None
        effect = self.changed_row("sessions", name, {"tree_depth": tree.depth(), "status": "finalized"})
        return [{**effect, "seal": {"leaf_count": tree.size, "merkle_root": tree.root()}}]

    def owner_act(self, where, row, args, answer):
        """What the owner did has no effects: keys that count from now on, heads given up, texts erased."""
        if row["tool"].startswith("owner_") and row["source"] != "cli":
            self.finding(where, "only the command line can do what the owner does")
        if row["tool"] in ("owner_trust", "owner_adopt", "key_join"):
            self.key_acts.append((row["position"], row["tool"], args))
        moved = {"to": args.get("to"), "rows": row["position"]}
        if row["tool"] == "owner_transfer" and answer["result"] != moved:
            self.finding(where, "its answer is not that of a transfer")
        if row["tool"] == "owner_receive" and answer["result"] != {"from": args["from"]}:
            self.finding(where, "its answer is not that of a receipt")
        if row["tool"] == "owner_erase":
            self.check_erasure(where, row, args, answer["result"])
        return []

    def check_erasure(self, where, row, args, result):
        """An erasure lists texts that earlier calls carried for the record, each of them once."""
        record, digests = args["record"], result["digests"]
        if set(result) != {"record", "digests"} or result["record"] != record or not digests:
            self.finding(where, "its answer is not that of an erasure")
        for digest in digests:
            carrier = self.carriers.get(digest)
            if digest in self.erased or not is_text_of(record, args.get("task_id"), carrier):
                self.finding(where, f"no call carried the text {digest} for {record}, or it is gone already")
            self.erased[digest] = where
        *_, reason = self.source.text(text_id(row["sequence_no"], 0)) or ("[missing]",)
        self.remarks.append(f"{record} was erased by {row['actor']} because: {reason}")

    # -- What the functions above share --

    def new_row(self, table, columns):
        """The effect that makes a row: ids count 1, 2, 3 ... in each table."""
        self.count[table] += 1
        name = record_id(table, self.count[table])
        self.due[table, name] = {**columns, "id": self.count[table]}
        return {"table": table, "id": name, "previous": 0, "seal": None}

    def changed_row(self, table, name, columns):
        """The effect on a row that is there names the position that wrote it before."""
        self.due[table, name].update(columns)
        return {"table": table, "id": name, "previous": self.written[table, name]["position"], "seal": None}

    def records(self, name, kind, ref, record_hash):
        """Every open session that covers the task gets a record, in the order in which they were started."""
        effects = []
        for session in self.covering_sessions(name):
            self.sessions[session]["records"].append((kind, ref, name, record_hash))
            ids = {"session_id": self.sessions[session]["id"], "task_id": self.tasks[name]["id"]}
            effects.append(self.new_row("session_records", {**ids, "kind": kind, "ref": ref}))
        return effects

    def covering_sessions(self, name):
        """The open session of a task, and the open deep ones of the tasks above it."""
        found, above = [], name
        while above is not None:
            session = self.tasks[above]["open_session"]
            if session and (above == name or self.sessions[session]["scope"] == "deep"):
                found.append(session)
            above = self.tasks[above]["parent"]
        return sorted(found, key=lambda session: self.sessions[session]["id"])
