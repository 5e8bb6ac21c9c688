"""The scripted session through PyMongo. Prints one JSON line a step: [name, result]."""

import json
import sys
from datetime import datetime, timezone
from decimal import Decimal

from bson import Binary, Decimal128, Int64, ObjectId, Regex, Timestamp
from bson.max_key import MaxKey
from bson.min_key import MinKey
from pymongo import DeleteOne, InsertOne, MongoClient, ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure

address, name = sys.argv[1:]
client = MongoClient(f"mongodb://{address}/", serverSelectionTimeoutMS=120_000)
db = client[name]
products = db.products


def step(title, result):
    print(json.dumps([title, result]), flush=True)


def refused(call):
    """The error that a call raises."""
    try:
        call()
    except OperationFailure as error:
        return error
    raise AssertionError("not refused")


def ids(documents):
    return [document["_id"] for document in documents]


def crud():
    step("ping", client.admin.command("ping")["ok"])
    pen = {"_id": 1, "name": "pen", "price": 2, "tags": ["blue", "ink"], "size": {"h": 14, "w": 1}}
    step("insert one", products.insert_one(pen).inserted_id)
    step(
        "insert many",
        products.insert_many(
            [
                {"_id": 2, "name": "pencil", "price": 1, "tags": ["wood"], "size": {"h": 17, "w": 1}},
                {"_id": 3, "name": "paper", "price": 5, "tags": ["lined", "blue"], "size": {"h": 30, "w": 21}},
                {"_id": 4, "name": "ruler", "price": 12.5, "tags": ["wood"], "size": {"h": 30, "w": 3}},
                {"_id": 5, "name": "eraser", "price": 1, "tags": ["red"], "size": {"h": 3, "w": 2}},
            ]
        ).inserted_ids,
    )
    found = products.find({"price": {"$gte": 2}, "tags": {"$ne": "lined"}}, {"price": 1}).sort("price", -1)
    step("find with filter, sort and projection", list(found))
    step("find one by a dotted path", products.find_one({"size.w": 2})["_id"])
    step("find in an array", ids(products.find({"tags": "blue"}).sort("_id", 1)))
    step("read in batches of two", ids(products.find(batch_size=2).sort("_id", 1)))
    step("skip and limit", ids(products.find().sort("_id", -1).skip(2).limit(2)))
    step("count", products.count_documents({"price": {"$gt": 1}}))
    step("estimated count", products.estimated_document_count())
    step("distinct", sorted(products.distinct("tags")))
    result = products.update_one({"_id": 1}, {"$inc": {"price": 4}, "$set": {"stock": 10}})
    step("update one", [result.matched_count, result.modified_count])
    result = products.update_one({"_id": 1}, {"$set": {"stock": 10}})
    step("update one that is so already", [result.matched_count, result.modified_count])
    result = products.update_many({}, {"$push": {"tags": "shop"}})
    step("update many", [result.matched_count, result.modified_count])
    step("upsert", products.update_one({"_id": 6}, {"$set": {"name": "glue"}}, upsert=True).upserted_id)
    products.replace_one({"_id": 6}, {"name": "glue", "price": 3})
    step("replace one", products.find_one({"_id": 6}))
    changed = products.find_one_and_update(
        {"name": "pen"}, {"$inc": {"price": 1}}, {"price": 1, "stock": 1}, return_document=ReturnDocument.AFTER
    )
    step("find one and update", changed)
    step("find one and delete", products.find_one_and_delete({"name": "glue"})["_id"])
    step("delete one", products.delete_one({"_id": 5}).deleted_count)
    result = products.bulk_write(
        [InsertOne({"_id": 7, "name": "tape"}), UpdateOne({"_id": 7}, {"$set": {"price": 1}}), DeleteOne({"_id": 7})]
    )
    step("bulk write", [result.inserted_count, result.modified_count, result.deleted_count])
    space, other = f"{name}.products", f"{name}.others"
    result = client.bulk_write(
        [
            InsertOne({"_id": 7, "name": "tape"}, namespace=space),
            InsertOne({"_id": 1}, namespace=other),
            UpdateOne({"_id": 7}, {"$set": {"price": 1}}, namespace=space),
            UpdateOne({"_id": 8}, {"$set": {"price": 1}}, upsert=True, namespace=other),
            DeleteOne({"_id": 7}, namespace=space),
        ],
        verbose_results=True,
    )
    counts = [result.inserted_count, result.matched_count, result.modified_count, result.upserted_count]
    step("bulk write of the client", [*counts, result.deleted_count, result.update_results[3].upserted_id])
    db.others.drop()


def indexes():
    step("create an index", products.create_index("name", unique=True))
    step("list indexes", sorted(products.index_information()))
    error = refused(lambda: products.insert_one({"_id": 8, "name": "pen"}))
    step("a duplicate key", [error.code, error.details["keyPattern"], error.details["keyValue"]])
    documents = [{"_id": 11, "name": "a"}, {"_id": 12, "name": "pen"}, {"_id": 13, "name": "b"}]
    try:
        products.insert_many(documents, ordered=False)
    except BulkWriteError as error:
        positions = [failed["index"] for failed in error.details["writeErrors"]]
        step("documents around a duplicate key", [error.details["nInserted"], positions])
    products.delete_many({"_id": {"$in": [11, 13]}})
    step("find by the index", ids(products.find({"name": "pen"})))
    plan = products.find({"name": "pen"}).explain()["queryPlanner"]["winningPlan"]
    step("explain", plan.get("inputStage", plan)["stage"])
    step("validate", db.validate_collection("products", full=True)["valid"])
    texts()


def texts():
    notes = db.notes
    notes.insert_many(
        [
            {"_id": 1, "title": "Java Hut", "body": "Coffee and cakes"},
            {"_id": 2, "title": "Coffee Shop", "body": "Just coffee", "language": "en"},
            {"_id": 3, "title": "Le café", "body": "Nous avons mangé", "language": "french"},
        ]
    )
    step("create a text index", notes.create_index([("title", "text"), ("body", "text")], weights={"title": 3}))
    query = {"$text": {"$search": "coffee"}}
    score = {"score": {"$meta": "textScore"}}
    found = notes.find(query, {"_id": 1, **score}).sort([("score", {"$meta": "textScore"})])
    step("search texts", [[document["_id"], document["score"]] for document in found])
    step("search in French", ids(notes.find({"$text": {"$search": "manger", "$language": "fr"}})))
    keyed = notes.find({}, {"k": {"$meta": "sortKey"}}).sort("title", 1)
    step("sort keys", [[document["_id"], document["k"]] for document in keyed])
    step("sort keys without a sort", refused(lambda: list(notes.find({}, {"k": {"$meta": "sortKey"}}))).code)
    step("a second text index", refused(lambda: notes.create_index([("x", 1), ("y", "text")])).code)
    notes.drop()


def pipelines():
    stages = [
        {"$unwind": "$tags"},
        {"$match": {"tags": {"$in": ["ink", "wood"]}}},
        {"$group": {"_id": "$tags", "count": {"$sum": 1}, "sum": {"$sum": "$price"}}},
        {"$sort": {"_id": 1}},
    ]
    step("aggregate", list(products.aggregate(stages)))
    db.makers.insert_one({"_id": "Faber", "makes": 2})
    stages = [
        {"$match": {"_id": 2}},
        {"$lookup": {"from": "makers", "localField": "_id", "foreignField": "makes", "as": "makers"}},
        {"$project": {"makers": "$makers._id"}},
    ]
    step("look up", list(products.aggregate(stages)))
    every = {
        "_id": ObjectId(),
        "double": 1.5,
        "text": "grün ✓",
        "binary": Binary(b"\x00\xff", 0x80),
        "null": None,
        "flag": True,
        "date": datetime(2024, 2, 29, 12, 30, tzinfo=timezone.utc),
        "long": Int64(2**40),
        "decimal": Decimal128(Decimal("0.10")),
        "regex": Regex("^a", "i"),
        "timestamp": Timestamp(5, 6),
        "least": MinKey(),
        "greatest": MaxKey(),
        "nested": {"list": [1, [2, {"three": 3}]]},
    }
    with_zones = db.products.with_options(codec_options=db.codec_options.with_options(tz_aware=True))
    with_zones.insert_one(every)
    step("types survive", with_zones.find_one({"_id": every["_id"]}) == every)
    products.delete_one({"_id": every["_id"]})
    step("collections", sorted(db.list_collection_names()))


def versions():
    commit = db.command("frondCommit", message="the first", author="Ada")
    step("commit", [len(commit["commitId"]), commit["branch"], commit["message"], commit["author"]])
    step("status", db.command("frondStatus")["dirty"])
    step("branch", db.command("frondBranch", branch="feature")["branch"])
    step("branches", sorted(branch["branch"] for branch in db.command("frondBranch")["branches"]))
    feature = client[f"{name}@feature"]
    step("change the branch", feature.products.update_one({"_id": 1}, {"$set": {"price": 8}}).modified_count)
    step("the branch's price", feature.products.find_one({"_id": 1})["price"])
    step("the main price", products.find_one({"_id": 1})["price"])
    differences = []
    for part in feature.command("frondDiff")["collections"]:
        change = part["modified"][0]["changes"][0]
        counts = [len(part["added"]), len(part["removed"]), len(part["modified"])]
        differences.append([part["collection"], *counts, [change[key] for key in ("type", "path", "from", "to")]])
    step("diff", differences)
    feature.command("frondCommit", message="on feature", author="Ada")
    products.update_one({"_id": 1}, {"$inc": {"stock": 1}})
    db.command("frondCommit", message="on main", author="Ada")
    step("merge", db.command("frondMerge", merge_in="feature", message="merge feature", author="Ada")["result"])
    step("the merged document", products.find_one({"_id": 1}, {"price": 1, "stock": 1}))
    before = client[f"{name}@main~1"].products
    step("the version before", before.find_one({"_id": 1}, {"price": 1, "stock": 1}))
    log = [commit["message"] for commit in db.command("frondLog")["commits"]]
    step("log", [message for message in log if message != "on feature"][:3])


def conflicts():
    feature = client[f"{name}@feature"]
    products.update_one({"_id": 1}, {"$set": {"price": 20}})
    db.command("frondCommit", message="twenty", author="Ada")
    feature.products.update_one({"_id": 1}, {"$set": {"price": 30}})
    feature.command("frondCommit", message="thirty", author="Ada")
    error = refused(lambda: db.command("frondMerge", merge_in="feature"))
    step("a conflict", [error.code, error.details["conflicts"]])
    conflict = db.command("frondConflicts")["conflicts"][0]
    sides = [conflict[side]["price"] for side in ("base", "ours", "theirs")]
    step("the conflict", [conflict["_id"], conflict["paths"], *sides])
    resolved = db.command("frondResolveConflict", id=conflict["id"], resolution="theirs")
    step("resolve", resolved["remaining"])
    step("continue the merge", db.command({"frondMerge": 1, "continue": True, "author": "Ada"})["result"])
    step("the resolved price", products.find_one({"_id": 1})["price"])
    old = client[f"{name}@main~1"].products
    step("a write to an old version", refused(lambda: old.insert_one({})).code)
    products.delete_one({"_id": 1})
    db.command("frondReset", hard=True)
    step("reset", [products.count_documents({"_id": 1}), products.find_one({"_id": 1})["price"]])
    step("delete the branch", db.command("frondBranch", branch="feature", delete=True)["deleted"])


def transactions():
    accounts = db.accounts
    accounts.insert_many([{"_id": "a", "n": 100}, {"_id": "b", "n": 100}])
    db.command("frondCommit", message="accounts", author="Ada")
    db.command("frondBranch", branch="copy")
    copy = client[f"{name}@copy"]

    def transfer(session):
        accounts.update_one({"_id": "a"}, {"$inc": {"n": -10}}, session=session)
        copy.accounts.update_one({"_id": "a"}, {"$inc": {"n": 10}}, session=session)
        db.ledger.insert_one({"sum": 10}, session=session)
        return accounts.find_one({"_id": "a"}, session=session)["n"]

    def balance(collection, account):
        return collection.find_one({"_id": account})["n"]

    with client.start_session() as session:
        inside = session.with_transaction(transfer)
        balances = [balance(accounts, "a"), balance(copy.accounts, "a")]
        step("a transfer across collections and branches", [inside, *balances, db.ledger.count_documents({})])

    attempts = []

    def contended(session):
        before = accounts.find_one({"_id": "b"}, session=session)["n"]
        attempts.append(before)
        if len(attempts) == 1:
            with client.start_session() as other:
                other.with_transaction(lambda other: accounts.update_one({"_id": "b"}, {"$inc": {"n": 5}}, session=other))
        accounts.update_one({"_id": "b"}, {"$set": {"n": before + 1}}, session=session)

    with client.start_session() as session:
        session.with_transaction(contended)
        step("a conflict is retried", [attempts, balance(accounts, "b")])
        session.start_transaction()
        db.ledger.insert_one({"sum": 0}, session=session)
        session.abort_transaction()
        step("abort", db.ledger.count_documents({}))
        session.start_transaction()
        db.ledger.insert_one({"sum": 1}, session=session)
        session.commit_transaction()
        session.commit_transaction()
        step("commit twice", db.ledger.count_documents({}))
        session.start_transaction()
        db.ledger.find_one({}, session=session)
        error = refused(lambda: db.command("frondStatus", session=session))
        step("a version command in a transaction", error.code)
        session.abort_transaction()
    # Its number is above what the driver counts: a session that isn't ended is not reused.
    session = client.start_session()
    insert = {"insert": "ledger", "documents": [{"_id": "once"}], "txnNumber": Int64(1000)}
    answers = [db.command(insert, session=session) for _ in range(2)]
    retried = answers[1]["retriedStmtIds"]
    step("an insert sent twice", [*(answer["n"] for answer in answers), retried, db.ledger.count_documents({})])
    with client.start_session(causal_consistency=True) as session:
        db.ledger.insert_one({"_id": "causal"}, session=session)
        found = db.ledger.find_one({"_id": "causal"}, session=session)
        step("a causal session", [found["_id"], session.operation_time is not None])
    db.ledger.drop()
    accounts.drop()
    copy.accounts.drop()


def errors():
    error = refused(lambda: db.command("noSuchThing"))
    step("an unknown command", [error.code, error.details["codeName"]])
    step("an unknown operator", refused(lambda: list(products.find({"a": {"$foo": 1}}))).code)
    step("a wrong type", refused(lambda: db.command("find", "products", filter="x")).code)
    step("an unknown field", refused(lambda: db.command("find", "products", foo=1)).code)
    step("databases", name in client.list_database_names())
    products.drop()
    step("drop the collection", db.list_collection_names())
    client.drop_database(name)
    step("drop the database", name in client.list_database_names())


crud()
indexes()
pipelines()
versions()
conflicts()
transactions()
errors()
