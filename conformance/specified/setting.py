"""What a case has at hand: a server, a collection of its own, clients whose commands it sees, fail points."""

import contextlib
import itertools
import socket
import struct

import bson
from pymongo import MongoClient, common
from pymongo.errors import PyMongoError
from pymongo.monitoring import CommandListener

# A driver that was told that its server can't answer looks again at once, not half a second later.
common.MIN_HEARTBEAT_INTERVAL = 0.01
WAIT_MS = 20_000
OPERATION_MESSAGE = 2013


class Specification:
    """A specification's name, and its cases in the order in which they stand."""

    def __init__(self, name):
        self.name, self.cases = name, []

    def case(self, function):
        """Adds a case, whose docstring is the sentence that it is about."""
        assert function.__doc__, function.__name__
        self.cases.append(function)
        return function


class Events(CommandListener):
    """The commands that a client sent, and how they ended."""

    def __init__(self):
        self.begun, self.done, self.errors = [], [], []

    def started(self, event):
        self.begun.append(event)

    def succeeded(self, event):
        self.done.append(event)

    def failed(self, event):
        self.errors.append(event)

    def names(self):
        return [event.command_name for event in self.begun]

    def sent(self, name):
        """The commands of this name, as they were sent."""
        return [event.command for event in self.begun if event.command_name == name]

    def replies(self, name):
        return [event.reply for event in self.done if event.command_name == name]

    def clear(self):
        self.begun.clear()
        self.done.clear()
        self.errors.clear()


class Setting:
    """A server and what its cases share, while the `with` lasts."""

    def __init__(self, address):
        self.address, self.uri = address, f"mongodb://{address}/?replicaSet=rs0"
        self.numbers = itertools.count()

    def __enter__(self):
        self.client = self.connect()
        return self

    def __exit__(self, *_):
        self.client.close()

    def connect(self, **options):
        return MongoClient(self.uri, serverSelectionTimeoutMS=WAIT_MS, serverMonitoringMode="poll", **options)

    @contextlib.contextmanager
    def case(self):
        """A case's own database, gone behind it, as are its clients and fail points."""
        with contextlib.ExitStack() as stack:
            yield Given(self, stack, f"case{next(self.numbers)}")


class Given:
    """What one case has."""

    def __init__(self, setting, stack, name):
        self.setting, self.stack, self.name = setting, stack, name
        self.client = setting.client
        self.database = self.client[name]
        self.items = self.database.items
        self.admin = self.client.admin
        stack.callback(self.client.drop_database, name)

    def watched(self, **options):
        """A client of its own whose commands are seen: the client, its `items`, what it sent."""
        events = Events()
        client = self.setting.connect(event_listeners=[events], **options)
        self.stack.callback(client.close)
        client.admin.command("ping")
        events.clear()
        return client, client[self.name].items, events

    def fail(self, commands, mode=1, point="failCommand", **data):
        """Has these commands fail so, `mode` times, until the case ends."""
        mode = {"times": mode} if isinstance(mode, int) else mode
        if commands:
            data["failCommands"] = commands
        self.admin.command({"configureFailPoint": point, "mode": mode, "data": data})
        self.stack.callback(self.admin.command, {"configureFailPoint": point, "mode": "off"})


    def raw(self, database=None, **command):
        """A command's answer without a driver, which would add a session of its own."""
        host, port = self.setting.address.split(":")
        body = bson.encode({**command, "$db": database or self.name})
        message = struct.pack("<iiiiIB", 21 + len(body), 1, 0, OPERATION_MESSAGE, 0, 0) + body
        with socket.create_connection((host, int(port))) as stream, stream.makefile("rb") as answers:
            stream.sendall(message)
            (count,) = struct.unpack("<i", answers.read(4))
            return bson.decode(answers.read(count - 4)[17:])


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def refused(code, call, kind=PyMongoError):
    """The error of this code that a call must raise; of any code if that is `None`."""
    try:
        result = call()
    except kind as error:
        if code is not None:
            details = getattr(error, "details", None) or {}
            equal(getattr(error, "code", None) or details.get("code"), code)
        return error
    raise AssertionError(f"not refused: {result!r}")


def ids(documents):
    return [document["_id"] for document in documents]
