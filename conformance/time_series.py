#!/usr/bin/env python3
"""A dashboard of sensors over a time series, as it is written for MongoDB.

    target/conformance/venv/bin/python conformance/time_series.py --frond target/checked/frond
    ... --points 1000000           and what a point takes on the disk, beside a plain collection

Goal: an application that knows nothing of Frond finds in a time series what MongoDB's manual promises: points go
in, averages by window and the last point of each source come out, old points go by themselves, and what the manual
refuses is refused with its code.

Method: an unmodified driver, and a model in Python of what every answer must be. Then the same after a version
commit, on a branch, and after a merge. Exit code 1 and the difference if anything is wrong.
"""

import argparse
import datetime
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bson import Int64
from pymongo import ASCENDING, MongoClient
from pymongo.errors import OperationFailure

from ports import free_port

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
SOURCES = 100
OPTIONS = {"timeField": "at", "metaField": "sensor", "granularity": "minutes"}


class Server:
    """A server of a new data directory."""

    def __init__(self, program):
        self.home = Path(tempfile.mkdtemp(prefix="frond-series-"))
        self.port = free_port()
        listen = ["--listen", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(
            [program, "serve", "--data", str(self.home / "data"), *listen],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        address = f"mongodb://127.0.0.1:{self.port}/?directConnection=true"
        self.client = MongoClient(address, tz_aware=True, serverSelectionTimeoutMS=60_000)
        self.client.admin.command("ping")

    def bytes(self):
        return sum(file.stat().st_size for file in (self.home / "data").glob("*.pack"))

    def close(self):
        self.client.close()
        self.process.terminate()
        self.process.wait(60)
        shutil.rmtree(self.home)


def points(count, seed):
    """Points of all sources, in the order of time: each sensor's values drift."""
    chance = random.Random(seed)
    values = [20 + 5 * chance.random() for _ in range(SOURCES)]
    for number in range(count):
        source = number % SOURCES
        values[source] += chance.uniform(-0.1, 0.1)
        yield {
            "at": START + datetime.timedelta(minutes=number // SOURCES, milliseconds=chance.randrange(1000)),
            "sensor": {"id": f"s{source:03}", "room": source % 7},
            "temperature": round(values[source], 2),
            "humidity": round(40 + 10 * chance.random(), 1),
        }


def equal(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: found {found!r}\nexpected {expected!r}")
    print(f"  {what}")


def refused(what, code, call):
    try:
        call()
    except OperationFailure as error:
        equal(f"{what}: refused", error.code, code)
        return
    sys.exit(f"{what} is not refused")


def window_averages(readings, model):
    """Averages by source and hour, by $group."""
    found = readings.aggregate([
        {"$match": {"at": {"$gte": START, "$lt": START + datetime.timedelta(hours=2)}}},
        {
            "$group": {
                "_id": {"id": "$sensor.id", "hour": {"$dateTrunc": {"date": "$at", "unit": "hour"}}},
                "mean": {"$avg": "$temperature"},
                "count": {"$sum": 1},
            }
        },
    ])
    expected = {}
    for point in model:
        if point["at"] < START + datetime.timedelta(hours=2):
            hour = point["at"].replace(minute=0, second=0, microsecond=0)
            expected.setdefault((point["sensor"].get("id"), hour), []).append(point["temperature"])
    found = {(row["_id"].get("id"), row["_id"]["hour"]): (row["count"], round(row["mean"], 6)) for row in found}
    expected = {key: (len(all), round(sum(all) / len(all), 6)) for key, all in expected.items()}
    equal("averages by hour", found, expected)


def moving_averages(readings, model):
    """A moving average of one source, by $setWindowFields."""
    found = readings.aggregate([
        {"$match": {"sensor.id": "s007"}},
        {
            "$setWindowFields": {
                "partitionBy": "$sensor.id",
                "sortBy": {"at": 1},
                "output": {"mean": {"$avg": "$temperature", "window": {"range": [-5, 0], "unit": "minute"}}},
            }
        },
        {"$sort": {"at": 1}},
    ])
    mine = sorted((point for point in model if point["sensor"].get("id") == "s007"), key=lambda point: point["at"])
    expected = []
    for point in mine:
        begin = point["at"] - datetime.timedelta(minutes=5)
        window = [other["temperature"] for other in mine if begin <= other["at"] <= point["at"]]
        expected.append(round(sum(window) / len(window), 6))
    equal("moving averages", [round(row["mean"], 6) for row in found], expected)


def last_points(readings, model):
    """The last point of each source, in each of the ways that manuals show."""
    last = {}
    for point in model:
        source = str(point["sensor"])
        if source not in last or last[source][0] <= point["at"]:
            last[source] = (point["at"], point["temperature"])
    for sort, pick in [
        ({"sensor": 1, "at": 1}, "$last"),
        ({"sensor": 1, "at": -1}, "$first"),
        ({"at": 1}, "$last"),
    ]:
        group = {"_id": "$sensor", "at": {pick: "$at"}, "temperature": {pick: "$temperature"}}
        rows = readings.aggregate([{"$sort": sort}, {"$group": group}])
        found = {str(row["_id"]): (row["at"], row["temperature"]) for row in rows}
        equal(f"last points by {sort}", found, last)


def dashboard(readings, model):
    equal("count", readings.count_documents({}), len(model))
    window_averages(readings, model)
    moving_averages(readings, model)
    last_points(readings, model)
    begin = START + datetime.timedelta(minutes=3)
    end = begin + datetime.timedelta(minutes=4)
    sensor = {"id": "s003", "room": 3}
    query = {"sensor": sensor, "at": {"$gte": begin, "$lt": end}}
    expected = sorted(p["at"] for p in model if p["sensor"] == sensor and begin <= p["at"] < end)
    equal("a stretch of one source", [row["at"] for row in readings.find(query).sort("at", 1)], expected)


def catalog(database, readings):
    """What the catalog tells, and what collMod changes."""
    listed = next(iter(database.list_collections(filter={"name": "readings"})))
    equal("type", listed["type"], "timeseries")
    equal("options", listed["options"]["timeseries"], {**OPTIONS, "bucketMaxSpanSeconds": 86_400})
    equal("its own index", list(readings.index_information()), ["sensor_1_at_1"])
    readings.create_index([("sensor", ASCENDING), ("at", ASCENDING)])
    readings.create_index([("sensor.id", ASCENDING), ("at", -1)])
    readings.create_index("temperature")
    equal("indexes", len(readings.index_information()), 3)
    equal("collStats", "timeseries" in database.command("collStats", "readings"), True)
    database.command("collMod", "readings", timeseries={"granularity": "hours"})
    refused("finer buckets", 72, lambda: database.command("collMod", "readings", timeseries={"granularity": "seconds"}))


def refusals(client, database, readings):
    """What MongoDB refuses, by its codes."""
    point = {"at": START, "sensor": {"id": "x"}, "temperature": 1}
    refused("no time", 2, lambda: readings.insert_one({"sensor": 1}))
    refused("a time that is no date", 2, lambda: readings.insert_one({**point, "at": 5}))
    refused("a unique index", 72, lambda: readings.create_index("sensor", unique=True))
    refused("an index of texts", 72, lambda: readings.create_index([("sensor", "text")]))
    refused("a TTL index", 72, lambda: readings.create_index("sensor", expireAfterSeconds=5))
    refused("a capped series", 72, lambda: database.create_collection("x", timeseries=OPTIONS, capped=True, size=99))
    refused("update of one", 72, lambda: readings.update_one({"sensor": 1}, {"$set": {"sensor": 2}}))
    refused("an upsert", 72, lambda: readings.update_many({"sensor": 1}, {"$set": {"sensor": 2}}, upsert=True))
    refused("a measurement", 72, lambda: readings.update_many({}, {"$set": {"temperature": 2}}))
    refused("by a measurement", 72, lambda: readings.update_many({"temperature": 2}, {"$set": {"sensor": 2}}))
    refused("a change stream", 166, lambda: readings.watch().__enter__())
    refused("$merge", 166, lambda: list(readings.aggregate([{"$merge": "readings"}])))
    buckets = database["system.buckets.readings"]
    points = sum(len(bucket["data"]["at"]) for bucket in buckets.find())
    equal("points of all buckets", points, readings.count_documents({}))
    refused("an update of buckets", 73, lambda: buckets.update_many({}, {"$set": {"meta": 1}}))

    def transaction():
        with client.start_session() as session, session.start_transaction():
            readings.insert_one(point, session=session)

    refused("a transaction", 263, transaction)


def versions(client, database, readings, model):
    """Versions: points of two branches are together after a merge."""
    database.command("frondCommit", 1, message="readings")
    dashboard(readings, model)
    database.command("frondBranch", 1, branch="side")
    side = client["plant@side"]["readings"]
    more = [{**point, "at": point["at"] + datetime.timedelta(days=900)} for point in points(300, 8)]
    ours, theirs = more[:150], more[150:]
    readings.insert_many([dict(point) for point in ours])
    side.insert_many([dict(point) for point in theirs])
    for branch in [database, client["plant@side"]]:
        branch.command("frondCommit", 1, message="more readings")
    database.command("frondMerge", 1, merge_in="side")
    equal("points of both branches", readings.count_documents({}), len(model) + 300)
    readings.delete_many({"at": {"$gte": START + datetime.timedelta(days=800)}})
    equal("deleted by time", readings.count_documents({}), len(model))


def expiry(database):
    """Old points go, new ones stay."""
    now = datetime.datetime.now(datetime.timezone.utc)
    short = database.create_collection("short", timeseries=OPTIONS, expireAfterSeconds=3600)
    ages = [5, 30, 90, 600]
    short.insert_many([
        {"at": now - datetime.timedelta(minutes=age), "sensor": source, "age": age} for age in ages for source in "ab"
    ])
    deadline = time.time() + 150
    while short.count_documents({}) > 4 and time.time() < deadline:
        time.sleep(0.5)
    equal("old points are gone", sorted(row["age"] for row in short.find()), [5, 5, 30, 30])


def application(program):
    server = Server(program)
    try:
        client, database = server.client, server.client["plant"]
        readings = database.create_collection("readings", timeseries=OPTIONS)
        model = list(points(3_000, 7))
        readings.insert_many([dict(point) for point in model])
        dashboard(readings, model)
        catalog(database, readings)
        refusals(client, database, readings)
        dashboard(readings, model)
        versions(client, database, readings, model)
        readings.update_many({"sensor.room": 3}, {"$set": {"sensor.room": 33}})
        for point in model:
            if point["sensor"]["room"] == 3:
                point["sensor"]["room"] = 33
        dashboard(readings, [dict(point) for point in model])
        expiry(database)
    finally:
        server.close()


def temperatures(count):
    """A regular series: each source tells each second a temperature with two decimals, which drifts."""
    chance = random.Random(7)
    values = [2000 + chance.randrange(500) for _ in range(SOURCES)]
    for number in range(count):
        source = number % SOURCES
        values[source] += chance.randrange(-10, 11)
        yield {
            "at": START + datetime.timedelta(seconds=number // SOURCES),
            "sensor": {"id": f"s{source:03}", "room": source % 7},
            "temperature": values[source] / 100,
        }


def events(count):
    """Irregular events with texts and a status: what a web server notes."""
    chance = random.Random(7)
    at = START
    paths = [f"/shop/{word}" for word in "cart item search login logout pay help image style script".split()]
    for _ in range(count):
        at += datetime.timedelta(milliseconds=chance.randrange(40))
        source = chance.randrange(SOURCES)
        yield {
            "at": at,
            "sensor": {"id": f"s{source:03}", "room": source % 7},
            "method": chance.choices(["GET", "POST", "PUT"], [8, 3, 1])[0],
            "path": f"{chance.choice(paths)}/{chance.randrange(5000)}",
            "status": chance.choices([200, 204, 304, 404, 500], [80, 5, 10, 4, 1])[0],
            "ms": round(chance.lognormvariate(3, 1), 1),
            "user": f"user-{chance.randrange(100_000):06}",
        }


def counters(count):
    """Counters as 32 and 64 bits, which rise, and a level."""
    chance = random.Random(7)
    packets, octets = [0] * SOURCES, [chance.randrange(1 << 40) for _ in range(SOURCES)]
    for number in range(count):
        source = number % SOURCES
        packets[source] += chance.randrange(500)
        octets[source] += chance.randrange(300_000)
        yield {
            "at": START + datetime.timedelta(seconds=10 * (number // SOURCES), milliseconds=chance.randrange(30)),
            "sensor": {"id": f"s{source:03}", "room": source % 7},
            "packets": packets[source],
            "octets": Int64(octets[source]),
            "open": chance.randrange(64),
        }


def median_ms(question, times=15):
    """The answer, and how long it takes."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        answer = question()
        taken.append(time.perf_counter() - begun)
    return answer, sorted(taken)[times // 2] * 1000


def measure(program, count):
    """Bytes a point in packs, once committed, and once collected; and how long the dashboard's questions take."""
    kinds = [temperatures, events, counters]
    for make, kind in [(make, kind) for make in kinds for kind in ["plain", "time series"]]:
        server = Server(program)
        try:
            database = server.client["plant"]
            options = {"timeseries": OPTIONS} if kind == "time series" else {}
            readings = database.create_collection("readings", **options)
            seconds, batch = 0, []
            for number, point in enumerate(make(count), 1):
                batch.append(point)
                if len(batch) == 10_000 or number == count:
                    begun = time.time()
                    readings.insert_many(batch, ordered=False)
                    seconds += time.time() - begun
                    batch = []
            begun = time.time()
            database.command("frondCommit", 1, message="readings")
            commit = time.time() - begun
            committed = server.bytes()
            server.client.admin.command("frondGc", 1)
            collected = server.bytes()
            last = readings.find_one(sort=[("at", -1)])["at"]
            hour = {"$gte": last - datetime.timedelta(minutes=10)}
            source = {"id": "s007", "room": 0}
            one, of_one = median_ms(lambda: len(list(readings.find({"sensor": source, "at": hour}))))
            every, of_all = median_ms(lambda: readings.count_documents({"at": hour}))
            print(
                f"{make.__name__}, {kind}: {committed / count:.1f} bytes a point when committed, {collected / count:.1f}"
                f" when collected; inserted in {seconds:.1f} s, committed in {commit:.1f} s; ten minutes of one source"
                f" ({one}) {of_one:.1f} ms, of all ({every}) {of_all:.1f} ms",
                flush=True,
            )
        finally:
            server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", required=True)
    parser.add_argument("--points", type=int, default=0, help="measure with so many")
    options = parser.parse_args()
    if options.points:
        measure(options.frond, options.points)
    else:
        application(options.frond)


if __name__ == "__main__":
    main()
