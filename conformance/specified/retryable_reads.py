"""Retryable reads: which reads are sent once more, and after which errors."""

from pymongo.errors import AutoReconnect, OperationFailure

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("retryable-reads")
# As the specification lists them, and what a driver must not repeat.
RETRYABLE = (11600, 11602, 10107, 13435, 13436, 189, 91, 7, 6, 89, 9001, 134, 262)
OTHERS = (1, 13, 26, 50, 11601, 96)


def reads(given, client):
    """A command's name, and how it is asked for."""
    items = client[given.name].items
    return (
        ("find", lambda: list(items.find())),
        ("aggregate", lambda: list(items.aggregate([{"$match": {}}]))),
        ("count", items.estimated_document_count),
        ("distinct", lambda: items.distinct("x")),
        ("listCollections", client[given.name].list_collection_names),
        ("listIndexes", lambda: list(items.list_indexes())),
        ("listDatabases", client.list_database_names),
    )


@SPECIFICATION.case
def every_read(given):
    """Each command that only reads is sent once more after a network error, and is answered."""
    given.items.insert_one({"_id": 1})
    client, _, events = given.watched()
    for name, read in reads(given, client):
        given.fail([name], closeConnection=True)
        events.clear()
        read()
        equal((name, events.names().count(name)), (name, 2))


@SPECIFICATION.case
def every_code(given):
    """Each error that says that the server was in no state to answer is followed by a second try."""
    given.items.insert_one({"_id": 1})
    client, items, events = given.watched()
    for code in RETRYABLE:
        given.fail(["find"], errorCode=code)
        events.clear()
        equal((code, ids(items.find()), len(events.sent("find"))), (code, [1], 2))
    equal(client.admin.command("ping")["ok"], 1)


@SPECIFICATION.case
def other_codes(given):
    """Other errors are raised at once."""
    _, items, events = given.watched()
    for code in OTHERS:
        given.fail(["find"], errorCode=code)
        events.clear()
        refused(code, items.find_one, OperationFailure)
        equal((code, len(events.sent("find"))), (code, 1))


@SPECIFICATION.case
def only_once(given):
    """A second failure is raised."""
    _, items, events = given.watched()
    given.fail(["find"], 2, closeConnection=True)
    refused(None, items.find_one, AutoReconnect)
    equal(len(events.sent("find")), 2)
    equal(items.find_one(), None)


@SPECIFICATION.case
def turned_off(given):
    """With retryReads=false nothing is repeated."""
    _, items, events = given.watched(retryReads=False)
    given.fail(["find"], closeConnection=True)
    refused(None, items.find_one, AutoReconnect)
    equal(len(events.sent("find")), 1)


@SPECIFICATION.case
def get_more(given):
    """A getMore isn't repeated, since the batch may be gone."""
    given.items.insert_many([{}, {}, {}])
    _, items, events = given.watched()
    cursor = items.find(batch_size=2)
    next(cursor)
    given.fail(["getMore"], closeConnection=True)
    refused(None, lambda: list(cursor), AutoReconnect)
    equal(len(events.sent("getMore")), 1)


@SPECIFICATION.case
def writing_pipelines(given):
    """An aggregate that writes isn't repeated."""
    given.items.insert_one({})
    _, items, events = given.watched()
    given.fail(["aggregate"], closeConnection=True)
    refused(None, lambda: items.aggregate([{"$out": "copies"}]), AutoReconnect)
    equal((len(events.sent("aggregate")), given.database.list_collection_names()), (1, ["items"]))


@SPECIFICATION.case
def same_session(given):
    """The repetition has the session of the first try, and no transaction's number."""
    _, items, events = given.watched()
    given.fail(["find"], closeConnection=True)
    items.find_one()
    first, again = events.sent("find")
    equal((first["lsid"], "txnNumber" in again), (again["lsid"], False))


@SPECIFICATION.case
def in_a_transaction(given):
    """Within a transaction a read isn't repeated: its error is transient."""
    client, items, events = given.watched()
    given.fail(["find"], closeConnection=True)
    with client.start_session() as session:
        session.start_transaction()
        error = refused(None, lambda: items.find_one(session=session), AutoReconnect)
        equal((error.has_error_label("TransientTransactionError"), len(events.sent("find"))), (True, 1))
        session.abort_transaction()
    equal(events.names()[-1], "abortTransaction")


@SPECIFICATION.case
def change_streams(given):
    """The first aggregate of a change stream is repeated as a read is."""
    client, items, events = given.watched()
    given.items.insert_one({})
    given.fail(["aggregate"], closeConnection=True)
    with items.watch(max_await_time_ms=50):
        equal(len(events.sent("aggregate")), 2)
    equal(client.admin.command("ping")["ok"], 1)
