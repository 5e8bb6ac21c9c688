"""Transactions: when what is seen, what ends one, and which errors say "again"."""

from bson import Int64
from pymongo import InsertOne
from pymongo.errors import AutoReconnect, DuplicateKeyError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("transactions")
TRANSIENT, UNKNOWN = "TransientTransactionError", "UnknownTransactionCommitResult"


@SPECIFICATION.case
def commits(given):
    """What a transaction writes is seen by itself at once, and by others from its commit on."""
    with given.client.start_session() as session:
        session.start_transaction()
        given.items.insert_one({"_id": 1}, session=session)
        equal((ids(given.items.find(session=session)), ids(given.items.find())), ([1], []))
        session.commit_transaction()
    equal(ids(given.items.find()), [1])


@SPECIFICATION.case
def aborts(given):
    """An abort takes back all: documents, indexes and collections."""
    with given.client.start_session() as session:
        session.start_transaction()
        given.items.insert_one({"_id": 1}, session=session)
        given.database.create_collection("made", session=session)
        session.abort_transaction()
    equal((given.items.count_documents({}), given.database.list_collection_names()), (0, []))


@SPECIFICATION.case
def fields(given):
    """The first command begins it and has its read concern; only the commit has a write concern."""
    _, items, events = given.watched()
    with items.database.client.start_session() as session:
        session.start_transaction(ReadConcern("snapshot"), WriteConcern("majority"))
        items.insert_one({}, session=session)
        items.find_one(session=session)
        session.commit_transaction()
        sent = [event.command for event in events.begun]
        equal([command.get("startTransaction") for command in sent], [True, None, None])
        equal([command["autocommit"] for command in sent], [False] * 3)
        equal([command.get("readConcern") for command in sent], [{"level": "snapshot"}, None, None])
        equal([command.get("writeConcern") for command in sent], [None, None, {"w": "majority"}])
        equal({command["txnNumber"] for command in sent}, {1})


@SPECIFICATION.case
def of_one_moment(given):
    """A transaction reads one snapshot, whatever is written beside it."""
    given.items.insert_one({"_id": 1})
    with given.client.start_session() as session:
        session.start_transaction(ReadConcern("snapshot"))
        equal(ids(given.items.find(session=session)), [1])
        given.items.insert_one({"_id": 2})
        equal(ids(given.items.find(session=session)), [1])
        session.commit_transaction()
        equal(ids(given.items.find(session=session)), [1, 2])


@SPECIFICATION.case
def conflicts(given):
    """A write of a document that another wrote since is WriteConflict (112), is transient, and ends it."""
    given.items.insert_one({"_id": 1, "x": 1})
    with given.client.start_session() as session:
        session.start_transaction(ReadConcern("snapshot"))
        given.items.find_one(session=session)
        given.items.update_one({"_id": 1}, {"$inc": {"x": 1}})
        error = refused(112, lambda: given.items.update_one({"_id": 1}, {"$inc": {"x": 1}}, session=session))
        equal(error.has_error_label(TRANSIENT), True)
        error = refused(251, session.commit_transaction)
        equal(error.has_error_label(TRANSIENT), True)
    equal(given.items.find_one()["x"], 2)


@SPECIFICATION.case
def errors_end_it(given):
    """An error of a write ends the transaction: what was written is gone, and so is the transaction (251)."""
    given.items.insert_one({"_id": 1})
    with given.client.start_session() as session:
        session.start_transaction()
        given.items.insert_one({"_id": 2}, session=session)
        error = refused(11000, lambda: given.items.insert_one({"_id": 1}, session=session), DuplicateKeyError)
        equal(error.has_error_label(TRANSIENT), False)
        refused(251, lambda: given.items.find_one(session=session))
        session.abort_transaction()
    equal(ids(given.items.find()), [1])


@SPECIFICATION.case
def commit_again(given):
    """A commit can be repeated; a second one changes nothing."""
    with given.client.start_session() as session:
        session.start_transaction()
        given.items.insert_one({"_id": 1}, session=session)
        session.commit_transaction()
        session.commit_transaction()
    equal(ids(given.items.find()), [1])


@SPECIFICATION.case
def lost_commit(given):
    """A commit whose answer was lost is sent again with w: "majority", and is done once."""
    client, items, events = given.watched()
    given.fail(["commitTransaction"], closeConnection=True)
    with client.start_session() as session, session.start_transaction():
        items.insert_one({"_id": 1}, session=session)
    first, again = events.sent("commitTransaction")
    equal((first.get("writeConcern"), again["writeConcern"]["w"]), (None, "majority"))
    equal(ids(items.find()), [1])


@SPECIFICATION.case
def unknown_results(given):
    """A commit that fails twice so that nobody knows its outcome says that: the label; and can be sent again."""
    client, items, _ = given.watched()
    given.fail(["commitTransaction"], 2, closeConnection=True)
    with client.start_session() as session:
        session.start_transaction()
        items.insert_one({"_id": 1}, session=session)
        error = refused(None, session.commit_transaction, AutoReconnect)
        equal((error.has_error_label(UNKNOWN), error.has_error_label(TRANSIENT)), (True, False))
        session.commit_transaction()
    equal(ids(items.find()), [1])


@SPECIFICATION.case
def concern_of_commit(given):
    """A commit whose concern can't be met in time has an unknown result, and is there."""
    with given.client.start_session() as session:
        session.start_transaction(write_concern=WriteConcern("majority"))
        given.items.insert_one({"_id": 1}, session=session)
        wtimeout = {"code": 64, "errmsg": "waiting for replication timed out", "errInfo": {"wtimeout": True}}
        given.fail(["commitTransaction"], writeConcernError=wtimeout)
        equal(refused(64, session.commit_transaction).has_error_label(UNKNOWN), True)
    equal(ids(given.items.find()), [1])


@SPECIFICATION.case
def concern_within(given):
    """An error of a write concern within has no label: the write is done, and neither it nor all is repeated."""
    stops = {"code": 91, "errmsg": "stops"}
    given.fail(["insert"], writeConcernError=stops)
    with given.client.start_session() as session:
        session.start_transaction()
        error = refused(91, lambda: given.items.insert_one({"_id": 1}, session=session))
        equal((error.has_error_label(TRANSIENT), error.has_error_label("RetryableWriteError")), (False, False))
        session.commit_transaction()
    equal(ids(given.items.find()), [1])


@SPECIFICATION.case
def network_errors(given):
    """A network error within is transient; the transaction can be aborted, and nothing of it is there."""
    client, items, events = given.watched()
    given.fail(["insert"], closeConnection=True)
    with client.start_session() as session:
        session.start_transaction()
        error = refused(None, lambda: items.insert_one({"_id": 1}, session=session), AutoReconnect)
        equal((error.has_error_label(TRANSIENT), len(events.sent("insert"))), (True, 1))
        session.abort_transaction()
    equal((events.names()[-1], items.count_documents({})), ("abortTransaction", 0))


@SPECIFICATION.case
def lost_abort(given):
    """An abort's error is ignored, and so is that of its repetition."""
    client, items, events = given.watched()
    given.fail(["abortTransaction"], 2, closeConnection=True)
    with client.start_session() as session:
        session.start_transaction()
        items.insert_one({"_id": 1}, session=session)
        session.abort_transaction()
    equal((len(events.sent("abortTransaction")), items.count_documents({})), (2, 0))


@SPECIFICATION.case
def what_cannot_be_within(given):
    """Commands that can't be part of a transaction are refused with 263, concerns within with 72."""
    given.items.insert_one({})
    for command in ({"count": "items"}, {"drop": "items"}, {"listCollections": 1}, {"explain": {"find": "items"}}):
        with given.client.start_session() as session:
            session.start_transaction()
            refused(263, lambda command=command, session=session: given.database.command(command, session=session))
            session.abort_transaction()
    with given.client.start_session() as session:
        session.start_transaction()
        command = {"insert": "items", "documents": [{}], "writeConcern": {"w": 1}}
        refused(72, lambda: given.database.command(command, session=session))
        session.abort_transaction()


@SPECIFICATION.case
def unknown_transactions(given):
    """A statement of a transaction that never began, or is over, is NoSuchTransaction (251); an old number 225."""
    with given.client.start_session() as session:
        session.start_transaction()
        given.items.insert_one({}, session=session)
        command = {"find": "items", "lsid": session.session_id, "autocommit": False}
        equal([given.raw(**command, txnNumber=Int64(number))["code"] for number in (2_000, 0)], [251, 225])
        session.abort_transaction()


@SPECIFICATION.case
def cursors_within(given):
    """A cursor that a transaction began is read within it, to its end."""
    given.items.insert_many([{"_id": number} for number in range(5)])
    with given.client.start_session() as session, session.start_transaction():
        cursor = given.items.find(batch_size=2, session=session)
        next(cursor)
        given.items.insert_one({"in": 1}, session=session)

        equal(ids(cursor), [1, 2, 3, 4])


@SPECIFICATION.case
def bulk_writes(given):
    """A client's bulkWrite is part of it, and so is the rest of its results."""
    with given.client.start_session() as session:
        session.start_transaction()
        parts = [InsertOne({"_id": number}, namespace=f"{given.name}.items") for number in (1, 2)]
        result = given.client.bulk_write(parts, session=session, verbose_results=True)
        equal((sorted(result.insert_results), given.items.count_documents({})), ([0, 1], 0))
        fields = {"lsid": session.session_id, "txnNumber": Int64(session._server_session.transaction_id), "autocommit": False}
        command = {"bulkWrite": 1, "ops": [{"insert": 0, "document": {}}] * 2, "nsInfo": [{"ns": f"{given.name}.items"}]}
        cursor = given.raw(**command, **fields, cursor={"batchSize": 1}, database="admin")["cursor"]["id"]
        more = given.raw(getMore=cursor, collection="$cmd.bulkWrite", **fields, database="admin")
        equal(len(more["cursor"]["nextBatch"]), 1)
        session.commit_transaction()
    equal(given.items.count_documents({}), 4)


@SPECIFICATION.case
def retryable_within(given):
    """Writes within aren't sent again by themselves: they have the transaction's number and no own."""
    client, items, events = given.watched()
    with client.start_session() as session:
        for number in (1, 2):
            with session.start_transaction():
                items.insert_one({"_id": number}, session=session)
                items.update_one({"_id": number}, {"$set": {"x": 1}}, session=session)
    equal([command["txnNumber"] for command in events.sent("update")], [1, 2])
    equal(items.count_documents({"x": 1}), 2)
