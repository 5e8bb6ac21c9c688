"""Commit, branch, diff, merge, log: each as a method of a database."""

import pymongo
import pytest

import fronddb


@pytest.fixture
def shop(frond_client, request):
    name = f"shop_{request.node.name}"[:60]
    database = frond_client[name]
    database["items"].insert_many({"_id": number, "price": 10 * number} for number in range(1, 4))
    database.commit("first items", author="Ada <ada@example.org>")
    yield database
    frond_client.drop_database(name)


def test_the_walkthrough(shop):
    sale = shop.branch("sale")
    assert (shop.branch_name, sale.branch_name) == (None, "sale")
    sale["items"].update_many({"_id": {"$gt": 1}}, {"$mul": {"price": 2}})
    commit = sale.commit("twice")
    difference = shop.diff("main", "sale")
    assert [(row["_id"], row.change) for row in difference] == [(2, "modified"), (3, "modified")]
    assert str(difference[0]) == "~ items 2\n    price: 20 → 40"
    assert shop.merge("sale")["result"] == "fastForward"
    assert [it.message for it in shop.log()] == ["twice", "first items"]
    assert shop.log(limit=1)[0].commit_id == commit.commit_id
    assert shop["items"].find_one({"_id": 3})["price"] == 60
    assert shop.at("main~1")["items"].find_one({"_id": 3})["price"] == 30
    with pytest.raises(pymongo.errors.OperationFailure):
        shop.at("main~1")["items"].insert_one({"_id": 9})
    assert {it.branch for it in shop.branches()} == {"main", "sale"}
    shop.delete_branch("sale")
    assert [it.branch for it in shop.branches()] == ["main"]


def test_uncommitted_changes_are_the_default_difference(shop):
    assert repr(shop.diff()) == "(diff: nothing)"
    shop["items"].delete_one({"_id": 1})
    shop["items"].insert_one({"_id": 4, "price": 1})
    assert [str(row) for row in shop.diff()] == ["- items 1", "+ items 4"]
    assert shop.status()["dirty"]
    shop.reset("HEAD", hard=True)
    assert not shop.status()["dirty"]


def test_a_conflict_is_raised_and_decided(shop):
    theirs = shop.branch("theirs")
    theirs["items"].update_one({"_id": 1}, {"$set": {"price": 11}})
    theirs.commit("theirs")
    shop["items"].update_one({"_id": 1}, {"$set": {"price": 12}})
    shop.commit("ours")
    with pytest.raises(fronddb.MergeConflicts, match="1 in items") as raised:
        shop.merge("theirs")
    (conflict,) = raised.value.conflicts
    assert (conflict.collection, conflict["_id"], conflict.paths) == ("items", 1, ["price"])
    assert (conflict.base["price"], conflict.ours["price"], conflict.theirs["price"]) == (10, 12, 11)
    assert shop.resolve(conflict, update={"$set": {"price": 13}}) == 0
    assert shop.merge_continue("both")["result"] == "merged"
    assert shop["items"].find_one({"_id": 1})["price"] == 13
    assert [len(it.parents) for it in shop.log(limit=1)] == [2]


def test_a_conflict_is_decided_by_removing_the_document(shop):
    theirs = shop.branch("theirs")
    theirs["items"].delete_one({"_id": 1})
    theirs.commit("theirs")
    shop["items"].update_one({"_id": 1}, {"$set": {"price": 12}})
    with pytest.raises(fronddb.MergeConflicts):
        shop.merge("theirs")
    assert shop.resolve(all=True, value=None) == 0
    shop.merge_continue()
    assert shop["items"].find_one({"_id": 1}) is None


def test_a_merge_that_waits_is_aborted(shop):
    theirs = shop.branch("theirs")
    theirs["items"].update_one({"_id": 1}, {"$set": {"price": 11}})
    theirs.commit("theirs")
    shop["items"].update_one({"_id": 1}, {"$set": {"price": 12}})
    with pytest.raises(fronddb.MergeConflicts):
        shop.merge("theirs")
    assert shop.merge_abort()["result"] == "aborted"
    assert shop["items"].find_one({"_id": 1})["price"] == 12


def test_log_reads_all_pages(shop):
    for number in range(250):
        shop.commit(f"commit {number}", allow_empty=True)
    assert len(shop.log()) == 251
    assert len(shop.log(limit=7)) == 7
    assert [it.message for it in shop.log("main~2..main")] == ["commit 249", "commit 248"]


def test_names_that_drivers_refuse(shop):
    branch = shop.branch("feature/v1.2 beta".replace(" ", "-"))
    branch["items"].insert_one({"_id": "there"})
    assert branch.branch_name == "feature/v1.2-beta"
    assert shop.at("feature/v1.2-beta")["items"].count_documents({}) == 4
    assert shop["items"].count_documents({}) == 3


def test_history_blame_tag_and_undo(shop):
    shop["items"].update_one({"_id": 1}, {"$set": {"price": 15}})
    shop.commit("dearer")
    shop.tag("v1", message="as sold")
    assert shop.at("v1")["items"].find_one({"_id": 1})["price"] == 15
    assert [it["message"] for it in shop.history("items", 1)] == ["dearer", "first items"]
    assert {it["path"]: it["message"] for it in shop.blame("items", 1)}["price"] == "dearer"
    shop.reset("main~1", hard=True)
    assert shop["items"].find_one({"_id": 1})["price"] == 10
    shop.undo()
    assert shop["items"].find_one({"_id": 1})["price"] == 15


def test_options_are_kept(shop):
    concern = pymongo.write_concern.WriteConcern("majority")
    other = shop.with_options(write_concern=concern)
    assert isinstance(other, fronddb.Database)
    assert other.at("main").write_concern == concern
    assert isinstance(shop.client.get_database(shop.name), fronddb.Database)


def test_tables_for_notebooks_are_escaped(shop):
    shop["items"].update_one({"_id": 1}, {"$set": {"name": "<script>alert(1)</script>"}})
    shop.commit("<b>bold</b>")
    for table in (shop.log(), shop.diff("main~1", "main"), shop.branches()):
        text = table._repr_html_()
        assert text.startswith("<table>") and "<script>" not in text and "<b>" not in text
    assert "&lt;script&gt;" in shop.diff("main~1", "main")._repr_html_()
