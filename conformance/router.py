#!/usr/bin/env python3
"""Runs a router before two real servers and a replica set, and takes all of them away at random.

    python3 conformance/router.py --frond target/release/frond --seconds 60
    python3 conformance/router.py --frond ... --moves 600
    python3 conformance/router.py --frond ... --measure
    python3 conformance/router.py --frond ... --node MODULES      with Node's driver, too

Goal: an unmodified driver with one URI uses databases that three lines lead as if one mongos had
them; what spans lines is refused by name; a user may at each line what the line's servers say; and
no acknowledged write is lost or done twice, whichever process is killed.

Method:
1. Databases are placed on three lines: the default server, another server (`eu`), a set of three
   (`set`). Each gets writes, cursors of small batches side by side, transactions and a change stream;
   each line is asked directly whether it has its own databases and no others.
2. What spans two lines ($out, $merge, $lookup, renameCollection, bulkWrite, a transaction) must be
   refused with the code and both lines' names, and have written nothing.
3. A transaction that began at one router is committed by another, with the recovery token alone.
4. Writers with retryable writes and transactions go on, on all three lines, through two routers,
   while at random a router, a server or the set's leader is killed (SIGKILL) and started again, or
   the leader is frozen (SIGSTOP) for a while. At the end each line is read directly: every acknowledged insert and append is there, no number twice, the
   sum of all money is as it was.
5. A database is moved from line to line, again and again, while clients write to it through both
   routers, some by numbered writes, some in transactions, and others watch it: at random the router
   that moves it, another one, the line that it leaves or that it goes to is killed at a random moment,
   or one of them is frozen; the command is sent again, or the move is taken back. At the end each
   acknowledged insert and append is there once, and no transaction by half.
6. Servers and router begin anew with logins and TLS. The wrong password, nobody and a router with
   another key are refused; a user who may write at one line and not at the other is held to it by the
   other line's server.
"""

import argparse
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import bson
from pymongo import InsertOne, MongoClient
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError
from pymongo.write_concern import WriteConcern

from drivers import certificates
from ports import free_port
from replica_set import ACCOUNTS, MONEY, Set, Writer

SECONDS_MAX = 120
BANKS = ["bank_default", "bank_eu", "bank_set"]
PASSWORD = "correct horse"


class Wrong(Exception):
    """What must not be answered, or not be there."""


def check(is_right, *what):
    if not is_right:
        raise Wrong(*what)


class Process:
    """A server or a router, which may be killed and started again."""

    def __init__(self, frond, arguments, log):
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.command = [os.path.abspath(frond), *arguments, "--listen", self.address]
        self.log = log
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def client(self, **options):
        options = {"serverSelectionTimeoutMS": SECONDS_MAX * 1000, **options}
        return MongoClient(self.address, directConnection=True, **options)


class Lines:
    """Two servers, a set, and two routers before them."""

    def __init__(self, frond, root):
        log = open(os.path.join(root, "log"), "ab")
        serve = lambda name: Process(frond, ["serve", "--memory", "200MB", "--data", os.path.join(root, name)], log)
        self.default, self.eu = serve("default"), serve("eu")
        plain = argparse.Namespace(
            network=False, auth=False, small_disks=False, backups=False, other_frond=None)
        self.set = Set(frond, root, plain)
        self.set.await_leader()
        router = lambda: Process(frond, ["router", "--default", f"mongodb://{self.default.address}"], log)
        self.routers = [router(), router()]
        self.place()

    def place(self):
        with self.routed() as client:
            client.config.lines.insert_many(
                [
                    {"_id": "eu", "uri": f"mongodb://{self.eu.address}"},
                    {"_id": "set", "uri": self.set.uri},
                ]
            )
            client.config.databases.insert_many(
                [
                    {"_id": "bank_eu", "line": "eu"},
                    {"_id": "bank_set", "line": "set"},
                    {"_id": "shop@sale", "line": "eu"},
                ]
            )
        # Each router reads the table each second.
        time.sleep(2.5)

    def routed(self, **options):
        """The driver's client, which knows both routers."""
        addresses = ",".join(router.address for router in self.routers)
        options = {"serverSelectionTimeoutMS": SECONDS_MAX * 1000, "w": "majority", **options}
        return MongoClient(f"mongodb://{addresses}/", **options)

    def direct(self, bank):
        """A client of the line that leads a bank."""
        if bank == "bank_set":
            return self.set.client()
        return (self.eu if bank == "bank_eu" else self.default).client()

    def remove(self):
        for process in [self.default, self.eu, *self.routers]:
            process.kill()
        self.set.remove()


def use(lines):
    """What one client does, on all lines."""
    with lines.routed() as client:
        hello = client.admin.command("hello")
        check(hello.get("msg") == "isdbgrid" and "setName" not in hello, hello)
        check("operationTime" not in client.admin.command("buildInfo"))
        for bank in BANKS:
            items = client[bank].items
            items.insert_many([{"_id": number, "n": number % 7} for number in range(500)])
            check(items.update_many({"n": 3}, {"$inc": {"seen": 1}}).modified_count == 71, bank)
            items.create_index("n")
        cursors = [client[bank].items.find({}, batch_size=7).sort("_id") for bank in BANKS]
        for number in range(500):
            check([next(cursor)["_id"] for cursor in cursors] == [number] * len(BANKS), number)
        with client.bank_eu.items.find({}, batch_size=2) as cursor:
            next(cursor)
        names = set(client.list_database_names())
        check(names >= {"bank_default", "bank_eu", "bank_set", "config"}, names)
        for bank in BANKS:
            with lines.direct(bank) as line:
                found = {name for name in line.list_database_names() if name.startswith("bank")}
                check(found == {bank}, bank, found)
                check(line[bank].items.count_documents({}) == 500)
        for bank in BANKS:
            watch_and_transact(client, bank)
        operations(client)


def watch_and_transact(client, bank):
    accounts = client[bank].things
    with client[bank].watch() as stream:
        accounts.insert_one({"_id": 0})
        with client.start_session() as session, session.start_transaction():
            accounts.insert_one({"_id": 1}, session=session)
            check(accounts.count_documents({}, session=session) == 2)
        session = client.start_session()
        session.start_transaction()
        accounts.insert_one({"_id": 2}, session=session)
        session.abort_transaction()
        accounts.insert_one({"_id": 3})
        told = [next(stream)["documentKey"]["_id"] for _ in range(3)]
        check(told == [0, 1, 3], bank, told)
        # A causal session: no line may be told another's moment.
    with client.start_session(causal_consistency=True) as session:
        for other in BANKS:
            client[other].causal.insert_one({"bank": bank}, session=session)
            check(client[other].causal.find_one({"bank": bank}, session=session), other)


def operations(client):
    ended = threading.Event()

    def wait():
        try:
            list(client.bank_eu.items.find({"$where": "while (true) {}"}))
        except OperationFailure:
            ended.set()

    threading.Thread(target=wait, daemon=True).start()
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        found = client.admin.aggregate([{"$currentOp": {}}, {"$match": {"ns": "bank_eu.items"}}])
        found = [operation for operation in found if operation.get("op") == "query"]
        if found:
            break
        check(time.monotonic() < deadline, "the operation isn't told")
        time.sleep(0.05)
    check(found[0]["opid"].startswith("eu:") and found[0]["shard"] == "eu", found)
    client.admin.command("killOp", op=found[0]["opid"])
    check(ended.wait(SECONDS_MAX), "the operation wasn't ended")
    status = client.admin.command("serverStatus")
    check({line["name"] for line in status["frond"]["router"]["lines"]} == {"default", "eu", "set"})


def refused(code, names, act):
    try:
        act()
    except OperationFailure as error:
        # What went wrong with many writes as a whole, the driver wraps.
        error = getattr(error, "error", None) or error
        check(error.code == code, code, error)
        check(all(name in str(error) for name in names), names, error)
        return
    raise Wrong(f"not refused with {code}")


def span(lines):
    """What needs two lines at once."""
    with lines.routed() as client:
        eu, other = client.bank_eu.items, client.bank_set
        for stage in [
            {"$out": {"db": "bank_set", "coll": "copied"}},
            {"$merge": {"into": {"db": "bank_set", "coll": "copied"}}},
            {"$lookup": {"from": {"db": "bank_set", "coll": "items"}, "localField": "_id", "foreignField": "_id", "as": "x"}},
            {"$facet": {"x": [{"$lookup": {"from": {"db": "bank_set", "coll": "items"}, "pipeline": [], "as": "x"}}]}},
        ]:
            refused(20, ["eu", "set", "bank_set"], lambda: list(eu.aggregate([stage])))
        rename = lambda: client.admin.command("renameCollection", "bank_eu.items", to="bank_set.copied")
        refused(20, ["eu", "set"], rename)
        write = lambda: client.bulk_write(
            [InsertOne({"_id": 1}, namespace="bank_eu.copied"), InsertOne({"_id": 1}, namespace="bank_set.copied")]
        )
        refused(20, ["eu", "set"], write)
        check(client.bulk_write([InsertOne({"_id": 1}, namespace="bank_eu.bulk")]).inserted_count == 1)
        refused(115, ["lines"], lambda: client.watch().close())
        refused(115, ["router"], lambda: client.admin.command("shutdown"))
        with client.start_session() as session:
            session.start_transaction()
            client.bank_eu.copied.insert_one({"_id": 2}, session=session)
            insert = lambda: other.copied.insert_one({"_id": 2}, session=session)
            refused(263, ["eu", "bank_set", "set"], insert)
            # As a statement that a server refuses.
            refused(251, [], session.commit_transaction)
        check(client.bank_eu.copied.count_documents({"_id": 2}) == 0)
        # What no driver does: one number begun twice.
        begin = {"insert": "copied", "documents": [{"_id": 3}], "lsid": {"id": bson.Binary(os.urandom(16), 4)},
                 "txnNumber": bson.Int64(1), "startTransaction": True, "autocommit": False}
        connection = Raw(lines.routers[0].address)
        check(connection.command("bank_eu", begin)["ok"] == 1)
        check(connection.command("bank_set", begin).get("code") == 263)
        for bank in BANKS:
            check(client[bank].copied.count_documents({}) == 0, bank)
        branches(lines, client)


def branches(lines, client):
    """A branch on a line of its own."""
    client.shop.items.insert_one({"_id": "of the default line"})
    with lines.eu.client() as eu:
        eu.shop.items.insert_one({"_id": "before"})
        eu.shop.command("frondCommit", 1, message="the branch begins here")
        eu.shop.command("frondBranch", 1, branch="sale")
        client["shop@sale"].items.insert_one({"_id": "of eu"})
        check({it["_id"] for it in eu["shop@sale"].items.find()} == {"before", "of eu"})
        check({it["_id"] for it in client["shop@sale"].items.find()} == {"before", "of eu"})
    check([it["_id"] for it in client.shop.items.find()] == ["of the default line"])
    there = {"before", "of eu"}
    for name in ["shop@sale~0", "shop@sale@{now}", "shop@sale@{now}~0"]:
        found = {it["_id"] for it in client[name].items.find()}
        check(found == (there if "~" not in name else {"before"}), name, found)
    for command in [
        {"frondMerge": 1, "merge_in": "sale"},
        {"doltMerge": 1, "merge_in": "sale~0"},
        {"dumboDiff": 1, "to": "sale@{now}"},
        {"frondLog": 1, "range": "main..sale"},
        {"frondBranch": 1, "branch": "other", "start": "sale^"},
        {"frondCommit": 1, "message": "x", "merges": ["sale"]},
        {"aggregate": 1, "pipeline": [{"$diff": {"from": "main", "to": "sale"}}], "cursor": {}},
        {"aggregate": 1, "pipeline": [{"$unionWith": {"coll": "x", "pipeline": [{"$log": {"range": "sale"}}]}}], "cursor": {}},
    ]:
        refused(20, ["eu", "default"], lambda: client.shop.command(command))
    lookup = [{"$lookup": {"from": {"db": "bank_eu", "coll": "items"}, "pipeline": [], "as": "x"}}]
    for command in [
        {"create": "seen", "viewOn": "items", "pipeline": lookup},
        {"collMod": "seen", "viewOn": "items", "pipeline": lookup},
        {"explain": {"aggregate": "items", "pipeline": lookup, "cursor": {}}},
        {"mapReduce": "items", "map": "function() {}", "reduce": "function() {}", "out": {"replace": "x", "db": "bank_eu"}},
    ]:
        refused(20, ["eu", "default"], lambda: client.shop.command(command))


class Raw:
    """A connection that sends what it is told, and nothing else."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=SECONDS_MAX)

    def command(self, database, command):
        body = bson.encode({**command, "$db": database})
        self.socket.sendall(struct.pack("<iiiiI", 21 + len(body), 1, 0, 2013, 0) + b"\0" + body)
        head = self.read(16)
        rest = self.read(struct.unpack_from("<i", head)[0] - 16)
        return bson.decode(rest[5:])

    def read(self, count):
        read = b""
        while len(read) < count:
            more = self.socket.recv(count - len(read))
            check(more, "the connection was closed")
            read += more
        return read


def commit_elsewhere(lines):
    """The token is all that the second router has of the transaction."""
    session = {"id": bson.Binary(uuid.uuid4().bytes, 4)}
    part = {"lsid": session, "txnNumber": bson.Int64(1), "autocommit": False}
    one, other = (Raw(router.address) for router in lines.routers)
    insert = {"insert": "tokens", "documents": [{"_id": 1}], "startTransaction": True, **part}
    answer = one.command("bank_set", insert)
    check(answer["ok"] == 1 and answer["recoveryToken"] == {"line": "set"}, answer)
    commit = {"commitTransaction": 1, **part}
    answer = other.command("admin", commit)
    check(answer["ok"] == 0 and answer["code"] == 251 and "errorLabels" not in answer, answer)
    for _ in range(2):
        answer = other.command("admin", {**commit, "recoveryToken": {"line": "set"}})
        check(answer["ok"] == 1, answer)
    with lines.direct("bank_set") as line:
        check(line.bank_set.tokens.count_documents({}) == 1)


class RoutedWriter(Writer):
    """A writer of `replica_set.py` whose bank one of the lines has."""

    def __init__(self, lines, bank, number, seed, stop):
        self.bank_name = bank
        lines.client = lambda: lines.routed(connectTimeoutMS=2000, socketTimeoutMS=20000)
        super().__init__(lines, number, seed, stop)

    def step(self, bank):
        super().step(self.client[self.bank_name])


def load(lines, seconds, seed, node):
    """Writers, while processes are killed."""
    chance, stop = random.Random(seed), threading.Event()
    for bank in BANKS:
        with lines.direct(bank) as line:
            accounts = [{"_id": number, "money": MONEY} for number in range(ACCOUNTS)]
            line[bank].accounts.insert_many(accounts)
    writers = [RoutedWriter(lines, bank, number, seed, stop) for bank in BANKS for number in range(2)]
    for writer in writers:
        writer.start()
    follower = node and start_node(lines, node, seconds)
    end, killed = time.monotonic() + seconds, {"router": 0, "server": 0, "leader": 0, "frozen": 0}
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.5, 2))
        what = chance.choice(list(killed))
        killed[what] += 1
        if what == "frozen":
            process = lines.set.await_leader()[0].process
            process.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(1, 8))
            process.send_signal(signal.SIGCONT)
            continue
        if what == "leader":
            process = lines.set.await_leader()[0]
        else:
            choices = lines.routers if what == "router" else [lines.default, lines.eu]
            process = chance.choice(choices)
        process.kill()
        time.sleep(chance.uniform(0.05, 2))
        process.start()
    lines.set.await_leader()
    # All come to an end with all running.
    time.sleep(5)
    stop.set()
    for writer in writers:
        writer.join(SECONDS_MAX)
        check(not writer.is_alive(), "a writer hangs")
        check(writer.fault is None, writer.bank_name, repr(writer.fault))
    for writer in writers:
        audit(lines, writer)
    for bank in BANKS:
        with lines.direct(bank) as line:
            money = sum(account["money"] for account in line[bank].accounts.find())
            check(money == ACCOUNTS * MONEY, bank, money)
    if follower:
        check(follower.wait(SECONDS_MAX) == 0, "Node's driver")
    done = {
        "inserts": sum(len(writer.inserted) for writer in writers),
        "appends": sum(len(writer.appended) for writer in writers),
        "moves": sum(writer.moved for writer in writers),
        "slowest": round(max(writer.slowest for writer in writers), 1),
    }
    unknown = {}
    for writer in writers:
        for name, count in writer.refused.items():
            unknown[name] = unknown.get(name, 0) + count
    print(f"killed {killed}; {done}; not known or not done: {unknown}", flush=True)


MOVED = "bank_moved"
PLACES = ["default", "eu", "set"]


class Mover(threading.Thread):
    """Has the database moved from line to line, however often the command gets no answer."""

    def __init__(self, lines, seed, stop):
        super().__init__(daemon=True)
        self.lines, self.random, self.stop = lines, random.Random(seed), stop
        self.moved, self.taken_back, self.repeated, self.fault = 0, 0, 0, None
        self.seconds = []

    def run(self):
        try:
            while not self.stop.is_set():
                self.move(self.random.choice(PLACES))
                time.sleep(self.random.uniform(0, 0.5))
        except Exception as error:
            self.fault = error

    def ask(self, **command):
        """Sends it to one router, as an operator does; whether that answered that it is done."""
        router = self.random.choice(self.lines.routers)
        limits = {"serverSelectionTimeoutMS": 2000, "connectTimeoutMS": 2000, "socketTimeoutMS": 30000}
        try:
            with MongoClient(router.address, directConnection=True, retryReads=False, **limits) as client:
                client.admin.command(command)
            return True
        except OperationFailure as error:
            # Another command has taken over, or the other place is still to be reached first.
            check(error.code in (6, 20, 26, 91, 117, 189, 11600, 11602), command, error)
            return error
        except PyMongoError as error:
            return error

    def take_back(self):
        """Another operator's command, in the midst of a move."""
        try:
            self.taken_back += self.ask(frondAbortMove=MOVED) is True
        except Exception as error:
            self.fault = error

    def move(self, to):
        begun = time.monotonic()
        taking_back = threading.Timer(self.random.uniform(0, 2), self.take_back)
        if self.random.random() < 0.2:
            taking_back.start()
        while True:
            answer = self.ask(movePrimary=MOVED, to=to)
            if answer is True:
                self.moved += 1
                self.seconds.append(time.monotonic() - begun)
                return
            self.repeated += 1
            check(time.monotonic() - begun < SECONDS_MAX, "a move doesn't end", to, answer)
            if getattr(answer, "code", None) == 117 and "on its way" in str(answer):
                # An earlier one is to arrive first.
                to = str(answer).split("on its way to the line ")[1].split(":")[0]
            time.sleep(self.random.uniform(0, 0.5))


def disturb(lines, chance, seconds, most=1.5):
    """Kills and freezes processes, one after the other; tells how often."""
    end, count = time.monotonic() + seconds, {"router": 0, "server": 0, "leader": 0, "frozen": 0}
    while time.monotonic() < end:
        time.sleep(chance.uniform(0.2, most))
        what = chance.choice(list(count))
        count[what] += 1
        if what == "leader":
            process = lines.set.await_leader()[0]
        else:
            choices = {"router": lines.routers, "server": [lines.default, lines.eu]}
            process = chance.choice(choices.get(what, [*lines.routers, lines.default, lines.eu]))
        if what == "frozen":
            process.process.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(0.5, 5))
            process.process.send_signal(signal.SIGCONT)
            continue
        process.kill()
        time.sleep(chance.uniform(0.05, 1.5))
        process.start()
    return count


class MovedWriter(RoutedWriter):
    """A writer that never gives a numbered write up: its answer may take as long as a move."""

    def __init__(self, lines, number, seed, stop):
        super().__init__(lines, MOVED, number, seed, stop)


def where_it_is(lines):
    """The client of the line that has the moved database by the table."""
    with lines.routed() as client:
        entry = client.config.databases.find_one({"_id": MOVED}) or {"line": "default"}
        check("move" not in entry, entry)
        return {"default": lines.default.client, "eu": lines.eu.client, "set": lines.set.client}[entry["line"]]()


def moves(lines, seconds, seed):
    """A database moves, while it is written to and processes are killed."""
    chance, stop = random.Random(seed), threading.Event()
    with lines.routed() as client:
        client[MOVED].accounts.insert_many([{"_id": number, "money": MONEY} for number in range(ACCOUNTS)])
        client[MOVED].documents.create_index("text")
        # A first one that nothing disturbs, with what is told of it.
        client.admin.command("movePrimary", MOVED, to="eu")
        check(client.config.databases.find_one({"_id": MOVED})["line"] == "eu")
    writers = [MovedWriter(lines, number, seed, stop) for number in range(4)]
    mover = Mover(lines, seed, stop)
    for thread in [*writers, mover]:
        thread.start()
    count = disturb(lines, chance, seconds)
    lines.set.await_leader()
    time.sleep(3)
    stop.set()
    for thread in [mover, *writers]:
        thread.join(2 * SECONDS_MAX)
        check(not thread.is_alive(), "it hangs", type(thread).__name__)
        check(thread.fault is None, repr(thread.fault))
    mover.stop.clear()
    mover.move(chance.choice(PLACES))
    direct = lambda bank: where_it_is(lines)
    for writer in writers:
        audit(lines, writer, direct)
    with where_it_is(lines) as line:
        money = sum(account["money"] for account in line[MOVED].accounts.find())
        check(money == ACCOUNTS * MONEY, "money", money)
        check("text_1" in line[MOVED].documents.index_information())
    done = {
        "inserts": sum(len(writer.inserted) for writer in writers),
        "appends": sum(len(writer.appended) for writer in writers),
        "transactions": sum(writer.moved for writer in writers),
        "slowest": round(max(writer.slowest for writer in writers), 1),
    }
    check(mover.moved > 0 and done["inserts"] > 0 and done["transactions"] > 0, done)
    unknown = {}
    for writer in writers:
        for name, times in writer.refused.items():
            unknown[name] = unknown.get(name, 0) + times
    times = f"median {statistics.median(mover.seconds):.1f} s"
    print(
        f"moved {mover.moved} times ({times}), taken back {mover.taken_back}, sent again {mover.repeated}; "
        f"killed {count}; {done}; not known or not done: {unknown}",
        flush=True,
    )


def audit(lines, writer, direct=None):
    """What a writer was told must be there, once, on the line itself."""
    bank = writer.bank_name
    with (direct or lines.direct)(bank) as line:
        own = {"_id": {"$regex": f"^{writer.number}-"}}
        there = {it["_id"] for it in line[bank].documents.find(own, {"_id": 1})}
        lost = [number for number in writer.inserted if f"{writer.number}-{number}" not in there]
        check(not lost, bank, "inserts are lost", lost)
        numbers = [it for place in line[bank].lists.find(own) for it in place["numbers"]]
        check(len(numbers) == len(set(numbers)), bank, "a number is there twice")
        check(set(writer.appended) <= set(numbers), bank, "appends are lost")


def start_node(lines, modules, seconds):
    uri = f"mongodb://{','.join(router.address for router in lines.routers)}/"
    program = os.path.join(os.path.dirname(__file__), "applications", "fail_over", "fail_over.mjs")
    return subprocess.Popen(["node", program, modules, uri, str(seconds)])


def secure(frond, root):
    """Logins and TLS: two servers and a router."""
    os.mkdir(root)
    log = open(os.path.join(root, "log"), "ab")
    authority, server_file = (str(path) for path in certificates(pathlib.Path(root)))
    keys = [os.path.join(root, name) for name in ("key", "other-key")]
    for path in keys:
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(f"{path} is known to servers and routers alone\n")
    tls = ["--tls-certificate-key-file", server_file]
    served = ["serve", "--auth", "--router-key", keys[0], "--tls-mode", "requireTLS", *tls]
    # By it servers trust one another when a database moves.
    served += ["--place-ca-file", authority, "--memory", "200MB"]
    servers = [Process(frond, [*served, "--data", os.path.join(root, name)], log) for name in ("default", "eu")]
    trusted = {"tls": True, "tlsCAFile": authority, "serverSelectionTimeoutMS": SECONDS_MAX * 1000}
    at = lambda process, **options: MongoClient(
        process.address.replace("127.0.0.1", "localhost"), directConnection=True, **trusted, **options
    )
    for server, role in zip(servers, ("readWrite", "read")):
        with at(server) as client:
            client.admin.command("createUser", "root", pwd=PASSWORD, roles=["root"])
        with at(server, username="root", password=PASSWORD) as client:
            client.admin.command("createUser", "router", pwd=PASSWORD, roles=["clusterMonitor"])
            client.admin.command("createUser", "ada", pwd=PASSWORD, roles=[{"role": role, "db": name} for name in ("shop", "bank_eu")])
    lines = ["--default", f"mongodb://{servers[0].address.replace('127.0.0.1', 'localhost')}/?tls=true", "--line-ca-file", authority]
    routers = [Process(frond, ["router", *lines, "--router-key", key, *tls], log) for key in keys]
    root_of = {"username": "root", "password": PASSWORD}
    try:
        with at(routers[0], **root_of) as client:
            uri = f"mongodb://{servers[1].address.replace('127.0.0.1', 'localhost')}/?tls=true"
            client.config.lines.insert_one({"_id": "eu", "uri": uri})
            client.config.databases.insert_one({"_id": "bank_eu", "line": "eu"})
            time.sleep(2.5)
            client.bank_eu.items.insert_one({"_id": 1})
            # Everywhere at once.
            client.admin.command("createUser", "eve", pwd=PASSWORD, roles=[{"role": "read", "db": "bank_eu"}])
        with at(servers[1], username="eve", password=PASSWORD) as client:
            check(client.bank_eu.items.count_documents({}) == 1)
        with at(routers[0], username="ada", password=PASSWORD) as client:
            client.shop.items.insert_one({"_id": 1})
            check(client.bank_eu.items.find_one() == {"_id": 1})
            refused(13, [], lambda: client.bank_eu.items.insert_one({"_id": 2}))
            refused(13, [], lambda: client.config.lines.insert_one({"_id": "x", "uri": "mongodb://x"}))
            status = client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]
            check([user["user"] for user in status] == ["ada"], status)
        with at(routers[0], username="ada", password="wrong") as client:
            refused(18, [], lambda: client.shop.items.find_one())
        with at(routers[0]) as client:
            refused(13, [], lambda: client.shop.items.find_one())
            refused(13, [], lambda: client.admin.command("createUser", "mallory", pwd="x", roles=["root"]))
        # A router whose key the servers don't know reads no table and forwards nothing.
        with at(routers[1], username="root", password=PASSWORD) as client:
            refused(6, [], lambda: client.shop.items.find_one())
        # A password is one for the user alone: the key's mechanism takes no user's.
        raw = {"saslStart": 1, "mechanism": "FROND-ROUTER", "payload": b"n,,n=root,r=abcdefgh"}
        with at(routers[0]) as client:
            refused(334, [], lambda: client.admin.command(raw))
        move_as(at, routers[0], servers[0])
    finally:
        for process in servers + routers:
            process.kill()


def move_as(at, router, target):
    """Who may move a database, and that who may do what there is the target's to say."""
    with at(router, username="ada", password=PASSWORD) as client:
        refused(13, [], lambda: client.admin.command("movePrimary", "bank_eu", to="default"))
    with at(router) as client:
        refused(13, [], lambda: client.admin.command("movePrimary", "bank_eu", to="default"))
    with at(router, username="root", password=PASSWORD) as client:
        client.admin.command("movePrimary", "bank_eu", to="default")
    with at(router, username="ada", password=PASSWORD) as client:
        check(client.bank_eu.items.find_one() == {"_id": 1})
        client.bank_eu.items.insert_one({"_id": 2})
    with at(target, username="root", password=PASSWORD) as client:
        check(client.bank_eu.items.count_documents({}) == 2)


def measure(lines):
    """A find by `_id`, directly and through the router, in turns."""
    with lines.eu.client() as direct, lines.routed() as routed:
        collections = {"directly": direct.bank_eu.measured, "routed": routed.bank_eu.measured}
        collections["routed"].insert_many([{"_id": number, "text": "x" * 200} for number in range(1000)])
        micros = {name: [] for name in collections}
        for turn in range(40):
            for name, collection in collections.items():
                begun = time.perf_counter()
                for number in range(250):
                    collection.find_one({"_id": number * 4 + turn % 4})
                micros[name].append((time.perf_counter() - begun) / 250 * 1e6)
    for name, each in micros.items():
        print(f"find by _id {name}: median {statistics.median(each):.0f} µs, least {min(each):.0f} µs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frond", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--moves", type=float, help="seconds of moves, and nothing else")
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--node", metavar="MODULES")
    options = parser.parse_args()
    root = tempfile.mkdtemp(prefix="frond-router-")
    print(f"seed {options.seed}", flush=True)
    lines = Lines(options.frond, root)
    is_right = False
    try:
        if options.measure:
            measure(lines)
        elif options.moves:
            moves(lines, options.moves, options.seed)
        else:
            use(lines)
            span(lines)
            commit_elsewhere(lines)
            print("three lines are used as one", flush=True)
            secure(options.frond, os.path.join(root, "secure"))
            print("logins and TLS hold", flush=True)
            load(lines, options.seconds, options.seed, options.node)
            moves(lines, options.seconds, options.seed)
        is_right = True
    finally:
        lines.remove()
        if is_right:
            shutil.rmtree(root)
        else:
            print(f"seed {options.seed}; what it left is in {root}", file=sys.stderr)


if __name__ == "__main__":
    main()
