#!/usr/bin/env python3
"""Whatever plan is chosen, the answer is the same.

    target/conformance/venv/bin/python conformance/any_plan.py --frond target/release/frond       a minute
    ... --seconds 600 --clients 2          longer
    ... --seed 5                           one case again

Goal: no index, no hint, no size of a document, no flush, no commit and no branch changes what a request answers.

Method:
1. A case is drawn from a seed (any_plan_draw.py): some documents, in one case of twelve a thousand, of every type that
   a driver can write, with missing fields and arrays, and requests: finds, counts, distincts, pipelines that join, window and divide, and writes of every
   operator.
2. The documents lie in one collection without an index, whose requests say `$natural` where they may, and in others:
   one for each kind of index, some with documents of more than 32 KB, some on a branch of their own, some read through
   a view that changes nothing, some in a time series. One case in four has collections with a collation.
3. Every collection is asked the same, after writes in memory, after a checkpoint, after a commit. All answers are
   equal: as bytes where the order is determined, else as sets; after a write, all documents are compared, and
   `validate` compares each index with the entries that its documents call for.
4. An index may refuse what a collection without one takes (two arrays in one key, a key that is there). Such a
   collection is filled again from the plain one, and so is every other when a write fails, as it may have done a part
   of its work.
5. At the end it is told which operators were asked of which indexes in which state of storage.
6. What fails is cut down: fewer requests, documents, fields, as long as it fails. The seed and what is left are
   printed, and the exit code is 1.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from decimal import Decimal

import bson
from any_plan_coverage import Coverage
from any_plan_draw import COLLATION, INDEXES, Draw
from bson import Decimal128
from bson.codec_options import CodecOptions
from pymongo import MongoClient
from pymongo.errors import BulkWriteError, OperationFailure

from ports import free_port

PAD_BYTES = 40_000
DOCUMENTS_MAX = 30
REQUESTS = 60
# One case in so many has many documents: plans and trees are others then. It has fewer collections and requests.
MANY_ONE_IN = 12
MANY_DOCUMENTS = 1_000
MANY_PLACES, MANY_REQUESTS = 6, 20
# No more than so many of them are large.
LARGE_MAX = 60
# A case that is cut down may take so long.
MINIMISE_SECONDS = 90
# What an index may refuse, and a collection without it doesn't: parallel arrays, an array under a hash, a key that is
# there, a path that means a position and a field.
OF_INDEXES = {171, 7246301, 16766, 11000, 16746}
# Defects of the server's, also where every collection answers so.
DEFECTS = {1, 8}
# A write is synced at an interval: what a power cut leaves is asked elsewhere.
RELAXED = {"w": 1, "j": False}
# The indexes that a time series takes, too.
OF_SERIES = {"none", "a", "a_down", "b", "a_b", "c_a", "dotted", "array", "position", "partial"}
# Of groups that a collation makes, any may be told.
GROUPING = ("$group", "$facet")


class Case:
    """Documents, the collections in which they lie, and what is asked of them."""

    def __init__(self, documents, places, requests, collation=None):
        self.documents, self.places, self.requests, self.collation = documents, places, requests, collation

    @staticmethod
    def of_seed(seed):
        draw = Draw(seed)
        is_many = draw.one_in(MANY_ONE_IN)
        count = MANY_DOCUMENTS if is_many else draw.random.randrange(DOCUMENTS_MAX)
        documents = [draw.document() for _ in range(count)]
        places = []
        for name, *_ in draw.random.sample(INDEXES, MANY_PLACES if is_many else 12):
            is_series = draw.has_times and name in OF_SERIES and draw.one_in(2)
            places.append({"index": name, "large": not is_series and draw.one_in(4), "branch": draw.one_in(4),
                           "late": draw.one_in(3), "view": draw.one_in(5), "series": is_series})
        requests = [draw.request() for _ in range(MANY_REQUESTS if is_many else REQUESTS)]
        if is_many:
            # All joined with all would be more than one batch holds.
            requests = [request for request in requests if "SELF" not in repr(request)]
        if not draw.one_in(4):
            return Case(documents, places, requests)
        for request in requests:
            if request.get("collation") and draw.one_in(2):
                request["collation"] = {"locale": "simple"}
        return Case(documents, places, requests, COLLATION)

    def told(self):
        lines = [f"  collections with {self.collation}"] if self.collation else []
        lines += [f"  document {document!r}" for document in self.documents]
        lines += [f"  place {place!r}" for place in self.places]
        lines += [f"  request {request!r}" for request in self.requests]
        return shortened("\n".join(lines))


def shortened(text):
    """A text with the many letters of long values left out."""
    return re.sub("x{1000,}", lambda found: f"<{len(found[0])} x>", text)


def canonical(value):
    """A value by what it equals: numbers of all types alike, sets without an order."""
    if isinstance(value, dict):
        return ("document", tuple((name, canonical(inner)) for name, inner in value.items()))
    if isinstance(value, list):
        return ("array", tuple(canonical(inner) for inner in value))
    if isinstance(value, bool):
        return ("bool", str(value))
    if isinstance(value, (int, float, Decimal128)):
        number = value.to_decimal() if isinstance(value, Decimal128) else Decimal(value)
        if number.is_nan():
            return ("number", "NaN")
        return ("number", "0" if number == 0 else str(number.normalize() if number.is_finite() else number))
    return (type(value).__name__, repr(value))


def equals(value):
    """As `canonical`, for what is a set, or one of several that are equal."""
    if isinstance(value, dict) and "all" in value and isinstance(value["all"], list) and "first" not in value:
        value = {**value, "all": sorted(value["all"], key=lambda one: repr(canonical(one)))}
    return canonical(value)


def by_name(document):
    return dict(sorted(document.items()))


class Failed(Exception):
    """Two collections answered differently."""


class Table:
    """A collection, with its index."""

    def __init__(self, client, database, number, place, collation):
        self.place, self.collation = place, collation
        name, self.key, self.options, self.is_whole = next(one for one in INDEXES if one[0] == place["index"])
        self.database = client.get_database(f"{database}@side" if place["branch"] else database,
                                            codec_options=CodecOptions(tz_aware=False))
        self.collection = self.database[f"c{number}_{name}"]
        self.is_gone = False
        self.read_name = self.collection.name
        if place.get("view"):
            self.read_name += "_view"
            options = {"collation": collation} if collation else {}
            self.database.command({"create": self.read_name, "viewOn": self.collection.name, "pipeline": [],
                                   **options})

    def stored(self, document):
        """A document as it is stored: with much beside it, if this collection's are large."""
        if not self.place["large"] or document["u"] % 3 == 2 or LARGE_MAX < document["u"]:
            return document
        pad = {"pad": "x" * PAD_BYTES}
        return {**pad, **document} if document["u"] % 3 else {**document, **pad}

    def fill(self, documents):
        """Puts in these documents, for what was there; without, where the index refuses them."""
        self.collection.drop()
        options = {"collation": self.collation} if self.collation else {}
        if self.place.get("series"):
            options["timeseries"] = {"timeField": "at", "metaField": "m"}
        self.database.command({"create": self.collection.name, **options})
        try:
            if not self.place["late"]:
                self.index()
            if documents:
                self.collection.insert_many([self.stored(document) for document in documents])
            if self.place["late"]:
                self.index()
        except (BulkWriteError, OperationFailure) as error:
            details = error.details or {}
            codes = {one["code"] for one in details.get("writeErrors", [])} or {error.code}
            if not codes <= OF_INDEXES:
                raise
            self.is_gone = True

    def index(self):
        if self.key:
            spec = {"key": self.key, "name": self.place["index"], **self.options}
            self.database.command({"createIndexes": self.collection.name, "indexes": [spec]})

    def hint(self, hints):
        if hints == "natural":
            return None if self.place.get("series") else {"$natural": 1}
        if self.place.get("view"):
            return None
        return self.place["index"] if hints == "index" and self.key and self.is_whole else None

    def all(self):
        return [self.bare(document) for document in self.collection.find(sort=[("_id", 1)])]

    @staticmethod
    def bare(document):
        return {name: value for name, value in document.items() if name != "pad"}

    def takes(self, request):
        """Whether the collection may be asked it."""
        if self.place.get("view") and request.get("collation"):
            return False
        return not (self.place.get("series") and request["kind"] in ("update", "modify"))

    def check(self):
        """What is wrong with the indexes, if anything."""
        if self.place.get("series"):
            return None
        checked = self.database.command({"validate": self.collection.name})
        return None if checked["valid"] else checked["errors"]

    def ask(self, request):
        """What the collection answers, in a form that can be compared: (code, answer)."""
        try:
            return 0, getattr(self, request["kind"])(request)
        except OperationFailure as error:
            return error.code, None

    def command(self, command, request):
        command |= {name: request[name] for name in ("collation",) if request.get(name)}
        return self.database.command(command)

    def rows(self, command, request):
        reply = self.command(command, request)
        assert reply["cursor"]["id"] == 0, "one batch has all"
        return [self.bare(document) for document in reply["cursor"]["firstBatch"]]

    def expected(self, request, answer):
        """The plain collection's answer, as this one gives it: a time series' fields may stand in another order."""
        if not self.place.get("series") or request["kind"] != "find" or answer[0]:
            return answer
        rows = [bson.encode(by_name(bson.decode(row))) for row in answer[1]]
        return 0, rows if "_id" in request.get("sort", {}) else sorted(rows)

    def find(self, request):
        command = {"find": self.read_name, "filter": request["filter"], "batchSize": 100_000}
        for name in ("sort", "skip", "limit", "projection"):
            if name in request:
                command[name] = request[name]
        if hint := self.hint(request["hints"]):
            command["hint"] = hint
        rows = self.rows(command, request)
        if "projection" in request or self.place.get("series"):
            rows = [by_name(row) for row in rows]
        rows = [bson.encode(row) for row in rows]
        return rows if "_id" in request.get("sort", {}) else sorted(rows)

    def count(self, request):
        command = {"count": self.read_name, "query": request["filter"]}
        command |= {name: request[name] for name in ("skip", "limit") if request[name]}
        return self.command(command, request)["n"]

    def distinct(self, request):
        command = {"distinct": self.read_name, "key": request["key"], "query": request["filter"]}
        values = self.command(command, request)["values"]
        if request.get("collation") or self.collation:
            # Of those that are equal any may be told.
            return len(values)
        return sorted(repr(canonical(value)) for value in values)

    def aggregate(self, request):
        stages = named(request["stages"], self.read_name)
        if (request.get("collation") or self.collation) and any(name in GROUPING for stage in stages for name in stage):
            return None
        command = {"aggregate": self.read_name, "pipeline": stages, "cursor": {"batchSize": 100_000}}
        rows = [equals(by_name(row)) for row in self.rows(command, request)]
        return rows if request["is_ordered"] else sorted(rows, key=repr)

    def update(self, request):
        statement = {name: request[name] for name in ("q", "u", "multi", "upsert", "sort", "arrayFilters")
                     if name in request}
        if request.get("replaces"):
            statement["u"] = {name: value for name, value in request["u"].items() if name != "_id"}
        return self.wrote({"update": self.collection.name, "updates": [statement]})

    def delete(self, request):
        return self.wrote({"delete": self.collection.name, "deletes": [{"q": request["filter"], "limit": 0}]})

    def insert(self, request):
        return self.wrote({"insert": self.collection.name, "documents": [self.stored(request["document"])]})

    def wrote(self, command):
        reply = self.database.command({**command, "writeConcern": RELAXED})
        if errors := reply.get("writeErrors"):
            raise OperationFailure(errors[0]["errmsg"], errors[0]["code"])
        return reply["n"], reply.get("nModified")

    def modify(self, request):
        command = {"findAndModify": self.collection.name, "query": request["filter"], "sort": request["sort"],
                   "update": request["update"], "new": request["new"], "writeConcern": RELAXED}
        found = self.database.command(command)["value"]
        return bson.encode(self.bare(found)) if found else None


WRITES = {"update", "delete", "insert", "modify"}


def named(value, name):
    """A part of a pipeline, with the collection's name where "SELF" stands."""
    if isinstance(value, dict):
        return {key: named(inner, name) for key, inner in value.items()}
    if isinstance(value, list):
        return [named(inner, name) for inner in value]
    return name if value == "SELF" and isinstance(value, str) else value


class Runner:
    """Runs cases against a server."""

    def __init__(self, address):
        self.client = MongoClient(address, socketTimeoutMS=120_000, journal=False)
        self.number = 0
        self.lock = threading.Lock()
        self.asked = 0
        self.coverage = Coverage()

    def database(self):
        with self.lock:
            self.number += 1
            return f"any{self.number}"

    def run(self, case):
        """Runs a case to its end.

        Raises Failed where two collections differ.
        """
        name = self.database()
        database = self.client[name]
        try:
            database.command({"create": "first"})
            database.command({"frondCommit": 1, "message": "begin"})
            database.command({"frondBranch": 1, "branch": "side"})
            self.run_on(case, name)
        finally:
            self.client.drop_database(name)

    def run_on(self, case, name):
        places = [dict.fromkeys(("large", "branch", "late", "view", "series"), False) | {"index": "none"}]
        places += case.places
        tables = [Table(self.client, name, number, place, case.collation) for number, place in enumerate(places)]
        plain, others = tables[0], tables[1:]
        for table in tables:
            table.fill(case.documents)
        state = "in memory"
        for number, request in enumerate(case.requests):
            if request["kind"] == "checkpoint":
                self.client.admin.command({"fsync": 1})
                state = "after a checkpoint"
            elif request["kind"] == "commit":
                for database in (name, f"{name}@side"):
                    self.client[database].command({"frondCommit": 1, "message": f"{number}", "allowEmpty": True})
                state = "after a commit"
            else:
                self.compare(plain, [table for table in others if not table.is_gone], (number, state), request)

    def compare(self, plain, others, at, request):
        number, state = at
        asked = {**request, "hints": "natural"} if "hints" in request else request
        expected = plain.ask(asked)
        is_write = request["kind"] in WRITES
        answers = [(table, table.ask(request)) for table in others if table.takes(request)]
        with self.lock:
            self.asked += 1 + len(answers)
            for table, _ in answers:
                self.coverage.note(request, table.place, state)
        refilled = expected[0] != 0 or any(answer[0] in OF_INDEXES for _, answer in answers)
        for table, answer in answers:
            wanted = table.expected(request, expected)
            is_right = answer == wanted or is_write and answer[0] in OF_INDEXES
            if not is_right or answer[0] in DEFECTS:
                self.fail(number, request, table, expected, answer)
        if not is_write:
            return
        documents = plain.all()
        for table in others:
            if wrong := table.check():
                self.fail(number, request, table, "an index of its documents' entries", wrong)
            if refilled or not table.takes(request):
                table.fill(documents)
                continue
            if self.bytes(table, stored := table.all()) != self.bytes(table, documents):
                self.fail(number, request, table, documents, stored)

    @staticmethod
    def bytes(table, documents):
        """Documents, to be compared; the fields of a time series' may stand in another order."""
        return [bson.encode(by_name(one) if table.place.get("series") else one) for one in documents]

    def fail(self, number, request, table, expected, found):
        explained = ""
        if request["kind"] == "find":
            command = {"find": table.read_name, "filter": request["filter"]}
            command |= {name: request[name] for name in ("sort", "projection", "skip", "limit") if name in request}
            plan = table.database.command({"explain": command, "verbosity": "queryPlanner"})
            explained = f"\n  plan {plan['queryPlanner']['winningPlan']}"
        raise Failed(shortened(f"request {number} {request!r}\n  at {table.place}: expected {shown(expected)}\n"
                               f"  found {shown(found)}{explained}"))

    def fails(self, case):
        """What a case fails with, if it does."""
        try:
            self.run(case)
        except Failed as error:
            return str(error)
        except OperationFailure as error:
            return f"refused: {error.code} {error}"
        return None


def shown(answer):
    """An answer that people can read."""
    def decoded(value):
        if isinstance(value, bytes):
            return bson.decode(value)
        if isinstance(value, (list, tuple)):
            return [decoded(inner) for inner in value]
        return value
    return shortened(repr(decoded(answer)))[:3000]


def minimised(runner, case):
    """A smaller case that fails: parts are left out as long as it does."""
    until = time.monotonic() + MINIMISE_SECONDS
    is_failing = lambda other: time.monotonic() < until and runner.fails(other) is not None
    for _ in range(3):
        for part in ("places", "requests", "documents"):
            step = max(1, len(getattr(case, part)) // 2)
            while step:
                at = 0
                while at < len(getattr(case, part)):
                    parts = {name: getattr(case, name) for name in ("documents", "places", "requests")}
                    parts[part] = parts[part][:at] + parts[part][at + step:]
                    smaller = Case(**parts, collation=case.collation)
                    if is_failing(smaller):
                        case = smaller
                    else:
                        at += step
                step //= 2
        for place, document in enumerate(case.documents):
            for name in [name for name in document if name not in ("_id", "u", "at")]:
                less = {key: value for key, value in case.documents[place].items() if key != name}
                documents = [*case.documents[:place], less, *case.documents[place + 1:]]
                smaller = Case(documents, case.places, case.requests, case.collation)
                if is_failing(smaller):
                    case = smaller
    return case


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frond", required=True)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--seed", type=int, help="this case alone")
    parser.add_argument("--keep-going", action="store_true", help="tell all cases that fail")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else random.randrange(1 << 30)
    print(f"any plan, seeds from {first}", flush=True)
    directory = tempfile.mkdtemp(prefix="frond-any-plan-")
    port = free_port()
    command = [options.frond, "serve", "--data", directory, "--listen", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"mongodb://127.0.0.1:{port}/?directConnection=true&serverSelectionTimeoutMS=60000"
    runner = Runner(address)
    lock, seeds, failures = threading.Lock(), iter(range(first, first + (1 << 30))), []
    until = time.monotonic() + options.seconds
    cases = [0]

    def client():
        while time.monotonic() < until and (options.keep_going or not failures):
            with lock:
                seed = next(seeds)
                cases[0] += 1
            case = Case.of_seed(seed)
            if runner.fails(case) is not None:
                small = minimised(runner, case)
                with lock:
                    failures.append(seed)
                    print(f"seed {seed}: {runner.fails(small) or runner.fails(case)}\n{small.told()}", flush=True)
            if options.seed is not None:
                return

    try:
        runner.client.admin.command("ping")
        threads = [threading.Thread(target=client) for _ in range(options.clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"  {cases[0]} cases, {runner.asked} requests, failed: {failures or 'none'}")
        print(runner.coverage.told([name for name, *_ in INDEXES], OF_SERIES))
        return 1 if failures or server.poll() is not None else 0
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
