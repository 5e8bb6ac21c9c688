#!/usr/bin/env python3
"""Requests that want too much, generated for every operator and stage, on a server with little memory.

    python3 conformance/hostile.py --frond target/release/frond                  a minute
    python3 conformance/hostile.py --frond target/release/frond --seconds 3600 --clients 8

Goal: whatever stands in a request, the server's memory stays within `--memory` and 64 MB more, the request ends
within its `maxTimeMS` and a second, and the answer is a result or one of MongoDB's errors; a defect is none.

Method:
1. The operators come from the sorted tables in `crates/query`, so that a new one is asked, too. Each gets arguments
   that grow: ranges of millions, strings and arrays that double, maps in maps, sets, patterns of every kind.
   A stage without a hostile request is an error of this script.
2. Several clients ask side by side; one more pings, and memory is read ten times a second: in a memory cgroup of the
   server's own where this user may make one (version 1), else from /proc.
3. At the end the server must still answer right, and have given back what it took.

Exit code 1 and the seed, with the request, if anything is wrong.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bson import json_util
from bson.regex import Regex
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError

from ports import free_port

ROOT = Path(__file__).resolve().parent.parent
MARGIN_BYTES = 64 << 20
CGROUPS = "/sys/fs/cgroup/memory"
MAX_TIME_MILLIS = 3000
# A second as the issue has it, and what a machine that is shared may take to wake a thread.
GRACE_SECONDS = 1.0
# Defects of ours, and nothing else: any other code may be right for arguments that make no sense.
DEFECTS = {1, 8}
DOCUMENTS = 20000


def names(path, pattern=r'row\("(\$\w+)", (?!R\b|E\b|R\)|E\)|S\(NO_)'):
    """The operators of a table."""
    return re.findall(pattern, (ROOT / "crates/query/src" / path).read_text())


EXPRESSIONS = names("expression/table.rs")
ACCUMULATORS = names("accumulator/table.rs")
STAGES = names("pipeline/table.rs")
UPDATES = names("update/operators.rs", r'\("(\$\w+)", Operator')


class Wrong(Exception):
    """The server did what it must not do."""


def number_range(count):
    return {"$range": [0, count]}


def doubled(seed, operator, times):
    """What `operator` makes of a value and itself, so many times."""
    body = {operator: ["$$value", "$$value"]}
    return {"$reduce": {"input": number_range(times), "initialValue": seed, "in": body}}


class Maker:
    """Makes hostile expressions."""

    def __init__(self, generator):
        self.random = generator

    def array(self):
        """A large array, or what asks for one."""
        return self.random.choice([
            number_range(self.random.choice([20_000, 300_000, 3_000_000, 2_000_000_000])),
            doubled([1, 2, 3], "$concatArrays", self.random.randint(10, 40)),
            {"$map": {"input": number_range(300_000), "in": {"$toString": "$$this"}}},
            {"$map": {"input": number_range(100_000), "in": {"k": {"$toString": "$$this"}, "v": "$$this"}}},
            {"$map": {"input": number_range(2_000), "in": number_range(2_000)}},
            {"$split": [self.text(), "a"]},
        ])

    def text(self):
        """A large string."""
        return doubled(self.random.choice(["ab", "0123456789abcdef", "é,"]), "$concat", self.random.randint(10, 40))

    def document(self):
        """A large document."""
        count = self.random.choice([10_000, 200_000])
        pair = {"k": {"$concat": ["k", {"$toString": "$$this"}]}, "v": "$$this"}
        return {"$arrayToObject": {"$map": {"input": number_range(count), "in": pair}}}

    def any(self):
        return self.random.choice([self.array, self.array, self.text, self.document])()

    def pattern(self):
        return self.random.choice([
            r"(a|b|ab)*c", r"[ab]*a[ab]{200}", r"(\w+\s*)+$", r"(?=(a+))\1b", r"(a+)+$", r"\w{30}\d{30}", "a|b", "",
            "(" * 50 + "a" + ")*" * 50, r"(?i)straße\b" * 20,
        ])

    def expression(self, name):
        """One operator with arguments that grow."""
        big, text, document, pick = self.array(), self.text(), self.document(), self.random.choice
        nested = {"input": big, "in": pick([number_range(1000), {"$concatArrays": [big, big]}, "$$ROOT"])}
        shapes = {
            "$map": [nested],
            "$filter": [{"input": big, "cond": {"$in": ["$$this", big]}}, {"input": big, "cond": True}],
            "$reduce": [
                {"input": number_range(60), "initialValue": [0], "in": {"$concatArrays": ["$$value", "$$value"]}},
                {"input": number_range(1_000_000), "initialValue": "", "in": {"$concat": ["$$value", "x"]}},
                {"input": number_range(3000), "initialValue": [], "in": {"$setUnion": ["$$value", number_range(3000)]}},
            ],
            "$let": [{"vars": {f"v{n}": big for n in range(30)}, "in": {"$size": "$$v0"}}],
            "$zip": [
                {"inputs": [number_range(3_000_000)] * 30},
                {"inputs": [big] * 5, "useLongestLength": True},
            ],
            "$range": [[0, 2_000_000_000], [0, 5_000_000], [-2_147_483_648, 2_147_483_647, 1]],
            "$sortArray": [{"input": big, "sortBy": pick([1, -1, {"v": 1}])}],
            "$replaceAll": [{"input": text, "find": "a", "replacement": text}],
            "$replaceOne": [{"input": text, "find": "b", "replacement": text}],
            "$split": [[text, pick(["a", "ab", ","])]],
            "$getField": [{"field": "k1", "input": document}],
            "$setField": [{"field": "x", "input": document, "value": big}],
            "$unsetField": [{"field": "k1", "input": document}],
            "$switch": [{"branches": [{"case": {"$size": big}, "then": big}] * 20, "default": big}],
            "$cond": [[{"$size": big}, big, big]],
            "$convert": [{"input": text, "to": pick(["binData", "int", "string"]), "format": "utf8", "onError": big}],
            "$dateToString": [{"date": "$$NOW", "format": text}],
            "$dateFromString": [{"dateString": text, "format": text, "onError": big}],
            "$percentile": [{"input": big, "p": [0.5] * 1000, "method": "approximate"}],
            "$median": [{"input": big, "method": "approximate"}],
            "$literal": [[1] * 10_000],
            "$const": [[1] * 10_000],
        }
        for operator in ("$regexMatch", "$regexFind", "$regexFindAll"):
            shapes[operator] = [{"input": text, "regex": self.pattern()}, {"input": text, "regex": ""}]
        for operator in ("$firstN", "$lastN", "$maxN", "$minN"):
            shapes[operator] = [{"input": big, "n": pick([5, 3_000_000])}]
        for operator in ("$trim", "$ltrim", "$rtrim"):
            shapes[operator] = [{"input": text, "chars": text}]
        general = [
            big, [big], [big, big], [text], [text, text], [text] * 5, [document], [document, document],
            [big] * 30, [self.any(), self.any(), self.any()], [text, 0, 1_000_000_000], [big, 0, 1_000_000_000],
        ]
        return {name: pick(shapes.get(name, []) * 4 + general)}

    def wrapped(self, expression):
        """More of it: side by side, for each element, or in a variable."""
        return self.random.choice([
            expression,
            expression,
            [expression] * 12,
            {"$map": {"input": number_range(100_000), "in": expression}},
            {"$let": {"vars": {"a": expression, "b": expression}, "in": ["$$a", "$$b", "$$a"]}},
            {"$size": {"$zip": {"inputs": [[expression], number_range(1_000_000)], "useLongestLength": True}}},
        ])

    def stage(self, name):
        """A pipeline whose last stage is hostile."""
        big, text, pick = self.array(), self.text(), self.random.choice
        accumulator = pick(ACCUMULATORS)
        argument = {
            "$count": {}, "$percentile": {"input": "$n", "p": [0.1] * 500, "method": "approximate"},
            "$median": {"input": "$n", "method": "approximate"},
        }
        for several in ("$firstN", "$lastN", "$maxN", "$minN"):
            argument[several] = {"input": big, "n": 1000}
        for best in ("$top", "$bottom"):
            argument[best] = {"output": big, "sortBy": {"n": 1}}
            argument[best + "N"] = {"output": big, "sortBy": {"n": 1}, "n": 1000}
        field = {accumulator: argument.get(accumulator, pick([big, "$$ROOT", "$tags", text]))}
        unwound = [{"$limit": 300}, {"$set": {"a": number_range(30_000)}}, {"$unwind": "$a"}]
        graph = {
            "from": "c", "startWith": pick(["$n", big, "$tags"]), "connectFromField": pick(["next", "tags", "n"]),
            "connectToField": pick(["n", "tags", "_id"]), "as": "found", "depthField": "depth",
        }
        made = {
            "$addFields": [{"$addFields": {f"f{n}": big for n in range(30)}}],
            "$set": [{"$set": {"a": big}}, {"$set": {"a": ["$a"] * 60}}, {"$set": {"a": ["$a"] * 60}}],
            "$project": [{"$project": {f"f{n}": self.expression(pick(EXPRESSIONS)) for n in range(20)}}],
            "$bucket": [{"$bucket": {"groupBy": "$n", "boundaries": [0, 1_000_000], "default": "x", "output": {"f": field}}}],
            "$bucketAuto": [{"$bucketAuto": {"groupBy": pick(["$n", big]), "buckets": 3, "output": {"f": field}}}],
            "$count": unwound + [{"$count": "count"}],
            "$densify": [{"$densify": {"field": "n", "range": {"step": 0.001, "bounds": pick(["full", [0, 1_000_000_000]])}}},
                         {"$count": "count"}],
            "$documents": [{"$documents": {"$map": {"input": number_range(3_000_000), "in": {"a": "$$this"}}}}],
            "$facet": [{"$facet": {f"f{n}": [{"$set": {"b": number_range(1000)}}] for n in range(30)}}],
            "$fill": [{"$fill": {"sortBy": {"n": 1}, "output": {"absent": {"value": big}}}}, {"$count": "count"}],
            "$geoNear": [{"$geoNear": {"near": [0, 0], "distanceField": "d", "key": "place"}}, {"$set": {"a": big}}],
            "$graphLookup": [{"$graphLookup": graph}],
            "$group": unwound + [{"$group": {"_id": pick(["$a", None, "$tags", text]), "f": field}}],
            "$limit": [{"$set": {"a": number_range(100_000)}}, {"$limit": 9}],
            "$lookup": [pick([
                {"$lookup": {"from": "c", "localField": "tags", "foreignField": "tags", "as": "found"}},
                {"$lookup": {"from": "c", "pipeline": [{"$set": {"a": number_range(1000)}}], "as": "found"}},
                {"$lookup": {"from": "c", "let": {"n": big}, "pipeline": [{"$match": {"$expr": {"$in": ["$n", "$$n"]}}}],
                             "as": "found"}},
            ])],
            "$match": [{"$match": {"$expr": self.expression(pick(EXPRESSIONS))}}],
            "$merge": unwound + [{"$project": {"_id": "$a"}}, {"$merge": "merged"}],
            "$out": unwound + [{"$project": {"_id": {"$concat": [{"$toString": "$_id"}, {"$toString": "$a"}]}}},
                               {"$out": "out"}],
            "$redact": [{"$redact": {"$cond": [{"$size": big}, "$$DESCEND", "$$KEEP"]}}],
            "$replaceRoot": [{"$replaceRoot": {"newRoot": {"a": big, "b": text, "c": big}}}],
            "$replaceWith": [{"$replaceWith": self.document()}],
            "$sample": [{"$set": {"a": number_range(10_000)}}, {"$sample": {"size": 10_000_000}}, {"$count": "count"}],
            "$setWindowFields": [{"$setWindowFields": {"sortBy": {"n": 1}, "output": {
                "f": {**field, "window": {"documents": pick([["unbounded", "unbounded"], [-5000, 5000]])}}}}},
                {"$count": "count"}],
            "$skip": unwound + [{"$skip": 1_000_000_000}],
            "$sort": unwound + [{"$sort": {"a": -1, "n": 1}}, {"$count": "count"}],
            "$sortByCount": unwound + [{"$sortByCount": pick(["$a", {"$concat": ["$s", {"$toString": "$a"}]}])},
                                       {"$count": "count"}],
            "$unionWith": [{"$unionWith": "c"}] * 12 + [{"$count": "count"}],
            "$unset": unwound + [{"$unset": ["s", "tags"]}, {"$count": "count"}],
            "$unwind": [{"$set": {"a": big}}, {"$unwind": "$a"}, {"$count": "count"}],
        }
        if name not in made:
            raise Wrong(f"this script has no hostile request for the stage {name}")
        return made[name]

    def filter(self):
        """A filter that wants much of its patterns or values."""
        def several(count):
            return [Regex(self.pattern() + f"{n}(x|y)\\w{{3}}") for n in range(count)]
        return self.random.choice([
            {"s": {"$in": several(500)}},
            {"$or": [{"s": pattern} for pattern in several(300)]},
            {"s": {"$regex": self.pattern()}},
            {"s": {"$in": list(range(200_000))}},
            {"$jsonSchema": {"properties": {"s": {"anyOf": [{"pattern": p.pattern} for p in several(100)]}}}},
            {"tags": {"$gte": 0}},
            {"$or": [{"tags": n} for n in range(2000)]},
            {"tags": {"$all": list(range(5000))}},
            {"$expr": self.expression(self.random.choice(EXPRESSIONS))},
        ])

    def update(self, name):
        """An update that makes documents grow."""
        values = list(range(100_000))
        text = "x" * 1_000_000
        return {
            "$addToSet": {"$addToSet": {"grown": {"$each": values}}},
            "$push": {"$push": {"grown": {"$each": values, "$sort": -1, "$position": 0}}},
            "$pull": {"$pull": {"grown": {"$in": values}}},
            "$pullAll": {"$pullAll": {"grown": values}},
            "$set": self.random.choice([{"$set": {"grown.1500000": 1}}, {"$set": {"grown": text}}]),
            "$rename": {"$rename": {"s": "t"}},
            "$bit": {"$bit": {"n": {"or": 1}}},
            "$currentDate": {"$currentDate": {"when": True}},
            "$pop": {"$pop": {"grown": 1}},
        }.get(name, {name: {"n": 1}})

    def request(self, kind, name):
        """A command."""
        source = [{"$documents": [{"_id": 1}]}]
        command = {"aggregate": 1, "cursor": {"batchSize": 10}}
        match kind:
            case "expression":
                command["pipeline"] = source + [{"$project": {"x": self.wrapped(self.expression(name))}}]
            case "stage" if name == "$documents":
                command["pipeline"] = self.stage(name) + [{"$count": "count"}]
            case "stage":
                command = {"aggregate": "c", "cursor": {"batchSize": 10}, "pipeline": self.stage(name)}
            case "filter":
                command = self.random.choice([{"find": "c", "filter": self.filter(), "batchSize": 10},
                                              {"count": "c", "query": self.filter()},
                                              {"distinct": "c", "key": "tags", "query": self.filter()}])
            case "update":
                update = self.random.choice([self.update(name), [{"$set": {"grown": self.expression("$range")}}]])
                command = {"update": "grown", "updates": [{"q": {}, "u": update, "multi": True}]}
        return {**command, "maxTimeMS": MAX_TIME_MILLIS}


class Server:
    """A server with little memory, in a cgroup if there may be one."""

    def __init__(self, frond, directory, memory, port):
        self.cgroup = None
        path = f"{CGROUPS}/frond-hostile-{os.getpid()}"
        try:
            os.mkdir(path)
            self.cgroup = path
        except OSError as error:
            print(f"  no cgroup ({error}): memory is read from /proc")
        port = port or free_port()
        self.address = f"mongodb://127.0.0.1:{port}/?directConnection=true"
        command = [frond, "serve", "--data", directory, "--listen", f"127.0.0.1:{port}", "--memory", f"{memory}MB"]
        enter = (lambda: Path(f"{self.cgroup}/tasks").write_text(str(os.getpid()))) if self.cgroup else None
        self.process = subprocess.Popen(command, preexec_fn=enter, stdout=subprocess.DEVNULL)
        with MongoClient(self.address, serverSelectionTimeoutMS=30_000) as client:
            client.admin.command("ping")

    def bytes(self):
        """Memory that is no file's."""
        if self.cgroup:
            text = Path(f"{self.cgroup}/memory.stat").read_text()
            return int(re.search(r"^rss (\d+)", text, re.M)[1])
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^RssAnon:\s+(\d+)", text, re.M)[1]) << 10

    def stop(self):
        self.process.kill()
        self.process.wait()
        if self.cgroup:
            os.rmdir(self.cgroup)


class Run:
    """One run: what was asked, and what was wrong."""

    def __init__(self, server, seed, budget):
        self.server, self.seed, self.budget = server, seed, budget
        self.lock = threading.Lock()
        self.running, self.codes, self.wrong = {}, {}, []
        self.count, self.peak, self.slowest = 0, 0, (0, None)
        self.until = 0

    def note(self, message, command):
        text = json_util.dumps(command)
        with self.lock:
            self.wrong.append(f"{message}: {text[:600]}")

    def client(self, number, jobs):
        generator = random.Random(self.seed * 1000 + number)
        maker = Maker(generator)
        with MongoClient(self.server.address, socketTimeoutMS=120_000) as client:
            database = client["hostile"]
            while time.monotonic() < self.until and not self.wrong:
                with self.lock:
                    kind, name = jobs[self.count % len(jobs)]
                    self.count += 1
                try:
                    command = maker.request(kind, name)
                except Wrong as error:
                    self.note(str(error), name)
                    return
                self.running[number] = command
                begun = time.monotonic()
                code = self.ask(database, command)
                took = time.monotonic() - begun
                with self.lock:
                    self.codes[code] = self.codes.get(code, 0) + 1
                    if self.slowest[0] < took:
                        self.slowest = (took, name)
                if code in DEFECTS or code == "lost":
                    self.note(f"answered {code}", command)
                if MAX_TIME_MILLIS / 1000 + GRACE_SECONDS + self.budget["grace"] < took:
                    self.note(f"took {took:.1f} s", command)

    @staticmethod
    def ask(database, command):
        try:
            reply = database.command(command)
            if "cursor" in reply and reply["cursor"]["id"]:
                database.command({"killCursors": "c", "cursors": [reply["cursor"]["id"]]})
            errors = reply.get("writeErrors")
            return errors[0]["code"] if errors else 0
        except OperationFailure as error:
            return error.code
        except AutoReconnect:
            return "lost"
        except PyMongoError:
            return "refused by the driver"

    def watch(self, baseline):
        limit = self.budget["bytes"] + MARGIN_BYTES
        while time.monotonic() < self.until:
            now = self.server.bytes()
            self.peak = max(self.peak, now)
            if limit < now:
                running = "; ".join(json_util.dumps(one)[:400] for one in list(self.running.values()))
                self.note(f"memory {now >> 20} MB of {limit >> 20}, at rest {baseline >> 20}", running)
                return
            time.sleep(0.05)


def load(address):
    """Documents with arrays, strings and places; every kind of index."""
    with MongoClient(address) as client:
        database = client["hostile"]
        generator = random.Random(1)
        documents = [
            {"_id": n, "n": n, "next": (n * 7 + 1) % DOCUMENTS, "s": f"text {n} ab ab" * 3,
             "tags": [generator.randrange(5000) for _ in range(8)],
             "place": [generator.uniform(-170, 170), generator.uniform(-80, 80)]}
            for n in range(DOCUMENTS)
        ]
        database["c"].insert_many(documents)
        database["c"].create_index("tags")
        database["c"].create_index([("place", "2d")])
        database["grown"].insert_many([{"_id": n, "n": 1, "s": "x"} for n in range(20)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frond", required=True)
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--memory", type=int, default=64, help="MB")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", help="an operator, a stage, or a kind")
    parser.add_argument("--grace", type=float, default=0.0, help="seconds more, on a machine that is busy")
    options = parser.parse_args()
    print(f"hostile requests, seed {options.seed}")
    jobs = [("expression", name) for name in EXPRESSIONS] + [("stage", name) for name in STAGES]
    jobs += [("update", name) for name in UPDATES] + [("filter", "filter")] * 20
    if options.only:
        jobs = [job for job in jobs if options.only in job]
    random.Random(options.seed).shuffle(jobs)
    directory = tempfile.mkdtemp(prefix="frond-hostile-")
    server = Server(options.frond, directory, options.memory, options.port)
    try:
        load(server.address)
        baseline = server.bytes()
        run = Run(server, options.seed, {"bytes": options.memory << 20, "grace": options.grace})
        run.until = time.monotonic() + options.seconds
        threads = [threading.Thread(target=run.client, args=(number, jobs)) for number in range(options.clients)]
        threads.append(threading.Thread(target=run.watch, args=(baseline,)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with MongoClient(server.address) as client:
            count = client["hostile"]["c"].count_documents({})
            if count != DOCUMENTS:
                run.wrong.append(f"{count} documents of {DOCUMENTS} afterwards")
            taken = client.admin.command("serverStatus")["frond"]["memory"]["stagesBytes"]
            if taken > 1 << 20:
                run.wrong.append(f"{taken} bytes of the budget were not given back")
        print(f"  {run.count} requests; answers by code: {dict(sorted(run.codes.items(), key=str))}")
        print(f"  memory at rest {baseline >> 20} MB, at most {run.peak >> 20} MB of "
              f"{(options.memory << 20) + MARGIN_BYTES >> 20}; slowest {run.slowest[0]:.2f} s ({run.slowest[1]})")
        if run.wrong:
            print("\n".join(run.wrong))
            return 1
        return 0
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
