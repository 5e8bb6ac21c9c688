#!/usr/bin/env python3
"""Has packs, a log, remotes and backups in a container of Azurite, which speaks as Azure's storage does.

`frond doctor --store` races 32 writers there first, so that conditional puts are proven ones; a wrong key must be
refused with the variables to set. Then a server with its packs in the container is killed, and started again; one
with its log there, too, is killed and loses its disk, and another directory takes over with all that was
acknowledged; a clone copies no pack; a push, a clone, a backup and what is restored from it are the same documents.

Azurite is installed by conformance/run.py --install-only. Without it the script says "not run".

    conformance/azure.py [--frond PATH] [--azurite DIRECTORY] [--seed NUMBER]
"""

import argparse
import base64
import datetime
import hashlib
import hmac
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from ports import free_port
from run import INSTALLED
from s3 import PROJECT, START_SECONDS_MAX, Frond, Live, documents, same

MAIN = "node_modules/azurite/dist/src/blob/main.js"
ACCOUNT = "frondtest"
KEY = base64.b64encode(b"a key that opens nothing elsewhere").decode()
CONTAINER = "container"
# A version of the protocol that Azurite knows.
API_VERSION = "2021-08-06"


def main():
    options = read_options()
    program = options.azurite / MAIN
    if not program.exists() or shutil.which("node") is None:
        print("azure: not run: Azurite isn't installed (conformance/run.py --install-only does it)")
        return 0
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="frond-azure-") as directory:
        with Azurite(program, Path(directory)) as store:
            store.make_container()
            frond = AzureFrond(options.frond, Path(directory), store)
            steps = [probe, refuse_wrong_keys, packs_there, log_there, remotes]
            for step in steps[1:] if options.quick else steps:
                begun = time.monotonic()
                step(frond, chance)
                print(f"azure: {step.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
    print("azure: passed")
    return 0


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", default=str(PROJECT / "target" / "release" / "frond"))
    parser.add_argument("--azurite", type=Path, default=INSTALLED / "azurite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="without the races of 32 writers: a minute")
    return parser.parse_args()


class Azurite:
    """A running store with one account, whose objects lie in a directory."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory / "objects"
        self.directory.mkdir()
        self.log = open(directory / "azurite.log", "wb")
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}/{ACCOUNT}"
        self.process = None

    def __enter__(self):
        command = ["node", str(self.program), "--blobPort", str(self.port), "--location", str(self.directory),
                   "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        environment = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)
        end = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket() as listener:
                if listener.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)
        raise SystemExit("azure: Azurite doesn't start")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def make_container(self):
        """A signed request: no command of ours makes containers."""
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
        path = f"/{ACCOUNT}/{CONTAINER}"
        signed = ["PUT", *[""] * 11, f"x-ms-date:{date}", f"x-ms-version:{API_VERSION}", f"/{ACCOUNT}{path}",
                  "restype:container"]
        digest = hmac.digest(base64.b64decode(KEY), "\n".join(signed).encode(), hashlib.sha256)
        signature = base64.b64encode(digest).decode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}?restype=container", method="PUT",
                                         headers={"x-ms-date": date, "x-ms-version": API_VERSION,
                                                  "Authorization": f"SharedKey {ACCOUNT}:{signature}"})
        with urllib.request.urlopen(request, timeout=60):
            pass


class AzureFrond(Frond):
    """The command, with the account in its environment."""

    root = f"az://{CONTAINER}"

    def __init__(self, program, directory, store):
        super().__init__(program, directory, store)
        others = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "AZURE_"))}
        self.account = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY,
                        "AZURE_STORAGE_ENDPOINT": store.endpoint}
        self.environment = {**others, **self.account, "FROND_AUTHOR": "Ada"}
        self.endpoint = store.endpoint

    def with_variables(self, **variables):
        """The same command with another account in its environment."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.environment = {name: value for name, value in self.environment.items() if name not in self.account}
        other.environment.update(variables)
        return other


def probe(frond, _):
    """Conditional puts are some, by each of the ways in which an account is named."""
    told = frond.run("doctor", "--store", f"{frond.root}/probe")
    if "each had one winner" not in told or "lost replies" not in told:
        raise SystemExit(f"azure: {told}")
    print(told, end="")


def refuse_wrong_keys(frond, _):
    wrong = base64.b64encode(b"another key").decode()
    account = {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_ENDPOINT": frond.endpoint}
    cases = [({**account, "AZURE_STORAGE_KEY": wrong}, "AZURE_STORAGE_KEY"),
             ({}, "AZURE_STORAGE_CONNECTION_STRING"),
             ({"AZURE_STORAGE_CONNECTION_STRING": KEY.rstrip("=")}, "NAME=VALUE")]
    for variables, expected in cases:
        code, told = frond.with_variables(**variables).try_run("doctor", "--store", f"{frond.root}/probe")
        if code != 1 or expected not in told or KEY.rstrip("=") in told or wrong in told:
            raise SystemExit(f"azure: {sorted(variables)}: {told}")


def lines(server):
    """The documents that it has; the command says something besides."""
    return {line for line in server.documents().splitlines() if line.startswith("{")}


def packs_there(frond, chance):
    """A server whose packs live in the container: killed, started again, taken over and cloned."""
    first = Live(frond, "live")
    for number in range(3):
        code, told = first.add(documents(chance, 4000, 10_000 * number), f"part {number}")
        if code != 0:
            raise SystemExit(f"azure: {told}")
        if number == 1:
            first.kill()
            first = Live(frond, "live")
    expected = lines(first)
    if len(expected) != 12_000:
        raise SystemExit(f"azure: {len(expected)} documents after a kill")
    # That sends all, and removes what nothing needs.
    frond.run("gc", "--uri", first.address, "--purge")
    first.kill()
    second = Live(frond, "taken", "--store-take-over")
    found = lines(second)
    if found != expected:
        raise SystemExit("azure: the directory that took over has other documents")
    code, told = frond.try_run("serve", "--data", "live", "--listen", "127.0.0.1:0", "--store", f"{frond.root}/live")
    if code != 1 or "has data of its own" not in told:
        raise SystemExit(f"azure: the deposed directory: {told}")
    clone = Live(frond, "copy", "--store-clone-of", f"{frond.root}/live", place="copy")
    if lines(clone) != found:
        raise SystemExit("azure: a clone in the same store has other documents")
    clone.kill()
    second.kill()
    told = frond.run("doctor", "--store", f"{frond.root}/live")
    if re.search(rf"^pin [0-9a-f]{{32}} of {frond.root}/copy: .* relied on$", told, re.MULTILINE) is None:
        raise SystemExit(f"azure: doctor lists no pin: {told}")
    print(f"azure: {len(found)} documents taken over and cloned")


def log_there(frond, chance):
    """With the log there, another directory has all that was acknowledged. The account is a connection string."""
    text = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={frond.endpoint};"
    frond = frond.with_variables(AZURE_STORAGE_CONNECTION_STRING=text)
    first = Live(frond, "logged", "--store-log", "bucket", place="logged")
    code, told = first.add(documents(chance, 500, 0), "all of it")
    if code != 0:
        raise SystemExit(f"azure: {told}")
    expected = lines(first)
    first.kill()
    shutil.rmtree(frond.directory / "logged")
    second = Live(frond, "next", "--store-log", "bucket", "--store-take-over", place="logged")
    if lines(second) != expected or len(expected) != 500:
        raise SystemExit("azure: what was acknowledged isn't there after the disk was lost")
    second.kill()


def remotes(frond, chance):
    """A push and a clone; backups, and what is restored from them."""
    shop, backups = f"{frond.root}/shop", f"{frond.root}/backups"
    frond.run("import", "-d", "shop", "-c", "items", "--commit", "first", text=documents(chance, 2000, 0))
    frond.run("remote", "shop", "add", "cloud", shop)
    for number in range(2):
        frond.run("push", "shop", "cloud")
        frond.run("clone", shop, "shop", "--data", f"clone{number}")
        same(frond, "frond-data", f"clone{number}")
        frond.run("backup", backups)
        frond.run("restore", "--backup", backups, "--data", f"restored{number}")
        same(frond, "frond-data", f"restored{number}")
        more = documents(chance, 500, 10_000 * (number + 1))
        frond.run("import", "-d", "shop", "-c", "items", "--commit", f"round {number}", text=more)
    frond.run("gc", "--place", shop)
    frond.run("gc", "--place", backups)
    frond.run("fsck", "--data", "restored1")


if __name__ == "__main__":
    sys.exit(main())
