#!/usr/bin/env python3
"""How much memory a clone and a push of much data take, on both sides.

    python3 bench/remote_memory.py --frond target/release/frond [--documents 1000000]

A database of a million documents of 1 KB (half of it random) is imported and committed. A server with a cache
of 32 MB serves it; it is cloned over HTTP; the clone is pushed to an empty server, and to a plain directory.
Told are the largest resident sizes: of the command while it ran, and of the server since it began. The aim is
512 MB for data ten times the memory that it may use.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

AIM_MB = 512


def run(arguments, directory, pipe=None):
    """Runs a command; returns its largest resident size in MB and the seconds it took."""
    begin = time.perf_counter()
    process = subprocess.Popen(arguments, cwd=directory, stdin=pipe, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{arguments[1]} ended with {process.returncode}")
    return usage.ru_maxrss / 1024, time.perf_counter() - begin


def largest(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


class Server:
    def __init__(self, frond, directory, data):
        listen = ["--listen", "127.0.0.1:0", "--remote-listen", "127.0.0.1:0", "--cache", "32"]
        self.process = subprocess.Popen(
            [frond, "serve", "--data", data, *listen], cwd=directory, stdout=subprocess.PIPE, text=True
        )
        for line in self.process.stdout:
            if line.strip().startswith("clone from"):
                self.url = line.split()[-1].removesuffix("/DATABASE")
                return
        raise RuntimeError("the server doesn't tell its address")

    def end(self):
        size = largest(self.process.pid)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return size


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frond", default="target/release/frond")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--directory", help="where the data directories are made")
    options = parser.parse_args()
    frond, sizes = os.path.abspath(options.frond), {}
    maker = (
        "import os\n"
        f"for n in range({options.documents}):\n"
        "    print('{\"_id\": %d, \"n\": %d, \"text\": \"%s\"}' % (n, n % 97, os.urandom(480).hex()))\n"
    )
    with tempfile.TemporaryDirectory(dir=options.directory) as directory:
        source = subprocess.Popen([sys.executable, "-c", maker], stdout=subprocess.PIPE)
        imports = [frond, "import", "-d", "shop", "-c", "things", "--commit", "all", "--data", "a"]
        sizes["import"] = run(imports, directory, source.stdout)
        server = Server(frond, directory, "a")
        sizes["clone"] = run([frond, "clone", f"{server.url}/shop", "shop", "--data", "b"], directory)
        sizes["server that was cloned"] = (server.end(), 0)
        server = Server(frond, directory, "c")
        run([frond, "remote", "shop", "--data", "b", "add", "empty", f"{server.url}/shop"], directory)
        sizes["push to a server"] = run([frond, "push", "shop", "empty", "--data", "b"], directory)
        sizes["server that was pushed to"] = (server.end(), 0)
        run([frond, "remote", "shop", "--data", "b", "add", "plain", f"{directory}/plain"], directory)
        sizes["push to a directory"] = run([frond, "push", "shop", "plain", "--data", "b"], directory)
    for what, (size, seconds) in sizes.items():
        print(f"{what:<28} {size:7.0f} MB {seconds:8.1f} s")
    over = [what for what, (size, _) in sizes.items() if what != "import" and size > AIM_MB]
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
