"""Small histories, each with one fault that history_check.py must name, and some with none.

A transaction is written as words: `x+1` appends 1 to the list x, `x=1` reads it as [1], `x=` as empty;
`r:0>1` replaces 0 in the register r by 1, `r:1` reads it from an index; `!` at the end says that it
failed, `?` that it is unknown, `~` that it read what may be older. Without times all are at once.
"""

from history_check import FAILED, OK, UNKNOWN, Read, Transaction, Write, check

CASES = [
    (None, ["x+1", "x=1 x+2", "x=1,2"], {"x": [1, 2]}),
    (None, ["x= y+1", "y= x+2"], {"x": [2], "y": [1]}),  # Write skew is allowed.
    (None, ["x+1?", "x+2?"], {"x": [2]}),
    (None, ["r:0>1", "r:1>2", "r:2"], {"r": 2}),
    ("lost", ["x+1"], {"x": []}),
    ("lost update", ["r:0>1", "r:0>2"], {"r": 2}),
    ("doubled", ["x+1"], {"x": [1, 1]}),
    ("failed, but there", ["x+1!"], {"x": [1]}),
    ("half a transaction", ["x+1 y+2?"], {"x": [1], "y": []}),
    ("never written", [], {"x": [1]}),
    ("own write not seen", ["x+1 x="], {"x": [1]}),
    ("aborted read (G1a)", ["x+1!", "x=1"], {"x": []}),
    ("intermediate read (G1b)", ["x+1 x+2", "x=1"], {"x": [1, 2]}),
    ("lists contradict", ["x+1", "x+2", "x=2,1"], {"x": [1, 2]}),
    ("G0", ["x+1 y+2", "x+3 y+4"], {"x": [1, 3], "y": [4, 2]}),
    ("G1c", ["x+1 y=2", "y+2 x=1"], {"x": [1], "y": [2]}),
    ("G-single", ["x+1 y+2", "x= y=2"], {"x": [1], "y": [2]}),
    ("G-single", ["x= x+2", "x+1"], {"x": [1, 2]}),
    ("G-nonadjacent", ["x+1", "y+2", "x=1 y=", "y=2 x="], {"x": [1], "y": [2]}),
    ("stale (G-single with time)", ["x+1", "then", "x="], {"x": [1]}),
    (None, ["x+1", "then", "x=~"], {"x": [1]}),
    # What one that may be behind has read is there for all later ones.
    ("stale (G-single with time)", ["x+1?", "x=1~", "then", "x="], {"x": [1]}),
]


def wrong():
    """The cases of which another fault is found than there is."""
    out = []
    for expected, transactions, final in CASES:
        found = set(check(list(read(transactions)), final).counts)
        if found != ({expected} if expected else set()):
            out.append((expected, transactions, found))
    return out


def read(transactions):
    moment = 0
    for words in transactions:
        if words == "then":
            moment += 2
            continue
        transaction = Transaction(moment)
        transaction.end = moment + 1
        transaction.status = {"!": FAILED, "?": UNKNOWN}.get(words[-1], OK)
        transaction.is_behind = words.endswith("~")
        for word in words.rstrip("!?~").split():
            add(transaction, word)
        yield transaction


def add(transaction, word):
    key, sign, value = word[0], word[1], word[2:]
    written = len(transaction.writes)
    if sign == "+":
        transaction.writes.append(Write(key, int(value), None))
    elif sign == "=":
        seen = [int(one) for one in value.split(",") if one]
        transaction.reads.append(Read(key, seen, written))
    elif ">" in value:
        before, after = map(int, value.split(">"))
        transaction.reads.append(Read(key, before, written))
        transaction.writes.append(Write(key, after, before))
    else:
        transaction.reads.append(Read(key, int(value), written))
