"""Frond in your process: a version-controlled document database, used by PyMongo.

    >>> import fronddb
    >>> client = fronddb.open("data")                 # is a pymongo.MongoClient
    >>> shop = client["shop"]                         # is a pymongo database
    >>> shop.items.insert_one({"_id": 1, "price": 30})
    >>> shop.commit("first items")
    >>> sale = shop.branch("sale")                    # the database shop@sale
    >>> sale.items.update_many({}, {"$mul": {"price": 0.5}})
    >>> sale.commit("half price")
    >>> shop.diff("main", "sale")                     # one line a change; a table in a notebook
    >>> shop.merge("sale")

All that PyMongo does works: bulk writes, transactions, aggregations, GridFS, and what others built
on it (MongoEngine, PyMongoArrow).
"""

from fronddb._native import DirectoryInUse, FrondError, __version__
from fronddb.client import Client, connect, open, open_async
from fronddb.database import Database, MergeConflicts
from fronddb.results import Branch, Change, Commit, Conflict

__all__ = [
    "Branch",
    "Change",
    "Client",
    "Commit",
    "Conflict",
    "Database",
    "DirectoryInUse",
    "FrondError",
    "MergeConflicts",
    "__version__",
    "connect",
    "open",
    "open_async",
]
