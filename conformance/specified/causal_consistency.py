"""Causal consistency: a session's reads are after its writes, and after what another session told it."""

from bson import Timestamp
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("causal-consistency")


def after(command):
    return command.get("readConcern", {}).get("afterClusterTime")


@SPECIFICATION.case
def first_read(given):
    """A new session has no operation time, and its first read waits for none."""
    client, items, events = given.watched()
    with client.start_session() as session:
        equal(session.operation_time, None)
        items.find_one(session=session)
        equal((after(events.sent("find")[0]), session.operation_time), (None, events.replies("find")[0]["operationTime"]))


@SPECIFICATION.case
def read_after_read(given):
    """A read is after the session's last one, whichever command it is."""
    client, items, events = given.watched()
    calls = (
        ("find", lambda session: items.find_one(session=session)),
        ("aggregate", lambda session: items.count_documents({}, session=session)),
        ("distinct", lambda session: items.distinct("x", session=session)),
    )
    for name, call in calls:
        with client.start_session() as session:
            items.find_one(session=session)
            time = session.operation_time
            events.clear()
            call(session)
            equal((name, after(events.sent(name)[0])), (name, time))


@SPECIFICATION.case
def read_after_write(given):
    """A read is after the session's write, and sees it."""
    client, items, events = given.watched()
    with client.start_session() as session:
        items.insert_one({"_id": 1}, session=session)
        equal(ids(items.find(session=session)), [1])
        equal(after(events.sent("find")[0]), events.replies("insert")[0]["operationTime"])


@SPECIFICATION.case
def after_an_error(given):
    """The answer of a command that failed moves the session's time, too."""
    client, items, events = given.watched()
    with client.start_session() as session:
        refused(2, lambda: items.find_one({"$none": 1}, session=session))
        time = session.operation_time
        items.find_one(session=session)
        equal((isinstance(time, Timestamp), after(events.sent("find")[1])), (True, time))


@SPECIFICATION.case
def without(given):
    """A session without causal consistency sends no time."""
    client, items, events = given.watched()
    with client.start_session(causal_consistency=False) as session:
        items.insert_one({}, session=session)
        items.find_one(session=session)
        equal(after(events.sent("find")[0]), None)


@SPECIFICATION.case
def with_a_level(given):
    """The time is sent beside the level; each level takes it, linearizable doesn't (72)."""
    client, items, events = given.watched()
    for level in ("local", "majority"):
        with client.start_session() as session:
            items.insert_one({}, session=session)
            items.with_options(read_concern=ReadConcern(level)).find_one(session=session)
            sent = events.sent("find")[-1]["readConcern"]
            equal((sent["level"], sent["afterClusterTime"] is not None), (level, True))
    concern = {"level": "linearizable", "afterClusterTime": events.replies("find")[-1]["operationTime"]}
    refused(72, lambda: given.database.command({"find": "items", "readConcern": concern}))


@SPECIFICATION.case
def told_by_another(given):
    """A session that is told another's times reads what that wrote."""
    other_client, other_items, _ = given.watched()
    with given.client.start_session() as one, other_client.start_session() as other:
        given.items.with_options(write_concern=WriteConcern("majority")).insert_one({"_id": 7}, session=one)
        other.advance_cluster_time(one.cluster_time)
        other.advance_operation_time(one.operation_time)
        equal(ids(other_items.find(session=other)), [7])


@SPECIFICATION.case
def time_ahead(given):
    """A read after a time that the server's isn't near is refused, not answered from before it."""
    now = given.admin.command("ping")["operationTime"]
    concern = {"level": "majority", "afterClusterTime": Timestamp(now.time + 1_000_000, 1)}
    refused(72, lambda: given.database.command({"find": "items", "readConcern": concern, "maxTimeMS": 100}))
    refused(72, lambda: given.database.command({"find": "items", "readConcern": {"afterClusterTime": Timestamp(0, 0)}}))


@SPECIFICATION.case
def in_a_transaction(given):
    """The first command of a transaction has the time, the others don't."""
    client, items, events = given.watched()
    with client.start_session() as session:
        items.insert_one({"_id": 1}, session=session)
        with session.start_transaction():
            items.find_one(session=session)
            items.find_one(session=session)
        first, second = events.sent("find")
        equal((after(first), "readConcern" in second), (events.replies("insert")[0]["operationTime"], False))
