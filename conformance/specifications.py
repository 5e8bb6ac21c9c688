#!/usr/bin/env python3
"""Asks a server for what the drivers' published specifications expect of one, a case at a time.

    target/conformance/venv/bin/python conformance/specifications.py [--frond PATH] [--only NAME]...

The cases are ours, written from the text of the specifications (github.com/mongodb/specifications); the
drivers' own suites aren't part of the project. Each case is a sentence of its specification that a server can
break: what a driver would then do wrong is what the case looks at. PyMongo asks, of a server that answers as a
replica set of one and has fail points. A table says how many cases of each specification passed.
"""

import argparse
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from pymongo import MongoClient

from ports import free_port
from run import SERVER_SECONDS_MAX, find_server
from specified import (
    causal_consistency,
    change_streams,
    collections,
    command_monitoring,
    concerns,
    convenient_transactions,
    crud,
    gridfs_buckets,
    indexes,
    retryable_reads,
    retryable_writes,
    run_command,
    sessions,
    snapshot_sessions,
    stable_api,
    transactions,
)
from specified.setting import Setting

SPECIFICATIONS = (
    crud,
    run_command,
    collections,
    indexes,
    gridfs_buckets,
    concerns,
    sessions,
    causal_consistency,
    snapshot_sessions,
    transactions,
    convenient_transactions,
    retryable_reads,
    retryable_writes,
    change_streams,
    stable_api,
    command_monitoring,
)
CASES_MIN = 8


class Server:
    """A replica set of one with fail points, while the `with` lasts."""

    def __init__(self, binary, data):
        self.address = f"127.0.0.1:{free_port()}"
        options = ["--replica-set", "rs0", "--enable-test-commands", "--quiet"]
        command = [binary, "serve", "--data", data, "--listen", self.address, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        timeout = SERVER_SECONDS_MAX * 1000
        with MongoClient(f"mongodb://{self.address}/?replicaSet=rs0", serverSelectionTimeoutMS=timeout) as client:
            client.admin.command("ping")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(SERVER_SECONDS_MAX)


def run_case(setting, case):
    """What is wrong with a case, if anything is."""
    try:
        with setting.case() as given:
            case(given)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)
        line = next((f"{Path(at.filename).name}:{at.lineno}" for at in reversed(place) if "specified" in at.filename), "")
        return f"{line}: {type(error).__name__}: {error}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", type=Path, help="the frond binary")
    parser.add_argument("--only", action="append", help="only this specification")
    options = parser.parse_args()
    chosen = [it for it in SPECIFICATIONS if not options.only or it.SPECIFICATION.name in options.only]
    begin, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory(prefix="frond-specifications-") as directory:
        with Server(find_server(options.frond), Path(directory) / "data") as server, Setting(server.address) as setting:
            for specification in (module.SPECIFICATION for module in chosen):
                assert len(specification.cases) >= CASES_MIN, specification.name
                begun, failures = time.monotonic(), []
                for case in specification.cases:
                    wrong = run_case(setting, case)
                    if wrong:
                        failures.append(wrong)
                        print(f"FAILED {specification.name}: {case.__doc__}\n  {wrong}", flush=True)
                rows.append((specification.name, len(specification.cases), len(failures), time.monotonic() - begun))
    print(f"{'specification':26} passed failed seconds")
    for name, count, failed, seconds in rows:
        print(f"{name:26} {count - failed:6} {failed:6} {seconds:7.1f}")
    passed, failed = sum(row[1] - row[2] for row in rows), sum(row[2] for row in rows)
    print(f"{'all':26} {passed:6} {failed:6} {time.monotonic() - begin:7.1f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
