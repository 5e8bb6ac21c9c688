#!/usr/bin/env python3
"""Runs a replica set of three real servers, takes members away at random, and checks what is kept.

    python3 conformance/replica_set.py --frond target/release/frond --seconds 120

Goal: an unmodified driver, that knows the set by its name, loses no acknowledged write and has none
done twice, whichever member is killed or frozen; and it goes on soon.

Method:
1. Three servers begin on empty data directories. Clients write through the driver with retryable
   writes: each inserts documents, appends numbers to lists (a number that is there twice was done
   twice), and moves money between accounts in transactions (the sum never changes).
2. Again and again one member is killed (SIGKILL) and started again, or frozen (SIGSTOP) for some
   seconds, or the leader is asked to step down. How long it takes until another leads is told.
3. At the end all members run. Each must have every acknowledged insert and append, no number twice,
   the sum of all money, and the same documents as the others: read from each directly.
"""

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from pymongo import MongoClient, ReadPreference
from pymongo.errors import ConnectionFailure, NotPrimaryError, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

SET = "rs0"
MEMBERS = 3
CLIENTS = 6
ACCOUNTS = 8
MONEY = 1000
LIST_LENGTH = 40
KILLED_SECONDS_MAX = 5
FROZEN_SECONDS_MAX = 10
# Waiting for longer than this is a failure: much more than a machine needs that does much else.
SECONDS_MAX = 120


class Wrong(Exception):
    """The set answered what it must not answer, or not in time."""


class Member:
    """A server process over one data directory."""

    def __init__(self, arguments, root, number, port):
        self.arguments = arguments
        self.directory = os.path.join(root, f"member-{number}")
        self.log = open(os.path.join(root, f"member-{number}.log"), "ab")
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            self.arguments + ["--data", self.directory, "--listen", self.address],
            stdout=self.log,
            stderr=self.log,
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def client(self, **options):
        return MongoClient(
            "127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=1000, **options
        )

    def hello(self):
        """What it says of itself; None if it says nothing soon."""
        try:
            with self.client(connectTimeoutMS=300, socketTimeoutMS=300) as client:
                return client.admin.command("hello")
        except PyMongoError:
            return None


class Set:
    """The members."""

    def __init__(self, frond, root):
        key = os.path.join(root, "key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("the members know this, and nobody else does\n")
        ports = free_ports(MEMBERS)
        addresses = ",".join(f"127.0.0.1:{port}" for port in ports)
        arguments = [frond, "serve", "--replica-set", SET, "--members", addresses]
        arguments += ["--cluster-key", key, "--memory", "200MB"]
        self.members = [Member(arguments, root, *it) for it in enumerate(ports)]
        self.uri = f"mongodb://{addresses}/?replicaSet={SET}"
        for member in self.members:
            member.start()

    def client(self):
        """The driver's client; a frozen member is given up after some seconds."""
        return MongoClient(
            self.uri,
            w="majority",
            connectTimeoutMS=2000,
            socketTimeoutMS=5000,
            serverSelectionTimeoutMS=SECONDS_MAX * 1000,
        )

    def leader(self, term=-1, without=None):
        """The member that leads in a later term than that, and its term; None if none says so."""
        for member in self.members:
            if member is without:
                continue  # It doesn't answer: to ask it would take as long as an election.
            hello = member.hello()
            if hello and hello.get("isWritablePrimary"):
                found = int(str(hello["electionId"])[8:], 16)
                if found > term:
                    return member, found
        return None

    def await_leader(self, term=-1, without=None):
        """The same, once there is one; and after how many seconds that was."""
        begun = time.monotonic()
        while True:
            found = self.leader(term, without)
            seconds = time.monotonic() - begun
            if found:
                return *found, seconds
            if seconds > SECONDS_MAX:
                raise Wrong(f"no member leads after {SECONDS_MAX} seconds")


def free_ports(count):
    listeners = [socket.socket() for _ in range(count)]
    for listener in listeners:
        listener.bind(("127.0.0.1", 0))
    ports = sorted(listener.getsockname()[1] for listener in listeners)
    for listener in listeners:
        listener.close()
    return ports


class Writer(threading.Thread):
    """One client: writes its own documents and remembers what it was told."""

    def __init__(self, set_, number, seed, stop):
        super().__init__(daemon=True)
        self.client = set_.client()
        self.number = number
        self.random = random.Random(f"{seed} {number}")
        self.stop = stop
        self.inserted = []
        self.appended = []
        self.sent = 0
        self.moved = 0
        self.slowest = 0.0
        self.fault = None
        self.refused = {}

    def run(self):
        try:
            while not self.stop.is_set():
                begun = time.monotonic()
                try:
                    self.step(self.client.bank)
                except (ConnectionFailure, OperationFailure) as error:
                    # What became of it isn't known, or it wasn't done: it doesn't count.
                    code = getattr(error, "code", None)
                    name = f"{type(error).__name__} {code}"
                    self.refused[name] = self.refused.get(name, 0) + 1
                    if code in (11000, 8, 1):
                        raise
                self.slowest = max(self.slowest, time.monotonic() - begun)
        except Exception as error:  # noqa: BLE001: it is told with the seed
            self.fault = error

    def step(self, bank):
        number = self.sent
        self.sent += 1
        kind = self.random.random()
        if kind < 0.4:
            bank.documents.insert_one({"_id": f"{self.number}-{number}", "text": "x" * 100})
            self.inserted.append(number)
        elif kind < 0.8:
            place = {"_id": f"{self.number}-{number // LIST_LENGTH}"}
            bank.lists.update_one(place, {"$push": {"numbers": number}}, upsert=True)
            self.appended.append(number)
        else:
            self.move(bank)

    def move(self, bank):
        """Money goes from one account to another."""
        one, other = self.random.sample(range(ACCOUNTS), 2)
        amount = self.random.randrange(10)

        def body(session):
            bank.accounts.update_one({"_id": one}, {"$inc": {"money": -amount}}, session=session)
            bank.accounts.update_one({"_id": other}, {"$inc": {"money": amount}}, session=session)

        with self.client.start_session() as session:
            session.with_transaction(
                body, read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority")
            )
        self.moved += 1


def check(member, writers):
    """Checks what one member has; answers with all of it."""
    options = {"read_preference": ReadPreference.SECONDARY_PREFERRED}
    with member.client() as client:
        bank = client.get_database("bank", **options)
        found = {
            name: {it["_id"]: it for it in bank[name].find()}
            for name in ["documents", "lists", "accounts"]
        }
    for writer in writers:
        for number in writer.inserted:
            if f"{writer.number}-{number}" not in found["documents"]:
                raise Wrong(f"{member.address}: the insert {writer.number}-{number} is lost")
        for number in writer.appended:
            numbers = found["lists"].get(f"{writer.number}-{number // LIST_LENGTH}", {})
            if number not in numbers.get("numbers", []):
                raise Wrong(f"{member.address}: the append {writer.number}-{number} is lost")
    for name, numbers in found["lists"].items():
        if len(set(numbers["numbers"])) != len(numbers["numbers"]):
            raise Wrong(f"{member.address}: {name} has a number twice: {numbers['numbers']}")
    money = sum(account["money"] for account in found["accounts"].values())
    if money != ACCOUNTS * MONEY:
        raise Wrong(f"{member.address}: {money} of money instead of {ACCOUNTS * MONEY}")
    return found


def await_same(set_):
    """Waits until all members have come to the same moment."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        hellos = [member.hello() for member in set_.members]
        times = [hello and hello["lastWrite"]["opTime"]["ts"] for hello in hellos]
        if all(times) and len(set(times)) == 1:
            return
        if time.monotonic() > deadline:
            raise Wrong(f"the members are at different moments: {times}")
        time.sleep(0.1)


def disturb(set_, chance, told):
    """Takes a member away for a while; notes how long it takes until another leads."""
    leader, term, _ = set_.await_leader()
    kind = chance.choice(["kill", "kill", "freeze", "step down"])
    member = leader if chance.random() < 0.7 else chance.choice(set_.members)
    if kind == "step down":
        try:
            with leader.client() as client:
                client.admin.command("replSetStepDown", 10)
        except (ConnectionFailure, OperationFailure):
            pass  # Its process begins anew; or it couldn't.
        if set_.leader(term - 1) == (leader, term):
            return
        member = leader
    elif kind == "kill":
        member.kill()
    else:
        member.process.send_signal(signal.SIGSTOP)
    if member is leader:
        away = None if kind == "step down" else member
        _, _, seconds = set_.await_leader(term, away)
        told.append((kind, seconds))
        most = FROZEN_SECONDS_MAX if kind == "freeze" else KILLED_SECONDS_MAX
        if seconds > most:
            raise Wrong(f"{kind}: another leads after {seconds:.1f} seconds")
    time.sleep(chance.random() * 2)
    if kind == "kill":
        member.start()
    elif kind == "freeze":
        member.process.send_signal(signal.SIGCONT)
    time.sleep(chance.random() * 3)


def run(set_, seconds, seed):
    chance = random.Random(seed)
    _, _, began = set_.await_leader()
    print(f"the first leader after {began:.1f} s")
    client = set_.client()
    client.bank.accounts.insert_many([{"_id": it, "money": MONEY} for it in range(ACCOUNTS)])
    refuse_on_secondaries(set_)
    stop = threading.Event()
    writers = [Writer(set_, number, seed, stop) for number in range(CLIENTS)]
    for writer in writers:
        writer.start()
    told = []
    end = time.monotonic() + seconds
    while time.monotonic() < end and not any(writer.fault for writer in writers):
        disturb(set_, chance, told)
    stop.set()
    for writer in writers:
        writer.join(SECONDS_MAX)
        if writer.is_alive():
            raise Wrong("a client hangs")
        if writer.fault:
            raise Wrong(f"client {writer.number}: {writer.fault!r}")
    await_same(set_)
    found = [check(member, writers) for member in set_.members]
    if any(it != found[0] for it in found):
        raise Wrong("the members' documents differ")
    report(told, writers)


def refuse_on_secondaries(set_):
    """A member that doesn't lead takes no writes, and reads only if it may."""
    leader, _, _ = set_.await_leader()
    for member in set_.members:
        if member is leader:
            continue
        with member.client(retryWrites=False) as client:
            try:
                client.bank.documents.insert_one({"_id": "no"})
                raise Wrong("a secondary took a write")
            except NotPrimaryError as error:
                if error.details["code"] != 10107:
                    raise Wrong(f"a secondary refused a write with {error.details}") from error


def report(told, writers):
    for kind in ["kill", "freeze", "step down"]:
        seconds = sorted(it for of, it in told if of == kind)
        if seconds:
            middle, most = seconds[len(seconds) // 2], seconds[-1]
            print(f"{kind}: {len(seconds)} leaders, the next after {middle:.2f} s (median), {most:.2f} s (most)")
    inserts = sum(len(writer.inserted) for writer in writers)
    appends = sum(len(writer.appended) for writer in writers)
    moves = sum(writer.moved for writer in writers)
    print(f"{inserts} inserts, {appends} appends, {moves} transactions acknowledged: 0 lost, 0 twice")
    print(f"the slowest request took {max(writer.slowest for writer in writers):.1f} s")
    refused = {}
    for writer in writers:
        for name, count in writer.refused.items():
            refused[name] = refused.get(name, 0) + count
    print(f"errors that clients saw: {refused or 'none'}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frond", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default=str(random.randrange(1 << 32)))
    arguments = parser.parse_args()
    root = tempfile.mkdtemp(prefix="frond-set-")
    set_ = Set(os.path.abspath(arguments.frond), root)
    try:
        run(set_, arguments.seconds, arguments.seed)
    except Wrong as error:
        print(f"failed with --seed {arguments.seed}: {error}; see {root}", file=sys.stderr)
        return 1
    finally:
        for member in set_.members:
            member.process.send_signal(signal.SIGCONT)
            member.kill()
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
