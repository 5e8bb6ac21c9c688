#!/usr/bin/env python3
"""Runs the tests of the Python package (crates/python) on what cargo has built of it.

The package is put together under target/python-package: its Python files, and the native module
from target/PROFILE; PyMongo and pytest are installed there once.

    conformance/python_package.py [--profile checked] [ARGUMENTS FOR PYTEST]
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "crates" / "python"
INSTALLED = PROJECT / "target" / "python-package"
REQUIREMENTS = ["pymongo==4.20.0", "pytest>=8,<10"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--profile", default="checked", help="the profile it was built in")
    parser.add_argument("--install-only", action="store_true", help="install, run nothing")
    options, arguments = parser.parse_known_args()
    python = install()
    if options.install_only:
        return 0
    target = Path(os.environ.get("CARGO_TARGET_DIR", PROJECT / "target"))
    packages = put_together(target / options.profile / "libfronddb_native.so")
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [python, "-m", "pytest", "-q", "-p", "fronddb.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(command + [PACKAGE / "tests", *arguments], env=environment).returncode


def install():
    python = INSTALLED / "venv" / "bin" / "python"
    marker = INSTALLED / "requirements"
    if not marker.exists() or marker.read_text().split("\n") != REQUIREMENTS:
        subprocess.run([sys.executable, "-m", "venv", INSTALLED / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        marker.write_text("\n".join(REQUIREMENTS))
    return python


def put_together(library):
    packages = INSTALLED / "packages"
    shutil.rmtree(packages, ignore_errors=True)
    shutil.copytree(PACKAGE / "python" / "fronddb", packages / "fronddb")
    shutil.copy(library, packages / "fronddb" / "_native.abi3.so")
    return packages


if __name__ == "__main__":
    sys.exit(main())
