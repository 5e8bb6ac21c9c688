"""Change streams: events, tokens, and where a stream goes on after an error."""

from bson import Int64, Timestamp
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern

from specified.setting import Specification, equal, refused

SPECIFICATION = Specification("change-streams")
RESUMABLE = "ResumableChangeStreamError"


def watch(given, pipeline=(), of=None, **options):
    """A stream that waits briefly, and ends with its case."""
    stream = (given.items if of is None else of).watch(list(pipeline), max_await_time_ms=50, **options)
    given.stack.callback(stream.close)
    return stream


def events(stream, count):
    """The next events: exactly so many, then none."""
    found = [stream.next() for _ in range(count)]
    equal(stream.try_next(), None)
    return found


def kinds(found):
    return [event["operationType"] for event in found]


@SPECIFICATION.case
def every_write(given):
    """Each write is an event with its document's key and what it changed."""
    stream = watch(given)
    given.items.insert_one({"_id": 1, "x": 1, "y": 1})
    given.items.update_one({"_id": 1}, {"$set": {"x": 2}, "$unset": {"y": 1}})
    given.items.replace_one({"_id": 1}, {"z": 1})
    given.items.delete_one({"_id": 1})
    found = events(stream, 4)
    equal(kinds(found), ["insert", "update", "replace", "delete"])
    equal([event["documentKey"] for event in found], [{"_id": 1}] * 4)
    description = found[1]["updateDescription"]
    equal((description["updatedFields"], description["removedFields"], description["truncatedArrays"]), ({"x": 2}, ["y"], []))
    equal([event.get("fullDocument") for event in found], [{"_id": 1, "x": 1, "y": 1}, None, {"_id": 1, "z": 1}, None])
    equal({(event["ns"]["db"], event["ns"]["coll"]) for event in found}, {(given.name, "items")})
    equal([event["clusterTime"] for event in found], sorted(event["clusterTime"] for event in found))


@SPECIFICATION.case
def tokens_of_batches(given):
    """Each answer has postBatchResumeToken, empty ones too; a stream without events goes on from there."""
    client, items, sent = given.watched()
    with items.watch(max_await_time_ms=50) as stream:
        equal(stream.try_next(), None)
        token = stream.resume_token
        equal(token, sent.replies("getMore")[-1]["cursor"]["postBatchResumeToken"])
    given.items.insert_one({"_id": 1})
    equal(kinds(events(watch(given, of=client[given.name].items, resume_after=token), 1)), ["insert"])


@SPECIFICATION.case
def resumes(given):
    """resumeAfter and startAfter go on behind the event of the token, and miss nothing."""
    stream = watch(given)
    given.items.insert_many([{"_id": number} for number in range(5)])
    token = events(stream, 5)[1]["_id"]
    for start in ("resume_after", "start_after"):
        found = events(watch(given, **{start: token}), 3)
        equal([event["documentKey"]["_id"] for event in found], [2, 3, 4])


@SPECIFICATION.case
def resumable_errors(given):
    """An error with the label is followed by a stream that goes on where this one was."""
    client, items, sent = given.watched()
    stream = watch(given, of=items)
    given.items.insert_one({"_id": 1})
    stream.next()
    for fault in ({"errorCode": 91}, {"errorCode": 280, "errorLabels": [RESUMABLE]}, {"closeConnection": True}):
        token = stream.resume_token
        given.fail(["getMore"], **fault)
        given.items.insert_one({"x": str(fault)})
        event = stream.next()
        equal(event["fullDocument"]["x"], str(fault))
        equal(sent.sent("aggregate")[-1]["pipeline"][0]["$changeStream"]["resumeAfter"], token)
    equal(client.admin.command("ping")["ok"], 1)


@SPECIFICATION.case
def other_errors(given):
    """An error without it ends the stream."""
    stream = watch(given)
    given.fail(["getMore"], errorCode=280)
    error = refused(280, stream.next, OperationFailure)
    equal((error.has_error_label(RESUMABLE), stream.alive), (False, False))


@SPECIFICATION.case
def labels_of_the_server(given):
    """The server gives the label to errors of a getMore that say that it was in no state to answer."""
    lsid = given.raw(startSession=1)["id"]
    resumable = (6, 7, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436)
    for code, expected in (*((code, True) for code in resumable), (1, False), (26, False), (136, False)):
        command = {"aggregate": "items", "pipeline": [{"$changeStream": {}}], "cursor": {}, "lsid": lsid}
        cursor = given.raw(**command)["cursor"]["id"]
        given.fail(None, point="failGetMoreAfterCursorCheckout", errorCode=code)
        answer = given.raw(getMore=Int64(cursor), collection="items", lsid=lsid)
        equal((answer["code"], RESUMABLE in answer.get("errorLabels", [])), (code, expected))


@SPECIFICATION.case
def start_at_a_time(given):
    """startAtOperationTime has the events of that time and later ones."""
    given.items.insert_one({"_id": 1})
    with given.client.start_session() as session:
        given.items.insert_one({"_id": 2}, session=session)
        time = session.operation_time
    given.items.insert_one({"_id": 3})
    found = events(watch(given, start_at_operation_time=time), 2)
    equal([event["documentKey"]["_id"] for event in found], [2, 3])
    refused(286, lambda: watch(given, start_at_operation_time=Timestamp(1, 1)))


@SPECIFICATION.case
def invalidated(given):
    """A drop ends a collection's stream by invalidate, behind which only startAfter goes on."""
    given.items.insert_one({"_id": 1})
    stream = watch(given)
    given.items.drop()
    found = [stream.next(), stream.next()]
    equal((kinds(found), stream.alive), (["drop", "invalidate"], False))
    refused(260, lambda: watch(given, resume_after=found[1]["_id"]))
    again = watch(given, start_after=found[1]["_id"])
    given.items.insert_one({"_id": 2})
    equal([event["documentKey"] for event in events(again, 1)], [{"_id": 2}])


@SPECIFICATION.case
def full_documents(given):
    """updateLookup adds the document of now; whenAvailable and required the one of then, where it is kept."""
    given.database.create_collection("items", changeStreamPreAndPostImages={"enabled": True})
    given.items.insert_one({"_id": 1, "x": 0})
    streams = [watch(given, full_document=kind, full_document_before_change="whenAvailable") for kind in ("updateLookup", "required")]
    for _ in range(2):
        given.items.update_one({"_id": 1}, {"$inc": {"x": 1}})
    looked_up, then = (events(stream, 2) for stream in streams)
    equal([event["fullDocument"]["x"] for event in looked_up], [2, 2])
    equal([event["fullDocument"]["x"] for event in then], [1, 2])
    equal([event["fullDocumentBeforeChange"]["x"] for event in then], [0, 1])


@SPECIFICATION.case
def missing_images(given):
    """A required image that isn't kept is an error, one that is whenAvailable null."""
    given.items.insert_one({"_id": 1})
    available, required = (watch(given, full_document_before_change=kind) for kind in ("whenAvailable", "required"))
    given.items.delete_one({"_id": 1})
    equal(events(available, 1)[0]["fullDocumentBeforeChange"], None)
    refused(47, required.next)


@SPECIFICATION.case
def without_tokens(given):
    """A pipeline that changes or removes the token fails (280), since the stream couldn't go on."""
    for stage in ({"$project": {"_id": 0}}, {"$set": {"_id": 1}}, {"$unset": "_id"}):
        stream = watch(given, [stage])
        given.items.insert_one({})
        refused(None, stream.next)


@SPECIFICATION.case
def pipelines(given):
    """Stages behind $changeStream filter and change the events; others are refused."""
    match = [{"$match": {"operationType": "insert", "fullDocument.x": {"$gt": 1}}}, {"$set": {"more": "$fullDocument.x"}}]
    stream = watch(given, match)
    given.items.insert_many([{"x": number} for number in range(4)])
    equal([event["more"] for event in events(stream, 2)], [2, 3])
    for stage in ({"$group": {"_id": 1}}, {"$out": "copies"}, {"$sort": {"_id": 1}}):
        refused(20, lambda stage=stage: watch(given, [stage]))
    refused(40324, lambda: watch(given, [{"$noSuchStage": 1}]))


@SPECIFICATION.case
def concerns(given):
    """A stream reads what a majority has: another level is refused, as is any in a transaction."""
    for level, code in (("majority", None), ("local", 72), ("available", 72), ("linearizable", 72), ("snapshot", 72)):
        items = given.items.with_options(read_concern=ReadConcern(level))
        if code is None:
            equal(watch(given, of=items).alive, True)
        else:
            refused(code, lambda items=items: watch(given, of=items))
    with given.client.start_session() as session:
        session.start_transaction()
        refused(263, lambda: watch(given, session=session))
        session.abort_transaction()


@SPECIFICATION.case
def of_databases(given):
    """A database's stream has all its collections, the deployment's all databases."""
    streams = [watch(given, of=given.database), watch(given, of=given.client)]
    given.database.one.insert_one({"_id": 1})
    given.database.two.insert_one({"_id": 2})
    for stream in streams:
        found = [stream.next() for _ in range(2)]
        equal([(event["ns"]["db"], event["ns"]["coll"]) for event in found], [(given.name, "one"), (given.name, "two")])


@SPECIFICATION.case
def expanded(given):
    """showExpandedEvents adds creations and indexes, with the collection's UUID."""
    stream = watch(given, of=given.database, show_expanded_events=True)
    given.database.create_collection("items")
    given.items.create_index("x")
    given.items.drop_index("x_1")
    given.items.rename("other")
    found = events(stream, 4)
    equal(kinds(found), ["create", "createIndexes", "dropIndexes", "rename"])
    equal(len({event["collectionUUID"] for event in found}), 1)
    equal(found[1]["operationDescription"]["indexes"][0]["name"], "x_1")
    equal(found[3]["operationDescription"]["to"], {"db": given.name, "coll": "other"})


@SPECIFICATION.case
def split(given):
    """An event above 16 MB comes in parts, which have tokens of their own."""
    given.database.create_collection("items", changeStreamPreAndPostImages={"enabled": True})
    given.items.insert_one({"_id": 1, "x": "a" * 9_000_000})
    options = {"full_document": "required", "full_document_before_change": "required"}
    stream = watch(given, [{"$changeStreamSplitLargeEvent": {}}], **options)
    given.items.update_one({"_id": 1}, {"$set": {"y": 1}})
    found = [stream.next(), stream.next()]
    equal([event["splitEvent"] for event in found], [{"fragment": 1, "of": 2}, {"fragment": 2, "of": 2}])
    again = watch(given, [{"$changeStreamSplitLargeEvent": {}}], resume_after=found[0]["_id"], **options)
    equal(again.next()["splitEvent"], {"fragment": 2, "of": 2})


@SPECIFICATION.case
def in_transactions(given):
    """A transaction's events come with its commit, in the order of its writes, with its number."""
    stream = watch(given)
    with given.client.start_session() as session, session.start_transaction():
        given.items.insert_one({"_id": 2}, session=session)
        given.items.insert_one({"_id": 1}, session=session)
        equal(stream.try_next(), None)
        number = session._server_session.transaction_id
    found = events(stream, 2)
    equal([event["documentKey"]["_id"] for event in found], [2, 1])
    equal({(event["txnNumber"], event["clusterTime"]) for event in found}, {(number, found[0]["clusterTime"])})
