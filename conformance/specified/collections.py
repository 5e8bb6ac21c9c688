"""Collection management: options of create, listings, renaming, drops."""

from pymongo.errors import CollectionInvalid

from specified.setting import Specification, equal, refused

SPECIFICATION = Specification("collection-management")


def listed(given, name):
    return next(given.database.list_collections(filter={"name": name}))


@SPECIFICATION.case
def capped(given):
    """A capped collection keeps the newest documents, in order, and is listed with its limits."""
    given.database.create_collection("items", capped=True, size=100_000, max=3)
    given.items.insert_many([{"_id": number} for number in range(5)])
    equal([it["_id"] for it in given.items.find()], [2, 3, 4])
    options = listed(given, "items")["options"]
    equal((options["capped"], options["max"]), (True, 3))


@SPECIFICATION.case
def clustered(given):
    """A clustered index is made with its collection, named, and listed as clustered."""
    given.database.create_collection("items", clusteredIndex={"key": {"_id": 1}, "unique": True, "name": "by id"})
    equal(given.items.index_information()["by id"]["clustered"], True)
    equal(listed(given, "items")["options"]["clusteredIndex"]["name"], "by id")


@SPECIFICATION.case
def time_series(given):
    """A time series collection is listed as one, with the fields that it was made with."""
    fields = {"timeField": "at", "metaField": "of", "granularity": "minutes"}
    given.database.create_collection("items", timeseries=fields, expireAfterSeconds=604800)
    found = listed(given, "items")
    equal((found["type"], found["options"]["expireAfterSeconds"]), ("timeseries", 604800))
    equal({name: found["options"]["timeseries"][name] for name in fields}, fields)


@SPECIFICATION.case
def images(given):
    """changeStreamPreAndPostImages is set by create and by collMod, and listed while it is on."""
    given.database.create_collection("items", changeStreamPreAndPostImages={"enabled": True})
    equal(listed(given, "items")["options"]["changeStreamPreAndPostImages"], {"enabled": True})
    given.database.command("collMod", "items", changeStreamPreAndPostImages={"enabled": False})
    equal("changeStreamPreAndPostImages" in listed(given, "items")["options"], False)


@SPECIFICATION.case
def create_again(given):
    """A collection can be created again with equal options; with others that is NamespaceExists (48)."""
    for _ in range(2):
        equal(given.database.command("create", "items", validator={"x": 1})["ok"], 1)
    refused(48, lambda: given.database.command("create", "items"))
    refused(None, lambda: given.database.create_collection("items"), CollectionInvalid)


@SPECIFICATION.case
def drops(given):
    """A drop of a missing collection succeeds, as does one of a missing database."""
    equal(given.database.command("drop", "missing")["ok"], 1)
    given.items.insert_one({})
    equal(given.database.command("drop", "items")["ns"], f"{given.name}.items")
    equal(given.database.list_collection_names(), [])
    equal(given.client[f"{given.name}-missing"].command("dropDatabase")["ok"], 1)


@SPECIFICATION.case
def name_only(given):
    """With nameOnly listCollections returns names and types, also with a filter on the name."""
    given.items.insert_one({})
    given.database.command("create", "view", viewOn="items", pipeline=[])
    command = {"listCollections": 1, "nameOnly": True, "authorizedCollections": True}
    found = given.database.command(command)["cursor"]["firstBatch"]
    by_name = {it["name"]: it for it in found if not it["name"].startswith("system.")}
    equal(by_name, {"items": {"name": "items", "type": "collection"}, "view": {"name": "view", "type": "view"}})
    equal(given.database.list_collection_names(filter={"name": "view"}), ["view"])


@SPECIFICATION.case
def full_listing(given):
    """A listing has the collection's UUID, whether it is read-only, and the index of _id."""
    given.items.insert_one({})
    found = listed(given, "items")
    equal((found["type"], found["info"]["readOnly"], found["info"]["uuid"].subtype), ("collection", False, 4))
    equal(found["idIndex"], {"v": 2, "key": {"_id": 1}, "name": "_id_"})


@SPECIFICATION.case
def renaming(given):
    """renameCollection keeps documents and indexes, and replaces its target only if told to."""
    given.items.insert_one({"_id": 1})
    given.items.create_index("x")
    given.database.other.insert_one({"_id": 2})
    refused(48, lambda: given.items.rename("other"))
    given.items.rename("other", dropTarget=True)
    equal((list(given.database.other.find()), sorted(given.database.other.index_information())), ([{"_id": 1}], ["_id_", "x_1"]))
    refused(26, lambda: given.items.rename("third"))


@SPECIFICATION.case
def databases(given):
    """listDatabases counts sizes, has names only if asked to, and takes a filter."""
    given.items.insert_one({})
    found = given.admin.command("listDatabases", filter={"name": given.name})
    equal([(it["name"], it["empty"]) for it in found["databases"]], [(given.name, False)])
    equal(found["totalSize"] > 0, True)
    found = given.admin.command("listDatabases", nameOnly=True, filter={"name": given.name})
    equal(found["databases"], [{"name": given.name}])
