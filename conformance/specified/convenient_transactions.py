"""Convenient API for transactions: a callback that is run until its transaction commits."""

from unittest import mock

from pymongo import client_session_shared
from pymongo.errors import DuplicateKeyError
from pymongo.synchronous import client_session
from pymongo.write_concern import WriteConcern

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("transactions-convenient-api")
TRANSIENT, UNKNOWN = "TransientTransactionError", "UnknownTransactionCommitResult"
NOT_PRIMARY, CONFLICT, TIMED_OUT = 10107, 112, 50


class Callback:
    """A callback that inserts, and counts how often it was run."""

    def __init__(self, items):
        self.items, self.calls = items, 0

    def __call__(self, session):
        self.calls += 1
        self.items.insert_one({"_id": 1, "call": self.calls}, session=session)
        return "done"


@SPECIFICATION.case
def commits(given):
    """It begins a transaction, commits what the callback did, and returns what that returned."""
    callback = Callback(given.items)
    with given.client.start_session() as session:
        equal(session.with_transaction(callback), "done")
    equal((callback.calls, ids(given.items.find())), (1, [1]))


@SPECIFICATION.case
def transient_errors(given):
    """A transient error of the callback runs it again, in a new transaction."""
    client, items, events = given.watched()
    callback = Callback(items)
    given.fail(["insert"], 2, errorCode=CONFLICT, errorLabels=[TRANSIENT])
    with client.start_session() as session:
        session.with_transaction(callback)
    equal((callback.calls, list(items.find())), (3, [{"_id": 1, "call": 3}]))
    equal([command["txnNumber"] for command in events.sent("insert")], [1, 2, 3])


@SPECIFICATION.case
def labels_of_the_server(given):
    """WriteConflict in a transaction has the transient label without being told to."""
    callback = Callback(given.items)
    given.fail(["insert"], errorCode=CONFLICT)
    with given.client.start_session() as session:
        session.with_transaction(callback)
    equal(callback.calls, 2)


@SPECIFICATION.case
def other_errors(given):
    """Another error of the callback ends the transaction, and is raised."""
    given.items.insert_one({"_id": 1})
    callback = Callback(given.items)

    def write_twice(session):
        given.database.others.insert_one({}, session=session)
        callback(session)

    with given.client.start_session() as session:
        refused(11000, lambda: session.with_transaction(write_twice), DuplicateKeyError)
        equal(session.in_transaction, False)
    equal((callback.calls, given.database.others.count_documents({})), (1, 0))


@SPECIFICATION.case
def errors_of_its_own(given):
    """An error that isn't the server's takes the transaction back, too."""

    def raises(session):
        given.items.insert_one({}, session=session)
        raise KeyError("mine")

    with given.client.start_session() as session:
        refused(None, lambda: session.with_transaction(raises), KeyError)
    equal(given.items.count_documents({}), 0)


@SPECIFICATION.case
def unknown_commits(given):
    """A commit with an unknown result is sent again, and the callback isn't run again."""
    client, items, events = given.watched()
    callback = Callback(items)
    given.fail(["commitTransaction"], 2, errorCode=NOT_PRIMARY, closeConnection=False)
    with client.start_session() as session:
        session.with_transaction(callback)
    equal((callback.calls, len(events.sent("commitTransaction"))), (1, 3))
    equal(events.sent("commitTransaction")[-1]["writeConcern"]["w"], "majority")
    equal(ids(items.find()), [1])


@SPECIFICATION.case
def transient_commits(given):
    """A commit that fails for good and transiently (251) runs the callback again."""
    callback = Callback(given.items)
    given.fail(["commitTransaction"], 1, errorCode=251)
    with given.client.start_session() as session:
        session.with_transaction(callback)
    equal((callback.calls, list(given.items.find())), (2, [{"_id": 1, "call": 2}]))


@SPECIFICATION.case
def commits_out_of_time(given):
    """A commit that took longer than its maxTimeMS isn't sent again."""
    client, items, events = given.watched()
    given.fail(["commitTransaction"], errorCode=TIMED_OUT)
    with client.start_session() as session:
        error = refused(TIMED_OUT, lambda: session.with_transaction(Callback(items), max_commit_time_ms=500))
    equal((error.has_error_label(UNKNOWN), len(events.sent("commitTransaction"))), (True, 1))


@SPECIFICATION.case
def concern_out_of_time(given):
    """A commit whose write concern timed out is sent again, until the time for all of it is over."""
    client, items, events = given.watched()
    wtimeout = {"code": 64, "errmsg": "timed out", "errInfo": {"wtimeout": True}}
    given.fail(["commitTransaction"], 2, writeConcernError=wtimeout)
    with client.start_session() as session:
        session.with_transaction(Callback(items), write_concern=WriteConcern("majority"))
    equal((len(events.sent("commitTransaction")), ids(items.find())), (3, [1]))


@SPECIFICATION.case
def ended_by_the_callback(given):
    """A callback may commit or abort by itself: then nothing else is sent."""
    client, items, events = given.watched()

    def aborts(session):
        Callback(items)(session)
        session.abort_transaction()

    def commits_itself(session):
        Callback(items)(session)
        session.commit_transaction()

    with client.start_session() as session:
        session.with_transaction(aborts)
        equal(items.count_documents({}), 0)
        session.with_transaction(commits_itself)
    equal((len(events.sent("commitTransaction")), len(events.sent("abortTransaction")), ids(items.find())), (1, 1, [1]))


@SPECIFICATION.case
def time_for_all(given):
    """When the time for all of it is over, the last error is raised."""
    module = next(it for it in (client_session, client_session_shared) if hasattr(it, "_WITH_TRANSACTION_RETRY_TIME_LIMIT"))
    callback = Callback(given.items)
    given.fail(["insert"], "alwaysOn", errorCode=CONFLICT, errorLabels=[TRANSIENT])
    with mock.patch.object(module, "_WITH_TRANSACTION_RETRY_TIME_LIMIT", 0), given.client.start_session() as session:
        refused(None, lambda: session.with_transaction(callback))
    equal(callback.calls, 1)


@SPECIFICATION.case
def conflicting(given):
    """Two that write the same document both get through, one after the other."""
    given.items.insert_one({"_id": 0, "x": 0})
    calls = []

    def adds(session):
        found = given.items.find_one({"_id": 0}, session=session)
        if not calls:
            given.items.update_one({"_id": 0}, {"$inc": {"x": 10}})
        calls.append(found["x"])
        given.items.update_one({"_id": 0}, {"$set": {"x": found["x"] + 1}}, session=session)

    with given.client.start_session() as session:
        session.with_transaction(adds)
    equal((calls, given.items.find_one()["x"]), ([0, 10], 11))
