#!/usr/bin/env python3
"""Counts of documents, beside recent writes: two programs asked in turns, before and after a change.

    python bench/counts.py FROND-BEFORE FROND-AFTER DIRECTORY [DOCUMENTS] [UPDATED] [TURNS]

Each turn updates so many documents on both sides, and then counts: at first, when what was written since
the last count has to be looked up, and again and again. Prints medians and least times in milliseconds
and their ratios. The answers must be equal, and equal to what the documents themselves say.
"""

import os
import random
import shutil
import statistics
import sys

import pymongo

from cores import Server, timed

VALUES = 100_000


def load(things, count):
    chance = random.Random(1)
    for first in range(0, count, 20_000):
        things.insert_many([
            {"_id": n, "n": chance.randrange(VALUES), "tags": [chance.randrange(1000) for _ in range(3)],
             "pad": "x" * 40} for n in range(first, min(first + 20_000, count))])
    things.create_index("n")
    things.create_index("tags")


def update(things, count, updated, chance):
    """Gives so many documents another `n`, and puts some new ones in the place of others."""
    changes = [pymongo.UpdateOne({"_id": chance.randrange(count)}, {"$set": {"n": chance.randrange(VALUES)}})
               for _ in range(updated)]
    for first in range(0, updated, 1000):
        things.bulk_write(changes[first:first + 1000], ordered=False)


# The first of them are asked as the first after the writes, too.
RANGE = {"n": {"$gte": 30_000, "$lt": 44_100}}
QUERIES = {
    "range": lambda things: things.count_documents(RANGE),
    "range of a hundredth": lambda things: things.count_documents({"n": {"$gte": 500, "$lt": 1500}}),
    "all": lambda things: things.count_documents({}),
    "$match and $count": lambda things: list(things.aggregate([{"$match": RANGE}, {"$count": "n"}])),
    "$group with a sum of ones": lambda things: list(things.aggregate([
        {"$match": RANGE}, {"$group": {"_id": None, "n": {"$sum": 1}}}])),
    "skip of half": lambda things: [found["n"] for found in things.find({"n": {"$gte": 0}}, {"n": 1, "_id": 0})
                                    .sort("n", 1).skip(things.estimated_document_count() // 2).limit(3)],
    "multikey range": lambda things: things.count_documents({"tags": {"$gte": 860}}),
}


def main():
    programs, directory = sys.argv[1:3], sys.argv[3]
    count, updated, turns = (
        int(sys.argv[place]) if place < len(sys.argv) else usual
        for place, usual in ((4, 1_000_000), (5, 20_000), (6, 5)))
    paths = [os.path.join(directory, name) for name in ("before", "after")]
    if not os.path.exists(paths[1]):
        server = Server(programs[0], paths[0], 1)
        load(server.things, count)
        server.client.shop.command({"frondCommit": 1, "message": "loaded"})
        server.stop()
        shutil.copytree(*paths)
    servers = [Server(program, path, 1) for program, path in zip(programs, paths)]
    chances = [random.Random(7), random.Random(7)]
    first, again = {}, {}
    try:
        for turn in range(turns):
            for server, chance in zip(servers, chances):
                update(server.things, count, updated, chance)
            for name, ask in QUERIES.items():
                answers = []
                for place, server in enumerate(servers):
                    took, answer = timed(ask, server.things)
                    first.setdefault((name, place), []).append(took)
                    answers.append(answer)
                for _ in range(5):
                    for place, server in enumerate(servers):
                        took, answer = timed(ask, server.things)
                        again.setdefault((name, place), []).append(took)
                        answers.append(answer)
                assert all(answer == answers[0] for answer in answers), (name, answers)
            scanned = sum(1 for found in servers[1].things.find({}, {"n": 1})
                          if RANGE["n"]["$gte"] <= found["n"] < RANGE["n"]["$lt"])
            assert scanned == QUERIES["range"](servers[1].things), (turn, scanned)
    finally:
        for server in servers:
            server.stop()
    for name in QUERIES:
        for what, times in (("at first", first), ("again", again)):
            before, after = times[name, 0], times[name, 1]
            middle, least = [statistics.median(before), statistics.median(after)], [min(before), min(after)]
            print(f"{name:26} {what:8} median {middle[0] * 1e3:8.2f} {middle[1] * 1e3:8.2f} ms,"
                  f" {middle[0] / middle[1]:6.2f} times; least {least[0] * 1e3:8.2f} {least[1] * 1e3:8.2f} ms,"
                  f" {least[0] / least[1]:6.2f} times", flush=True)


if __name__ == "__main__":
    main()
