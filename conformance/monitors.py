#!/usr/bin/env python3
"""Watches a server under load as its operators do: mongostat, mongotop, and the data layer of Compass; and moves
its users and roles to another by mongodump and mongorestore.

    target/conformance/venv/bin/python conformance/monitors.py [--frond PATH]

Over TLS and with a user. What the tools tell of inserts, queries and updates, and of the time that a
collection took, must be what a loader did meanwhile, but for what happens while they start and end. The
data layer (data_service.mjs) connects, lists, reads, writes, explains, watches operations and ends one. It
is installed below target/conformance, run, and not kept: its license is the vendor's.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

from pymongo import MongoClient
from pymongo.errors import PyMongoError

from drivers import PASSWORD, USER, Server
from run import INSTALLED, SCRIPTS, find_server, install, once

DATA_SERVICE = "22.41.1"
SECONDS = 5
# Each turn is an insert, a find and an update.
TURN_SECONDS = 0.02
SHARE_WRONG_MAX = 0.2
TOOL_SECONDS_MAX = 120


class Loader(threading.Thread):
    """A client that does the same again and again, and counts."""

    def __init__(self, uri):
        super().__init__(daemon=True)
        self.items, self.turns, self.ended = MongoClient(uri).shop.items, 0, threading.Event()

    def run(self):
        while not self.ended.wait(TURN_SECONDS):
            number = self.turns
            self.items.insert_one({"_id": number})
            self.items.find_one({"_id": number})
            self.items.update_one({"_id": number}, {"$set": {"seen": True}})
            self.turns += 1


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, right, found):
        self.passed, self.failed = self.passed + bool(right), self.failed + (not right)
        print(f"{name}: {'passed' if right else 'FAILED'}: {found}", flush=True)


def run_tool(tool, server, *arguments):
    host = ["--host", "localhost", "--port", str(server.port), "--ssl", "--sslCAFile", server.authority]
    user = ["-u", USER, "-p", PASSWORD, "--authenticationDatabase", "admin"]
    command = [INSTALLED / "bin" / tool, *host, *user, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX)
    if ran.returncode != 0:
        raise SystemExit(f"{tool}: ended with {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran


def lines_of(tool, server, *arguments):
    """What a tool prints as JSON, a line each."""
    ran = run_tool(tool, server, "--json", *arguments)
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def is_near(found, expected):
    return abs(found - expected) <= SHARE_WRONG_MAX * expected


def check_stat(server, loader, report):
    """mongostat's rates by its own seconds, beside the loader's."""
    begin, turns = time.monotonic(), loader.turns
    lines = lines_of("mongostat", server, "-n", str(SECONDS), "1")
    rate = (loader.turns - turns) / (time.monotonic() - begin)
    lines = [next(iter(line.values())) for line in lines]
    for kind in ("insert", "query", "update"):
        told = sum(int(line[kind].lstrip("*")) for line in lines) / len(lines)
        report.check(f"mongostat, {kind}", is_near(told, rate), f"{told:.1f}/s, done {rate:.1f}/s")
    last = lines[-1]
    right = last["repl"] == "PRI" and last["set"] == "rs0" and int(last["conn"]) > 1 and last["res"] != "0"
    report.check("mongostat, the rest", right and len(lines) == SECONDS, last)


def check_top(server, loader, report):
    begin, turns = time.monotonic(), loader.turns
    lines = lines_of("mongotop", server, "-n", str(SECONDS), "1")
    rate = (loader.turns - turns) / (time.monotonic() - begin)
    for kind, share in (("read", 1), ("write", 2)):
        found = [line["totals"]["shop.items"][kind] for line in lines]
        told = sum(each["count"] for each in found) / len(found)
        milliseconds = sum(each["time"] for each in found) / len(found)
        right = is_near(told, share * rate) and 0 <= milliseconds < 1000  # Whole ones: reads may be none.
        told = f"{told:.1f}/s in {milliseconds:.0f} ms, done {share * rate:.1f}/s"
        report.check(f"mongotop, {kind}", right, told)


def check_accounts(server, frond, directory, report):
    """All that one server has goes to another, and one database's accounts back: a user logs in with his password."""
    with MongoClient(server.uri("zlib")) as client:
        reads = [{"resource": {"db": "shop", "collection": "items"}, "actions": ["find"]}]
        client.shop.command("createRole", "reader", privileges=reads, roles=[])
        client.shop.command("createUser", "ann", pwd="of ann", roles=["reader"])
        client.shop.items.insert_one({"_id": "of ann"})
    whole, part = directory / "dump", directory / "dump of shop"
    run_tool("mongodump", server, "--out", whole)
    (directory / "other").mkdir()
    other = Server(frond, directory / "other")
    run_tool("mongorestore", other, whole)
    report.check("mongorestore, all", *reads_as_ann(other))
    run_tool("mongodump", other, "--db", "shop", "--dumpDbUsersAndRoles", "--out", part)
    with MongoClient(other.uri("zlib")) as client:
        client.shop.command("dropAllUsersFromDatabase")
        client.shop.command("dropAllRolesFromDatabase")
        report.check("the user is gone", not reads_as_ann(other)[0], "dropped")
    run_tool("mongorestore", other, "--db", "shop", "--restoreDbUsersAndRoles", "--drop", part / "shop")
    report.check("mongorestore, a database's", *reads_as_ann(other))
    other.end()


def reads_as_ann(server):
    uri = f"mongodb://ann:{quote('of ann')}@localhost:{server.port}/shop?tls=true&directConnection=true"
    try:
        with MongoClient(uri, tlsCAFile=str(server.authority)) as client:
            found = client.shop.items.find_one({"_id": "of ann"})
            return found is not None and not may_write(client), found
    except PyMongoError as error:
        return False, error


def may_write(client):
    try:
        client.shop.items.insert_one({})
        return True
    except PyMongoError:
        return False


def check_data_service(server, report):
    directory = INSTALLED / "data-service"
    once(f"data-service-{DATA_SERVICE}", lambda: install_data_service(directory))
    command = ["node", SCRIPTS / "data_service.mjs", directory, server.uri("zlib")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS_MAX)
    steps = ran.stdout.splitlines()
    wrong = [line for line in steps if "FAILED" in line]
    right = ran.returncode == 0 and not wrong
    report.check("Compass's data layer", right, f"{len(steps)} steps" if right else f"{wrong} {ran.stderr[-2000:]}")


def install_data_service(directory):
    directory.mkdir(exist_ok=True)
    (directory / "package.json").write_text('{"private": true}\n')
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent"]
    package = f"mongodb-data-service@{DATA_SERVICE}"
    subprocess.run(["npm", "install", *flags, package], cwd=directory, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", type=Path, help="the frond binary")
    options = parser.parse_args()
    install(["tools"])
    report = Report()
    with tempfile.TemporaryDirectory(prefix="frond-monitors-") as directory:
        server = Server(find_server(options.frond), Path(directory))
        loader = Loader(server.uri("zlib"))
        loader.start()
        check_stat(server, loader, report)
        check_top(server, loader, report)
        check_data_service(server, report)
        loader.ended.set()
        loader.join()
        check_accounts(server, find_server(options.frond), Path(directory), report)
        report.check("the server ends", server.end() == 0, "on SIGTERM")
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
