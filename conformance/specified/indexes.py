"""Index management: making, listing, hiding and dropping indexes."""

from pymongo import ASCENDING, DESCENDING, IndexModel
from pymongo.errors import DuplicateKeyError
from pymongo.operations import SearchIndexModel

from specified.setting import Specification, equal, refused

SPECIFICATION = Specification("index-management")


@SPECIFICATION.case
def names(given):
    """createIndexes makes the indexes that are missing, and counts them before and behind."""
    made = given.items.create_indexes([IndexModel([("x", ASCENDING), ("y", DESCENDING)]), IndexModel("z", name="mine")])
    equal(made, ["x_1_y_-1", "mine"])
    keys = [{"key": {"z": 1}, "name": "mine"}, {"key": {"w": 1}, "name": "w_1"}]
    answer = given.database.command("createIndexes", "items", indexes=keys, commitQuorum="majority")
    equal((answer["numIndexesBefore"], answer["numIndexesAfter"]), (3, 4))
    answer = given.database.command("createIndexes", "items", indexes=keys)
    equal((answer["numIndexesAfter"], answer["note"]), (4, "all indexes already exist"))


@SPECIFICATION.case
def implicit_collection(given):
    """createIndexes makes its collection, and says so."""
    keys = [{"key": {"x": 1}, "name": "x_1"}]
    equal(given.database.command("createIndexes", "items", indexes=keys)["createdCollectionAutomatically"], True)


@SPECIFICATION.case
def unique(given):
    """A unique index refuses a second key (11000), with the key's pattern and value; as does its build."""
    given.items.create_index("x", unique=True)
    given.items.insert_one({"x": 1})
    error = refused(11000, lambda: given.items.insert_one({"x": 1}), DuplicateKeyError)
    equal((error.details["keyPattern"], error.details["keyValue"]), ({"x": 1}, {"x": 1}))
    given.items.insert_many([{"y": 1}, {"x": 2, "y": 1}])
    refused(11000, lambda: given.items.create_index("y", unique=True))


@SPECIFICATION.case
def conflicts(given):
    """Another index of a name is IndexKeySpecsConflict (86), other options of a key IndexOptionsConflict (85)."""
    given.items.create_index("x", name="one")
    refused(86, lambda: given.items.create_index("y", name="one"))
    refused(85, lambda: given.items.create_index("x", name="two"))
    refused(86, lambda: given.items.create_index("x", name="one", unique=True))


@SPECIFICATION.case
def listing(given):
    """listIndexes lists each index's options; of a missing collection drivers make no indexes (26)."""
    given.items.create_index("x", partialFilterExpression={"y": {"$gt": 1}}, expireAfterSeconds=5)
    found = [index.to_dict() for index in given.items.list_indexes()]
    partial = {"partialFilterExpression": {"y": {"$gt": 1}}, "expireAfterSeconds": 5}
    equal(found, [{"v": 2, "key": {"_id": 1}, "name": "_id_"}, {"v": 2, "key": {"x": 1}, "name": "x_1", **partial}])
    refused(26, lambda: given.database.command("listIndexes", "missing"))
    equal(list(given.database.missing.list_indexes()), [])


@SPECIFICATION.case
def drops(given):
    """dropIndexes takes a name, a key, several names or all; never the index of _id (72)."""
    given.items.create_indexes([IndexModel(name) for name in "abcdef"])
    equal(given.database.command("dropIndexes", "items", index="a_1")["nIndexesWas"], 7)
    given.items.drop_index([("b", 1)])
    given.database.command("dropIndexes", "items", index=["c_1", "d_1"])
    equal(sorted(given.items.index_information()), ["_id_", "e_1", "f_1"])
    refused(27, lambda: given.items.drop_index("a_1"))
    refused(72, lambda: given.items.drop_index("_id_"))
    given.items.drop_indexes()
    equal(sorted(given.items.index_information()), ["_id_"])


@SPECIFICATION.case
def drop_in_a_missing_collection(given):
    """dropIndexes of a missing collection is NamespaceNotFound (26), which drivers ignore."""
    refused(26, lambda: given.database.command("dropIndexes", "items", index="x_1"))
    given.items.drop_index("x_1")


@SPECIFICATION.case
def hidden(given):
    """A hidden index isn't used, is listed as hidden, and can be shown again by collMod."""
    given.items.create_index("x", hidden=True)
    equal(given.items.index_information()["x_1"]["hidden"], True)
    refused(2, lambda: given.items.find_one({"x": 1}, hint="x_1"))
    changed = given.database.command("collMod", "items", index={"name": "x_1", "hidden": False})
    equal((changed["hidden_old"], changed["hidden_new"]), (True, False))
    equal(given.items.find_one({"x": 1}, hint="x_1"), None)


@SPECIFICATION.case
def search_indexes(given):
    """Without a search server, commands of search indexes fail with SearchNotEnabled (31082)."""
    given.items.insert_one({})
    model = SearchIndexModel({"mappings": {"dynamic": True}}, "search")
    refused(31082, lambda: given.items.create_search_index(model))
    refused(31082, lambda: given.items.update_search_index("search", {"mappings": {}}))
    refused(31082, lambda: list(given.items.list_search_indexes()))
    given.items.drop()
