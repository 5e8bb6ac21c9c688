#!/usr/bin/env python3
"""Cuts the power under a real server, and checks that what it had acknowledged is there.

    python3 conformance/power.py --frond target/release/frond [--rounds 20] [--seed 7]
    python3 conformance/power.py --frond target/release/frond --forgetful

Goal: a sync that the server leaves out loses acknowledged writes here, though no kill would show it: of a file's
content, or of the directory that names it.

Method, a round, always on the same file system in memory (power_files.py), which forgets at a cut what was not synced:
1. A server is started on it, and a process of clients (faults.py) writes and notes what it was answered.
2. The server is killed, and the power cut. What wasn't synced is lost: all of it, or all but the first, or some.
3. The server starts again on what is left. Every acknowledged write must be there, and none by half.

`--forgetful` is the test of this test: syncs of directories say that they were done and aren't, and it must find that.
Needs /dev/fuse and the right to mount, as root or in a user namespace of its own. Where there is no /dev/fuse it says
that it was skipped.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from fault_control import FOR_EVER
from faults import Test, wait
from power_files import PowerFiles, is_possible


def main():
    options = read_options()
    if not is_possible():
        print("skipped: this machine has no /dev/fuse")
        return 0
    if os.geteuid() != 0:
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", "--mount", sys.executable, *sys.argv])
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}", flush=True)
    scratch = Path(tempfile.mkdtemp(prefix="frond-power-", dir=options.scratch))
    files = PowerFiles(scratch / "mounted")
    files.mount()
    try:
        wrong = rounds(options, random.Random(seed), scratch, files)
    finally:
        files.unmount()
    if options.forgetful:
        print("syncs of directories that weren't done: " + ("noticed" if wrong else "NOT NOTICED"))
        wrong = [] if wrong else ["not noticed"]
    if wrong:
        print(f"seed {seed} failed; its log: {scratch / 'log'}")
        return 1
    shutil.rmtree(scratch)
    return 0


def rounds(options, dice, scratch, files):
    """Runs them; returns what was wrong."""
    test = Test(options.frond, options.port, scratch, dice, scratch / "mounted" / "data")
    for number in range(options.rounds):
        if options.forgetful:
            test.faults.arm(["fsync"], 0, count=FOR_EVER)
        server = test.start(test.faults.environment())
        if server is None:
            return [f"the server doesn't start: see {scratch / 'log'}"]
        journal = scratch / f"journal-{number}"
        clients = test.start_clients(number, journal)
        wait(lambda: journal.exists() and journal.stat().st_size > 1_000, 60)
        time.sleep(dice.uniform(0.0, options.seconds))
        server.kill()
        server.wait()
        kept, lost = files.cut(dice)
        clients.kill()
        clients.wait()
        before = test.known.acknowledged
        test.known.read(journal)
        if test.known.acknowledged == before:
            sys.exit(f"round {number}: nothing was acknowledged before the cut, so it shows nothing")
        wrong = test.verify()
        print(f"round {number}: {lost} changes weren't synced, kept: {kept}; {len(wrong)} wrong", flush=True)
        if wrong:
            print("\n".join(wrong[:10]))
            return wrong
    known = test.known
    print(f"{options.rounds} cuts: {known.acknowledged} writes acknowledged, {known.unknown} unknown: 0 lost, 0 by half")
    return []


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frond", default="target/release/frond")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=3.0, help="a round's at most")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--port", type=int, help="the server's; a free one")
    parser.add_argument("--scratch", help="where its directory lies")
    parser.add_argument("--forgetful", action="store_true", help="syncs of directories aren't done")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
