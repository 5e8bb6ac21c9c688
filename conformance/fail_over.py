"""Clients of several drivers, which write while members of a replica set are taken away.

Each program of `applications/fail_over` takes a URI and a number of seconds; it writes for so long, checks
that what it was told is there once, prints what it did, and fails if something isn't. What a machine lacks
is said and left out.
"""

import shutil
import subprocess
import threading

from drivers import APPLICATIONS, GO_DRIVER, JAVA_DRIVER, Missing, needs, prepare_go, prepare_java
from run import INSTALLED, NODE_DRIVER, once

PROGRAMS = APPLICATIONS / "fail_over"


def node(_frond, modules=None):
    needs("node")
    modules = modules or INSTALLED / "node"
    if not (modules / "node_modules" / "mongodb").exists():
        raise Missing(f"Node's driver {NODE_DRIVER} in {modules}: run.py --install-only")
    return ["node", PROGRAMS / "fail_over.mjs", modules]


def go(_frond):
    needs("go")
    INSTALLED.mkdir(parents=True, exist_ok=True)
    directory = INSTALLED / "go-fail-over"
    once(f"go-fail-over-{GO_DRIVER}", lambda: prepare_go(directory))
    shutil.copy(PROGRAMS / "fail_over.go", directory)
    subprocess.run(["go", "build", "-mod=mod", "-o", "fail-over", "."], cwd=directory, check=True)
    return [directory / "fail-over"]


def java(_frond):
    needs("mvn", "javac")
    INSTALLED.mkdir(parents=True, exist_ok=True)
    directory = INSTALLED / "java-fail-over"
    once(f"java-fail-over-{JAVA_DRIVER}", lambda: prepare_java(directory))
    classes = f"{directory}/libraries/*"
    subprocess.run(["javac", "-cp", classes, "-d", directory, PROGRAMS / "FailOver.java"], check=True)
    return ["java", "-cp", f"{directory}:{classes}", "FailOver"]


def rust(frond):
    program = frond.parent / "fail-over"
    if not program.exists():
        raise Missing(f"{program.name} beside {frond.name}: cargo build -p docbench")
    return [program]


DRIVERS = {"node": node, "go": go, "java": java, "rust": rust}


class Clients:
    """Programs that run."""

    def __init__(self, commands, uri, seconds):
        self.running = {
            name: subprocess.Popen([*command, uri, str(seconds)], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
            for name, command in commands.items()
        }
        self.said = {name: [] for name in commands}
        # A full pipe would stop them.
        self.readers = [threading.Thread(target=self.read, args=[name], daemon=True) for name in commands]
        for reader in self.readers:
            reader.start()

    def read(self, name):
        for line in self.running[name].stdout:
            self.said[name].append(line)

    def end(self, seconds):
        """Waits for all; prints what they did, and returns those that failed."""
        failed = []
        for name, process in self.running.items():
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                code = "it hangs"
            if code != 0:
                failed.append(f"{name}: {code}")
        for reader in self.readers:
            reader.join(5)
        for name, lines in self.said.items():
            print("".join(lines[-20:]).rstrip() or f"{name} has said nothing")
        return failed

    def kill(self):
        for process in self.running.values():
            process.kill()


def commands(names, frond, modules=None):
    """How the programs of these drivers are run, as far as the machine has what they need."""
    found = {}
    for name in names:
        try:
            found[name] = node(frond, modules) if name == "node" else DRIVERS[name](frond)
        except Missing as missing:
            print(f"{name}: not run: this machine hasn't {missing}")
    return found
