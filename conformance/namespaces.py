"""Machines made of network namespaces, whose connections can be cut; and small disks. Linux, as root.

Each machine is a namespace on one bridge, where this process is too. A cut is made by rules of
routing in the namespace, so packets vanish as on a broken network: nothing is refused or reset.
"""

import os
import shutil
import subprocess
import uuid

PORT = 27017


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


class Network:
    """So many machines on one bridge; they see each other, and this process sees all."""

    def __init__(self, count):
        tag = uuid.uuid4().hex[:6]
        self.bridge = f"fb{tag}"
        self.names = [f"frond-{tag}-{number}" for number in range(count)]
        # Another one each time: two runs may be beside each other, and one that was killed leaves its own behind.
        subnet = f"100.{64 + int(tag[:2], 16) % 64}.{int(tag[2:4], 16)}"
        self.addresses = [f"{subnet}.{number + 1}" for number in range(count)]
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{subnet}.254/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        for number, name in enumerate(self.names):
            outer, inner = f"fv{tag}{number}", f"fi{tag}{number}"
            ip("netns", "add", name)
            ip("link", "add", outer, "type", "veth", "peer", "name", inner)
            ip("link", "set", inner, "netns", name)
            ip("link", "set", outer, "master", self.bridge, "up")
            ip("-n", name, "addr", "add", f"{self.addresses[number]}/24", "dev", inner)
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", inner, "up")

    def within(self, number):
        """What runs a command on a machine."""
        return ["ip", "netns", "exec", self.names[number]]

    def cut(self, number, others):
        """No packet passes between a machine and those others."""
        for other in others:
            ip("-n", self.names[number], "route", "add", "blackhole", f"{self.addresses[other]}/32")

    def cut_out(self, number, others):
        """A machine reaches no server of those others; theirs reach its own."""
        for other in others:
            to = f"{self.addresses[other]}/32"
            rule = ["rule", "add", "to", to, "ipproto", "tcp", "dport", str(PORT), "blackhole"]
            ip("-n", self.names[number], *rule)

    def heal(self):
        """All is as in the beginning."""
        for name in self.names:
            for address in self.addresses:
                undo(name, "route", "del", "blackhole", f"{address}/32")
                rule = ["to", f"{address}/32", "ipproto", "tcp", "dport", str(PORT), "blackhole"]
                undo(name, "rule", "del", *rule)

    def remove(self):
        for name in self.names:
            ip("netns", "del", name)
        ip("link", "del", self.bridge)


def undo(name, *words):
    """What isn't there needn't go."""
    subprocess.run(["ip", "-n", name, *words], check=False, capture_output=True)


class SmallDisk:
    """A file system in memory that can be filled."""

    def __init__(self, directory, megabytes):
        self.directory = directory
        os.makedirs(directory)
        options = f"size={megabytes}m"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory], check=True)

    def fill(self):
        try:
            with open(os.path.join(self.directory, "other"), "wb", buffering=0) as file:
                while file.write(bytes(1 << 16)):
                    pass
        except OSError:
            pass  # It may have been full before.

    def free(self):
        try:
            os.remove(os.path.join(self.directory, "other"))
        except FileNotFoundError:
            pass

    def remove(self):
        subprocess.run(["umount", "-l", self.directory], check=True)
        shutil.rmtree(self.directory)
