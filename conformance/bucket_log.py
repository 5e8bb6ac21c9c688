#!/usr/bin/env python3
"""Nothing acknowledged is lost with the disk where the log lies in a bucket (`--store-log bucket`).

Clients insert documents one by one, count up in one document, and record versions, on a server whose packs and
log live in a bucket of versitygw. In each round the server is killed, or goes on running, its directory is deleted
or left, and an empty directory takes over: all that was acknowledged must be there, once. A server that goes on
running and was deposed must refuse its next write, as one that is no primary. Needs PyMongo; versitygw as
conformance/s3.py builds it.

Then the bucket takes requests and answers none: a write and the commit of a transaction end at their time limit,
as a thing unknown, and are there once when it answers again; a server that is told to stop ends within seconds.
Commands then read the directory, which no server has.

    python3 conformance/bucket_log.py [--frond PATH] [--rounds COUNT] [--seed NUMBER] [--server PATH]
"""

import argparse
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from ports import free_port
from s3 import PROJECT, START_SECONDS_MAX, Frond, Store, build_server

CLIENTS = 6
NOT_WRITABLE_PRIMARY = 10107
MAX_TIME_EXPIRED = 50
LIMIT_MS = 1000
# What is unknown ends so much later than at its limit, at the most.
LATE_SECONDS_MAX = 3
STOP_SECONDS_MAX = 20
# A fault is told before the clients whose writes met it; one that comes later may be refused a moment earlier.
LOG_SECONDS_MAX = 10
REFUSED_SECONDS_MAX = 120
DEPOSED = "another directory took the lead"


def main():
    options = read_options()
    server = options.server or build_server()
    if server is None:
        print("bucket_log: not run: versitygw can't be built here (it needs Go and its module proxy)")
        return 0
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="frond-log-") as directory:
        with Store(server, Path(directory)) as store:
            try:
                frond = Frond(options.frond, Path(directory), store)
                run(frond, chance, options.rounds)
                be_silent(frond, store)
            finally:
                for process in Leader.started:
                    process.kill()
    print(f"bucket_log: passed, {options.rounds} rounds with seed {options.seed}")
    return 0


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", default=str(PROJECT / "target" / "release" / "frond"))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", help="a versitygw that was built already")
    return parser.parse_args()


class Leader:
    """A server whose packs and log live in the bucket."""

    started = []

    def __init__(self, frond, directory, *options):
        self.directory = frond.directory / directory
        self.port = free_port()
        begun = time.monotonic()
        self.process = frond.start("serve", "--data", directory, "--listen", f"127.0.0.1:{self.port}", "--store",
                                   "s3://bucket/logged", "--store-cache", "1MB", "--store-log", "bucket", *options)
        Leader.started.append(self.process)
        while self.process.poll() is None and time.monotonic() < begun + START_SECONDS_MAX:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    self.seconds = time.monotonic() - begun
                    return
            time.sleep(0.02)
        self.kill()
        raise SystemExit(f"bucket_log: it doesn't serve: {self.told}")

    def client(self):
        return MongoClient("127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=2000,
                           socketTimeoutMS=20_000, retryWrites=False)

    def kill(self):
        self.process.kill()
        self.told = self.process.communicate()[0]


class Writers:
    """Clients that write until they are stopped or refused; what was acknowledged is kept."""

    def __init__(self, leader, number):
        self.leader, self.number = leader, number
        self.acknowledged, self.counted, self.unknown_counts = [], 0, 0
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self.insert, args=(client,)) for client in range(CLIENTS)]
        self.threads.append(threading.Thread(target=self.count))
        for thread in self.threads:
            thread.start()

    def insert(self, client):
        things = self.leader.client().shop.things
        for position in range(1_000_000):
            if self.stopped.is_set():
                return
            own = f"{self.number}-{client}-{position}"
            try:
                things.insert_one({"_id": own, "text": "x" * (position % 700)})
            except PyMongoError:
                return
            with self.lock:
                self.acknowledged.append(own)

    def count(self):
        counters = self.leader.client().shop.counters
        while not self.stopped.is_set():
            try:
                counters.update_one({"_id": "one"}, {"$inc": {"n": 1}}, upsert=True)
            except PyMongoError:
                self.unknown_counts += 1
                return
            self.counted += 1

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def run(frond, chance, rounds):
    leader = Leader(frond, "data0")
    acknowledged, least, most = set(), 0, 0
    for number in range(1, rounds + 1):
        writers = Writers(leader, number)
        end = time.monotonic() + 1 + 3 * chance.random()
        while time.monotonic() < end:
            time.sleep(0.3)
            if chance.random() < 0.3:
                frond.try_run("commit", "--uri", f"127.0.0.1:{leader.port}", "shop", "-m", "a version")
        is_killed = chance.random() < 0.6
        if is_killed:
            leader.kill()
            shutil.rmtree(leader.directory)
        successor = Leader(frond, f"data{number}", "--store-take-over")
        writers.stop()
        if not is_killed:
            refuse(leader)
        acknowledged.update(writers.acknowledged)
        least, most = least + writers.counted, most + writers.counted + writers.unknown_counts
        most = check(successor, acknowledged, least, most)
        least = most
        print(f"round {number}: {'killed' if is_killed else 'deposed'}, {len(writers.acknowledged)} inserts and "
              f"{writers.counted} counts acknowledged, all there; taken over in {successor.seconds:.1f} s", flush=True)
        leader = successor
    leader.kill()


def refuse(deposed):
    """The server that was deposed takes no writes, and says why."""
    things = deposed.client().shop.things
    # The first ones may end at a time limit, where the machine is busy.
    codes, end = [], time.monotonic() + REFUSED_SECONDS_MAX
    while len(codes) < 2 or codes[-1] is None and time.monotonic() < end:
        try:
            things.insert_one({"text": "too late"})
            raise SystemExit("bucket_log: a deposed server acknowledges a write")
        except PyMongoError as error:
            codes.append((getattr(error, "details", None) or {}).get("code"))
    if codes[-1] != NOT_WRITABLE_PRIMARY:
        raise SystemExit(f"bucket_log: a deposed server answers with the codes {codes}")
    log, end = deposed.client().admin, time.monotonic() + LOG_SECONDS_MAX
    while not any(DEPOSED in line for line in log.command("getLog", "global")["log"]) and time.monotonic() < end:
        time.sleep(0.05)
    deposed.kill()
    if DEPOSED not in deposed.told:
        raise SystemExit(f"bucket_log: a deposed server's log: {deposed.told[-2000:]}")


def check(leader, acknowledged, least, most):
    """All that was acknowledged is there; returns what was counted."""
    shop = leader.client().shop
    found = [document["_id"] for document in shop.things.find({}, {"_id": 1})]
    missing = acknowledged.difference(found)
    if missing or len(found) != len(set(found)):
        raise SystemExit(f"bucket_log: {len(missing)} of {len(acknowledged)} acknowledged documents are lost")
    if "too late" in {document.get("text") for document in shop.things.find({"text": "too late"})}:
        raise SystemExit("bucket_log: what a deposed server refused is there")
    counter = shop.counters.find_one({"_id": "one"})
    counted = counter["n"] if counter else 0
    if not least <= counted <= most:
        raise SystemExit(f"bucket_log: counted {counted}, of {least} to {most} acknowledged")
    return counted


class Way:
    """The way to the store, on which requests wait while it is silent."""

    def __init__(self, port):
        self.to, self.open = port, threading.Event()
        self.open.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            store = socket.create_connection(("127.0.0.1", self.to))
            for source, sink in [(store, client), (client, store)]:
                threading.Thread(target=self.pass_on, args=(source, sink), daemon=True).start()

    def pass_on(self, source, sink):
        try:
            while some := source.recv(1 << 18):
                self.open.wait()
                sink.sendall(some)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # One of them has ended.


def be_silent(frond, store):
    """What waits for a bucket that answers nothing can be ended, and is found when it answers again."""
    way = Way(store.port)
    frond.environment["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{way.port}"
    leader = Leader(frond, "silent", "--store-take-over")
    client = leader.client()
    shop = client.shop
    shop.silent.insert_one({"_id": "before"})
    with client.start_session() as session:
        session.start_transaction(max_commit_time_ms=LIMIT_MS)
        shop.silent.insert_one({"_id": "in a transaction"}, session=session)
        way.open.clear()
        insert = {"insert": "silent", "documents": [{"_id": "alone"}], "maxTimeMS": LIMIT_MS}
        end_at_limit("an insert", lambda: shop.command(insert))
        end_at_limit("a commit", session.commit_transaction)
        end_at_limit("a commit that is asked again", session.commit_transaction)
        way.open.set()
        session.commit_transaction()
    shop.silent.insert_one({"_id": "after"})
    found = sorted(document["_id"] for document in shop.silent.find())
    if found != ["after", "alone", "before", "in a transaction"]:
        raise SystemExit(f"bucket_log: after the silence there is {found}")
    way.open.clear()
    acknowledged = []
    waiting = threading.Thread(target=insert_in_vain, args=(leader, acknowledged))
    waiting.start()
    time.sleep(1)
    begun = time.monotonic()
    leader.process.terminate()
    try:
        leader.process.communicate(timeout=STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise SystemExit("bucket_log: a server beside a silent bucket doesn't end") from None
    seconds = time.monotonic() - begun
    waiting.join()
    if acknowledged:
        raise SystemExit("bucket_log: a silent bucket acknowledges")
    way.open.set()
    leader = Leader(frond, "silent")
    found = {document["_id"] for document in leader.client().shop.silent.find()} - {"in vain"}
    if found != {"after", "alone", "before", "in a transaction"}:
        raise SystemExit(f"bucket_log: after a stop beside a silent bucket there is {found}")
    leader.process.terminate()
    leader.process.communicate(timeout=STOP_SECONDS_MAX)
    command = frond.run("export", "--data", "silent", "-d", "shop", "-c", "silent")
    if not {"after", "alone", "before"} <= set(re.findall('"_id": *"([^"]*)"', command)):
        raise SystemExit(f"bucket_log: a command finds {command}")
    frond.run("fsck", "--data", "silent")
    print(f"silence: writes and commits end at their limits; a server that is told to stop ends in {seconds:.1f} s")


def end_at_limit(what, write):
    begun = time.monotonic()
    try:
        write()
        raise SystemExit(f"bucket_log: {what} is acknowledged by a silent bucket")
    except OperationFailure as error:
        seconds = time.monotonic() - begun
        if error.code != MAX_TIME_EXPIRED or not 0 <= seconds - LIMIT_MS / 1000 < LATE_SECONDS_MAX:
            raise SystemExit(f"bucket_log: {what} ends after {seconds:.1f} s: {error!r}") from error


def insert_in_vain(leader, acknowledged):
    try:
        acknowledged.append(leader.client().shop.silent.insert_one({"_id": "in vain"}))
    except PyMongoError:
        pass  # Whether it is there is unknown.


if __name__ == "__main__":
    sys.exit(main())
