#!/usr/bin/env python3
"""Runs clients that we did not write against `frond serve`, and compares what they see.

Each of PyMongo, the Node driver and mongosh runs the same scripted session (session.py,
session.mjs, session.mongosh.js); the results of all three are compared with expected.json. An
application of Mongoose (mongoose.mjs) is compared with expected-mongoose.json. mongoimport,
mongoexport, mongodump and mongorestore bring documents in and out again. mingo, the query language
in JavaScript, gives a second opinion on generated requests (second_opinion.mjs).

The clients are installed once, at pinned versions, from their package registries into
target/conformance. The server is not built here: it is taken from target/release or target/debug,
whichever is newer, or from --frond.

    conformance/run.py [--frond PATH] [--client NAME]... [--install-only]
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ports import free_port

PROJECT = Path(__file__).resolve().parent.parent
SCRIPTS = PROJECT / "conformance"
TARGET = PROJECT / "target"
INSTALLED = TARGET / "conformance"

PYMONGO = "4.20.0"
NODE_DRIVER = "7.8.0"
MONGOSH = "2.12.0"
MONGOOSE = "9.12.1"
MINGO = "7.2.7"
AZURITE = "3.37.0"
MONGO_TOOLS = "v0.0.0-20260702221138-e4f25276abe9"
TOOLS = ("mongoimport", "mongoexport", "mongodump", "mongorestore", "mongostat", "mongotop")

CLIENTS = ("pymongo", "node", "mongosh", "mongoose", "tools", "mingo")
# Each asks 25 requests.
OPINION_ROUNDS = 60
SESSION_SECONDS_MAX = 900
# How long a server may take to start, or to end: much more than on a machine that does nothing else.
SERVER_SECONDS_MAX = 300


def main():
    options = read_options()
    clients = options.client or CLIENTS
    install(clients)
    if options.install_only:
        # The store that azure.py runs is no client.
        once(f"azurite-{AZURITE}", install_azurite)
        return 0
    report = Report()
    with tempfile.TemporaryDirectory(prefix="frond-conformance-") as directory:
        with Server(find_server(options.frond), Path(directory) / "data") as server:
            for client in clients:
                print(f"{client}:")
                if client == "tools":
                    run_tools(server.address, Path(directory), report)
                    import_dumps(server, Path(directory), report)
                elif client == "mingo":
                    run_opinion(server.address, report)
                else:
                    run_session(client, server.address, report)
                if client == "mongosh":
                    run_shell(server.binary, server.address, report)
                server.check(report, client)
        report.compare("server", "stops on SIGTERM", server.exit_code, 0)
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", type=Path, help="the frond binary")
    parser.add_argument("--client", action="append", choices=CLIENTS, help="only this one")
    parser.add_argument("--install-only", action="store_true", help="install, run nothing")
    return parser.parse_args()


class Report:
    """Counts what passed, and prints what didn't."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def compare(self, client, step, found, expected):
        if found == expected and type(found) is type(expected) or numbers_equal(found, expected):
            self.passed += 1
            return
        self.failed += 1
        print(f"  FAILED {client}: {step}\n    found    {json.dumps(found)}")
        print(f"    expected {json.dumps(expected)}", flush=True)


def numbers_equal(found, expected):
    """Whether both are numbers of the same value: clients differ in what they make of 1 and 1.0."""
    are_numbers = all(type(value) in (int, float) for value in (found, expected))
    return are_numbers and found == expected


# The server.


def find_server(given):
    if given:
        return given.resolve()
    built = [TARGET / profile / "frond" for profile in ("release", "debug")]
    built = [path for path in built if path.exists()]
    if not built:
        sys.exit("no frond in target/release or target/debug: run `cargo build` first")
    return max(built, key=lambda path: path.stat().st_mtime)


class Server:
    """A server on a free port while the `with` lasts."""

    def __init__(self, binary, data):
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.binary = binary
        command = [binary, "serve", "--data", data, "--listen", self.address]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.exit_code = None

    def __enter__(self):
        end = time.monotonic() + SERVER_SECONDS_MAX
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                sys.exit(f"the server doesn't listen on {self.address}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.exit_code = self.process.wait(timeout=SERVER_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def answers(self):
        host, port = self.address.split(":")
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            return False
        return True

    def check(self, report, client):
        report.compare(client, "the server still runs", self.process.poll(), None)


# Installing the clients.


def install(clients):
    INSTALLED.mkdir(parents=True, exist_ok=True)
    if "pymongo" in clients:
        once(f"pymongo-{PYMONGO}", install_pymongo)
    if {"node", "mongosh", "mongoose", "mingo"} & set(clients):
        once(f"node-{NODE_DRIVER}-{MONGOSH}-{MONGOOSE}-{MINGO}", install_node)
    if "tools" in clients:
        once(f"{len(TOOLS)}-tools-{MONGO_TOOLS}", install_tools)


def once(name, work):
    """Does work that has not been done yet: a mark remembers it."""
    mark = INSTALLED / f"{name}.done"
    if not mark.exists():
        print(f"installing {name}", flush=True)
        work()
        mark.touch()


def install_pymongo():
    subprocess.run([sys.executable, "-m", "venv", INSTALLED / "venv"], check=True)
    pip = INSTALLED / "venv" / "bin" / "pip"
    subprocess.run([pip, "install", "--quiet", f"pymongo=={PYMONGO}"], check=True)


def install_node():
    packages = [f"mongodb@{NODE_DRIVER}", f"mongosh@{MONGOSH}", f"mongoose@{MONGOOSE}"]
    install_packages(INSTALLED / "node", [*packages, f"mingo@{MINGO}"])


def install_packages(directory, packages):
    directory.mkdir(exist_ok=True)
    (directory / "package.json").write_text('{"private": true}\n')
    # Nothing needs a compiler: optional native parts are left out.
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
    subprocess.run(["npm", "install", *flags, *packages], cwd=directory, check=True)


def install_azurite():
    install_packages(INSTALLED / "azurite", [f"azurite@{AZURITE}"])


def install_tools():
    # `go install package@version` doesn't find a package this deep; a module that requires it does.
    directory = INSTALLED / "go"
    directory.mkdir(exist_ok=True)
    module = "github.com/mongodb/mongo-tools"
    (directory / "go.mod").write_text(f"module conformance\n\nrequire {module} {MONGO_TOOLS}\n")
    for tool in TOOLS:
        binary = INSTALLED / "bin" / tool
        if binary.is_dir():
            shutil.rmtree(binary)
        command = ["go", "build", "-mod=mod", "-o", binary, f"{module}/{tool}/main"]
        subprocess.run(command, cwd=directory, check=True)


# The second opinion.


def run_opinion(address, report):
    command = ["node", SCRIPTS / "second_opinion.mjs", INSTALLED / "node", address, "1", str(OPINION_ROUNDS)]
    result = run(command, dict(os.environ))
    report.compare("mingo", "has no other opinion", result.returncode, 0)
    if result.returncode != 0:
        print(result.stdout[-4000:], result.stderr[-4000:], sep="\n")


# The session.


def run_session(client, address, report):
    name = f"session-{client}"
    environment = dict(os.environ)
    if client == "pymongo":
        command = [INSTALLED / "venv" / "bin" / "python", SCRIPTS / "session.py", address, name]
    elif client == "node":
        command = ["node", SCRIPTS / "session.mjs", INSTALLED / "node", address, name]
    elif client == "mongoose":
        command = ["node", SCRIPTS / "mongoose.mjs", INSTALLED / "node", address, name]
    else:
        shell = INSTALLED / "node" / "node_modules" / ".bin" / "mongosh"
        command = [shell, "--quiet", "--norc", f"mongodb://{address}/", SCRIPTS / "session.mongosh.js"]
        # The shell keeps its settings in the home directory: not in the user's.
        environment.update(HOME=str(INSTALLED), FROND_DATABASE=name)
    answers = "expected-mongoose.json" if client == "mongoose" else "expected.json"
    expected = json.loads((SCRIPTS / answers).read_text())
    result = run(command, environment)
    found = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("[")]
    for position, (step, value) in enumerate(expected):
        if position < len(found) and found[position][0] == step:
            report.compare(client, step, found[position][1], value)
        else:
            report.compare(client, step, "not reached", value)
    report.compare(client, "ends well", result.returncode, 0)
    if result.returncode != 0 or len(found) != len(expected):
        print(result.stdout[-2000:], result.stderr[-4000:], sep="\n")


def run(command, environment=None):
    try:
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SESSION_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode(errors="replace")
        return subprocess.CompletedProcess(command, "took too long", output, "")


# frond shell, which starts mongosh.


def run_shell(binary, address, report):
    shells = INSTALLED / "node" / "node_modules" / ".bin"
    path = f"{shells}{os.pathsep}{os.environ['PATH']}"
    environment = dict(os.environ, HOME=str(INSTALLED), PATH=path)
    command = [binary, "shell", "--uri", address, "--file", SCRIPTS / "versions.mongosh.js"]
    result = run([*command, "--", "--quiet", "--norc"], environment)
    found = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("[")]
    expected = json.loads((SCRIPTS / "expected-shell.json").read_text())
    for step, value in expected:
        report.compare("frond shell", step, dict(found).get(step, "not reached"), value)
    report.compare("frond shell", "ends well", result.returncode, 0)
    command = [binary, "shell", "shell@sale", "--uri", address, "--eval", "db.log().slice(0, 1)"]
    result = run([*command, "--", "--quiet", "--norc"], environment)
    report.compare("frond shell", "a slice is no list of commits", "commitId" in result.stdout, True)
    command = [binary, "shell", "shell@sale", "--uri", address, "--eval", "db.status()"]
    result = run([*command, "--", "--quiet", "--norc"], environment)
    report.compare("frond shell", "shows, not dumps", result.stdout.startswith("On branch sale, at "), True)


# mongoimport, mongoexport, mongodump and mongorestore.


def run_tools(address, directory, report):
    documents = [
        {"_id": number, "name": f"item {number}", "price": number / 2, "tags": ["a", "b"]}
        for number in range(2_500)
    ]
    lines = directory / "documents.jsonl"
    lines.write_text("".join(json.dumps(document) + "\n" for document in documents))
    imported = tool("mongoimport", address, "--db", "tools", "--collection", "items", "--file", lines)
    report.compare("tools", "mongoimport of lines", summary(imported), "2500 document(s) imported successfully")
    exported = tool("mongoexport", address, "--db", "tools", "--collection", "items", "--sort", '{"_id": 1}')
    found = [json.loads(line) for line in exported.stdout.splitlines()]
    report.compare("tools", "mongoexport of lines", found == documents, True)
    query = '{"_id": {"$lt": 3}}'
    flags = ["--query", query, "--type", "csv", "--fields", "_id,name", "--sort", '{"_id": 1}']
    exported = tool("mongoexport", address, "--db", "tools", "--collection", "items", *flags)
    expected = ["_id,name", "0,item 0", "1,item 1", "2,item 2"]
    report.compare("tools", "mongoexport of CSV", exported.stdout.splitlines(), expected)
    table = directory / "table.csv"
    table.write_text("_id,city,people\n1,Rome,2800000\n2,Oslo,700000\n")
    flags = ["--type", "csv", "--headerline", "--file", table, "--drop"]
    imported = tool("mongoimport", address, "--db", "tools", "--collection", "cities", *flags)
    report.compare("tools", "mongoimport of CSV", summary(imported), "2 document(s) imported successfully")
    # The tool counts documents that changed: one that is so already counts as nothing.
    changed = directory / "changed.jsonl"
    changed.write_text("".join(json.dumps({**document, "tags": []}) + "\n" for document in documents))
    flags = ["--file", changed, "--mode", "upsert"]
    imported = tool("mongoimport", address, "--db", "tools", "--collection", "items", *flags)
    report.compare("tools", "mongoimport with upserts", summary(imported), "2500 document(s) imported successfully")
    imported = tool("mongoimport", address, "--db", "tools", "--collection", "items", "--file", lines)
    report.compare("tools", "mongoimport of duplicates", summary(imported), "0 document(s) imported successfully")
    dump_and_restore(address, directory / "dump", report)
    dump_series(address, directory, report)


SERIES = {
    "options": {"timeseries": {"timeField": "t", "metaField": "m", "granularity": "seconds"}},
    "indexes": [{"v": 2, "key": {"m": 1, "t": 1}, "name": "m_1_t_1"}, {"v": 2, "key": {"v": 1}, "name": "v_1"}],
    "collectionName": "points",
    "type": "timeseries",
}


def dump_series(address, directory, report):
    """A time series as a directory, an archive, and as what is restored over itself."""
    made = directory / "made series" / "series"
    made.mkdir(parents=True)
    (made / "points.metadata.json").write_text(json.dumps(SERIES))
    (made / "system.buckets.points.bson").write_bytes(b"")
    restored = tool("mongorestore", address, made.parent)
    report.compare("tools", "mongorestore of an empty time series", restored.returncode, 0)

    def point(number):
        source = [{"m": number % 7}, {"m": {"a": number % 3}}, {}][number % 3]
        time = {"$date": {"$numberLong": str(1_700_000_000_000 + number * 7_000)}}
        return {"_id": number, **source, "t": time, "v": number / 2, "o": {"x": [number, None]}}

    lines = directory / "points.jsonl"
    lines.write_text("".join(json.dumps(point(number)) + "\n" for number in range(5_000)))
    imported = tool("mongoimport", address, "--db", "series", "--collection", "points", "--file", lines)
    report.compare("tools", "mongoimport of points", summary(imported), "5000 document(s) imported successfully")

    def exported(database):
        flags = ["--db", database, "--collection", "points", "--sort", '{"_id": 1}', "--jsonFormat", "canonical"]
        return tool("mongoexport", address, *flags).stdout

    before = exported("series")
    report.compare("tools", "mongoexport of points", len(before.splitlines()), 5_000)
    renamed = ["--nsFrom", "series.*", "--nsTo"]
    dump, archive = directory / "series dump", directory / "series archive"
    for name, to, source in (("directory", f"--out={dump}", dump), ("archive", f"--archive={archive}", None)):
        dumped = tool("mongodump", address, "--db", "series", to)
        report.compare("tools", f"mongodump of a time series, {name}", dumped.returncode, 0)
        place = [source] if source else [f"--archive={archive}"]
        restored = tool("mongorestore", address, *renamed, f"series_{name}.*", *place)
        report.compare("tools", f"mongorestore of a time series, {name}", restored.returncode, 0)
        report.compare("tools", f"points come back as they were, {name}", exported(f"series_{name}") == before, True)
    restored = tool("mongorestore", address, "--drop", dump)
    report.compare("tools", "mongorestore of a time series over itself", restored.returncode, 0)
    report.compare("tools", "points over themselves", exported("series") == before, True)


def dump_and_restore(address, dump, report):
    dumped = tool("mongodump", address, "--db", "tools", "--out", dump)
    report.compare("tools", "mongodump", dumped.returncode, 0)
    renamed = ["--nsFrom", "tools.*", "--nsTo", "restored.*"]
    restored = tool("mongorestore", address, *renamed, dump)
    report.compare("tools", "mongorestore", summary(restored), "2502 document(s) restored successfully")
    exported = [
        tool("mongoexport", address, "--db", database, "--collection", "items", "--sort", '{"_id": 1}').stdout
        for database in ("tools", "restored")
    ]
    report.compare("tools", "a restored collection", exported[0] == exported[1] != "", True)


SHAPED = {
    "items": {
        "options": {"validator": {"price": {"$gt": 0}}},
        "indexes": [
            {"v": 2, "key": {"_id": 1}, "name": "_id_"},
            {"v": 2, "key": {"name": 1}, "name": "names", "unique": True},
        ],
    },
    "cheap": {"options": {"viewOn": "items", "pipeline": [{"$match": {"price": {"$lt": 50}}}]}, "indexes": []},
    "none": {"options": {}, "indexes": [{"v": 2, "key": {"_id": 1}, "name": "_id_"}]},
}


def import_dumps(server, directory, report):
    """What mongodump writes in each of its forms, `frond import --dump` reads: the same commit."""
    made = directory / "made" / "shaped"
    made.mkdir(parents=True)
    for name, metadata in SHAPED.items():
        (made / f"{name}.metadata.json").write_text(json.dumps({**metadata, "collectionName": name}))
    (made / "items.bson").write_bytes(b"")
    (made / "none.bson").write_bytes(b"")
    restored = tool("mongorestore", server.address, directory / "made")
    report.compare("tools", "mongorestore of options and indexes", restored.returncode, 0)
    lines = directory / "shaped.jsonl"
    lines.write_text("".join(json.dumps({"_id": i, "name": f"item {i}", "price": i + 1}) + "\n" for i in range(3_000)))
    tool("mongoimport", server.address, "--db", "shaped", "--collection", "items", "--file", lines)
    forms = {
        "plain": ["--out", directory / "plain"],
        "gzip": ["--gzip", "--out", directory / "gzip"],
        "archive": [f"--archive={directory / 'archive'}"],
        "zipped archive": ["--gzip", f"--archive={directory / 'zipped archive'}"],
    }
    roots = set()
    for name, flags in forms.items():
        dumped = tool("mongodump", server.address, "--db", "shaped", *flags)
        report.compare("tools", f"mongodump, {name}", dumped.returncode, 0)

        def frond(*words):
            return run([server.binary, *words, "--data", directory / f"data of {name}"])

        imported = frond("import", "--dump", directory / name, "--commit", "moved")
        report.compare("tools", f"frond import --dump, {name}", (imported.returncode, imported.stderr), (0, ""))
        counted = "imported 3,000 documents into shaped.items" in imported.stdout
        report.compare("tools", f"frond import --dump tells, {name}", counted, True)
        found = frond("diff", "shaped", "NOTHING", "HEAD", "--json").stdout
        roots.add(found)
        report.compare("tools", f"a dumped index, {name}", '"name":"names"' in found, True)
        cheap = frond("export", "-d", "shaped", "-c", "cheap").stdout
        report.compare("tools", f"a dumped view, {name}", len(cheap.splitlines()), 49)
        refused = frond("import", "-d", "shaped", "-c", "items", lines)
        report.compare("tools", f"a dumped unique index refuses, {name}", refused.returncode, 1)
    report.compare("tools", "all forms of a dump are the same", len(roots), 1)


def tool(name, address, *arguments):
    # `directConnection` is what a standalone server is.
    uri = f"mongodb://{address}/?directConnection=true"
    return run([INSTALLED / "bin" / name, "--uri", uri, *arguments])


def summary(result):
    """What the tool says last: how many documents were imported."""
    last = (result.stderr.splitlines() or [""])[-1]
    return last.split("\t")[-1].split(".")[0]


if __name__ == "__main__":
    sys.exit(main())
