"""What each screen of the console does, beyond the walkthrough of console.py.

Goal: a pipeline is built stage by stage and each stage shows what comes out of it; a plan shows what
it read and which index it rejected; a document is followed through its versions and put back; indexes
are made, hidden and dropped; an operation is ended; roles, policies and remotes are set; space is
freed; a merge is decided by path and aborted. Each is checked in the database, not only on the screen.
"""

import re
import threading

import pymongo
from playwright.sync_api import expect

from console_browser import Server, settle, wait_for
from ports import free_port


def start(browser, server):
    """The first screen tells of each database's branches and of what waits in it."""
    database = server.client.waits
    database.c.insert_one({"_id": 1, "x": 0})
    database.command("frondCommit", message="base")
    database.command("frondBranch", branch="other")
    server.client["waits@other"].c.update_one({}, {"$set": {"x": 2}})
    server.client["waits@other"].command("frondCommit", message="two")
    database.c.update_one({}, {"$set": {"x": 1}})
    with browser.page() as page:
        card = page.locator("section.card").filter(has=page.get_by_role("heading", name="waits", exact=True))
        expect(card.locator(".badge.branch")).to_have_text(["main", "other"])
        expect(card.get_by_text("uncommitted changes")).to_be_visible()
        expect(card.get_by_text("a merge waits")).to_have_count(0)
        try:
            database.command("frondMerge", merge_in="other")
        except pymongo.errors.OperationFailure as error:
            assert error.code == 96, error
        page.reload()
        card.get_by_text("a merge waits").click()
        expect(page.locator(".choice")).to_have_count(1)
        page.get_by_role("button", name="Abort the merge").click()
        page.get_by_role("dialog").get_by_role("button", name="Abort").click()
        expect(page.locator(".choice")).to_have_count(0)
    assert database.c.find_one() == {"_id": 1, "x": 1}
    assert not database.command("frondStatus")["conflicts"]


def paths(browser, server):
    """Shift and a number decide a path in all documents of the collection."""
    database = server.client.paths
    database.c.insert_many({"_id": number, "price": 0, "stock": 0} for number in range(5))
    database.command("frondCommit", message="base")
    database.command("frondBranch", branch="theirs")
    for name, value in (("paths@theirs", 2), ("paths", 1)):
        server.client[name].c.update_many({}, {"$set": {"price": value, "stock": value}})
        server.client[name].command("frondCommit", message=name)
    with browser.page("#/db/paths/merge?from=theirs") as page:
        page.get_by_role("button", name="Merge and decide").click()
        expect(page.locator(".choice")).to_have_count(10)
        for name, key in (("price", "Shift+Digit2"), ("stock", "Shift+Digit3")):
            page.locator(".choice", has=page.locator(f".name:text-is('{name}')")).first.focus()
            page.keyboard.press(key)
        expect(page.get_by_text("All are decided")).to_be_visible()
        page.get_by_role("button", name="Finish the merge").click()
        expect(page.locator(".log .commit", has_text="Merge theirs")).to_be_visible()
    assert list(database.c.find({}, {"_id": 0})) == [{"price": 2, "stock": 0}] * 5


def pipeline(browser, server):
    """Stages are written, switched off, moved and run; one that writes asks first."""
    items = server.client.demo.items
    with browser.page("#/db/demo/aggregate/items") as page:
        stage = lambda number: page.get_by_role("region", name=f"Stage {number}", exact=True)
        sample = lambda number: page.get_by_role("group", name=f"Sample after stage {number}", exact=True)
        stage(1).locator("textarea").fill('{ name: "lamp" }')
        expect(sample(1)).to_contain_text('"lamp"')
        page.get_by_role("button", name="Add stage").click()
        stage(2).locator("select").select_option("$group")
        stage(2).locator("textarea").fill('{ _id: null, many: { $sum: 1 } }')
        lamps = items.count_documents({"name": "lamp"})
        expect(sample(2)).to_contain_text(f"many: {lamps}")
        # Without the first stage all are counted.
        stage(1).get_by_role("button", name="On", exact=True).click()
        expect(sample(1)).to_have_text("off")
        expect(sample(2)).to_contain_text("many: 300")
        stage(1).get_by_role("button", name="Off", exact=True).click()
        expect(sample(2)).to_contain_text(f"many: {lamps}")
        # A stage that is wrong says so, and what follows it shows nothing.
        stage(1).locator("textarea").fill("{ $nope: 1 }")
        expect(sample(1).locator(".why")).to_contain_text("$nope")
        expect(sample(2)).to_have_text("—")
        stage(1).locator("textarea").fill('{ many: { $gt: 1 } }')
        stage(2).get_by_role("button", name="Move up").click()
        expect(sample(2)).to_contain_text("many: 300")
        browser.check(page, "a pipeline")
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("group", name="Result")).to_contain_text("many: 300")
        page.reload()
        expect(stage(2).locator("textarea")).to_have_value(re.compile("many"))
        page.get_by_role("button", name="Add stage").click()
        stage(3).locator("select").select_option("$out")
        stage(3).locator("textarea").fill('"counted"')
        expect(sample(3)).to_contain_text("It writes")
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert "counted" not in server.client.demo.list_collection_names()
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Run").click()
        wait_for(lambda: server.client.demo.counted.find_one() == {"_id": None, "many": 300})
    server.client.demo.counted.drop()


def plan(browser, server):
    """A plan that reads far more than it gives is marked, and a rejected one has its ranges."""
    server.client.plans.c.insert_many({"_id": number, "a": number % 200, "b": number % 3, "free": number} for number in range(1_000))
    server.client.plans.c.create_index("a")
    server.client.plans.c.create_index("b")
    with browser.page("#/db/plans/explain/c?filter={free: 7}") as page:
        expect(page.locator(".node.bad")).to_contain_text("COLLSCAN")
        expect(page.get_by_text("It reads the whole collection for few documents")).to_be_visible()
        browser.check(page, "a bad plan")
        page.get_by_label("Filter").fill("{ a: 7, b: { $gte: 1 } }")
        page.keyboard.press("Enter")
        chosen = page.locator("section", has=page.get_by_role("heading", name="Plan", exact=True))
        expect(chosen.locator(".badge.branch")).to_have_text("a_1")
        expect(chosen).to_contain_text("[7, 7]")
        expect(page.locator(".node.bad")).to_have_count(0)
        rejected = page.locator("section", has=page.get_by_role("heading", name="Rejected"))
        expect(rejected.locator(".badge.branch").first).to_have_text("b_1")
        expect(rejected).to_contain_text("[1, ")
        browser.check(page, "a good plan")


def versions(browser, server):
    """A document's versions by the slider's keys, its fields' origins, and an old one put back."""
    database = server.client.versions
    for value in range(3):
        database.c.update_one({"_id": "a"}, {"$set": {"x": value, f"only{value}": 1}}, upsert=True)
        database.command("frondCommit", message=f"version {value}", author="Ada <ada@example.org>")
    with browser.page('#/db/versions/document/c?id="a"') as page:
        expect(page.get_by_role("heading", name="3 versions")).to_be_visible()
        view = page.get_by_role("region", name="Versions")
        expect(view.locator("strong").first).to_have_text("version 2")
        blame = page.locator(".blame")
        for name, message in (("only0", "version 0"), ("only1", "version 1"), ("x", "version 2")):
            row = blame.locator("span.mono", has_text=re.compile(f"^{name}$"))
            expect(row.locator("xpath=following-sibling::span[2]")).to_contain_text(message)
        slider = page.get_by_label("Version", exact=True)
        slider.focus()
        page.keyboard.press("ArrowLeft")
        expect(view.locator("strong").first).to_have_text("version 1")
        expect(slider).to_have_attribute("aria-valuetext", "version 1")
        expect(view.locator("pre")).to_contain_text("only1")
        expect(view.locator("pre")).not_to_contain_text("only2")
        browser.check(page, "versions")
        page.get_by_role("button", name="Restore this version").click()
        page.get_by_role("dialog").get_by_role("button", name="Restore").click()
        expect(page.get_by_text("uncommitted changes").first).to_be_visible()
    assert database.c.find_one() == {"_id": "a", "x": 1, "only0": 1, "only1": 1}
    assert database.command("frondStatus")["dirty"]


def indexes(browser, server):
    """An index is built with its options, hidden, shown and dropped; one that can't be says why."""
    collection = server.client.indexes.c
    collection.insert_many([{"_id": 1, "a": 1, "b": 1}, {"_id": 2, "a": 1, "b": 2}])
    with browser.page("#/db/indexes/indexes/c") as page:
        page.get_by_role("button", name="New index").click()
        page.get_by_role("dialog").get_by_label("Keys").fill("{ a: 1 }")
        page.get_by_label("Options").fill("{ unique: true }")
        page.get_by_role("button", name="Build").click()
        expect(page.locator("dialog .why")).to_contain_text("duplicate key")
        page.get_by_role("dialog").get_by_label("Keys").fill("{ b: -1, a: 1 }")
        page.get_by_role("button", name="Build").click()
        row = page.get_by_role("row", name=re.compile("b_-1_a_1"))
        expect(row.get_by_text("unique")).to_be_visible()
        assert collection.index_information()["b_-1_a_1"]["unique"]
        browser.check(page, "indexes")
        row.get_by_role("button", name="Hide").click()
        expect(row.get_by_text("hidden", exact=True)).to_be_visible()
        assert collection.index_information()["b_-1_a_1"]["hidden"]
        row.get_by_role("button", name="Show").click()
        expect(row.get_by_role("button", name="Hide")).to_be_visible()
        row.get_by_role("button", name="Drop b_-1_a_1").click()
        page.get_by_role("dialog").get_by_role("button", name="Drop").click()
        expect(row).to_have_count(0)
    assert list(collection.index_information()) == ["_id_"]


def operations(browser, server):
    """An operation that runs for long is listed, and ended by its button."""
    ended = []

    def run():
        with pymongo.MongoClient(server.uri, directConnection=True, appname="a long one") as client:
            try:
                client.demo.items.find_one({"$where": "const until = Date.now() + 100; while (Date.now() < until); return false"})
            except pymongo.errors.PyMongoError as error:
                ended.append(error)

    with browser.page("#/metrics") as page:
        thread = threading.Thread(target=run)
        thread.start()
        row = page.get_by_role("row", name=re.compile("a long one"))
        row.get_by_role("button", name="End").click()
        browser.check(page, "ending an operation")
        page.get_by_role("dialog").get_by_role("button", name="End").click()
        thread.join(30)
        assert not thread.is_alive() and ended and ended[0].code == 11601, ended
        expect(row).to_have_count(0)


def roles(browser, server):
    """A role is made and dropped, a user with it is changed and dropped."""
    admin = server.client.admin
    with browser.page("#/users") as page:
        page.get_by_role("button", name="New role").click()
        page.get_by_label("Name").fill("keeper")
        page.get_by_label("Database", exact=True).fill("demo")
        page.get_by_label("Privileges").fill('[{resource: {db: "demo", collection: ""}, actions: ["find"]}]')
        page.get_by_role("button", name="Create").click()
        role = page.locator("details", has_text="keeper")
        expect(role).to_be_visible()
        page.get_by_role("button", name="New user").click()
        page.get_by_label("Name").fill("cy")
        page.get_by_label("Database", exact=True).fill("demo")
        page.get_by_label("Password").fill("secret")
        page.get_by_label("Roles").fill("keeper")
        page.get_by_role("button", name="Create").click()
        page.get_by_role("button", name="Change cy").click()
        page.get_by_label("Roles").fill("keeper, read@other")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("read@other")).to_be_visible()
        [user] = server.client.demo.command("usersInfo", "cy")["users"]
        assert sorted((it["role"], it["db"]) for it in user["roles"]) == [("keeper", "demo"), ("read", "other")], user
        role.click()
        role.get_by_role("button", name="Drop").click()
        page.get_by_role("dialog").get_by_role("button", name="Drop").click()
        expect(role).to_have_count(0)
        page.get_by_role("button", name="Drop cy").click()
        page.get_by_role("dialog").get_by_role("button", name="Drop").click()
        expect(page.get_by_role("button", name="Drop cy")).to_have_count(0)
    assert not admin.command("usersInfo", {"forAllDBs": True})["users"]


def policy(browser, server):
    """A rule that is set on the screen refuses a commit; removed, it doesn't."""
    database = server.client.ruled
    database.items.insert_one({"_id": 1, "price": -1})
    commit = lambda: database.command("frondCommit", message="a price")
    with browser.page("#/db/ruled") as page:
        page.get_by_role("link", name="Settings", exact=True).click()
        section = page.get_by_role("region", name="Policy")
        section.get_by_role("button", name="Set").click()
        area = page.get_by_label("Fields")
        area.fill("{ nope: 1 }")
        page.get_by_role("dialog").get_by_role("button", name="Set").click()
        expect(page.locator("dialog .why")).to_contain_text("nope")
        area.fill('{ rules: [{ name: "prices", collection: "items", documents: { price: { $gte: 0 } } }] }')
        browser.check(page, "a policy")
        page.get_by_role("dialog").get_by_role("button", name="Set").click()
        expect(section.locator("pre")).to_contain_text("prices")
        try:
            commit()
            raise AssertionError("the rule isn't checked")
        except pymongo.errors.OperationFailure as error:
            assert error.code == 121, error
        section.get_by_role("button", name="Remove").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        expect(section.get_by_text("None:")).to_be_visible()
    commit()


def remotes(browser_of, frond):
    """A remote is added, fetched from, merged, pushed to and removed."""
    port = free_port()
    origin, server = Server(frond, "--remote-listen", f"127.0.0.1:{port}"), Server(frond)
    try:
        origin.client.shop.c.insert_one({"_id": 1})
        origin.client.shop.command("frondCommit", message="one")
        server.client.shop.command("frondClone", **{"from": f"http://127.0.0.1:{port}/shop"})
        server.client.shop.command("frondRemote", name="origin", remove=True)
        origin.client.shop.c.insert_one({"_id": 2})
        origin.client.shop.command("frondCommit", message="two")
        browser = browser_of(server)
        with browser.page("#/db/shop/settings") as page:
            section = page.get_by_role("region", name="Remotes")
            section.get_by_role("button", name="Add remote").click()
            page.get_by_label("Place").fill("/a/directory")
            page.get_by_role("dialog").get_by_role("button", name="Add").click()
            expect(page.locator("dialog .why")).not_to_be_empty()
            page.get_by_label("Place").fill(f"http://127.0.0.1:{port}/shop")
            page.get_by_role("dialog").get_by_role("button", name="Add").click()
            section.get_by_role("button", name="Fetch").click()
            browser.check(page, "a fetch")
            page.get_by_role("dialog").get_by_role("button", name="Fetch").click()
            page.locator(".notes").get_by_role("button", name="Merge origin/main").click()
            page.get_by_role("button", name="Merge", exact=True).click()
            expect(page.locator(".log .commit", has_text="two")).to_be_visible()
            assert server.client.shop.c.count_documents({}) == 2
            server.client.shop.c.insert_one({"_id": 3})
            server.client.shop.command("frondCommit", message="three")
            page.get_by_role("link", name="Settings", exact=True).click()
            section.get_by_role("button", name="Push main").click()
            page.get_by_role("dialog").get_by_role("button", name="Push").click()
            expect(page.get_by_text("Pushed: 1 commit")).to_be_visible()
            assert origin.client.shop.c.count_documents({}) == 3
            section.get_by_role("button", name="Remove origin").click()
            page.get_by_role("dialog").get_by_role("button", name="Remove").click()
            expect(section.get_by_text("None:")).to_be_visible()
        assert not server.client.shop.command("frondRemote")["remotes"]
    finally:
        server.close()
        origin.close()


def space(browser, server):
    """Space is freed by a button, and what is kept for undo is told."""
    server.client.space.c.insert_many({"_id": number, "text": "x" * 100} for number in range(1_000))
    server.client.space.c.drop()
    with browser.page() as page:
        page.get_by_role("link", name="Space and backups").click()
        expect(page.get_by_role("row", name=re.compile("demo"))).to_contain_text("B")
        page.get_by_role("button", name="Free space").click()
        page.get_by_label("How").select_option("usual")
        browser.check(page, "freeing space")
        page.get_by_role("dialog").get_by_role("button", name="Free").click()
        expect(page.get_by_text(re.compile("are kept so that they can be brought back"))).to_be_visible(timeout=60_000)
        expect(page.get_by_text("frond backup PLACE --list")).to_be_visible()
        settle(page)
        browser.check(page, "space")
    server.client.space.command("frondUndo")
    assert server.client.space.c.count_documents({}) == 1_000


PARTS = {
    "start": start, "paths": paths, "pipeline": pipeline, "plan": plan, "versions": versions, "indexes": indexes,
    "operations": operations, "roles": roles, "policy": policy, "space": space,
}
