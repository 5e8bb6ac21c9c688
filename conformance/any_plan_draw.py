"""What any_plan.py asks: documents and requests, drawn from a seed.

Documents have values of every type that a driver can write, missing fields and arrays. Requests are finds, counts,
distincts, pipelines of most stages, and writes by every operator. "SELF" in a pipeline is the collection that it reads.
"""

import datetime
import random

import bson
from bson import Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

# Keys that are longer than this are cut in trees; where is tried, too.
LONG = [9000, 9000, 9000, 8126, 8180, 8192]
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

    def __init__(self, seed, is_many=False):
        self.random = random.Random(seed)
        self.next_id = 0
        self.has_long = self.one_in(4)
        # An answer has at most 16 MB.
        self.long_one_in = 60 if is_many else 5
        # Documents have a time and a source, as a time series wants them, whose points have short `_id`s.
        self.has_times = not self.has_long and self.one_in(2)

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
        if self.has_long and self.one_in(self.long_one_in):
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
        if self.has_times:
            document["at"] = datetime.datetime(2024, 1, 1) + datetime.timedelta(hours=self.random.randrange(60))
            if not self.one_in(6):
                document["m"] = self.random.choice([1, 2, "a", None, {"x": 1}, {"x": 1, "y": 2}])
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
                         {"$all": [value()]}, {"$mod": [2, self.random.randrange(2)]},
                         {pick(["$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"]): pick([1, 2, [0, 2]])}])
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

    def counted(self, repeats):
        """Orders behind which documents are only counted: some documents have no place in them. Where one `repeats`,
        any of those that are equal may be cut off, so none is."""
        pick = self.random.choice
        order = lambda: {name: pick([1, -1]) for name in self.random.sample(["a", "b", "c", "n.x", "t", "t.0", "_id"],
                                                                            1 + self.random.randrange(3))}
        cut = lambda: [{pick(["$limit", "$skip"]): 1 + self.random.randrange(8)}] \
            if not repeats and self.one_in(2) else []
        more = [{"$sort": order()}, *cut()] if self.one_in(3) else []
        first = {"$sort": {**order(), "_id": 1}}
        return [first, *cut(), *more, pick([{"$count": "n"}, {"$group": {"_id": None, "n": {"$sum": 1}}}])]

    def gathered(self):
        """A last stage that makes one document of several."""
        pick = self.random.choice
        field = lambda: f"${pick(FIELDS)}"
        kind = self.random.randrange(4)
        if kind == 0:
            return {"$bucket": {"groupBy": field(), "boundaries": pick([[0, 2, 5], [-1, 1.5], ["a", "b", "z"]]),
                                "default": "other", "output": {"n": {"$sum": 1}, "all": {"$addToSet": "$u"}}}}
        if kind == 1:
            return {"$bucketAuto": {"groupBy": pick(["$u", "$c", field()]), "buckets": 1 + self.random.randrange(5),
                                    "output": {"n": {"$sum": 1}, "all": {"$addToSet": "$u"}}}}
        if kind == 2:
            return {"$sortByCount": field()}
        order = {pick(FIELDS): pick([1, -1]), "_id": pick([1, -1])}
        several = {"n": 1 + self.random.randrange(4)}
        return {"$group": {"_id": pick([field(), None]),
                           "one": {pick(["$top", "$bottom"]): {"sortBy": order, "output": "$u"}},
                           "few": {pick(["$topN", "$bottomN"]): {**several, "sortBy": order, "output": field()}},
                           "most": {pick(["$maxN", "$minN"]): {**several, "input": "$u"}}}}

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
            elif kind == 7:
                stages.append(pick([
                    {"$redact": {"$cond": [{"$gt": ["$c", 1]}, "$$PRUNE", pick(["$$DESCEND", "$$KEEP"])]}},
                    {"$match": {"$jsonSchema": {"required": [pick("abch")], "properties": {
                        "c": {"bsonType": pick(["number", "string", "null"])}, "t": {"maxItems": 2}}}}},
                    {"$match": {pick(["a", "c", "n.x"]): self.condition(), "$comment": "two"}}]))
        if self.one_in(3):
            stages += self.joined()
            is_ordered = False
        end = self.random.randrange(9)
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
            stages.append(self.facet())
        elif end == 4:
            stages += self.counted(any(name in ("$unwind", "$unionWith") for stage in stages for name in stage))
        elif end == 5:
            stages.append(self.gathered())
            is_ordered = False
        return stages, is_ordered

    def matched(self):
        """A `$match`, often one that an index serves."""
        return {"$match": self.filter() if self.one_in(2) else {self.random.choice(PATHS): self.condition()}}

    def joined(self):
        """Stages that read the collection again, or documents together; what they find is put in order."""
        kind = self.random.randrange(6)
        in_order = lambda values: {"$sortArray": {"input": values, "sortBy": 1}}
        if kind < 2:
            return [self.lookup(), {"$addFields": {"found": in_order("$found.u")}}]
        if kind == 2:
            return [self.graph(), {"$addFields": {"found": in_order(
                {"$map": {"input": "$found", "in": ["$$this.u", "$$this.depth"]}})}}]
        if kind == 3:
            shown = [{"$project": {**self.projection(), "_id": 1}}] if self.one_in(2) else []
            return [{"$unionWith": {"coll": "SELF", "pipeline": [self.matched(), *shown]}}]
        if kind == 4:
            return [self.windows()]
        # What comes out of the join is asked again.
        return [self.lookup(), {"$unwind": "$found"}, {"$match": {f"found.{self.random.choice(FIELDS)}":
                                                                  self.condition()}},
                {"$project": {"u": 1, "other": "$found.u"}}]

    def lookup(self):
        pick = self.random.choice
        kind = self.random.randrange(4)
        made = {"from": "SELF", "as": "found"}
        if kind < 3:
            made |= {"localField": pick(FIELDS + ["u"]), "foreignField": pick(FIELDS + ["u"])}
        if kind == 1:
            made["pipeline"] = [self.matched()]
        elif kind > 1:
            compared = {pick(["$eq", "$eq", "$gt", "$lte", "$in"]): [f"${pick(FIELDS + ['u'])}", "$$given"]}
            # What isn't an array can't be searched.
            guard = {"$isArray": "$$given"} if "$in" in compared else True
            made["let"] = {"given": f"${pick(FIELDS + ['u'])}"}
            made["pipeline"] = [{"$match": {"$expr": {"$and": [guard, compared]}}}]
            if self.one_in(2):
                made["pipeline"].append(self.matched())
        return {"$lookup": made}

    def graph(self):
        pick = self.random.choice
        made = {"from": "SELF", "startWith": self.expression(), "connectFromField": pick(FIELDS + ["u"]),
                "connectToField": pick(FIELDS + ["u"]), "as": "found", "depthField": "depth",
                "maxDepth": self.random.randrange(4)}
        if self.one_in(2):
            made["restrictSearchWithMatch"] = self.matched()["$match"]
        return {"$graphLookup": made}

    def windows(self):
        pick = self.random.choice
        order = {pick(FIELDS): pick([1, -1]), "_id": pick([1, -1])}
        field = f"${pick(FIELDS)}"
        window = {"documents": pick([["unbounded", "current"], [-1, 1], ["current", "unbounded"], [-2, -1]])}
        output = {"number": {"$documentNumber": {}}, "all": {"$push": "$u", "window": window},
                  "end": {pick(["$first", "$last", "$max", "$min"]): field, "window": window},
                  "next": {"$shift": {"output": field, "by": pick([-1, 1]), "default": "none"}}}
        # An array is no partition.
        partition = {"$cond": [{"$isArray": field}, 0, pick([field, {"$type": field}])]}
        made = {"sortBy": order, "output": output}
        return {"$setWindowFields": made | ({"partitionBy": partition} if self.one_in(2) else {})}

    def facet(self):
        pick = self.random.choice
        parts = {"sorted": [self.matched(), {"$sort": self.sort()}, {"$limit": 5}, {"$project": {"u": 1}}],
                 "count": [self.matched(), {"$count": "n"}],
                 "grouped": [{"$group": {"_id": {"$type": f"${pick(FIELDS)}"}, "n": {"$sum": 1}}},
                             {"$sort": {"_id": 1}}],
                 "most": [{"$sort": self.sort()}, {"$group": {"_id": None, "all": {"$push": "$u"}}}]}
        return {"$facet": {name: parts[name] for name in self.random.sample(sorted(parts), 2)}}

    def update(self):
        pick, value = self.random.choice, self.value
        path = lambda: pick(["a", "b", "c", "h", "n.x", "n.y", "t.1", "new"])
        kind = self.random.randrange(17)
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
        if kind == 13:
            return {"$pullAll": {"t": [self.scalar(), 1, 2]}}
        if kind == 14:
            return {"$push": {"t": {"$each": [self.scalar(), 2], "$sort": pick([1, -1]), "$slice": 5}}}
        if kind == 15:
            return {"$bit": {pick("abc"): {pick(["and", "or", "xor"]): self.random.randrange(8)}}}
        return {"$set": {path(): self.scalar()}, "$unset": {"k": 1}}

    def statement(self):
        """A statement of an update."""
        pick = self.random.choice
        kind = self.random.randrange(10)
        if kind == 0:
            # By a position that the filter finds, or the elements that are asked for.
            filter = {"t": pick([{"$gte": self.scalar()}, self.scalar(), {"$elemMatch": {"$gte": 1}}])}
            return {"q": filter, "u": {pick(["$set", "$set", "$inc", "$min"]): {"t.$": self.number()}}, "multi": True}
        if kind == 1:
            changed = {pick(["$set", "$max", "$mul"]): {"t.$[some]": self.number()}}
            some = pick([{"$gte": self.scalar()}, {"$type": "number"}, {"$ne": self.scalar()}])
            return {"q": self.filter(), "u": changed, "multi": True, "arrayFilters": [{"some": some}]}
        if kind == 2:
            return {"q": self.filter(), "u": {pick(["$set", "$unset"]): {"t.$[]": 3}}, "multi": True}
        if kind == 3:
            made = self.document()
            number = 1 + self.random.randrange(self.next_id)
            return {"q": {"u": number}, "u": {**made, "u": number, "_id": None}, "replaces": True}
        if kind == 4:
            made = self.document()
            filter = {"_id": made.pop("_id")} | ({"c": self.scalar()} if self.one_in(2) else {})
            made.pop("c", None)
            return {"q": filter, "u": {"$setOnInsert": made}, "upsert": True}
        if kind == 5:
            return {"q": self.filter(), "u": self.update(), "multi": False, "sort": self.sort()}
        return {"q": self.filter(), "u": self.update(), "multi": True}

    def read(self):
        """A request that changes nothing."""
        pick = self.random.choice
        kind = self.random.random()
        collation = COLLATION if self.one_in(8) else None
        if kind < 0.51:
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
        if kind < 0.64:
            return {"kind": "count", "filter": self.filter(), "collation": collation,
                    "skip": pick([0, 0, 2]), "limit": pick([0, 0, 5])}
        if kind < 0.73:
            return {"kind": "distinct", "key": pick(PATHS), "filter": self.filter(), "collation": collation}
        stages, is_ordered = self.pipeline()
        return {"kind": "aggregate", "stages": stages, "is_ordered": is_ordered, "collation": collation}

    def write(self):
        """A request that may change something."""
        pick = self.random.choice
        kind = self.random.random()
        if kind < 0.35:
            return {"kind": "update", **self.statement()}
        if kind < 0.55:
            return {"kind": "modify", "filter": self.filter(), "sort": self.sort(), "update": self.update(),
                    "new": pick([True, False])}
        if kind < 0.69:
            return {"kind": "delete", "filter": {"$and": [self.filter(), {"u": {"$mod": [3, 0]}}]}}
        return {"kind": "insert", "document": self.document()}

    def request(self):
        """A request, to be asked of every collection."""
        kind = self.random.random()
        if kind < 0.66:
            return self.read()
        return self.write() if kind < 0.95 else {"kind": self.random.choice(["checkpoint", "commit", "commit"])}
