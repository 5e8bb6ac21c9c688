#!/usr/bin/env python3
"""What a write costs where the log lies in a bucket: how long it takes, and how many requests.

    python3 bench/bucket_log.py --frond target/release/frond --server VERSITYGW [--delay-ms 0 40]

Goal: the table of docs/store.md. Method: one client, then 32, insert documents of 1 KB one by one for some
seconds, with the log on the disk and in the bucket. The store's replies are held back on the way by so many
milliseconds, since a bucket answers later than versitygw does on the same machine; what is asked of it is
counted in its access log. Then come some idle seconds. conformance/s3.py builds the store.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

from bucket import Server, Store, Way
from pymongo import MongoClient

CLIENTS = [1, 32]
DOCUMENT_BYTES = 1_000
# What was written is sent within a minute.
SETTLE_SECONDS = 80
IDLE_SECONDS = 25
PUT_DOLLARS = 5e-6
MONTH_SECONDS = 30 * 24 * 3600


class SlowWay(Way):
    """Holds back what the store answers."""

    seconds = 0.0

    def pass_on(self, source, sink, position):
        try:
            while some := source.recv(1 << 18):
                self.bytes[position] += len(some)
                if position == 0:
                    time.sleep(self.seconds)
                sink.sendall(some)
            sink.shutdown(2 if position else 1)
        except OSError:
            pass  # One of them has ended.


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", required=True)
    parser.add_argument("--server", required=True, help="versitygw")
    parser.add_argument("--delay-ms", type=int, nargs="*", default=[0, 40])
    parser.add_argument("--seconds", type=int, default=10)
    options = parser.parse_args()
    options.memory, options.cache = "200MB", "64MB"
    for delay in options.delay_ms:
        for log in ["local", "bucket"]:
            with tempfile.TemporaryDirectory(prefix="frond-log-") as directory:
                store = Store(options.server, Path(directory))
                store.way = SlowWay(store.port)
                try:
                    measure(options, Path(directory), store, log, delay)
                finally:
                    store.process.kill()


def measure(options, directory, store, log, delay):
    options.more = ["--store-log", log]
    server = Server(options, directory, store)
    port = server.client.address[1]
    SlowWay.seconds = delay / 1000
    for clients in CLIENTS:
        store.asked()
        times = insert(port, clients, options.seconds)
        counts, _, _ = store.asked()
        puts = counts.get("Put", 0)
        month = puts / options.seconds * MONTH_SECONDS * PUT_DOLLARS
        print(f"{log}, replies {delay} ms late, {clients} clients: {len(times) / options.seconds:.0f} writes/s, "
              f"{quantile(times, 0.5):.1f} ms (median), {quantile(times, 0.95):.1f} (95%), "
              f"{quantile(times, 0.99):.1f} (99%), {puts / len(times) * 1000:.0f} PUTs per 1,000 writes, "
              f"{puts / options.seconds:.1f} PUTs/s (${month:.0f} a month), all {counts}", flush=True)
    time.sleep(SETTLE_SECONDS)
    store.asked()
    time.sleep(IDLE_SECONDS)
    print(f"{log}, idle: {store.asked()[0] or 'no request'}", flush=True)
    server.process.kill()


def insert(port, clients, seconds):
    """How long each insert took."""
    times, lock, end = [], threading.Lock(), time.monotonic() + seconds

    def run():
        things = MongoClient("127.0.0.1", port).shop.things
        own = []
        while (begun := time.monotonic()) < end:
            things.insert_one({"bytes": b"x" * DOCUMENT_BYTES})
            own.append(time.monotonic() - begun)
        with lock:
            times.extend(own)

    threads = [threading.Thread(target=run) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(times)


def quantile(times, part):
    return times[min(int(len(times) * part), len(times) - 1)] * 1000


if __name__ == "__main__":
    main()
