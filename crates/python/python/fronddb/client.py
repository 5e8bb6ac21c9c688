"""`open`, and the client that it gives."""

import urllib.parse

import pymongo

from fronddb import local_server
from fronddb.database import Database


class Client(pymongo.MongoClient):
    """A `pymongo.MongoClient` whose databases have versions (`fronddb.Database`)."""

    def __init__(self, *arguments, frond_server=None, **options):
        self.__dict__["_frond_server"] = frond_server
        super().__init__(*arguments, **options)

    def __getitem__(self, name):
        return Database(self, name)

    def get_database(self, name=None, *arguments, **options):
        """As PyMongo's: the database, with other options perhaps."""
        if name is None:
            name = super().get_database().name
        return Database(self, name, *arguments, **options)

    def get_default_database(self, default=None, *arguments, **options):
        """As PyMongo's: the database that the URI names."""
        name = super().get_default_database(default).name
        return Database(self, name, *arguments, **options)

    def close(self):
        """Closes the client, and the data directory if no other client of this process uses it."""
        super().close()
        server = self.__dict__.get("_frond_server")
        if server is not None:
            server.release()

    def clone(self, url, name=None, **options):
        """Clones a database from a remote (`http://HOST:PORT/NAME`, a directory's URL) and returns it."""
        name = name or url.rstrip("/").rsplit("/", 1)[-1]
        self[name].command({"frondClone": 1, "from": url, **options})
        return self[name]


def open(directory, *, memory=None, cache=None, log_path=None, **options):
    """Opens a data directory, making it where it is missing, and returns a client of it.

    The database runs in this process, in threads of its own, and is reached by a private socket. If
    another process of this user has opened the directory by `fronddb`, the client is one of that.
    `memory` bounds what the database takes, in bytes, and `cache` what it keeps of that
    decompressed; `log_path` is a file for its log. Other `options` are `pymongo.MongoClient`'s.
    Close the client, or use it in a `with`: data that was acknowledged is on the disk either way.
    """
    server = local_server.use(directory, memory=memory, cache=cache, log_path=log_path)
    try:
        return Client(_uri(server), frond_server=server, **options)
    except BaseException:
        server.release()
        raise


def open_async(directory, *, memory=None, cache=None, log_path=None, **options):
    """As `open`, for `asyncio`: returns a `pymongo.AsyncMongoClient`. Version commands are called by
    `await client["shop"].command("frondCommit", message="...")`. The data directory is closed with
    the process.
    """
    server = local_server.use(directory, memory=memory, cache=cache, log_path=log_path)
    return pymongo.AsyncMongoClient(_uri(server), **options)


def connect(uri="mongodb://127.0.0.1:27017", **options):
    """A client of a server that runs elsewhere (`frond serve`), with the same methods."""
    return Client(uri, **options)


def _uri(server):
    socket = urllib.parse.quote(server.socket, safe="")
    return f"mongodb://{socket}/?directConnection=true"
