#!/usr/bin/env python3
"""Whatever plan is chosen, the answer is the same.

    target/conformance/venv/bin/python conformance/any_plan.py --frond target/release/frond       a minute
    ... --many --seconds 3600 --clients 3     cases of a thousand documents, for an hour
    ... --seed 5                              one case again (with --many, if it was one of these)

Goal: no index, no hint, no size of a document, no flush, no commit and no branch changes what a request answers.

Method:
1. A case is drawn from a seed (any_plan_draw.py): some documents of every type that a driver can write, with missing
   fields and arrays, and requests: finds, counts, distincts, pipelines that join, window and divide, and writes of
   every operator. A case of many has a thousand documents and some hundred requests, most of them reads, since a write
   that fails has all collections filled anew.
2. The documents lie in one collection without an index, whose requests say `$natural` where they may, and in others:
   one for each kind of index, some with documents of more than 32 KB (of the cases of many, one in ten has such), some
   on a branch of their own, some read through a view that changes nothing, some in a time series. One case in four has
   collections with a collation.
3. Every collection is asked the same (any_plan_table.py), after writes in memory, after a checkpoint, after a commit;
   and until the next write every other time the commit itself is asked instead. That is a round. All answers are
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
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter

import bson
from any_plan_coverage import Coverage
from any_plan_draw import COLLATION, INDEXES, Draw
from any_plan_table import ALL, OF_INDEXES, OF_SERIES, Refused, Table, answers
from any_plan_wire import Wire
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from ports import free_port

DOCUMENTS_MAX = 30
PLACES = 12
REQUESTS = 60
# One case in so many is of many documents: plans and trees are others then.
MANY_ONE_IN = 12
MANY_DOCUMENTS = 1_000
MANY_PLACES = 6
MANY_READS = 60
MANY_WRITES = 3
# One in so many of these has documents above 32 KB.
MANY_LARGE_ONE_IN = 10
# What joins all with all is asked of so many of the documents: of all, it would be more than one batch holds.
MANY_JOINED = {"$match": {"u": {"$lte": 15}}}
# A case that is cut down may take so long.
MINIMISE_SECONDS = 90
# So often it is told how far it is.
REPORT_SECONDS = 300
# Defects of the server's, also where every collection answers so.
DEFECTS = {1, 8}
WRITES = {"update", "delete", "insert", "modify"}


class Case:
    """Documents, the collections in which they lie, and what is asked of them."""

    def __init__(self, documents, places, requests, collation=None):
        self.documents, self.places, self.requests, self.collation = documents, places, requests, collation

    @staticmethod
    def of_seed(seed, is_many):
        draw = Draw(seed, is_many)
        count = MANY_DOCUMENTS if is_many else draw.random.randrange(DOCUMENTS_MAX)
        documents = [draw.document() for _ in range(count)]
        has_large = not is_many or draw.one_in(MANY_LARGE_ONE_IN)
        places = []
        for name, *_ in draw.random.sample(INDEXES, MANY_PLACES if is_many else PLACES):
            is_series = draw.has_times and name in OF_SERIES and draw.one_in(2)
            is_large = has_large and not is_series and draw.one_in(2 if is_many else 4)
            places.append({"index": name, "large": is_large, "branch": draw.one_in(4),
                           "late": draw.one_in(3), "view": draw.one_in(5), "series": is_series})
        requests = many_requests(draw) if is_many else [draw.request() for _ in range(REQUESTS)]
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


def many_requests(draw):
    """What is asked of many documents: as they were put in, changed, after a checkpoint, committed, changed again."""
    reads = lambda: [joins_few(draw.read()) for _ in range(MANY_READS)]
    writes = lambda: [draw.write() for _ in range(MANY_WRITES)]
    return [*reads(), *writes(), *reads(), {"kind": "checkpoint"}, *reads(), {"kind": "commit"}, *reads(),
            *writes(), *reads()]


def joins_few(request):
    if "SELF" in repr(request):
        request["stages"] = [MANY_JOINED, *request["stages"]]
    return request


class Failed(Exception):
    """Two collections answered differently."""


class Runner:
    """Runs cases against a server."""

    def __init__(self, port):
        self.client = MongoClient(f"mongodb://127.0.0.1:{port}/?directConnection=true&serverSelectionTimeoutMS=60000",
                                  socketTimeoutMS=120_000, journal=False)
        self.port = port
        self.number = 0
        self.lock = threading.Lock()
        self.of_thread = threading.local()
        self.rounds = self.asked = 0
        self.seconds = Counter()
        self.coverage = Coverage()

    def wires(self, count):
        """Connections, which a thread's cases use one after the other."""
        mine = self.of_thread.__dict__.setdefault("wires", [])
        while len(mine) < count:
            mine.append(Wire(self.port))
        return mine

    def forget_wires(self):
        """After a failure answers may be under way."""
        for wire in self.of_thread.__dict__.pop("wires", []):
            wire.close()

    def timed(self, name, begun):
        now = time.monotonic()
        with self.lock:
            self.seconds[name] += now - begun
        return now

    def told(self, seconds):
        spent = ", ".join(f"{name} {spent:.0f} s" for name, spent in sorted(self.seconds.items()))
        return (f"{self.rounds} rounds ({self.rounds / seconds:.1f} a second), {self.asked} requests; of all clients: "
                f"{spent}")

    def run(self, case, until=None):
        """Runs a case to its end, or until that moment, which may come nearer meanwhile.

        Raises Failed where two collections differ.
        """
        with self.lock:
            self.number += 1
            name = f"any{self.number}"
        begun = time.monotonic()
        database = self.client[name]
        try:
            database.command({"create": "first"})
            database.command({"frondCommit": 1, "message": "begin"})
            database.command({"frondBranch": 1, "branch": "side"})
            self.run_on(case, name, begun, until)
        except BaseException:
            self.forget_wires()
            raise
        finally:
            begun = time.monotonic()
            self.client.drop_database(name)
            self.timed("filling", begun)

    def run_on(self, case, name, begun, until):
        places = [dict.fromkeys(("large", "branch", "late", "view", "series"), False) | {"index": "none"}]
        places += case.places
        wires = self.wires(len(places))
        tables = [Table(wires[number], name, number, place, case.collation) for number, place in enumerate(places)]
        stored = [bson.encode(document) for document in case.documents]
        for table in tables:
            table.fill(stored)
        self.timed("filling", begun)
        state = "in memory"
        for number, request in enumerate(case.requests):
            if until and until[0] < time.monotonic():
                break
            if request["kind"] == "checkpoint":
                self.client.admin.command({"fsync": 1})
                state = "after a checkpoint"
            elif request["kind"] == "commit":
                self.commit(name, tables, number)
                state = "after a commit"
            else:
                self.ask(tables, (number, state), request)
                is_written = request["kind"] in WRITES
                if is_written and len(case.documents) < MANY_DOCUMENTS:
                    self.validate(tables[1:], (number, state), request)
        self.validate(tables[1:], (len(case.requests), state), {"kind": "the end"})

    def commit(self, name, tables, number):
        """Commits both branches. Every other collection is asked for the commit from here on, until it is written."""
        for database in (name, f"{name}@side"):
            reply = self.client[database].command({"frondCommit": 1, "message": f"{number}", "allowEmpty": True})
            for table in tables[1::2]:
                if table.database == database:
                    table.commit = f"{name}@{reply['commitId']}"

    def ask(self, tables, at, request):
        """Asks all collections; after a write all documents are compared, too."""
        is_write = request["kind"] in WRITES
        if is_write:
            for table in tables:
                table.commit = None
        plain, others = tables[0], [table for table in tables[1:] if not table.is_gone]
        is_refilled = self.compare(plain, [table for table in others if table.takes(request)], at, request)
        if not is_write:
            return
        for table in (plain, *others):
            table.send(ALL)
        stored, *all_found = answers([plain, *others], ALL)
        for table, found in zip(others, all_found):
            if is_refilled or not table.takes(request):
                continue
            if not found.agrees(stored):
                self.fail(at[0], request, table, stored.value(), found.value())
        begun = time.monotonic()
        for table in others:
            if is_refilled or not table.takes(request):
                table.fill(stored.rows())
        self.timed("filling", begun)

    def compare(self, plain, others, at, request):
        """Asks these at once, and compares what they answer. Returns whether a write may have done half of its work."""
        number, state = at
        asked = {**request, "hints": "natural"} if "hints" in request else request
        begun = time.monotonic()
        plain.send(asked)
        for table in others:
            table.send(request)
        expected, *found = answers([plain, *others], request)
        begun = self.timed("waiting", begun)
        with self.lock:
            self.rounds += 1
            self.asked += 1 + len(found)
            for table in others:
                self.coverage.note(request, table.place, state, table.commit is not None)
        is_write = request["kind"] in WRITES
        for answer in found:
            is_right = answer.agrees(expected) or is_write and answer.code in OF_INDEXES
            if not is_right or answer.code in DEFECTS:
                self.fail(number, request, answer.table, expected.value(), answer.value())
        self.timed("comparing", begun)
        return expected.code != 0 or any(answer.code in OF_INDEXES for answer in found)

    def validate(self, tables, at, request):
        for table in tables:
            if not table.is_gone and (wrong := table.wrong()):
                self.fail(at[0], request, table, "an index of its documents' entries", wrong)

    def fail(self, number, request, table, expected, found):
        explained = ""
        if request["kind"] == "find":
            command = table.find(request)
            plan = table.run({"explain": command, "verbosity": "queryPlanner"})
            # A view's is that of a pipeline.
            explained = f"\n  plan {plan.get('queryPlanner', {}).get('winningPlan', plan)}"
        raise Failed(shortened(f"request {number} {request!r}\n  at {table.place}, {table.commit or 'as written'}: "
                               f"expected {shown(expected)}\n  found {shown(found)}{explained}"))

    def fails(self, case, until=None):
        """What a case fails with, if it does."""
        try:
            self.run(case, until)
        except Failed as error:
            return str(error)
        except (OperationFailure, Refused, OSError) as error:
            return f"refused: {error}"
        except Exception:
            # A thread that ends so must not look like one that found nothing.
            return traceback.format_exc()
        return None


def shown(answer):
    """An answer that people can read."""
    def decoded(value):
        if isinstance(value, bytes):
            return bson.decode(value) if value else None
        if isinstance(value, (list, tuple)):
            return [decoded(inner) for inner in value]
        return value
    return shortened(repr(decoded(answer)))[:3000]


def minimised(runner, case):
    """A smaller case that fails: parts are left out as long as it does."""
    is_many = MANY_DOCUMENTS <= len(case.documents)
    until = time.monotonic() + MINIMISE_SECONDS * (4 if is_many else 1)
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
    parser.add_argument("--many", action="store_true", help="cases of a thousand documents; else one in twelve is")
    parser.add_argument("--keep-going", action="store_true", help="tell all cases that fail")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else random.randrange(1 << 30)
    print(f"any plan, seeds from {first}", flush=True)
    directory = tempfile.mkdtemp(prefix="frond-any-plan-")
    port = free_port()
    command = [options.frond, "serve", "--data", directory, "--listen", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              start_new_session=True)
    runner = Runner(port)
    lock, seeds, failures = threading.Lock(), iter(range(first, first + (1 << 30))), []
    begun = time.monotonic()
    cases, is_over = [0], threading.Event()
    ends_at = [begun + options.seconds]
    for number in (signal.SIGINT, signal.SIGTERM):
        # What was found and asked is told then, too.
        signal.signal(number, lambda *_: ends_at.__setitem__(0, 0))

    def reporter():
        while not is_over.wait(REPORT_SECONDS):
            print(f"  {cases[0]} cases, {runner.told(time.monotonic() - begun)}", flush=True)

    def client():
        while time.monotonic() < ends_at[0] and (options.keep_going or not failures):
            with lock:
                seed = next(seeds)
                cases[0] += 1
            case = Case.of_seed(seed, options.many or seed % MANY_ONE_IN == 0)
            if (reason := runner.fails(case, ends_at)) is not None:
                small = minimised(runner, case)
                with lock:
                    failures.append(seed)
                    print(f"seed {seed}: {reason}\n  cut down: {runner.fails(small)}\n{small.told()}", flush=True)
            if options.seed is not None:
                return

    try:
        runner.client.admin.command("ping")
        threads = [threading.Thread(target=client) for _ in range(options.clients)]
        for thread in threads:
            thread.start()
        threading.Thread(target=reporter, daemon=True).start()
        for thread in threads:
            thread.join()
        is_over.set()
        print(f"  {cases[0]} cases, {runner.told(time.monotonic() - begun)}, failed: {failures or 'none'}")
        print(runner.coverage.told([name for name, *_ in INDEXES], OF_SERIES))
        return 1 if failures or server.poll() is not None else 0
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
