"""Driver sessions: whose id a command has, what ends with a session, and the cluster's time."""

import uuid

from bson import Binary, Int64, Timestamp
from pymongo.errors import AutoReconnect

from specified.setting import Specification, equal, refused

SPECIFICATION = Specification("sessions")


def lsid():
    return {"id": Binary(uuid.uuid4().bytes, 4)}


@SPECIFICATION.case
def offered(given):
    """hello offers sessions by their timeout in minutes."""
    equal(given.admin.command("hello")["logicalSessionTimeoutMinutes"], 30)


@SPECIFICATION.case
def explicit(given):
    """All commands of a session have its id, reads, writes and the batches of a cursor."""
    client, items, events = given.watched()
    with client.start_session() as session:
        items.insert_many([{}, {}, {}], session=session)
        equal(len(list(items.find(batch_size=2, session=session))), 3)
        client.list_database_names(session=session)
        equal({event.command["lsid"]["id"] for event in events.begun}, {session.session_id["id"]})
    equal(events.names(), ["insert", "find", "getMore", "listDatabases"])


@SPECIFICATION.case
def pooled(given):
    """Sessions of commands without one are used again, and ended when the client closes."""
    client, items, events = given.watched()
    for _ in range(5):
        items.find_one()
    used = {event.command["lsid"]["id"] for event in events.begun}
    equal(len(used), 1)
    client.close()
    equal([it["id"] in used for it in events.sent("endSessions")[0]["endSessions"]], [True] * len(used))


@SPECIFICATION.case
def discarded(given):
    """A session whose command met a network error isn't used again, though the command's repetition has it."""
    client, items, events = given.watched()
    given.fail(["insert"], closeConnection=True)
    items.insert_one({"_id": 1})
    first, again = events.sent("insert")
    items.find_one()
    equal((first["lsid"], first["lsid"] == events.sent("find")[0]["lsid"]), (again["lsid"], False))
    equal(client[given.name].items.count_documents({}), 1)


@SPECIFICATION.case
def another_sessions_cursor(given):
    """A cursor is read only by the session that made it."""
    given.items.insert_many([{}, {}, {}])
    one, other = lsid(), lsid()
    found = given.raw(find="items", batchSize=1, lsid=one)["cursor"]["id"]
    more = {"getMore": Int64(found), "collection": "items"}
    equal((given.raw(**more, lsid=other)["code"], given.raw(**more)["code"]), (50738, 50737))
    equal(len(given.raw(**more, lsid=one)["cursor"]["nextBatch"]), 2)


@SPECIFICATION.case
def killed(given):
    """killSessions ends a session's cursors and transactions."""
    given.items.insert_many([{}, {}, {}])
    with given.client.start_session() as session:
        cursor = given.items.find(batch_size=1, session=session)
        next(cursor)
        given.admin.command("killSessions", [session.session_id])
        refused(43, lambda: list(cursor))
    with given.client.start_session() as session:
        session.start_transaction()
        given.items.insert_one({"in": 1}, session=session)
        given.admin.command("killSessions", [session.session_id])
        refused(251, lambda: given.items.insert_one({"in": 2}, session=session))
    equal(given.items.count_documents({"in": {"$exists": True}}), 0)


@SPECIFICATION.case
def refreshed(given):
    """startSession makes one; refreshSessions and endSessions take any, known or not."""
    made = given.admin.command("startSession")
    equal((made["timeoutMinutes"], made["id"]["id"].subtype), (30, 4))
    for name in ("refreshSessions", "endSessions"):
        equal(given.admin.command(name, [made["id"], lsid()])["ok"], 1)


@SPECIFICATION.case
def cluster_time(given):
    """Answers have the cluster's time, which never falls, and clients send the latest that they know."""
    _, items, events = given.watched()
    for number in range(4):
        items.insert_one({"_id": number})
    told = [reply["$clusterTime"]["clusterTime"] for reply in events.replies("insert")]
    sent = [command["$clusterTime"]["clusterTime"] for command in events.sent("insert")]
    equal((told, sent[1:]), (sorted(set(told)), told[:-1]))


@SPECIFICATION.case
def advanced(given):
    """A time that a client passes on from elsewhere is waited for, and one that is far ahead moves nothing."""
    with given.client.start_session() as session, given.client.start_session() as other:
        given.items.insert_one({}, session=session)
        other.advance_cluster_time(session.cluster_time)
        equal(given.items.find_one({}, session=other) is not None, True)
    ahead = {"clusterTime": Timestamp(4_000_000_000, 1), "signature": {"hash": Binary(bytes(20)), "keyId": Int64(0)}}
    answer = given.raw(ping=1, **{"$clusterTime": ahead})
    equal(answer["$clusterTime"]["clusterTime"] < ahead["clusterTime"], True)


@SPECIFICATION.case
def operation_time(given):
    """Every answer has an operation time, errors too, and a write's is later than what it read."""
    _, items, events = given.watched()
    with given.client.start_session() as session:
        given.items.insert_one({"_id": 1}, session=session)
        written = session.operation_time
        refused(11000, lambda: given.items.insert_one({"_id": 1}, session=session))
        equal(written <= session.operation_time, True)
    items.find_one()
    equal(isinstance(events.replies("find")[0]["operationTime"], Timestamp), True)


@SPECIFICATION.case
def lost_twice(given):
    """A command that meets network errors twice fails, and the next one goes on by another connection."""
    _, items, _ = given.watched()
    given.fail(["find"], 2, closeConnection=True)
    refused(None, items.find_one, AutoReconnect)
    equal(items.find_one(), None)
