#!/usr/bin/env python3
"""Has many change streams wait at once, and looks at what that takes.

    python3 conformance/waiting_streams.py --frond target/release/frond --streams 1000

Goal: a `getMore` that waits takes no thread; a write reaches every stream that it concerns, and
wakes no other; what is killed, or whose client is gone, ends.

Method: raw connections, each with a stream and a `getMore` under way. The server's threads are
counted, and its processor time is read, while all wait. Then documents are written to the watched
collection and to another.
"""

import argparse
import os
import resource
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import bson

from ports import free_port

SECONDS_MAX = 60
TICKS = os.sysconf("SC_CLK_TCK")


class Connection:
    """Messages to the server, and its answers, without a driver."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=SECONDS_MAX)
        self.sent = 0

    def send(self, database, command):
        self.sent += 1
        body = bson.encode({**command, "$db": database})
        message = struct.pack("<IB", 0, 0) + body
        head = struct.pack("<iiii", 16 + len(message), self.sent, 0, 2013)
        self.socket.sendall(head + message)

    def receive(self):
        (length,) = struct.unpack("<i", self.read(4))
        rest = self.read(length - 4)
        return bson.decode(rest[17:])

    def run(self, database, command):
        self.send(database, command)
        answer = self.receive()
        if answer["ok"] != 1:
            raise SystemExit(f"{command}: {answer}")
        return answer

    def read(self, count):
        parts = []
        while count:
            part = self.socket.recv(count)
            if not part:
                raise SystemExit("the server has closed the connection")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


class Server:
    def __init__(self, frond, directory, log):
        self.port = free_port()
        command = [frond, "serve", "--data", directory, "--listen", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                Connection(self.port)
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise SystemExit("the server doesn't come up")
                time.sleep(0.02)

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS_MAX)


def watch(port, collection):
    connection = Connection(port)
    pipeline = [{"$changeStream": {}}]
    command = {"aggregate": collection, "pipeline": pipeline, "cursor": {}}
    connection.cursor = connection.run("shop", command)["cursor"]["id"]
    connection.collection = collection
    return connection


def ask(connection, millis=600_000):
    more = {"getMore": bson.Int64(connection.cursor), "collection": connection.collection}
    connection.send("shop", {**more, "maxTimeMS": millis})


def until(condition, what):
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"it never comes: {what}")
        time.sleep(0.01)


def waiting(admin):
    operations = admin.run("admin", {"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}})
    batch = operations["cursor"]["firstBatch"]
    cursor = operations["cursor"]["id"]
    while cursor:
        command = {"getMore": bson.Int64(cursor), "collection": "$cmd.aggregate"}
        more = admin.run("admin", command)["cursor"]
        batch, cursor = batch + more["nextBatch"], more["id"]
    return [it for it in batch if "getMore" in it.get("command", {}) and it.get("active", True)]


def check(server, count):
    admin = Connection(server.port)
    admin.run("shop", {"create": "things"})
    admin.run("shop", {"create": "others"})
    admin.run("shop", {"create": "log", "capped": True, "size": 1 << 20})
    admin.run("shop", {"insert": "log", "documents": [{"_id": 0}]})
    streams = [watch(server.port, "things") for _ in range(count)]
    tail = Connection(server.port)
    command = {"find": "log", "tailable": True, "awaitData": True}
    tail.cursor, tail.collection = tail.run("shop", command)["cursor"]["id"], "log"
    for connection in [*streams, tail]:
        ask(connection)
    until(lambda: len(waiting(admin)) > count, "all wait")
    # Threads that talked to these clients go after a few seconds without work.
    until(lambda: server.threads() < 60, f"threads end: {server.threads()}")
    before = server.seconds()
    time.sleep(2)
    print(f"{count} streams wait: {server.threads()} threads, ", end="")
    print(f"{(server.seconds() - before) * 500:.1f} ms of processor time a second")

    for number in range(200):
        admin.run("shop", {"insert": "others", "documents": [{"_id": number}]})
    quiet = selectors.DefaultSelector()
    for connection in streams:
        quiet.register(connection.socket, selectors.EVENT_READ)
    if quiet.select(0):
        raise SystemExit("a write elsewhere woke a stream")
    began, before = time.monotonic(), server.seconds()
    admin.run("shop", {"insert": "things", "documents": [{"_id": "new"}]})
    for connection in streams:
        batch = connection.receive()["cursor"]["nextBatch"]
        if [event["documentKey"]["_id"] for event in batch] != ["new"]:
            raise SystemExit(f"not what was written: {batch}")
    millis = (time.monotonic() - began) * 1000
    taken = (server.seconds() - before) * 1000
    print(f"a write reached all {count} in {millis:.0f} ms, {taken:.0f} ms of processor time")

    admin.run("shop", {"insert": "log", "documents": [{"_id": 1}]})
    batch = tail.receive()["cursor"]["nextBatch"]
    if [document["_id"] for document in batch] != [1]:
        raise SystemExit(f"a tailable cursor has {batch}")

    first, second, third, fourth = streams[:4]
    for connection in (first, second, third):
        ask(connection)
    until(lambda: len(waiting(admin)) == 3, "three wait")
    admin.run("shop", {"killCursors": "things", "cursors": [bson.Int64(first.cursor)]})
    if first.receive().get("code") != 237:
        raise SystemExit("a cursor that is killed has CursorKilled")
    admin.run("admin", {"killOp": 1, "op": waiting(admin)[0]["opid"]})
    # Which of the two it was isn't told.
    killed = selectors.DefaultSelector()
    for connection in (second, third):
        killed.register(connection.socket, selectors.EVENT_READ, connection)
    ((key, _),) = killed.select(SECONDS_MAX)
    if key.data.receive().get("code") != 11601:
        raise SystemExit("an operation that is killed is Interrupted")
    (third if key.data is second else second).socket.close()
    until(lambda: not waiting(admin), "a client that is gone")
    ask(fourth, 50)
    if fourth.receive()["cursor"]["nextBatch"]:
        raise SystemExit("nothing was written")
    print("what is killed, late or without a client ends")
    ask(fourth)
    until(lambda: len(waiting(admin)) == 1, "one waits")
    if server.end() != 0:
        raise SystemExit("the server didn't end well")
    answer = fourth.receive()
    print(f"at the end of the server: ok {answer['ok']:.0f}, {answer.get('code', 'no error')}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frond", required=True)
    parser.add_argument("--streams", type=int, default=1000)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (options.streams * 2,) * 2)
    directory = tempfile.mkdtemp(prefix="frond-waiting-")
    with open(f"{directory}.log", "w") as log:
        server = Server(options.frond, directory, log)
        try:
            check(server, options.streams)
        finally:
            server.process.kill()
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
