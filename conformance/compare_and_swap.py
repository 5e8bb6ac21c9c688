#!/usr/bin/env python3
"""Many clients swap values on one branch, and on branches that are merged all the time.

    python3 conformance/compare_and_swap.py --frond target/release/frond --seconds 300

Goal: no acknowledged update is lost, and none is there twice, whatever commits, merges and collections
run meanwhile.

Method: 32 clients in 8 processes, each with connections of its own.
1. *One branch*, half of the time. A client reads a counter and sets it to one more, if it is still what
   it read; it counts what was acknowledged, by counter. One client commits all the time, one collects.
   At the end each counter is what was acknowledged of it, no more and no less.
2. *Merging branches*, the other half. Each of 4 branches has 8 clients. A swap changes the branch's own field
   and adds to a field that all branches share, in one update. Two more clients merge each branch into
   main and main into each branch, the shared field as a sum of changes. At the end, when all is merged,
   every branch's field on main is what was acknowledged there, and the shared one is their sum.

An update whose answer was an error is not acknowledged; one that was sent again by the driver counts
once. Exit code 1 and the seed if anything is wrong.
"""

import argparse
import multiprocessing
import random
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import OperationFailure

from kill import Server

PROCESSES = 8
THREADS = 4
COUNTERS = 10
BRANCHES = ["b0", "b1", "b2", "b3"]
MERGE_RULES = {"counters": {"total": "delta"}}
WRITE_CONFLICT = 112
NOTHING_TO_COMMIT = 2


def swap(collection, identifier, field, more):
    """One compare-and-swap; tells whether it was done and acknowledged."""
    found = collection.find_one({"_id": identifier}, {field: 1})
    value = found[field]
    change = {"$set": {field: value + 1}}
    if more:
        change["$inc"] = {more: 1}
    try:
        result = collection.update_one({"_id": identifier, field: value}, change)
    except OperationFailure as error:
        if error.code != WRITE_CONFLICT:
            raise
        return False
    return result.modified_count == 1


def clients(address, jobs, seed, until, results):
    """One process: a thread a job (database, field, more); puts [field, counter, acknowledged]."""

    def run(job, generator):
        database, field, more = job
        with MongoClient(address, directConnection=True) as client:
            collection = client[database]["counters"]
            acknowledged = [0] * COUNTERS
            while time.time() < until:
                identifier = generator.randrange(COUNTERS)
                acknowledged[identifier] += swap(collection, identifier, field, more)
            results.put((field, acknowledged))

    threads = []
    for position, job in enumerate(jobs):
        generator = random.Random(seed * 1000 + position)
        threads.append(threading.Thread(target=run, args=(job, generator)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_clients(address, jobs, seed, until):
    """Runs all jobs, several a process; returns acknowledged updates by field and counter."""
    results = multiprocessing.Queue()
    processes = []
    for position in range(PROCESSES):
        own = jobs[position * THREADS : (position + 1) * THREADS]
        arguments = (address, own, seed * 100 + position, until, results)
        processes.append(multiprocessing.Process(target=clients, args=arguments))
    for process in processes:
        process.start()
    acknowledged = {}
    for _ in jobs:
        field, counts = results.get(timeout=until - time.time() + 120)
        sums = acknowledged.setdefault(field, [0] * COUNTERS)
        acknowledged[field] = [one + other for one, other in zip(sums, counts)]
    for process in processes:
        process.join()
        if process.exitcode != 0:
            raise RuntimeError(f"a process of clients ended with {process.exitcode}")
    return acknowledged


class Background:
    """Calls something again and again until it is told to end; keeps the first error."""

    def __init__(self, address, body, pause):
        self.ended = threading.Event()
        self.error = None
        self.count = 0

        def run():
            with MongoClient(address, directConnection=True) as client:
                while not self.ended.is_set():
                    try:
                        body(client)
                        self.count += 1
                    except OperationFailure as error:
                        if error.code not in (WRITE_CONFLICT, NOTHING_TO_COMMIT):
                            self.error = self.error or error
                            return
                    time.sleep(pause)

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def end(self):
        self.ended.set()
        self.thread.join()
        if self.error:
            raise self.error
        return self.count


def one_branch(address, seed, seconds, wrong):
    """Part 1."""
    with MongoClient(address, directConnection=True) as client:
        client["one"]["counters"].insert_many([{"_id": n, "n": 0} for n in range(COUNTERS)])
        commits = Background(address, lambda c: c["one"].command("frondCommit", message="more"), 0.05)
        gc = Background(address, lambda c: c["admin"].command("frondGc", quick=True), 1)
        jobs = [("one", "n", None)] * (PROCESSES * THREADS)
        acknowledged = run_clients(address, jobs, seed, time.time() + seconds)["n"]
        counts = (commits.end(), gc.end())
        found = [document["n"] for document in client["one"]["counters"].find().sort("_id")]
        if found != acknowledged:
            wrong.append(f"one branch: {found} is there, {acknowledged} were acknowledged")
        print(f"one branch: {sum(acknowledged)} swaps, {counts[0]} commits, {counts[1]} collections")


def merging_branches(address, seed, seconds, wrong):
    """Part 2."""
    with MongoClient(address, directConnection=True) as client:
        fields = {branch: 0 for branch in BRANCHES}
        documents = [{"_id": n, "total": 0, **fields} for n in range(COUNTERS)]
        client["many"]["counters"].insert_many(documents)
        client["many"].command("frondCommit", message="first")
        for branch in BRANCHES:
            client["many"].command("frondBranch", branch=branch)

        def merge(into, merge_in):
            def run(client):
                client[into].command("frondMerge", merge_in=merge_in, mergeRules=MERGE_RULES)

            return run

        def there_and_back(client):
            for branch in BRANCHES:
                # What isn't committed there is, first: the merge takes commits.
                try:
                    client[f"many@{branch}"].command("frondCommit", message="more")
                except OperationFailure as error:
                    if error.code not in (NOTHING_TO_COMMIT, WRITE_CONFLICT):
                        raise
                merge("many", branch)(client)
                merge(f"many@{branch}", "main")(client)

        merges = Background(address, there_and_back, 0.02)
        gc = Background(address, lambda c: c["admin"].command("frondGc", quick=True), 2)
        jobs = []
        for branch in BRANCHES:
            jobs += [(f"many@{branch}", branch, "total")] * (PROCESSES * THREADS // len(BRANCHES))
        acknowledged = run_clients(address, jobs, seed, time.time() + seconds)
        rounds = merges.end()
        gc.end()
        there_and_back(client)
        there_and_back(client)
        sums = [sum(counts) for counts in zip(*acknowledged.values())]
        for database in ["many"] + [f"many@{branch}" for branch in BRANCHES]:
            found = list(client[database]["counters"].find().sort("_id"))
            for branch, counts in list(acknowledged.items()) + [("total", sums)]:
                have = [document[branch] for document in found]
                if have != counts:
                    wrong.append(f"{database}, field {branch}: {have}, acknowledged {counts}")
        print(f"merging branches: {sum(sums)} swaps, {rounds} rounds of {2 * len(BRANCHES)} merges")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="frond-swap-")
    wrong = []
    with open(Path(directory) / "log", "wb") as log:
        server = Server(options.frond, str(Path(directory) / "data"), log)
        try:
            server.connect().close()
            address = f"mongodb://127.0.0.1:{server.port}"
            one_branch(address, options.seed, options.seconds / 2, wrong)
            merging_branches(address, options.seed, options.seconds / 2, wrong)
        finally:
            server.kill()
    for line in wrong:
        print(line)
    print(f"seed {options.seed}: {'wrong' if wrong else 'right'}")
    if not wrong:
        shutil.rmtree(directory)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
