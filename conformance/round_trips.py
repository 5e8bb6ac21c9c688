#!/usr/bin/env python3
"""Every way in by every way out: what goes in comes out, byte for byte.

    target/conformance/venv/bin/python conformance/round_trips.py [--frond PATH] [--seed N] [--long]

Method: documents of every BSON type (values.py) and of sizes dense around each threshold of ours are
built byte by byte and brought in by every way there is: a driver, mongorestore of a directory and an
archive, mongoimport, `frond import` into a server and a data directory, `$out`, `$merge`, a branch merged,
a commit picked, a clone, a backup restored, and the library's own streams (the example `load` of fronddb,
built beside the binary). Of each, all documents are read back by every way out: find,
cursors of small batches, aggregate, a covering index, mongodump (a directory, an archive), mongoexport,
`frond export` of a server and of a data directory. docs/round-trips.md has a table of what carries what:
where a cell says `same`, the bytes must be the same; elsewhere it names the loss, and the value must be
what values.LOSSES makes of it. What was drawn comes from a seed, which is printed.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

from bson.codec_options import CodecOptions, DatetimeConversion
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.errors import DocumentTooLarge, DuplicateKeyError, OperationFailure

import values
from run import PROJECT, Server, find_server, run, tool
from values import document, element, int32, string

TABLE = PROJECT / "docs" / "round-trips.md"
# Dates that Python has none for are no matter here.
RAW = CodecOptions(document_class=RawBSONDocument, datetime_conversion=DatetimeConversion.DATETIME_MS)
COLLECTION = "all"

# Where something of ours begins or ends: chunks of 4 and 16 KB, an inline value, a large document, pieces,
# one that is kept in memory, a batch or a text of `frond import`, a document on the wire.
THRESHOLDS = (4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20)
LONG_THRESHOLDS = (2 << 20, 4 << 20, 8 << 20, 16 << 20)
WIRE_MAX = 16 << 20
# More than a server takes, and more than it can give: files, and their megabytes.
LARGE = (("over17", 17), ("over50", 50))

Item = namedtuple("Item", "id kind type payload raw")


def main():
    options = read_options()
    seed = options.seed if options.seed is not None else random.SystemRandom().getrandbits(32)
    print(f"round trips of seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="frond-round-trips-") as directory:
        frond = find_server(options.frond)
        load = frond.parent / "examples" / "load"
        if not load.exists():
            sys.exit(f"no {load}: run `cargo build -p fronddb --example load` in the same profile first")
        trips = Trips(frond, load, Path(directory), seed, options.long)
        trips.run()
    print(f"{trips.passed} passed, {trips.failed} failed")
    return 1 if trips.failed else 0


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", type=Path, help="the frond binary")
    parser.add_argument("--seed", type=int, help="of an earlier run")
    parser.add_argument("--long", action="store_true", help="all sizes, every text by every reader")
    return parser.parse_args()


# What is carried.


def items(seed, is_long):
    """Documents of each value, short and in large documents; then of each size."""
    out = []

    def add(kind, type_, payload, *more):
        start = element(0x10, b"_id", int32(len(out)))
        raw = document(start, element(type_, b"v", payload), *more)
        out.append(Item(len(out), kind, type_, payload, raw))

    for kind, type_, payload in values.values(seed):
        add(kind, type_, payload)
        # From 32 KB on a document lies in pieces; a long text beside the value makes it so.
        again = [element(type_, b"0", payload), element(type_, b"1", payload)]
        wrapped = element(0x04, b"w", document(*again)) if type_ not in (0x03, 0x04) else b""
        add(kind, type_, payload, element(0x02, b"text", string(b"t" * 33000)), wrapped)
    draw = random.Random(seed)
    thresholds = THRESHOLDS + (LONG_THRESHOLDS if is_long else (draw.choice(LONG_THRESHOLDS),))
    sizes = {1, 100, 1000} | {at + near for at in thresholds for near in (-1, 0, 1)}
    sizes |= {draw.randrange(1 << draw.randrange(8, 21)) for _ in range(12)}
    for size in sorted(size for size in sizes if size <= WIRE_MAX):
        add("string", 0x02, *sized(draw, size, len(out)))
    return out


def sized(draw, size, id_):
    """A string, and beside it an array, that make a document of so many bytes."""
    empty = len(document(element(0x10, b"_id", int32(id_)), element(0x02, b"v", string(b""))))
    if size < empty + 1000:
        return (string(b"x" * max(0, size - empty)),)
    # Half of it text that doesn't repeat, half an array of short documents.
    words = b"".join(draw.randbytes(1 << 8).hex().encode() for _ in range((size - empty) // 2 >> 9))
    row = document(element(0x10, b"n", int32(7)), element(0x02, b"s", string(b"some words")))
    rows = [element(0x03, str(at).encode(), row) for at in range((size - empty) // 3 // (len(row) + 8))]
    tail = element(0x04, b"rows", document(*rows))
    # What is left is filled by one more text, behind the array.
    rest = size - empty - len(words) - len(tail) - len(element(0x02, b"rest", string(b"")))
    assert rest >= 0, size
    return string(words), tail, element(0x02, b"rest", string(b"r" * rest))


def read_table():
    """{kind: {carrier: cell}} of the page's table of values."""
    text = TABLE.read_text().split("## Values")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    header = rows[0]
    assert header[0] == "value", header
    table = {}
    for row in rows[2:]:
        table[row[0]] = dict(zip(header[1:], row[1:]))
    return table


class Trips:
    def __init__(self, frond, load, directory, seed, is_long):
        self.frond, self.load, self.directory, self.is_long = frond, load, directory, is_long
        self.seed = seed
        self.items = items(seed, is_long)
        self.table = read_table()
        self.passed = self.failed = 0
        kinds = {item.kind for item in self.items}
        self.check("table", "has a row for each kind", sorted(self.table), sorted(kinds))

    # Checking.

    def check(self, way, what, found, expected):
        if found == expected:
            self.passed += 1
            return
        self.failed += 1
        print(f"  FAILED {way}: {what}\n    found    {short(found)}\n    expected {short(expected)}", flush=True)

    def expected(self, carrier):
        """{id: raw} after a way through a carrier."""
        out = {}
        for item in self.items:
            cell = self.table[item.kind][carrier]
            if cell == "same":
                out[item.id] = item.raw
            elif cell != "refused":
                out[item.id] = lossy(item, cell)
        return out

    def check_all(self, way, found, carrier):
        """Compares documents, by `_id`, kind by kind: each is a check."""
        expected = self.expected(carrier)
        self.check(way, "how many", len(found), len(expected))
        for kind in self.table:
            of_kind = [item for item in self.items if item.kind == kind]
            wrong = [item for item in of_kind if found.get(item.id) != expected.get(item.id)]
            if not wrong:
                self.passed += 1
                continue
            self.failed += 1
            print(f"  FAILED {way}: {kind} ({carrier}), {len(wrong)} of {len(of_kind)}", flush=True)
            for item in wrong[:3]:
                print(f"    found    {short(found.get(item.id))}\n    expected {short(expected.get(item.id))}")

    def succeeded(self, way, result):
        self.check(way, "ends well", result.returncode, 0)
        if result.returncode != 0:
            print(result.stdout[-1000:], result.stderr[-2000:], sep="\n")

    def frond_command(self, *arguments):
        return run([self.frond, *map(str, arguments)])

    # The run.

    def run(self):
        data = self.directory / "data"
        with Server(self.frond, data) as server:
            client = MongoClient(f"mongodb://{server.address}/?directConnection=true", document_class=RawBSONDocument)
            self.ways_in(server.address, client)
            self.ways_out(server.address, client)
            client.close()
        self.of_directory(data)

    def databases(self):
        return self.brought

    def ways_in(self, address, client):
        self.brought = {}
        self.timed("driver", self.by_driver, client)
        self.timed("mongorestore", self.by_mongorestore, address)
        self.timed("copies", self.by_copies, client)
        self.timed("texts", self.by_texts, address)
        self.timed("what tools can't read", self.by_wrong_values, address, client)
        for name, carrier in self.brought.items():
            self.check_all(f"in by {name}", self.find(client[name][COLLECTION]), carrier)

    def timed(self, name, work, *arguments):
        begun = time.monotonic()
        work(*arguments)
        print(f"  {name}: {time.monotonic() - begun:.1f} s", flush=True)

    def find(self, collection, **more):
        return by_id(collection.find({}, **more))

    def by_driver(self, client):
        collection = client["driver"][COLLECTION]
        for begun in range(0, len(self.items), 50):
            collection.insert_many([RawBSONDocument(item.raw) for item in self.items[begun : begun + 50]])
        self.brought["driver"] = "BSON"

    def by_mongorestore(self, address):
        dump = self.directory / "made"
        (dump / "restored").mkdir(parents=True)
        (dump / "restored" / f"{COLLECTION}.bson").write_bytes(b"".join(item.raw for item in self.items))
        self.succeeded("mongorestore", tool("mongorestore", address, dump))
        self.brought["restored"] = "BSON"
        archive = self.directory / "archive"
        dumped = tool("mongodump", address, "--db", "driver", f"--archive={archive}", "--gzip")
        self.succeeded("mongodump of an archive", dumped)
        names = ["--nsFrom", "driver.*", "--nsTo", "archive.*"]
        restored = tool("mongorestore", address, f"--archive={archive}", "--gzip", *names)
        self.succeeded("mongorestore of an archive", restored)
        self.brought["archive"] = "BSON"

    def by_copies(self, client):
        source = client["driver"][COLLECTION]
        list(source.aggregate([{"$out": {"db": "out", "coll": COLLECTION}}]))
        list(source.aggregate([{"$match": {"_id": {"$gte": 0}}}, {"$out": "other"}]))
        self.check_all("$out behind $match", self.find(client["driver"]["other"]), "BSON")
        list(source.aggregate([{"$project": {"no": 0}}, {"$merge": {"into": {"db": "merged", "coll": COLLECTION}}}]))
        self.brought.update(out="BSON", merged="BSON")
        # A branch that is merged, and a commit that is picked.
        main = client["branched"]
        main["first"].insert_one({"_id": 1})
        main.command("frondCommit", 1, message="first")
        main.command("frondBranch", 1, branch="side")
        side = client["branched@side"]
        list(source.aggregate([{"$merge": {"into": {"db": "branched@side", "coll": COLLECTION}}}]))
        side.command("frondCommit", 1, message="all")
        main.command("frondBranch", 1, branch="picked")
        main["first"].insert_one({"_id": 2})
        main.command("frondMerge", 1, merge_in="side")
        client["branched@picked"].command("frondCherryPick", 1, target="side")
        self.brought.update({"branched": "BSON", "branched@picked": "BSON"})

    def by_texts(self, address):
        uri = ["--uri", address]
        self.texts = {}
        for name, carrier, flags in (("canonical", "canonical", ["--canonical"]), ("relaxed", "relaxed", [])):
            text = self.directory / f"{name}.jsonl"
            exported = self.frond_command("export", "-d", "driver", "-c", COLLECTION, "-o", text, *flags, *uri)
            self.succeeded(f"export, {name}", exported)
            imported = self.frond_command("import", text, "-d", f"import-{name}", "-c", COLLECTION, *uri)
            self.succeeded(f"import, {name}", imported)
            self.brought[f"import-{name}"] = carrier
            self.texts[name] = text
        text = self.directory / "tools.jsonl"
        flags = ["--db", "driver", "--collection", COLLECTION, "--sort", '{"_id": 1}']
        exported = tool("mongoexport", address, *flags, "--jsonFormat=canonical", "--out", text)
        self.succeeded("mongoexport", exported)
        self.texts["tools"] = text
        self.mongoimport(address, "tools", text, "tools")
        # Each reads what the other wrote.
        imported = self.frond_command("import", text, "-d", "of-tools", "-c", COLLECTION, *uri)
        self.succeeded("import of mongoexport's", imported)
        self.brought["of-tools"] = "from tools"
        self.mongoimport(address, "of-canonical", self.texts["canonical"], "to tools")

    def by_wrong_values(self, address, client):
        """What MongoDB's tools stop at: as BSON it stays, and JSON loses what the page says."""
        uri = ["--uri", address]
        payloads = list(values.wrong_old_binaries())
        ids = [element(0x10, b"_id", int32(at)) for at in range(len(payloads))]
        raws = [document(id_, element(0x05, b"v", payload)) for id_, payload in zip(ids, payloads)]
        client["wrong"][COLLECTION].insert_many([RawBSONDocument(raw) for raw in raws])
        self.check("wrong lengths", "stay as BSON", list(self.find(client["wrong"][COLLECTION]).values()), raws)
        mended = [values.mended_old_binary(payload) for payload in payloads]
        mended = [document(id_, element(0x05, b"v", payload)) for id_, payload in zip(ids, mended)]
        for form, flags in (("canonical", ["--canonical"]), ("relaxed", [])):
            text, name = self.directory / f"wrong-{form}.jsonl", f"wrong-{form}"
            exported = self.frond_command("export", "-d", "wrong", "-c", COLLECTION, "-o", text, *flags, *uri)
            self.succeeded(f"export of wrong lengths, {form}", exported)
            imported = self.frond_command("import", text, "-d", name, "-c", COLLECTION, *uri)
            self.succeeded(f"import of wrong lengths, {form}", imported)
            found = list(self.find(client[name][COLLECTION]).values())
            self.check("wrong lengths", f"are made right, {form}", found, mended)
        wrappers = ((b"$date", 0x02, string(b"x")), (b"$uuid", 0x02, string(b"zz")), (b"$binary", 0x03, document()))
        for name, type_, payload in wrappers:
            wrapper = document(element(type_, name, payload))
            raw = document(element(0x10, b"_id", int32(1)), element(0x03, b"v", wrapper))
            client["wrappers"][COLLECTION].replace_one({"_id": 1}, RawBSONDocument(raw), upsert=True)
            text = self.directory / "wrapper.jsonl"
            exported = self.frond_command("export", "-d", "wrappers", "-c", COLLECTION, "-o", text, *uri)
            self.succeeded(f"export of {name}", exported)
            imported = self.frond_command("import", text, "-d", "unwrapped", "-c", COLLECTION, *uri)
            self.check("wrappers", f"import refuses {name}", imported.returncode, 1)

    def mongoimport(self, address, database, text, carrier):
        """It ends at the first document that it refuses: those are tried one by one."""
        refused = {item.id for item in self.items if self.table[item.kind][carrier] == "refused"}
        lines = text.read_text().split("\n")[:-1]
        kept = self.directory / "kept.jsonl"
        kept.write_text("".join(f"{line}\n" for at, line in enumerate(lines) if at not in refused))
        flags = ["--db", database, "--collection", COLLECTION, "--file", kept]
        self.succeeded(f"mongoimport, {carrier}", tool("mongoimport", address, *flags))
        for at in sorted(refused)[:1]:
            kept.write_text(f"{lines[at]}\n")
            result = tool("mongoimport", address, *flags)
            self.check(f"mongoimport, {carrier}", f"refuses {lines[at][:80]}", result.returncode, 1)
        self.brought[database] = carrier

    def ways_out(self, address, client):
        for name, carrier in self.brought.items():
            collection = client[name][COLLECTION]
            self.check_all(f"{name} out by a cursor", self.find(collection, batch_size=7), carrier)
            found = collection.aggregate([{"$match": {"_id": {"$gte": 0}}}, {"$sort": {"_id": -1}}], allowDiskUse=True)
            self.check_all(f"{name} out by aggregate", by_id(found), carrier)
        dump = self.directory / "dump"
        self.succeeded("mongodump", tool("mongodump", address, "--out", dump))
        for name, carrier in self.brought.items():
            if "@" not in name:
                self.check_all(f"{name} out by mongodump", read_bson(dump / name / f"{COLLECTION}.bson"), carrier)
        self.timed("indexes", self.by_indexes, client)
        self.timed("ids", self.by_ids, client)
        self.timed("large ones", self.too_large_for_servers, address, client)

    def by_indexes(self, client):
        """What an index's keys give back."""
        collection = client["indexes"][COLLECTION]
        short_ones = [item for item in self.items if len(item.raw) < 4000 and b"rows" not in item.raw]
        collection.insert_many([RawBSONDocument(item.raw) for item in short_ones])
        collection.create_index("v")
        shown = {"_id": 1, "v": 1}
        for hint in ([("v", 1)], None):
            found = collection.find({}, shown, hint=hint)
            found = by_id(found)
            for item in short_ones:
                self.check("a covering index", item.kind, found.get(item.id), item.raw)

    def by_ids(self, client):
        """Values as `_id`: equal ones are refused, what is there is as it came."""
        collection = client["ids"][COLLECTION]
        kept = set()
        for kind, type_, payload in values.values(self.seed):
            if type_ in (0x04, 0x06, 0x0B) or "$" in kind or "dollar" in kind or "wrapper" in kind:
                continue
            raw = document(element(type_, b"_id", payload), element(0x02, b"kind", string(kind.encode())))
            try:
                collection.insert_one(RawBSONDocument(raw))
            except DuplicateKeyError:
                continue
            except OperationFailure as error:
                self.check("as _id", kind, str(error), "is taken")
                continue
            kept.add(raw)
            found = collection.find_one(RawBSONDocument(document(element(type_, b"_id", payload)), RAW))
            self.check("found by _id", kind, None if found is None else bytes(found.raw), raw)
        self.check("as _id", "all", {bytes(it.raw) for it in collection.find()}, kept)

    def too_large_for_servers(self, address, client):
        """A server takes 16 MB, and gives what an answer can hold: 48 MB less what is around it."""
        for name, megabytes in LARGE:
            (self.directory / name).write_text('{"_id":1,"v":"%s"}\n' % ("x" * (megabytes << 20)))
            into = ["-d", "large", "-c", name, "--uri", address]
            result = self.frond_command("import", self.directory / name, *into)
            self.refused(f"import of {megabytes} MB into a server", result, "at most 16777216")
        over = RawBSONDocument(larger(17))
        try:
            client["large"][COLLECTION].insert_one(over)
            self.check("a driver", "16 MB and more", "inserted", "refused")
        except DocumentTooLarge:
            self.passed += 1
        except OperationFailure as error:
            self.check("a driver", "16 MB and more", error.code, 10334)

    def refused(self, way, result, message):
        self.check(way, "exit code", result.returncode, 1)
        self.check(way, "says why", message in result.stderr or result.stderr, True)

    # Without a server, and back.

    def of_directory(self, data):
        directory = ["--data", data]
        for name in ("canonical", "relaxed"):
            imported = self.frond_command("import", self.texts[name], "-d", f"data-{name}", "-c", COLLECTION, *directory)
            self.succeeded(f"import into a directory, {name}", imported)
            flags = ["--canonical"] if name == "canonical" else []
            for database, carrier in self.brought.items():
                if carrier != "BSON":
                    continue
                exported = self.frond_command("export", "-d", database, "-c", COLLECTION, *flags, *directory)
                self.succeeded(f"export of a directory, {database}, {name}", exported)
                expected = self.texts[name].read_text().split("\n")
                wrong = [line for line in zip(exported.stdout.split("\n"), expected) if line[0] != line[1]]
                self.check(f"export of a directory, {database}, {name}", "as of a server", wrong[:1], [])
        for name, megabytes in LARGE:
            file, out = self.directory / name, self.directory / "out"
            imported = self.frond_command("import", file, "-d", "large", "-c", name, "--format", "json", *directory)
            self.succeeded(f"import of {megabytes} MB into a directory", imported)
            self.frond_command("export", "-d", "large", "-c", name, "-o", out, *directory)
            self.check(f"export of {megabytes} MB", "is the same", out.read_bytes() == file.read_bytes(), True)
        self.timed("streams", self.by_streams, data)
        # Another repository, over a plain directory; and the whole engine.
        place, backup = self.directory / "place", self.directory / "backup"
        self.succeeded("commit", self.frond_command("commit", "driver", "-m", "all", *directory))
        self.succeeded("remote", self.frond_command("remote", "driver", "add", "origin", place, *directory))
        self.succeeded("push", self.frond_command("push", "driver", *directory))
        cloned = self.directory / "cloned"
        self.succeeded("clone", self.frond_command("clone", place, "driver", "--data", cloned))
        self.succeeded("clone", self.frond_command("clone", f"{data}#driver", "again", "--data", cloned))
        self.succeeded("backup", self.frond_command("backup", backup, *directory))
        restored = self.directory / "restored"
        self.succeeded("restore", self.frond_command("restore", "--backup", backup, "--data", restored))
        self.check_server(cloned, {"driver": "BSON", "again": "BSON"})
        brought = {**self.brought, "data-canonical": "canonical", "data-relaxed": "relaxed"}
        self.check_server(restored, brought, large=True)

    def by_streams(self, data):
        """Into a directory, and out of it, by the library: no document is in memory as a whole."""
        is_long = {item.id: item.kind.startswith("names") and b"x" * 701 in item.payload for item in self.items}
        rest = [item.raw for item in self.items if not is_long[item.id]]
        self.stream(data, "streamed", COLLECTION, b"".join(rest))
        for name, megabytes in LARGE:
            self.stream(data, "large", f"streamed-{name}", larger(megabytes))
        for item in self.items:
            if is_long[item.id]:
                result = self.load_into(data, "streamed", COLLECTION, item.raw)
                self.check("a stream with a name of 3,000 bytes", "exit code", result.returncode, 1)
                self.check("a stream with a name of 3,000 bytes", "says why", b"too long" in result.stderr, True)

    def load_into(self, data, database, collection, documents):
        return subprocess.run([self.load, data, database, collection], input=documents, capture_output=True)

    def stream(self, data, database, collection, documents):
        result = self.load_into(data, database, collection, documents)
        self.succeeded("a stream", result)
        same = result.stdout == documents
        self.check(f"a stream of {len(documents)} bytes", "is the same", same, True)

    def check_server(self, data, brought, large=False):
        with Server(self.frond, data) as server:
            client = MongoClient(f"mongodb://{server.address}/?directConnection=true", document_class=RawBSONDocument)
            for name, carrier in brought.items():
                found = self.find(client[name][COLLECTION])
                self.check_all(f"{data.name}: {name}", found, carrier)
            if large:
                self.large_of_server(server.address, client)
            client.close()

    def large_of_server(self, address, client):
        out = self.directory / "out"
        self.check("find of 17 MB", "is the same", self.find(client["large"]["over17"]) == {1: larger(17)}, True)
        export = ["export", "-d", "large", "--uri", address, "-o", out, "-c"]
        self.succeeded("export of 17 MB of a server", self.frond_command(*export, "over17"))
        same = out.read_bytes() == (self.directory / "over17").read_bytes()
        self.check("export of 17 MB of a server", "is the same", same, True)
        dump = ["--db", "large", "--out", self.directory / "large", "--collection"]
        self.succeeded("mongodump of 17 MB", tool("mongodump", address, *dump, "over17"))
        dumped = (self.directory / "large" / "large" / "over17.bson").read_bytes()
        self.check("mongodump of 17 MB", "is the same", dumped == larger(17), True)
        try:
            list(client["large"]["over50"].find())
            self.check("find of 50 MB", "code", "found", 10334)
        except OperationFailure as error:
            self.check("find of 50 MB", "code", error.code, 10334)
        self.refused("export of 50 MB of a server", self.frond_command(*export, "over50"), "at most")
        self.check("export of 50 MB of a server", "leaves what was there", out.exists(), True)
        dumped = tool("mongodump", address, *dump, "over50")
        self.check("mongodump of 50 MB", "fails", dumped.returncode, 1)


def larger(megabytes):
    return document(element(0x10, b"_id", int32(1)), element(0x02, b"v", string(b"x" * (megabytes << 20))))


def by_id(found):
    return {id_of(it.raw): bytes(it.raw) for it in found}


def read_bson(file):
    """A file of documents one after another, by `_id`."""
    found, content = {}, file.read_bytes()
    while content:
        length = int.from_bytes(content[:4], "little")
        found[id_of(content)] = content[:length]
        content = content[length:] if length < 1 << 14 else bytes(memoryview(content)[length:])
    return found


def id_of(raw):
    return int.from_bytes(bytes(raw[9:13]), "little")


def lossy(item, loss):
    """The document with each of its values changed as the loss says."""
    type_, payload = values.LOSSES[loss](item.type, item.payload)
    raw = item.raw
    parts = [element(0x10, b"_id", int32(item.id)), element(type_, b"v", payload)]
    before = document(element(0x10, b"_id", int32(item.id)), element(item.type, b"v", item.payload))
    if len(before) < len(raw):
        parts.append(element(0x02, b"text", string(b"t" * 33000)))
        if item.type not in (0x03, 0x04):
            parts.append(element(0x04, b"w", document(element(type_, b"0", payload), element(type_, b"1", payload))))
    return document(*parts)


def short(found):
    if isinstance(found, bytes):
        return f"{len(found)} bytes {found[:90].hex()}"
    text = str(found)
    return text if len(text) < 400 else f"{text[:400]}... ({len(text)})"


if __name__ == "__main__":
    sys.exit(main())
