#!/usr/bin/env python3
"""Checks the history of many clients' transactions: is it one that snapshot isolation allows?

    python3 conformance/history.py --frond target/release/frond --seconds 3600
    ... --members 3            of a replica set, whose leader is killed again and again?
    ... --self-test            and are faults found that are put in?
    ... --inject half          one of them

Goal: whatever clients see over the wire, through kills, faults and retries, fits into one order of
transactions, each of which sees those before it wholly and nothing else, and at least those that had been
acknowledged when it began.

Method: eight clients append to lists and replace registers, in transactions over two branches and alone
(then the driver sends again what wasn't answered). They read by `_id`, by an index that each write moves
entries of, from that index alone, in snapshot sessions, and in the commit that they just made. Some
transactions are aborted. Meanwhile fail points close connections, refuse, delay and report what was done as
not done; the server is killed and started again. After some seconds all pause; `history_check.py` finds
lost, doubled and half transactions, reads of what was aborted, lost updates, and cycles (G0, G1a to G1c,
G-single, ...). Then other keys are next, so that memory is bounded. At the end all is read once more.

Of a set, writes ask for a majority, and each kill waits until another member leads: what was acknowledged
must be there under all later leaders, and at the end on each member. Snapshots are read from secondaries,
too: these may be older than what was acknowledged, and are whole.

Injected: a write that is *rolled-back* after it was acknowledged, a *lost* update (a transaction writes a
register outside of itself), *half* a transaction, visible before it commits, a *stale* snapshot (a read
outside of it), a retry that is *doubled*, and a *late-index* entry (an answer from the index that was true
before).
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from pymongo import MongoClient
from pymongo.errors import ConnectionFailure, PyMongoError

import history_cases
from history_check import FAILED, OK, UNKNOWN, Faults, check
from history_client import BRANCHES, COMMIT_TRIES, KEYS, Client, Keys, list_of, value_of
from ports import free_port
from replica_set import MEMBERS, PLAIN, Set

CLIENTS = 8
EPOCH_SECONDS = 15
# A set's leader is killed after so long.
LEADS_SECONDS = 2, 6
SECONDS_MAX = 300
FOUND_SECONDS_MAX = 120
BEHIND_SECONDS_MAX = 60
INJECTED = {
    "rolled-back": ("lost", "read, but not there"),
    "lost": ("lost update",),
    "half": ("failed, but there", "half a transaction", "aborted read (G1a)", "G-single"),
    "stale": ("G-single", "intermediate read (G1b)", "G-nonadjacent", "own write not seen"),
    "doubled": ("doubled",),
    "late-index": ("G-single", "G-nonadjacent", "own write not seen"),
}
WRITES_FAIL = ["update", "findAndModify", "commitTransaction"]
# From the first, drivers take it that the server is gone, and wait; from the second they don't.
NOT_PRIMARY, TOO_LONG = 91, 262
# A driver that takes it that the server is gone asks no sooner than with its next heartbeat.
CONNECTION = {"heartbeatFrequencyMS": 500, "serverSelectionTimeoutMS": SECONDS_MAX * 1000}
FAIL_POINTS = [
    {"failCommands": [*WRITES_FAIL, "find"], "closeConnection": True},
    {"failCommands": WRITES_FAIL, "errorCode": NOT_PRIMARY, "errorLabels": ["RetryableWriteError"]},
    {"failCommands": WRITES_FAIL, "errorCode": TOO_LONG, "errorLabels": ["RetryableWriteError"]},
    {"failCommands": [*WRITES_FAIL, "find"], "blockConnection": True, "blockTimeMS": 100},
    {
        "failCommands": WRITES_FAIL,
        "writeConcernError": {"code": TOO_LONG, "errmsg": "too long"},
        "errorLabels": ["RetryableWriteError"],
    },
]


class Server:
    """A server that can be killed, and comes back at the same address."""

    has_secondaries = False

    def __init__(self, frond, directory):
        self.port = free_port()
        self.log = open(f"{directory}/log", "ab")
        listen = f"127.0.0.1:{self.port}"
        self.command = [frond, "serve", "--data", f"{directory}/data", "--listen", listen]
        self.command.append("--enable-test-commands")
        self.kills = 0
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)

    def kill(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the server ended by itself with {self.process.returncode}")
        self.process.kill()
        self.process.wait()
        self.kills += 1
        self.start()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=SECONDS_MAX)

    def connect(self):
        return MongoClient("127.0.0.1", self.port, directConnection=True, **CONNECTION)

    def each(self):
        """A connection to each server that there is."""
        return [self.connect()]


class Members:
    """A replica set whose leader can be killed; another one leads then."""

    has_secondaries = True

    def __init__(self, frond, directory):
        self.set, self.kills = Set(frond, directory, PLAIN, ["--enable-test-commands"]), 0
        self.set.await_leader()

    def kill(self):
        ended = [it.address for it in self.set.members if it.process.poll() is not None]
        if ended:
            raise SystemExit(f"{ended} ended by themselves")
        leader, term, _ = self.set.await_leader()
        leader.kill()
        self.set.await_leader(term, leader)
        self.kills += 1
        leader.start()

    def end(self):
        for member in self.set.members:
            member.process.send_signal(signal.SIGTERM)
        for member in self.set.members:
            member.process.wait(timeout=SECONDS_MAX)

    def connect(self):
        return MongoClient(self.set.uri, w="majority", **CONNECTION)

    def each(self):
        return [member.client(**CONNECTION) for member in self.set.members]


class Run:
    """Epochs on one server or set, each with keys of its own."""

    def __init__(self, servers, seed, inject=None):
        self.server, self.keys = servers, Keys()
        self.chance, self.inject = random.Random(seed), inject
        self.connection = self.server.connect()
        self.prepare()
        seeds = [f"{seed} {number}" for number in range(CLIENTS)]
        self.clients = [Client(self.server, self.keys, seed, inject) for seed in seeds]
        self.faults, self.digests = Faults(), []
        self.counts = {OK: 0, FAILED: 0, UNKNOWN: 0}
        self.reads = self.writes = self.failing = 0
        self.checked_seconds = 0.0

    def prepare(self):
        database = self.connection[BRANCHES[0]]
        for name in ("lists", "registers"):
            database[name].create_index([("g", 1), ("n", 1), ("last", 1)], name="all")
        database.command("frondCommit", message="begin", author="history")
        database.command("frondBranch", 1, branch="side")

    def epoch(self, seconds):
        """All clients work; then they pause, and what they saw is checked."""
        self.keys.renew()
        first = min(self.keys.active)
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=client.run, args=(until,)) for client in self.clients]
        for thread in threads:
            thread.start()
        self.disturb(until)
        for thread in threads:
            thread.join()
        for connection in self.server.each():
            self.fail({}, "off", connection)
            connection.close()
        begin = time.monotonic()
        self.verify(first)
        self.checked_seconds += time.monotonic() - begin

    def disturb(self, until):
        """Fail points now and then, and a kill in most epochs; of a set's leaders, several."""
        if self.inject:
            return time.sleep(max(0, until - time.monotonic()))
        is_set = self.server.has_secondaries
        runs_seconds = LEADS_SECONDS if is_set else (2, EPOCH_SECONDS * 1.2)
        killed = time.monotonic() + self.chance.uniform(*runs_seconds)
        while time.monotonic() < until:
            time.sleep(self.chance.uniform(0.1, 1.5))
            if time.monotonic() > killed:
                self.server.kill()
                killed = time.monotonic() + self.chance.uniform(*runs_seconds) if is_set else float("inf")
            self.fail(self.chance.choice(FAIL_POINTS), {"times": self.chance.randint(1, 3)})

    def fail(self, data, mode, connection=None):
        connection = self.connection if connection is None else connection
        command = {"configureFailPoint": "failCommand", "mode": mode}
        for _ in range(COMMIT_TRIES):
            try:
                connection.admin.command({**command, "data": data} if data else command)
                self.failing += bool(data)
                return
            except ConnectionFailure:
                pass
        raise SystemExit("the server doesn't come back")

    def verify(self, first):
        history = [transaction for client in self.clients for transaction in client.history]
        final, digest = self.final(first, max(self.keys.used))
        self.digests.append((first, max(self.keys.used), digest))
        found = check(history, final)
        for client in self.clients:
            if client.fault:
                found.add("client", client.fault)
            client.history, client.earlier, client.fault = [], {}, None
        for transaction in history:
            self.counts[transaction.status] += 1
            self.reads += len(transaction.reads)
            self.writes += len(transaction.writes)
        self.faults.take(found)

    def final(self, first, last, connection=None):
        """What the keys of these groups hold, by a scan and by the index, perhaps on a member; and its digest."""
        reader = self.connection if connection is None else connection
        final, digest = {}, hashlib.sha256()
        for branch in BRANCHES:
            for name in ("lists", "registers"):
                groups = {"g": {"$gte": first, "$lte": last}}
                find = reader[branch][name].find
                found = sorted(find({"_id": {"$gte": first * KEYS, "$lt": (last + 1) * KEYS}}), key=by_id)
                if found != sorted(find(groups, hint="all"), key=by_id):
                    # A member may have got more meanwhile; it is read again.
                    digest.update(b"the index has others")
                    if connection is None:
                        self.faults.add("the index has other documents", (branch, name, first))
                of = list_of if name == "lists" else value_of
                final.update({(branch, name[:-1], each["g"], each["n"]): of(each) for each in found})
                digest.update(repr(found).encode())
        return final, digest.digest()

    def end(self):
        """Reads all that was there once more, after a last kill."""
        self.server.kill()
        for first, last, digest in self.digests:
            if self.final(first, last)[1] != digest:
                self.faults.add("changed later", (first, last))
        for connection in self.server.each():
            if not self.comes_to(connection):
                self.faults.add("a member has something else", connection.address)
            connection.close()
        if self.server.has_secondaries and not any(client.behind for client in self.clients):
            self.faults.add("no secondary was read", self.counts)
        for client in self.clients:
            client.connection.close()
        self.connection.close()
        self.server.end()

    def comes_to(self, connection):
        """Whether a member, which may be behind, has what was read before, soon."""
        until = time.monotonic() + BEHIND_SECONDS_MAX
        while time.monotonic() < until:
            try:
                if all(self.final(first, last, connection)[1] == digest for first, last, digest in self.digests):
                    return True
            except PyMongoError:
                pass  # It begins, or hasn't heard of the index yet.
            time.sleep(0.5)
        return False

    def told(self):
        commits = sum(client.commits for client in self.clients)
        behind = sum(client.behind for client in self.clients)
        return (
            f"{sum(self.counts.values())} transactions ({self.counts[OK]} committed, {self.counts[FAILED]} "
            f"failed, {self.counts[UNKNOWN]} unknown) in {len(self.digests)} epochs, {self.reads} reads, "
            f"{self.writes} writes, {commits} commits of branches, {behind} snapshots of secondaries, "
            f"{self.server.kills} kills, {self.failing} fail points, checked in {self.checked_seconds:.1f} s: "
            f"{dict(self.faults.counts) or 'no anomaly'}"
        )


def by_id(document):
    return document["_id"]


def start(options, directory):
    kind = Server if options.members == 1 else Members
    return kind(options.frond, directory)


def run(options, directory, seed):
    """The clean run; whether nothing was found."""
    work = Run(start(options, directory), seed)
    until = time.monotonic() + options.seconds
    said = time.monotonic()
    while time.monotonic() < until and not work.faults.counts:
        work.epoch(min(EPOCH_SECONDS, max(1, until - time.monotonic())))
        if time.monotonic() > said + 60:
            said = time.monotonic()
            print(work.told(), flush=True)
    work.end()
    print(work.told(), flush=True)
    for kind, examples in work.faults.examples.items():
        print(f"FAILED: {kind}", *examples, sep="\n    ")
    return not work.faults.counts


def finds(options, directory, seed, fault):
    """Whether a fault that is put in is found, within some epochs."""
    work = Run(start(options, directory), seed, inject=fault)
    begin, expected = time.monotonic(), INJECTED[fault]
    while not any(work.faults.counts[kind] for kind in expected):
        if time.monotonic() > begin + FOUND_SECONDS_MAX:
            break
        work.epoch(1)
    work.end()
    is_found = any(work.faults.counts[kind] for kind in expected)
    print(f"{fault}: {'found' if is_found else 'FAILED: not found'}: {work.told()}", flush=True)
    return is_found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frond", default="target/release/frond")
    parser.add_argument("--members", type=int, choices=[1, MEMBERS], default=1, help="of a replica set")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--inject", choices=INJECTED, help="put in this fault, which must be found")
    parser.add_argument("--self-test", action="store_true", help="put in each fault, too")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    base = tempfile.mkdtemp(prefix="frond-history-")
    right = []
    if options.self_test:
        wrong = history_cases.wrong()
        right.append(not wrong)
        print(f"{len(history_cases.CASES)} histories of known faults:", *wrong or ["all found"], sep="\n    ")
    if not options.inject:
        right.append(run(options, make(base, "clean"), options.seed))
    for fault in INJECTED if options.self_test else filter(None, [options.inject]):
        right.append(finds(options, make(base, fault), options.seed, fault))
    if all(right):
        shutil.rmtree(base)
    else:
        print(f"the data directories and the servers' logs stay in {base}")
    print(f"{right.count(True)} passed, {right.count(False)} failed")
    return 0 if all(right) else 1


def make(base, name):
    directory = f"{base}/{name}"
    os.mkdir(directory)
    return directory


if __name__ == "__main__":
    sys.exit(main())
