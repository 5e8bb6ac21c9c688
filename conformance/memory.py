#!/usr/bin/env python3
"""A server's memory under plain load and under hostile requests, in a memory cgroup as a container has it.

    python3 conformance/memory.py --frond target/release/frond                          two minutes
    python3 conformance/memory.py --frond target/release/frond --memory 600 --seconds 600   as `cargo xtask long`

Goal: with hundreds of connections on data three times its memory, the server's memory stays below `--memory`, 64 MB
more and 160 KB a connection; beside hostile requests (hostile.py) too, and then others wait no more than three times
as long.

Method:
1. The group's limit is that sum, so that a server that wants more is made to reclaim, and one that can't is killed.
2. Records of 1 KB are loaded; then processes with many threads read and update them, half and half, skewed as YCSB A.
3. Each phase tells its rate, the percentiles of the operations, and what the group had at most: memory that is no
   file's, and how often a page that the server needs had to be read again.

Needs a group of its own (version 1 or 2 of control groups): without one memory is read from /proc, and nothing is
limited. Exit code 1 if something doesn't hold.
"""

import argparse
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import PyMongoError

import hostile
from ports import free_port

FIELDS = 10
FIELD_BYTES = 100
CONNECTION_BYTES = 160 << 10
MARGIN_BYTES = 64 << 20
PROCESSES = 8
SLOWER_MAX = 3


class Group:
    """A memory cgroup of either version; of none, /proc."""

    def __init__(self, limit):
        self.path, self.files = None, {}
        if Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists():
            base, self.files = "/sys/fs/cgroup/memory", {"limit": "memory.limit_in_bytes", "anonymous": "rss"}
        else:
            base, self.files = "/sys/fs/cgroup", {"limit": "memory.max", "anonymous": "anon"}
        path = Path(f"{base}/frond-memory-{os.getpid()}")
        try:
            path.mkdir()
            (path / self.files["limit"]).write_text(str(limit))
            self.path = path
        except OSError as error:
            print(f"  no cgroup ({error}): memory is read from /proc, and not limited")

    def enter(self):
        if self.path:
            (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def read(self, process):
        """Bytes that are no file's, and pages that had to be read again."""
        if self.path:
            stat = (self.path / "memory.stat").read_text()
            number = lambda name: int(re.search(rf"^{name} (\d+)", stat, re.M)[1])
            return number(self.files["anonymous"]), number("pgmajfault")
        status = Path(f"/proc/{process}/status").read_text()
        faults = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[9]
        return int(re.search(r"^RssAnon:\s+(\d+)", status, re.M)[1]) << 10, int(faults)

    def remove(self):
        if self.path:
            for _ in range(50):
                try:
                    self.path.rmdir()
                    return
                except OSError:
                    time.sleep(0.1)


def zipf(generator, count):
    """A skewed number below `count`: about as YCSB's, scattered."""
    rank = int(count ** generator.random()) - 1
    return (rank * 2_654_435_761) % count


def load(address, begin, end):
    generator = random.Random(begin)
    with MongoClient(address) as client:
        for start in range(begin, end, 1000):
            client["ycsb"]["usertable"].insert_many([
                {"_id": n, **{f"field{at}": generator.randbytes(FIELD_BYTES // 2).hex() for at in range(FIELDS)}}
                for n in range(start, min(start + 1000, end))
            ])


def work(address, seed, threads, count, commands, results):
    """Reads and updates from many threads while `commands` says so; answers with what each operation took."""
    client = MongoClient(address, maxPoolSize=threads, minPoolSize=threads, waitQueueTimeoutMS=600_000)
    records = client["ycsb"]["usertable"]
    state = {"until": 0.0, "errors": 0}
    barrier = threading.Barrier(threads + 1)

    def run(number):
        generator = random.Random(seed * 1000 + number)
        while True:
            barrier.wait()
            if state["until"] == 0:
                return
            took = times[number]
            while time.monotonic() < state["until"]:
                begun = time.monotonic()
                try:
                    key = {"_id": zipf(generator, count)}
                    if generator.random() < 0.5:
                        records.find_one(key)
                    else:
                        field = f"field{generator.randrange(FIELDS)}"
                        records.update_one(key, {"$set": {field: generator.randbytes(FIELD_BYTES // 2).hex()}})
                except PyMongoError as error:
                    state["errors"] += 1
                    state["error"] = repr(error)[:200]
                took.append(time.monotonic() - begun)
            barrier.wait()

    times = [[] for _ in range(threads)]
    for number in range(threads):
        threading.Thread(target=run, args=(number,), daemon=True).start()
    while (seconds := commands.get()) is not None:
        for took in times:
            took.clear()
        state.update(until=time.monotonic() + seconds, errors=0)
        barrier.wait()
        barrier.wait()
        results.put((sorted(one for took in times for one in took), state["errors"], state.get("error")))


class Watch(threading.Thread):
    """What the server has at most."""

    def __init__(self, group, process):
        super().__init__(daemon=True)
        self.group, self.process, self.peak, self.faults = group, process, 0, 0
        self.first_faults = group.read(process)[1]
        self.ends = threading.Event()

    def run(self):
        while not self.ends.wait(0.05):
            try:
                now, faults = self.group.read(self.process)
            except (OSError, TypeError, IndexError):
                return
            self.peak, self.faults = max(self.peak, now), faults - self.first_faults


def percentile(sorted_times, share):
    return sorted_times[min(len(sorted_times) - 1, int(len(sorted_times) * share))] * 1000 if sorted_times else 0.0


def phase(name, seconds, workers, group, server, beside=None):
    """One phase: its p99 in milliseconds, the peak, and how many operations failed."""
    watch = Watch(group, server.pid)
    watch.start()
    for commands, _ in workers:
        commands.put(seconds)
    if beside:
        beside()
    told = [results.get() for _, results in workers]
    watch.ends.set()
    times = sorted(one for part, _, _ in told for one in part)
    errors = sum(count for _, count, _ in told)
    print(f"  {name}: {len(times) / seconds:,.0f} operations a second, p50 {percentile(times, .5):.1f} ms, "
          f"p99 {percentile(times, .99):.1f} ms, longest {times[-1] * 1000 if times else 0:.0f} ms; "
          f"memory at most {watch.peak >> 20} MB, {watch.faults} pages read again; {errors} errors")
    for _, _, error in told:
        if error:
            print(f"    {error}")
            break
    return percentile(times, .99), watch.peak, errors


def ask_hostile(address, seconds, seed, clients):
    """Hostile requests, side by side, until the time is over; how many there were, and of which codes."""
    class Server:
        pass

    server = Server()
    server.address = address
    run = hostile.Run(server, seed, {"bytes": 1 << 40, "grace": 600})
    run.until = time.monotonic() + seconds
    jobs = [("expression", name) for name in hostile.EXPRESSIONS] + [("stage", name) for name in hostile.STAGES]
    jobs += [("update", name) for name in hostile.UPDATES] + [("filter", "filter")] * 20
    random.Random(seed).shuffle(jobs)
    threads = [threading.Thread(target=run.client, args=(number, jobs)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"    {run.count} hostile requests; answers by code {dict(sorted(run.codes.items(), key=str))}; "
          f"slowest {run.slowest[0]:.1f} s ({run.slowest[1]})")
    for wrong in run.wrong:
        print(f"    {wrong[:300]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frond", required=True)
    parser.add_argument("--memory", type=int, default=128, help="MB")
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30, help="a phase")
    parser.add_argument("--times", type=float, default=3, help="data in times of the memory")
    parser.add_argument("--hostile", type=int, default=8, help="clients that ask for too much")
    parser.add_argument("--directory", help="where data are kept meanwhile; must be on a disk")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    most = (options.memory << 20) + MARGIN_BYTES + CONNECTION_BYTES * options.connections
    print(f"memory {options.memory} MB, {options.connections} connections: at most {most >> 20} MB; seed {options.seed}")
    directory = tempfile.mkdtemp(prefix="frond-memory-", dir=options.directory)
    group = Group(most)
    port = free_port()
    address = f"mongodb://127.0.0.1:{port}/?directConnection=true"
    command = [options.frond, "serve", "--data", directory, "--listen", f"127.0.0.1:{port}",
               "--memory", f"{options.memory}MB"]
    server = subprocess.Popen(command, preexec_fn=group.enter, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pool = []
    try:
        with MongoClient(address, serverSelectionTimeoutMS=30_000) as client:
            client.admin.command("ping")
        count = int(options.memory * options.times * 1024 * 1024 / (FIELDS * (FIELD_BYTES + 10)))
        watch, begun = Watch(group, server.pid), time.monotonic()
        watch.start()
        loaders = [multiprocessing.Process(target=load, args=(address, count * n // 4, count * (n + 1) // 4))
                   for n in range(4)]
        for loader in loaders:
            loader.start()
        for loader in loaders:
            loader.join()
        watch.ends.set()
        peaks = [watch.peak]
        print(f"  loaded {count:,} records in {time.monotonic() - begun:.0f} s: memory at most {watch.peak >> 20} MB")
        hostile.load(address)
        workers, queue = [], multiprocessing.Queue
        for number in range(PROCESSES):
            commands, results = queue(), queue()
            threads = options.connections // PROCESSES + (number < options.connections % PROCESSES)
            arguments = (address, options.seed + number, threads, count, commands, results)
            pool.append(multiprocessing.Process(target=work, args=arguments, daemon=True))
            pool[-1].start()
            workers.append((commands, results))
        p99, peak, errors = phase("load alone", options.seconds, workers, group, server)
        peaks.append(peak)
        failed = errors
        beside = lambda: ask_hostile(address, options.seconds, options.seed, options.hostile)
        p99_beside, peak, errors = phase("beside hostile requests", options.seconds, workers, group, server, beside)
        peaks.append(peak)
        wrong = []
        if server.poll() is not None:
            wrong.append(f"the server has ended: {server.returncode}")
        if max(peaks) > most:
            wrong.append(f"memory {max(peaks) >> 20} MB of {most >> 20}")
        if p99_beside > SLOWER_MAX * p99:
            wrong.append(f"p99 beside hostile requests is {p99_beside / p99:.1f} times that without")
        if failed + errors:
            wrong.append(f"{failed + errors} operations failed")
        print("\n".join(wrong))
        return 1 if wrong else 0
    finally:
        for process in pool:
            process.kill()
        server.send_signal(signal.SIGKILL)
        server.wait()
        group.remove()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
