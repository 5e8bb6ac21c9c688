#!/usr/bin/env python3
"""A data directory ten times its disk: what it takes of disk and memory, and how soon a new server serves it.

    python3 bench/bucket_large.py --frond target/release/frond --server VERSITYGW --gigabytes 20

Goal: what docs/store.md says of data that are many times `--store-cache`.
Method: documents of 64 KB that don't compress, each a function of its number, are inserted into a server with little
disk and memory, while both are looked at again and again. Documents are read at random and compared. Then the
server is stopped and started again, killed and started again, cloned by a pin, and taken over by an empty directory;
each time it is measured when the first document is right, and the directory that took over is read at random.
conformance/s3.py builds the store. It needs the gigabytes twice on its disk, since what garbage collection has moved
stays for 75 minutes.
"""

import argparse
import random
import re
import shutil
import tempfile
import threading
import time
from pathlib import Path

from bucket import Server, Store

DOCUMENT_BYTES = 64_000
BATCH = 32
MEMORY_LOOKS_A_SECOND = 100
DISK_LOOKS_A_SECOND = 5
DISK_FREE_MIN = 12 << 30


def main():
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="frond-bucket-", dir=options.directory) as directory:
        store = Store(options.server, Path(directory))
        try:
            measure(options, Path(directory), store)
        finally:
            for process in [*Watched.processes, store.process]:
                process.kill()
                process.wait()


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", required=True)
    parser.add_argument("--server", required=True, help="versitygw")
    parser.add_argument("--gigabytes", type=float, default=20)
    parser.add_argument("--cache", default="2GB", help="of the server's disk")
    parser.add_argument("--memory", default="512MB")
    parser.add_argument("--reads", type=int, default=5_000)
    parser.add_argument("--seconds", type=float, default=1e9, help="inserts end after so many")
    parser.add_argument("--directory", help="where all of it goes")
    return parser.parse_args()


def document(number):
    return {"_id": number, "bytes": random.Random(number).randbytes(DOCUMENT_BYTES)}


class Watch:
    """The most that a server takes of its disk and of memory."""

    def __init__(self, server):
        self.server, self.disk, self.memory, self.has_ended = server, 0, 0, False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        looks = 0
        while not self.has_ended:
            self.look(looks % (MEMORY_LOOKS_A_SECOND // DISK_LOOKS_A_SECOND) == 0)
            looks += 1
            time.sleep(1 / MEMORY_LOOKS_A_SECOND)

    def look(self, at_disk):
        try:
            self.memory = max(self.memory, self.server.memory())
            if at_disk:
                self.disk = max(self.disk, self.server.on_disk())
        except (FileNotFoundError, TypeError):
            pass  # A file went meanwhile, or the process.

    def told(self):
        most = f"at most {self.disk / 1e6:.0f} MB of disk and {self.memory / 1e6:.0f} MB of memory"
        self.disk = self.memory = 0
        return most

    def end(self):
        self.has_ended = True
        self.thread.join()


class Watched(Server):
    """A server that is watched, in a directory of its own."""

    processes = []

    def __init__(self, options, directory, store, name, *more, place="live"):
        options.more, options.place = more, place
        (directory / name).mkdir(exist_ok=True)
        super().__init__(options, directory / name, store)
        self.processes.append(self.process)
        things = self.client.shop.things
        begun = time.monotonic()
        self.first = things.find_one({"_id": 7})
        self.seconds += time.monotonic() - begun
        self.watch = Watch(self)

    def end(self):
        """Kills it, and lets go of its directory."""
        self.watch.end()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.directory.parent)


def measure(options, directory, store):
    count = int(options.gigabytes * 1e9 / DOCUMENT_BYTES)
    leader = Watched(options, directory, store, "leader")
    count = insert(options, leader, count, store)
    chance = random.Random(11)
    read(options, leader, count, chance, store)
    leader.stop()
    leader.watch.end()
    leader = restarted(options, directory, store, "stopped and started")
    leader.process.kill()
    leader.process.wait()
    leader.watch.end()
    leader = restarted(options, directory, store, "killed and started")
    clone = Watched(options, directory, store, "clone", "--store-clone-of", "s3://bucket/live", place="clone")
    told_first(clone, "a clone by a pin")
    clone.end()
    leader.process.kill()
    leader.process.wait()
    leader.watch.end()
    taken = Watched(options, directory, store, "taken", "--store-take-over")
    told_first(taken, "an empty directory that took over")
    print(f"asked: {asked(store)}", flush=True)
    read(options, taken, count, chance, store)
    taken.end()


def restarted(options, directory, store, what):
    server = Watched(options, directory, store, "leader")
    told_first(server, what)
    return server


def told_first(server, what):
    assert server.first == document(7), what
    print(f"{what}: serves after {server.seconds:.1f} s; the machine's load is {load()}", flush=True)


def insert(options, server, count, store):
    begun, things, free_since = time.monotonic(), server.client.shop.things, time.monotonic()
    for first in range(0, count, BATCH):
        things.insert_many([document(number) for number in range(first, min(first + BATCH, count))])
        if time.monotonic() - free_since > 60:
            free_since = time.monotonic()
            print(f"{first * DOCUMENT_BYTES / 1e9:.1f} GB after {free_since - begun:.0f} s, {server.watch.told()}, "
                  f"load {load()}", flush=True)
            is_full = shutil.disk_usage(store.objects).free < DISK_FREE_MIN
            if is_full or options.seconds < free_since - begun:
                count = first + BATCH
                print("the disk is full" if is_full else "the time is over", flush=True)
                break
    server.client.shop.command({"frondCommit": 1, "message": "all"})
    took = time.monotonic() - begun
    print(f"{count} documents, {count * DOCUMENT_BYTES / 1e9:.2f} GB, inserted in {took:.0f} s; {server.watch.told()}; "
          f"bucket {store.stored() / 1e9:.2f} GB; {asked(store)}", flush=True)
    return count


def read(options, server, count, chance, store):
    things, times = server.client.shop.things, []
    for number in (chance.randrange(count) for _ in range(options.reads)):
        begun = time.monotonic()
        found = things.find_one({"_id": number})
        times.append(time.monotonic() - begun)
        assert found == document(number), number
    times.sort()
    median, most = times[len(times) // 2] * 1e3, times[len(times) * 99 // 100] * 1e3
    print(f"{len(times)} documents read at random, all right: median {median:.1f} ms, 99% {most:.1f} ms; "
          f"{server.watch.told()}; {asked(store)}; load {load()}", flush=True)


def asked(store):
    counts, came, went = store.asked()
    return f"{counts or 'no request'}, {came / 1e6:.0f} MB came, {went / 1e6:.0f} MB went"


def load():
    return re.match(r"\S+", Path("/proc/loadavg").read_text())[0]


if __name__ == "__main__":
    main()
