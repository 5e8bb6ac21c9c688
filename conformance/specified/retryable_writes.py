"""Retryable writes: sent again, done once."""

import uuid

from bson import Binary, Int64
from pymongo import DeleteOne, InsertOne, UpdateOne
from pymongo.errors import AutoReconnect, OperationFailure

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("retryable-writes")
RETRYABLE = (11600, 11602, 10107, 13435, 13436, 189, 91, 7, 6, 89, 9001, 262)
LABEL = "RetryableWriteError"


def lose_answers(given):
    """Has the next retryable write be done, and its answer lost."""
    given.fail(None, point="onPrimaryTransactionalWrite", closeConnection=True)


@SPECIFICATION.case
def lost_before(given):
    """A write that didn't arrive is sent again with the same number, and is done."""
    _, items, events = given.watched()
    given.fail(["insert"], closeConnection=True)
    items.insert_one({"_id": 1})
    first, again = events.sent("insert")
    equal((first["txnNumber"], first["lsid"]), (again["txnNumber"], again["lsid"]))
    equal(ids(items.find()), [1])


@SPECIFICATION.case
def lost_answers(given):
    """A write whose answer was lost isn't done twice, and is answered as the first time."""
    _, items, events = given.watched()
    lose_answers(given)
    equal(items.insert_one({"_id": 1, "x": 0}).inserted_id, 1)
    lose_answers(given)
    equal(items.update_one({"_id": 1}, {"$inc": {"x": 1}}).modified_count, 1)
    lose_answers(given)
    equal(items.replace_one({"_id": 2}, {"y": 1}, upsert=True).upserted_id, 2)
    equal(list(items.find()), [{"_id": 1, "x": 1}, {"_id": 2, "y": 1}])
    lose_answers(given)
    equal(items.delete_one({}).deleted_count, 1)
    equal((ids(items.find()), len(events.sent("update"))), ([2], 4))


@SPECIFICATION.case
def not_done(given):
    """A write whose connection was closed before it was done is sent again, and done then."""
    _, items, events = given.watched()
    given.fail(None, point="onPrimaryTransactionalWrite", failBeforeCommitExceptionCode=1)
    equal(items.update_one({"_id": 1}, {"$inc": {"x": 1}}, upsert=True).upserted_id, 1)
    equal((list(items.find()), len(events.sent("update"))), ([{"_id": 1, "x": 1}], 2))


@SPECIFICATION.case
def each_command(given):
    """Each command of a bulkWrite loses its answer once, if as many faults are set as it has statements."""
    _, items, events = given.watched()
    given.fail(None, 5, "onPrimaryTransactionalWrite", closeConnection=True)
    parts = [InsertOne({"_id": 1, "x": 0}), InsertOne({"_id": 2, "x": 0})]
    parts += [UpdateOne({"_id": number}, {"$inc": {"x": 1}}) for number in (1, 2)]
    result = items.bulk_write([*parts, DeleteOne({"_id": 2})])
    equal((result.inserted_count, result.modified_count, result.deleted_count), (2, 2, 1))
    equal(events.names(), [*["insert"] * 2, *["update"] * 2, *["delete"] * 2])
    equal(list(items.find()), [{"_id": 1, "x": 1}])


@SPECIFICATION.case
def lost_documents(given):
    """A findAndModify whose answer was lost returns the document of its first time."""
    _, items, _ = given.watched()
    items.insert_many([{"_id": 1, "x": 1}, {"_id": 2, "x": 1}])
    lose_answers(given)
    equal(items.find_one_and_update({"_id": 1}, {"$inc": {"x": 1}}), {"_id": 1, "x": 1})
    lose_answers(given)
    equal(items.find_one_and_delete({}, sort=[("_id", 1)]), {"_id": 1, "x": 2})
    equal(ids(items.find()), [2])


@SPECIFICATION.case
def bulk_writes(given):
    """A bulkWrite of retryable parts is repeated command by command."""
    _, items, events = given.watched()
    lose_answers(given)
    parts = [InsertOne({"_id": 1, "x": 0}), UpdateOne({"_id": 1}, {"$inc": {"x": 1}}), DeleteOne({"_id": 9})]
    result = items.bulk_write(parts)
    equal((result.inserted_count, result.modified_count, result.deleted_count), (1, 1, 0))
    equal((list(items.find()), len(events.sent("insert"))), ([{"_id": 1, "x": 1}], 2))


@SPECIFICATION.case
def client_bulk_writes(given):
    """A client's bulkWrite is one command, repeated as a whole and done once."""
    client, items, events = given.watched()
    lose_answers(given)
    namespace = f"{given.name}.items"
    parts = [InsertOne({"_id": 1}, namespace=namespace), UpdateOne({"_id": 1}, {"$inc": {"x": 1}}, namespace=namespace)]
    result = client.bulk_write(parts)
    equal((result.inserted_count, result.modified_count), (1, 1))
    equal((list(items.find()), len(events.sent("bulkWrite"))), ([{"_id": 1, "x": 1}], 2))


@SPECIFICATION.case
def of_many(given):
    """Writes of many documents have no number, and aren't repeated."""
    _, items, events = given.watched()
    for name, call in (("update", lambda: items.update_many({}, {"$inc": {"x": 1}})), ("delete", lambda: items.delete_many({}))):
        given.fail([name], closeConnection=True)
        refused(None, call, AutoReconnect)
        sent = events.sent(name)
        equal((len(sent), "txnNumber" in sent[0]), (1, False))


@SPECIFICATION.case
def labels(given):
    """The server says by a label that an error is to be followed by a second try."""
    _, items, events = given.watched()
    for number, code in enumerate(RETRYABLE):
        given.fail(["insert"], errorCode=code)
        events.clear()
        items.insert_one({"_id": number})
        equal((code, len(events.sent("insert"))), (code, 2))
    equal(items.count_documents({}), len(RETRYABLE))


@SPECIFICATION.case
def other_errors(given):
    """Other errors have no such label, and are raised."""
    _, items, events = given.watched()
    for code in (1, 11000, 50):
        given.fail(["insert"], errorCode=code)
        events.clear()
        error = refused(code, lambda: items.insert_one({}), OperationFailure)
        equal((error.has_error_label(LABEL), len(events.sent("insert"))), (False, 1))


@SPECIFICATION.case
def concern_errors(given):
    """A write concern's error that says that the server stops is followed by a second try, and written once."""
    _, items, events = given.watched()
    given.fail(["insert"], writeConcernError={"code": 91, "errmsg": "stops", "errorLabels": []}, errorLabels=[LABEL])
    items.insert_one({"_id": 1})
    equal((ids(items.find()), len(events.sent("insert"))), ([1], 2))


@SPECIFICATION.case
def only_once(given):
    """A second failure is raised, and says that it may be tried again."""
    _, items, events = given.watched()
    given.fail(["insert"], 2, errorCode=91)
    error = refused(91, lambda: items.insert_one({}))
    equal((error.has_error_label(LABEL), len(events.sent("insert"))), (True, 2))


@SPECIFICATION.case
def turned_off(given):
    """With retryWrites=false writes have no number, and errors no label."""
    _, items, events = given.watched(retryWrites=False)
    given.fail(["insert"], errorCode=91)
    error = refused(91, lambda: items.insert_one({}))
    equal((error.has_error_label(LABEL), "txnNumber" in events.sent("insert")[0]), (False, False))


@SPECIFICATION.case
def numbers(given):
    """The same number is answered from its record, naming its statements; a lower one is too old (225)."""
    lsid = {"id": Binary(uuid.uuid4().bytes, 4)}
    command = {"insert": "items", "documents": [{"_id": 1}, {"_id": 2}], "lsid": lsid, "txnNumber": Int64(5)}
    first, again = given.raw(**command), given.raw(**command)
    equal((first["n"], "retriedStmtIds" in first, again["n"], again["retriedStmtIds"]), (2, False, 2, [0, 1]))
    equal(given.raw(**{**command, "txnNumber": Int64(4)})["code"], 225)
    more = {**command, "documents": [{"_id": 2}, {"_id": 3}], "stmtIds": [1, 2]}
    equal((given.raw(**more)["n"], ids(given.items.find())), (2, [1, 2, 3]))
