"""A collection that any_plan.py asks, with its index, and what it answers.

Answers are compared as bytes; only where these differ they are decoded, put in order, and compared by what they equal.
"""

from decimal import Decimal

import bson
from any_plan_draw import INDEXES
from any_plan_wire import LENGTH, batch, documents, field, receive
from bson import Decimal128
from bson.raw_bson import RawBSONDocument

PAD_BYTES = 40_000
PAD = b"\x02pad\0" + LENGTH.pack(PAD_BYTES + 1) + b"x" * PAD_BYTES + b"\0"
# No more than so many of the documents are large.
LARGE_MAX = 60
# What an index may refuse, and a collection without it doesn't: parallel arrays, an array under a hash, a key that is
# there, a path that means a position and a field.
OF_INDEXES = {171, 7246301, 16766, 11000, 16746}
# An order refuses a document with arrays in two of its fields (2), and one in which a position is a name, too
# (16746). Of two documents the one that is read first decides.
OF_ORDERS = {2, 16746}
# A write is synced at an interval: what a power cut leaves is asked elsewhere.
RELAXED = {"w": 1, "j": False}
# The indexes that a time series takes, too.
OF_SERIES = {"none", "a", "a_down", "b", "a_b", "c_a", "dotted", "array", "position", "partial"}
# Of groups that a collation makes, any may be told.
GROUPING = ("$group", "$facet", "$bucket", "$bucketAuto", "$sortByCount")
ALL = {"kind": "find", "filter": {}, "sort": {"_id": 1}, "hints": ""}


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


def named(value, name):
    """A part of a pipeline, with the collection's name where "SELF" stands."""
    if isinstance(value, dict):
        return {key: named(inner, name) for key, inner in value.items()}
    if isinstance(value, list):
        return [named(inner, name) for inner in value]
    return name if value == "SELF" and isinstance(value, str) else value


def padded(document):
    """A document's bytes, with much beside what it has, if it is one of those that are large; before it or behind."""
    at = field(document, b"u")
    number = LENGTH.unpack_from(document, at[1])[0] if at else 2
    if number % 3 == 2 or LARGE_MAX < number:
        return document
    inner = document[4:-1]
    inner = PAD + inner if number % 3 else inner + PAD
    return LENGTH.pack(len(inner) + 5) + inner + b"\0"


def bare(document):
    """A document's bytes without what `padded` put in."""
    if PAD not in document:
        return document
    inner = document[4:-1].replace(PAD, b"")
    return LENGTH.pack(len(inner) + 5) + inner + b"\0"


class Refused(Exception):
    """The server refused what it has to take."""


class Table:
    """A collection, with its index, and the connection that asks it."""

    def __init__(self, wire, database, number, place, collation):
        self.wire, self.place, self.collation = wire, place, collation
        name, self.key, self.options, self.is_whole = next(one for one in INDEXES if one[0] == place["index"])
        self.database = f"{database}@side" if place["branch"] else database
        self.name = f"c{number}_{name}"
        self.is_series = place.get("series", False)
        self.is_gone = False
        # The version that is asked instead of the working state, while nothing is written.
        self.commit = None
        self.read_name = self.name
        if place.get("view"):
            self.read_name += "_view"
            options = {"collation": collation} if collation else {}
            self.run({"create": self.read_name, "viewOn": self.name, "pipeline": [], **options})

    def run(self, command):
        """A command's reply; raises Refused."""
        reply = bson.decode(self.wire.ask(self.database, command))
        errors = reply.get("writeErrors") or ([] if reply["ok"] else [reply])
        if errors:
            raise Refused({one["code"] for one in errors}, errors[0]["errmsg"])
        return reply

    def fill(self, stored):
        """Puts in these documents (bytes), for what was there; without, where the index refuses them."""
        self.run({"drop": self.name})
        options = {"collation": self.collation} if self.collation else {}
        if self.is_series:
            options["timeseries"] = {"timeField": "at", "metaField": "m"}
        self.run({"create": self.name, **options})
        if self.place["large"]:
            stored = [padded(document) for document in stored]
        try:
            if not self.place["late"]:
                self.index()
            if stored:
                self.run({"insert": self.name, "documents": [RawBSONDocument(one) for one in stored],
                          "writeConcern": RELAXED})
            if self.place["late"]:
                self.index()
        except Refused as error:
            if not error.args[0] <= OF_INDEXES:
                raise
            self.is_gone = True

    def index(self):
        if self.key:
            spec = {"key": self.key, "name": self.place["index"], **self.options}
            self.run({"createIndexes": self.name, "indexes": [spec]})

    def hint(self, hints):
        if hints == "natural":
            return None if self.is_series else {"$natural": 1}
        if self.place.get("view"):
            return None
        return self.place["index"] if hints == "index" and self.key and self.is_whole else None

    def takes(self, request):
        """Whether the collection may be asked it."""
        collation = request.get("collation") or self.collation
        if request["kind"] == "aggregate" and collation:
            if any(name in GROUPING for stage in request["stages"] for name in stage):
                return False
        if self.place.get("view") and request.get("collation"):
            return False
        return not (self.is_series and request["kind"] in ("update", "modify"))

    def wrong(self):
        """What is wrong with the indexes, if anything."""
        if self.is_series:
            return None
        checked = self.run({"validate": self.name})
        return None if checked["valid"] else checked["errors"]

    def send(self, request):
        """Asks; `answers` reads what comes back."""
        command = getattr(self, request["kind"])(request)
        if request.get("collation"):
            command["collation"] = request["collation"]
        self.wire.send(self.commit or self.database, command)

    def find(self, request):
        command = {"find": self.read_name, "filter": request["filter"], "batchSize": 100_000}
        for name in ("sort", "skip", "limit", "projection"):
            if name in request:
                command[name] = request[name]
        if hint := self.hint(request["hints"]):
            command["hint"] = hint
        return command

    def count(self, request):
        command = {"count": self.read_name, "query": request["filter"]}
        return command | {name: request[name] for name in ("skip", "limit") if request[name]}

    def distinct(self, request):
        return {"distinct": self.read_name, "key": request["key"], "query": request["filter"]}

    def aggregate(self, request):
        stages = named(request["stages"], self.read_name)
        return {"aggregate": self.read_name, "pipeline": stages, "cursor": {"batchSize": 100_000}}

    def update(self, request):
        statement = {name: request[name] for name in ("q", "u", "multi", "upsert", "sort", "arrayFilters")
                     if name in request}
        if request.get("replaces"):
            statement["u"] = {name: value for name, value in request["u"].items() if name != "_id"}
        return {"update": self.name, "updates": [statement], "writeConcern": RELAXED}

    def delete(self, request):
        return {"delete": self.name, "deletes": [{"q": request["filter"], "limit": 0}], "writeConcern": RELAXED}

    def insert(self, request):
        document = bson.encode(request["document"])
        document = RawBSONDocument(padded(document) if self.place["large"] else document)
        return {"insert": self.name, "documents": [document], "writeConcern": RELAXED}

    def modify(self, request):
        return {"findAndModify": self.name, "query": request["filter"], "sort": request["sort"],
                "update": request["update"], "new": request["new"], "writeConcern": RELAXED}


def answers(tables, request):
    """What collections answer that were all asked."""
    replies = receive([table.wire for table in tables])
    return [Answer(table, request, reply) for table, reply in zip(tables, replies)]


class Answer:
    """What a collection answered: decoded as late as can be."""

    def __init__(self, table, request, reply):
        self.table, self.request, self.reply = table, request, reply
        self.values = {}
        kind, begin, _ = field(reply, b"ok")
        self.is_ok = kind != 0x01 or reply[begin:begin + 8] != bytes(8)
        self.code = 0 if self.is_ok else bson.decode(reply)["code"]
        if self.is_ok and field(reply, b"writeErrors"):
            self.code = bson.decode(reply)["writeErrors"][0]["code"]

    def bytes(self):
        """What is equal if the answers are, in the same order."""
        if self.request["kind"] in ("find", "aggregate"):
            return batch(self.reply)
        if self.request["kind"] == "distinct":
            _, begin, end = field(self.reply, b"values")
            return self.reply[begin:end]
        return self.reply

    def rows(self):
        """The documents, as bytes, without what makes them large."""
        return [bare(row) for row in documents(batch(self.reply))]

    def agrees(self, expected):
        """Whether this is what the plain collection answered."""
        if self.code or expected.code:
            return self.code == expected.code or {self.code, expected.code} == OF_ORDERS
        if self.bytes() == expected.bytes():
            return True
        if self.request["kind"] == "aggregate" and not self.request["is_ordered"]:
            if sorted(self.rows()) == sorted(expected.rows()):
                return True
        # A covering index may give fields in its own order, and a time series may have them in another.
        is_by_name = self.table.is_series or "projection" in self.request
        return self.value(is_by_name) == expected.value(is_by_name)

    def value(self, is_by_name=False):
        """The answer in a form that can be compared; its documents' fields by their names."""
        if self.code:
            return f"error {self.code}"
        if is_by_name not in self.values:
            self.values[is_by_name] = getattr(self, self.request["kind"])(is_by_name)
        return self.values[is_by_name]

    def find(self, is_by_name):
        rows = self.rows()
        if is_by_name:
            rows = [bson.encode(by_name(bson.decode(row))) for row in rows]
        return rows if "_id" in self.request.get("sort", {}) else sorted(rows)

    def count(self, _):
        return bson.decode(self.reply)["n"]

    def distinct(self, _):
        values = bson.decode(self.reply)["values"]
        if self.request.get("collation") or self.table.collation:
            # Of those that are equal any may be told.
            return len(values)
        return sorted(repr(canonical(value)) for value in values)

    def aggregate(self, _):
        rows = [equals(by_name(bson.decode(row))) for row in self.rows()]
        return rows if self.request["is_ordered"] else sorted(rows, key=repr)

    def wrote(self, _):
        reply = bson.decode(self.reply)
        return reply["n"], reply.get("nModified")

    update = delete = insert = wrote

    def modify(self, _):
        _, begin, end = field(self.reply, b"value")
        return bare(self.reply[begin:end])
