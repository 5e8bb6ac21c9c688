#!/usr/bin/env python3
"""Has mongodb-memory-server start Frond where applications' tests start a mongod (mongod.mjs), and
runs what docs/node.md shows of servers.

    conformance/mongod.py [--frond PATH] [--install-only]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import argparse

from run import PROJECT, SCRIPTS, Server, find_server

INSTALLED = PROJECT / "target" / "mongodb-memory-server"
PACKAGES = ["mongodb@7.8.0", "mongodb-memory-server-core@11.0.0"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", type=Path, help="the frond binary")
    parser.add_argument("--install-only", action="store_true", help="install, run nothing")
    options = parser.parse_args()
    install()
    if options.install_only:
        return 0
    with tempfile.TemporaryDirectory(prefix="frond-mongod-") as directory:
        binary = Path(directory) / "mongod"
        binary.symlink_to(Path(find_server(options.frond)).resolve())
        # Modules are found from where the script lies.
        script = shutil.copy(SCRIPTS / "mongod.mjs", INSTALLED)
        environment = {**os.environ, "MONGOMS_SYSTEM_BINARY": str(binary), "MONGOMS_VERSION": "8.0.0"}
        started = subprocess.run(["node", script], env=environment, timeout=600).returncode
        return started or run_page(find_server(options.frond), Path(directory) / "data")


def run_page(frond, data):
    """Runs what docs/node.md shows of servers: it must print what the page says."""
    page = (PROJECT / "docs" / "node.md").read_text().partition("## With a server")[2]
    script = INSTALLED / "page.mjs"
    script.write_text("\n".join(re.findall(r"```js\n(.*?)```", page, re.DOTALL)))
    with Server(frond, data) as server:
        environment = {**os.environ, "FROND": f"mongodb://{server.address}"}
        ran = subprocess.run(["node", script], env=environment, timeout=600, stdout=subprocess.PIPE, text=True)
    printed = ran.stdout.splitlines()
    wrong = [line for line in printed if f"`{line}`" not in page]
    if ran.returncode or wrong or len(printed) != 2:
        print(f"docs/node.md: FAILED, it printed {printed}")
        return 1
    print("docs/node.md: passed")
    return 0


def install():
    marker = INSTALLED / "packages"
    if marker.exists() and marker.read_text() == "\n".join(PACKAGES):
        return
    INSTALLED.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "MONGOMS_DISABLE_POSTINSTALL": "1"}
    (INSTALLED / "package.json").write_text('{"private": true}')
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", *PACKAGES]
    subprocess.run(command, cwd=INSTALLED, env=environment, check=True)
    marker.write_text("\n".join(PACKAGES))


if __name__ == "__main__":
    sys.exit(main())
