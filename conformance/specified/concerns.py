"""Read and write concern: what is taken, what can't be met, and how that is told."""

from pymongo.errors import WriteConcernError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("read-write-concern")


@SPECIFICATION.case
def levels(given):
    """find, aggregate, count and distinct take each level, and see what was acknowledged."""
    given.items.insert_one({"_id": 1})
    for level in ("local", "available", "majority", "linearizable"):
        items = given.items.with_options(read_concern=ReadConcern(level))
        equal((ids(items.find()), ids(items.aggregate([])), items.distinct("_id")), ([1], [1], [1]))
        equal(items.count_documents({}), 1)


@SPECIFICATION.case
def unknown_level(given):
    """A level that isn't one is an error, before anything is read."""
    refused(2, lambda: given.items.with_options(read_concern=ReadConcern("none")).find_one())


@SPECIFICATION.case
def writing_pipelines(given):
    """$out takes level majority, and not linearizable."""
    given.items.insert_one({"_id": 1})
    out = [{"$out": "copies"}]
    list(given.items.with_options(read_concern=ReadConcern("majority")).aggregate(out))
    equal(ids(given.database.copies.find()), [1])
    refused(72, lambda: list(given.items.with_options(read_concern=ReadConcern("linearizable")).aggregate(out)))


@SPECIFICATION.case
def met(given):
    """w: 1, w: "majority", j and wtimeout are met by one member."""
    for concern in (WriteConcern(1), WriteConcern("majority"), WriteConcern(j=True), WriteConcern("majority", 1000, True)):
        equal(given.items.with_options(write_concern=concern).insert_one({}).acknowledged, True)
    equal(given.items.count_documents({}), 4)


@SPECIFICATION.case
def too_many_members(given):
    """w: 2 can't be met by one member (100): the write is there, and the concern's error says who asked for it."""
    items = given.items.with_options(write_concern=WriteConcern(2, wtimeout=100))
    error = refused(100, lambda: items.insert_one({"_id": 1}), WriteConcernError)
    equal(error.details["errInfo"]["writeConcern"], {"w": 2, "wtimeout": 100, "provenance": "clientSupplied"})
    equal(given.items.count_documents({}), 1)


@SPECIFICATION.case
def unknown_mode(given):
    """A mode that no configuration has is UnknownReplWriteConcern (79), as an error of the concern alone."""
    answer = given.database.command("insert", "items", documents=[{}], writeConcern={"w": "everywhere"})
    equal((answer["n"], answer["writeConcernError"]["code"]), (1, 79))


@SPECIFICATION.case
def wrong_concerns(given):
    """A concern that is none fails the command: nothing is written."""
    for concern, code in (({"w": 51}, 9), ({"w": -1}, 9), ({"w": 1, "none": 1}, 40415)):
        refused(code, lambda concern=concern: given.database.command("insert", "items", documents=[{}], writeConcern=concern))
    equal(given.items.count_documents({}), 0)


@SPECIFICATION.case
def with_write_errors(given):
    """A write with write errors and a concern that can't be met tells both."""
    command = {"insert": "items", "documents": [{"_id": 1}, {"_id": 1}], "writeConcern": {"w": 2}}
    answer = given.database.command(command)
    equal((answer["n"], answer["writeErrors"][0]["code"], answer["writeConcernError"]["code"]), (1, 11000, 100))


@SPECIFICATION.case
def of_every_write(given):
    """Commands that write something else have the concern's error, too: create, drop, indexes, findAndModify."""
    concern = {"w": 2}
    commands = [
        {"create": "items"},
        {"createIndexes": "items", "indexes": [{"key": {"x": 1}, "name": "x_1"}]},
        {"findAndModify": "items", "query": {}, "update": {"x": 1}, "upsert": True},
        {"aggregate": "items", "pipeline": [{"$out": "copies"}], "cursor": {}},
        {"dropIndexes": "items", "index": "x_1"},
        {"drop": "items"},
        {"dropDatabase": 1},
    ]
    for command in commands:
        answer = given.database.command({**command, "writeConcern": concern}, check=False)
        equal((next(iter(command)), answer["ok"], answer["writeConcernError"]["code"]), (next(iter(command)), 1, 100))


@SPECIFICATION.case
def defaults(given):
    """Commands without a concern have the cluster's default, which must be one that can be met."""
    default = {"w": "majority", "wtimeout": 0}
    refused(100, lambda: given.admin.command("setDefaultRWConcern", 1, defaultWriteConcern={"w": 2}))
    refused(2, lambda: given.admin.command("setDefaultRWConcern", 1, defaultWriteConcern={"w": 0}))
    given.admin.command("setDefaultRWConcern", 1, defaultWriteConcern=default, defaultReadConcern={"level": "majority"})
    found = given.admin.command("getDefaultRWConcern")
    equal((found["defaultWriteConcern"], found["defaultWriteConcernSource"]), (default, "global"))
    equal((found["defaultReadConcern"], given.items.insert_one({}).acknowledged), ({"level": "majority"}, True))
