#!/usr/bin/env python3
"""Has calls of a real server's disk fail, one after the other, beside drivers that write, and checks what it kept.

    python3 conformance/faults.py --frond target/release/frond [--rounds 200 | --minutes 60] [--seed 7]
    python3 conformance/faults.py --frond target/release/frond --data /mnt/small

Goal: whatever fails, every acknowledged write is there after a restart, none is there by half or twice, and
none is there that was told to have failed for sure.

Method, a round, always on the same data directory:
1. A server with a preloaded shim (fault_shim.c) is started, and a process of clients (PyMongo): some insert and
   increment without retries, some with retryable writes, some in withTransaction. Each tells a journal what it
   begins and what it was answered.
2. The round's fault, drawn by the seed: the k-th fsync, fdatasync, write, ftruncate, rename, fallocate, unlink or open on a
   file of the data directory fails with EIO, ENOSPC, EDQUOT or EMFILE: once, some times or from then on; or the server is
   stopped and goes on (SIGSTOP, SIGCONT); or the clients are killed. It may strike while the server starts.
3. The server is killed, sometimes asked to end, and started again without faults; often while the clients go on and try
   again what they were told to.
4. What the journals of all rounds say is compared with what is there. An answer that leaves the outcome open (a
   lost connection, an error that drivers retry or that is labelled UnknownTransactionCommitResult, no answer) allows
   both. Counters must lie between what was acknowledged and that with what is unknown. What a transaction
   wrote must be there wholly or not at all; each index must hold what a scan finds.

A round in which anything is wrong is told with the seed, and ends the test.
"""

import argparse
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pymongo
import pymongo.monitoring
from pymongo import MongoClient
from pymongo.errors import ConnectionFailure, OperationFailure, PyMongoError

from fault_control import FOR_EVER, Faults
from ports import free_port

DATABASE = "faulty"
MANNERS = ["plain", "plain", "retryable", "retryable", "transaction", "transaction"]
# The failures of which one is drawn: kinds of calls, errors.
CALLS = [
    # Three times as often as others: it is what a commit waits for.
    *[(["fdatasync"], [errno.EIO, errno.ENOSPC, errno.EDQUOT])] * 3,
    (["fsync"], [errno.EIO]),
    (["write"], [errno.EIO, errno.ENOSPC, errno.EDQUOT]),
    (["ftruncate"], [errno.EIO, errno.ENOSPC]),
    (["rename"], [errno.EIO, errno.ENOSPC]),
    (["fallocate"], [errno.ENOSPC]),
    (["unlink"], [errno.EIO]),
    (["open"], [errno.EMFILE, errno.ENOSPC, errno.EIO]),
    (["fsync", "fdatasync", "write", "ftruncate", "rename", "open", "unlink"], [errno.EIO, errno.ENOSPC]),
]
# What a server may answer though the write may be there: drivers send it again, or tell that the outcome is unknown.
UNKNOWN_CODES = {6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436, 50}
TIMEOUT_MILLIS = 4_000
# Waiting for longer than this for a server is a failure: on a file system of `power.py`, beside much else, one
# needed more than thirty seconds to start.
SECONDS_MAX = 300


def main():
    options = read_options()
    if options.client:
        return run_clients(options)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}", flush=True)
    dice = random.Random(seed)
    scratch = tempfile.mkdtemp(prefix="frond-faults-", dir=options.scratch)
    deadline = time.monotonic() + 60 * options.minutes if options.minutes else None
    data = options.data and Path(tempfile.mkdtemp(prefix="data-", dir=options.data))
    test = Test(options.frond, options.port, Path(scratch), dice, data)
    done = 0
    try:
        wrong = test.commit_of_unknown_outcome()
        if wrong:
            print("\n".join(wrong))
            return 1
        while done < options.rounds if deadline is None else time.monotonic() < deadline:
            wrong = test.round(done)
            done += 1
            if wrong:
                print("\n".join(wrong[:20]))
                print(f"round {done} of seed {seed} failed; its directory: {scratch}")
                return 1
    except BaseException:
        print(f"round {done} of seed {seed} failed; its directory: {scratch}")
        raise
    print(f"{done} rounds: {test.told()}")
    if test.injected == 0:
        print("nothing failed: the shim doesn't reach this server's calls")
        return 1
    shutil.rmtree(scratch)
    if data:
        shutil.rmtree(data)
    return 0


class Test:
    """A data directory over many rounds, and all that its clients were told."""

    def __init__(self, frond, port, scratch, dice, data=None):
        self.frond, self.port, self.scratch, self.dice = frond, port or free_port(), scratch, dice
        self.data = data or scratch / "data"
        self.faults = Faults(scratch, self.data)
        self.log = (scratch / "log").open("ab")
        self.known = Known()
        self.injected = self.rounds_hit = self.stops = self.kills = self.refused_starts = 0

    def told(self):
        """What was done, in a line."""
        known = self.known
        return (
            f"{self.injected} calls failed in {self.rounds_hit} rounds, {self.stops} stops, {self.kills} "
            f"clients killed, {self.refused_starts} starts refused; {known.acknowledged} writes acknowledged, "
            f"{known.failed} failed for sure, {known.unknown} unknown: 0 lost, 0 doubled, 0 by half, 0 told wrong"
        )

    def round(self, number):
        """Runs one; returns what was wrong."""
        dice, faults = self.dice, self.faults
        fault = dice.choice(["call"] * 8 + ["stop", "kill clients"])
        starts_armed = fault == "call" and dice.random() < 0.15
        described = fault
        if fault == "call":
            described = self.draw_call()
            arm = self.arm
        if starts_armed:
            arm()
        server = self.start(faults.environment())
        if server is None:
            # It said that it can't, or died of the fault: it must start without.
            self.refused_starts += 1
        else:
            journal = self.scratch / f"journal-{number}"
            clients = self.start_clients(number, journal)
            wait(lambda: journal.exists() and journal.stat().st_size > 1_000, 10)
            time.sleep(dice.uniform(0.0, 0.4))
            if fault == "call" and not starts_armed:
                arm()
            elif fault == "stop":
                self.stops += 1
                server.send_signal(signal.SIGSTOP)
                time.sleep(dice.uniform(0.2, 2.0))
                server.send_signal(signal.SIGCONT)
            elif fault == "kill clients":
                self.kills += 1
                clients.kill()
            wait(lambda: fault != "call" or faults.injected() > 0, 2)
            time.sleep(dice.uniform(0.1, 1.0))
            if fault == "call" and dice.random() < 0.5:
                faults.disarm()
                time.sleep(dice.uniform(0.0, 0.5))
            end(server, asks=dice.random() < 0.3)
            if dice.random() < 0.6:
                # Clients that were told nothing, or to try again, try again.
                faults.disarm()
                server = self.start(faults.environment())
                time.sleep(dice.uniform(0.3, 1.5))
                if server is not None:
                    end(server, asks=False)
            clients.kill()
            clients.wait()
            self.known.read(journal)
        self.rounds_hit += faults.injected() > 0
        self.injected += faults.injected()
        print(f"round {number}: {described}: {faults.injected()} failed ({faults.failed()})", flush=True)
        faults.disarm()
        faults.count([])
        return self.verify()

    def commit_of_unknown_outcome(self):
        """The sync of a transaction's commit fails, and the server is started again while its driver tries.

        The log has the transaction, so a client that ran it again would apply it twice. Returns what was wrong."""
        wrong = []
        for acts in ("fdatasync", "write"):
            server = self.start(self.faults.environment())
            answers = CommitAnswers()
            client = MongoClient(
                "127.0.0.1",
                self.port,
                directConnection=True,
                event_listeners=[answers],
                heartbeatFrequencyMS=500,
            )
            counter = client[DATABASE].once
            counter.update_one({"_id": acts}, {"$set": {"n": 0}}, upsert=True)
            done = []

            def increment():
                def body(session):
                    counter.update_one({"_id": acts}, {"$inc": {"n": 1}}, session=session)

                try:
                    with client.start_session() as session, pymongo.timeout(15):
                        session.with_transaction(body)
                    done.append("done")
                except PyMongoError as error:
                    done.append(error)

            thread = threading.Thread(target=increment)
            self.faults.arm([acts], errno.EIO, name="log")
            thread.start()
            wait(lambda: self.faults.injected() > 0, 10)
            self.injected += self.faults.injected()
            # The driver asks the closed server again, when it has looked whether it is there.
            wait(lambda: answers.count > 1 or done, 8)
            end(server, asks=False)
            self.faults.disarm()
            server = self.start(os.environ)
            thread.join()
            count = counter.find_one({"_id": acts})["n"]
            told = done[0] if isinstance(done[0], str) else f"{type(done[0]).__name__}: {done[0]}"
            print(f"a commit whose {acts} failed: applied {count} times, the driver says: {told[:100]}", flush=True)
            if count > 1 or (count == 0 and told == "done"):
                wrong.append(f"a transaction whose {acts} failed was applied {count} times, told: {told}")
            client.close()
            end(server, asks=True)
        return wrong

    def draw_call(self):
        """Draws which calls fail, and how; tells it."""
        dice = self.dice
        kinds, errors = dice.choice(CALLS)
        error = dice.choice(errors)
        few = kinds in (["rename"], ["ftruncate"], ["unlink"], ["open"], ["fsync"], ["fallocate"])
        first = dice.randint(1, 3 if few else 30)
        count = dice.choice([1, 1, 1, 2, 5, FOR_EVER])
        torn = dice.random() < 0.5
        self.arm = lambda: self.faults.arm(kinds, error, first, count, torn=torn)
        times = "for ever" if count == FOR_EVER else f"{count} times"
        return f"{'/'.join(kinds)} number {first}, {errno.errorcode[error]} {times}{', torn' if torn else ''}"

    def start(self, environment):
        """Starts a server, and waits until it answers; `None` if it ended by itself."""
        address = f"127.0.0.1:{self.port}"
        command = [self.frond, "serve", "--data", str(self.data), "--listen", address, "--memory", "80MB"]
        server = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)
        deadline = time.monotonic() + SECONDS_MAX
        client = MongoClient(address, directConnection=True, serverSelectionTimeoutMS=1_000)
        while server.poll() is None:
            try:
                client.admin.command("ping")
                client.close()
                return server
            except PyMongoError:
                if time.monotonic() > deadline:
                    server.kill()
                    raise
        client.close()
        return None

    def start_clients(self, number, journal):
        command = [sys.executable, __file__, "--client", str(journal), "--port", str(self.port)]
        command += ["--seed", str(self.dice.randrange(2**32)), "--rounds", str(number)]
        return subprocess.Popen(command, stdout=self.log, stderr=self.log)

    def verify(self):
        """Starts a server without faults, and compares."""
        server = self.start(os.environ)
        if server is None:
            return [f"the server doesn't start without faults: see {self.scratch / 'log'}"]
        patience = {"serverSelectionTimeoutMS": SECONDS_MAX * 1_000, "connectTimeoutMS": SECONDS_MAX * 1_000}
        client = MongoClient("127.0.0.1", self.port, directConnection=True, **patience)
        wrong = self.known.compare(client[DATABASE])
        client.close()
        server.terminate()
        if server.wait(SECONDS_MAX) != 0:
            wrong.append(f"the server ended with {server.returncode}")
        return wrong


def end(server, asks):
    """Kills a server; `asks` it to end before."""
    if asks:
        server.terminate()
        try:
            server.wait(3)
        except subprocess.TimeoutExpired:
            pass
    server.kill()
    server.wait()


def wait(condition, seconds):
    """Waits until `condition` is true, no longer than `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)


class CommitAnswers(pymongo.monitoring.CommandListener):
    """Counts what was answered to commits."""

    def __init__(self):
        self.count = 0

    def started(self, event):
        pass

    def succeeded(self, event):
        self.count += event.command_name == "commitTransaction"

    failed = succeeded


class Known:
    """What clients were told: of inserts and transactions by `_id`, of increments by counter."""

    def __init__(self):
        self.acknowledged = self.failed = self.unknown = 0
        # What must be there, may be there, and mustn't be there: since the last comparison.
        self.there, self.perhaps, self.absent = set(), set(), set()
        self.count_there = self.count_perhaps = 0
        self.counters = {}
        self.both = set()
        self.was_indexed = False

    def read(self, journal):
        """Reads a journal: lines of `begin|ok|no|unknown KIND ID`; a last line may be cut."""
        begun = {}
        lines = journal.read_text().splitlines() if journal.exists() else []
        for line in lines:
            parts = line.split()
            if len(parts) == 4 and parts[3] == ".":
                begun[(parts[1], parts[2])] = parts[0]
        for (kind, name), answer in begun.items():
            self.acknowledged += answer == "ok"
            self.failed += answer == "no"
            self.unknown += answer in ("begin", "unknown")
            if kind == "inc":
                counter = self.counters.setdefault(name.split(":")[0], [0, 0])
                counter[0] += answer == "ok"
                counter[1] += answer != "no"
            else:
                group = {"ok": self.there, "no": self.absent}.get(answer, self.perhaps)
                group.add(name)
                if kind == "both":
                    self.both.add(name)

    def compare(self, database):
        """What is wrong in `database`. What was unknown is known afterwards."""
        wrong = []
        found = {document["_id"]: document["tag"] for document in database.things.find({}, {"tag": 1})}
        wrong += [f"lost: {name}" for name in self.there if name not in found]
        wrong += [f"told to have failed, but there: {name}" for name in self.absent if name in found]
        nobodys = set(found) - self.there - self.perhaps
        wrong += [f"no client wrote {name}" for name in nobodys - self.absent]
        twice = {document["_id"] for document in database.twins.find({}, {"_id": 1})}
        wrong += [f"half of transaction {name}" for name in self.both if (name in found) != (name in twice)]
        wrong += [f"half of transaction {name}" for name in twice - self.both]
        # On a busy machine rounds may pass before the client that makes the index is served.
        is_indexed = "tag_1" in database.things.index_information()
        wrong += ["the index tag_1 is gone"] if self.was_indexed and not is_indexed else []
        self.was_indexed = is_indexed
        for tag in range(5) if is_indexed else []:
            by_index = {it["_id"] for it in database.things.find({"tag": tag}, {"_id": 1}).hint("tag_1")}
            by_scan = {name for name, its in found.items() if its == tag}
            wrong += [f"tag {tag}: index and scan differ: {name}" for name in by_index ^ by_scan]
        counted = {document["_id"]: document["n"] for document in database.counters.find({})}
        for name, (least, most) in self.counters.items():
            count = counted.get(name, 0)
            if not least <= count <= most:
                wrong.append(f"counter {name} is {count}: {least} acknowledged, {most} sent")
            self.counters[name] = [count, count]
        self.there, self.perhaps = set(found), set()
        self.absent = set()
        self.both &= set(found)
        return wrong


class Journal:
    """Where clients tell what they do: each line is one write, so that none is cut by a kill."""

    def __init__(self, path):
        self.file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)

    def tell(self, what, kind, name):
        os.write(self.file, f"{what} {kind} {name} .\n".encode())

    def run(self, kind, name, act):
        """Does it, and tells and returns what came of it."""
        self.tell("begin", kind, name)
        answer = "ok"
        try:
            act()
        except PyMongoError as error:
            answer = "unknown" if is_unknown(error) else "no"
        self.tell(answer, kind, name)
        return answer


def is_unknown(error):
    """Whether a driver's user can't know if the write was done."""
    if isinstance(error, ConnectionFailure) or error.timeout:
        return True
    labels = ("RetryableWriteError", "UnknownTransactionCommitResult")
    if any(error.has_error_label(label) for label in labels):
        return True
    return isinstance(error, OperationFailure) and error.code in UNKNOWN_CODES


def run_clients(options):
    """The process of clients: writes until it is killed."""
    journal = Journal(options.client)
    for position, manner in enumerate(MANNERS):
        name = f"{options.rounds}-{position}"
        dice = random.Random(f"{options.seed} {position}")
        threading.Thread(target=write, args=(options.port, manner, name, dice, journal), daemon=True).start()
    time.sleep(600)
    return 0


def write(port, manner, name, dice, journal):
    """One client."""
    client = MongoClient(
        "127.0.0.1",
        port,
        directConnection=True,
        retryWrites=manner != "plain",
        timeoutMS=TIMEOUT_MILLIS,
        serverSelectionTimeoutMS=TIMEOUT_MILLIS,
    )
    database = client[DATABASE]
    counter = name.split("-")[1]
    database.things.create_index("tag") if counter == "0" else None
    for number in range(10**9):
        own = f"{name}-{number}"
        document = {"_id": own, "tag": dice.randrange(5), "payload": dice.randbytes(dice.choice([10, 500, 9_000]))}
        increment = ({"_id": counter}, {"$inc": {"n": 1}})
        if manner == "transaction":
            def both(session):
                database.things.insert_one(document, session=session)
                database.twins.insert_one({"_id": own}, session=session)
                database.counters.update_one(*increment, upsert=True, session=session)

            def act():
                with client.start_session() as session, pymongo.timeout(TIMEOUT_MILLIS / 1000):
                    session.with_transaction(both)

            journal.tell("begin", "inc", f"{counter}:{own}")
            answer = journal.run("both", own, act)
            journal.tell(answer, "inc", f"{counter}:{own}")
        elif dice.random() < 0.5:
            answer = journal.run("insert", own, lambda: database.things.insert_one(document))
        else:
            update = lambda: database.counters.update_one(*increment, upsert=True)
            answer = journal.run("inc", f"{counter}:{own}", update)
        if answer != "ok":
            time.sleep(0.05)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", default="target/release/frond")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--minutes", type=float, help="instead of rounds")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--port", type=int, help="the server's; a free one")
    parser.add_argument("--scratch", help="where all is written")
    parser.add_argument("--data", help="where the data directory lies instead: what fills soon, say")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
