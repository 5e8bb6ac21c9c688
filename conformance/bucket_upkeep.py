#!/usr/bin/env python3
"""A server whose packs live in a bucket is kept in order: restarted, collected, erased from, backed up, repaired.

1. *Restart*: all is read, and read again after a restart: the store is asked for nothing again. A start asks a
   few times, and reads a small part.
2. *Collection* runs while clients read all and another machine clones: all are told what there is.
3. *Price*: a server to which a document is written each minute costs less than $1 a month.
4. *Erase*: a document goes from all versions, and its bytes are in no object and no file then, also of the log
   in the bucket (`--store-log bucket`), within a time that is told.
5. *Another account*: a backup goes to another store, with other keys, and comes back whole.
6. *Reader*: a server that takes no writes shows what the other one acknowledged, within seconds where the log
   lies in the bucket, also once another has taken over.
7. *Repair*: an object is lost, and bytes of another change: `frond fsck` tells it, `frond salvage` saves the rest,
   `frond repair` brings it from the backup, and a directory that takes over has all of it.

    python3 conformance/bucket_upkeep.py [--frond PATH] [--seed NUMBER] [--server PATH] [--quick]

With --quick points 2, 3 and 5 are left out. Needs PyMongo; versitygw as conformance/s3.py builds it.
"""

import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import NotPrimaryError, PyMongoError

import s3
from s3 import (CREDENTIALS, GET_PRICE, MINUTES_A_MONTH, PRICE_MAX, PROJECT, PUT_PRICE, START_SECONDS_MAX, Frond,
                Store, build_server)

# More than a table of the cache's slots is written for: 64 of 64 KB.
DOCUMENTS = 6_000
BATCH = 1_000
DOCUMENT_BYTES = 1_000
# A start asks for HEAD, and little of what opening reads; each HEAD that is swapped is a PUT.
START_REQUESTS_MAX = 20
# What was written is sent each minute.
SEND_SECONDS = 67
QUIET_SECONDS = 4
# History is packed anew once, when nothing was written for a while: all of it is read and put.
PACKED_SECONDS = 75
ERASE_SECONDS_MAX = 60
# It may have to be opened again, which it does once a minute at most.
READER_SECONDS_MAX = 120
NOT_WRITABLE_PRIMARY = 10107
OTHER_ACCOUNT = {"AWS_ACCESS_KEY_ID": "other-key", "AWS_SECRET_ACCESS_KEY": "other-secret"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", default=str(PROJECT / "target" / "release" / "frond"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", help="a versitygw that was built already")
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    options = parser.parse_args()
    server = options.server or build_server()
    if server is None:
        print("bucket_upkeep: not run: versitygw can't be built here (it needs Go and its module proxy)")
        return 0
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="frond-upkeep-") as directory:
        directory = Path(directory)
        with Store(server, directory) as store:
            try:
                for log in ("local", "bucket"):
                    run(Frond(options.frond, directory, store), store, server, chance, log, options.quick)
            finally:
                for process in Server.started:
                    process.kill()
    print(f"bucket_upkeep: passed with seed {options.seed}")
    return 0


class Wrong(SystemExit):
    def __init__(self, what):
        super().__init__(f"bucket_upkeep: {what}")


class Server:
    """A server whose packs live in the bucket."""

    started = []

    def __init__(self, frond, directory, log, *options, reads_only=False):
        options = [*options, *(["--store-read-only"] if reads_only else ["--store-log", log])]
        self.directory, self.log = frond.directory / directory, frond.directory / f"{directory}.log"
        self.port, self.metrics, self.remote = s3.free_ports(3)
        token = frond.directory / "tokens"
        token.write_text("a-token-that-nobody-guesses\n")
        begun = time.monotonic()
        self.process = frond.start(
            "serve", "--data", directory, "--listen", f"127.0.0.1:{self.port}", "--store", f"s3://bucket/{log}",
            "--store-cache", "64MB", "--memory", "100MB", "--metrics-listen",
            f"127.0.0.1:{self.metrics}", "--remote-listen", f"127.0.0.1:{self.remote}", "--remote-token-file",
            str(token), *options, output=open(self.log, "ab"))
        Server.started.append(self.process)
        self.address = f"127.0.0.1:{self.port}"
        while self.process.poll() is None and time.monotonic() < begun + START_SECONDS_MAX:
            try:
                self.client = MongoClient("127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=500)
                self.client.admin.command("ping")
                self.seconds = time.monotonic() - begun
                return
            except PyMongoError:
                time.sleep(0.02)
        self.process.kill()
        raise Wrong(f"it doesn't serve: {self.told()}")

    def told(self):
        """The end of what it told."""
        return self.log.read_text(errors="replace")[-3000:]

    def requests(self):
        """What it has asked of the bucket, by kind; and the bytes that came."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = re.findall(r'^frond_store_requests_total\{kind="(\w+)"\} (\d+)', text, re.MULTILINE)
        came = re.search(r'^frond_store_request_bytes_total\{direction="got"\} (\d+)', text, re.MULTILINE)
        return {kind: int(count) for kind, count in found}, int(came[1])

    def read_all(self):
        found = {it["_id"]: it for it in self.client.shop.things.find(batch_size=1_000)}
        if len(found) != DOCUMENTS:
            raise Wrong(f"{len(found)} of {DOCUMENTS} documents are read")
        return found

    def stop(self):
        self.process.terminate()
        if self.process.wait(120) != 0:
            raise Wrong(f"a server that is told to stop: {self.told()}")

    def kill(self):
        self.process.kill()
        self.process.wait()


def run(frond, store, server, chance, log, is_quick):
    directory = f"data-{log}"
    leader = Server(frond, directory, log)
    for first in range(0, DOCUMENTS, BATCH):
        batch = range(first, first + BATCH)
        leader.client.shop.things.insert_many([{"_id": it, "bytes": chance.randbytes(DOCUMENT_BYTES)} for it in batch])
        leader.client.shop.command({"frondCommit": 1, "message": f"up to {first}"})
    settle(leader)
    leader = restart(frond, leader, directory, log)
    if not is_quick:
        collect(frond, leader, log)
        price(leader)
    erase(frond, leader, store, chance, log)
    if not is_quick:
        back_up_elsewhere(frond, leader, server, log)
    frond.run("backup", f"backups-{log}", "--from", f"http://127.0.0.1:{leader.remote}", "--token-file", "tokens")
    expected = leader.read_all()
    settle(leader)
    reader = Server(frond, f"reader-{log}", log, reads_only=True)
    read_beside(reader, leader, expected, log)
    leader.stop()
    repair(frond, store, chance, directory, log)
    successor = Server(frond, f"taken-{log}", log, "--store-take-over")
    if successor.read_all() != expected:
        raise Wrong("a directory that took over has other documents")
    if log == "bucket":
        successor.client.shop.beside.insert_one({"_id": "after the take-over"})
        await_in(reader, "after the take-over")
    reader.stop()
    successor.kill()


def restart(frond, leader, directory, log):
    """What was read is not fetched again, whether the process was killed or ended well."""
    leader.stop()
    cold = Server(frond, directory, log)
    expected = cold.read_all()
    came = cold.requests()[1]
    cold.kill()
    after_kill = Server(frond, directory, log)
    again_after_kill = read_again(after_kill, expected)
    after_kill.stop()
    warm = Server(frond, directory, log)
    asked, came_at_start = warm.requests()
    count = sum(asked.values())
    again = read_again(warm, expected)
    print(f"{log}: read all: {came >> 10} KB came, after a kill {again_after_kill >> 10} KB, after a stop "
          f"{again >> 10} KB; a start: {count} requests, {came_at_start >> 10} KB, serving after {warm.seconds:.1f} s",
          flush=True)
    if came < DOCUMENTS * DOCUMENT_BYTES // 2 or count > START_REQUESTS_MAX:
        raise Wrong(f"{came} bytes came; a start: {asked}, {came_at_start} bytes")
    if again_after_kill > came // 2 or again > came // 50:
        raise Wrong(f"{again_after_kill} and {again} bytes of {came} came again")
    return warm


def read_again(server, expected):
    """The bytes that come from the bucket when all is read."""
    before = server.requests()[1]
    if server.read_all() != expected:
        raise Wrong("after a restart there are other documents")
    return server.requests()[1] - before


def collect(frond, leader, log):
    """Collections run while clients read and another machine clones."""
    ends, faults, reads = threading.Event(), [], [0]

    def read():
        try:
            while not ends.is_set():
                leader.read_all()
                reads[0] += 1
        except BaseException as error:  # noqa: BLE001: it is told
            faults.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    clones = 0
    for number in range(2):
        leader.client.shop.junk.insert_many([{"bytes": os.urandom(DOCUMENT_BYTES)} for _ in range(2_000)])
        leader.client.shop.command({"frondCommit": 1, "message": "junk"})
        leader.client.shop.drop_collection("junk")
        clone = frond.start("clone", f"http://127.0.0.1:{leader.remote}/shop", "shop", "--data",
                            f"clone-{log}-{number}", "--token-file", "tokens")
        leader.client.admin.command({"frondGc": 1})
        told = clone.communicate()[0]
        if clone.returncode != 0:
            raise Wrong(f"a clone while garbage is collected: {told}")
        frond.run("fsck", "--data", f"clone-{log}-{number}")
        clones += 1
    ends.set()
    for reader in readers:
        reader.join()
    if faults or reads[0] == 0:
        raise Wrong(f"{reads[0]} readers beside a collection, and {faults}")
    print(f"{log}: {reads[0]} reads of all and {clones} clones beside collections", flush=True)


def price(leader):
    """A document is written each minute: what a month of that costs."""
    leader.client.shop.minutes.insert_one({"_id": 0})
    settle(leader, PACKED_SECONDS)
    before, begun = leader.requests()[0], time.monotonic()
    leader.client.shop.minutes.insert_one({"_id": 1})
    time.sleep(SEND_SECONDS)
    after, minutes = leader.requests()[0], (time.monotonic() - begun) / 60
    asked = {kind: after[kind] - before[kind] for kind in after}
    dollars = ((asked["put"] + asked["list"]) * PUT_PRICE + asked["get"] * GET_PRICE) * MINUTES_A_MONTH / minutes
    print(f"a document a minute: {asked} each: ${dollars:.2f} a month", flush=True)
    if asked["put"] == 0 or dollars > PRICE_MAX:
        raise Wrong(f"a document a minute costs ${dollars:.2f} a month")
    leader.client.shop.drop_collection("minutes")


def settle(leader, quiet_seconds=QUIET_SECONDS):
    """Has what was written sent, and waits until nothing is asked any more."""
    leader.client.admin.command("fsync")
    asked, since = leader.requests()[0], time.monotonic()
    while time.monotonic() < since + quiet_seconds:
        time.sleep(0.5)
        now = leader.requests()[0]
        if now != asked:
            asked, since = now, time.monotonic()


def holding(place, marker):
    found = []
    for path in place.rglob("*"):
        try:
            if path.is_file() and marker in path.read_bytes():
                found.append(str(path.relative_to(place)))
        except FileNotFoundError:
            pass  # It has just gone.
    return found


def erase(frond, leader, store, chance, log):
    """What is erased is in no object and no file."""
    marker = chance.randbytes(64)
    places = [store.directory / "bucket" / log, leader.directory]
    shop = leader.client.shop
    shop.things.insert_one({"_id": "secret", "bytes": marker * 4})
    shop.command({"frondCommit": 1, "message": "with a secret"})
    shop.things.update_one({"_id": "secret"}, {"$set": {"more": 1}})
    shop.command({"frondCommit": 1, "message": "with more"})
    settle(leader)
    if not holding(places[0], marker):
        raise Wrong("the bucket has nothing of what is to be erased")
    begun = time.monotonic()
    told = frond.run("erase", "shop", "things", "--id", "secret", "--yes", "--uri", leader.address)
    seconds = time.monotonic() - begun
    for place in places:
        if found := holding(place, marker):
            raise Wrong(f"what was erased is in {found}: {told}")
    if seconds > ERASE_SECONDS_MAX:
        raise Wrong(f"an erasing took {seconds:.0f} s")
    print(f"{log}: erased in {seconds:.1f} s: {told.strip().splitlines()[-1]}", flush=True)


def back_up_elsewhere(frond, leader, server, log):
    """A backup goes to another account, by a process that has no key of the server's store."""
    with Store(server, frond.directory / f"other-{log}", OTHER_ACCOUNT) as other:
        theirs = Frond(frond.program, frond.directory, other)
        theirs.environment.update(OTHER_ACCOUNT)
        place = ["backup", "s3://bucket/backups"]
        theirs.run(*place, "--from", f"http://127.0.0.1:{leader.remote}", "--token-file", "tokens")
        if "whole" not in theirs.run(*place, "--verify"):
            raise Wrong("a backup in another account isn't whole")
        if Frond(frond.program, frond.directory, other).try_run(*place, "--list")[0] == 0:
            raise Wrong("the keys of the server's store open the other account")
        theirs.run("restore", "--backup", "s3://bucket/backups", "--data", f"restored-{log}")
    frond.run("fsck", "--data", f"restored-{log}")
    exported = [frond.run("export", "-d", "shop", "-c", "things", *place)
                for place in (["--uri", leader.address], ["--data", f"restored-{log}"])]
    if exported[0] != exported[1] or not exported[0]:
        raise Wrong("what comes back from another account isn't what was backed up")


def read_beside(reader, leader, expected, log):
    """A server that reads shows what another acknowledged, and takes no writes."""
    if reader.read_all() != expected:
        raise Wrong("a reader has other documents")
    hello = reader.client.admin.command("hello")
    if not hello["secondary"] or hello["isWritablePrimary"]:
        raise Wrong(f"a reader says of itself {hello}")
    try:
        reader.client.shop.things.insert_one({"_id": "no"})
        raise Wrong("a reader takes a write")
    except NotPrimaryError as error:
        if error.details["code"] != NOT_WRITABLE_PRIMARY:
            raise Wrong(f"a reader refuses a write with {error.details}") from error
    if log == "bucket":
        begun = time.monotonic()
        leader.client.shop.beside.insert_one({"_id": "beside"})
        await_in(reader, "beside")
        print(f"{log}: a reader shows a write after {time.monotonic() - begun:.1f} s", flush=True)


def await_in(reader, name):
    """Waits until a reader shows a document; its process may begin anew meanwhile."""
    end = time.monotonic() + READER_SECONDS_MAX
    while time.monotonic() < end:
        try:
            if reader.client.shop.beside.find_one({"_id": name}):
                return
        except PyMongoError:
            pass
        time.sleep(0.2)
    raise Wrong(f"a reader doesn't show what was written {name}")


def repair(frond, store, chance, directory, log):
    """An object is lost and another is damaged; the backup brings them back."""
    frond.run("fsck", "--data", directory)
    packs = [it for it in (store.directory / "bucket" / log / "packs").rglob("*") if it.is_file()]
    packs.sort(key=lambda it: it.stat().st_size)
    damaged = packs[-1]
    contents = bytearray(damaged.read_bytes())
    for _ in range(8):
        contents[chance.randrange(100, len(contents) // 2)] ^= 0x55
    damaged.write_bytes(contents)
    packs[len(packs) // 2].unlink()
    # What the cache has hides it.
    for name in ("EXTENTS", "EXTENTS.table"):
        (frond.directory / directory / name).unlink(missing_ok=True)
    code, told = frond.try_run("fsck", "--data", directory)
    if code == 0 or "damaged" not in told:
        raise Wrong(f"fsck of a damaged bucket: {code} {told}")
    code, told = frond.try_run("salvage", "--data", directory, "--to", f"saved-{log}")
    if "saved" not in told:
        raise Wrong(f"salvage of a damaged bucket: {code} {told}")
    frond.run("fsck", "--data", f"saved-{log}")
    shutil.rmtree(frond.directory / f"saved-{log}")
    code, told = frond.try_run("repair", directory, "--from", f"backups-{log}")
    if code != 3 or "whole" not in told:
        raise Wrong(f"repair of a damaged bucket: {code} {told}")
    repaired = Server(frond, directory, log)
    repaired.read_all()
    # What was brought is sent.
    repaired.client.shop.repaired.insert_one({"_id": 1})
    settle(repaired)
    repaired.stop()
    frond.run("fsck", "--data", directory)
    print(f"{log}: repaired: {told.strip().splitlines()[-1]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
