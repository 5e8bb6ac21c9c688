"""Stable API: a declared version, strictness, and where the options must agree."""

from pymongo.errors import OperationFailure
from pymongo.server_api import ServerApi

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("versioned-api")
VERSION, STRICT, MISMATCH = 322, 323, 325


def strict(given):
    return given.watched(server_api=ServerApi("1", strict=True, deprecation_errors=True))


@SPECIFICATION.case
def declared(given):
    """A client that declares a version sends it with every command, and is answered."""
    client, items, events = strict(given)
    items.insert_many([{"_id": number} for number in range(3)])
    items.update_one({"_id": 1}, {"$set": {"x": 1}})
    equal(len(list(items.find(batch_size=2))), 3)
    client.list_database_names()
    sent = {event.command_name: (event.command.get("apiVersion"), event.command.get("apiStrict")) for event in events.begun}
    equal(set(sent.values()), {("1", True)})
    equal(sorted(sent), ["find", "getMore", "insert", "listDatabases", "update"])


@SPECIFICATION.case
def unknown_version(given):
    """A version that there isn't is APIVersionError (322)."""
    answer = given.raw(ping=1, apiVersion="2")
    equal((answer["code"], answer["codeName"]), (VERSION, "APIVersionError"))
    equal(given.raw(ping=1, apiVersion="1")["ok"], 1)


@SPECIFICATION.case
def strict_commands(given):
    """Strictly, commands outside of the version are APIStrictError (323); without they are answered."""
    for command in ({"distinct": "items", "key": "x"}, {"serverStatus": 1}, {"collStats": "items"}):
        answer = given.raw(**command, apiVersion="1", apiStrict=True)
        equal((next(iter(command)), answer.get("code")), (next(iter(command)), STRICT))
        equal((next(iter(command)), given.raw(**command, apiVersion="1").get("code")), (next(iter(command)), None))


@SPECIFICATION.case
def strict_count(given):
    """count belongs to the version, so the estimated count works strictly."""
    _, items, _ = strict(given)
    items.insert_one({})
    equal((items.estimated_document_count(), items.count_documents({})), (1, 1))


@SPECIFICATION.case
def strict_stages(given):
    """Strictly, stages outside of the version fail with 323, wherever they stand."""
    _, items, _ = strict(given)
    items.insert_one({"_id": 1})
    equal(ids(items.aggregate([{"$match": {}}, {"$facet": {"a": [{"$limit": 1}]}}, {"$set": {"_id": 1}}])), [1])
    inside = {"$lookup": {"from": "items", "pipeline": [{"$collStats": {"latencyStats": {}}}], "as": "x"}}
    for stage in ({"$collStats": {"latencyStats": {}}}, {"$indexStats": {}}, inside):
        refused(STRICT, lambda stage=stage: list(items.aggregate([stage])), OperationFailure)


@SPECIFICATION.case
def strict_indexes(given):
    """Strictly, a text index can't be made."""
    _, items, _ = strict(given)
    equal(items.create_index("x"), "x_1")
    refused(STRICT, lambda: items.create_index([("y", "text")]))


@SPECIFICATION.case
def without_a_version(given):
    """Strictness without a version is an error."""
    for option in ("apiStrict", "apiDeprecationErrors"):
        equal(given.raw(ping=1, **{option: True})["code"], 4886600)


@SPECIFICATION.case
def of_a_cursor(given):
    """A getMore needs the options of its cursor (325)."""
    given.items.insert_many([{}, {}, {}])
    lsid = given.raw(startSession=1)["id"]
    cursor = given.raw(find="items", batchSize=1, lsid=lsid, apiVersion="1")["cursor"]["id"]
    more = {"getMore": cursor, "collection": "items", "lsid": lsid}
    equal((given.raw(**more)["code"], given.raw(**more, apiVersion="1", apiStrict=True)["code"]), (MISMATCH, MISMATCH))
    equal(len(given.raw(**more, apiVersion="1")["cursor"]["nextBatch"]), 2)


@SPECIFICATION.case
def in_a_transaction(given):
    """A transaction's commands, its commit too, have the options of its first one."""
    client, items, events = strict(given)
    with client.start_session() as session, session.start_transaction():
        items.insert_one({"_id": 1}, session=session)
        command = {"find": "items", "lsid": session.session_id, "autocommit": False, "txnNumber": events.sent("insert")[0]["txnNumber"]}
        equal(given.raw(**command)["code"], MISMATCH)
    equal((events.sent("commitTransaction")[0]["apiVersion"], ids(items.find())), ("1", [1]))


@SPECIFICATION.case
def required(given):
    """With requireApiVersion a command that declares none fails."""
    client, _, _ = strict(given)
    client.admin.command("hello")
    parameter = {"setParameter": 1, "apiVersion": "1"}
    given.stack.callback(given.admin.command, {**parameter, "requireApiVersion": False})
    given.admin.command({**parameter, "requireApiVersion": True})
    equal((given.raw(ping=1)["code"], given.raw(ping=1, apiVersion="1")["ok"]), (498870, 1))
