"""The application of drivers.py with PyMongo, by its asynchronous API."""

import asyncio
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


async def main():
    client = pymongo.AsyncMongoClient(sys.argv[1])
    database = client["python_async"]
    things, told = database.things, {}
    status = await client.admin.command("connectionStatus")
    told["user"] = status["authInfo"]["authenticatedUsers"][0]["user"]
    await read_and_write(things, told)
    await transact(client, things, told)
    token = await watch(things, told)
    await count_through_a_kill(things, told)
    async with await things.watch(resume_after=token) as stream:
        event = await stream.next()
        told["resumed"] = [event["operationType"], event["documentKey"]["_id"]]
    files = gridfs.AsyncGridFSBucket(database)
    written = os.urandom(FILE_BYTES)
    stored = await files.open_download_stream(await files.upload_from_stream("file", written))
    told["file"] = await stored.read() == written
    await compress(client, things, told)
    print(json.dumps(told))


async def read_and_write(things, told):
    await things.drop()
    await things.insert_many([{"_id": number, "v": number} for number in range(500)])
    found = things.find({"v": {"$lt": 5}}).sort("_id", -1)
    told["found"] = [each["v"] async for each in found]
    told["modified"] = (await things.update_many({"v": {"$gte": 490}}, {"$inc": {"v": 1000}})).modified_count
    told["deleted"] = (await things.delete_one({"_id": 499})).deleted_count
    told["count"] = await things.count_documents({})
    sums = await things.aggregate([{"$group": {"_id": None, "sum": {"$sum": "$v"}}}])
    told["sum"] = (await sums.next())["sum"]


async def transact(client, things, told):
    async def change(session):
        await things.update_one({"_id": 1}, {"$inc": {"v": 10}}, session=session)
        await things.delete_one({"_id": 2}, session=session)

    async def fail(session):
        await things.update_one({"_id": 3}, {"$inc": {"v": 10}}, session=session)
        raise ValueError("taken back")

    async with client.start_session() as session:
        await session.with_transaction(change)
        try:
            await session.with_transaction(fail)
        except ValueError:
            pass
    found = things.find({"_id": {"$in": [1, 2, 3]}}).sort("_id", 1)
    told["transaction"] = [each["v"] async for each in found]


async def watch(things, told):
    async with await things.watch() as stream:
        await things.insert_one({"_id": "event"})
        event = await stream.next()
        told["event"] = [event["operationType"], event["documentKey"]["_id"]]
        return stream.resume_token


async def count_through_a_kill(things, told):
    print("kill", flush=True)
    acknowledged = unknown = 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            await things.update_one({"_id": 0}, {"$inc": {"n": 1}})
            acknowledged += 1
        except ConnectionFailure:
            unknown += 1
    told["counts"] = [acknowledged, (await things.find_one({"_id": 0}))["n"], unknown]


async def compress(client, things, told):
    """How much of an answer that repeats itself goes over the wire."""
    await things.insert_one({"_id": "text", "text": "x" * TEXT_BYTES})
    before = (await client.admin.command("serverStatus"))["network"]
    await things.find_one({"_id": "text"})
    after = (await client.admin.command("serverStatus"))["network"]
    grown = [after[name] - before[name] for name in ("bytesOut", "physicalBytesOut")]
    told["compressed"] = grown[1] < grown[0] / 2


asyncio.run(main())
