#!/usr/bin/env python3
"""One query on all idle cores: a million small documents, asked in turns of a server that may use
one core and of one that may use all, and the p99 of find_one beside such a query.

    python bench/cores.py FROND DIRECTORY [DOCUMENTS] [TURNS]

Prints for each query the median and the least of its times and their ratios, and the least of the
servers' processor times: where other processes use the machine's cores, these and the least times are
what counts. The answers of both servers must be equal.
"""

import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time

import pymongo

QUERIES = {
    "group": lambda things: list(things.aggregate([
        {"$group": {"_id": "$g", "n": {"$sum": "$n"}, "mean": {"$avg": "$p"}, "total": {"$sum": "$p"}}}])),
    "filtered count": lambda things: things.count_documents({"p": {"$gt": 25}, "s": "word 7"}),
    "sort and limit": lambda things: list(things.aggregate([{"$sort": {"p": -1, "n": 1}}, {"$limit": 20}])),
    "group of expressions": lambda things: list(things.aggregate([
        {"$match": {"$expr": {"$gt": [{"$mod": ["$n", 10]}, 3]}}},
        {"$set": {"v": {"$multiply": ["$p", {"$add": ["$g", 1]}]}}},
        {"$group": {"_id": "$s", "v": {"$sum": "$v"}, "most": {"$max": "$v"}}}])),
    "facet": lambda things: list(things.aggregate([{"$facet": {
        "by word": [{"$sortByCount": "$s"}],
        "by price": [{"$bucket": {"groupBy": "$p", "boundaries": [0, 20, 50, 1000]}}],
        "all": [{"$count": "n"}]}}])),
    "windows": lambda things: list(things.aggregate([
        {"$setWindowFields": {"partitionBy": "$g", "sortBy": {"n": 1}, "output": {
            "total": {"$sum": "$p", "window": {"documents": ["unbounded", "current"]}}}}},
        {"$group": {"_id": "$g", "total": {"$max": "$total"}}}])),
    "group of a view": lambda things: list(things.database.dear.aggregate([
        {"$group": {"_id": "$s", "n": {"$sum": 1}, "v": {"$sum": "$v"}}}, {"$sort": {"_id": 1}}])),
    "windows, all": lambda things: sum(1 for _ in things.aggregate([
        {"$setWindowFields": {"partitionBy": "$g", "sortBy": {"n": 1}, "output": {
            "total": {"$sum": "$p", "window": {"documents": ["unbounded", "current"]}}}}},
        {"$match": {"total": {"$gt": 49_000}}}])),
    "fill": lambda things: list(things.aggregate([
        {"$fill": {"partitionBy": "$g", "sortBy": {"n": 1}, "output": {"q": {"method": "locf"}}}},
        {"$group": {"_id": "$q", "n": {"$sum": 1}}}])),
    "deviation": lambda things: list(things.aggregate([
        {"$group": {"_id": "$g", "d": {"$stdDevPop": "$p"}, "e": {"$stdDevSamp": "$n"}}}])),
    "sum of decimals": lambda things: list(things.aggregate([
        {"$group": {"_id": "$g", "d": {"$sum": {"$toDecimal": "$p"}}}}])),
    "lookup": lambda things: sum(1 for _ in things.aggregate([
        {"$lookup": {"from": "words", "localField": "s", "foreignField": "_id", "as": "w"}},
        {"$match": {"w.n": 3, "g": {"$lt": 100}}}])),
    "unwind and limit": lambda things: list(things.aggregate([
        {"$set": {"k": {"$range": [0, 4]}}}, {"$unwind": "$k"},
        {"$match": {"$expr": {"$eq": [{"$mod": ["$n", 997]}, "$k"]}}}, {"$limit": 100_000}, {"$count": "n"}])),
    "by an index": lambda things: list(things.aggregate([
        {"$match": {"n": {"$lt": 60_000}, "p": {"$gt": 99}}}, {"$project": {"n": 1}}])),
    "distinct": lambda things: things.distinct("s", {"p": {"$lt": 90}}),
}
# Beside which documents are found: one that is divided, and one that isn't.
DIVIDED = [{"$group": {"_id": "$g", "n": {"$sum": "$n"}, "mean": {"$avg": "$p"}}}]
WHOLE = [{"$group": {
    "_id": "$g", "n": {"$sum": "$n"}, "mean": {"$avg": "$p"}, "d": {"$maxN": {"input": "$p", "n": 1}}}}]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server on a directory, whose queries may use so many of the cores."""

    def __init__(self, frond, directory, cores):
        port = free_port()
        self.process = subprocess.Popen(
            [frond, "serve", "--data", directory, "--listen", f"127.0.0.1:{port}", "--query-cores", str(cores)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = pymongo.MongoClient("127.0.0.1", port)
        self.client.admin.command("ping")
        self.things = self.client.shop.things

    def processor_seconds(self):
        """What all of its threads took so far."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.client.close()
        self.process.terminate()
        self.process.wait()


def load(things, count):
    chance = random.Random(1)
    for first in range(0, count, 20_000):
        things.insert_many([
            {"_id": n, "g": n * 7919 % 1000, "n": chance.randrange(100_000), "p": chance.randrange(9999) / 100,
             "s": f"word {n % 13}", "pad": "x" * 20}
            for n in range(first, min(first + 20_000, count))])
    things.create_index("n")
    things.database.words.insert_many([{"_id": f"word {n}", "n": n % 5} for n in range(13)])
    things.database.create_collection("dear", viewOn="things", pipeline=[
        {"$match": {"p": {"$gt": 20}}}, {"$set": {"v": {"$multiply": ["$p", "$n"]}}}])


def timed(ask, things):
    begun = time.perf_counter()
    answer = ask(things)
    return time.perf_counter() - begun, answer


def percentile(times, share):
    return sorted(times)[int(len(times) * share)]


def beside(server, stages, seconds):
    """The times of find_one while `stages` run again and again; None: nothing runs."""
    stop = threading.Event()
    asked = []

    def ask():
        with pymongo.MongoClient(*server.client.address) as client:
            while stages and not stop.is_set():
                list(client.shop.things.aggregate(stages))
                asked.append(1)

    thread = threading.Thread(target=ask)
    thread.start()
    times, ends = [], time.perf_counter() + seconds
    while time.perf_counter() < ends:
        times.append(timed(lambda things: things.find_one({"_id": len(times) * 31 % 1000}), server.things)[0])
    stop.set()
    thread.join()
    return times, len(asked)


def main():
    frond, directory = sys.argv[1:3]
    count = int(sys.argv[3]) if 3 < len(sys.argv) else 1_000_000
    turns = int(sys.argv[4]) if 4 < len(sys.argv) else 9
    paths = [os.path.join(directory, name) for name in ("one", "all")]
    cores = len(os.sched_getaffinity(0))
    if not os.path.exists(paths[1]):
        server = Server(frond, paths[0], cores)
        load(server.things, count)
        server.client.admin.command("fsync")
        server.stop()
        shutil.copytree(*paths)
    one, every = Server(frond, paths[0], 1), Server(frond, paths[1], cores)
    try:
        for name, ask in QUERIES.items():
            times, processor = ([], []), ([], [])
            for turn in range(turns + 1):
                answers = [None, None]
                for place, server in enumerate((one, every)):
                    before = server.processor_seconds()
                    took, answers[place] = timed(ask, server.things)
                    processor[place].extend([server.processor_seconds() - before] if turn else [])
                    # The first of each reads what isn't cached.
                    times[place].extend([took] if turn else [])
                assert answers[0] == answers[1], name
            (first, second), (least, other) = map(statistics.median, times), map(min, times)
            spent = " and ".join(f"{min(seconds) * 1e3:.0f}" for seconds in processor)
            print(f"{name:22} median {first * 1e3:7.1f} {second * 1e3:7.1f} ms, {first / second:.2f} times;"
                  f" least {least * 1e3:7.1f} {other * 1e3:7.1f} ms, {least / other:.2f} times;"
                  f" processor {spent} ms", flush=True)
        for _ in range(3):
            for name, stages in (("nothing", None), ("a query on one core", WHOLE), ("a divided one", DIVIDED)):
                times, asked = beside(every, stages, 6)
                print(f"find_one beside {name:20} p50 {statistics.median(times) * 1e6:6.0f} us,"
                      f" p99 {percentile(times, 0.99) * 1e6:6.0f} us, {len(times)} asked, {asked} queries", flush=True)
    finally:
        one.stop()
        every.stop()


if __name__ == "__main__":
    main()
