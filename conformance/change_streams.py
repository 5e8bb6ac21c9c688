#!/usr/bin/env python3
"""Follows change streams over restarts and kills, and folds what they tell into the data.

    python3 conformance/change_streams.py --frond target/release/frond --rounds 20
    python3 conformance/change_streams.py --frond FROND --rounds 60 --writers 8 --every 2 --versions

Goal: a client that applies the events of a stream to an empty copy, going on by its token whenever
the server was killed, has what the server has: no event is lost, doubled or out of order.

Method: on one data directory, round after round, clients write at random (inserts, updates by all
operators, of fields whose names have dots or are numbers too, replacements, deletes, transactions of
several statements, some aborted; some writes acknowledged before they are durable). With
`--versions` another client commits, merges branches and reverts, and makes and drops collections and
indexes meanwhile. Three streams are read meanwhile, of a collection, a database
and the deployment; each keeps its last token. The server is killed, or stopped, and started again.
At the end each copy must equal the collection, field order included. A stream that is not resumed
would miss events; one that resumes too early would insert a document twice: both are told. The
collection keeps what documents were: the first stream's events say what was there before and after,
which must be what its copy has.
"""

import argparse
import collections
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from pymongo import MongoClient, WriteConcern
from pymongo.errors import PyMongoError

from ports import free_port

SECONDS_MAX = 120


class Server:
    """A server process over one data directory."""

    def __init__(self, frond, directory, port, log):
        self.port = port
        listen = f"127.0.0.1:{port}"
        command = [frond, "serve", "--data", directory, "--listen", listen]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the server doesn't come up")
                time.sleep(0.02)

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait()


def connect(port):
    return MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=300)


class Follower(threading.Thread):
    """Applies a stream's events to a copy of `shop.things`."""

    def __init__(self, port, what):
        super().__init__(daemon=True)
        self.port, self.what = port, what
        self.token, self.copy, self.count, self.resumed = None, {}, 0, 0
        self.time = None
        self.wrong, self.done = None, threading.Event()

    def watched(self, client):
        if self.what == "collection":
            return client.shop.things
        return client.shop if self.what == "database" else client

    def run(self):
        while not self.done.is_set() and self.wrong is None:
            client = connect(self.port)
            try:
                start = {"resume_after": self.token} if self.token else {}
                if self.what == "collection":
                    start["full_document"] = start["full_document_before_change"] = "required"
                # Without them a path such as "x.y" may be that of one field or of two.
                start["show_expanded_events"] = True
                with self.watched(client).watch(max_await_time_ms=200, **start) as stream:
                    self.resumed += 1
                    while not self.done.is_set():
                        event = stream.try_next()
                        if event is not None:
                            self.apply(event)
                        self.token = stream.resume_token or self.token
            except PyMongoError as error:
                if error.has_error_label("NonResumableChangeStreamError"):
                    self.wrong = f"{self.what}: {error}"
                time.sleep(0.02)
            finally:
                client.close()

    def apply(self, event):
        if self.time and event["clusterTime"] < self.time:
            self.wrong = f"{self.what}: an event of an earlier time: {event}"
        self.time = event["clusterTime"]
        if event["ns"].get("coll") != "things" or "documentKey" not in event:
            return
        if self.token and event["_id"]["_data"] <= self.token["_data"]:
            self.wrong = f"{self.what}: an event behind its place: {event}"
        kind, key = event["operationType"], event["documentKey"]["_id"]
        self.token, self.count = event["_id"], self.count + 1
        self.compare(event, "fullDocumentBeforeChange", self.copy.get(key))
        if kind == "insert":
            if key in self.copy:
                self.wrong = f"{self.what}: inserted twice: {event}"
            self.copy[key] = event["fullDocument"]
        elif key not in self.copy:
            self.wrong = f"{self.what}: not there: {event}"
        elif kind == "delete":
            del self.copy[key]
        elif kind == "replace":
            self.copy[key] = event["fullDocument"]
        else:
            describe(self.copy[key], event["updateDescription"])
            self.compare(event, "fullDocument", self.copy[key])

    def compare(self, event, image, known):
        if image in event and pairs(event[image]) != pairs(known):
            self.wrong = f"{self.what}: another {image} than {known}: {event}"


def describe(document, description):
    """Applies an updateDescription."""
    parts = description.get("disambiguatedPaths", {})
    for path in description["removedFields"]:
        parent, name = parent_of(document, parts.get(path, path))
        del parent[name]
    for cut in description["truncatedArrays"]:
        parent, name = parent_of(document, parts.get(cut["field"], cut["field"]))
        del parent[name][cut["newSize"] :]
    for path, value in description["updatedFields"].items():
        parent, name = parent_of(document, parts.get(path, path))
        if isinstance(parent, list) and name == len(parent):
            parent.append(value)
        else:
            parent[name] = value


def parent_of(document, path):
    *before, name = path.split(".") if isinstance(path, str) else path
    for part in before:
        document = document[int(part) if isinstance(document, list) else part]
    return document, int(name) if isinstance(document, list) else name


def changes(chance):
    """One update by each operator; some fail, where another has made a field something else."""
    number, field = chance.random(), f"f{chance.randrange(5)}"
    return [
        {"$inc": {"n.a": 1}},
        {"$mul": {"n.a": 2}},
        {"$min": {"n.a": 5}},
        {"$max": {"n.a": 5}},
        {"$bit": {"n.a": {"xor": 3}}},
        {"$push": {"n.b": number}},
        {"$push": {"n.b": {"$each": [1, number], "$position": 1, "$slice": 5}}},
        {"$push": {"n.b": {"$each": [number], "$sort": -1}}},
        {"$addToSet": {"n.b": chance.randrange(3)}},
        {"$pop": {"n.b": chance.choice([1, -1])}},
        {"$pull": {"n.b": {"$lt": number}}},
        {"$pullAll": {"n.b": [0, 1]}},
        {"$set": {field: number}},
        {"$set": {"n.b": []}},
        {"$set": {"n.b.2": number}},
        {"$set": {"n.7": number}},
        {"$unset": {field: 1}},
        {"$rename": {field: "n.renamed"}},
        {"$currentDate": {"at": True}},
        [{"$set": {field: {"$add": [1, number]}}}],
        [{"$replaceWith": {"$setField": {"field": "x.y", "input": "$$ROOT", "value": number}}}],
        [{"$unset": ["n.b", field]}],
    ]


def steward(port, until, seed, made):
    """Makes versions, indexes and collections until then, and counts them."""
    chance = random.Random(seed)
    client = connect(port)
    shop, dev, by = client["shop"], client["shop@dev"], "Steward <s@example.org>"
    while time.monotonic() < until:
        try:
            choice = chance.randrange(6)
            if choice < 3:
                shop.command("frondBranch", branch="dev")
                for _ in range(chance.randrange(1, 5)):
                    key = {"_id": f"m-{chance.randrange(40)}"}
                    dev.things.update_one(key, {"$inc": {"m": 1}}, upsert=True)
                dev.things.delete_one({"_id": f"m-{chance.randrange(40)}"})
                dev.command("frondCommit", message="dev", author=by)
                shop.command("frondMerge", merge_in="dev", author=by)
                made["merges"] += 1
            elif choice == 3:
                shop.command("frondCommit", message="main", author=by)
                made["commits"] += 1
            elif choice == 4:
                shop.things.create_index("n.a")
                shop.things.drop_index("n.a_1")
                made["indexes"] += 1
            else:
                shop.create_collection("extra")
                shop.drop_collection("extra")
                made["collections"] += 1
        except PyMongoError as error:
            made[f"refused, {getattr(error, 'code', None)}"] += 1
            time.sleep(0.01)
        try:
            shop.command("frondBranch", branch="dev", delete=True, forceDelete=True)
        except PyMongoError:
            pass
    client.close()


def write(port, number, until, seed):
    """Writes the documents of one client at random until then."""
    chance = random.Random(seed)
    client = connect(port)
    things = client.shop.things
    relaxed = things.with_options(write_concern=WriteConcern(w=1, j=False))
    while time.monotonic() < until:
        key = f"{number}-{chance.randrange(40)}"
        try:
            choice = chance.randrange(8)
            into = relaxed if chance.random() < 0.3 else things
            if choice < 2:
                size = 40_000 if chance.random() < 0.05 else 20
                into.insert_one({"_id": key, "n": {"a": 1, "b": [1]}, "text": "x" * size})
            elif choice < 5:
                into.update_one({"_id": key}, chance.choice(changes(chance)))
            elif choice == 5:
                into.replace_one({"_id": key}, {"whole": chance.random()})
            elif choice == 6:
                into.delete_one({"_id": key})
            else:
                transact(client, number, chance)
        except PyMongoError:
            time.sleep(0.001)
    client.close()


def transact(client, number, chance):
    with client.start_session() as session, session.start_transaction():
        for _ in range(3):
            key = {"_id": f"{number}-{chance.randrange(40)}"}
            change = {"$inc": {"t": 1}, "$set": {"n": {"a": 1, "b": [1]}}}
            client.shop.things.update_one(key, change, upsert=True, session=session)
            client.shop.others.insert_one({}, session=session)
        if chance.random() < 0.3:
            session.abort_transaction()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frond", required=True)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--every", type=float, help="seconds between kills, instead of at random")
    parser.add_argument("--versions", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    directory = tempfile.mkdtemp(prefix="frond-streams-")
    port = free_port()
    log = open(f"{directory}.log", "w")
    server = Server(options.frond, directory, port, log)
    images = {"enabled": True}
    connect(port).shop.create_collection("things", changeStreamPreAndPostImages=images)
    if options.versions:
        # What both sides of a merge make for themselves would be a conflict.
        connect(port).shop.command("frondCommit", message="begin", author="Steward <s@example.org>")
    followers = [Follower(port, what) for what in ("collection", "database", "deployment")]
    for follower in followers:
        follower.start()
    deadline = time.monotonic() + 30
    while any(follower.token is None for follower in followers):
        if time.monotonic() > deadline:
            raise SystemExit(f"no stream: {[follower.wrong for follower in followers]}")
        time.sleep(0.05)
    made = collections.Counter()
    for number in range(options.rounds):
        until = time.monotonic() + (options.every or chance.uniform(0.5, 2))
        writers = [
            threading.Thread(target=write, args=(port, writer, until, chance.random()))
            for writer in range(options.writers)
        ]
        if options.versions:
            args = (port, until, chance.random(), made)
            writers.append(threading.Thread(target=steward, args=args))
        for writer in writers:
            writer.start()
        time.sleep(options.every or chance.uniform(0.1, 1))
        server.end(
            signal.SIGKILL if options.every or chance.random() < 0.8 else signal.SIGTERM
        )
        server = Server(options.frond, directory, port, log)
        for writer in writers:
            writer.join()
    documents = {document["_id"]: document for document in connect(port).shop.things.find()}
    deadline = time.monotonic() + SECONDS_MAX
    same = lambda follower: list(map(pairs, map(follower.copy.get, documents))) == list(
        map(pairs, documents.values())
    ) and len(follower.copy) == len(documents)
    while not all(map(same, followers)) and time.monotonic() < deadline:
        if any(follower.wrong for follower in followers):
            break
        time.sleep(0.2)
    if options.versions:
        print(f"meanwhile: {dict(made)}")
    failed = 0
    for follower in followers:
        follower.done.set()
        is_right = follower.wrong is None and same(follower)
        failed += not is_right
        print(
            f"{follower.what}: {follower.count} events, {follower.resumed} openings,"
            f" {len(follower.copy)} documents: {'right' if is_right else follower.wrong or 'DIFFERS'}"
        )
    server.end(signal.SIGTERM)
    if failed:
        print(f"seed {options.seed}, data {directory}")
        return 1
    shutil.rmtree(directory)
    return 0


def pairs(value):
    """A document with the order of its fields."""
    if isinstance(value, dict):
        return [(name, pairs(part)) for name, part in value.items()]
    return [pairs(part) for part in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main())
