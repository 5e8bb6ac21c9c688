"""The servers that run in this process: one a data directory, however often it is opened.

A server writes the path of its socket into the file `SOCKET` of its directory, so that other
processes of the same user reach the data through it.
"""

import atexit
import os
import pathlib
import shutil
import tempfile
import threading

from fronddb import _native

SOCKET_FILE = "SOCKET"

_running = {}
_lock = threading.Lock()


class LocalServer:
    """A use of a directory's server: in this process, or in the one that has the directory."""

    def __init__(self, key, socket):
        self._key = key
        self.socket = socket

    def release(self):
        """Ends this use; the last one of this process stops the server. Once is enough."""
        key, self._key = self._key, None
        if key is None:
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
    with _lock:
        entry = _running.get(key)
        # A child that was forked has its parent's table, and none of its threads.
        if entry is not None and entry["process"] == os.getpid():
            entry["uses"] += 1
            return LocalServer(key, entry["socket"])
        try:
            entry = _start(directory, options)
        except _native.DirectoryInUse:
            socket = _socket_of(directory)
            if socket is None:
                raise
            return LocalServer(None, socket)
        _running[key] = entry
        return LocalServer(key, entry["socket"])


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
    beside = directory / (SOCKET_FILE + ".new")
    beside.write_text(socket + "\n", encoding="utf-8")
    beside.replace(note)
    process = os.getpid()
    return {"server": server, "socket": socket, "scratch": scratch, "note": note, "uses": 1, "process": process}


def _stop(entry):
    try:
        entry["note"].unlink(missing_ok=True)
        entry["server"].stop()
    finally:
        shutil.rmtree(entry["scratch"], ignore_errors=True)


def _socket_of(directory):
    """The socket that the process which has the directory has written down, if it is still there."""
    try:
        socket = (directory / SOCKET_FILE).read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return socket if os.path.exists(socket) else None


@atexit.register
def _stop_all():
    with _lock:
        entries = [entry for entry in _running.values() if entry["process"] == os.getpid()]
        _running.clear()
    for entry in entries:
        _stop(entry)
