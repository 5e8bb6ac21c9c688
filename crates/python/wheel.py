#!/usr/bin/env python3
"""Makes a wheel of what cargo has built for this machine, as pyproject.toml describes it.

    crates/python/wheel.py [--library target/release/libfronddb_native.so] [--out target/packages]

maturin makes the same and builds by itself; this compiles nothing, so that CI tests the package as it is
installed without a second build. Two wheels of one library are equal, byte by byte.
"""

import argparse
import base64
import hashlib
import re
import subprocess
import sysconfig
import tempfile
import tomllib
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
EARLIEST = (1980, 1, 1, 0, 0, 0)
REGULAR_FILE = 0o100644 << 16


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    built = PROJECT / "target/release/libfronddb_native.so"
    parser.add_argument("--library", type=Path, default=built, help="what cargo has built")
    parser.add_argument("--out", type=Path, default=PROJECT / "target/packages", help="where the wheel goes")
    options = parser.parse_args()
    print(make(options.library, options.out))


def make(library, out):
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    version = tomllib.loads((PROJECT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    # abi3: one library serves all versions of Python from the oldest on.
    oldest = project["requires-python"].removeprefix(">=").replace(".", "")
    tag = f"cp{oldest}-abi3-{platform}"
    stem = f"{project['name']}-{version}"
    files = {f"fronddb/{path.name}": path.read_bytes() for path in (HERE / "python/fronddb").glob("*.py")}
    files["fronddb/_native.abi3.so"] = stripped(library)
    information = {
        "METADATA": metadata(project, version),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: frond\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "entry_points.txt": entry_points(project),
        "licenses/LICENSE": (PROJECT / "LICENSE").read_text(),
    }
    files |= {f"{stem}.dist-info/{name}": text.encode() for name, text in information.items()}
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join([*map(recorded, files.items()), f"{record},,\n"]).encode()
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{stem}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.external_attr = REGULAR_FILE
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def stripped(library):
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "-x", "-o", file.name, library], check=True)
        return Path(file.name).read_bytes()


def metadata(project, version):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {needed}" for needed in project["dependencies"]),
    ]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {it}; extra == '{extra}'" for it in needs)]
    readme = (HERE / project["readme"]).read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def entry_points(project):
    groups = project["entry-points"].items()
    return "".join(f"[{group}]\n" + "".join(f"{name} = {it}\n" for name, it in of.items()) for group, of in groups)


def recorded(file):
    name, content = file
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


if __name__ == "__main__":
    main()
