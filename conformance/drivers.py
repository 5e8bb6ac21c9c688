#!/usr/bin/env python3
"""Runs the same application with the drivers of several languages, over TLS and with a user.

    target/conformance/venv/bin/python conformance/drivers.py [--frond PATH] [--driver NAME]...

Each application (applications/) logs in with a password that SASLprep changes, and over a connection that
is compressed it reads and writes, commits a transaction and takes another back, follows a change stream,
counts upwards while the server is killed and started again, goes on in the stream by its token, and keeps a
file in GridFS. What it prints must be what all print. What it counted must be there: all that was
acknowledged, and no more than that and what failed. `models` are small ones of MongoEngine and Beanie.

Nothing is vendored: PyMongo and the Node driver are those that run.py has installed; the driver for Rust
is in `driver-application`, which is built with docbench; those for Go and Java come from their registries
where the machine has a compiler. What it lacks is said and left out.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

from pymongo import MongoClient

from ports import free_port
from run import INSTALLED, PROJECT, PYMONGO, find_server, once

APPLICATIONS = PROJECT / "conformance" / "applications"
GO_DRIVER = "v1.17.9"
JAVA_DRIVER = "5.2.1"
MAPPERS = (f"pymongo=={PYMONGO}", "mongoengine==0.29.3", "beanie==2.2.0")
# SASLprep makes "IX" of the last letter.
USER, PASSWORD = "app", "pässwörd \u2168"
SERVER_SECONDS_MAX = 300
APPLICATION_SECONDS_MAX = 120
EXPECTED = {
    "user": USER,
    "found": [4, 3, 2, 1, 0],
    "modified": 10,
    "deleted": 1,
    "count": 499,
    "sum": 133_251,
    "transaction": [11, 3],
    "event": ["insert", "event"],
    "resumed": ["update", 0],
    "file": True,
    "compressed": True,
}
MODELS = {
    "mongoengine": {
        "ordered": ["cheese", "bread", "apple"],
        "updated": [["apple", "food", "fruit"], 2.0, "0.50", "Ada"],
        "sum": 4.5,
        "text": ["bread"],
        "grouped": 5,
        "photo": 700_000,
        "unique": True,
        "cascade": 0,
    },
    "beanie": {
        "found": ["Cy", "Bo"],
        "average": 22.0,
        "ages": [2, 15, 20, 36],
        "linked": 36,
        "unique": True,
        "inside": 0,
        "after": 4,
    },
}


class Missing(Exception):
    """The machine hasn't what an application needs."""


class Server:
    """A server with TLS and a user, which can be killed."""

    def __init__(self, frond, directory):
        self.port = free_port()
        self.authority, certificate = certificates(directory)
        self.log = open(directory / "log", "ab")
        self.command = [frond, "serve", "--data", directory / "data", "--listen", f"127.0.0.1:{self.port}"]
        self.command += ["--auth", "--tls-mode", "requireTLS", "--tls-certificate-key-file", certificate]
        self.start()
        uri = f"mongodb://localhost:{self.port}/?tls=true&directConnection=true&tlsCAFile={self.authority}"
        with MongoClient(uri, serverSelectionTimeoutMS=SERVER_SECONDS_MAX * 1000) as client:
            client.admin.command("createUser", USER, pwd=PASSWORD, roles=["root"])

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def end(self):
        self.process.terminate()
        return self.process.wait(timeout=SERVER_SECONDS_MAX)

    def uri(self, compressors, authority=True):
        user = f"{USER}:{quote(PASSWORD)}"
        options = f"tls=true&replicaSet=rs0&compressors={compressors}"
        options += f"&tlsCAFile={quote(str(self.authority), safe='')}" if authority else ""
        return f"mongodb://{user}@localhost:{self.port}/?{options}"


def certificates(directory):
    """An authority's certificate, and a server's with its key, made for this run."""
    authority, key, request = directory / "authority.pem", directory / "authority.key", directory / "request.pem"
    server, server_key, both = directory / "server.pem", directory / "server.key", directory / "both.pem"
    extensions = directory / "extensions"
    extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    new = ["req", "-newkey", "rsa:2048", "-nodes"]
    openssl(*new, "-x509", "-days", "2", "-subj", "/CN=tests", "-keyout", key, "-out", authority)
    openssl(*new, "-subj", "/CN=localhost", "-keyout", server_key, "-out", request)
    signer = ["-CA", authority, "-CAkey", key, "-CAcreateserial", "-days", "2", "-extfile", extensions]
    openssl("x509", "-req", "-in", request, *signer, "-out", server)
    both.write_text(server.read_text() + server_key.read_text())
    return authority, both


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


# The applications: what runs each, given the server.


def python(server, _frond):
    return [sys.executable, APPLICATIONS / "application.py", server.uri("zlib")]


def python_async(server, _frond):
    return [sys.executable, APPLICATIONS / "application_async.py", server.uri("zlib")]


def node(server, _frond):
    needs("node")
    modules = INSTALLED / "node"
    if not (modules / "node_modules" / "mongodb").exists():
        raise Missing("the Node driver: conformance/run.py --install-only")
    return ["node", APPLICATIONS / "application.mjs", modules, server.uri("zlib")]


def rust(server, frond):
    program = frond.parent / "driver-application"
    if not program.exists():
        raise Missing(f"{program.name} beside {frond.name}: cargo build -p docbench")
    return [program, server.uri("snappy")]


def go(server, _frond):
    needs("go")
    directory = INSTALLED / "go-application"
    once(f"go-driver-{GO_DRIVER}", lambda: prepare_go(directory))
    shutil.copy(APPLICATIONS / "go" / "application.go", directory)
    subprocess.run(["go", "build", "-mod=mod", "-o", "application", "."], cwd=directory, check=True)
    return [directory / "application", server.uri("zstd")]


def prepare_go(directory):
    directory.mkdir(exist_ok=True)
    module = f"module application\n\ngo 1.20\n\nrequire go.mongodb.org/mongo-driver {GO_DRIVER}\n"
    (directory / "go.mod").write_text(module)


def java(server, _frond):
    needs("mvn", "javac", "keytool")
    directory = INSTALLED / "java-application"
    once(f"java-driver-{JAVA_DRIVER}", lambda: prepare_java(directory))
    classes = f"{directory}/libraries/*"
    source = APPLICATIONS / "java" / "Application.java"
    subprocess.run(["javac", "-cp", classes, "-d", directory, source], check=True)
    store = server.authority.with_name("authority.p12")
    if not store.exists():
        words = ["-importcert", "-noprompt", "-storepass", "secret", "-alias", "tests"]
        command = ["keytool", *words, "-file", server.authority, "-keystore", store]
        subprocess.run(command, check=True, capture_output=True)
    trusted = [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStorePassword=secret"]
    uri = server.uri("zlib", authority=False)
    return ["java", *trusted, "-cp", f"{directory}:{classes}", "Application", uri]


def prepare_java(directory):
    (directory / "libraries").mkdir(parents=True, exist_ok=True)
    words = ["-q", "-B", "-f", APPLICATIONS / "java" / "pom.xml", f"-Ddriver={JAVA_DRIVER}"]
    copied = ["dependency:copy-dependencies", f"-DoutputDirectory={directory / 'libraries'}"]
    subprocess.run(["mvn", *words, *copied], check=True)


def models(server, _frond):
    environment = INSTALLED / "models"
    once(f"models-{'-'.join(MAPPERS)}", lambda: install_models(environment))
    return [environment / "bin" / "python", APPLICATIONS / "models.py", server.uri("zlib")]


def install_models(environment):
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin" / "pip", "install", "--quiet", *MAPPERS], check=True)


def needs(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(program)


DRIVERS = {
    "python": python,
    "python-async": python_async,
    "node": node,
    "rust": rust,
    "go": go,
    "java": java,
    "models": models,
}


def run(command, server):
    """Runs an application, and kills the server when it says so; what it found, and what it says else."""
    said = []
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(APPLICATION_SECONDS_MAX, process.kill)
    timer.start()
    for line in process.stdout:
        if line == "kill\n":
            time.sleep(0.5)
            server.kill()
        said.append(line)
    process.wait()
    timer.cancel()
    told = [line for line in said if line.startswith("{")]
    return (json.loads(told[-1]) if told and process.returncode == 0 else None), "".join(said)


def is_right(name, told, said):
    """Whether an application found what all must find."""
    if told is None:
        print(f"{name}: FAILED\n{said[-4000:]}", flush=True)
        return False
    expected = MODELS if name == "models" else EXPECTED
    acknowledged, there, unknown = told.pop("counts", (1, 1, 0))
    is_counted = 0 < acknowledged <= there <= acknowledged + unknown
    right = told == expected and is_counted
    counts = f": {acknowledged} acknowledged through a kill, {there} there, {unknown} unknown"
    print(f"{name}: {'passed' if right else 'FAILED'}{counts if expected is EXPECTED else ''}")
    for step in expected:
        if told.get(step) != expected[step]:
            print(f"  {step}: {told.get(step)}, expected {expected[step]}")
    sys.stdout.flush()
    return right


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frond", type=Path, help="the frond binary")
    parser.add_argument("--driver", action="append", choices=DRIVERS, help="only this one")
    options = parser.parse_args()
    frond = find_server(options.frond)
    counts = {"passed": 0, "failed": 0, "not run": 0}
    with tempfile.TemporaryDirectory(prefix="frond-drivers-") as directory:
        server = Server(frond, Path(directory))
        for name in options.driver or DRIVERS:
            try:
                command = DRIVERS[name](server, frond)
            except Missing as missing:
                print(f"{name}: not run: this machine hasn't {missing}")
                counts["not run"] += 1
                continue
            counts["passed" if is_right(name, *run(command, server)) else "failed"] += 1
        if server.end() != 0:
            counts["failed"] += 1
            print("FAILED: the server doesn't end well")
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
