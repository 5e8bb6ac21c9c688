"""Finds what snapshot isolation forbids in a history of transactions.

Values are never written twice. A key is a list to which values are appended, which tells their order,
or a register, of which each transaction that writes it knows the value before. So each key has one order
of versions, and what a transaction saw is a place in it.

1. *Presence*: what was acknowledged is there, what failed is not, and what is unknown is there wholly or
   not at all; nothing is there twice.
2. *Reads*: each is a place in the order, with the transaction's own writes behind it, and not between two
   writes of another one.
3. *Cycles*: `ww` (wrote the next version), `wr` (read its version), `rw` (read the version before), and
   `time` (ended before the other began). Snapshot isolation holds if and only if there is no cycle without
   two neighbouring `rw` (Cerone and Gotsman, Analysing Snapshot Isolation, 2016, theorem 10). So each
   transaction is two nodes, by how it was reached: from the one that `rw` leads to no `rw` leads on, and
   any cycle is forbidden. Time is a chain of nodes: as many edges as transactions, not their square.

All is linear in the history but for what prints a cycle that was found.
"""

from collections import Counter, defaultdict, deque, namedtuple

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
# `seen` is a list, or the last value of a key (0: none); `written` is how many writes came before.
Read = namedtuple("Read", "key seen written")
# `before` is the value of a register before; of lists nothing.
Write = namedtuple("Write", "key value before")
EXAMPLES = 3


class Transaction:
    """What one client did, and when, as far as it knows."""

    __slots__ = ("begin", "end", "status", "reads", "writes", "is_behind")

    def __init__(self, begin):
        self.begin, self.end, self.status = begin, None, UNKNOWN
        # Whether it read what may be older than its begin, as a secondary's state is.
        self.is_behind = False
        self.reads, self.writes = [], []


class Faults:
    """Kinds of what is wrong, each with its count and some examples."""

    def __init__(self):
        self.counts, self.examples = Counter(), defaultdict(list)

    def add(self, kind, example):
        self.counts[kind] += 1
        if len(self.examples[kind]) < EXAMPLES:
            self.examples[kind].append(example)

    def take(self, other):
        for kind, examples in other.examples.items():
            self.counts[kind] += other.counts[kind]
            self.examples[kind] = (self.examples[kind] + examples)[:EXAMPLES]


def check(history, final):
    """The faults of a history, whose keys hold `final` ({key: list or value}) at its end."""
    faults = Faults()
    versions = Versions(history, final, faults)
    presence(history, versions, faults)
    graph = Graph(len(history))
    for number, transaction in enumerate(history):
        if versions.is_there(number):
            for read in transaction.reads:
                check_read(number, transaction, read, versions, graph, faults)
    for key, order in versions.orders.items():
        numbers = [versions.writer(key, value) for value in order]
        for one, next_one in zip(numbers, numbers[1:]):
            graph.add(one, next_one, "ww")
    kind = graph.cycle()
    if kind is None:
        graph.add_times(history, versions.is_there)
        kind = graph.cycle()
    if kind is not None:
        faults.add(*kind)
    return faults


class Versions:
    """The order of the versions of each key, and which transaction wrote each."""

    def __init__(self, history, final, faults):
        self.history, self.orders, self.places, self.by = history, {}, {}, {}
        self.before = {}
        for number, transaction in enumerate(history):
            for write in transaction.writes:
                self.by[write.key, write.value] = number
                self.before[write.key, write.value] = write.before
        for key, state in final.items():
            order = list(state) if isinstance(state, list) else self.chain(key, state, faults)
            if len(set(order)) != len(order):
                faults.add("doubled", (key, order))
                order = list(dict.fromkeys(order))
            unknown = [value for value in order if (key, value) not in self.by]
            if unknown:
                faults.add("never written", (key, unknown))
            self.orders[key] = [value for value in order if (key, value) in self.by]
            self.places.update({(key, value): at for at, value in enumerate(self.orders[key])})

    def chain(self, key, value, faults):
        """A register's values, from its last one backwards by what each replaced."""
        order = []
        while value:
            order.append(value)
            if len(order) > len(self.by) or (key, value) not in self.by:
                faults.add("never written", (key, value))
                break
            value = self.before[key, value]
        return order[::-1]

    def writer(self, key, value):
        return self.by[key, value]

    def is_there(self, number):
        """Whether the transaction happened."""
        transaction = self.history[number]
        if transaction.status != UNKNOWN:
            return transaction.status == OK
        return any((write.key, write.value) in self.places for write in transaction.writes)


def presence(history, versions, faults):
    for transaction in history:
        there = [(write.key, write.value) in versions.places for write in transaction.writes]
        if transaction.status == OK and not all(there):
            lost = next(write for write, found in zip(transaction.writes, there) if not found)
            is_replaced = lost.before is not None
            faults.add("lost update" if is_replaced else "lost", (lost, transaction.reads))
        elif transaction.status == FAILED and any(there):
            faults.add("failed, but there", transaction.writes)
        elif transaction.status == UNKNOWN and any(there) and not all(there):
            faults.add("half a transaction", transaction.writes)


def check_read(number, transaction, read, versions, graph, faults):
    """Finds the read's place in the order; what it depends on, and what depends on it, go into the graph."""
    key, order = read.key, versions.orders.get(read.key, [])
    written = [write.value for write in transaction.writes[: read.written] if write.key == key]
    if isinstance(read.seen, list):
        place = place_of_list(read, written, order, versions, faults)
    elif written:
        if read.seen != written[-1]:
            faults.add("own write not seen", (read, written))
        place = None
    else:
        place = place_of(key, read.seen, versions, faults)
    if place is None:
        return
    before = versions.writer(key, order[place - 1]) if place else None
    after = versions.writer(key, order[place]) if place < len(order) else None
    if before is not None and before == after and before != number:
        faults.add("intermediate read (G1b)", (read, order[place - 1 : place + 1]))
        return
    if before is not None:
        graph.add(before, number, "wr")
    if after is not None:
        graph.add(number, after, "rw")


def place_of_list(read, written, order, versions, faults):
    if read.seen[len(read.seen) - len(written) :] != written:
        faults.add("own write not seen", (read, written))
        return None
    seen = read.seen[: len(read.seen) - len(written)]
    if seen == order[: len(seen)]:
        return len(seen)
    for value in seen:
        if (read.key, value) not in versions.places:
            return place_of(read.key, value, versions, faults)
    faults.add("lists contradict", (read.key, seen[-5:], order[: len(seen)][-5:]))
    return None


def place_of(key, value, versions, faults):
    if not value:
        return 0
    if (key, value) in versions.places:
        return versions.places[key, value] + 1
    number = versions.by.get((key, value))
    is_failed = number is not None and versions.history[number].status == FAILED
    faults.add("aborted read (G1a)" if is_failed else "read, but not there", (key, value))
    return None


class Graph:
    """Dependencies of transactions; node 2n is transaction n reached by other edges, 2n+1 by `rw`."""

    def __init__(self, count):
        self.count = count
        self.next = [[] for _ in range(2 * count)]

    def add(self, one, other, label):
        if one == other:
            return
        if label == "rw":
            self.next[2 * one].append((2 * other + 1, label))
        else:
            self.next[2 * one].append((2 * other, label))
            self.next[2 * one + 1].append((2 * other, label))

    def add_times(self, history, is_there):
        """A chain of moments: those at which a transaction was acknowledged lead to it, it to later ones."""
        happened = [number for number in range(self.count) if is_there(number)]
        events = [(history[number].begin, 1, number) for number in happened if not history[number].is_behind]
        # What wasn't acknowledged may have ended at any time.
        events += [(history[number].end, 0, number) for number in happened if history[number].status == OK]
        moment = None
        for _, is_begin, number in sorted(events):
            if not is_begin:
                self.next.append([])
                if moment is not None:
                    self.next[moment].append((len(self.next) - 1, "time"))
                moment = len(self.next) - 1
                self.next[2 * number].append((moment, "time"))
                self.next[2 * number + 1].append((moment, "time"))
            elif moment is not None:
                self.next[moment].append((2 * number, "time"))

    def cycle(self):
        """What a cycle is called, and the cycle; nothing if there is none."""
        left = self.without_ends()
        if not left:
            return None
        edges = self.shortest(left)
        labels = [label for _, label in edges]
        numbers = [node // 2 for node, _ in edges if node < 2 * self.count]
        kinds = set(labels) - {"time"}
        if kinds <= {"ww"}:
            name = "G0"
        elif "rw" not in kinds:
            name = "G1c"
        else:
            name = "G-single" if labels.count("rw") == 1 else "G-nonadjacent"
        if "time" in labels:
            name = f"stale ({name} with time)"
        return name, (numbers, "-".join(labels))

    def without_ends(self):
        """What stays if each node that none leads to is taken away (Kahn): nothing, or all cycles."""
        incoming = [0] * len(self.next)
        for edges in self.next:
            for node, _ in edges:
                incoming[node] += 1
        ends = [node for node, count in enumerate(incoming) if count == 0]
        taken = 0
        while ends:
            taken += 1
            for node, _ in self.next[ends.pop()]:
                incoming[node] -= 1
                if incoming[node] == 0:
                    ends.append(node)
        if taken == len(self.next):
            return set()
        return {node for node, count in enumerate(incoming) if count > 0}

    def shortest(self, left):
        """The edges of a cycle: backwards until a node comes again, then the shortest way from it to itself."""
        previous = {}
        for node in left:
            for other, _ in self.next[node]:
                if other in left:
                    previous[other] = node
        node, met = next(iter(left)), set()
        while node not in met:
            met.add(node)
            node = previous[node]
        return self.way(node, left)

    def way(self, start, left):
        reached, queue = {}, deque([start])
        while start not in reached:
            node = queue.popleft()
            for other, label in self.next[node]:
                if other in left and other not in reached:
                    reached[other] = (node, label)
                    queue.append(other)
        edges, node = [], start
        while not edges or node != start:
            edges.append((node, reached[node][1]))
            node = reached[node][0]
        return edges[::-1]
