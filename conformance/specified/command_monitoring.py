"""Command logging and monitoring: what the events of a command show of the server's answers."""

import contextlib

from pymongo import InsertOne
from pymongo.errors import OperationFailure
from pymongo.write_concern import WriteConcern

from specified.setting import Specification, equal, refused

SPECIFICATION = Specification("command-monitoring")


@SPECIFICATION.case
def find(given):
    """A find's answer is a cursor with its namespace and first batch."""
    given.items.insert_many([{"_id": 1}, {"_id": 2}])
    _, items, events = given.watched()
    list(items.find({"_id": {"$gt": 1}}, comment="why"))
    cursor = events.replies("find")[0]["cursor"]
    equal((cursor["id"], cursor["ns"], cursor["firstBatch"]), (0, f"{given.name}.items", [{"_id": 2}]))
    equal((events.sent("find")[0]["comment"], events.begun[0].database_name), ("why", given.name))


@SPECIFICATION.case
def get_more(given):
    """A cursor's batches and end are events of their own."""
    given.items.insert_many([{"_id": number} for number in range(3)])
    _, items, events = given.watched()
    list(items.find(batch_size=2))
    first, more = events.replies("find")[0]["cursor"], events.replies("getMore")[0]["cursor"]
    equal((events.sent("getMore")[0]["getMore"], events.sent("getMore")[0]["collection"]), (first["id"], "items"))
    equal((more["id"], more["ns"], more["nextBatch"]), (0, f"{given.name}.items", [{"_id": 2}]))


@SPECIFICATION.case
def kill_cursors(given):
    """A cursor that is closed early is killed, and the answer names it."""
    given.items.insert_many([{} for _ in range(3)])
    _, items, events = given.watched()
    cursor = items.find(batch_size=1)
    next(cursor)
    cursor.close()
    identity = events.replies("find")[0]["cursor"]["id"]
    answer = events.replies("killCursors")[0]
    equal((answer["cursorsKilled"], answer["cursorsNotFound"], answer["cursorsAlive"]), ([identity], [], []))


@SPECIFICATION.case
def failures(given):
    """A command that fails is a failure with its code; the command's own event came before."""
    _, items, events = given.watched()
    refused(2, lambda: items.find_one({"$none": 1}), OperationFailure)
    failure = events.errors[0]
    equal((failure.failure["code"], failure.failure["codeName"], failure.command_name), (2, "BadValue", "find"))
    equal((failure.request_id, events.replies("find")), (events.begun[0].request_id, []))


@SPECIFICATION.case
def write_errors(given):
    """A write with write errors, or an error of its concern, has succeeded."""
    _, items, events = given.watched()
    items.insert_one({"_id": 1})
    for documents, concern in (([{"_id": 1}], None), ([{"_id": 2}], WriteConcern(2))):
        with contextlib.suppress(OperationFailure):
            items.with_options(write_concern=concern).insert_many(documents)
    duplicate, unmet = events.replies("insert")[1:]
    equal((duplicate["ok"], duplicate["n"], duplicate["writeErrors"][0]["code"]), (1, 0, 11000))
    equal((unmet["ok"], unmet["n"], unmet["writeConcernError"]["code"], events.errors), (1, 1, 100, []))


@SPECIFICATION.case
def writes(given):
    """Writes answer with their counts; an upsert with index and _id."""
    _, items, events = given.watched()
    items.bulk_write([InsertOne({"_id": 1}), InsertOne({"_id": 2})])
    items.update_one({"_id": 3}, {"$set": {"x": 1}}, upsert=True)
    items.update_many({"_id": {"$lt": 3}}, {"$set": {"x": 1}})
    items.delete_many({"x": 1})
    equal([(reply["ok"], reply["n"]) for reply in events.replies("insert") + events.replies("delete")], [(1, 2), (1, 3)])
    upserted, updated = events.replies("update")
    equal((upserted["n"], upserted["nModified"], upserted["upserted"]), (1, 0, [{"index": 0, "_id": 3}]))
    equal((updated["n"], updated["nModified"], "upserted" in updated), (2, 2, False))


@SPECIFICATION.case
def unacknowledged(given):
    """A write that isn't acknowledged has succeeded at once, with ok alone."""
    _, items, events = given.watched()
    items.with_options(write_concern=WriteConcern(0)).insert_one({"_id": 1})
    equal((events.replies("insert"), events.sent("insert")[0]["writeConcern"]), ([{"ok": 1}], {"w": 0}))


@SPECIFICATION.case
def connections(given):
    """The server numbers its connections: an event has the number that hello told on its own."""
    client, _, events = given.watched(maxPoolSize=1)
    told = client.admin.command("hello")["connectionId"]
    equal(({event.server_connection_id for event in events.begun}, isinstance(told, int)), ({told}, True))


@SPECIFICATION.case
def secrets(given):
    """Commands with passwords have no content in events; nor does a hello that logs in."""
    client, _, events = given.watched()
    client[given.name].command("createUser", "ann", pwd="correct horse", roles=[])
    given.stack.callback(given.database.command, "dropUser", "ann")
    login = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": b"n,,n=ann,r=abc"}
    with contextlib.suppress(OperationFailure):
        client[given.name].command({"hello": 1, "speculativeAuthenticate": {**login, "db": given.name}})
    equal([event.command for event in events.begun], [{}, {}])
    equal([event.reply for event in events.done], [{}, {}])


@SPECIFICATION.case
def same_request(given):
    """Beginning and end of a command have the same request and connection."""
    _, items, events = given.watched()
    items.insert_one({})
    items.find_one()
    pairs = [(event.request_id, event.connection_id, event.server_connection_id) for event in events.begun]
    equal([(event.request_id, event.connection_id, event.server_connection_id) for event in events.done], pairs)
    equal(len({pair[0] for pair in pairs}), 2)
