#!/usr/bin/env python3
"""What lies under packaging/ does what it is for, with the program that was built.

- The systemd unit is understood (systemd-analyze), its sandbox is as tight as it says, and the settings
  that come with it are taken by the server.
- The Debian package is the same twice, holds what it should, and what it installs works.
- The board and the alerts ask for metrics that there are, and the alerts' rules are rules.
- The program needs nothing but itself and its libraries: no devices, no /proc, no accounts (root only).
- The container's file builds, where something that builds one is installed.

    conformance/packages.py [--frond PATH] [--install]

With --install the package is installed on this machine and removed again (root only). What isn't
installed here is told as not run.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from ports import free_port
from run import PROJECT, Report, find_server

PACKAGING = PROJECT / "packaging"
sys.path.insert(0, str(PACKAGING))
import deb  # noqa: E402  (found beside what it packs)

START_SECONDS_MAX = 60
# What systemd-analyze says of a service that may do little; 10 is one that may do everything.
EXPOSURE_MAX = 2.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", type=Path, help="the frond binary")
    parser.add_argument("--install", action="store_true", help="install the Debian package here")
    options = parser.parse_args()
    frond = find_server(options.frond).resolve()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="frond-packages-") as directory:
        directory = Path(directory)
        check_unit(frond, directory, report)
        check_settings_and_metrics(frond, directory, report)
        check_rules(report)
        check_deb(frond, directory, report, options.install)
        check_alone(frond, directory, report)
        check_container(report)
    print(f"{report.passed} passed, {report.failed} failed")
    return 1 if report.failed else 0


def run(command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600, **options)


def is_here(program, what):
    if shutil.which(program):
        return True
    print(f"not run: {what} ({program} isn't installed)")
    return False


def check_unit(frond, directory, report):
    if not is_here("systemd-analyze", "the systemd unit"):
        return
    # Neither program nor pages are where they will be.
    unit = (PACKAGING / "systemd/frond.service").read_text()
    unit = unit.replace("/usr/bin/frond", str(frond))
    unit = re.sub(r"^Documentation=.*\n", "", unit, flags=re.MULTILINE)
    path = directory / "frond.service"
    path.write_text(unit)
    verified = run(["systemd-analyze", "verify", path])
    found = [line for line in (verified.stdout + verified.stderr).splitlines() if "frond.service" in line]
    report.compare("systemd", "verify", found, [])
    security = run(["systemd-analyze", "security", "--offline=yes", "--no-pager", path])
    level = re.search(r"exposure level for frond.service: ([\d.]+)", security.stdout)
    report.compare("systemd", "the sandbox is told", level is not None, True)
    if level:
        report.compare("systemd", f"exposure {level.group(1)}", float(level.group(1)) <= EXPOSURE_MAX, True)


def check_settings_and_metrics(frond, directory, report):
    """The settings that come with the unit are taken, systemd is told, and the metrics are there."""
    settings = (PACKAGING / "systemd/frond.conf").read_text()
    port, metrics_port = free_port(), free_port()
    replaced = [("/var/lib/frond", str(directory / "data")), ("27017", str(port)), ("9216", str(metrics_port))]
    for before, after in replaced:
        report.compare("settings", f"{before} is there", before in settings, True)
        settings = settings.replace(before, after)
    path = directory / "frond.conf"
    path.write_text(settings)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(directory / "notify"))
        told.settimeout(START_SECONDS_MAX)
        environment = {**os.environ, "NOTIFY_SOCKET": str(directory / "notify")}
        command = [frond, "serve", "--config", path]
        server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            report.compare("settings", "systemd is told", "READY=1" in told.recv(4096).decode(), True)
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics") as answer:
                check_metrics(answer.read().decode(), report)
        finally:
            server.send_signal(signal.SIGTERM)
            report.compare("settings", "the server stops", server.wait(120), 0)


def check_metrics(text, report):
    """Each metric and each label's value that the board or an alert asks for is one of the server's."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, flags=re.MULTILINE))
    there = {name for name, kind in kinds.items() if kind != "histogram"}
    for name, kind in kinds.items():
        if kind == "histogram":
            there |= {f"{name}_bucket", f"{name}_sum", f"{name}_count"}
    values = {}
    for name, labels in re.findall(r"^(\w+)\{(.*)\} \S+$", text, flags=re.MULTILINE):
        for label, value in re.findall(r'(\w+)="([^"]*)"', labels):
            values.setdefault((name, label), set()).add(value)
    asked = expressions()
    report.compare("metrics", "the board and the alerts ask", len(asked) > 30, True)
    for where, expression in asked:
        names = set(re.findall(r"\b(?:frond|process)_\w+", expression))
        report.compare("metrics", f"{where}: {expression}", sorted(names - there), [])
        for name, inner in re.findall(r"\b((?:frond|process)_\w+)\{([^}]*)\}", expression):
            for label, operator, wanted in re.findall(r'(\w+)(=~|=)"([^"]*)"', inner):
                if label in ("instance", "job"):
                    continue
                wanted = set(wanted.split("|")) if operator == "=~" else {wanted}
                found = sorted(wanted - values.get((name, label), set()))
                report.compare("metrics", f"{where}: {label} of {name}", found, [])


def expressions():
    asked = []
    board = json.loads((PACKAGING / "grafana/frond.json").read_text())
    for panel in board["panels"]:
        asked += [(panel["title"], target["expr"]) for target in panel.get("targets", [])]
    rules = (PACKAGING / "prometheus/frond.rules.yml").read_text()
    for name, expression in re.findall(r"- alert: (\w+)\n +expr: (?:\|\n)?((?:.|\n(?! {8}(?:for|labels)))+)", rules):
        asked.append((name, " ".join(expression.split())))
    return asked


def check_rules(report):
    if is_here("promtool", "the alerts' rules, by Prometheus"):
        checked = run(["promtool", "check", "rules", PACKAGING / "prometheus/frond.rules.yml"])
        report.compare("prometheus", "rules", (checked.returncode, checked.stderr), (0, ""))
        checked = run(["promtool", "check", "config", "--syntax-only", PACKAGING / "prometheus/scrape.yml"])
        report.compare("prometheus", "configuration", checked.returncode, 0)


def check_deb(frond, directory, report, install):
    if not is_here("dpkg-deb", "the Debian package"):
        return
    package = deb.build(frond, directory / "one")
    again = deb.build(frond, directory / "two")
    report.compare("deb", "two builds are equal", package.read_bytes() == again.read_bytes(), True)
    control = run(["dpkg-deb", "--field", package]).stdout
    report.compare("deb", "its control file", "Package: frond" in control and "libc6 (>= 2." in control, True)
    listed = run(["dpkg-deb", "--contents", package]).stdout
    owners = {line.split()[1] for line in listed.splitlines()}
    report.compare("deb", "all belongs to root", sorted(owners), ["root/root"])
    installed = directory / "installed"
    run(["dpkg-deb", "--extract", package, installed])
    program = installed / "usr/bin/frond"
    report.compare("deb", "the program runs", run([program, "--version"]).returncode, 0)
    for name in ["etc/frond/frond.conf", "usr/lib/systemd/system/frond.service", "usr/share/doc/frond/copyright"]:
        report.compare("deb", name, (installed / name).is_file(), True)
    pages = sorted((installed / "usr/share/man/man1").iterdir())
    report.compare("deb", "manual pages", len(pages) > 40, True)
    if is_here("groff", "the manual pages, formatted"):
        text = subprocess.run(["zcat", *pages], capture_output=True, check=True).stdout
        formatted = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text, capture_output=True)
        # Lines that can't be filled are the terminal's width, not a fault of the page.
        told = [line for line in formatted.stderr.decode().splitlines() if "adjust line" not in line and "break" not in line]
        report.compare("deb", "the pages are roff", told, [])
    completions = installed / "usr/share/bash-completion/completions/frond"
    report.compare("deb", "completions are bash", run(["bash", "-n", completions]).returncode, 0)
    script = f"source {completions}; COMP_WORDS=(frond cher); COMP_CWORD=1; _frond frond cher frond; echo ${{COMPREPLY[@]}}"
    report.compare("deb", "bash completes", run(["bash", "-c", script]).stdout.strip(), "cherry-pick")
    if is_here("lintian", "lintian"):
        found = [line for line in run(["lintian", "--tag-display-limit", "0", package]).stdout.splitlines() if line.startswith("E:")]
        report.compare("deb", "lintian", found, [])
    if not install:
        print("not run: the package's installation (--install)")
        return
    done = run(["dpkg", "--install", package])
    report.compare("deb", "dpkg installs it", (done.returncode, done.stderr), (0, ""))
    report.compare("deb", "the installed program", run(["/usr/bin/frond", "--version"]).returncode, 0)
    done = run(["dpkg", "--purge", "frond"])
    report.compare("deb", "dpkg removes it", done.returncode, 0)
    report.compare("deb", "nothing stays", Path("/usr/bin/frond").exists() or Path("/etc/frond").exists(), False)


def check_alone(frond, directory, report):
    """As in an image from scratch: a directory holds the program and its libraries, and nothing else."""
    if os.geteuid() != 0:
        print("not run: the program alone (only root can change its root directory)")
        return
    root = directory / "alone"
    (root / "tmp").mkdir(parents=True)
    shutil.copy(frond, root / "frond")
    # A static program has none, and then ldd fails.
    for library in re.findall(r"(/\S+) \(0x", run(["ldd", frond]).stdout):
        place = root / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)

    def alone(*command, **options):
        return run(["/frond", *command], preexec_fn=lambda: os.chroot(root), cwd=root, **options)

    data = ["--data", "/data"]
    imported = alone("import", *data, "-d", "shop", "-c", "items", "--commit", "first", input='{"_id": 1, "a": "b"}\n')
    report.compare("alone", "import", (imported.returncode, imported.stderr.count("panicked")), (0, 0))
    logged = alone("log", *data, "shop", "--json")
    report.compare("alone", "log", "first" in logged.stdout, True)
    exported = alone("export", *data, "-d", "shop", "-c", "items")
    report.compare("alone", "export", [json.loads(line)["a"] for line in exported.stdout.splitlines()], ["b"])


def check_container(report):
    for program in ("podman", "buildah", "docker"):
        if shutil.which(program):
            break
    else:
        print("not run: the container's image (neither podman, buildah nor docker is installed)")
        return
    if os.environ.get("FROND_BUILD_IMAGE") != "1":
        print("not run: the container's image (FROND_BUILD_IMAGE=1 builds it; it downloads a compiler)")
        return
    command = [program, "build", "-f", PACKAGING / "container/Containerfile", "-t", "frond-packages-test", PROJECT]
    report.compare("container", "builds", subprocess.run(command).returncode, 0)


if __name__ == "__main__":
    sys.exit(main())
