"""What PyMongo does works: transactions, bulk writes, GridFS, pipelines, errors."""

import gridfs
import pymongo
import pytest


def test_a_transaction_is_whole_or_nothing(frond):
    accounts = frond["accounts"]
    accounts.insert_many([{"_id": "a", "balance": 10}, {"_id": "b", "balance": 0}])

    def move(session):
        accounts.update_one({"_id": "a"}, {"$inc": {"balance": -4}}, session=session)
        accounts.update_one({"_id": "b"}, {"$inc": {"balance": 4}}, session=session)

    with frond.client.start_session() as session:
        session.with_transaction(move)
        assert [it["balance"] for it in accounts.find().sort("_id")] == [6, 4]
        with pytest.raises(ZeroDivisionError):
            with session.start_transaction():
                move(session)
                1 / 0
    assert [it["balance"] for it in accounts.find().sort("_id")] == [6, 4]


def test_bulk_writes_and_pipelines(frond):
    items = frond["items"]
    writes = [pymongo.InsertOne({"_id": number, "kind": number % 3}) for number in range(300)]
    writes += [pymongo.UpdateMany({"kind": 0}, {"$set": {"sold": True}}), pymongo.DeleteOne({"_id": 7})]
    result = items.bulk_write(writes)
    assert (result.inserted_count, result.modified_count, result.deleted_count) == (300, 100, 1)
    groups = items.aggregate([{"$group": {"_id": "$kind", "count": {"$sum": 1}}}, {"$sort": {"_id": 1}}])
    assert [it["count"] for it in groups] == [100, 99, 100]


def test_a_duplicate_is_reported(frond):
    frond["users"].create_index("email", unique=True)
    frond["users"].insert_one({"email": "ada@example.org"})
    with pytest.raises(pymongo.errors.DuplicateKeyError):
        frond["users"].insert_one({"email": "ada@example.org"})


def test_files(frond):
    files = gridfs.GridFS(frond)
    content = bytes(range(256)) * 8192
    assert files.get(files.put(content)).read() == content


def test_a_stream_that_is_opened_is_told_what_comes(frond):
    things = frond["things"]
    things.insert_one({"_id": 1})
    with things.watch(max_await_time_ms=100) as stream:
        things.insert_one({"_id": 2})
        assert next(stream)["fullDocument"] == {"_id": 2}


def test_one_branch_a_test(frond):
    assert frond.branch_name.startswith("test-")
    assert frond.list_collection_names() == ["fixtures"]
    frond["items"].insert_one({"_id": "of this test only"})
    frond["fixtures"].delete_many({})


def test_another_branch_another_test(frond):
    assert frond.list_collection_names() == ["fixtures"]
    assert frond["fixtures"].count_documents({}) == 1000
