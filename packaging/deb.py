#!/usr/bin/env python3
"""Makes a Debian package of a program that was built: frond_VERSION_ARCHITECTURE.deb.

    packaging/deb.py --frond target/release/frond --out target/packages

It holds the program, its manual pages and completions (which the program itself writes), the systemd
unit, off until it is enabled, and the unit's settings. Two builds from one program are equal, byte by
byte. It needs dpkg-deb.
"""

import argparse
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGING = Path(__file__).resolve().parent
PROJECT = PACKAGING.parent
# When the files of a package were changed: the same whenever it is built.
EPOCH = os.environ.get("SOURCE_DATE_EPOCH", "1767225600")

CONTROL = """\
Package: frond
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kilobytes}
Depends: libc6 (>= {libc})
Recommends: ca-certificates
Section: database
Priority: optional
Description: version-controlled document database
 Frond serves documents over MongoDB's protocol, so that drivers, mongosh and
 Compass use it unchanged. Each database is a repository as well: it can be
 committed, branched, diffed, merged, cloned and pushed.
"""

# The unit is known to systemd at once, and neither enabled nor started: where it listens, and who may
# log in, is for the administrator to say.
AFTER = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
    if [ "$1" = configure ] && [ -n "$2" ]; then
        systemctl try-restart frond.service || true
    fi
fi
"""
BEFORE_REMOVAL = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now frond.service || true
fi
"""
AFTER_REMOVAL = """\
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload || true
fi
# The data, /var/lib/frond, stay: also when the package is purged.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", type=Path, required=True, help="the program")
    parser.add_argument("--out", type=Path, required=True, help="where the package goes")
    parser.add_argument("--maintainer", default="The Frond developers <frond@localhost>")
    options = parser.parse_args()
    print(build(options.frond.resolve(), options.out, options.maintainer))
    return 0


def build(frond, out, maintainer="The Frond developers <frond@localhost>"):
    """Builds the package; returns its path."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="frond-deb-") as directory:
        root = Path(directory)
        fill(root, frond)
        architecture = said(["dpkg", "--print-architecture"])
        values = {
            "version": said([frond, "--version"]).removeprefix("frond "),
            "architecture": architecture,
            "maintainer": maintainer,
            "kilobytes": sum(path.lstat().st_size for path in root.rglob("*")) // 1024,
            "libc": libc_of(frond),
        }
        (root / "DEBIAN").mkdir()
        put(root, "DEBIAN/control", CONTROL.format(**values))
        put(root, "DEBIAN/conffiles", "/etc/frond/frond.conf\n")
        put(root, "DEBIAN/postinst", AFTER, 0o755)
        put(root, "DEBIAN/prerm", BEFORE_REMOVAL, 0o755)
        put(root, "DEBIAN/postrm", AFTER_REMOVAL, 0o755)
        for path in [root, *root.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
            os.utime(path, (int(EPOCH), int(EPOCH)), follow_symlinks=False)
        package = out / f"frond_{values['version']}_{architecture}.deb"
        command = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, package]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH})
        return package


def fill(root, frond):
    """Puts what is installed under `root`."""
    program = root / "usr/bin/frond"
    program.parent.mkdir(parents=True)
    shutil.copyfile(frond, program)
    subprocess.run(["strip", program], check=False)
    program.chmod(0o755)
    pages = root / "usr/share/man/man1"
    said([frond, "man", pages])
    for page in pages.iterdir():
        put(root, page.relative_to(root).with_suffix(".1.gz"), page.read_bytes())
        page.unlink()
    for shell, path in [
        ("bash", "usr/share/bash-completion/completions/frond"),
        ("zsh", "usr/share/zsh/vendor-completions/_frond"),
        ("fish", "usr/share/fish/vendor_completions.d/frond.fish"),
    ]:
        put(root, path, said([frond, "completions", shell]) + "\n")
    put(root, "usr/lib/systemd/system/frond.service", (PACKAGING / "systemd/frond.service").read_text())
    put(root, "etc/frond/frond.conf", (PACKAGING / "systemd/frond.conf").read_text())
    documents = "usr/share/doc/frond"
    for name in ["README.md", "SHORTCOMINGS.md", "COMPATIBILITY.md"]:
        put(root, f"{documents}/{name}", (PROJECT / name).read_text())
    put(root, f"{documents}/changelog.gz", (PROJECT / "CHANGELOG.md").read_bytes())
    put(root, f"{documents}/copyright", "License: Apache-2.0\n On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.\n")
    for path in sorted((PACKAGING / "prometheus").iterdir()) + sorted((PACKAGING / "grafana").iterdir()):
        put(root, f"{documents}/examples/{path.name}", path.read_text())


def put(root, path, content, mode=0o644):
    """Writes a file; one that is called `.gz` compressed, and always the same."""
    to = root / path
    to.parent.mkdir(parents=True, exist_ok=True)
    content = content if isinstance(content, bytes) else content.encode()
    to.write_bytes(gzip.compress(content, 9, mtime=0) if to.suffix == ".gz" else content)
    to.chmod(mode)


def libc_of(frond):
    """The newest version of the C library that the program asks for."""
    symbols = said(["objdump", "-T", frond])
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", symbols)}
    return ".".join(map(str, max(versions, default=(2, 17))))


def said(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip("\n")


if __name__ == "__main__":
    sys.exit(main())
