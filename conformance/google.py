#!/usr/bin/env python3
"""Has packs, a log and remotes in a store of our own that speaks Google's protocol as it is documented.

No emulator has the conditional puts of Google's XML API, so what is shown here is that Frond says what it must
(`x-goog-if-generation-match`) and understands the answers, not that Google's store keeps its word: that is for
`frond doctor --store gs://...` there. One that ignores conditions must be refused.

    conformance/google.py [--frond PATH] [--seed NUMBER]
"""

import argparse
import hashlib
import http.server
import os
import random
import shutil
import tempfile
import threading
import urllib.parse
from pathlib import Path

from s3 import PROJECT, Frond, Live, StoreRequest, documents, same

CONDITION = "x-goog-if-generation-match"
BUCKET = "bucket"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", default=str(PROJECT / "target" / "release" / "frond"))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="frond-google-") as directory:
        with Store(heeds=False) as heedless:
            code, told = GoogleFrond(options.frond, Path(directory), heedless).try_run(
                "doctor", "--store", f"gs://{BUCKET}/probe")
            if code != 1 or "ignores If-None-Match and If-Match" not in told:
                raise SystemExit(f"google: a store that ignores conditions: {told}")
        with Store(heeds=True) as store:
            run(GoogleFrond(options.frond, Path(directory), store), chance)
    print("google: passed")


class Store(http.server.ThreadingHTTPServer):
    """Objects in memory, each with its generation; `heeds`: conditions count."""

    request_queue_size = 64

    def __init__(self, heeds):
        super().__init__(("127.0.0.1", 0), Request)
        self.port, self.heeds = self.server_address[1], heeds
        self.lock, self.objects, self.generation = threading.Lock(), {}, 0

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Request(StoreRequest):
    disable_nagle_algorithm = True

    def name(self):
        return urllib.parse.unquote(urllib.parse.urlsplit(self.path).path).removeprefix(f"/{BUCKET}").lstrip("/")

    def described(self, body, generation):
        return {"ETag": f'"{hashlib.md5(body).hexdigest()}"', "x_goog_generation": str(generation),
                "Last_Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}

    def do_PUT(self):
        body, expected = self.rfile.read(int(self.headers["Content-Length"])), self.headers[CONDITION]
        store = self.server
        with store.lock:
            _, now = store.objects.get(self.name(), (b"", 0))
            is_met = expected is None or not store.heeds or int(expected) == now
            if is_met:
                store.generation += 1
                store.objects[self.name()] = (body, store.generation)
                now = store.generation
        self.answer(200 if is_met else 412, **(self.described(body, now) if is_met else {}))

    def do_GET(self):
        if not self.name():
            return self.list()
        found = self.server.objects.get(self.name())
        if found is None:
            return self.answer(404)
        body, generation = found
        described, asked = self.described(body, generation), self.headers["Range"]
        if asked is None:
            return self.answer(200, body, **described)
        first, last = (int(part) for part in asked.removeprefix("bytes=").split("-"))
        part = body[first:last + 1]
        if not part:
            return self.answer(416)
        span = f"bytes {first}-{first + len(part) - 1}/{len(body)}"
        self.answer(206, part, Content_Range=span, **described)

    do_HEAD = do_GET

    def do_DELETE(self):
        with self.server.lock:
            gone = self.server.objects.pop(self.name(), None)
        self.answer(204 if gone else 404)

    def list(self):
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        (prefix,) = query.get("prefix", [""])
        with self.server.lock:
            found = sorted((name, len(body)) for name, (body, _) in self.server.objects.items()
                           if name.startswith(prefix))
        contents = "".join(
            f"<Contents><Key>{name}</Key><Size>{size}</Size><ETag>x</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>" for name, size in found)
        self.answer(200, f"<ListBucketResult>{contents}</ListBucketResult>".encode(), Content_Type="application/xml")

    def log_message(self, *_):
        pass


class GoogleFrond(Frond):
    """The command, with the store for an emulator in its environment."""

    root = f"gs://{BUCKET}"

    def __init__(self, program, directory, store):
        super().__init__(program, directory, store)
        others = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "GOOGLE_"))}
        self.environment = {**others, "STORAGE_EMULATOR_HOST": f"127.0.0.1:{store.port}", "FROND_AUTHOR": "Ada"}


def run(frond, chance):
    told = frond.run("doctor", "--store", f"{frond.root}/probe")
    if "each had one winner" not in told or "lost replies" not in told:
        raise SystemExit(f"google: {told}")
    first = Live(frond, "logged", "--store-log", "bucket", place="logged")
    code, told = first.add(documents(chance, 2000, 0), "all of it")
    if code != 0:
        raise SystemExit(f"google: {told}")
    expected = first.documents()
    first.kill()
    shutil.rmtree(frond.directory / "logged")
    second = Live(frond, "next", "--store-log", "bucket", "--store-take-over", place="logged")
    if second.documents() != expected or expected.count('"_id"') != 2000:
        raise SystemExit("google: what was acknowledged isn't there after the disk was lost")
    second.kill()
    frond.run("import", "-d", "shop", "-c", "items", "--commit", "first", text=documents(chance, 1000, 0))
    frond.run("remote", "shop", "add", "cloud", f"{frond.root}/shop")
    frond.run("push", "shop", "cloud")
    frond.run("clone", f"{frond.root}/shop", "shop", "--data", "clone")
    same(frond, "frond-data", "clone")


if __name__ == "__main__":
    main()
