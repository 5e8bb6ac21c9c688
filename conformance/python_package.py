#!/usr/bin/env python3
"""Runs the tests of the Python package (crates/python) as it is installed.

What cargo has built of it becomes a wheel (crates/python/wheel.py), which pip installs into an
environment below target/python-package, with PyMongo and pytest; those are installed there once.

    conformance/python_package.py [--profile checked] [ARGUMENTS FOR PYTEST]
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = PROJECT / "crates" / "python"
INSTALLED = PROJECT / "target" / "python-package"
sys.path.insert(0, str(PACKAGE))
import wheel  # noqa: E402  (found beside what it packs)

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
    made = wheel.make(target / options.profile / "libfronddb_native.so", INSTALLED)
    pip(python, "install", "--force-reinstall", "--no-deps", made)
    # Its plugin is found by what the wheel says of it.
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", PACKAGE / "tests", *arguments]
    # Beside the sources there is no native module: what was installed is tested.
    return subprocess.run(command, cwd=INSTALLED).returncode


def install():
    python = INSTALLED / "venv" / "bin" / "python"
    marker = INSTALLED / "requirements"
    if not marker.exists() or marker.read_text().split("\n") != REQUIREMENTS:
        subprocess.run([sys.executable, "-m", "venv", INSTALLED / "venv"], check=True)
        pip(python, "install", *REQUIREMENTS)
        marker.write_text("\n".join(REQUIREMENTS))
    return python


def pip(python, *arguments):
    subprocess.run([python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
