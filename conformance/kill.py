#!/usr/bin/env python3
"""Kills a real server with SIGKILL at random moments and checks what it kept.

    python3 conformance/kill.py --frond target/release/frond --rounds 100

Goal: after a crash every acknowledged write is there, and nothing is there by half. (That a sync
reaches the disk is shown elsewhere, on a simulated disk: the page cache survives a SIGKILL.)

Method, a round, always on the same data directory:
1. Several clients write at once, each its own documents, so that each knows exactly what it was
   told: the documents as acknowledged, and what the one request in flight would change.
2. The server is killed 5 to 150 ms after they begin; sometimes once more while it recovers.
3. It is started again. Each client's documents must be as acknowledged, with the request in flight
   wholly applied or not at all: a request of less than a megabyte is one transaction, also where
   MongoDB's would be many.
   All clients increment one shared document: its sum must lie between what was acknowledged and
   what was sent. Each index must hold what a scan finds. Acknowledged commits and branches must be
   listed and read back as they were.
4. The next round goes on from what is there.

A round in which anything is wrong counts as failed; it is told with the seed.
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

from pymongo import MongoClient, ReturnDocument
from pymongo.errors import ConnectionFailure, DuplicateKeyError, OperationFailure

from ports import free_port

CLIENTS = 6
GROUPS_MAX = 12
DATABASE = "shop"
TAGS = ["red", "green", "blue", "black", "white"]
INDEXES = ["group_1", "count_1", "tags_1", "serial_1"]
COMMITS_READ_AGAIN = 3
# What a request changes of a megabyte and more it changes in parts, each a transaction.
ONE_TRANSACTION_BYTES = 1 << 19
# A document without its text.
DOCUMENT_BYTES = 200
# Waiting for longer than this is a failure: much more than a machine needs that does much else.
SECONDS_MAX = 300


class Server:
    """A server process over one data directory."""

    def __init__(self, frond, directory, log):
        self.port = free_port()
        self.process = subprocess.Popen(
            [frond, "serve", "--data", directory, "--listen", f"127.0.0.1:{self.port}"],
            stdout=log,
            stderr=log,
        )

    def connect(self):
        """Waits until the server answers; answers with a client that never sends a write twice."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            self.go_on(deadline)
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.002)
        client = MongoClient(
            "127.0.0.1",
            self.port,
            directConnection=True,
            retryWrites=False,
            retryReads=False,
            serverSelectionTimeoutMS=400,
        )
        # Where the machine is busy the driver may need longer than that to make out the server; once it
        # knows it, each client finds out soon that the server is gone.
        while True:
            self.go_on(deadline)
            try:
                client.admin.command("ping")
                return client
            except ConnectionFailure:
                pass

    def go_on(self, deadline):
        """Raises if the server has ended, or the deadline is over."""
        if self.process.poll() is not None:
            raise ServerDied(f"the server ended by itself with {self.process.returncode}")
        if time.monotonic() > deadline:
            raise ServerDied(f"the server doesn't answer after {SECONDS_MAX} seconds")

    def kill(self):
        """Kills it; tells how it had ended if it had ended by itself."""
        ended = self.process.poll()
        if ended is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        return ended


class ServerDied(Exception):
    """The server ended, or never began to listen."""


class Wrong(Exception):
    """The server answered what it must not answer."""


class Writer:
    """One client: writes its own documents and remembers what it was told.

    `documents` is what was acknowledged, by `_id`. `in_flight` is what the request that wasn't
    answered yet changes: `_id` to the document after it, or `None` where it removes it.
    """

    def __init__(self, number, seed):
        self.number = number
        self.random = random.Random(f"{seed} {number}")
        self.next_number = 0
        self.documents = {}
        self.in_flight = {}
        self.shared_acknowledged = 0
        self.shared_in_flight = 0
        self.commits = {}
        self.branches = {}
        self.branch_in_flight = None
        self.requests = 0
        self.fault = None

    def run(self, client, barrier):
        """Writes until the server is gone."""
        try:
            client.admin.command("ping")
            barrier.wait()
            while True:
                self.step(client)
                self.requests += 1
        except ConnectionFailure:
            pass
        except (OperationFailure, Wrong) as error:
            self.fault = f"client {self.number}: {type(error).__name__}: {error}"

    def step(self, client):
        """Sends one request of a random kind."""
        items = client[DATABASE].items
        roll = self.random.random()
        if self.number == 0 and roll < 0.05:
            self.commit(client)
        elif self.number == 0 and roll < 0.10 and self.commits:
            self.branch(client)
        elif roll < 0.30 or not self.documents:
            self.insert_one(items)
        elif roll < 0.40:
            self.insert_many(items)
        elif roll < 0.65:
            self.increment(items)
        elif roll < 0.75:
            self.increment_group(items)
        elif roll < 0.82:
            self.find_and_modify(items)
        elif roll < 0.92:
            self.increment_shared(client)
        elif roll < 0.97:
            self.delete_one(items)
        else:
            self.delete_group(items)

    def new_document(self):
        """A document that was never written before; a thirteenth of a client's are one group."""
        number = self.next_number
        self.next_number += 1
        return {
            "_id": f"{self.number}-{number}",
            "owner": self.number,
            "group": f"{self.number}-{number // 13}",
            "serial": number * CLIENTS + self.number,
            "count": self.random.randrange(1000),
            "tags": self.random.sample(TAGS, 2),
            "text": "x" * self.random.choice([10, 100, 1000, 5000]),
        }

    def some(self):
        """One of the acknowledged documents."""
        return self.documents[self.random.choice(list(self.documents))]

    def sending(self, after):
        """Remembers the change that is about to be sent."""
        self.in_flight = after

    def acknowledged(self, correct, answer):
        """Checks the answer and takes the change for granted."""
        if not correct:
            raise Wrong(f"wrong answer {answer} for {self.in_flight}")
        apply(self.documents, self.in_flight)
        self.in_flight = {}

    def insert_one(self, items):
        document = self.new_document()
        self.sending({document["_id"]: document})
        answer = items.insert_one(dict(document))
        self.acknowledged(answer.inserted_id == document["_id"], answer)

    def insert_many(self, items):
        batch = [self.new_document() for _ in range(self.random.randint(2, 40))]
        self.sending({document["_id"]: document for document in batch})
        answer = items.insert_many([dict(document) for document in batch], ordered=True)
        self.acknowledged(len(answer.inserted_ids) == len(batch), answer)

    def increment(self, items):
        document = self.some()
        self.sending({document["_id"]: {**document, "count": document["count"] + 1}})
        answer = items.update_one({"_id": document["_id"]}, {"$inc": {"count": 1}})
        self.acknowledged(answer.modified_count == 1, answer.raw_result)

    def increment_group(self, items):
        group = self.some()["group"]
        after = {
            key: {**document, "count": document["count"] + 7}
            for key, document in self.documents.items()
            if document["group"] == group
        }
        self.sending(after)
        answer = items.update_many({"group": group}, {"$inc": {"count": 7}})
        self.acknowledged(answer.modified_count == len(after), answer.raw_result)

    def find_and_modify(self, items):
        document = self.some()
        after = {**document, "tags": self.random.sample(TAGS, 2)}
        self.sending({document["_id"]: after})
        answer = items.find_one_and_update(
            {"serial": document["serial"]},
            {"$set": {"tags": after["tags"]}},
            return_document=ReturnDocument.AFTER,
        )
        self.acknowledged(answer == after, answer)

    def delete_one(self, items):
        document = self.some()
        self.sending({document["_id"]: None})
        answer = items.delete_one({"_id": document["_id"]})
        self.acknowledged(answer.deleted_count == 1, answer.raw_result)

    def delete_group(self, items):
        groups = {}
        for document in self.documents.values():
            groups.setdefault(document["group"], []).append(document)
        # All but a few groups go at once where there are many, so that a round stays short.
        gone, size = [], 0
        for group in sorted(groups)[: -3 if len(groups) > GROUPS_MAX else 1]:
            size += sum(DOCUMENT_BYTES + len(document["text"]) for document in groups[group])
            if gone and size > ONE_TRANSACTION_BYTES:
                break
            gone.append(group)
        after = {document["_id"]: None for group in gone for document in groups[group]}
        self.sending(after)
        answer = items.delete_many({"group": {"$in": gone}})
        self.acknowledged(answer.deleted_count == len(after), answer.raw_result)

    def increment_shared(self, client):
        """All clients change this document: their transactions conflict and run again."""
        self.shared_in_flight = 1
        change = {"$inc": {"sum": 1, f"by.{self.number}": 1}}
        answer = client[DATABASE].shared.update_one({"_id": "shared"}, change, upsert=True)
        self.shared_acknowledged += 1
        self.shared_in_flight = 0
        if answer.matched_count != 1 and answer.upserted_id is None:
            raise Wrong(f"the shared document wasn't updated: {answer.raw_result}")

    def commit(self, client):
        """A commit holds all that this client was told; the other clients may be further."""
        self.insert_one(client[DATABASE].items)
        message = f"{len(self.documents)} documents of client {self.number}"
        answer = client[DATABASE].command("frondCommit", 1, message=message, author="kill")
        self.commits[answer["commitId"]] = dict(self.documents)

    def branch(self, client):
        """Makes a branch of an acknowledged commit and writes a document to it."""
        start = self.random.choice(list(self.commits))
        name = f"b{self.next_number}"
        document = self.new_document()
        self.branch_in_flight = name
        client[DATABASE].command("frondBranch", 1, branch=name, start=start)
        self.branches[name] = dict(self.commits[start])
        client[f"{DATABASE}@{name}"].items.insert_one(dict(document))
        self.branches[name][document["_id"]] = document
        self.branch_in_flight = None


def apply(documents, change):
    """Applies a request's change to the documents of a client."""
    for key, document in change.items():
        if document is None:
            documents.pop(key, None)
        else:
            documents[key] = document


def verify(client, writers, chance):
    """Compares what is there with what was acknowledged; answers with a list of faults."""
    faults = []
    database = client[DATABASE]
    scanned = list(database.items.find({}, hint={"$natural": 1}))
    by_owner = [{} for _ in writers]
    for document in scanned:
        by_owner[document["owner"]][document["_id"]] = document
    for writer, found in zip(writers, by_owner):
        faults += verify_writer(writer, found)
        writer.documents, writer.in_flight = found, {}
    faults += verify_indexes(database.items, scanned, DATABASE)
    if scanned:
        faults += verify_unique(database.items, chance.choice(scanned))
    faults += verify_shared(database.shared.find_one() or {"sum": 0, "by": {}}, writers)
    faults += verify_history(client, writers[0], chance)
    return faults


def verify_writer(writer, found):
    """The documents of a client: as acknowledged, or with all of the request in flight."""
    if found == writer.documents:
        return []
    with_in_flight = dict(writer.documents)
    apply(with_in_flight, writer.in_flight)
    if found == with_in_flight:
        return []
    keys = found.keys() | with_in_flight.keys()
    wrong = {key for key in keys if found.get(key) != with_in_flight.get(key)}
    lost = sorted(key for key in wrong if found.get(key) != writer.documents.get(key))
    if lost:
        return [f"client {writer.number}: not as acknowledged: {lost[:5]} of {len(lost)}"]
    return [f"client {writer.number}: {len(wrong)} of {len(writer.in_flight)} changes missing"]


def verify_indexes(items, scanned, name):
    """Each index holds exactly what a scan finds, in its order."""
    if not scanned:
        return []
    faults = []
    expected = {document["_id"]: document for document in scanned}
    for index in INDEXES:
        field = index.removesuffix("_1")
        least = {"$gte": ""} if isinstance(scanned[0][field], (str, list)) else {"$gte": -1}
        found = list(items.find({field: least}, hint=index).sort(field, 1))
        if len(found) != len(scanned) or {item["_id"]: item for item in found} != expected:
            faults.append(f"{name}: {index} has {len(found)} documents, a scan {len(scanned)}")
        keys = [min(item[field]) if field == "tags" else item[field] for item in found]
        if keys != sorted(keys):
            faults.append(f"{name}: {index} is out of order")
    for tag in TAGS:
        found = sorted(item["_id"] for item in items.find({"tags": tag}, hint="tags_1"))
        if found != sorted(item["_id"] for item in scanned if tag in item["tags"]):
            faults.append(f"{name}: tags_1 finds {len(found)} documents for {tag}")
    count = items.count_documents({})
    if count != len(scanned):
        faults.append(f"{name}: count is {count}, a scan finds {len(scanned)}")
    return faults


def verify_unique(items, taken):
    """A unique index still refuses what is there."""
    try:
        items.insert_one({"_id": "twice", "owner": 0, "serial": taken["serial"]})
    except DuplicateKeyError:
        return []
    items.delete_one({"_id": "twice"})
    return [f"serial {taken['serial']} could be inserted twice"]


def verify_shared(shared, writers):
    """The shared document counts each increment once, and each wholly."""
    faults = []
    by_client = shared["by"]
    if shared["sum"] != sum(by_client.values()):
        faults.append(f"the shared document is there by half: {shared}")
    for writer in writers:
        found = by_client.get(str(writer.number), 0)
        least = writer.shared_acknowledged
        if not least <= found <= least + writer.shared_in_flight:
            faults.append(f"client {writer.number}: {least} increments acknowledged, {found} there")
        writer.shared_acknowledged, writer.shared_in_flight = found, 0
    return faults


def verify_history(client, committer, chance):
    """Acknowledged commits and branches are listed; the newest and some older ones read back."""
    faults = []
    commits = client[DATABASE].command("frondLog", 1)["commits"] if committer.commits else []
    listed = [commit["commitId"] for commit in commits]
    missing = [commit for commit in committer.commits if commit not in listed]
    if missing:
        faults.append(f"acknowledged commits are not in the log: {missing}")
    known = list(committer.commits)
    for commit in {*known[-1:], *chance.sample(known, min(len(known), COMMITS_READ_AGAIN))}:
        faults += verify_version(client, commit, committer.commits[commit])
    answer = client[DATABASE].command("frondBranch", 1) if committer.branches else {"branches": []}
    listed = {branch["branch"] for branch in answer["branches"]}
    for name in list(committer.branches):
        if name not in listed:
            faults.append(f"acknowledged branch {name} is gone")
        elif name == committer.branch_in_flight:
            # Its first document may be there or not; from now on it stays as it is.
            committer.branches[name] = documents_of(client, name, committer.number)
    committer.branch_in_flight = None
    known = list(committer.branches)
    for name in {*known[-1:], *chance.sample(known, min(len(known), 1))}:
        faults += verify_version(client, name, committer.branches[name])
    return faults


def verify_version(client, version, expected):
    """A commit or branch holds what the committer knew, and its indexes are right."""
    items = client[f"{DATABASE}@{version}"].items
    faults = []
    scanned = list(items.find({}, hint={"$natural": 1}))
    found = {item["_id"]: item for item in scanned if item["owner"] == 0}
    if found != expected:
        faults.append(f"{version}: {len(found)} documents of client 0, {len(expected)} expected")
    return faults + verify_indexes(items, scanned, version)


def documents_of(client, version, owner):
    """A client's documents at a version."""
    items = client[f"{DATABASE}@{version}"].items
    return {item["_id"]: item for item in items.find({"owner": owner})}


class Run:
    """Rounds over one data directory."""

    def __init__(self, arguments, directory, log):
        self.frond = arguments.frond
        self.directory = directory
        self.log = log
        self.chance = random.Random(arguments.seed)
        self.writers = [Writer(number, arguments.seed) for number in range(CLIENTS)]
        self.killed_recovering = 0
        self.server = None
        self.client = None

    def begin(self):
        """Starts the server for the first time and makes the indexes."""
        self.server = Server(self.frond, self.directory, self.log)
        self.client = self.server.connect()
        items = self.client[DATABASE].items
        for field in ["group", "count", "tags"]:
            items.create_index(field)
        items.create_index("serial", unique=True)

    def round(self):
        """Load, kill, restart, verify; answers with the faults."""
        barrier = threading.Barrier(CLIENTS + 1)
        threads = [
            threading.Thread(target=writer.run, args=(self.client, barrier), daemon=True)
            for writer in self.writers
        ]
        for thread in threads:
            thread.start()
        barrier.wait(timeout=SECONDS_MAX)
        time.sleep(self.chance.uniform(0.005, 0.150))
        ended = self.server.kill()
        for thread in threads:
            thread.join(timeout=SECONDS_MAX)
        self.client.close()
        faults = [writer.fault for writer in self.writers if writer.fault]
        if ended is not None:
            faults.append(f"the server ended by itself with {ended}")
        for writer in self.writers:
            writer.fault = None
        self.restart()
        return faults + verify(self.client, self.writers, self.chance)

    def restart(self):
        """Starts the server; once in five rounds it is killed while it recovers, and again."""
        while self.chance.random() < 0.2:
            server = Server(self.frond, self.directory, self.log)
            time.sleep(self.chance.uniform(0, 0.03))
            server.kill()
            self.killed_recovering += 1
        self.server = Server(self.frond, self.directory, self.log)
        self.client = self.server.connect()

    def end(self):
        """Ends the server that runs."""
        if self.client:
            self.client.close()
        if self.server:
            self.server.kill()


CANNOT_GO_ON = (ServerDied, ConnectionFailure, OperationFailure, threading.BrokenBarrierError)


def report(done, arguments, run, begin):
    """One line on what has happened so far."""
    committer = run.writers[0]
    documents = sum(len(writer.documents) for writer in run.writers)
    requests = sum(writer.requests for writer in run.writers)
    print(
        f"round {done} of {arguments.rounds}: {requests} requests acknowledged, {documents} "
        f"documents there, {len(committer.commits)} commits, {len(committer.branches)} branches, "
        f"killed {run.killed_recovering} times while recovering, {time.monotonic() - begin:.1f} s",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frond", default="target/release/frond")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    base = tempfile.mkdtemp(prefix="frond-kill-")
    begin = time.monotonic()
    failed = done = 0
    with open(os.path.join(base, "server.log"), "wb") as log:
        run = Run(arguments, os.path.join(base, "data"), log)
        try:
            run.begin()
            for done in range(1, arguments.rounds + 1):
                faults = run.round()
                failed += bool(faults)
                for fault in faults:
                    print(f"round {done}, seed {arguments.seed}: {fault}", flush=True)
                if done % 10 == 0:
                    report(done, arguments, run, begin)
        except CANNOT_GO_ON as error:
            print(f"round {done}, seed {arguments.seed}: cannot go on: {error}", flush=True)
            failed += arguments.rounds - max(done, 1) + 1
            done = arguments.rounds
        finally:
            run.end()
    if failed:
        print(f"the data directory and the server's log stay in {base}", flush=True)
    else:
        shutil.rmtree(base)
    print(f"{done - failed} passed, {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
