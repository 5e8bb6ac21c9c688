#!/usr/bin/env python3
"""Puts the npm package together: its files, and the native module that cargo has built for this machine.

    crates/node/pack.py [--library target/release/libfronddb_node.so] [--out target/packages]
"""

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
PLATFORM = {"linux": "linux", "darwin": "darwin"}[sys.platform]
PROCESSOR = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}[platform.machine()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    suffix = "dylib" if PLATFORM == "darwin" else "so"
    built = PROJECT / f"target/release/libfronddb_node.{suffix}"
    parser.add_argument("--library", type=Path, default=built, help="what cargo has built")
    parser.add_argument("--out", type=Path, default=PROJECT / "target/packages", help="where the tarball goes")
    options = parser.parse_args()
    print(pack(options.library, options.out))


def pack(library, out):
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="frond-node-") as directory:
        package = Path(directory) / "package"
        shutil.copytree(HERE / "js", package / "js")
        for name in ["package.json", "README.md"]:
            shutil.copy(HERE / name, package)
        shutil.copy(PROJECT / "LICENSE", package)
        native = package / "native" / f"{PLATFORM}-{PROCESSOR}.node"
        native.parent.mkdir()
        subprocess.run(["strip", "-x", "-o", native, library], check=True)
        command = ["npm", "pack", "--json", "--pack-destination", out.resolve()]
        packed = subprocess.run(command, cwd=package, check=True, capture_output=True, text=True)
    return out.resolve() / json.loads(packed.stdout)[0]["filename"]


if __name__ == "__main__":
    main()
