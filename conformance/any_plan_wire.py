"""MongoDB's messages as bytes, for any_plan.py, which compares thousands of documents a second.

A driver makes an object of each value that it reads. Most answers are equal as bytes, so a reply is walked only as far
as to find where its batch lies.
"""

import select
import socket
import struct

import bson

HEADER = struct.Struct("<iiii")
OP_MSG = 2013
LENGTH = struct.Struct("<i")
# How many bytes a value has, by its type; -1: a length and as many, -2: the length counts itself, -3: two C strings.
SIZES = {0x01: 8, 0x02: -1, 0x03: -2, 0x04: -2, 0x05: None, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x0B: -3,
         0x0D: -1, 0x0E: -1, 0x0F: -2, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16, 0x7F: 0, 0xFF: 0}


class Wire:
    """A connection. What is sent is answered in its order."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A client that says nothing at first is cut off.
        self.ask("admin", {"ping": 1})

    def send(self, database, command):
        body = bson.encode({**command, "$db": database})
        header = HEADER.pack(HEADER.size + 5 + len(body), 1, 0, OP_MSG)
        self.socket.sendall(b"".join((header, bytes(5), body)))

    def ask(self, database, command):
        self.send(database, command)
        return receive([self])[0]

    def close(self):
        self.socket.close()


class Reply:
    """A reply that comes in."""

    def __init__(self):
        self.bytes, self.at = bytearray(HEADER.size), 0

    def read(self, source):
        """Reads what has come; whether that is all."""
        read = source.recv_into(memoryview(self.bytes)[self.at:])
        if not read:
            raise ConnectionError("the server closed the connection")
        self.at += read
        if self.at == HEADER.size:
            self.bytes.extend(bytes(HEADER.unpack(self.bytes)[0] - HEADER.size))
        return self.at == len(self.bytes)


def receive(wires):
    """The documents of the replies on connections, as bytes; none waits for another, as a server gives up on a client
    that doesn't take its answer."""
    replies = [Reply() for _ in wires]
    waiting = {wire.socket: reply for wire, reply in zip(wires, replies)}
    while waiting:
        ready, _, _ = select.select(waiting, [], [], 600)
        if not ready:
            raise ConnectionError("no answer in ten minutes")
        for source in ready:
            if waiting[source].read(source):
                del waiting[source]
    return [bytes(memoryview(reply.bytes)[HEADER.size + 5:]) for reply in replies]


def fields(data, start=0):
    """The fields of the document that begins at `start`: name, type, where the value begins and ends."""
    at = start + 4
    while data[at]:
        kind, stop = data[at], data.index(0, at + 1)
        begin = stop + 1
        size = SIZES[kind]
        if kind == 0x05:
            size = 5 + LENGTH.unpack_from(data, begin)[0]
        elif size == -1:
            size = 4 + LENGTH.unpack_from(data, begin)[0]
        elif size == -2:
            size = LENGTH.unpack_from(data, begin)[0]
        elif size == -3:
            size = data.index(0, data.index(0, begin) + 1) + 1 - begin
        yield data[at + 1:stop], kind, begin, begin + size
        at = begin + size


def field(data, name, start=0):
    """A field's type, and where its value begins and ends; `None` without such a field."""
    return next((found[1:] for found in fields(data, start) if found[0] == name), None)


def batch(reply):
    """The documents of a cursor's first batch, as one array's bytes."""
    _, cursor, _ = field(reply, b"cursor")
    _, begin, end = field(reply, b"firstBatch", cursor)
    _, at, _ = field(reply, b"id", cursor)
    assert reply[at:at + 8] == bytes(8), "one batch has all"
    return reply[begin:end]


def documents(array):
    """The documents in an array's bytes, each as bytes."""
    found, at = [], 4
    while array[at]:
        begin = array.index(0, at) + 1
        at = begin + LENGTH.unpack_from(array, begin)[0]
        found.append(array[begin:at])
    return found
