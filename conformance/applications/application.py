"""The application of drivers.py with PyMongo, by its API that blocks."""

import json
import os
import sys
import time

import gridfs
import pymongo
from pymongo.errors import ConnectionFailure

SECONDS = 3
FILE_BYTES = 2_000_000
TEXT_BYTES = 1_000_000


def main():
    client = pymongo.MongoClient(sys.argv[1])
    database = client["python"]
    things, told = database.things, {}
    told["user"] = client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"][0]["user"]
    read_and_write(things, told)
    transact(client, things, told)
    token = watch(things, told)
    count_through_a_kill(things, told)
    with things.watch(resume_after=token) as stream:
        event = stream.next()
        told["resumed"] = [event["operationType"], event["documentKey"]["_id"]]
    files = gridfs.GridFSBucket(database)
    written = os.urandom(FILE_BYTES)
    with files.open_download_stream(files.upload_from_stream("file", written)) as stored:
        told["file"] = stored.read() == written
    compress(client, things, told)
    print(json.dumps(told))


def read_and_write(things, told):
    things.drop()
    things.insert_many([{"_id": number, "v": number} for number in range(500)])
    found = things.find({"v": {"$lt": 5}}).sort("_id", -1)
    told["found"] = [each["v"] for each in found]
    told["modified"] = things.update_many({"v": {"$gte": 490}}, {"$inc": {"v": 1000}}).modified_count
    told["deleted"] = things.delete_one({"_id": 499}).deleted_count
    told["count"] = things.count_documents({})
    told["sum"] = next(things.aggregate([{"$group": {"_id": None, "sum": {"$sum": "$v"}}}]))["sum"]


def transact(client, things, told):
    def change(session):
        things.update_one({"_id": 1}, {"$inc": {"v": 10}}, session=session)
        things.delete_one({"_id": 2}, session=session)

    def fail(session):
        things.update_one({"_id": 3}, {"$inc": {"v": 10}}, session=session)
        raise ValueError("taken back")

    with client.start_session() as session:
        session.with_transaction(change)
        try:
            session.with_transaction(fail)
        except ValueError:
            pass
    told["transaction"] = [each["v"] for each in things.find({"_id": {"$in": [1, 2, 3]}}).sort("_id", 1)]


def watch(things, told):
    with things.watch() as stream:
        things.insert_one({"_id": "event"})
        event = stream.next()
        told["event"] = [event["operationType"], event["documentKey"]["_id"]]
        return stream.resume_token


def count_through_a_kill(things, told):
    print("kill", flush=True)
    acknowledged = unknown = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            things.update_one({"_id": 0}, {"$inc": {"n": 1}})
            acknowledged += 1
        except ConnectionFailure:
            unknown += 1
    told["counts"] = [acknowledged, things.find_one({"_id": 0})["n"], unknown]


def compress(client, things, told):
    """How much of an answer that repeats itself goes over the wire."""
    things.insert_one({"_id": "text", "text": "x" * TEXT_BYTES})
    before = client.admin.command("serverStatus")["network"]
    things.find_one({"_id": "text"})
    after = client.admin.command("serverStatus")["network"]
    grown = [after[name] - before[name] for name in ("bytesOut", "physicalBytesOut")]
    told["compressed"] = grown[1] < grown[0] / 2


main()
