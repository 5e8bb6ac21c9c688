#!/usr/bin/env python3
"""Pushes to, clones from and backs up to a real S3-compatible server, and cuts that at random moments.

The server is versitygw, built once by `go install` into target/conformance. Without Go, or with no way
to fetch it, the script says "not run" and ends well: nothing of ours is at fault then. With --minio it is MinIO, which
no run builds, since that takes a quarter of an hour (`go install github.com/minio/minio@latest`).
The conditional put of the server is proven first, by `frond doctor --store`; a store of our own that ignores
conditions must be refused by it. Then a server with its packs in the bucket is killed, and taken over by another
directory.

    conformance/s3.py [--frond PATH] [--rounds COUNT] [--seed NUMBER] [--server PATH | --minio PATH]
"""

import argparse
import hashlib
import http.server
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from ports import free_port, free_ports

PROJECT = Path(__file__).resolve().parent.parent
INSTALLED = PROJECT / "target" / "conformance" / "bin"
VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
BUILD_SECONDS_MAX = 900
START_SECONDS_MAX = 300
# Packs are sent so often.
SEND_SECONDS = 60
# Dollars of S3 Standard.
PUT_PRICE, GET_PRICE = 5 / 1e6, 0.4 / 1e6
MINUTES_A_MONTH = 30 * 24 * 60
PRICE_MAX = 1.0
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret",
               "AWS_REGION": "us-east-1"}


def main():
    options = read_options()
    server = options.minio or options.server or build_server()
    if server is None:
        print("s3: not run: versitygw can't be built here (it needs Go and its module proxy)")
        return 0
    chance, kind = random.Random(options.seed), Minio if options.minio else Store
    with tempfile.TemporaryDirectory(prefix="frond-s3-") as directory:
        with kind(server, Path(directory)) as store:
            run(Frond(options.frond, Path(directory), store), store, chance, options.rounds)
    print(f"s3: passed, {options.rounds} rounds with seed {options.seed}{' at MinIO' if options.minio else ''}")
    return 0


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", default=str(PROJECT / "target" / "release" / "frond"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    servers = parser.add_mutually_exclusive_group()
    servers.add_argument("--server", help="a versitygw that was built already")
    servers.add_argument("--minio", help="a MinIO that was built already, to be the store instead")
    return parser.parse_args()


def build_server():
    """Builds versitygw, or returns None."""
    built = INSTALLED / "versitygw"
    if built.exists():
        return str(built)
    if shutil.which("go") is None:
        return None
    environment = {**os.environ, "GOBIN": str(INSTALLED)}
    try:
        subprocess.run(["go", "install", VERSITYGW], env=environment, check=True,
                       capture_output=True, timeout=BUILD_SECONDS_MAX)
    except (subprocess.SubprocessError, OSError):
        return None
    return str(built)


class Store:
    """A running server with one bucket, in a directory, which these keys open."""

    def __init__(self, program, directory, keys=CREDENTIALS):
        self.program, self.keys = program, keys
        self.directory = directory / "objects"
        (self.directory / "bucket").mkdir(parents=True)
        self.log = open(directory / "store.log", "wb")
        self.port = free_port()
        self.process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.log.close()

    def start(self):
        environment = {**os.environ, **self.environment()}
        self.process = subprocess.Popen(self.command(), env=environment, stdout=self.log, stderr=self.log)
        end = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < end:
            if self.is_ready():
                return
            time.sleep(0.05)
        raise SystemExit("s3: the store doesn't start")

    def command(self):
        return [self.program, "--port", f"127.0.0.1:{self.port}", "posix", str(self.directory)]

    def environment(self):
        return {"ROOT_ACCESS_KEY": self.keys["AWS_ACCESS_KEY_ID"],
                "ROOT_SECRET_KEY": self.keys["AWS_SECRET_ACCESS_KEY"]}

    def is_ready(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.kill()
        self.process.wait()

    def packs(self, place):
        """The files that hold the packs of a place."""
        return [file for file in (self.directory / "bucket" / place / "packs").rglob("*") if file.is_file()]


class Minio(Store):
    """The same, of MinIO. It keeps an object as a directory, and takes one on its disk for a bucket."""

    def command(self):
        return [self.program, "server", str(self.directory), "--address", f"127.0.0.1:{self.port}", "--certs-dir",
                str(self.directory.parent / "certificates")]

    def environment(self):
        return {"MINIO_ROOT_USER": self.keys["AWS_ACCESS_KEY_ID"],
                "MINIO_ROOT_PASSWORD": self.keys["AWS_SECRET_ACCESS_KEY"],
                "MINIO_BROWSER": "off", "MINIO_UPDATE": "off"}

    def is_ready(self):
        """Whether it takes writes: before, it has its port and refuses everything."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/minio/health/cluster", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False


class Frond:
    """The command, with the store's address in its environment."""

    # What lies in the bucket begins with this.
    root = "s3://bucket"

    def __init__(self, program, directory, store):
        self.program, self.directory = str(Path(program).resolve()), directory
        endpoint = f"http://127.0.0.1:{store.port}"
        self.environment = {**os.environ, **CREDENTIALS, "AWS_ENDPOINT_URL": endpoint,
                            "FROND_AUTHOR": "Ada"}

    def start(self, *arguments, output=subprocess.PIPE):
        """Starts a process; what runs for long needs a file for what it tells."""
        return subprocess.Popen([self.program, *arguments], cwd=self.directory,
                                env=self.environment, text=True, stdin=subprocess.DEVNULL,
                                stdout=output, stderr=subprocess.STDOUT)

    def try_run(self, *arguments, text=None):
        done = subprocess.run([self.program, *arguments], cwd=self.directory, text=True, input=text,
                              env=self.environment, capture_output=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def run(self, *arguments, text=None):
        code, told = self.try_run(*arguments, text=text)
        if code != 0:
            raise SystemExit(f"s3: frond {' '.join(arguments)}: {told}")
        return told


class StoreRequest(http.server.BaseHTTPRequestHandler):
    """A request to a store of our own."""

    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Heedless(StoreRequest):
    """A store that ignores If-None-Match and If-Match, as some do: objects in memory, for `doctor` alone."""

    objects = {}

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.objects[self.path] = body
        self.answer(200, ETag=f'"{hashlib.md5(body).hexdigest()}"')

    def do_GET(self):
        body = self.objects.get(self.path)
        if body is None:
            return self.answer(404)
        self.answer(200, body, ETag=f'"{hashlib.md5(body).hexdigest()}"',
                    Last_Modified="Thu, 01 Jan 2026 00:00:00 GMT")

    do_HEAD = do_GET

    def do_POST(self):
        """Removes objects, by their keys in XML."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        keys = re.findall("<Key>([^<]*)</Key>", body)
        for key in keys:
            self.objects.pop(f"/bucket/{key}", None)
        deleted = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
        self.answer(200, f"<DeleteResult>{deleted}</DeleteResult>".encode(), Content_Type="application/xml")

    def log_message(self, *_):
        pass


def refuse_heedless(frond):
    """A store that ignores conditions is refused, and by the reason."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Heedless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_address[1]}"}
        done = subprocess.run([frond.program, "doctor", "--store", "s3://bucket/probe"], text=True,
                              env={**frond.environment, **endpoint}, capture_output=True, check=False)
        server.shutdown()
    if done.returncode != 1 or "ignores If-None-Match and If-Match" not in done.stderr:
        raise SystemExit(f"s3: a store that ignores conditions: {done.stdout}{done.stderr}")


def documents(chance, count, first):
    lines = []
    for number in range(count):
        text = chance.randbytes(chance.randrange(20, 400)).hex()
        lines.append(f'{{"_id": {first + number}, "text": "{text}"}}\n')
    return "".join(lines)


def cut(frond, store, chance, *arguments):
    """Runs a command, and kills it or the store at a random moment; then until it ends well."""
    process = frond.start(*arguments)
    time.sleep(chance.random() * 0.25)
    if chance.random() < 0.5:
        process.kill()
        process.communicate()
    else:
        store.stop()
        if chance.random() < 0.5:
            process.kill()
        store.start()
        process.communicate()
    frond.run(*arguments)


def run(frond, store, chance, rounds):
    told = frond.run("doctor", "--store", "s3://bucket/probe")
    if "each had one winner" not in told or "lost replies" not in told:
        raise SystemExit(f"s3: {told}")
    print(told, end="")
    refuse_heedless(frond)
    written = Written(frond)
    live(frond, store, chance)
    idle(frond, written)
    clone_there(frond, store)
    frond.run("import", "-d", "shop", "-c", "items", "--commit", "first", text=documents(chance, 4000, 0))
    frond.run("remote", "shop", "add", "cloud", "s3://bucket/shop")
    for position in range(rounds):
        more = documents(chance, 1500, 10_000 * (position + 1))
        frond.run("import", "-d", "shop", "-c", "items", "--commit", f"round {position}", text=more)
        cut(frond, store, chance, "push", "shop", "cloud")
        mine = f"clone{position}"
        # A clone that ended well before it was cut is there already.
        process = frond.start("clone", "s3://bucket/shop", "shop", "--data", mine)
        time.sleep(chance.random() * 0.25)
        process.kill()
        process.communicate()
        code, told = frond.try_run("clone", "s3://bucket/shop", "shop", "--data", mine)
        if code != 0 and "exists" not in told:
            raise SystemExit(f"s3: {told}")
        same(frond, "frond-data", mine)
        # The second run makes a backup of its own name, whether the first one ended or not.
        process = frond.start("backup", "s3://bucket/backups")
        time.sleep(chance.random() * 0.25)
        process.kill()
        process.communicate()
        frond.run("backup", "s3://bucket/backups")
        restored = f"restored{position}"
        frond.run("restore", "--backup", "s3://bucket/backups", "--data", restored)
        same(frond, "frond-data", restored)
        frond.run("fsck", "--data", restored)
        if position % 2 == 1:
            frond.run("gc", "--place", "s3://bucket/shop")
            frond.run("gc", "--place", "s3://bucket/backups")


class Live:
    """A server on a directory whose packs live in the bucket."""

    def __init__(self, frond, directory, *options, place="live"):
        self.frond = frond
        self.address, self.metrics = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.process = frond.start("serve", "--data", directory, "--listen", self.address, "--store",
                                   f"{frond.root}/{place}", "--store-cache", "1MB", "--metrics-listen", self.metrics,
                                   *options)
        self.await_ready()

    def await_ready(self):
        host, port = self.address.split(":")
        end = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.05)
        self.process.kill()
        raise SystemExit(f"s3: it doesn't serve: {self.process.communicate()[0]}")

    def add(self, text, label):
        return self.frond.try_run("import", "--uri", self.address, "-d", "shop", "-c", "items", "--commit", label,
                                  text=text)

    def documents(self):
        return self.frond.run("export", "--uri", self.address, "-d", "shop", "-c", "items")

    def requests(self):
        """What it has asked of the bucket, by kind."""
        with urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        found = re.findall(r'^frond_store_requests_total\{kind="(\w+)"\} (\d+)', text, re.MULTILINE)
        if len(found) != 4:
            raise SystemExit(f"s3: {len(found)} kinds of requests are counted")
        return {kind: int(count) for kind, count in found}

    def kill(self):
        self.process.kill()
        self.process.communicate()


class Written:
    """A server to which a document is written each minute."""

    def __init__(self, frond):
        self.server = Live(frond, "minutes", place="minutes")
        self.write(0)

    def write(self, number):
        text = f'{{"_id": {number}, "text": "a document a minute"}}\n'
        self.server.frond.run("import", "--uri", self.server.address, "-d", "shop", "-c", "items", text=text)

    def await_sent(self, before):
        """Waits until something was put since, and all that goes with it."""
        end = time.monotonic() + 3 * SEND_SECONDS
        while self.server.requests()["put"] == before["put"]:
            if end < time.monotonic():
                raise SystemExit("s3: what was written isn't sent")
            time.sleep(1)
        now, seen = self.server.requests(), None
        while now != seen:
            time.sleep(3)
            now, seen = self.server.requests(), now
        return now

    def price(self):
        """What a month of that costs, once what begins a line has been sent."""
        before = self.await_sent({"put": 1})
        self.write(1)
        after = self.await_sent(before)
        self.server.kill()
        asked = {kind: after[kind] - before[kind] for kind in after}
        dollars = ((asked["put"] + asked["list"]) * PUT_PRICE + asked["get"] * GET_PRICE) * MINUTES_A_MONTH
        print(f"a document a minute: {asked} each: ${dollars:.2f} a month")
        if dollars > PRICE_MAX:
            raise SystemExit(f"s3: a document a minute costs ${dollars:.2f} a month")


def live(frond, store, chance):
    """A server whose packs live in the bucket: killed, and taken over by another directory."""
    first = Live(frond, "live")
    for number in range(4):
        code, told = first.add(documents(chance, 8000, 10_000 * number), f"part {number}")
        if code != 0:
            raise SystemExit(f"s3: {told}")
        if number == 1:
            expected = first.documents()
            first.kill()
            first = Live(frond, "live")
            if first.documents() != expected:
                raise SystemExit("s3: a server that was killed has other documents")
    expected = first.documents()
    here = sum(file.stat().st_size for file in (frond.directory / "live").glob("*.pack"))
    there = sum(file.stat().st_size for file in store.packs("live"))
    print(f"live: {here >> 10} KB of packs on the disk, {there >> 10} KB in the bucket")
    if there < 4 << 20 or there < here:
        raise SystemExit("s3: the packs are not in the bucket")
    code, told = frond.try_run("export", "--data", "live", "-d", "shop", "-c", "items")
    if code == 0 and told != expected:
        raise SystemExit("s3: a command beside the server has other documents")
    code, told = frond.try_run("serve", "--data", "other", "--listen", "127.0.0.1:0", "--store", "s3://bucket/live")
    if code != 1 or "another directory leads" not in told:
        raise SystemExit(f"s3: a second directory: {told}")
    second = Live(frond, "taken", "--store-take-over")
    found = second.documents().splitlines()
    if not found or not set(found) <= set(expected.splitlines()):
        raise SystemExit("s3: the directory that took over has other documents")
    print(f"live: {len(found)} of {len(expected.splitlines())} documents taken over")
    # The first one finds out when it sends packs, and writes no more.
    for number in range(10, 40):
        code, told = first.add(documents(chance, 8000, 10_000 * number), "too late")
        if code != 0:
            break
    else:
        raise SystemExit("s3: the deposed server goes on writing")
    first.kill()
    code, told = second.add(documents(chance, 100, 1_000_000), "more")
    if code != 0:
        raise SystemExit(f"s3: the server that took over: {told}")
    second.kill()
    code, told = frond.try_run("serve", "--data", "live", "--listen", "127.0.0.1:0", "--store", "s3://bucket/live")
    if code != 1 or "has data of its own" not in told:
        raise SystemExit(f"s3: the deposed directory: {told}")


def idle(frond, written):
    """A server to which nothing is written asks its bucket nothing, so a month of it costs what lies there. Beside
    it, one to which little is written asks little."""
    server = Live(frond, "taken")
    before, quiet_since = server.requests(), time.monotonic()
    if sum(before.values()) == 0:
        raise SystemExit("s3: a start asks nothing: it isn't counted")
    written.price()
    end = time.monotonic() + 3 * SEND_SECONDS
    while True:
        now = server.requests()
        if now != before:
            before, quiet_since = now, time.monotonic()
        if time.monotonic() - quiet_since > SEND_SECONDS + 5:
            break
        if end < time.monotonic():
            raise SystemExit("s3: an idle server goes on asking")
        time.sleep(1)
    told = frond.run("doctor", "--uri", server.address)
    server.kill()
    price = next((line for line in told.splitlines() if line.startswith("store")), "")
    print(f"idle: {sum(before.values())} requests since it started; {price}")
    if "a month at the rate of" not in price:
        raise SystemExit(f"s3: doctor tells no price: {told}")


def clone_there(frond, store):
    """A clone in the same store copies no pack, and goes its own way; its pin is listed, and removed. So
    does a clone of that, which gives its pins back once it has copied what it reads."""
    source = Live(frond, "taken")
    expected = source.documents()
    clone = Live(frond, "copy", "--store-clone-of", "s3://bucket/live", place="copy")
    copied = store.packs("copy")
    if clone.documents() != expected or copied:
        raise SystemExit(f"s3: a clone in the same store: it has put {copied}")
    code, told = clone.add('{"_id": "only here"}\n', "the clone's own")
    if code != 0 or source.documents() != expected or len(clone.documents()) <= len(expected):
        raise SystemExit(f"s3: a clone and its source aren't on their own: {told}")
    source.kill()
    further = Live(frond, "further", "--store-clone-of", "s3://bucket/copy", place="further")
    found = further.documents()
    if not set(expected.splitlines()) <= set(found.splitlines()):
        raise SystemExit("s3: a clone of a clone lacks documents")
    pinned = "of s3://bucket/further: "
    if pinned not in frond.run("doctor", "--store", "s3://bucket/live"):
        raise SystemExit("s3: a clone of a clone has no pin at its source's source")
    frond.run("gc", "--uri", further.address, "--purge")
    if any(pinned in frond.run("doctor", "--store", f"s3://bucket/{place}") for place in ("live", "copy")):
        raise SystemExit("s3: a clone that has copied all has a pin")
    if further.documents() != found:
        raise SystemExit("s3: a clone of a clone has other documents after a purge")
    further.kill()
    told = frond.run("doctor", "--store", "s3://bucket/live")
    # A clone that was quiet for long has packed what it has, and relies on nothing more.
    needs = r"(?:relied on|no clone there relies on it: --remove-pin [0-9a-f]{32})"
    pin = re.search(rf"^pin ([0-9a-f]{{32}}) of s3://bucket/copy: .* {needs}$", told, re.MULTILINE)
    if pin is None:
        raise SystemExit(f"s3: doctor lists no pin: {told}")
    clone.kill()
    frond.run("doctor", "--store", "s3://bucket/live", "--remove-pin", pin[1])
    if "pin " in frond.run("doctor", "--store", "s3://bucket/live"):
        raise SystemExit("s3: a pin that was removed is listed")
    print(f"clone: {len(expected.splitlines())} documents, no pack copied")


def same(frond, left, right):
    """Both data directories hold the same documents."""
    exported = [frond.run("export", "-d", "shop", "-c", "items", "--data", place) for place in (left, right)]
    if exported[0] != exported[1] or not exported[0]:
        raise SystemExit(f"s3: {left} and {right} differ")


if __name__ == "__main__":
    sys.exit(main())
