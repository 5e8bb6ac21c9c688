"""The servers that run in this process: one a data directory, however often it is opened.

Other processes of the same user, which find the directory in use, reach the data through the one
that has it.

A child that was forked has none of its parent's threads, so none of its servers: to a child they
are another process's.
"""

import atexit
import os
import pathlib
import threading
import time

from fronddb import _native

# For so long a process that has the directory may be about to listen, or to end.
PATIENCE_SECONDS = 3

_running = {}
_lock = threading.Lock()
# What a child that was forked has of its parent's servers: kept, since none may be touched.
_inherited = []


class LocalServer:
    """A use of a directory's server: in this process, or in the one that has the directory."""

    def __init__(self, key, socket):
        self._key = key
        self._process = os.getpid()
        self.socket = socket

    def release(self):
        """Ends this use; the last one of this process stops the server. Once is enough."""
        key, self._key = self._key, None
        if key is None or self._process != os.getpid():
            return
        with _lock:
            entry = _running.get(key)
            if entry is None:
                return
            entry["uses"] -= 1
            if entry["uses"] == 0:
                del _running[key]
                entry["server"].stop()


def use(directory, **options):
    """The server of `directory`: one that runs already, or a new one in this process."""
    directory = pathlib.Path(directory).expanduser().absolute()
    key = os.path.realpath(directory)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        with _lock:
            entry = _running.get(key)
            if entry is not None:
                entry["uses"] += 1
                return LocalServer(key, entry["server"].socket)
            try:
                server = _start(directory, options)
            except _native.DirectoryInUse:
                socket = _native.socket_of(directory)
                if socket is not None:
                    return LocalServer(None, socket)
                if time.monotonic() > deadline:
                    raise
            else:
                _running[key] = {"server": server, "uses": 1}
                return LocalServer(key, server.socket)
        time.sleep(0.02)


def _start(directory, options):
    return _native.Server(directory, **options)


def _forget_parents():
    """In a child: the lock may be another thread's of the parent, and the servers are the parent's.

    So are their directories: the child lets go of these, or no process could open one after its parent.
    """
    global _lock
    _lock = threading.Lock()
    _inherited.append(dict(_running))
    _running.clear()
    _native.close_inherited_locks()


os.register_at_fork(after_in_child=_forget_parents)


@atexit.register
def _stop_all():
    with _lock:
        entries = list(_running.values())
        _running.clear()
    for entry in entries:
        entry["server"].stop()
