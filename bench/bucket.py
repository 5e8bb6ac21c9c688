#!/usr/bin/env python3
"""How many requests and bytes a server asks of the bucket that its packs lie in.

    python3 bench/bucket.py --frond target/release/frond --server VERSITYGW --megabytes 400

Goal: what docs/store.md says of requests, where the data are several times the disk cache and the memory.
Method: documents of 1 KB that don't compress are inserted and recorded as a version; then come reads of single
documents at random, a read of all, some idle seconds, and two restarts, each with what the cache has: after
one, documents are read at random, and the same ones again; after the other, all. What is asked of the bucket is
counted in the store's access log (its packs lie in a file system, so its times are no bucket's), and its bytes
on the way.
conformance/s3.py builds the store.
"""

import argparse
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from pymongo import MongoClient

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret", "AWS_REGION": "us-east-1"}
DOCUMENT_BYTES = 1_000
BATCH = 1_000
READS = 2_000
IDLE_SECONDS = 20
SECONDS_MAX = 60


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", required=True)
    parser.add_argument("--server", required=True, help="versitygw")
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--cache", default="64MB", help="of the server's disk")
    parser.add_argument("--memory", default="200MB")
    parser.add_argument("--disk-max", type=int, help="fail if the server ever takes more megabytes of its disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="frond-bucket-") as directory:
        store = Store(options.server, Path(directory))
        try:
            measure(options, Path(directory), store)
        finally:
            store.process.kill()


class Store:
    """The store, and what was asked of it since the last look."""

    def __init__(self, program, directory):
        self.objects, self.log = directory / "objects", directory / "access.log"
        (self.objects / "bucket").mkdir(parents=True)
        self.port, self.seen = free_port(), 0
        environment = {**os.environ, "ROOT_ACCESS_KEY": CREDENTIALS["AWS_ACCESS_KEY_ID"],
                       "ROOT_SECRET_KEY": CREDENTIALS["AWS_SECRET_ACCESS_KEY"]}
        arguments = [program, "--port", f"127.0.0.1:{self.port}", "--quiet", "--access-log", str(self.log)]
        self.process = subprocess.Popen([*arguments, "posix", str(self.objects)], env=environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_port(self.port)
        self.way, self.before = Way(self.port), [0, 0]

    def asked(self):
        """How often each method was called, and how many bytes came and went."""
        with open(self.log) as file:
            file.seek(self.seen)
            lines = file.read()
            self.seen = file.tell()
        counts = {}
        for line in lines.splitlines():
            found = re.search(r" s3_(\w+?)(?:Object)?s? ", line)
            if found:
                counts[found[1]] = counts.get(found[1], 0) + 1
        came, went = (now - before for now, before in zip(self.way.bytes, self.before, strict=True))
        self.before = list(self.way.bytes)
        return counts, came, went

    def stored(self):
        return sum(file.stat().st_size for file in self.objects.rglob("*") if file.is_file())


class Way:
    """The way to the store: counts the bytes that come from it, and go there."""

    def __init__(self, port):
        self.to, self.bytes = port, [0, 0]
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            store = socket.create_connection(("127.0.0.1", self.to))
            for position, (source, sink) in enumerate([(store, client), (client, store)]):
                threading.Thread(target=self.pass_on, args=(source, sink, position), daemon=True).start()

    def pass_on(self, source, sink, position):
        try:
            while some := source.recv(1 << 18):
                self.bytes[position] += len(some)
                sink.sendall(some)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # One of them has ended.


class Server:
    """The server whose packs lie there."""

    def __init__(self, options, directory, store):
        self.directory = directory / "data"
        port = free_port()
        environment = {**os.environ, **CREDENTIALS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{store.way.port}"}
        arguments = [options.frond, "serve", "--data", str(self.directory), "--listen", f"127.0.0.1:{port}",
                     "--store", f"s3://bucket/{getattr(options, 'place', 'live')}", "--store-cache", options.cache,
                     "--memory", options.memory, *getattr(options, "more", [])]
        begun = time.monotonic()
        self.process = subprocess.Popen(arguments, env=environment, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        await_port(port)
        self.client = MongoClient("127.0.0.1", port)
        self.client.admin.command("ping")
        self.seconds = time.monotonic() - begun

    def on_disk(self):
        return sum(file.stat().st_blocks * 512 for file in self.directory.rglob("*") if file.is_file())

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+)", status)[1]) << 10

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(SECONDS_MAX)


def measure(options, directory, store):
    chance = random.Random(1)
    server = Server(options, directory, store)
    count = options.megabytes * 1_000_000 // DOCUMENT_BYTES
    things = server.client.shop.things

    def tell(what, begun, reads=0):
        counts, came, went = store.asked()
        if options.disk_max and options.disk_max * 1e6 < server.on_disk():
            raise SystemExit(f"{what}: {server.on_disk() / 1e6:.0f} MB on the disk")
        each = f" ({counts.get('Get', 0) / reads:.3f} GET and {came / reads / 1e3:.1f} KB a read)" if reads else ""
        print(f"{what}: {time.monotonic() - begun:.1f} s, {counts or 'no request'}{each}, {came / 1e6:.1f} MB came, "
              f"{went / 1e6:.1f} went; disk {server.on_disk() / 1e6:.0f} MB, bucket {store.stored() / 1e6:.0f} MB, "
              f"memory {server.memory() / 1e6:.0f} MB", flush=True)

    begun = time.monotonic()
    for first in range(0, count, BATCH):
        batch = range(first, min(first + BATCH, count))
        things.insert_many([{"_id": it, "bytes": chance.randbytes(DOCUMENT_BYTES)} for it in batch])
    tell(f"{count} documents inserted", begun)
    begun = time.monotonic()
    server.client.shop.command({"frondCommit": 1, "message": "all"})
    tell("recorded as a version", begun)
    time.sleep(IDLE_SECONDS)
    tell("what came after it", begun)
    numbers = [chance.randrange(count) for _ in range(READS)]
    read_at_random(things, numbers, tell, "")
    read_all(things, count, tell)
    begun = time.monotonic()
    time.sleep(IDLE_SECONDS)
    tell("idle", begun)
    for read in ["at random", "all"]:
        server.stop()
        begun = time.monotonic()
        server = Server(options, directory, store)
        things = server.client.shop.things
        assert things.count_documents({"_id": {"$gte": count - 10}}) == 10
        tell(f"started again, serving after {server.seconds:.1f}", begun)
        if read == "all":
            read_all(things, count, tell)
            break
        read_at_random(things, numbers, tell, " after a restart")
        read_at_random(things, numbers, tell, ", the same ones again")
    server.process.kill()


def read_at_random(things, numbers, tell, how):
    begun = time.monotonic()
    times = sorted(read_one(things, number) for number in numbers)
    print(f"a read of one: {times[READS // 2] * 1e3:.1f} ms (median), {times[READS * 99 // 100] * 1e3:.1f} ms (99%)")
    tell(f"{READS} documents read at random{how}", begun, READS)


def read_all(things, count, tell):
    begun = time.monotonic()
    found = sum(1 for _ in things.find(batch_size=2_000))
    assert found == count, found
    tell("all read in order", begun, count)


def read_one(things, number):
    begun = time.monotonic()
    assert things.find_one({"_id": number})["_id"] == number
    return time.monotonic() - begun


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def await_port(port):
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit("it doesn't start")


if __name__ == "__main__":
    main()
