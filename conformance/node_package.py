#!/usr/bin/env python3
"""Installs the npm package (crates/node) from the tarball that is made of it, with MongoDB's driver, and
runs its tests there, the code that its page and README show, and the compiler over its types.

    conformance/node_package.py [--profile checked] [--install-only]
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "crates" / "node"
INSTALLED = PROJECT / "target" / "node-package"
PACKAGES = ["mongodb@7.8.0", "typescript@5.9.3", "@types/node@20.19.25"]
COMPILER_OPTIONS = ["--noEmit", "--strict", "--target", "esnext", "--module", "nodenext", "--lib", "esnext", "--types", "node"]

sys.path.insert(0, str(PACKAGE))
import pack  # noqa: E402  (found beside what it packs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--profile", default="checked", help="the profile it was built in")
    parser.add_argument("--install-only", action="store_true", help="install, run nothing")
    options = parser.parse_args()
    install_others()
    if options.install_only:
        return 0
    target = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target"))
    tarball = pack.pack(target / options.profile / "libfronddb_node.so", INSTALLED)
    npm("install", "--no-save", "--prefer-offline", tarball, *PACKAGES)
    copy_tests()
    tests = sorted(path.name for path in INSTALLED.glob("*.test.mjs"))
    failed = node("--test", "--test-reporter=spec", *tests)
    failed |= node(*pages())
    failed |= run([INSTALLED / "node_modules/.bin/tsc", *COMPILER_OPTIONS, "types.ts"])
    print(f"the npm package: {'FAILED' if failed else 'passed'}")
    return failed


def install_others():
    """The packages of others, once."""
    marker = INSTALLED / "packages"
    if marker.exists() and marker.read_text() == "\n".join(PACKAGES):
        return
    INSTALLED.mkdir(parents=True, exist_ok=True)
    (INSTALLED / "package.json").write_text('{"private": true, "type": "module"}')
    npm("install", *PACKAGES)
    marker.write_text("\n".join(PACKAGES))


def copy_tests():
    """Modules are found from where a program lies."""
    for path in [*INSTALLED.glob("*.mjs"), *INSTALLED.glob("*.ts")]:
        path.unlink()
    for path in (PACKAGE / "tests").iterdir():
        shutil.copy(path, INSTALLED)


def pages():
    """A test file of what the page and the README show: each block is a program of its own."""
    readme = blocks(PACKAGE / "README.md")
    page = blocks(PROJECT / "docs" / "node.md")
    # The page's other program is one for a server, which conformance/mongod.py runs.
    names = []
    for number, code in enumerate([*readme, page[0]]):
        # Each has a directory of its own, which is empty.
        data = INSTALLED / f"page-{number}"
        shutil.rmtree(data, ignore_errors=True)
        name = f"page-{number}.mjs"
        (INSTALLED / name).write_text(code.replace('open("data")', f'open("{data}")'))
        names.append(name)
    return ["--test", "--test-reporter=spec", *names]


def blocks(path):
    return re.findall(r"```js\n(.*?)```", path.read_text(), re.DOTALL)


def node(*arguments):
    return run(["node", *arguments])


def npm(*arguments):
    subprocess.run(["npm", *arguments, "--silent", "--no-audit", "--no-fund"], cwd=INSTALLED, check=True)


def run(command):
    return int(subprocess.run(list(map(str, command)), cwd=INSTALLED, timeout=600).returncode != 0)


if __name__ == "__main__":
    sys.exit(main())
