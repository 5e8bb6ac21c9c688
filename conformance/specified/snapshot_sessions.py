"""Snapshot sessions: all reads of a session are of one moment."""

from bson import Timestamp
from pymongo.errors import ConfigurationError

from specified.setting import Specification, equal, ids, refused

SPECIFICATION = Specification("snapshot-sessions")


def snapshot_of(command):
    return command["readConcern"].get("atClusterTime")


@SPECIFICATION.case
def reads_the_same(given):
    """A session reads the same again, whatever another client writes meanwhile."""
    given.items.insert_one({"_id": 1, "x": 1})
    with given.client.start_session(snapshot=True) as session:
        equal(given.items.find_one(session=session)["x"], 1)
        given.items.update_one({"_id": 1}, {"$set": {"x": 2}})
        equal((given.items.find_one(session=session)["x"], given.items.find_one()["x"]), (1, 2))


@SPECIFICATION.case
def time_of_the_first(given):
    """The first read's answer has the moment, and each later read asks for it."""
    client, items, events = given.watched()
    with client.start_session(snapshot=True) as session:
        for _ in range(3):
            items.find_one(session=session)
    told = events.replies("find")[0]["cursor"]["atClusterTime"]
    equal([snapshot_of(sent) for sent in events.sent("find")], [None, told, told])
    equal({sent["readConcern"]["level"] for sent in events.sent("find")}, {"snapshot"})


@SPECIFICATION.case
def mixed_commands(given):
    """find, aggregate, distinct and countDocuments are of the same moment, begun by any of them."""
    given.items.insert_many([{"_id": 1, "x": 1}, {"_id": 2, "x": 2}])
    reads = (
        lambda session: ids(given.items.find(session=session)),
        lambda session: ids(given.items.aggregate([], session=session)),
        lambda session: given.items.distinct("x", session=session),
        lambda session: list(range(1, 1 + given.items.count_documents({}, session=session))),
    )
    for number, first in enumerate(reads):
        before = [*range(1, 3 + number)]
        with given.client.start_session(snapshot=True) as session:
            equal(first(session), before)
            given.items.insert_one({"_id": 3 + number, "x": 3 + number})
            for read in reads:
                equal(read(session), before)


@SPECIFICATION.case
def time_of_distinct(given):
    """A distinct's answer has the moment beside its values."""
    answer = given.database.command({"distinct": "items", "key": "x", "readConcern": {"level": "snapshot"}})
    equal(isinstance(answer["atClusterTime"], Timestamp), True)


@SPECIFICATION.case
def cursors(given):
    """A cursor that is read to its end later is of that moment, too."""
    given.items.insert_many([{"_id": number} for number in range(4)])
    with given.client.start_session(snapshot=True) as session:
        cursor = given.items.find(batch_size=1, session=session)
        next(cursor)
        given.items.delete_many({})
        equal(ids(cursor), [1, 2, 3])


@SPECIFICATION.case
def side_by_side(given):
    """Two sessions have moments of their own."""
    with given.client.start_session(snapshot=True) as one, given.client.start_session(snapshot=True) as other:
        equal(given.items.count_documents({}, session=one), 0)
        given.items.insert_one({})
        equal(given.items.count_documents({}, session=other), 1)
        given.items.insert_one({})
        equal([given.items.count_documents({}, session=it) for it in (one, other)], [0, 1])


@SPECIFICATION.case
def several_collections(given):
    """The moment is the server's, not a collection's: what another collection has later isn't seen."""
    given.items.insert_one({"_id": 1})
    given.database.others.insert_one({"_id": 1})
    with given.client.start_session(snapshot=True) as session:
        equal(ids(given.items.find(session=session)), [1])
        given.database.others.insert_one({"_id": 2})
        equal(ids(given.database.others.find(session=session)), [1])


@SPECIFICATION.case
def writes(given):
    """Writes and listings can't be at a snapshot; neither driver nor server takes them."""
    with given.client.start_session(snapshot=True) as session:
        refused(None, lambda: given.items.insert_one({}, session=session))
        refused(None, session.start_transaction)
    concern = {"level": "snapshot"}
    for command in ({"insert": "items", "documents": [{}]}, {"listCollections": 1}, {"count": "items"}):
        refused(72, lambda command=command: given.database.command({**command, "readConcern": concern}))
    equal(given.items.count_documents({}), 0)


@SPECIFICATION.case
def causal(given):
    """A session is a snapshot's or causally consistent, not both."""
    options = {"snapshot": True, "causal_consistency": True}
    refused(None, lambda: given.client.start_session(**options), ConfigurationError)
    now = given.admin.command("ping")["operationTime"]
    concern = {"level": "snapshot", "atClusterTime": now, "afterClusterTime": now}
    refused(72, lambda: given.database.command({"find": "items", "readConcern": concern}))


@SPECIFICATION.case
def too_old(given):
    """A moment that isn't kept any more is SnapshotTooOld (239)."""
    concern = {"level": "snapshot", "atClusterTime": Timestamp(1_000_000_000, 1)}
    refused(239, lambda: given.database.command({"find": "items", "readConcern": concern}))
