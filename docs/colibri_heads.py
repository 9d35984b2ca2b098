"""The signed heads of a Colibri log: who signed them, and whether the rows are those that were signed."""

from colibri_formats import Key, sha256


class Head:
    """A signed checkpoint, its key, and what lies beside it. The signer is known once the note was opened."""

    def __init__(self, where, key, note, **beside):
        self.where, self.key, self.note, self.beside = where, key, note, beside
        self.signer, self.size, self.root = None, 0, None


class HeadRules:
    """The rules about signatures and where a log goes on; LogCheck in colibri_rows.py has the rest."""

    def newest_head(self):
        """The head of the largest size, if there is one."""
        return max(self.source.heads, key=lambda head: head.size, default=None)

    def open_heads(self):
        """Opens every signed head, and notes the sizes at which the tree is to be looked at on the way."""
        self.filings, self.open_filings = [], []
        for head in [*self.source.heads, *self.source.checkpoints]:
            try:
                signer = Key(head.key)
                head.size, head.root = signer.open(head.note)
                head.signer, self.roots[head.size] = signer, {}
            except ValueError as error:
                self.finding(head.where, f"the signed head cannot be believed: {error}")

    def check_signatures(self):
        """Heads and kept checkpoints are signed by known keys and fit the log; every row is under a head."""
        known = self.known_keys()
        own = [head for head in self.source.heads if head.signer and head.key in known]
        self.vouched = max([head.size for head in own], default=0)
        agreed = self.agreed_size(known)
        given_up = adopted = 0
        for position, tool, args in self.key_acts:
            counts = tool == "owner_adopt" and position <= agreed
            if counts and self.stated_by(self.vouched_keys, tool, args):
                given_up, adopted = max(given_up, args.get("lost", {"size": 0})["size"]), position
        for head in [*self.source.heads, *self.source.checkpoints]:
            if head.signer and head.key not in known:
                self.finding(head.where, f"it is signed by a key that nobody vouches for: {head.key}")
            elif head.signer:
                self.check_head(head, given_up)
        if self.source.origin is None and not self.source.heads:
            self.remarks.append("nothing in this log was ever signed")
        elif self.vouched < self.size:
            self.finding(f"#{self.vouched + 1} to #{self.size}", "signed by nobody")
        self.check_filings(adopted)

    def follow_heads(self, where, row):
        """What a row means for the heads of the log."""
        self.check_transfer(where, row)
        self.note_filing(row)

    def note_filing(self, row):
        """A seal and an act of the owner file a checkpoint with the commit of their exit row. Behind that
        row, the commit holds only exit rows of the same process: in this range the checkpoint ends."""
        if row["stage"] == "enter" or any(row["process"] != one["process"] for one in self.open_filings):
            for filing in self.open_filings:
                filing["last"] = row["position"] - 1
            self.open_filings = []
        files = row["tool"] == "merkle_finalize" or row["tool"].startswith("owner_")
        if files and (row["stage"], row["outcome"]) == ("exit", "ok"):
            self.open_filings.append({"first": row["position"], "last": None, "process": row["process"]})
            self.filings.append(self.open_filings[-1])

    def check_filings(self, adopted):
        """Each of these checkpoints is still kept. Rows before an adoption may have been written unsigned."""
        sizes = {head.size for head in self.source.checkpoints}
        sizes |= {head.beside.get("size") for head in self.source.checkpoints}
        for filing in self.filings:
            first, last = filing["first"], filing["last"] or self.size
            if adopted <= first <= self.vouched and not sizes.intersection(range(first, last + 1)):
                self.finding(f"#{first}", "it filed a checkpoint, and no kept checkpoint covers it")

    def known_keys(self):
        """The key you trust, the one the log is named after, those that these vouch for with a signature, and
        those that joined in rows under a known head. A key of a log that machines share also joins by itself,
        unless you say whom you trust."""
        signers = [head.signer for head in self.source.heads if head.signer]
        known = {signer.text for signer in signers if signer.text == self.trusted_key}
        if known or self.trusted_key is None:
            names = {signer.text: f"colibri/{sha256(signer.public_key)[:32]}" for signer in signers}
            known |= {key for key, name in names.items() if name == self.source.origin}
        else:
            self.finding("heads", "none is signed by the key you trust")
        before = None
        while before != known:
            before = set(known)
            known |= {args["key"] for _, tool, args in self.key_acts
                      if tool == "owner_trust" and self.stated_by(known, tool, args)}
        self.vouched_keys = set(known)
        added = [(position, args["key"]) for position, tool, args in self.key_acts if tool != "owner_trust"]
        joined = [(position, args["key"]) for position, tool, args in self.key_acts if tool == "key_join"]
        before = None
        while before != known:
            before, agreed = set(known), self.agreed_size(known)
            known |= {key for position, key in added if position <= agreed}
            if getattr(self.source, "shared", False) and self.trusted_key is None:
                known |= {key for position, key in joined if position <= self.agreed_size({key})}
        for key in sorted({key for _, key in joined if key in known} - self.vouched_keys):
            self.remarks.append(f"the key {key} joined by itself, and nobody has vouched for it")
        return known

    def stated_by(self, keys, tool, args):
        """Whether one of these keys signed what a call of the owner says: no row can tell who wrote it."""
        for key in keys:
            try:
                if Key(key).states(self.source.origin, tool, args):
                    return True
            except ValueError:
                pass
        return False

    def agreed_size(self, known):
        """How far known heads reach that agree with the rows: under an older one may be anybody's rows."""
        heads = [head for head in self.source.heads if head.signer and head.key in known]
        agreeing = [head for head in heads if self.roots.get(head.size, {}).get("root") == head.root]
        return max([head.size for head in agreeing], default=0)

    def check_head(self, head, given_up):
        """The root is that of the log at this size, and so is everything that lies beside the note."""
        there = self.roots.get(head.size, {})
        agrees = there.get("root") == head.root
        if head.signer.name != self.source.origin:
            self.finding(head.where, "it is about another log")
        elif head.size == 0:
            return
        elif not agrees and head.size <= given_up:
            self.remarks.append(f"{head.where}: the owner has given it up")
        elif not agrees:
            self.finding(head.where, f"{head.size} rows were signed, and they are not those that are here")
        elif {**there, **head.beside} != there:
            self.finding(head.where, "what lies beside the note is not what the rows give")

    def check_transfer(self, where, row):
        """A log that was transferred goes on with the row that receives it, which follows nothing else."""
        before = self.last_row or {"position": 0, "tool": None, "stage": None, "outcome": None}
        if before["position"] != row["position"] - 1:
            return
        end = [before[name] for name in ("tool", "stage", "outcome")]
        transferred = end == ["owner_transfer", "exit", "ok"]
        receives = [row["tool"], row["stage"]] == ["owner_receive", "enter"]
        if transferred and not receives:
            self.finding(where, "it follows the transfer of the log, which only owner_receive may")
        elif receives and not transferred:
            self.finding(where, "it receives a log that was not transferred")
