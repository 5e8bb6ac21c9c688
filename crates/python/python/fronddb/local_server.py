"""The servers that run in this process: one a data directory, however often it is opened.

A server writes the path of its socket into the file `SOCKET` of its directory, so that other
processes of the same user reach the data through it.

A child that was forked has none of its parent's threads, so none of its servers: to a child they
are another process's.
"""

import atexit
import os
import pathlib
import shutil
import socket as sockets
import tempfile
import threading
import time

from fronddb import _native

SOCKET_FILE = "SOCKET"

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
                _stop(entry)


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
                return LocalServer(key, entry["socket"])
            try:
                entry = _start(directory, options)
            except _native.DirectoryInUse:
                socket = _socket_of(directory)
                if socket is not None:
                    return LocalServer(None, socket)
                if time.monotonic() > deadline:
                    raise
            else:
                _running[key] = entry
                return LocalServer(key, entry["socket"])
        time.sleep(0.02)


def _start(directory, options):
    # Paths of sockets are short by the system's rule (107 bytes), those of directories aren't.
    scratch = tempfile.mkdtemp(prefix="fronddb-")
    socket = os.path.join(scratch, "mongodb.sock")
    try:
        server = _native.Server(directory, socket, **options)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    note = directory / SOCKET_FILE
    _remove_left_over(note)
    beside = directory / (SOCKET_FILE + ".new")
    beside.write_text(socket + "\n", encoding="utf-8")
    beside.replace(note)
    return {"server": server, "socket": socket, "scratch": scratch, "note": note, "uses": 1}


def _stop(entry):
    try:
        entry["note"].unlink(missing_ok=True)
        entry["server"].stop()
    finally:
        shutil.rmtree(entry["scratch"], ignore_errors=True)


def _socket_of(directory):
    """The socket that the process which has the directory has written down, if it listens."""
    try:
        socket = (directory / SOCKET_FILE).read_text(encoding="utf-8").strip()
        with sockets.socket(sockets.AF_UNIX) as probe:
            probe.connect(socket)
    except OSError:
        return None
    return socket


def _remove_left_over(note):
    """Removes the socket of a process that was killed, and its directory. We have the data now, so
    nothing listens there."""
    try:
        socket = pathlib.Path(note.read_text(encoding="utf-8").strip())
        if socket.parent.name.startswith("fronddb-"):
            socket.unlink(missing_ok=True)
            socket.parent.rmdir()
    except OSError:
        pass


def _forget_parents():
    """In a child: the lock may be another thread's of the parent, and the servers are the parent's."""
    global _lock
    _lock = threading.Lock()
    _inherited.append(dict(_running))
    _running.clear()


os.register_at_fork(after_in_child=_forget_parents)


@atexit.register
def _stop_all():
    with _lock:
        entries = list(_running.values())
        _running.clear()
    for entry in entries:
        _stop(entry)
