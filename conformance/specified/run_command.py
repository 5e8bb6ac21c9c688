"""Run command: commands as they are, and cursors that they return."""

from bson import Int64
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("run-command")


@SPECIFICATION.case
def sent_as_it_is(given):
    """A command has the database and a session, and no read or write concern but what it was given."""
    client, _, events = given.watched()
    database = client.get_database(given.name, read_concern=ReadConcern("majority"))
    equal(database.command("ping")["ok"], 1)
    sent = events.sent("ping")[0]
    equal((sent["$db"], "lsid" in sent, "readConcern" in sent, "writeConcern" in sent), (given.name, True, False, False))


@SPECIFICATION.case
def explicit_session(given):
    """A command in a session has its id."""
    client, _, events = given.watched()
    with client.start_session() as session:
        client[given.name].command("ping", session=session)
        equal(events.sent("ping")[0]["lsid"], session.session_id)


@SPECIFICATION.case
def errors(given):
    """A command that is unknown, or has a field that is, fails with its code and code's name."""
    error = refused(59, lambda: given.database.command("noSuchCommand"), OperationFailure)
    equal(error.details["codeName"], "CommandNotFound")
    error = refused(40415, lambda: given.database.command("find", "items", noSuchField=1), OperationFailure)
    equal(error.details["ok"], 0)


@SPECIFICATION.case
def write_errors(given):
    """A command with write errors has succeeded, and its answer has them."""
    answer = given.database.command("insert", "items", documents=[{"_id": 1}, {"_id": 1}])
    equal((answer["ok"], answer["n"], [it["index"] for it in answer["writeErrors"]]), (1, 1, [1]))


@SPECIFICATION.case
def cursor_of_find(given):
    """A cursor command's batches are read to the end, by the session that it began in."""
    given.items.insert_many([{"_id": number} for number in range(5)])
    client, _, events = given.watched()
    cursor = client[given.name].cursor_command({"find": "items", "batchSize": 2})
    equal(ids(cursor), [0, 1, 2, 3, 4])
    equal(len({str(event.command["lsid"]) for event in events.begun}), 1)
    equal(events.names()[:2], ["find", "getMore"])
    equal({sent["collection"] for sent in events.sent("getMore")}, {"items"})


@SPECIFICATION.case
def cursor_of_listing(given):
    """listCollections, listIndexes and aggregate: 1 return cursors of namespaces that getMore takes."""
    for name in ("a", "b", "c"):
        given.database.create_collection(name)
    command = {"listCollections": 1, "cursor": {"batchSize": 1}, "nameOnly": True}
    equal(sorted(it["name"] for it in given.database.cursor_command(command)), ["a", "b", "c"])
    command = {"listIndexes": "a", "cursor": {"batchSize": 1}}
    equal([it["name"] for it in given.database.cursor_command(command)], ["_id_"])
    pipeline = [{"$documents": [{"x": 1}, {"x": 2}]}]
    command = {"aggregate": 1, "pipeline": pipeline, "cursor": {"batchSize": 1}}
    equal(list(given.database.cursor_command(command)), [{"x": 1}, {"x": 2}])


@SPECIFICATION.case
def options_of_get_more(given):
    """A getMore has its own batchSize and comment, and maxTimeMS only for a cursor that awaits data."""
    given.items.insert_many([{"_id": number} for number in range(4)])
    found = given.database.command("find", "items", batchSize=1)["cursor"]
    more = given.database.command("getMore", found["id"], collection="items", batchSize=2, comment={"a": 1})
    equal(ids(more["cursor"]["nextBatch"]), [1, 2])
    refused(2, lambda: given.database.command("getMore", found["id"], collection="items", maxTimeMS=10))


@SPECIFICATION.case
def killed_cursor(given):
    """A killed cursor's getMore fails with CursorNotFound (43); killCursors says which it killed."""
    given.items.insert_many([{"_id": number} for number in range(4)])
    cursor = given.database.command("find", "items", batchSize=1)["cursor"]["id"]
    answer = given.database.command("killCursors", "items", cursors=[cursor, Int64(12345)])
    equal((answer["cursorsKilled"], answer["cursorsNotFound"]), ([cursor], [12345]))
    refused(43, lambda: given.database.command("getMore", cursor, collection="items"))


@SPECIFICATION.case
def in_a_transaction(given):
    """A command in a transaction has its number, and begins it."""
    client, items, events = given.watched()
    with client.start_session() as session, session.start_transaction():
        client[given.name].command("insert", "items", documents=[{"_id": 1}], session=session)
        equal(events.sent("insert")[0]["startTransaction"], True)
        equal(items.count_documents({}), 0)
    equal(items.count_documents({}), 1)


@SPECIFICATION.case
def read_preference(given):
    """A command to a database with any read preference is answered by the set's only member."""
    for mode in ("primary", "primaryPreferred", "secondaryPreferred", "nearest"):
        given.items.insert_one({"mode": mode})
        command = {"find": "items", "filter": {"mode": mode}, "$readPreference": {"mode": mode}}
        equal(len(given.database.command(command)["cursor"]["firstBatch"]), 1)
