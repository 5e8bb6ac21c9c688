#!/usr/bin/env python3
"""Imports a data set's versions as commits through pymongo, and measures time, disk and diffs.

    python3 bench/countries_history.py --archive countries-history.tar.xz --frond target/release/frond

The archive holds one file of JSON lines a version, whose names sort by date; `_id` is in the data.
Each version replaces the one before: unchanged documents are sent too, as an import would.
"""

import argparse
import atexit
import json
import os
import socket
import subprocess
import tarfile
import tempfile
import time

from pymongo import DeleteMany, MongoClient, ReplaceOne


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def disk_bytes(directory):
    return sum(os.path.getsize(os.path.join(root, name)) for root, _, names in os.walk(directory) for name in names)


def cpu_seconds(pid):
    """CPU of all threads that the process has now, from Linux's scheduler: finer than its clock ticks."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
        except FileNotFoundError:  # A thread that ended meanwhile.
            pass
    return total / 1e9


def versions(archive):
    with tarfile.open(archive) as tar:
        members = sorted((member for member in tar if member.isfile()), key=lambda member: member.name)
        for member in members:
            yield os.path.basename(member.name), [json.loads(line) for line in tar.extractfile(member)]


def serve(frond, directory):
    port = free_port()
    server = subprocess.Popen([frond, "serve", "--data", directory, "--listen", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL)
    atexit.register(server.kill)
    client = MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=10000)
    client.admin.command("ping")
    return server, client


def median_millis(action, times=11):
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        action()
        taken.append((time.perf_counter() - begin) * 1000)
    return sorted(taken)[times // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", required=True)
    parser.add_argument("--frond", default="target/release/frond")
    arguments = parser.parse_args()
    history = list(versions(arguments.archive))
    with tempfile.TemporaryDirectory() as directory:
        server, client = serve(arguments.frond, directory)
        world, commits = client.world, []
        begin, commit_seconds, commit_cpu = time.perf_counter(), 0.0, 0.0
        for number, (name, documents) in enumerate(history, 1):
            keep = [document["_id"] for document in documents]
            world.countries.bulk_write(
                [ReplaceOne({"_id": document["_id"]}, document, upsert=True) for document in documents]
                + [DeleteMany({"_id": {"$nin": keep}})]
            )
            commit_begin, cpu_begin = time.perf_counter(), cpu_seconds(server.pid)
            try:
                commits.append(world.command("frondCommit", message=name, author="history")["commitId"])
            except Exception as error:  # Versions may be equal: then there is nothing to commit.
                if "nothing to commit" not in str(error):
                    raise
                commits.append(commits[-1])
            commit_seconds += time.perf_counter() - commit_begin
            commit_cpu += cpu_seconds(server.pid) - cpu_begin
            if number % 50 == 0 or number == len(history):
                print(f"{number:4} versions  {time.perf_counter() - begin:7.2f} s  {disk_bytes(directory) / 1e6:7.2f} MB", flush=True)
        print(f"commits alone: {commit_seconds:.2f} s, {commit_cpu:.2f} s CPU, {len(set(commits))} distinct")

        def diff(left, right):
            return world.command("frondDiff", **{"from": commits[left], "to": commits[right]})

        for left, right in ((0, -1), (-2, -1), (9, 10)):
            print(f"frondDiff {left % len(commits) + 1} to {right % len(commits) + 1}: {median_millis(lambda: diff(left, right)):.2f} ms")
        begin = time.perf_counter()
        log = world.command("frondLog", limit=1000, collection="countries", document="AUT")["commits"]
        print(f"history of AUT: {len(log)} commits, {(time.perf_counter() - begin) * 1000:.1f} ms")
        for position in (0, len(history) // 2, len(history) - 1):
            stored = {document["_id"]: document for document in client[f"world@{commits[position]}"].countries.find()}
            assert stored == {document["_id"]: document for document in history[position][1]}, history[position][0]
        print("versions read back: equal")
        begin, cpu_begin = time.perf_counter(), cpu_seconds(server.pid)
        client.admin.command("frondGc")
        seconds, cpu = time.perf_counter() - begin, cpu_seconds(server.pid) - cpu_begin
        print(f"frondGc: {seconds:.2f} s, {cpu:.2f} s CPU, {disk_bytes(directory) / 1e6:.2f} MB")
        for left, right in ((0, -1), (-2, -1), (9, 10)):
            print(f"frondDiff {left % len(commits) + 1} to {right % len(commits) + 1}: {median_millis(lambda: diff(left, right)):.2f} ms")
        begin = time.perf_counter()
        log = world.command("frondLog", limit=1000, collection="countries", document="AUT")["commits"]
        print(f"history of AUT: {len(log)} commits, {(time.perf_counter() - begin) * 1000:.1f} ms")
        for position in (0, len(history) // 2, len(history) - 1):
            stored = {document["_id"]: document for document in client[f"world@{commits[position]}"].countries.find()}
            assert stored == {document["_id"]: document for document in history[position][1]}, history[position][0]
        print("versions read back: equal")
        client.close()
        server.terminate()
        server.wait()
        print(f"after closing: {disk_bytes(directory) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
