#!/usr/bin/env python3
"""Whatever plan is chosen, the answer is the same.

    target/conformance/venv/bin/python conformance/any_plan.py --frond target/release/frond       a minute
    ... --seconds 600 --clients 2          longer
    ... --seed 5                           one case again

Goal: no index, no hint, no size of a document, no flush, no commit and no branch changes what a request answers.

Method:
1. A case is drawn from a seed: documents of every type that a driver can write, with missing fields and arrays, and
   requests: finds, counts, distincts, pipelines, and writes of every operator.
2. The documents lie in one collection without an index, whose requests say `$natural` where they may, and in others:
   one for each kind of index, some with documents of more than 32 KB, some on a branch of their own. One case in four
   has collections with a collation.
3. Every collection is asked the same, after writes in memory, after a checkpoint, after a commit. All answers are
   equal: as bytes where the order is determined, else as sets; after a write, all documents are compared.
4. An index may refuse what a collection without one takes (two arrays in one key, a key that is there). Such a
   collection is filled again from the plain one, and so is every other when a write fails, as it may have done a part
   of its work.
5. What fails is cut down: fewer requests, documents, fields, as long as it fails. The seed and what is left are
   printed, and the exit code is 1.
"""

import argparse
import datetime
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
from bson import Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.codec_options import CodecOptions
from pymongo import MongoClient
from pymongo.errors import BulkWriteError, OperationFailure

from ports import free_port

PAD_BYTES = 40_000
DOCUMENTS_MAX = 30
REQUESTS = 60
# A case that is cut down may take so long.
MINIMISE_SECONDS = 90
# What an index may refuse, and a collection without it doesn't: parallel arrays, an array under a hash, a key that is
# there, a path that means a position and a field.
OF_INDEXES = {171, 16766, 11000, 16746}
# Keys that are longer than this are cut in trees; where is tried, too.
LONG = [9000, 9000, 9000, 8126, 8180, 8192]
# Defects of the server's, also where every collection answers so.
DEFECTS = {1, 8}
# A write is synced at an interval: what a power cut leaves is asked elsewhere.
RELAXED = {"w": 1, "j": False}
COLLATION = {"locale": "en", "strength": 2}

# (name, key, options, whether every document is in it, so that it may be hinted)
INDEXES = [
    ("none", None, {}, False),
    ("a", {"a": 1}, {}, True),
    ("a_down", {"a": -1}, {}, True),
    ("b", {"b": 1}, {}, True),
    ("a_b", {"a": 1, "b": -1}, {}, True),
    ("c_a", {"c": -1, "a": 1}, {}, True),
    ("b_c_h", {"b": 1, "c": 1, "h": 1}, {}, True),
    ("dotted", {"n.x": 1}, {}, True),
    ("dotted_two", {"n.x": 1, "n.y": -1}, {}, True),
    ("array", {"t": 1}, {}, True),
    ("array_c", {"t": 1, "c": 1}, {}, True),
    ("position", {"t.0": 1}, {}, True),
    ("whole", {"n": 1}, {}, True),
    ("sparse", {"a": 1}, {"sparse": True}, False),
    ("sparse_two", {"c": 1, "h": 1}, {"sparse": True}, False),
    ("partial", {"a": 1}, {"partialFilterExpression": {"c": {"$gt": 1}}}, False),
    ("partial_exists", {"b": 1}, {"partialFilterExpression": {"a": {"$exists": True}}}, False),
    ("unique", {"u": 1}, {"unique": True}, True),
    ("unique_two", {"u": -1, "c": 1}, {"unique": True}, True),
    ("hashed", {"h": "hashed"}, {}, True),
    ("hashed_two", {"c": 1, "h": "hashed"}, {}, True),
    ("wildcard", {"$**": 1}, {}, False),
    ("wildcard_below", {"n.$**": 1}, {}, False),
    ("wildcard_without", {"$**": -1}, {"wildcardProjection": {"n.x": 0, "a": 0}}, False),
    ("c_wildcard", {"c": 1, "n.$**": 1}, {}, False),
    ("collated", {"b": 1, "a": 1}, {"collation": COLLATION}, False),
    ("included", {"a": 1, "c": 1}, {"include": ["b", "n.x"]}, True),
    ("clustering", {"c": 1, "a": -1}, {"clustering": True}, True),
]
PATHS = ["a", "b", "c", "h", "u", "t", "n", "n.x", "n.y", "n.x.z", "t.0", "a.0", "_id"]
FIELDS = ["a", "b", "c", "h", "t", "n.x", "n.y"]


class Draw:
    """Draws documents and requests."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.next_id = 0
        self.has_long = self.one_in(4)

    def one_in(self, count):
        return self.random.randrange(count) == 0

    def number(self):
        pick = self.random.choice
        small = self.random.randrange(-2, 6)
        return pick([small, small, small, Int64(small), float(small), small / 2, Decimal128(str(small)),
                     Decimal128("0.1"), 0.1, -0.0, float("nan"), float("inf"), float("-inf"), Decimal128("NaN"),
                     Decimal128("1E+400"), Int64(9007199254740993), 9007199254740992.0, Int64(2**63 - 1),
                     Decimal128("-0"), 2**31 - 1])

    def long(self):
        """A string that shares all but its end with others, beyond what an index's key keeps of it."""
        return "x" * self.random.choice(LONG) + self.random.choice(["", "a", "b", "c", "\0"])

    def scalar(self):
        pick = self.random.choice
        if self.has_long and self.one_in(5):
            return self.long()
        if self.random.random() < 0.55:
            return self.random.randrange(5) if self.one_in(2) else self.number()
        return pick([None, True, False, "", "a", "A", "ab", "á", "b", "z", "1", "a\0b", ObjectId("0" * 24),
                     ObjectId("0" * 23 + "f"), datetime.datetime(1970, 1, 1), datetime.datetime(2024, 5, 6, 7),
                     Timestamp(0, 1), Timestamp(1, 0), Regex("^a", ""), Regex("A", "i"), Code("f"), b"", b"a",
                     bson.Binary(b"a", 5), MinKey(), MaxKey()])

    def value(self, depth=2):
        kind = self.random.random()
        if depth and kind < 0.18:
            return [self.value(depth - 1) for _ in range(self.random.randrange(4))]
        if depth and kind < 0.28:
            names = self.random.sample(["x", "y", "z", "0"], self.random.randrange(3))
            return {name: self.value(depth - 1) for name in names}
        return self.scalar()

    def document(self):
        self.next_id += 1
        document = {"_id": self.id(self.next_id), "u": self.next_id}
        for name in self.random.sample(["a", "b", "c", "h", "t", "n"], 6):
            if self.one_in(4):
                continue
            if name == "t":
                document[name] = [self.value(1) for _ in range(self.random.randrange(5))]
            elif name == "n":
                document[name] = self.nested()
            elif name in "ch" or not self.one_in(3):
                document[name] = self.scalar()
            else:
                document[name] = self.value()
        return document

    def id(self, number):
        made = [number, number, Int64(number), float(number), Decimal128(str(number)), f"i{number}", {"x": number}]
        if self.has_long:
            made += ["x" * 9000 + f"{number:03}", "x" * 8125 + f"{number:03}"]
        return self.random.choice(made)

    def nested(self):
        inner = lambda: {name: self.value(1) for name in ("x", "y") if not self.one_in(3)}
        kind = self.random.randrange(5)
        if kind == 0:
            return [inner() for _ in range(self.random.randrange(4))]
        if kind == 1:
            return {"x": inner() | {"z": self.scalar()}, "y": self.scalar()}
        return inner() if kind < 4 else self.value()

    def condition(self):
        pick, value = self.random.choice, self.value
        kind = self.random.randrange(16)
        if kind < 4:
            return {pick(["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]): self.scalar()}
        if kind == 4:
            return {pick(["$gt", "$gte"]): self.scalar(), pick(["$lt", "$lte"]): self.scalar()}
        if kind in (5, 6):
            return {pick(["$in", "$in", "$nin"]): [value() for _ in range(self.random.randrange(4))]}
        if kind == 7:
            return {"$exists": pick([True, False])}
        if kind == 8:
            return {"$type": pick(["number", "string", "array", "object", "null", "int", "bool", ["double", "date"]])}
        if kind == 9:
            return {"$elemMatch": pick([{"$gte": self.scalar(), "$lt": self.scalar()}, {"x": value(1)},
                                        {"x": self.condition(), "y": {"$exists": True}}, {"$in": [1, 2, "a"]}])}
        if kind == 10:
            return {"$not": pick([{"$gt": self.scalar()}, {"$in": [self.scalar()]}, {"$exists": True}])}
        if kind == 11:
            return pick([{"$size": self.random.randrange(4)}, {"$all": [self.scalar(), self.scalar()]},
                         {"$all": [value()]}, {"$mod": [2, self.random.randrange(2)]}, {"$bitsAllSet": 1}])
        if kind == 12:
            return pick([{"$regex": "^a"}, {"$regex": "a", "$options": "i"}, {"$regex": "^(a|b)"}])
        if kind == 13:
            return {"$gte": value(), "$ne": self.scalar()}
        return {pick(["$eq", "$lte", "$gte"]): value()}

    def filter(self, depth=1):
        out = {}
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 2, 3])):
            value = self.condition() if not self.one_in(3) else self.value()
            if isinstance(value, dict) and "$elemMatch" in value and "$in" in value["$elemMatch"]:
                value = {"$elemMatch": {"$in": [1, 2, "a"]}}
            out[self.random.choice(PATHS)] = value
        if depth and self.one_in(4):
            out[self.random.choice(["$or", "$and", "$nor", "$or"])] = \
                [self.filter(0) for _ in range(1 + self.random.randrange(3))]
        if self.one_in(10):
            compared = [f"${self.random.choice(FIELDS)}", self.random.choice([self.random.randrange(4), "$c", "$a"])]
            out["$expr"] = {self.random.choice(["$eq", "$gt", "$lte"]): compared}
        return out

    def sort(self, is_total=True):
        names = self.random.sample(["a", "b", "c", "h", "n.x", "u", "t"], 1 + self.random.randrange(2))
        out = {name: self.random.choice([1, -1]) for name in names}
        if is_total:
            out["_id"] = self.random.choice([1, -1])
        return out

    def projection(self):
        names = self.random.sample(FIELDS + ["u"], 1 + self.random.randrange(3))
        kept = [name for name in names if not any(name != other and other.startswith(name + ".") for other in names)]
        out = {name: 1 for name in kept}
        if self.one_in(2):
            out["_id"] = 0
        elif self.one_in(5):
            out["made"] = {"$concatArrays": [["$c"], [{"$type": "$a"}]]}
        return out

    def expression(self):
        field = lambda: f"${self.random.choice(FIELDS)}"
        return self.random.choice([
            field(), {"$type": field()}, {"$ifNull": [field(), "none"]}, {"$cmp": [field(), field()]},
            {"$isArray": field()}, {"$cond": [{"$gt": [field(), 1]}, field(), 0]}, [field(), 1], {"$literal": 5}])

    def pipeline(self):
        """Stages, and whether the order of what comes out is determined."""
        pick = self.random.choice
        stages, is_ordered = [], False
        if not self.one_in(4):
            stages.append({"$match": self.filter()})
        for _ in range(self.random.randrange(4)):
            kind = self.random.randrange(9)
            if kind == 0:
                stages.append({"$sort": self.sort()})
                is_ordered = True
                if self.one_in(2):
                    stages.append({pick(["$limit", "$skip"]): 1 + self.random.randrange(8)})
            elif kind == 1:
                stages.append({pick(["$addFields", "$set"]): {pick(["k", "a", "n.x"]): self.expression()}})
            elif kind == 2:
                stages.append({"$unset": pick(["a", "b", "n.x", ["c", "h"]])})
            elif kind == 3:
                stages.append({"$match": self.filter()})
            elif kind == 4:
                shown = self.projection()
                stages.append({"$project": {**shown, "_id": 1}})
            elif kind == 5:
                stages.append({"$unwind": {"path": pick(["$t", "$a", "$n"]),
                                           "preserveNullAndEmptyArrays": pick([True, False])}})
                is_ordered = False
            elif kind == 6:
                stages.append({"$project": {"m": f"${pick(FIELDS)}", "c": 1, "h": 1, "a": 1}})
        end = self.random.randrange(6)
        if end == 0:
            stages.append({"$group": {"_id": pick([f"${pick(FIELDS)}", None, {"a": "$a", "c": "$c"}]),
                                      "n": {"$sum": 1}, "most": {"$max": f"${pick(FIELDS)}"},
                                      "all": {"$addToSet": f"${pick(FIELDS)}"}}})
            is_ordered = False
        elif end == 1:
            stages += [{"$sort": self.sort()}, {"$group": {"_id": f"${pick(FIELDS)}", "first": {"$first": "$u"},
                                                           "last": {"$last": f"${pick(FIELDS)}"},
                                                           "all": {"$push": "$u"}}}]
            is_ordered = False
        elif end == 2:
            stages.append({"$count": "n"})
        elif end == 3:
            lookup = {"from": "SELF", "localField": pick(FIELDS), "foreignField": pick(FIELDS), "as": "found"}
            stages += [{"$lookup": lookup}, {"$project": {"u": 1, "found": {"$size": "$found"}}}]
        return stages, is_ordered

    def update(self):
        pick, value = self.random.choice, self.value
        path = lambda: pick(["a", "b", "c", "h", "n.x", "n.y", "t.1", "new"])
        kind = self.random.randrange(14)
        if kind < 4:
            return {"$set": {path(): value()}}
        if kind == 4:
            return {"$unset": {pick(["a", "b", "c", "n.x", "n", "t"]): 1}}
        if kind == 5:
            return {pick(["$inc", "$mul"]): {pick("abch"): self.random.randrange(-2, 4)}}
        if kind == 6:
            return {pick(["$min", "$max"]): {pick("abch"): self.scalar()}}
        if kind == 7:
            return {"$push": {"t": pick([value(1), {"$each": [value(1), 1], "$position": 0},
                                         {"$each": [3, self.scalar()], "$slice": -4}])}}
        if kind == 8:
            return {"$addToSet": {"t": pick([self.scalar(), {"$each": [1, 2, self.scalar()]}])}}
        if kind == 9:
            return {"$pull": {"t": pick([self.scalar(), {"$gte": 2}, {"$in": [1, None]}])}}
        if kind == 10:
            return {"$pop": {"t": pick([1, -1])}}
        if kind == 11:
            return {"$rename": {pick("ab"): pick("ch")}}
        if kind == 12:
            return [{"$set": {pick("abck"): self.expression()}}, {"$unset": pick("bh")}]
        return {"$set": {path(): self.scalar()}, "$unset": {"k": 1}}

    def request(self):
        """A request, to be asked of every collection."""
        pick = self.random.choice
        kind = self.random.random()
        collation = COLLATION if self.one_in(8) else None
        if kind < 0.34:
            find = {"kind": "find", "filter": self.filter(), "collation": collation}
            if self.one_in(2):
                find["sort"] = self.sort()
                if self.one_in(2):
                    find |= {"skip": self.random.randrange(4), "limit": 1 + self.random.randrange(9)}
            elif self.one_in(3):
                find["sort"] = self.sort(is_total=False)
            if self.one_in(2):
                find["projection"] = self.projection()
            return find | {"hints": pick(["", "", "index", "natural"])}
        if kind < 0.42:
            return {"kind": "count", "filter": self.filter(), "collation": collation,
                    "skip": pick([0, 0, 2]), "limit": pick([0, 0, 5])}
        if kind < 0.48:
            return {"kind": "distinct", "key": pick(PATHS), "filter": self.filter(), "collation": collation}
        if kind < 0.66:
            stages, is_ordered = self.pipeline()
            return {"kind": "aggregate", "stages": stages, "is_ordered": is_ordered, "collation": collation}
        if kind < 0.76:
            return {"kind": "update", "filter": self.filter(), "update": self.update(), "multi": True}
        if kind < 0.82:
            return {"kind": "modify", "filter": self.filter(), "sort": self.sort(), "update": self.update(),
                    "new": pick([True, False])}
        if kind < 0.86:
            return {"kind": "delete", "filter": {"$and": [self.filter(), {"u": {"$mod": [3, 0]}}]}}
        if kind < 0.95:
            return {"kind": "insert", "document": self.document()}
        return {"kind": pick(["checkpoint", "commit", "commit"])}


class Case:
    """Documents, the collections in which they lie, and what is asked of them."""

    def __init__(self, documents, places, requests, collation=None):
        self.documents, self.places, self.requests, self.collation = documents, places, requests, collation

    @staticmethod
    def of_seed(seed):
        draw = Draw(seed)
        documents = [draw.document() for _ in range(draw.random.randrange(DOCUMENTS_MAX))]
        places = []
        for name, *_ in draw.random.sample(INDEXES, 12):
            places.append({"index": name, "large": draw.one_in(4), "branch": draw.one_in(4),
                           "late": draw.one_in(3)})
        requests = [draw.request() for _ in range(REQUESTS)]
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

    def stored(self, document):
        """A document as it is stored: with much beside it, if this collection's are large."""
        if not self.place["large"] or document["u"] % 3 == 2:
            return document
        pad = {"pad": "x" * PAD_BYTES}
        return {**pad, **document} if document["u"] % 3 else {**document, **pad}

    def fill(self, documents):
        """Puts in these documents, for what was there; without, where the index refuses them."""
        self.collection.drop()
        options = {"collation": self.collation} if self.collation else {}
        self.database.create_collection(self.collection.name, **options)
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
            return {"$natural": 1}
        return self.place["index"] if hints == "index" and self.key and self.is_whole else None

    def all(self):
        return [self.bare(document) for document in self.collection.find(sort=[("_id", 1)])]

    @staticmethod
    def bare(document):
        return {name: value for name, value in document.items() if name != "pad"}

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

    def find(self, request):
        command = {"find": self.collection.name, "filter": request["filter"], "batchSize": 100_000}
        for name in ("sort", "skip", "limit", "projection"):
            if name in request:
                command[name] = request[name]
        if hint := self.hint(request["hints"]):
            command["hint"] = hint
        rows = self.rows(command, request)
        if "projection" in request:
            rows = [by_name(row) for row in rows]
        rows = [bson.encode(row) for row in rows]
        return rows if "_id" in request.get("sort", {}) else sorted(rows)

    def count(self, request):
        command = {"count": self.collection.name, "query": request["filter"]}
        command |= {name: request[name] for name in ("skip", "limit") if request[name]}
        return self.command(command, request)["n"]

    def distinct(self, request):
        command = {"distinct": self.collection.name, "key": request["key"], "query": request["filter"]}
        values = self.command(command, request)["values"]
        if request.get("collation") or self.collation:
            # Of those that are equal any may be told.
            return len(values)
        return sorted(repr(canonical(value)) for value in values)

    def aggregate(self, request):
        stages = [
            {"$lookup": {**stage["$lookup"], "from": self.collection.name}} if "$lookup" in stage else stage
            for stage in request["stages"]
        ]
        if (request.get("collation") or self.collation) and any("$group" in stage for stage in stages):
            return None
        command = {"aggregate": self.collection.name, "pipeline": stages, "cursor": {"batchSize": 100_000}}
        rows = [equals(by_name(row)) for row in self.rows(command, request)]
        return rows if request["is_ordered"] else sorted(rows, key=repr)

    def update(self, request):
        statement = {"q": request["filter"], "u": request["update"], "multi": True}
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


class Runner:
    """Runs cases against a server."""

    def __init__(self, address):
        self.client = MongoClient(address, socketTimeoutMS=120_000, journal=False)
        self.number = 0
        self.lock = threading.Lock()
        self.asked = 0

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
        places = [{"index": "none", "large": False, "branch": False, "late": False}] + case.places
        tables = [Table(self.client, name, number, place, case.collation) for number, place in enumerate(places)]
        plain, others = tables[0], tables[1:]
        for table in tables:
            table.fill(case.documents)
        for number, request in enumerate(case.requests):
            if request["kind"] == "checkpoint":
                self.client.admin.command({"fsync": 1})
            elif request["kind"] == "commit":
                for database in (name, f"{name}@side"):
                    self.client[database].command({"frondCommit": 1, "message": f"{number}", "allowEmpty": True})
            else:
                self.compare(plain, [table for table in others if not table.is_gone], number, request)

    def compare(self, plain, others, number, request):
        asked = {**request, "hints": "natural"} if "hints" in request else request
        expected = plain.ask(asked)
        is_write = request["kind"] in WRITES
        answers = [(table, table.ask(request)) for table in others]
        self.asked += 1 + len(others)
        refilled = expected[0] != 0 or any(answer[0] in OF_INDEXES for _, answer in answers)
        for table, answer in answers:
            is_right = answer == expected or is_write and answer[0] in OF_INDEXES
            if not is_right or answer[0] in DEFECTS:
                self.fail(number, request, table, expected, answer)
        if not is_write:
            return
        documents = plain.all()
        for table in others:
            if refilled:
                table.fill(documents)
                continue
            if list(map(bson.encode, stored := table.all())) != list(map(bson.encode, documents)):
                self.fail(number, request, table, documents, stored)

    def fail(self, number, request, table, expected, found):
        explained = ""
        if request["kind"] == "find":
            command = {"find": table.collection.name, "filter": request["filter"]}
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
            for name in [name for name in document if name not in ("_id", "u")]:
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
        return 1 if failures or server.poll() is not None else 0
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
