#!/usr/bin/env python3
"""Runs a replica set of three real servers, takes members away at random, and checks what is kept.

    python3 conformance/replica_set.py --frond target/release/frond --seconds 120
    sudo python3 conformance/replica_set.py --frond ... --network --small-disks
    python3 conformance/replica_set.py --frond ... --auth
    python3 conformance/replica_set.py --frond ... --lost-disks
    python3 conformance/replica_set.py --frond ... --change-members
    python3 conformance/replica_set.py --frond ... --change-streams
    python3 conformance/replica_set.py --frond ... --versions
    python3 conformance/replica_set.py --frond ... --backups
    python3 conformance/replica_set.py --frond ... --other-frond PATH     another build, beside that
    python3 conformance/replica_set.py --frond ... --seconds 3600 --pauses 0 --outages FILE
    python3 conformance/replica_set.py --frond ... --driver node --driver go      with other drivers, too

Goal: an unmodified driver, that knows the set by its name, loses no acknowledged write and has none
done twice, whichever member is killed or frozen; and it goes on soon.

Method:
1. Three servers begin on empty data directories. Clients write through the driver with retryable
   writes: each inserts documents, appends numbers to lists (a number that is there twice was done
   twice), and moves money between accounts in transactions (the sum never changes).
2. Again and again one member is killed (SIGKILL) and started again, or frozen (SIGSTOP) for some
   seconds, or the leader is asked to step down. With --network it may be cut off from the others,
   both ways, or only what it sends, or only what they send; with --small-disks its disk may be full
   for a while: if it leads, a member that has room leads then. How long it takes until another leads
   is told.
   With --other-frond a member that starts again is of one build or the other, as while a set is upgraded.
3. At the end all members run. Each must have every acknowledged insert and append, no number twice,
   the sum of all money, and the same documents as the others: read from each directly.
4. Each member's data directory is removed while it is down (with --lost-disks): the new one must get
   all that the others have, and count as a member again. At the end no first directory is left.
5. A member is down for longer than the others' logs reach back: they must stay short, and the member
   must get what it lacks from what they have.
6. The last bytes of a member's log are cut off, so that it has lost what it had acknowledged: it must
   doubt, and get it again. Then all members are killed and two of them have lost their ends: they must
   begin by themselves.
7. With --change-members two members are added and two removed, of which one leads first and one is
   down. Those that are must be told by all, those that were must say so, and none may be disturbed.
   One is hidden and never leads; one has no vote; reads by tag come to the one that has it.
8. With --change-streams clients follow all of it: one reads from the leader, one from secondaries, one
   from any, and the last begins at a moment that is long over. The driver goes on behind the last
   event where a member went away. All must be told the same, in the same order, each acknowledged
   write once; and what is told must amount to what is there, so that nothing else was.
9. With --versions more is recorded as a version than an entry of the members' log carries, and again
   after a small change, and on a new branch: only what is new may travel. An index of more than an
   entry is built. Leaders are killed while what a version needs is half-staged: the next one must let
   go of it, and record the version. Another server's database is cloned and fetched from. All members
   must tell the same versions, with the same hashes.
10. With --versions a document is erased from all versions too, while one member is down: soon its
   bytes must be in no file of those that run, and of the other's soon after it is back.
11. With --backups a secondary is backed up while clients write, the leader is killed, and it is killed
   itself: a backup that was told as made must be whole, have all that was acknowledged before it began, and
   be of one moment. It is restored, and a new set of three clones it: its members must have the same.
12. A byte in the middle of a member's log is changed while it is down: it must say so, be told by the
   others to recover, be read by no client, and recover as soon as there is a leader.
13. A leader that reaches no other member answers no linearizable read.
14. `frond replicas --compare` must say that all members hold the same, and that one is away which is.
"""

import argparse
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

from bson import Timestamp, decode, encode
from pymongo import MongoClient, ReadPreference
from pymongo.errors import ConnectionFailure, NotPrimaryError, OperationFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.read_preferences import Secondary
from pymongo.write_concern import WriteConcern

from fail_over import DRIVERS, Clients, commands
from namespaces import PORT, Network, SmallDisk
from ports import free_port, free_ports

SET = "rs0"
MEMBERS = 3
CLIENTS = 6
# On a machine that does much else, one that leads may need longer to say so.
HELLO_MS, BUSY_HELLO_MS = 300, 2000
ACCOUNTS = 8
MONEY = 1000
LIST_LENGTH = 40
# How often it is looked whether another leads.
LOOK_SECONDS = 0.02
KILLED_SECONDS_MAX = 5
FROZEN_SECONDS_MAX = 10
SMALL_DISK_MEGABYTES = 400
# A log is cut where that gives back 128 MB.
LOG_MEGABYTES_MAX = 100
AWAY_MEGABYTES = 300
# An entry carries 48 MiB; more is staged in parts of 16.
VERSION_MEGABYTES = 60
STAGED_MEGABYTES = 18
ATTEMPTS_MAX = 5
INDEXED, INDEXED_LETTERS = 60_000, 1_000
# What a member that was removed answers to `replSetGetStatus`.
NOT_A_MEMBER = 93
# What a member's log says.
LETS_GO = "removed what a former leader left half-staged"
DOUBTS, HAS_END = "the end of its log may be lost", "it has the end of its log again"
# What clients follow, and what they are told last.
COLLECTIONS = ["documents", "lists", "accounts"]
FOLLOWED = {"ns.coll": {"$in": COLLECTIONS}, "documentKey": {"$exists": True}}
LAST = "the last one"
USER, PASSWORD = "replica", "correct horse"
# The file of the token with which members are backed up, beside their directories.
TOKENS = "tokens"
# The histogram of outages has these bounds, in seconds.
OUTAGE_BOUNDS = [0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10]
# The options of a set with nothing of what can be asked for.
PLAIN = argparse.Namespace(network=False, small_disks=False, auth=False, backups=False, other_frond=None)
# Waiting for longer than this is a failure: much more than a machine needs that does much else.
SECONDS_MAX = 120


def message(body):
    """A command as a message of MongoDB's wire protocol (OP_MSG)."""
    content = struct.pack("<ib", 0, 0) + encode(body)
    return struct.pack("<iiii", HEADER_BYTES + len(content), 1, 0, 2013) + content


HEADER_BYTES, BODY_OFFSET = 16, 5
HELLO = message({"hello": 1, "$db": "admin"})


def received(stream, count):
    """So many bytes of a stream."""
    found = b""
    while len(found) < count:
        part = stream.recv(count - len(found))
        if not part:
            raise ConnectionResetError("the stream has ended")
        found += part
    return found


class Wrong(Exception):
    """The set answered what it must not answer, or not in time."""


class Member:
    """A server process over one data directory."""

    # It answers so soon, or isn't there.
    hello_ms = HELLO_MS

    def __init__(self, arguments, root, number, address, disk):
        self.arguments = arguments
        self.number = number
        self.directory = os.path.join(root, f"member-{number}", "data")
        self.disk = SmallDisk(os.path.dirname(self.directory), SMALL_DISK_MEGABYTES) if disk else None
        self.log_path = os.path.join(root, f"member-{number}.log")
        self.log = open(self.log_path, "ab")
        self.address = address
        self.login = {}
        self.process = None
        # Where it is backed up from, if it is.
        self.remote = None
        # Programs of which it takes one each time that it starts.
        self.builds = []

    def start(self):
        remote = ["--remote-listen", self.remote, "--remote-token-file", TOKENS] if self.remote else []
        arguments = self.arguments
        if self.builds:
            build = random.choice(self.builds)
            arguments = [build if it in self.builds else it for it in arguments]
        self.process = subprocess.Popen(
            arguments + ["--data", self.directory, "--listen", self.address, *remote],
            cwd=os.path.dirname(self.log_path),
            stdout=self.log,
            stderr=self.log,
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def client(self, **options):
        options = {"serverSelectionTimeoutMS": 1000, **self.login, **options}
        return MongoClient(self.address, directConnection=True, **options)

    def hello(self):
        """What it says of itself; None if it says nothing soon. A driver would add its own time."""
        host, port = self.address.split(":")
        try:
            with socket.create_connection((host, int(port)), Member.hello_ms / 1000) as stream:
                stream.sendall(HELLO)
                answer = received(stream, HEADER_BYTES)
                (length,) = struct.unpack_from("<i", answer)
                return decode(received(stream, length - HEADER_BYTES)[BODY_OFFSET:])
        except OSError:
            return None


class Set:
    """The members."""

    def __init__(self, frond, root, options, more=()):
        key = os.path.join(root, "key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("the members know this, and nobody else does\n")
        self.network = Network(MEMBERS) if options.network else None
        if self.network:
            addresses = [f"{address}:{PORT}" for address in self.network.addresses]
        else:
            addresses = [f"127.0.0.1:{port}" for port in free_ports(MEMBERS)]
        arguments = [os.path.abspath(frond), "serve", "--replica-set", SET]
        arguments += ["--cluster-key", key, "--memory", "200MB"]
        arguments += ["--set-log-max", f"{LOG_MEGABYTES_MAX}MB"]
        arguments += ["--auth"] if options.auth else []
        arguments += ["--insecure-no-auth"] if self.network else []
        arguments += more
        within = [self.network.within(it) if self.network else [] for it in range(MEMBERS)]
        self.root, self.arguments, self.addresses = root, arguments, addresses
        first = [*arguments, "--members", ",".join(addresses)]
        self.former = []
        self.members = [
            Member(within[number] + first, root, number, address, options.small_disks)
            for number, address in enumerate(addresses)
        ]
        if options.backups:
            with open(os.path.join(root, TOKENS), "w") as file:
                file.write("a-token-that-nobody-guesses\n")
            for member, port in zip(self.members, free_ports(MEMBERS)):
                member.remote = f"127.0.0.1:{port}"
        if options.other_frond:
            for member in self.members:
                member.builds = [os.path.abspath(frond), os.path.abspath(options.other_frond)]
        self.uri = f"mongodb://{','.join(addresses)}/?replicaSet={SET}"
        self.login = {}
        # Clients in other languages, if there are any.
        self.drivers = None
        for member in self.members:
            member.start()

    def make_user(self):
        """The first user; who is asked for from then on."""
        leader, _, _ = self.await_leader()
        with leader.client() as client:
            client.admin.command("createUser", USER, pwd=PASSWORD, roles=["root"])
        self.login = {"username": USER, "password": PASSWORD}
        for member in self.members:
            member.login = self.login

    def add(self):
        """Starts one more server, that the set doesn't have yet."""
        port = free_port()
        address = f"127.0.0.1:{port}"
        arguments = [*self.arguments, "--members", ",".join([*self.addresses, address])]
        member = Member(arguments, self.root, len(self.members) + len(self.former), address, None)
        member.login = self.login
        member.start()
        self.members.append(member)
        return member

    def remove(self):
        if self.drivers:
            self.drivers.kill()
        for member in self.members + self.former:
            member.process.send_signal(signal.SIGCONT)
            member.kill()
            if member.disk:
                member.disk.remove()
        if self.network:
            self.network.remove()

    def client(self):
        """The driver's client; a frozen member is given up after some seconds."""
        return MongoClient(
            self.uri,
            **self.login,
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
            time.sleep(LOOK_SECONDS)


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


class Follower(threading.Thread):
    """One client that is told of all changes, until it is told of the last one."""

    def __init__(self, set_, preference, **start):
        super().__init__(daemon=True)
        self.client = set_.client()
        self.database = self.client.get_database("bank", read_preference=preference)
        self.start_options = start
        self.preference = preference
        self.events = []
        self.resumed = 0
        self.fault = None

    def run(self):
        try:
            while not self.follow():
                self.resumed += 1
        except Exception as error:  # noqa: BLE001: it is told with the seed
            self.fault = error

    def follow(self):
        """Follows until the last one (true), or until the driver gives up."""
        try:
            with self.database.watch([{"$match": FOLLOWED}], **self.start_options) as stream:
                while True:
                    event = stream.try_next()
                    self.start_options = {"resume_after": stream.resume_token}
                    if event is None:
                        continue
                    self.events.append(event)
                    if event["documentKey"]["_id"] == LAST:
                        return True
        except (ConnectionFailure, OperationFailure) as error:
            if error.has_error_label("NonResumableChangeStreamError"):
                raise
            time.sleep(0.05)
            return False


def start_followers(set_):
    """Three that begin behind what is there; and when that is."""
    preferences = [ReadPreference.PRIMARY, ReadPreference.SECONDARY, ReadPreference.NEAREST]
    with set_.client() as client:
        begun = client.admin.command("ping")["operationTime"]
    behind = Timestamp(begun.time, begun.inc + 1)
    followers = [Follower(set_, it, start_at_operation_time=behind) for it in preferences]
    for follower in followers:
        follower.start()
    return begun, followers


def check_told(set_, followers, begun, before, writers):
    """Checks what followers were told since `before` was there."""
    acknowledged = {f"{writer.number}-{it}" for writer in writers for it in list(writer.inserted)}
    behind = Timestamp(begun.time, begun.inc + 1)
    late = Follower(set_, ReadPreference.SECONDARY_PREFERRED, start_at_operation_time=behind)
    late.start()
    expected = None
    with set_.client() as client:
        client.bank.documents.insert_one({"_id": LAST})
        for follower in [*followers, late]:
            follower.join(SECONDS_MAX)
            if follower.is_alive() or follower.fault:
                raise Wrong(f"a follower of {follower.preference} hangs, or {follower.fault!r}")
            # At once: writers go on, and a moment is kept up to the next flush.
            if expected is None:
                expected = contents(client, follower.events[-1]["clusterTime"])
    tokens = [[it["_id"]["_data"] for it in each.events] for each in [*followers, late]]
    if any(it != tokens[0] for it in tokens):
        raise Wrong(f"followers were told {[len(it) for it in tokens]} events, and not the same")
    if any(first >= second for first, second in zip(tokens[0], tokens[0][1:])):
        raise Wrong("an event was told twice, or before an earlier one")
    events = late.events
    inserted = [it["documentKey"]["_id"] for it in events if it["operationType"] == "insert"]
    if missing := acknowledged - set(inserted):
        raise Wrong(f"acknowledged inserts weren't told: {sorted(missing)[:9]}")
    if (told := replayed(before, events)) != expected:
        wrong = [
            (name, it, told[name].get(it), expected[name].get(it))
            for name in expected
            for it in told[name].keys() | expected[name].keys()
            if told[name].get(it) != expected[name].get(it)
        ]
        raise Wrong(f"what was told doesn't amount to what is there: {wrong[:3]}")
    resumed = sum(follower.resumed for follower in followers)
    print(f"{len(events)} events told four times, each once and in order; {resumed} streams opened again")


def contents(client, moment):
    """What there is of that which clients follow, at a moment."""
    found = {}
    for name in COLLECTIONS:
        concern = {"level": "snapshot", "atClusterTime": moment}
        answer = client.bank.command("find", name, readConcern=concern, batchSize=1 << 20)
        if answer["cursor"]["id"]:
            raise Wrong(f"{name} is too large for one answer")
        found[name] = {it["_id"]: it for it in answer["cursor"]["firstBatch"]}
    return found


def replayed(before, events):
    """What there is after the events."""
    found = {name: dict(documents) for name, documents in before.items()}
    for event in events:
        documents, key = found[event["ns"]["coll"]], event["documentKey"]["_id"]
        kind = event["operationType"]
        if kind == "delete":
            del documents[key]
        elif kind in ("insert", "replace"):
            if (kind == "insert") == (key in documents):
                raise Wrong(f"a second insert, or a replacement of nothing: {event}")
            documents[key] = event["fullDocument"]
        else:
            documents[key] = updated(documents[key], event["updateDescription"])
    return found


def updated(document, description):
    """A document after a change of its fields, or of the elements of its lists."""
    document = {name: list(it) if isinstance(it, list) else it for name, it in document.items()}
    for path, value in description["updatedFields"].items():
        name, _, place = path.partition(".")
        if not place:
            document[name] = value
        elif int(place) == len(document[name]):
            document[name].append(value)
        else:
            raise Wrong(f"{path} isn't the next of {document[name]}")
    return document


def check(member, writers):
    """Checks what one member has; answers with all of it."""
    options = {"read_preference": ReadPreference.SECONDARY_PREFERRED}
    with member.client() as client:
        bank = client.get_database("bank", **options)
        found = {
            name: {it["_id"]: it for it in bank[name].find()}
            for name in COLLECTIONS
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


def await_reached(set_):
    """Waits until all members have come to the moment that any is at now, while others write."""
    moments = [hello["lastWrite"]["opTime"]["ts"] for it in set_.members if (hello := it.hello())]
    deadline = time.monotonic() + SECONDS_MAX
    for member in set_.members:
        while not (hello := member.hello()) or hello["lastWrite"]["opTime"]["ts"] < max(moments):
            if time.monotonic() > deadline:
                raise Wrong(f"{member.address} doesn't come to {max(moments)}")
            time.sleep(0.1)


def await_all(set_):
    """Waits until all members can be read, for a while at most: then another may be taken away."""
    deadline = time.monotonic() + KILLED_SECONDS_MAX
    while time.monotonic() < deadline:
        hellos = [member.hello() for member in set_.members]
        if all(it and (it["secondary"] or it["isWritablePrimary"]) for it in hellos):
            return
        time.sleep(LOOK_SECONDS)


def disturb(set_, chance, told, options):
    """Takes a member away for a while; notes how long it takes until another leads."""
    leader, term, _ = set_.await_leader()
    kinds = ["kill", "kill", "freeze", "step down"]
    kinds += ["cut", "cut what it sends", "cut what it hears"] if set_.network else []
    kinds += ["full disk"] if leader.disk else []
    kind = chance.choice(kinds)
    member = leader if chance.random() < (0.7 if options.pauses else 0.9) else chance.choice(set_.members)
    others = [it.number for it in set_.members if it is not member]
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
    elif kind == "freeze":
        member.process.send_signal(signal.SIGSTOP)
    elif kind == "full disk":
        member.disk.fill()
    elif kind == "cut":
        set_.network.cut(member.number, others)
    elif kind == "cut what it sends":
        set_.network.cut_out(member.number, others)
    elif kind == "cut what it hears":
        for other in others:
            set_.network.cut_out(other, [member.number])
    if member is leader:
        away = None if kind in ("step down", "full disk") else member
        _, _, seconds = set_.await_leader(term, away)
        told.append((kind, seconds))
        most = KILLED_SECONDS_MAX if kind in ("kill", "step down") else FROZEN_SECONDS_MAX
        if seconds > most and not options.busy:
            raise Wrong(f"{kind}: another leads after {seconds:.1f} seconds")
    time.sleep(chance.random() * 2 * options.pauses)
    if kind == "kill":
        member.start()
    elif kind == "freeze":
        member.process.send_signal(signal.SIGCONT)
    elif kind == "full disk":
        member.disk.free()
    elif kind.startswith("cut"):
        set_.network.heal()
    time.sleep(chance.random() * 3 * options.pauses)
    if member.process.poll() is not None:
        if kind != "full disk":
            raise Wrong(f"{kind}: {member.address} ended with {member.process.returncode}")
        member.start()
    if not options.pauses:
        await_all(set_)


def run(set_, options):
    chance = random.Random(options.seed)
    _, _, began = set_.await_leader()
    print(f"the first leader after {began:.1f} s")
    if options.auth:
        set_.make_user()
    client = set_.client()
    client.bank.accounts.insert_many([{"_id": it, "money": MONEY} for it in range(ACCOUNTS)])
    refuse_on_secondaries(set_)
    read_linearizably(set_)
    followers = begun = before = None
    if options.change_streams:
        begun, followers = start_followers(set_)
        before = contents(client, begun)
    stop = threading.Event()
    writers = [Writer(set_, number, options.seed, stop) for number in range(CLIENTS)]
    for writer in writers:
        writer.start()
    set_.drivers = Clients(options.commands, set_.uri, options.seconds)
    told = []
    end = time.monotonic() + options.seconds
    while time.monotonic() < end and not any(writer.fault for writer in writers):
        disturb(set_, chance, told, options)
    if not any(writer.fault for writer in writers):
        lose_end(set_)
        if followers:
            check_told(set_, followers, begun, before, writers)
        if options.versions:
            keep_versions(set_)
            erase(set_)
        if options.backups:
            keep_backups(set_, writers, chance)
        if options.change_members:
            change_members(set_)
        if options.lost_disks:
            lose_disks(set_)
            stay_away(set_)
    stop.set()
    for writer in writers:
        writer.join(SECONDS_MAX)
        if writer.is_alive():
            raise Wrong("a client hangs")
        if writer.fault:
            raise Wrong(f"client {writer.number}: {writer.fault!r}")
    failed = set_.drivers.end(SECONDS_MAX)
    await_same(set_)
    found = [check(member, writers) for member in set_.members]
    if any(it != found[0] for it in found):
        raise Wrong("the members' documents differ")
    report(told, writers)
    if options.outages:
        with open(options.outages, "w") as file:
            file.write(outages(told))
    if failed:
        raise Wrong(f"drivers were told what isn't so: {failed}")
    if not set_.network:
        compare_members(set_, options)
    damage(set_)


def compare_members(set_, options):
    """The command that compares members says that all hold the same, and which one is away."""
    login = "".join(f"{quote(it)}{end}" for it, end in zip(set_.login.values(), ":@"))
    # Those that are members now: of those of the beginning some may have been removed.
    addresses = ",".join(member.address for member in set_.members)
    uri = f"mongodb://{login}{addresses}/?{set_.uri.partition('?')[2]}"

    def told(*more):
        command = [os.path.abspath(options.frond), "replicas", "--uri", uri, *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX)
        return done.returncode, done.stdout + done.stderr

    deadline = time.monotonic() + SECONDS_MAX
    code, text = told("--compare")
    # On a busy machine a member that answers may be taken for one that is away, for a moment.
    while code == 3 and "can't be read" in text and time.monotonic() < deadline:
        time.sleep(0.5)
        code, text = told("--compare")
    same = [line for line in text.splitlines() if line.endswith(f"the same on {len(set_.members)} members")]
    if code != 0 or not any(line.startswith("bank@main ") for line in same):
        raise Wrong(f"members that hold the same are told as {code}: {text}")
    leader, _, _ = set_.await_leader()
    member = next(it for it in set_.members if it is not leader)
    member.kill()
    while (found := told()) and not (found[0] == 3 and f"can't be read: {member.address}" in found[1]):
        if time.monotonic() > deadline:
            raise Wrong(f"a member that is away is told as {found}")
        time.sleep(0.5)
    member.start()
    await_same(set_)
    print(f"compared: {len(same)} branches are the same on {len(set_.members)} members")


def keep_backups(set_, writers, chance):
    """A secondary is backed up; what comes back is of one moment, and a new set begins with it."""
    place = os.path.join(set_.root, "backups")
    acknowledged = {f"{writer.number}-{it}" for writer in writers for it in list(writer.inserted)}
    await_reached(set_)
    leader, term, _ = set_.await_leader()
    member = next(it for it in set_.members if it is not leader)
    for killed in (None, leader, member):
        name = f"beside {killed.number if killed else 'nothing'}"
        backup = start_backup(set_, member, place, name)
        time.sleep(chance.random() * 0.3)
        if killed:
            killed.kill()
        told, _ = backup.communicate()
        if killed:
            killed.start()
            set_.await_leader()
        if killed is member:
            # Whether it was made or not, the place takes another.
            await_served(member)
            backup = start_backup(set_, member, place, "again")
            told, _ = backup.communicate()
        if backup.returncode != 0:
            raise Wrong(f"a backup of a member, {name}: {told}")
    frond = set_.arguments[0]
    restored = os.path.join(set_.root, "restored")
    for words in (["backup", place, "--verify"], ["restore", "--backup", place, "--data", restored],
                  ["fsck", "--data", restored], ["commit", "bank", "-m", "restored", "--data", restored]):
        done = subprocess.run([frond, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Wrong(f"{words}: {done.stdout}{done.stderr}")
    restored_into_new_set(set_, restored, acknowledged)
    shutil.rmtree(place)
    shutil.rmtree(restored)


def start_backup(set_, member, place, name):
    words = ["backup", place, "--name", name, "--from", f"http://{member.remote}", "--token-file", TOKENS]
    return subprocess.Popen([set_.arguments[0], *words], cwd=set_.root, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def await_served(member):
    """Waits until a member is a secondary or leads, and takes connections for backups."""
    host, port = member.remote.split(":")
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        hello = member.hello()
        with socket.socket() as probe:
            if hello and (hello["secondary"] or hello["isWritablePrimary"]) and probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.1)
    raise Wrong(f"{member.address} doesn't come back")


def restored_into_new_set(set_, restored, acknowledged):
    """A new set clones what was restored: all of its members have that, and all that was acknowledged."""
    port, remote_port = free_ports(2)
    arguments = [set_.arguments[0], "serve", "--data", restored, "--listen", f"127.0.0.1:{port}"]
    arguments += ["--remote-listen", f"127.0.0.1:{remote_port}"]
    alone = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    root = os.path.join(set_.root, "new")
    os.mkdir(root)
    new = Set(set_.arguments[0], root, PLAIN)
    try:
        with MongoClient("127.0.0.1", port) as client:
            expected = {name: {it["_id"]: it for it in client.bank[name].find()} for name in COLLECTIONS}
        begun = time.monotonic()
        on_leader(new, "bank", {"frondClone": 1, "from": f"http://127.0.0.1:{remote_port}/bank"})
        await_reached(new)
        seconds = time.monotonic() - begun
        found = [check(member, []) for member in new.members]
    finally:
        new.remove()
        alone.kill()
        alone.wait()
    if any(it != expected for it in found):
        raise Wrong("a new set has other documents than what it was cloned from")
    if missing := acknowledged - expected["documents"].keys():
        raise Wrong(f"a backup lacks what was acknowledged before it: {sorted(missing)[:9]}")
    shutil.rmtree(root)
    count = sum(len(documents) for documents in expected.values())
    print(f"backups of a secondary beside kills: whole; {count} documents in a new set after {seconds:.1f} s")


def on_leader(set_, database, command):
    """What the leader answers to a command."""
    leader, _, _ = set_.await_leader()
    with leader.client(socketTimeoutMS=SECONDS_MAX * 1000) as client:
        return client[database].command(command)


def log_bytes(set_):
    """How much the leader has proposed; its log may be cut, and shrinks then."""
    leader, _, _ = set_.await_leader()
    return end_of(os.path.join(leader.directory, "quorum-log"))


def recorded(set_, database, message):
    """Records a version; how many bytes of log that took."""
    before = log_bytes(set_)
    on_leader(set_, database, {"frondCommit": 1, "message": message})
    return log_bytes(set_) - before


def keep_versions(set_):
    """Versions of more than an entry carries, and databases of another server."""
    with set_.client() as client:
        for number in range(VERSION_MEGABYTES):
            client.shop.things.insert_one({"_id": number, "bytes": os.urandom(1 << 20)})
        first = recorded(set_, "shop", "much")
        client.shop.things.update_one({"_id": 3}, {"$set": {"bytes": b"changed"}})
        second = recorded(set_, "shop", "little")
        on_leader(set_, "shop", {"frondBranch": 1, "branch": "side"})
        client["shop@side"].things.insert_one({"_id": "on the side"})
        third = recorded(set_, "shop@side", "little on a branch")
    if not second < 4 << 20 or not 0 < third < 4 << 20:
        raise Wrong(f"versions took {first}, {second}, {third} bytes of the members' log")
    build_large_index(set_)
    stage_half(set_)
    port, remote_port = free_ports(2)
    arguments = [set_.arguments[0], "serve", "--data", os.path.join(set_.root, "other")]
    arguments += ["--listen", f"127.0.0.1:{port}", "--remote-listen", f"127.0.0.1:{remote_port}"]
    other = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    try:
        with MongoClient("127.0.0.1", port) as client:
            for number in range(VERSION_MEGABYTES):
                client.theirs.things.insert_one({"_id": number, "bytes": os.urandom(1 << 20)})
            client.theirs.command({"frondCommit": 1, "message": "theirs"})
            url = f"http://127.0.0.1:{remote_port}/theirs"
            on_leader(set_, "theirs", {"frondClone": 1, "from": url})
            client.theirs.things.insert_one({"_id": "later"})
            client.theirs.command({"frondCommit": 1, "message": "theirs, later"})
            on_leader(set_, "theirs", {"frondPull": 1})
            expected = of_database(client.theirs)
    finally:
        other.kill()
        other.wait()
    await_reached(set_)
    told = same_versions(set_)
    if told["theirs"] != expected:
        raise Wrong(f"what was cloned and pulled is {told['theirs']}, and was {expected}")
    megabytes = [round(it / (1 << 20), 1) for it in (first, second, third)]
    print(f"versions of {VERSION_MEGABYTES} MB, and of little: {megabytes} MB of log; cloned, pulled: {told}")


def build_large_index(set_):
    """An index of more than an entry carries: all members must answer by it."""
    letters = "".join(map(chr, range(97, 123)))
    with set_.client() as client:
        words = client.shop.words
        for begin in range(0, INDEXED, 2_000):
            text = random.Random(begin).choices(letters, k=INDEXED_LETTERS * 2_000)
            text = "".join(text)
            parts = [text[it : it + INDEXED_LETTERS] for it in range(0, len(text), INDEXED_LETTERS)]
            words.insert_many([{"_id": begin + it, "word": part} for it, part in enumerate(parts)])
        leader, _, _ = set_.await_leader()
        with leader.client(socketTimeoutMS=SECONDS_MAX * 1000) as direct:
            direct.shop.words.create_index("word")
        last = words.find_one({"_id": INDEXED - 1})["word"]
    await_reached(set_)
    for member in set_.members:
        with member.client() as client:
            database = client.get_database("shop", read_preference=ReadPreference.SECONDARY_PREFERRED)
            found = [it["_id"] for it in database.words.find({"word": last}).hint("word_1")]
            if found != [INDEXED - 1]:
                raise Wrong(f"{member.address} finds {found} by an index that was built")
    on_leader(set_, "shop", {"drop": "words"})


def stage_half(set_):
    """Leaders are killed while they stage what a version needs."""
    halves = said(set_, LETS_GO)
    for attempt in range(ATTEMPTS_MAX):
        with set_.client() as client:
            for number in range(VERSION_MEGABYTES):
                document = {"_id": number, "bytes": os.urandom(1 << 20)}
                client.shop.things.replace_one({"_id": number}, document)
        leader, term, _ = set_.await_leader()
        path = os.path.join(leader.directory, "quorum-log")
        before = end_of(path)

        def record(leader=leader):
            try:
                with leader.client(socketTimeoutMS=SECONDS_MAX * 1000) as client:
                    client.shop.command({"frondCommit": 1, "message": "half"})
            except PyMongoError:
                pass

        recorder = threading.Thread(target=record)
        recorder.start()
        while recorder.is_alive() and os.path.getsize(path) < before + STAGED_MEGABYTES * (1 << 20):
            time.sleep(0.005)
        leader.kill()
        recorder.join()
        set_.await_leader(term, leader)
        leader.start()
        time.sleep(5)
        with set_.client() as client:
            last = client.shop.command({"frondLog": 1})["commits"][0]["message"]
        if halves < said(set_, LETS_GO):
            break
        if attempt == ATTEMPTS_MAX - 1:
            raise Wrong(f"no leader was killed while it staged; the last version is {last}")
    if last == "half":
        raise Wrong("a version was recorded of which a part was missing")
    recorded(set_, "shop", "whole")


def erase(set_):
    """A document goes from all versions, and its bytes from all members' files."""
    marker = os.urandom(64)
    with set_.client() as client:
        client.shop.things.insert_one({"_id": "secret", "bytes": marker * 4})
        recorded(set_, "shop", "with a secret")
        client.shop.things.update_one({"_id": "secret"}, {"$set": {"more": 1}})
        recorded(set_, "shop", "with more")
    await_reached(set_)
    for member in set_.members:
        if not holding(member, marker):
            raise Wrong(f"{member.address} has nothing of what is to be erased")
    leader, _, _ = set_.await_leader()
    away = next(it for it in set_.members if it is not leader)
    away.kill()
    begun = time.monotonic()
    command = {"frondErase": 1, "collection": "things", "document": "secret", "confirm": True}
    told = on_leader(set_, "shop", command)
    seconds = time.monotonic() - begun
    if told["membersLeft"] != [away.address] or told["chunksLeft"]:
        raise Wrong(f"an erasing told {told}")
    for member in set_.members:
        if member is not away and (found := holding(member, marker)):
            raise Wrong(f"{member.address} has what was erased in {found}")
    away.start()
    begun = time.monotonic()
    while holding(away, marker):
        if time.monotonic() - begun > SECONDS_MAX:
            raise Wrong(f"{away.address} has what was erased in {holding(away, marker)}")
        time.sleep(0.2)
    print(f"erased on all that run in {seconds:.1f} s, on the one that was down {time.monotonic() - begun:.1f} s after")
    told = on_leader(set_, "shop", {"frondErase": 1, "collection": "things", "document": 3, "confirm": True})
    if told["membersLeft"] or told["chunksLeft"]:
        raise Wrong(f"an erasing told {told}")
    await_reached(set_)
    same_versions(set_)


def holding(member, marker):
    """The files of a member in which the bytes are."""
    found = []
    for name in os.listdir(member.directory):
        try:
            with open(os.path.join(member.directory, name), "rb") as file:
                if marker in file.read():
                    found.append(name)
        except FileNotFoundError:
            pass  # It has just gone.
    return found


def same_versions(set_):
    """What all members tell of the versions, which is the same."""
    told = [versions(member) for member in set_.members]
    if any(it != told[0] for it in told):
        raise Wrong(f"members tell of different versions: {told}")
    return told[0]


def versions(member):
    """What a member tells of each database."""
    with member.client(socketTimeoutMS=SECONDS_MAX * 1000) as client:
        return {name: of_database(client[name]) for name in ["shop", "shop@side", "theirs"]}


def of_database(database):
    """The commits of a database, and the hash of what is there."""
    preference = {"read_preference": ReadPreference.SECONDARY_PREFERRED}
    answer = database.command({"frondLog": 1}, **preference)
    commits = [it["message"] + " " + it["commitId"] for it in answer["commits"]]
    return commits, database.command({"dbHash": 1}, **preference)["md5"]


def said(set_, text):
    """How often the members have said that."""
    logs = [open(it.log_path, errors="replace").read() for it in set_.members + set_.former]
    return sum(log.count(text) for log in logs)


def await_recovery(set_, member, copies, votes=None):
    """Waits until a member has got a copy and shows it; and has a vote, if it is a new one."""
    begun = time.monotonic()
    while True:
        hello = member.hello()
        is_shown = hello and (hello["secondary"] or hello["isWritablePrimary"])
        has_vote = votes is None or said(set_, "has a vote") > votes
        if is_shown and has_vote and said(set_, "it continues after entry") > copies:
            return time.monotonic() - begun
        if time.monotonic() - begun > SECONDS_MAX:
            raise Wrong(f"{member.address} has not recovered: {hello}")
        time.sleep(0.1)


def lose_disks(set_):
    """One member after the other loses its data directory, and comes back with a new one."""
    for member in set_.members:
        set_.await_leader()
        copies, votes = said(set_, "it continues after entry"), said(set_, "has a vote")
        member.kill()
        shutil.rmtree(member.directory)
        member.start()
        seconds = await_recovery(set_, member, copies, votes)
        print(f"lost disk of {member.address}: replaced after {seconds:.1f} s")


def stay_away(set_):
    """A member is away while more is written than the others keep for it."""
    leader, _, _ = set_.await_leader()
    member = next(it for it in set_.members if it is not leader)
    copies = said(set_, "it continues after entry")
    member.kill()
    with set_.client() as client:
        number = 0
        while number < AWAY_MEGABYTES:
            document = {"_id": number, "bytes": os.urandom(1 << 20)}
            try:
                client.bank.away.replace_one({"_id": number}, document, upsert=True)
                number += 1
            except ConnectionFailure:
                pass  # Another leads; what became of it isn't known.
    path = os.path.join(leader.directory, "quorum-log")
    deadline = time.monotonic() + SECONDS_MAX
    while os.path.getsize(path) > (LOG_MEGABYTES_MAX + 160) << 20:
        if time.monotonic() > deadline:
            raise Wrong(f"a log has {os.path.getsize(path)} bytes while a member is away")
        time.sleep(0.5)
    member.start()
    seconds = await_recovery(set_, member, copies)
    with member.client() as client:
        options = {"read_preference": ReadPreference.SECONDARY_PREFERRED}
        count = sum(1 for _ in client.get_database("bank", **options).away.find({}, {"_id": 1}))
    if count != AWAY_MEGABYTES:
        raise Wrong(f"{member.address} has {count} of {AWAY_MEGABYTES} documents")
    print(f"away for {AWAY_MEGABYTES} MB: {member.address} came back after {seconds:.1f} s")


def lose_end(set_):
    """The end of a member's log is lost, which it had acknowledged."""
    leader, _, _ = set_.await_leader()
    member = next(it for it in set_.members if it is not leader)
    doubts, ends = said(set_, DOUBTS), said(set_, HAS_END)
    path = os.path.join(member.directory, "quorum-log")
    while end_of(path) < 1 << 16:
        time.sleep(0.1)
    member.kill()
    # Several batches, of which some were acknowledged.
    cut_end(member)
    member.start()
    seconds = await_said(set_, HAS_END, ends + 1)
    if said(set_, DOUBTS) == doubts:
        raise Wrong(f"{member.address} has lost the end of its log, and didn't doubt it")
    print(f"lost end of the log of {member.address}: got again after {seconds:.1f} s")
    # What one has lost the third has, which alone must not lead.
    lossy = [member, leader]
    for each in set_.members:
        each.kill()
    cut_end(lossy[0])
    cut_end(lossy[1], 1)
    for each in set_.members:
        each.start()
    _, _, seconds = set_.await_leader()
    print(f"all were killed, and two may have lost the ends of their logs: a leader after {seconds:.1f} s")


def cut_end(member, count=8192):
    path = os.path.join(member.directory, "quorum-log")
    os.truncate(path, end_of(path) - count)


def end_of(path):
    """Where a log ends, before the room that is reserved in its file."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - (2 << 20))
        file.seek(start)
        return start + len(file.read().rstrip(b"\xff"))


def await_said(set_, text, times):
    """Waits until the members have said that so often."""
    begun = time.monotonic()
    while said(set_, text) < times:
        if time.monotonic() - begun > SECONDS_MAX:
            raise Wrong(f"no member has said: {text}")
        time.sleep(0.1)
    return time.monotonic() - begun


def reconfigure(set_, change):
    """Has the leader take another configuration; again, if another leads meanwhile."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        leader, _, _ = set_.await_leader()
        try:
            with leader.client() as client:
                config = client.admin.command("replSetGetConfig")["config"]
                hosts = [it["host"] for it in config["members"]]
                config["members"] = change(config["members"])
                if [it["host"] for it in config["members"]] != hosts:
                    config["version"] += 1
                    client.admin.command("replSetReconfig", config)
                return
        except (ConnectionFailure, OperationFailure) as error:
            if time.monotonic() > deadline:
                raise Wrong(f"the configuration isn't taken: {error!r}") from error
            time.sleep(0.2)


def await_hosts(set_):
    """Waits until all members tell the same members."""
    expected = sorted(member.address for member in set_.members)
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        hellos = [member.hello() for member in set_.members]
        if all(hello and sorted(hello["hosts"]) == expected for hello in hellos):
            return
        if time.monotonic() > deadline:
            raise Wrong(f"not all members tell {expected}: {hellos}")
        time.sleep(0.1)


def change_members(set_):
    """Two members come, and two go, while clients write; one of these leads first."""
    for _ in range(2):
        member, votes = set_.add(), said(set_, "has a vote")

        def with_it(members, address=member.address):
            known = [it for it in members if it["host"] != address]
            return [*known, {"_id": max(it["_id"] for it in known) + 1, "host": address}]

        begun = time.monotonic()
        reconfigure(set_, with_it)
        await_said(set_, "has a vote", votes + 1)
        print(f"{member.address} is a member after {time.monotonic() - begun:.1f} s")
    await_hosts(set_)
    give_parts(set_)
    # Two of five may be away.
    away = set_.members[1:3]
    for member in away:
        member.kill()
    with set_.client() as client:
        client.bank.documents.insert_one({"_id": "while two of five are away"})
    for member in away:
        member.start()
    for is_down in (False, True):
        leader, term, _ = set_.await_leader()
        gone = leader if leader.number < MEMBERS else set_.members[0]
        while gone is leader:
            with leader.client() as client:
                try:
                    client.admin.command("replSetStepDown", 10)
                except (ConnectionFailure, OperationFailure):
                    pass  # Its process begins anew; or it couldn't.
            leader, term, _ = set_.await_leader()
        if is_down:
            gone.kill()
        reconfigure(set_, lambda members: [it for it in members if it["host"] != gone.address])
        set_.members.remove(gone)
        set_.former.append(gone)
        await_said(set_, "is no longer in the set", len(set_.former))
        if is_down:
            gone.start()
        await_removed(gone)
        print(f"{gone.address} is no member any more{', as it hears when it comes back' * is_down}")
    await_hosts(set_)
    leader, term, _ = set_.await_leader()
    # Longer than any election takes.
    time.sleep(5)
    if set_.leader(term - 1) != (leader, term):
        raise Wrong("members that were removed disturb the set")


def configure(set_, member, **fields):
    """Gives a member other values in the configuration."""
    def changed(members):
        return [{**it, **fields} if it["host"] == member.address else it for it in members]

    deadline = time.monotonic() + SECONDS_MAX
    while True:
        leader, _, _ = set_.await_leader()
        try:
            with leader.client() as client:
                config = client.admin.command("replSetGetConfig")["config"]
                config["members"], config["version"] = changed(config["members"]), config["version"] + 1
                client.admin.command("replSetReconfig", config)
                return
        except (ConnectionFailure, OperationFailure) as error:
            if time.monotonic() > deadline:
                raise Wrong(f"the configuration isn't taken: {error!r}") from error
            time.sleep(0.2)


def await_hello(member, what, is_so):
    """Waits until a member says of itself what it should."""
    deadline = time.monotonic() + SECONDS_MAX
    while not ((hello := member.hello()) and is_so(hello)):
        if time.monotonic() > deadline:
            raise Wrong(f"{member.address} isn't {what}: {hello}")
        time.sleep(0.1)


def give_parts(set_):
    """One member is hidden and never leads, one has no vote, and one has tags."""
    leader, term, _ = set_.await_leader()
    hidden, mute, tagged = [it for it in set_.members if it is not leader][:3]
    configure(set_, hidden, priority=0, hidden=True)
    await_hello(hidden, "hidden", lambda it: it.get("hidden") and it.get("passive"))
    configure(set_, mute, priority=0, votes=0)
    configure(set_, tagged, tags={"use": "reports"})
    await_hello(tagged, "tagged", lambda it: it.get("tags") == {"use": "reports"})
    for other in set_.members:
        await_hello(other, "told of them", lambda it: hidden.address not in it["hosts"] + it["passives"]
                    and it["passives"] == [mute.address])
    with set_.client() as client:
        preference = Secondary(tag_sets=[{"use": "reports"}])
        collection = client.bank.get_collection("accounts", read_preference=preference)
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            leader, _, _ = set_.await_leader()
            cursor = collection.find({})
            list(cursor)
            found = f"{cursor.address[0]}:{cursor.address[1]}"
            if found == tagged.address:
                break
            if time.monotonic() > deadline:
                raise Wrong(f"a read by tag came to {found}")
        status = client.admin.command("replSetGetStatus")
        if status["votingMembersCount"] != len(set_.members) - 1:
            raise Wrong(f"a set with a member without a vote tells {status['votingMembersCount']} votes")
    for _ in range(4):
        leader, term, _ = set_.await_leader()
        leader.kill()
        leader.start()
        leader, term, _ = set_.await_leader(term)
        if leader in (hidden, mute):
            raise Wrong(f"{leader.address} has priority 0, and leads")
        await_all(set_)
    for wrong, code in [({"priority": 1, "hidden": True}, 2), ({"votes": 0}, 2)]:
        with leader.client() as client:
            config = client.admin.command("replSetGetConfig")["config"]
            next(it for it in config["members"] if it["host"] == tagged.address).update(wrong)
            config["version"] += 1
            try:
                client.admin.command("replSetReconfig", config)
                raise Wrong(f"a member with {wrong} was taken")
            except OperationFailure as error:
                if error.code != code:
                    raise Wrong(f"a member with {wrong} was refused with {error.details}") from error
    for member in (hidden, mute, tagged):
        configure(set_, member, priority=1, votes=1, hidden=False, tags={})
    await_hosts(set_)
    print("a hidden member, one without a vote, one with tags: each as told, and with a vote again")


def await_removed(member):
    """Waits until a server says that it is no member."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        try:
            with member.client() as client:
                hello = client.admin.command("hello")
                told = client.admin.command("replSetGetStatus")["members"]
        except OperationFailure as error:
            if error.code == NOT_A_MEMBER and not hello["secondary"] and not hello["isWritablePrimary"]:
                return
            told = error.details
        except PyMongoError:
            told = None
        if time.monotonic() > deadline:
            raise Wrong(f"{member.address} was removed, and tells {told}")
        time.sleep(0.1)


def damage(set_):
    """A member whose log of entries is damaged says so, shows nothing that may be old, and recovers."""
    leader, _, _ = set_.await_leader()
    member = next(it for it in set_.members if it is not leader)
    path = os.path.join(member.directory, "quorum-log")
    copies, votes = said(set_, "it continues after entry"), said(set_, "has a vote")
    # Damage of the last batch can't be told from one that a crash tore: several follow it, of which each is
    # synced before the next. A member that is behind would get all of them at once.
    size = end_of(path)
    with set_.client() as client:
        while (end := end_of(path)) < size + (1 << 14):
            client.bank.lists.update_one({"_id": "before damage"}, {"$push": {"texts": "x" * 1000}}, upsert=True)
            deadline = time.monotonic() + SECONDS_MAX
            while end_of(path) == end:
                if time.monotonic() > deadline:
                    raise Wrong(f"{member.address} gets no entries")
                time.sleep(0.005)
    member.kill()
    # Without it no member leads then, and none has a copy for the damaged one.
    leader.process.send_signal(signal.SIGSTOP)
    flip(path, size - 1)
    member.start()
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        hello = member.hello()
        if hello and not hello["isWritablePrimary"] and not hello["secondary"]:
            break
        if time.monotonic() > deadline:
            raise Wrong("a member whose log is damaged is shown as a secondary")
        time.sleep(0.1)
    with member.client() as client:
        for allowed in (ReadPreference.PRIMARY, ReadPreference.SECONDARY_PREFERRED):
            try:
                client.get_database("bank", read_preference=allowed).documents.find_one()
                raise Wrong("a member whose log is damaged was read")
            except (NotPrimaryError, OperationFailure) as error:
                if error.details["code"] != 13436:
                    raise Wrong(f"a member whose log is damaged refused a read with {error.details}") from error
        if client.admin.command("replSetGetStatus")["myState"] != 3:
            raise Wrong("a member whose log is damaged isn't RECOVERING")
    other = next(it for it in set_.members if it not in (leader, member))
    while state_of(other, member) != 3:
        if time.monotonic() > deadline:
            raise Wrong("another member doesn't say that the damaged one is RECOVERING")
        time.sleep(0.1)
    leader.process.send_signal(signal.SIGCONT)
    with set_.client() as client:
        client.bank.documents.insert_one({"_id": "while one is damaged"})
    seconds = await_recovery(set_, member, copies, votes)
    await_same(set_)
    print(f"damage of a member's log: told, and mended after {seconds:.1f} s")


def state_of(other, member):
    """The state of a member, as another one says."""
    with other.client() as client:
        members = client.admin.command("replSetGetStatus")["members"]
    return next(it["state"] for it in members if it["name"] == member.address)


def flip(path, place):
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 4]))


def refuse_on_secondaries(set_):
    """A member that doesn't lead takes no writes, no linearizable reads, and others only if it may."""
    leader, _, _ = set_.await_leader()
    for member in set_.members:
        if member is leader:
            continue
        with member.client(retryWrites=False, serverSelectionTimeoutMS=SECONDS_MAX * 1000) as client:
            documents = client.bank.documents
            linearizable = {"find": "documents", "readConcern": {"level": "linearizable"}}
            for what, ask in [
                ("write", lambda: documents.insert_one({"_id": "no"})),
                ("linearizable read", lambda: client.bank.command(linearizable)),
            ]:
                try:
                    ask()
                    raise Wrong(f"a secondary took a {what}")
                except NotPrimaryError as error:
                    if error.details["code"] != 10107:
                        raise Wrong(f"a secondary refused a {what} with {error.details}") from error


def read_linearizably(set_):
    """A leader that reaches no other member answers no linearizable read, though it answers others."""
    leader, _, _ = set_.await_leader()
    others = [member for member in set_.members if member is not leader]
    linearizable = {"find": "accounts", "readConcern": {"level": "linearizable"}, "maxTimeMS": 1000}
    with leader.client(serverSelectionTimeoutMS=SECONDS_MAX * 1000) as client:
        begun = time.monotonic()
        if len(client.bank.command(linearizable)["cursor"]["firstBatch"]) != ACCOUNTS:
            raise Wrong("a linearizable read doesn't read what is there")
        seconds = time.monotonic() - begun
        for member in others:
            member.process.send_signal(signal.SIGSTOP)
        for member in others:
            # Until one of its threads has taken the signal the others run on.
            os.waitpid(member.process.pid, os.WUNTRACED)
        try:
            client.bank.command({"find": "accounts"})
            told = client.bank.command(linearizable)
        except (ConnectionFailure, OperationFailure) as error:
            told = (error.details or {}).get("code") if isinstance(error, OperationFailure) else 10107
        for member in others:
            member.process.send_signal(signal.SIGCONT)
    if told not in (50, 10107, 11600, 91, 189):
        raise Wrong(f"a leader that reached no other answered a linearizable read: {told}")
    print(f"a linearizable read took {1000 * seconds:.1f} ms, and none was answered without a majority ({told})")


def outages(told):
    """How long the set had no leader, as a table: by what happened, how often it took how long."""
    kinds = sorted({kind for kind, _ in told})
    rows = ["| seconds, at most | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 1) + "|"]
    for lower, upper in zip([0, *OUTAGE_BOUNDS], [*OUTAGE_BOUNDS, float("inf")]):
        counts = [sum(1 for of, it in told if of == kind and lower < it <= upper) for kind in kinds]
        if any(counts):
            rows.append(f"| {upper} | " + " | ".join(map(str, counts)) + " |")
    times = {kind: sorted(it for of, it in told if of == kind) for kind in kinds}
    for name, part in [("median", 0.5), ("95 %", 0.95), ("99 %", 0.99), ("most", 1)]:
        at = [f"{it[min(len(it) - 1, int(part * len(it)))]:.2f}" for it in times.values()]
        rows.append(f"| {name} | " + " | ".join(at) + " |")
    return "\n".join(rows) + "\n"


def report(told, writers):
    print(f"{len(told)} fail-overs")
    for kind in sorted({kind for kind, _ in told}):
        seconds = sorted(it for of, it in told if of == kind)
        if seconds:
            middle, most = seconds[len(seconds) // 2], seconds[-1]
            print(f"{kind}: {len(seconds)} leaders, the next after {middle:.2f} s (median), {most:.2f} s (most)")
    inserts = sum(len(writer.inserted) for writer in writers)
    appends = sum(len(writer.appended) for writer in writers)
    moves = sum(writer.moved for writer in writers)
    if not (told and inserts and appends and moves):
        raise Wrong(f"{len(told)} fail-overs, {inserts} inserts, {appends} appends, {moves} transactions: nothing shown")
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
    parser.add_argument("--other-frond", help="another build, of which members are, too")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default=str(random.randrange(1 << 32)))
    parser.add_argument("--pauses", type=float, default=1,
                        help="how long a member is away, and the next isn't yet; 0: as short as can be")
    parser.add_argument("--busy", action="store_true", help="tell how soon another leads, and don't ask for it")
    parser.add_argument("--auth", action="store_true", help="ask clients for a user")
    parser.add_argument("--network", action="store_true", help="cut connections (Linux, as root)")
    parser.add_argument("--small-disks", action="store_true", help="fill disks (Linux, as root)")
    parser.add_argument("--lost-disks", action="store_true", help="lose data directories, and stay away for long")
    parser.add_argument("--change-members", action="store_true", help="add members, and remove others")
    parser.add_argument("--change-streams", action="store_true", help="follow what changes, too")
    parser.add_argument("--versions", action="store_true", help="record versions, clone and pull")
    parser.add_argument("--backups", action="store_true", help="back a member up, and restore that into a new set")
    parser.add_argument("--outages", metavar="FILE", help="write how long the set was without a leader")
    parser.add_argument("--driver", action="append", default=[], choices=DRIVERS, help="with this one, too")
    parser.add_argument("--node-modules", type=Path, help="folder whose node_modules has Node's driver")
    arguments = parser.parse_args()
    if arguments.auth and arguments.driver:
        parser.error("other drivers have no user: --driver without --auth")
    if arguments.network and arguments.change_members:
        parser.error("a new member has no network of its own: --change-members without --network")
    if arguments.network and arguments.backups:
        parser.error("members are backed up on the machine itself: --backups without --network")
    if arguments.auth and arguments.network:
        parser.error("the first user is made on the machine itself: --auth without --network")
    arguments.commands = commands(arguments.driver, Path(arguments.frond), arguments.node_modules)
    if arguments.busy:
        Member.hello_ms = BUSY_HELLO_MS
    root = tempfile.mkdtemp(prefix="frond-set-")
    set_ = Set(arguments.frond, root, arguments)
    try:
        run(set_, arguments)
    except Wrong as error:
        print(f"failed with --seed {arguments.seed}: {error}; see {root}", file=sys.stderr)
        return 1
    finally:
        set_.remove()
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
