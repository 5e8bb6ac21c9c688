#!/usr/bin/env python3
"""What many small commits of a large collection take on the disk.

    python3 bench/commits_storage.py --frond target/release/frond [--documents 1000000] [--commits 100]

A collection of a million documents of about 250 bytes is committed and collected (frondGc). Then there are
100 commits, each of 100 random documents of which one field changed, and a second collection. What the
data directory has grown by then is what the history takes: under 60 MB is the aim. At the end some versions
are read back and compared with what was written. Needs pymongo.
"""

import argparse
import random
import sys
import tempfile
import time

from countries_history import disk_bytes, serve
from pymongo import UpdateOne

BATCH = 10_000
TOWNS = ["Aarhus", "Bergen", "Cadiz", "Delft", "Espoo", "Faro", "Ghent", "Haarlem"]


def document(number):
    generator = random.Random(number)
    return {
        "_id": number,
        "name": f"customer {generator.randrange(10**9)}",
        "town": TOWNS[generator.randrange(len(TOWNS))],
        "note": " ".join(str(generator.randrange(10**6)) for _ in range(16)),
        "visits": 0,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frond", default="target/release/frond")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--aim", type=float, default=60, help="megabytes")
    parser.add_argument("--directory", help="where the data directory is made")
    options = parser.parse_args()
    generator = random.Random(1)
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        server, client = serve(options.frond, directory)
        shop = client.shop
        for first in range(0, options.documents, BATCH):
            last = min(first + BATCH, options.documents)
            shop.customers.insert_many([document(number) for number in range(first, last)], ordered=False)
        shop.command("frondCommit", message="all", author="bench")
        client.admin.command("frondGc")
        before = disk_bytes(directory)
        print(f"{options.documents} documents: {before / 1e6:.1f} MB", flush=True)
        begin, written, commits = time.perf_counter(), {}, []
        for number in range(options.commits):
            chosen = generator.sample(range(options.documents), options.changes)
            shop.customers.bulk_write(
                [UpdateOne({"_id": identifier}, {"$set": {"visits": number + 1}}) for identifier in chosen],
                ordered=False,
            )
            commits.append(shop.command("frondCommit", message=str(number), author="bench")["commitId"])
            written.update((identifier, number + 1) for identifier in chosen)
            if number in (0, options.commits // 2, options.commits - 1):
                want = dict(written)
                some = random.Random(number).sample(sorted(want), min(50, len(want)))
                written_then = {identifier: want[identifier] for identifier in some}
                commits[-1] = (commits[-1], written_then)
        seconds = time.perf_counter() - begin
        live = disk_bytes(directory)
        print(
            f"{options.commits} commits of {options.changes} changes: {seconds:.1f} s, "
            f"grown by {(live - before) / 1e6:.1f} MB while serving",
            flush=True,
        )
        begin = time.perf_counter()
        client.admin.command("frondGc")
        grown = (disk_bytes(directory) - before) / 1e6
        print(f"frondGc: {time.perf_counter() - begin:.1f} s, grown by {grown:.1f} MB")
        for commit in commits:
            if isinstance(commit, str):
                continue
            version, want = commit
            found = client[f"shop@{version}"].customers.find({"_id": {"$in": list(want)}})
            assert {each["_id"]: each["visits"] for each in found} == want, version
        print("versions read back: equal")
        client.close()
        server.terminate()
        server.wait()
    if grown >= options.aim:
        print(f"more than {options.aim} MB")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
