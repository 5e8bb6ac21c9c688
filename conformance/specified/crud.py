"""CRUD API: what writes report, what reads return, errors of parts of a command."""

from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne
from pymongo.errors import BulkWriteError, ClientBulkWriteException, WriteConcernError, WriteError
from pymongo.write_concern import WriteConcern

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("crud")
NUMBERS = [{"_id": number, "x": 11 * number} for number in (1, 2, 3)]


@SPECIFICATION.case
def ordered_inserts(given):
    """An ordered insertMany stops at its first error, whose index it reports."""
    documents = [{"_id": 1}, {"_id": 1}, {"_id": 2}]
    error = refused(65, lambda: given.items.insert_many(documents), BulkWriteError)
    equal([(it["index"], it["code"]) for it in error.details["writeErrors"]], [(1, 11000)])
    equal((error.details["nInserted"], ids(given.items.find())), (1, [1]))


@SPECIFICATION.case
def unordered_inserts(given):
    """An unordered insertMany inserts all that it can, and reports each error by its index."""
    documents = [{"_id": 1}, {"_id": 1}, {"_id": 2}, {"_id": 2}]
    error = refused(65, lambda: given.items.insert_many(documents, ordered=False), BulkWriteError)
    equal([it["index"] for it in error.details["writeErrors"]], [1, 3])
    equal(sorted(ids(given.items.find())), [1, 2])


@SPECIFICATION.case
def upserts(given):
    """An update that upserts matches nothing, and reports the new _id, whatever its type."""
    for number in (7, None, {"a": 1}):
        result = given.items.update_one({"_id": number}, {"$set": {"x": 1}}, upsert=True).raw_result
        equal((result["n"], result["nModified"], result["upserted"]), (1, 0, number))
        equal(given.items.find_one({"_id": number}), {"_id": number, "x": 1})


@SPECIFICATION.case
def matched_and_modified(given):
    """A document that matches and already is as it is to be counts as matched, not as modified."""
    given.items.insert_many(NUMBERS)
    result = given.items.update_many({"_id": {"$gt": 1}}, {"$set": {"x": 22}})
    equal((result.matched_count, result.modified_count), (2, 1))


@SPECIFICATION.case
def sorted_updates(given):
    """updateOne and replaceOne with a sort change the first document by it."""
    given.items.insert_many(NUMBERS)
    given.items.update_one({"_id": {"$gt": 1}}, {"$inc": {"x": 1}}, sort={"_id": -1})
    given.items.replace_one({}, {"y": 1}, sort={"x": -1})
    equal(list(given.items.find()), [NUMBERS[0], NUMBERS[1], {"_id": 3, "y": 1}])


@SPECIFICATION.case
def find_one_and(given):
    """findOneAnd* return the document before or after the change, by sort and projection; none: null."""
    given.items.insert_many(NUMBERS)
    change = {"$inc": {"x": 1}}
    before = given.items.find_one_and_update({"_id": {"$gt": 1}}, change, {"_id": 0}, [("x", -1)])
    after = given.items.find_one_and_update({"_id": 3}, change, return_document=ReturnDocument.AFTER)
    equal((before, after), ({"x": 33}, {"_id": 3, "x": 35}))
    equal(given.items.find_one_and_replace({"_id": 9}, {"x": 1}), None)
    replaced = given.items.find_one_and_replace({"_id": 9}, {"x": 1}, upsert=True, return_document=ReturnDocument.AFTER)
    equal(replaced, {"_id": 9, "x": 1})
    equal(given.items.find_one_and_delete({}, sort=[("_id", -1)])["_id"], 9)


@SPECIFICATION.case
def array_filters(given):
    """arrayFilters name the elements that an update changes; one that nothing uses is an error."""
    given.items.insert_one({"_id": 1, "y": [{"b": 3}, {"b": 1}]})
    given.items.update_one({}, {"$set": {"y.$[i].b": 2}}, array_filters=[{"i.b": 3}])
    equal(given.items.find_one()["y"], [{"b": 2}, {"b": 1}])
    unused = [{"i.b": 3}, {"j.b": 3}]
    refused(9, lambda: given.items.update_one({}, {"$set": {"y.$[i].b": 2}}, array_filters=unused))


@SPECIFICATION.case
def update_pipelines(given):
    """An update may be a pipeline, which sees the fields and the constants of let."""
    given.items.insert_many(NUMBERS)
    set_sum = [{"$set": {"sum": {"$add": ["$x", "$$more"]}}}, {"$unset": "x"}]
    given.items.update_many({"$expr": {"$lt": ["$_id", "$$end"]}}, set_sum, let={"more": 1, "end": 3})
    equal(list(given.items.find({"sum": {"$gt": 0}})), [{"_id": 1, "sum": 12}, {"_id": 2, "sum": 23}])


@SPECIFICATION.case
def dots_and_dollars(given):
    """Inserts and replacements take names that begin with a dollar or contain dots, below and at the top."""
    document = {"_id": 1, "a.b": 1, "sub": {"$x": 1, "c.d": 2}}
    given.items.insert_one(document)
    equal(given.items.find_one(), document)
    replacement = {"_id": 1, "e.f": 3, "sub": {"$y": 1}}
    given.items.replace_one({"_id": 1}, replacement)
    equal(given.items.find_one(), replacement)
    refused(52, lambda: given.items.insert_one({"_id": {"$x": 1}}))


@SPECIFICATION.case
def hints(given):
    """A hint names the index of a find, update, delete or findAndModify; one that isn't there is an error."""
    given.items.insert_many(NUMBERS)
    given.items.create_index("x")
    equal(ids(given.items.find({"_id": {"$gt": 1}}, hint="x_1")), [2, 3])
    equal(given.items.update_one({"x": 22}, {"$inc": {"n": 1}}, hint={"x": 1}).modified_count, 1)
    equal(given.items.find_one_and_delete({"_id": 1}, hint="x_1")["_id"], 1)
    for call in (given.items.delete_one, given.items.delete_many, given.items.find_one_and_delete):
        refused(2, lambda call=call: call({"_id": 2}, hint="absent_1"))
    equal(given.items.count_documents({}), 2)


@SPECIFICATION.case
def bulk_counts(given):
    """A bulkWrite sums what its parts did, and names upserted _ids by index."""
    given.items.insert_many(NUMBERS)
    parts = [
        InsertOne({"_id": 4, "x": 44}),
        UpdateOne({"_id": 2}, {"$set": {"x": 0}}),
        UpdateMany({"_id": {"$gt": 2}}, {"$set": {"x": 1}}),
        ReplaceOne({"_id": 8}, {"x": 8}, upsert=True),
        DeleteOne({"_id": 1}),
        DeleteMany({"x": 1}),
    ]
    result = given.items.bulk_write(parts)
    equal((result.inserted_count, result.matched_count, result.modified_count, result.deleted_count), (1, 3, 3, 3))
    equal(result.upserted_ids, {3: 8})


@SPECIFICATION.case
def client_bulk_write(given):
    """A client's bulkWrite writes to several collections and, if asked to, reports each result."""
    one, two = f"{given.name}.one", f"{given.name}.two"
    parts = [
        InsertOne({"_id": 1}, namespace=one),
        UpdateOne({"_id": 5}, {"$set": {"x": 1}}, upsert=True, namespace=two),
        DeleteOne({"_id": 1}, namespace=one),
    ]
    result = given.client.bulk_write(parts, verbose_results=True)
    equal((result.inserted_count, result.upserted_count, result.deleted_count), (1, 1, 1))
    equal(result.update_results[1].upserted_id, 5)
    equal(given.database.two.find_one(), {"_id": 5, "x": 1})


@SPECIFICATION.case
def client_bulk_write_errors(given):
    """An ordered bulkWrite of a client ends at its first error and keeps what was done; the others go on."""
    namespace = f"{given.name}.items"
    parts = [InsertOne({"_id": number}, namespace=namespace) for number in (1, 1, 2)]
    error = refused(None, lambda: given.client.bulk_write(parts), ClientBulkWriteException)
    equal([it["idx"] for it in error.write_errors], [1])
    equal((error.partial_result.inserted_count, ids(given.items.find())), (1, [1]))
    given.items.drop()
    error = refused(None, lambda: given.client.bulk_write(parts, ordered=False), ClientBulkWriteException)
    equal((error.partial_result.inserted_count, ids(given.items.find())), (2, [1, 2]))


@SPECIFICATION.case
def out_and_merge(given):
    """An aggregate that ends in $out or $merge returns no documents, and has written them."""
    given.items.insert_many(NUMBERS)
    match = {"$match": {"_id": {"$gt": 1}}}
    equal(list(given.items.aggregate([match, {"$out": "copies"}])), [])
    equal(list(given.database.copies.find()), NUMBERS[1:])
    equal(list(given.items.aggregate([match, {"$merge": {"into": "merged"}}])), [])
    equal(given.database.merged.count_documents({}), 2)


@SPECIFICATION.case
def counts(given):
    """countDocuments respects filter, skip and limit; the estimated count of a missing collection is 0."""
    equal((given.items.estimated_document_count(), given.items.count_documents({})), (0, 0))
    given.items.insert_many(NUMBERS)
    equal(given.items.count_documents({"x": {"$gt": 11}}), 2)
    equal(given.items.count_documents({}, skip=1, limit=3), 2)
    equal(given.items.estimated_document_count(), 3)
    equal(given.items.distinct("x", {"_id": {"$lt": 3}}), [11, 22])


@SPECIFICATION.case
def unacknowledged_writes(given):
    """A write with w: 0 isn't answered, not even if it fails, and is done before what follows on its connection."""
    client, items, _ = given.watched(maxPoolSize=1)
    items = items.with_options(write_concern=WriteConcern(0))
    equal(items.insert_one({"_id": 1}).acknowledged, False)
    items.insert_one({"_id": 1})
    items.update_one({"_id": 1}, {"$set": {"x": 1}})
    equal(list(client[given.name].items.find()), [{"_id": 1, "x": 1}])


@SPECIFICATION.case
def error_details(given):
    """A write error has its errInfo, and so has a write concern error."""
    given.database.create_collection("items", validator={"x": {"$type": "string"}})
    error = refused(121, lambda: given.items.insert_one({"_id": 1, "x": 1}), WriteError)
    equal(error.details["errInfo"]["failingDocumentId"], 1)
    given.items.with_options().bulk_write([InsertOne({"x": 1})], bypass_document_validation=True)
    info = {"writeConcern": {"w": 2, "wtimeout": 0, "provenance": "clientSupplied"}}
    concern_error = {"code": 100, "codeName": "UnsatisfiableWriteConcern", "errmsg": "few", "errInfo": info}
    given.fail(["insert"], writeConcernError=concern_error)
    error = refused(100, lambda: given.items.insert_one({"x": "a"}), WriteConcernError)
    equal(error.details["errInfo"], info)


@SPECIFICATION.case
def batches(given):
    """A find is read in batches of the size asked for, until its cursor is 0; a limit ends it at once."""
    given.items.insert_many([{"_id": number} for number in range(5)])
    _, items, events = given.watched()
    equal(len(list(items.find(batch_size=2))), 5)
    cursors = [reply["cursor"] for name in ("find", "getMore") for reply in events.replies(name)]
    sizes = [len(cursor.get("firstBatch", cursor.get("nextBatch"))) for cursor in cursors]
    equal((sizes, [cursor["id"] != 0 for cursor in cursors]), ([2, 2, 1], [True, True, False]))
    events.clear()
    equal((len(list(items.find(limit=2))), events.names()), (2, ["find"]))
