"""The console in a browser, against the real binary.

Goal: what docs/console.md promises holds where people use it: a walkthrough by mouse, values of
every BSON type edited and saved exactly (compared as bytes), conflicts decided by keys, a hundred
thousand documents scrolled, no request to anywhere else, nothing stored that runs, screens that axe
finds no fault with in light, in dark and 360 pixels wide. What each of the other screens does is in
console_screens.py.

Needs `pip install playwright pymongo`, Debian's chromium and, for what axe says, `npm install
axe-core`; it is run by hand, and is skipped by CI where these are missing:

    python conformance/console.py --frond target/debug/frond --axe node_modules/axe-core/axe.min.js
    python conformance/console.py --frond target/debug/frond --pictures docs/console
"""

import argparse
import contextlib
import datetime
import pathlib
import re
import struct
import subprocess
import sys
import time
import traceback

import bson
import pymongo
from bson.raw_bson import RawBSONDocument
from playwright.sync_api import expect, sync_playwright

import console_screens
from console_browser import Browser, Server, settle, wait_for

def walk(browser, server):
    """A database is made, filled, committed, branched, changed, compared, merged and undone."""
    with browser.page() as page:
        page.get_by_role("button", name="New database").click()
        page.get_by_label("Name").fill("shop")
        page.get_by_label("First collection").fill("items")
        page.get_by_role("button", name="Create").click()
        page.get_by_role("link", name="items").first.click()
        expect(page.get_by_text("0 documents")).to_be_visible()
        page.keyboard.press("n")
        page.keyboard.type("_id: 0, typed: 'at once'")
        expect(page.get_by_label("Documents", exact=True)).to_have_value("{\n  _id: 0, typed: 'at once'\n}")
        page.get_by_label("Documents", exact=True).fill("[{_id: 1, name: 'lamp', price: 30}, {_id: 2, name: 'desk', price: 200.5}, {_id: 3, name: 'rug', price: NumberLong('80')}]")
        page.get_by_role("button", name="Insert").click()
        expect(page.get_by_text("3 documents")).to_be_visible()
        page.get_by_label("Filter").fill("{price: {$gt: 50}}")
        page.keyboard.press("Enter")
        expect(page.get_by_text("2 documents")).to_be_visible()
        commit(page, "First items")
        page.get_by_role("link", name="History", exact=True).click()
        page.get_by_role("button", name="New branch").click()
        page.get_by_label("Name").fill("sale")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_label("Branch", exact=True)).to_have_value("sale")
        page.get_by_role("navigation", name="Databases").get_by_role("link", name="items").click()
        page.get_by_role("row", name=re.compile("lamp")).click()
        edit(page, "price", "20")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved", exact=True)).to_be_visible()
        commit(page, "Cheaper")
        page.get_by_label("From").fill("main")
        page.get_by_label("To").fill("sale")
        page.get_by_role("button", name="Compare").click()
        expect(page.locator(".from")).to_have_text("30")
        expect(page.locator(".to")).to_have_text("20")
        page.get_by_label("Branch", exact=True).select_option("main")
        merge = page.get_by_role("link", name="Merge", exact=True)
        expect(merge).to_have_attribute("href", "#/db/shop/merge")
        merge.click()
        page.get_by_label("Into main merge").select_option("sale")
        expect(page.get_by_text("The branch moves forward")).to_be_visible()
        expect(page.get_by_text("1 commit comes in")).to_be_visible()
        assert server.client.shop.items.find_one({"_id": 1})["price"] == 30
        page.get_by_role("button", name="Merge", exact=True).click()
        expect(page.locator(".log .commit", has_text="Cheaper")).to_be_visible()
        assert server.client.shop.items.find_one({"_id": 1})["price"] == 20
        page.locator(".notes").get_by_role("button", name="Undo").click()
        expect(page.locator(".log .commit", has_text="Cheaper")).not_to_be_visible()
        assert server.client.shop.items.find_one({"_id": 1})["price"] == 30


def commit(page, message):
    page.locator(".crumbs a").click()
    page.get_by_role("link", name="Changes", exact=True).click()
    page.get_by_role("button", name="Commit").click()
    page.get_by_label("Message").fill(message)
    page.get_by_role("dialog").get_by_role("button", name="Commit").click()
    expect(page.get_by_text("Nothing has changed")).to_be_visible()


def edit(page, name, text, kind=None):
    """Edits the value of a field by keys."""
    leaf = page.locator("li[data-path]").filter(has=page.locator(f".leaf > .name:text-is('{name}')")).first
    value = leaf.locator("> .leaf button.value")
    leaf.wait_for()
    if value.count():
        value.focus()
        page.keyboard.press("Enter")
    else:
        leaf.hover()
        leaf.get_by_role("button", name=f"Edit {name} as text").click()
    area = page.locator(".tree form textarea")
    if kind:
        page.locator(".tree form select").select_option(kind)
    area.fill(text)
    area.press("Control+Enter")
    expect(page.locator(".tree form")).to_have_count(0)


def text(value):
    data = value.encode()
    return struct.pack("<i", len(data) + 1) + data + b"\0"


def whole(*elements):
    body = b"".join(bytes([kind]) + name.encode() + b"\0" + data for name, kind, data in elements)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def with_scope(code, scope):
    body = text(code) + scope
    return struct.pack("<i", len(body) + 4) + body


ID = bytes.fromhex("0123456789abcdef01234567")
BINARY = lambda kind, data: struct.pack("<iB", len(data), kind) + data
DECIMAL = lambda number: bson.Decimal128(number).bid

# Each type: its name, number and bytes before, what is written for it, its number and bytes after.
TYPES = [
    ("double", 1, struct.pack("<d", 1.0), "-0.0", 1, struct.pack("<d", -0.0)),
    ("double_large", 1, struct.pack("<d", 1e300), "5e-324", 1, struct.pack("<d", 5e-324)),
    ("double_nan", 1, struct.pack("<d", float("inf")), "NaN", 1, struct.pack("<d", float("nan"))),
    ("string", 2, text("a"), "<b>ü\u2028\"quoted\"</b>", 2, text("<b>ü\u2028\"quoted\"</b>")),
    ("object", 3, whole(("b", 16, b"\1\0\0\0")), '{ "2": 1, "1": NumberLong(2), b: { } }', 3, whole(("2", 16, b"\1\0\0\0"), ("1", 18, b"\2\0\0\0\0\0\0\0"), ("b", 3, whole()))),
    ("array", 4, whole(("0", 16, b"\1\0\0\0")), "[1.0, [null], 'x']", 4, whole(("0", 1, struct.pack("<d", 1.0)), ("1", 4, whole(("0", 10, b""))), ("2", 2, text("x")))),
    ("binary", 5, BINARY(0, b"\0\1"), 'BinData(128, "/wA=")', 5, BINARY(128, b"\xff\0")),
    ("uuid", 5, BINARY(4, bytes(range(16))), 'UUID("ffffffff-0000-4000-8000-000000000001")', 5, BINARY(4, bytes.fromhex("ffffffff000040008000000000000001"))),
    ("undefined", 6, b"", ("null", ""), 10, b""),
    ("object_id", 7, ID, "ffffffffffffffffffffffff", 7, b"\xff" * 12),
    ("bool", 8, b"\1", "false", 8, b"\0"),
    ("date", 9, struct.pack("<q", 1), "1969-12-31T23:59:59.999Z", 9, struct.pack("<q", -1)),
    ("date_far", 9, struct.pack("<q", 2**62), str(-(2**62)), 9, struct.pack("<q", -(2**62))),
    ("null", 10, b"", ("undefined", ""), 6, b""),
    ("regex", 11, b"a\0i\0", 'RegExp("a/\\\\d", "im")', 11, b"a/\\d\0im\0"),
    ("pointer", 12, text("c") + ID, f'DBPointer("d", ObjectId("{"f" * 24}"))', 12, text("d") + b"\xff" * 12),
    ("code", 13, text("x"), "return '<script>'", 13, text("return '<script>'")),
    ("symbol", 14, text("x"), "y", 14, text("y")),
    ("scoped", 15, with_scope("x", whole(("a", 16, b"\1\0\0\0"))), 'Code("y", { a: NumberLong(1) })', 15, with_scope("y", whole(("a", 18, b"\1\0\0\0\0\0\0\0")))),
    ("int", 16, struct.pack("<i", 1), "-2147483648", 16, struct.pack("<i", -(2**31))),
    ("timestamp", 17, struct.pack("<II", 1, 2), "4294967295, 1", 17, struct.pack("<II", 1, 2**32 - 1)),
    ("long", 18, struct.pack("<q", 1), "9223372036854775807", 18, struct.pack("<q", 2**63 - 1)),
    ("long_small", 18, struct.pack("<q", 7), "8", 18, struct.pack("<q", 8)),
    ("decimal", 19, DECIMAL("1.20"), "1.200E-10", 19, DECIMAL("1.200E-10")),
    ("low", 255, b"", ("maxKey", ""), 127, b""),
    ("high", 127, b"", ("minKey", ""), 255, b""),
]


def raw(server, collection, number):
    options = bson.CodecOptions(document_class=RawBSONDocument)
    return server.client.types.get_collection(collection, options).find_one({"_id": number}).raw


def types(browser, server):
    """Every type is edited, and its bytes are what they are to be; what isn't edited stays."""
    number = ("_id", 16, b"\1\0\0\0")
    before = whole(number, *[(name, kind, data) for name, kind, data, *_ in TYPES])
    after = whole(number, *[(name, kind, data) for name, *_, kind, data in TYPES])
    server.client.types.c.insert_one(RawBSONDocument(before))
    assert raw(server, "c", 1) == before
    with browser.page("#/db/types/documents/c") as page:
        page.get_by_role("row").nth(1).click()
        # Read as text and taken over, nothing is another value.
        page.get_by_role("button", name="Text", exact=True).click()
        page.get_by_role("button", name="Take over").click()
        expect(page.get_by_role("button", name="Save")).not_to_be_visible()
        for at, (name, _, _, written, _, _) in enumerate(TYPES):
            kind, words = written if isinstance(written, tuple) else (None, written)
            edit(page, name, words, kind)
            if at == 0:
                expect(page.get_by_text("1 change", exact=True)).to_be_visible()
        expect(page.get_by_text(re.compile(r"^\d\d changes$"))).to_be_visible()
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Saved", exact=True)).to_be_visible()
        assert raw(server, "c", 1) == after, (raw(server, "c", 1), after)

        # Clone, by the text of all of it.
        page.get_by_role("button", name="Clone").click()
        area = page.get_by_label("Documents", exact=True)
        area.fill(area.input_value().replace("{", "{ _id: 2,", 1))
        page.get_by_role("button", name="Insert").click()
        expect(page.get_by_text("2 documents")).to_be_visible()
        assert raw(server, "c", 2)[11:] == after[11:]

        # Fields are added, renamed and removed.
        page.get_by_role("row").nth(1).click()
        page.locator("li[data-path]").filter(has=page.locator(".name:text-is('double')")).first.hover()
        page.get_by_role("button", name="Remove double", exact=True).click()
        page.get_by_role("button", name="Add field").last.click()
        page.get_by_label("Name").fill("a.b")
        page.get_by_label("Type").select_option("long")
        page.locator(".tree form textarea").fill("5")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Saved", exact=True).last).to_be_visible()
        expected = whole(number, *[(name, kind, data) for name, *_, kind, data in TYPES[1:]], ("a.b", 18, struct.pack("<q", 5)))
        wait_for(lambda: raw(server, "c", 1) == expected)

        # Who was faster isn't overwritten.
        server.client.types.c.update_one({"_id": 1}, {"$set": {"string": "theirs"}})
        edit(page, "string", "mine")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("not saved: somebody else")).to_be_visible()
        assert server.client.types.c.find_one({"_id": 1}, {"string": 1})["string"] == "theirs"


def conflicts(browser, server):
    """Three sides, ten paths in two documents, decided by keys alone; what merged cleanly stays."""
    database = server.client.both
    names = [f"f{number}" for number in range(8)]
    database.c.insert_many([{"_id": 1, "clean": 0, "inner": {"a": 0, "b": 0}, **{name: 0 for name in names}}, {"_id": 2, "x": 0}])
    database.command("frondCommit", message="base")
    database.command("frondBranch", branch="theirs")
    other = server.client["both@theirs"]
    other.c.update_one({"_id": 1}, {"$set": {"clean": 2, "inner.a": 2, **{name: 2 for name in names}}})
    other.c.update_one({"_id": 2}, {"$set": {"x": 2}})
    other.command("frondCommit", message="theirs")
    database.c.update_one({"_id": 1}, {"$set": {"inner.b": 1, "inner.a": 1, **{name: 1 for name in names}}})
    database.c.update_one({"_id": 2}, {"$set": {"x": 1}})
    database.command("frondCommit", message="ours")
    with browser.page("#/db/both/merge?from=theirs") as page:
        expect(page.get_by_text("2 conflicts")).to_be_visible()
        browser.check(page, "preview")
        assert not database.command("frondStatus")["conflicts"]
        page.get_by_role("button", name="Merge and decide").click()
        expect(page.locator(".choice")).to_have_count(10)
        browser.check(page, "conflicts")
        expect(page.get_by_role("button", name="Finish the merge")).to_be_disabled()
        expect(page.locator(".choice").first).to_be_focused()
        paths = page.locator(".choice > .name").all_inner_texts()
        assert sorted(paths) == sorted([*names, "inner.a", "x"]), paths
        keys = ["1", "2", "3", "2", "e", "1", "2", "3", "2", "2"]
        expected = {}
        for path, key in zip(paths, keys):
            row = page.locator(".choice:focus")
            assert row.locator("> .name").inner_text() == path
            page.keyboard.press(key)
            if key == "e":
                page.get_by_label("Value").fill("NumberLong(77)")
                page.keyboard.press("Control+Enter")
                expect(page.locator("dialog")).to_have_count(0)
                page.keyboard.press("ArrowDown")
            expected[path] = {"1": 1, "2": 2, "3": 0, "e": 77}[key]
        page.get_by_role("button", name="Finish the merge").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".log .commit", has_text="Merge theirs")).to_be_visible()
    found = {it["_id"]: it for it in database.c.find()}
    merged = {**{name: found[1][name] for name in names}, "inner.a": found[1]["inner"]["a"], "x": found[2]["x"]}
    assert merged == expected, (merged, expected)
    assert (found[1]["clean"], found[1]["inner"]["b"]) == (2, 1), found[1]
    assert len(database.command("frondLog", limit=1)["commits"][0]["parents"]) == 2
    assert not database.command("frondStatus")["dirty"]


def proposals(browser, server):
    """Branches that are ahead are looked at, refused (which can be undone), and merged."""
    database = server.client.asked
    database.items.insert_many([{"_id": 1, "price": 30}, {"_id": 2, "price": 240}])
    database.command("frondCommit", message="base")
    for branch, number, price in [("agent/lamps", 1, 40), ("clash", 2, 200)]:
        database.command("frondBranch", branch=branch)
        other = server.client[f"asked@{branch.replace('/', '%2F')}"]
        other.items.update_one({"_id": number}, {"$set": {"price": price}})
        other.command("frondCommit", message=f"price of {number}", author="agent <agent@example.org>")
    database.items.update_one({"_id": 2}, {"$set": {"price": 250}})
    database.command("frondCommit", message="ours")
    names = lambda: {it["branch"] for it in database.command("frondBranch")["branches"]}
    with browser.page("#/db/asked") as page:
        settle(page)
        page.keyboard.press("g")
        page.keyboard.press("p")
        lamps, clash = (page.get_by_role("region", name=name) for name in ("agent/lamps", "clash"))
        expect(lamps.get_by_text("merges cleanly")).to_be_visible()
        expect(lamps.get_by_text("agent <agent@example.org>")).to_be_visible()
        expect(clash.get_by_text("1 conflict")).to_be_visible()
        browser.check(page, "proposals")
        lamps.get_by_role("link", name="What it changes").click()
        # From where it parted: what the default branch did meanwhile isn't there.
        expect(page.locator(".from")).to_have_text("30")
        expect(page.locator(".to")).to_have_text("40")
        page.go_back()
        clash.get_by_role("button", name="Refuse").click()
        page.get_by_role("dialog").get_by_role("button", name="Refuse").click()
        expect(clash).to_have_count(0)
        assert names() == {"main", "agent/lamps"}
        page.locator(".notes").get_by_role("button", name="Undo").click()
        expect(clash).to_be_visible()
        assert names() == {"main", "agent/lamps", "clash"}
        lamps.get_by_role("link", name="Merge").click()
        expect(page.get_by_text("It merges cleanly.")).to_be_visible()
        page.get_by_role("button", name="Merge", exact=True).click()
        expect(page.locator(".log .commit", has_text="price of 1")).to_be_visible()
        assert database.items.find_one({"_id": 1})["price"] == 40
        page.get_by_role("link", name="Proposals", exact=True).click()
        expect(clash).to_be_visible()
        expect(lamps).to_have_count(0)


def kinds(browser, server):
    """Conflicts that aren't of fields: what was dropped here and changed there, unique keys."""
    database = server.client.kinds
    database.c.create_index("key", unique=True)
    database.c.insert_one({"_id": 0})
    database.dropped.insert_one({"_id": 1})
    database.gone.insert_one({"_id": 1, "x": 0})
    database.command("frondCommit", message="base")
    database.command("frondBranch", branch="theirs")
    other = server.client["kinds@theirs"]
    other.c.insert_one({"_id": 2, "key": "same"})
    other.dropped.update_one({"_id": 1}, {"$set": {"x": 1}})
    other.gone.update_one({"_id": 1}, {"$set": {"x": 1}})
    other.command("frondCommit", message="theirs")
    database.c.insert_one({"_id": 1, "key": "same"})
    database.dropped.drop()
    database.gone.delete_one({"_id": 1})
    database.command("frondCommit", message="ours")
    with browser.page("#/db/kinds/merge?from=theirs") as page:
        page.get_by_role("button", name="Merge and decide").click()
        expect(page.locator(".choice")).to_have_count(1)
        browser.check(page, "a collection's conflict")
        expect(page.locator(".conflict")).to_contain_text("dropped")
        page.keyboard.press("2")
        page.get_by_role("button", name="Finish the merge").click()
        # Only now the documents are merged, and conflict too.
        expect(page.locator(".conflict")).to_have_count(2)
        for row, key in (("c", "e"), ("gone", "2")):
            page.locator(".conflict", has=page.locator(f"header strong:text-is('{row}')")).locator(".choice").focus()
            page.keyboard.press(key)
            if key == "e":
                page.get_by_label("Value").fill('{ _id: 2, key: "other" }')
                page.get_by_role("button", name="Take").click()
        page.get_by_role("button", name="Finish the merge").click()
        expect(page.locator(".log .commit", has_text="Merge theirs")).to_be_visible()
    assert list(database.c.find({}, sort=[("_id", 1)])) == [{"_id": 0}, {"_id": 1, "key": "same"}, {"_id": 2, "key": "other"}]
    assert database.dropped.find_one() == {"_id": 1, "x": 1}
    assert database.gone.find_one() == {"_id": 1, "x": 1}


def scroll(browser, server, count):
    """As many documents as you like: few rows are in the page, the right ones."""
    server.client.many.c.insert_many({"_id": number, "name": f"n{number}", "at": datetime.datetime(2026, 1, 1)} for number in range(count))
    with browser.page("#/db/many/documents/c") as page:
        expect(page.get_by_text(f"{count:,} documents")).to_be_visible(timeout=60_000)
        grid = page.get_by_role("grid")
        for part in (1.0, 0.5, 0.25, 0.0):
            grid.evaluate("(it, part) => { it.scrollTop = (it.scrollHeight - it.clientHeight) * part; }", part)
            last = count if part == 1.0 else max(1, round(count * part))
            expect(page.get_by_role("rowheader", name=f"{last:,}", exact=True)).to_be_visible()
            row = page.locator(f".line[aria-rowindex='{last + 1}']")
            expect(row).to_contain_text(f"n{last - 1}", timeout=60_000)
            assert page.locator(".line").count() < 80
        page.locator(".line[tabindex='0']").focus()
        page.keyboard.press("End")
        expect(page.locator(f".line[aria-rowindex='{count + 1}']")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name=str(count - 1))).to_be_visible()


HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'


def hostile(browser, server):
    """What is stored is shown as text, wherever it stands."""
    database = server.client.hostile
    database.create_collection(HOSTILE)
    database.c.insert_one({"_id": HOSTILE, HOSTILE: HOSTILE, "__proto__": {"toString": 1}, "list": [HOSTILE]})
    database.command("frondCommit", message=HOSTILE, author=HOSTILE)
    database.command("frondTag", tag="v1", message=HOSTILE)
    database.c.update_one({}, {"$set": {"list": [HOSTILE, HOSTILE]}})
    screens = ["", "#/db/hostile", "#/db/hostile/documents/c", "#/db/hostile/log", "#/db/hostile/diff", "#/db/hostile/aggregate/c", "#/db/hostile/indexes/c"]
    for path in screens:
        with browser.page(path) as page:
            settle(page)
            if path.endswith("documents/c"):
                page.get_by_role("row").nth(1).click()
                expect(page.locator(".tree")).to_contain_text(HOSTILE)
            if path.endswith("log"):
                expect(page.locator(".log .commit").first).to_contain_text(HOSTILE)
                page.locator(".log .commit").first.click()
                expect(page.get_by_role("heading", name="Commit")).to_be_visible()
            assert page.locator("script").count() == 1 and page.locator("main img").count() == 0
    with browser.page("#/db/%3Cscript%3Ealert(1)%3C%2Fscript%3E/%ZZ/documents?filter=%3Cimg%3E") as page:
        settle(page)
        assert page.locator("script").count() == 1


def logins(browser_of, frond):
    """Users log in; who doesn't sees nothing, and no script gets at the cookie."""
    server = Server(frond, "--auth")
    try:
        server.client.admin.command("createUser", "root", pwd="secret", roles=["root"])
        root = pymongo.MongoClient(server.uri, username="root", password="secret", directConnection=True)
        root.shop.c.insert_one({"_id": 1})
        root.shop.command("createUser", "ann", pwd="<ann>", roles=["read"])
        browser = browser_of(server)
        with browser.page("#/db/shop/documents/c") as page:
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
            browser.check(page, "login")
            expect(page.get_by_role("navigation", name="Databases").get_by_role("link")).to_have_count(0)
            log_in(page, "ann", "wrong", "shop")
            expect(page.get_by_text("Authentication failed.")).to_be_visible()
            log_in(page, "ann", "<ann>", "shop")
            expect(page.get_by_text("1 document", exact=True)).to_be_visible()
            assert page.evaluate("document.cookie") == ""
            page.reload()
            expect(page.get_by_text("1 document", exact=True)).to_be_visible()
            page.get_by_role("button", name="New document").click()
            page.get_by_role("button", name="Insert").click()
            expect(page.get_by_text(re.compile("not authorized"))).to_be_visible()
            page.get_by_role("button", name="Cancel").click()
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
            log_in(page, "root", "secret", "admin")
            page.get_by_role("link", name="Users and roles").click()
            expect(page.get_by_role("cell", name="ann", exact=True)).to_be_visible()
            browser.check(page, "users")
            page.get_by_role("button", name="New user").click()
            page.get_by_label("Name").fill("bob")
            page.get_by_label("Database", exact=True).fill("shop")
            page.get_by_label("Password").fill("secret")
            page.get_by_label("Roles").fill("readWrite, read@other")
            page.get_by_role("button", name="Create").click()
            expect(page.get_by_role("cell", name="bob", exact=True)).to_be_visible()
            root.admin.command("dropAllUsersFromDatabase")
            page.get_by_role("link", name="shop").first.click()
            expect(page.get_by_text("The login has ended.")).to_be_visible()
        root.close()
    finally:
        server.close()


def log_in(page, user, password, database):
    page.get_by_label("User", exact=True).fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_label("Database of the user").fill(database)
    page.get_by_role("button", name="Log in").click()


def keys(browser):
    """Each screen is reached and left by keys."""
    with browser.page("#/db/demo") as page:
        settle(page)
        for key, heading in [("l", "History"), ("w", "Changes"), ("m", "Merge"), ("c", "Collections")]:
            page.locator("main").focus()
            page.keyboard.press("g")
            page.keyboard.press(key)
            expect(page.locator(".tabs [aria-current='page']")).to_have_text(heading)
            settle(page)
        page.goto(f"{browser.url}/#/db/demo/documents/items")
        expect(page.locator(".line").nth(1)).to_be_visible()
        page.keyboard.press("/")
        expect(page.get_by_label("Filter")).to_be_focused()
        page.get_by_role("row").nth(1).focus()
        page.keyboard.press("ArrowDown")
        expect(page.locator(".line").nth(1)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator(".panel")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".panel")).not_to_be_visible()
        page.keyboard.press("Control+k")
        page.get_by_role("dialog").get_by_label("Name", exact=True).fill("sal")
        page.keyboard.press("Enter")
        expect(page.get_by_label("Branch", exact=True)).to_have_value("sale")
        page.keyboard.press("?")
        expect(page.get_by_role("heading", name="Keys")).to_be_visible()


def fields(browser, server):
    """What fields hold is sampled; a bar narrows the filter, by value, by range, by date."""
    shop = server.client.demo
    with browser.page("#/db/demo/documents/items") as page:
        settle(page)
        page.get_by_role("button", name="Fields", exact=True).click()
        name = page.get_by_role("region", name="Field name")
        expect(name.get_by_role("button")).to_have_count(8)
        for width in (1280, 360):
            page.set_viewport_size({"width": width, "height": 800})
            browser.check(page, f"fields at {width}")
        page.set_viewport_size({"width": 1280, "height": 800})
        name.get_by_role("button", name="lamp").click()
        expect(page.get_by_text(re.compile(r"^\d+ documents$"))).to_have_text(f"{shop.items.count_documents({'name': 'lamp'})} documents")
        price = page.get_by_role("region", name="Field price").get_by_role("button").first
        told = price.locator(".what").inner_text()
        price.click()
        least, most = (float(edge) for edge in told.split(" – "))
        narrower = shop.items.count_documents({"name": "lamp", "price": {"$gte": least, "$lt": most}})
        assert 0 < narrower
        expect(page.get_by_text(re.compile(r"^\d+ documents?$"))).to_have_text(f"{narrower} {'document' if narrower == 1 else 'documents'}")
        assert f"price: {{ $gte: {told.split(' – ')[0]}" in page.get_by_label("Filter").input_value(), page.get_by_label("Filter").input_value()
        page.get_by_label("Filter").fill("{}")
        page.keyboard.press("Enter")
        expect(page.get_by_text("300 documents")).to_be_visible()
        page.get_by_role("button", name="Fields", exact=True).click()
        added = page.get_by_role("region", name="Field added").get_by_role("button").first
        count = int(added.locator(".number").inner_text())
        added.click()
        expect(page.get_by_text(f"Of {count} documents")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".panel")).not_to_be_visible()


def code(browser, server):
    """A pipeline is copied as code of a driver: Python's is run, and finds the same."""
    stages = '[{$match: {name: /^[l\'d]/, price: {$gt: NumberDecimal("10.5")}, added: {$gte: ISODate("2026-02-01")}}}, {$group: {_id: "$name", count: {$sum: 1}}}, {$sort: {_id: 1}}]'
    with browser.page("#/db/demo/aggregate/items?stages=" + stages) as page:
        settle(page)
        page.get_by_role("button", name="Copy as code").click()
        area = page.get_by_label("Code", exact=True)
        assert area.input_value().startswith('db.getSiblingDB("demo").getCollection("items").aggregate(['), area.input_value()
        browser.check(page, "code")
        for language, words in [("Node.js", "EJSON.parse"), ("Java", "BsonDocument.parse"), ("Rust", "serde_json::from_str"), ("Python", "json_util.loads")]:
            page.get_by_label("Language").select_option(language)
            assert words in area.input_value() and "10.5" in area.input_value(), area.input_value()
        found = []
        exec(area.input_value(), {"client": server.client, "print": found.append})  # noqa: S102 - that is what it is for
    wanted = {"name": {"$regex": "^[l'd]"}, "price": {"$gt": 10.5}, "added": {"$gte": datetime.datetime(2026, 2, 1)}}
    names = server.client.demo.items.distinct("name", wanted)
    assert [it["_id"] for it in found] == sorted(names) == ["desk", "lamp"], found


def lines(browser, server, frond):
    """What is done to a commit has a line for the command line; that line does it; Undo takes it back."""
    database = server.client.lines
    database.c.insert_one({"_id": 1, "x": 1})
    database.command("frondCommit", message="one")
    database.c.update_one({"_id": 1}, {"$set": {"x": 2}})
    database.command("frondCommit", message="two")
    with browser.page("#/db/lines/log") as page:
        page.locator(".log .commit", has_text="two").click()
        page.get_by_text("At the command line").click()
        for width in (1280, 360):
            page.set_viewport_size({"width": width, "height": 800})
            browser.check(page, f"command lines at {width}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.set_viewport_size({"width": 1280, "height": 800})
        told = page.locator(".lines code").all_inner_texts()
        revert = next(line for line in told if line.startswith("frond revert"))
        uri = server.uri.removeprefix("mongodb://").rstrip("/")
        for line in [revert, next(line for line in told if line.startswith("frond tag")).replace("NAME", "v1")]:
            subprocess.run([frond, *line.split()[1:], "--uri", uri], check=True, stdout=subprocess.DEVNULL)
        assert database.c.find_one() == {"_id": 1, "x": 1}
        assert [it["tag"] for it in database.command("frondTag")["tags"]] == ["v1"]
        page.reload()
        page.locator(".log .commit").first.click()
        page.get_by_role("button", name="Revert").click()
        expect(page.locator(".notes").get_by_role("button", name="Undo")).to_be_visible()
        assert database.c.find_one() == {"_id": 1, "x": 2}
        page.locator(".notes").get_by_role("button", name="Undo").click()
        page.get_by_role("dialog").get_by_role("button", name="Undo").click()
        expect(page.get_by_text(re.compile("^Undone"))).to_be_visible()
        assert database.c.find_one() == {"_id": 1, "x": 1}


def percentiles(browser, server):
    """A slow operation shows in the 99th percentile, and not in the median."""
    with browser.page("#/metrics") as page:
        half, most = (page.locator(".figure", has_text=name).locator("strong") for name in ("p50", "p99"))
        expect(half).to_have_text(re.compile(r"^[\d.]+ ms$"))
        for _ in range(20):
            for _ in range(10):
                server.client.demo.items.find_one({"_id": 1})
            server.client.demo.items.find_one({"$where": "const until = Date.now() + 60; while (Date.now() < until); return true"})
            slow, usual = (float(it.inner_text().split()[0]) if "ms" in it.inner_text() else 0.0 for it in (most, half))
            if slow >= 60 and usual < 60:
                return
            page.wait_for_timeout(300)
        raise AssertionError((slow, usual))


def demo(server):
    """What the pictures show."""
    shop = server.client.demo
    names = ["lamp", "chair", "desk", "shelf", "rug", "vase", "clock", "mirror"]
    shop.items.insert_many([{"_id": number, "name": names[number % 8], "price": round(5 + number * 37.31 % 295, 2), "stock": number * 7 % 50, "tags": [["new", "sale"], ["wood"], ["steel", "blue"]][number % 3], "maker": {"name": "Ada & Co", "city": "Basel"}, "added": datetime.datetime(2026, 1, 1) + datetime.timedelta(days=number)} for number in range(1, 301)])
    shop.items.create_index([("price", 1)])
    commit_by = lambda database, message, author: database.command("frondCommit", message=message, author=f"{author} <{author.lower()}@example.org>")
    commit_by(shop, "First items", "Ada")
    shop.command("frondBranch", branch="sale")
    shop.command("frondBranch", branch="stock")
    sale, stock = server.client["demo@sale"], server.client["demo@stock"]
    sale.items.update_many({"name": "lamp"}, {"$mul": {"price": 0.8}})
    sale.items.update_one({"_id": 8}, {"$set": {"maker.city": "Bern", "note": "on sale"}})
    commit_by(sale, "Lamps are cheaper", "Bob")
    stock.items.update_many({"stock": {"$lt": 5}}, {"$set": {"low": True}})
    commit_by(stock, "Mark what is low", "Cy")
    shop.items.update_one({"_id": 8}, {"$set": {"price": 12, "maker.city": "Zug"}})
    commit_by(shop, "Prices of the spring", "Ada")
    shop.command("frondMerge", merge_in="stock", message="Merge stock", author="Ada <ada@example.org>")
    shop.command("frondTag", tag="v1")
    shop.items.update_one({"_id": 7}, {"$set": {"price": 1}})


SCREENS = {
    "start": "", "collections": "#/db/demo", "documents": "#/db/demo/documents/items", "history": "#/db/demo/log?all=1",
    "changes": "#/db/demo/diff", "document": "#/db/demo/document/items?id=8", "aggregate": "#/db/demo/aggregate/items?stages=" + "[{$match: {price: {$lt: 50}}}, {$group: {_id: \"$name\", count: {$sum: 1}}}]",
    "explain": "#/db/demo/explain/items?filter={price: {$lt: 50}}", "indexes": "#/db/demo/indexes/items", "metrics": "#/metrics", "users": "#/users",
    "merge": "#/db/demo/merge?from=sale", "proposals": "#/db/demo/proposals", "settings": "#/db/demo/settings", "upkeep": "#/upkeep",
}


def odd(browser, server):
    """What no designer thinks of: names that are too long, 40 branches at one commit, text that runs
    the other way or breaks lines; and the focus, which stays where something was taken away."""
    database = server.client["odd"]
    database["c" * 180].insert_one({"_id": 1})
    database.texts.insert_many([{"_id": 1, "t": "\u202eevil\n\x1b"}, {"_id": 2, "t": ""}, {"_id": 3, "t": "one\r\ntwo", "u": 5}])
    database.command("frondCommit", message="oddities", author="A" * 90)
    for number in range(40):
        database.command("frondBranch", branch=f"team/{'long-' * 12}{number:02}")
    for width in [1280, 360]:
        for path in ["#/", "#/db/odd", "#/db/odd/log", "#/db/odd/documents/texts"]:
            with browser.page(path, width=width) as page:
                settle(page)
                main = page.locator("#main")
                assert main.evaluate("it => it.scrollWidth <= it.clientWidth"), (path, width)
    with browser.page("#/") as page:
        expect(page.get_by_role("link", name="and 29 more")).to_be_visible()
    with browser.page("#/db/odd/log") as page:
        expect(page.get_by_text("oddities", exact=True)).to_be_visible()
        expect(page.get_by_text("+38", exact=True)).to_be_visible()
        page.get_by_role("button", name="All branches").press("Enter")
        expect(page.get_by_role("button", name="All branches")).to_have_attribute("aria-pressed", "")
        expect(page.locator("#main")).to_be_focused()
    with browser.page("#/db/odd/documents/texts") as page:
        expect(page.get_by_role("gridcell", name="\\u202eevil\\n\\u001b", exact=True)).to_be_visible()
        expect(page.get_by_role("gridcell", name='""', exact=True)).to_be_visible()
        page.get_by_role("row", name=re.compile("one")).click()
        value = page.get_by_role("button", name=re.compile("^t: .*Edit$"))
        value.press("Enter")
        page.keyboard.press("Enter")
        expect(page.get_by_text("1 change")).not_to_be_visible()
        value.press("Enter")
        page.keyboard.press("End")
        page.keyboard.type("!")
        page.keyboard.press("Enter")
        page.get_by_role("button", name=re.compile("^t: .*Edit$")).press("Delete")
        expect(page.get_by_role("button", name=re.compile("^u: .*Edit$"))).to_be_focused()
        page.get_by_role("button", name="Discard").click()
        value.press("Enter")
        page.keyboard.press("Control+End")
        page.keyboard.type("!")
        page.keyboard.press("Enter")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Saved", exact=True)).to_be_visible()
        assert database.texts.find_one({"_id": 3})["t"] == "one\r\ntwo!"


def screens(browser, pictures):
    """All screens, wide and narrow, in light and dark: axe finds nothing, nothing is wider than the page."""
    for name, path in SCREENS.items():
        for width, dark in [(1280, False), (1280, True), (360, False)]:
            with browser.page(path, width, dark) as page:
                settle(page)
                expect(page.locator("h1").first).to_be_visible()
                page.wait_for_timeout(2500 if name in ("metrics", "aggregate") else 400)
                if name == "documents":
                    page.get_by_role("row").nth(8).click()
                    expect(page.locator(".tree")).to_be_visible()
                browser.check(page, (name, width, dark))
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                wanted = {("documents", 1280, False), ("history", 1280, True), ("documents", 360, False)}
                if pictures and (name, width, dark) in wanted:
                    page.screenshot(path=pictures / f"{name}-{'360' if width == 360 else 'dark' if dark else 'light'}.png")


def conflict_picture(browser, server, pictures):
    with contextlib.suppress(pymongo.errors.OperationFailure):
        server.client.demo.command("frondMerge", merge_in="sale")
    with browser.page("#/db/demo/merge") as page:
        expect(page.locator(".choice").first).to_be_focused()
        page.keyboard.press("1")
        page.wait_for_timeout(300)
        for width in (1280, 360):
            page.set_viewport_size({"width": width, "height": 800})
            browser.check(page, f"conflicts at {width}")
        page.set_viewport_size({"width": 1280, "height": 620})
        if pictures:
            page.screenshot(path=pictures / "conflicts-light.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", required=True)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--axe", type=pathlib.Path, help="axe.min.js")
    parser.add_argument("--pictures", type=pathlib.Path, help="where to put the docs' pictures")
    parser.add_argument("--documents", type=int, default=100_000, help="how many are scrolled")
    parser.add_argument("--only", help="one of the parts")
    arguments = parser.parse_args()
    axe = arguments.axe.read_text() if arguments.axe else None
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    server = Server(arguments.frond)
    try:
        with sync_playwright() as playwright:
            # Without a sandbox of its own it runs as root, too.
            chromium = playwright.chromium.launch(executable_path=arguments.chromium, args=["--no-sandbox"])
            browser_of = lambda of: Browser(chromium, of.url, axe)
            browser = browser_of(server)
            demo(server)
            parts = {
                "walk": lambda: walk(browser, server), "types": lambda: types(browser, server),
                "conflicts": lambda: conflicts(browser, server), "proposals": lambda: proposals(browser, server), "kinds": lambda: kinds(browser, server), "odd": lambda: odd(browser, server), "hostile": lambda: hostile(browser, server),
                "keys": lambda: keys(browser), "fields": lambda: fields(browser, server), "code": lambda: code(browser, server),
                "lines": lambda: lines(browser, server, arguments.frond), "percentiles": lambda: percentiles(browser, server),
                "screens": lambda: screens(browser, arguments.pictures),
                "picture": lambda: conflict_picture(browser, server, arguments.pictures),
                **{name: lambda part=part: part(browser, server) for name, part in console_screens.PARTS.items()},
                "remotes": lambda: console_screens.remotes(browser_of, arguments.frond),
                "logins": lambda: logins(browser_of, arguments.frond), "scroll": lambda: scroll(browser, server, arguments.documents),
            }
            failed = []
            for name, part in parts.items():
                if arguments.only and name not in arguments.only.split(","):
                    continue
                begun = time.monotonic()
                try:
                    part()
                    print(f"{name}: holds ({time.monotonic() - begun:.1f} s)", flush=True)
                except Exception as error:  # noqa: BLE001 - all parts are run
                    failed.append(name)
                    browser.faults.clear()
                    print(f"{name}: FAILED: {type(error).__name__}: {str(error)[:3000]}", flush=True)
                    traceback.print_exc(limit=-3)
            chromium.close()
    finally:
        server.close()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
