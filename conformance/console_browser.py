"""A server with a console, and a browser that watches what its pages do."""

import contextlib
import re
import subprocess
import tempfile
import time

import pymongo
from playwright.sync_api import expect

# For a machine that does other things, too: what holds holds at once on a quiet one.
PATIENCE_MILLIS = 30_000
expect.set_options(timeout=PATIENCE_MILLIS)


class Server:
    """A server with a console, on a new directory."""

    def __init__(self, frond, *options):
        self.directory = tempfile.TemporaryDirectory(prefix="frond-console-")
        command = [frond, "serve", "--data", self.directory.name, "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0"]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        told = ""
        for line in self.process.stdout:
            told += line
            if "stop with" in line:
                break
        self.uri = re.search(r"mongodb://[\d.:]+/", told).group()
        self.url = re.search(r"console +(http://[\d.:]+)/", told).group(1)
        self.client = pymongo.MongoClient(self.uri, directConnection=True)

    def close(self):
        self.client.close()
        self.process.terminate()
        assert self.process.wait(60) == 0
        self.directory.cleanup()


class Browser:
    """Pages of one server, and what they did that they mustn't."""

    def __init__(self, chromium, url, axe):
        self.chromium, self.url, self.axe, self.faults = chromium, url, axe, []

    @contextlib.contextmanager
    def page(self, path="", width=1280, dark=False):
        context = self.chromium.new_context(viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light", reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MILLIS)
        context.on("request", lambda it: it.url.startswith(self.url + "/") or self.faults.append(f"asked {it.url}"))
        page = context.new_page()
        page.on("pageerror", lambda it: self.faults.append(f"failed: {it}"))
        page.on("dialog", lambda it: (self.faults.append(f"something ran: {it.message}"), it.dismiss()))
        page.on("console", lambda it: it.type == "error" and "401" not in it.text and self.faults.append(f"told: {it.text}"))
        page.goto(f"{self.url}/{path}")
        yield page
        context.close()
        assert not self.faults, self.faults

    def check(self, page, what):
        """What axe finds on a page."""
        if not self.axe:
            return
        page.evaluate(self.axe)
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        found = page.evaluate("tags => axe.run(document, { runOnly: tags })", tags)
        found = [(it["id"], it["help"], [node["html"][:200] for node in it["nodes"][:3]]) for it in found["violations"]]
        assert not found, (what, found)


def settle(page):
    page.wait_for_load_state("networkidle")
    expect(page.locator("#main > *").first).to_be_visible()


def wait_for(condition, seconds=15):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it didn't become so"
        time.sleep(0.05)
