"""Makes chosen calls on a server's files fail, while it runs: builds fault_shim.c and tells it what to do.

    faults = Faults(scratch_directory, data_directory)
    server = subprocess.Popen([frond, "serve", "--data", data_directory, ...], env=faults.environment())
    faults.arm(["fdatasync"], errno.EIO)                # the next one fails
    faults.arm(["write"], errno.ENOSPC, first=3, count=FOR_EVER, name="log")
    ...
    print(faults.injected(), faults.failed())
    faults.disarm()

A sync that is armed with 0 isn't done and says that it was. Kinds: fsync, fdatasync, write (also pwrite, writev, pwritev), ftruncate, rename, fallocate, unlink, open, read
(pread). Only files directly below the data directory count; the directory itself is called ".".
Needs a C compiler (cc), and a server that is linked with the system's C library dynamically.
"""

import mmap
import os
import pathlib
import struct
import subprocess

KINDS = ["fsync", "fdatasync", "write", "ftruncate", "rename", "fallocate", "unlink", "open", "read"]
FOR_EVER = 2**63
NAME_BYTES = 64
FIELDS = ["kinds", "first", "count", "error", "torn", "seen", "injected"]
CONTROL_BYTES = 8 * len(FIELDS) + 2 * NAME_BYTES


class Faults:
    """The faults of one server at a time; they outlive it."""

    def __init__(self, scratch, directory):
        os.makedirs(scratch, exist_ok=True)
        os.makedirs(directory, exist_ok=True)
        # The server names its files by the directory's canonical path.
        self.directory = os.path.realpath(directory)
        self.shim = os.path.abspath(os.path.join(scratch, "fault_shim.so"))
        source = pathlib.Path(__file__).with_name("fault_shim.c")
        command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        subprocess.run([*command, "-o", self.shim, source, "-ldl"], check=True)
        self.path = os.path.abspath(os.path.join(scratch, f"faults-{os.getpid()}-{id(self)}"))
        with open(self.path, "wb") as control:
            control.write(bytes(CONTROL_BYTES))
        with open(self.path, "r+b") as control:
            self.control = mmap.mmap(control.fileno(), CONTROL_BYTES)

    def environment(self):
        """The environment of a server whose calls are to fail."""
        return {
            **os.environ,
            "LD_PRELOAD": self.shim,
            "FROND_FAULTS": self.path,
            "FROND_FAULTS_DIRECTORY": self.directory,
        }

    def arm(self, kinds, error, first=1, count=1, name="", torn=False):
        """From now on `count` calls fail with `error`, the `first` of those that come the first of them."""
        self.disarm()
        self._set_name(name)
        self._set("kinds", sum(1 << KINDS.index(kind) for kind in kinds))
        self._set("count", count)
        self._set("error", error)
        self._set("torn", int(torn))
        self._set("seen", 0)
        self._set("injected", 0)
        # Last: now it counts.
        self._set("first", first)

    def count(self, kinds, name=""):
        """Counts calls from now on, and lets all of them pass."""
        self.arm(kinds, 0, first=0, name=name)

    def disarm(self):
        """Nothing fails any more; what was counted stays."""
        self._set("first", 0)
        self._set("kinds", 0)

    def seen(self):
        """How many calls were counted since they were armed."""
        return self._get("seen")

    def injected(self):
        """How many of them failed."""
        return self._get("injected")

    def failed(self):
        """The last file of which a call failed."""
        start = CONTROL_BYTES - NAME_BYTES
        return self.control[start:].split(b"\0")[0].decode()

    def _set_name(self, name):
        start = 8 * len(FIELDS)
        self.control[start : start + NAME_BYTES] = name.encode().ljust(NAME_BYTES, b"\0")

    def _set(self, field, value):
        struct.pack_into("<Q", self.control, 8 * FIELDS.index(field), value)

    def _get(self, field):
        return struct.unpack_from("<Q", self.control, 8 * FIELDS.index(field))[0]
