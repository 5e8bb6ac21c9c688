"""`frond from-dolt` against Dolt itself.

Goal: every commit of a repository is there, with the same parents, author, date, message and rows,
whatever its tables did (columns and tables come, go, get other names and types; keys change), each
SQL type as docs/from-dolt.md says; killed at any moment and run again, nothing is missing or there
twice; what Dolt gets later comes too, and what was written here stays.

Needs Dolt's program (github.com/dolthub/dolt) and pymongo; is skipped where Dolt isn't there:

    python conformance/dolt.py --frond target/debug/frond [--dolt /usr/local/bin/dolt] [--record FILE]
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bson
from bson import json_util

HISTORY = """
create table items (id int primary key, name varchar(40), price decimal(8,2), old varchar(5));
insert into items values (1,'lamp',30.50,'x'),(2,'desk',200.00,null),(3,'rug',80.10,'y');
call dolt_commit('-Am', 'first items', '--date', '2026-01-02T03:04:05');
create table kinds (id bigint primary key, ok boolean, tiny tinyint, small smallint, medium mediumint,
 whole int unsigned, great bigint unsigned, year_ year, bit_one bit(1), bit_many bit(12), single float,
 twice double, exact_ decimal(34,4), long_ decimal(60,2), day_ date, moment datetime(6), stamp timestamp(3) null,
 span time(6), words text, fixed char(4), raw_ varbinary(20), blob_ blob, doc json, size_ enum('s','m','l'),
 marks set('a','b','c'), place point, line_ linestring, area polygon, any_ geometry);
insert into kinds values (-9223372036854775808, true, -128, -32768, -8388608, 4294967295, 18446744073709551615,
 1999, b'1', b'101010101010', 1.1, 1e300, 123456789012345678901234567890.1200, 123456789012345678901234567890123456789012345678.25,
 '1969-12-31', '2026-05-06 07:08:09.123456', '2026-05-06 07:08:09.123', '-12:34:56.789', 'it''s "ü" 😀', 'ab',
 x'00ff27', x'deadbeef00', '{"a": [1, 2.5, null, "x"], "b": {"c": 9007199254740991}}', 'm', 'a,c', point(1.5, 2),
 linestring(point(0,0), point(1,1)), polygon(linestring(point(0,0), point(1,0), point(1,1), point(0,0))), point(3,4));
insert into kinds (id, ok, doc, marks, great, bit_many) values (1, 2, '"text"', '', 7, b'1');
call dolt_commit('-Am', 'every type', '--date', '2026-01-03T00:00:00', '--author', 'Bob <bob@example.org>');
create table pairs (a int, b varchar(10), n int, primary key (a, b));
insert into pairs values (1,'x',1),(1,'y',2);
create table free (word varchar(10), n int);
insert into free values ('one',1),('one',1),('two',2);
create table empty_ (id int primary key);
call dolt_commit('-Am', 'pairs, and rows without a key', '--date', '2026-01-04T00:00:00');
call dolt_tag('-m', 'as sold', 'v1', 'HEAD');
call dolt_branch('sale');
call dolt_branch('gone');
update items set price = price + 1 where id = 1;
insert into items values (4,'cup',5,null);
call dolt_commit('-Am', 'dearer', '--date', '2026-01-05T00:00:00');
call dolt_checkout('sale');
update items set price = 100 where id = 2;
delete from pairs where b = 'y';
delete from free where n = 2;
call dolt_commit('-Am', 'half price', '--date', '2026-01-05T12:00:00', '--author', 'Cid <cid@example.org>');
call dolt_checkout('gone');
insert into items values (9,'ghost',1,null);
call dolt_commit('-Am', 'a side that is deleted', '--date', '2026-01-05T18:00:00');
call dolt_checkout('main');
call dolt_merge('sale', '--no-ff', '-m', 'Merge sale');
call dolt_merge('gone', '--no-ff', '-m', 'Merge gone');
call dolt_branch('-D', 'gone');
alter table items add column stock int default 7;
alter table items drop column old;
alter table items rename column name to title;
alter table items modify price varchar(20);
call dolt_commit('-Am', 'columns change', '--date', '2026-01-07T00:00:00');
rename table pairs to couples;
insert into couples values (2,'z',3);
drop table empty_;
call dolt_commit('-Am', 'tables change', '--date', '2026-01-08T00:00:00');
alter table couples drop primary key;
alter table couples add primary key (b);
call dolt_commit('-Am', 'another key', '--date', '2026-01-09T00:00:00');
call dolt_checkout('sale');
insert into items values (5,'pen',1,'z');
call dolt_commit('-Am', 'sale goes on', '--date', '2026-01-10T00:00:00');
"""

EXPECTED_KINDS = {
    "_id": bson.Int64(-(2**63)), "ok": True, "tiny": -128, "small": -32768, "medium": -8388608, "whole": bson.Int64(2**32 - 1),
    "great": bson.Decimal128("18446744073709551615"), "year_": 1999, "bit_one": True, "bit_many": bson.Int64(0b101010101010), "single": 1.1,
    "twice": 1e300, "exact_": bson.Decimal128("123456789012345678901234567890.1200"), "long_": "123456789012345678901234567890123456789012345678.25",
    "day_": datetime.datetime(1969, 12, 31), "moment": datetime.datetime(2026, 5, 6, 7, 8, 9, 123000), "stamp": datetime.datetime(2026, 5, 6, 7, 8, 9, 123000),
    "span": "-12:34:56.789000", "words": 'it\'s "ü" 😀', "fixed": "ab", "raw_": b"\x00\xff'", "blob_": b"\xde\xad\xbe\xef\0",
    "doc": {"a": [1, 2.5, None, "x"], "b": {"c": bson.Int64(9007199254740991)}}, "size_": "m", "marks": ["a", "c"],
    "place": {"type": "Point", "coordinates": [1.5, 2]}, "line_": {"type": "LineString", "coordinates": [[0, 0], [1, 1]]},
    "area": {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}, "any_": {"type": "Point", "coordinates": [3, 4]},
}


class Dolt:
    """A repository, by Dolt's program."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory
        directory.mkdir()
        home = directory.parent / "home"
        home.mkdir(exist_ok=True)
        self.environment = {**os.environ, "HOME": str(home), "DOLT_DISABLE_EVENT_FLUSH": "true"}
        for name, value in [("user.name", "Ada"), ("user.email", "ada@example.org")]:
            self.run("config", "--global", "--add", name, value)
        self.run("init", "-b", "main", "--date", "2026-01-01T00:00:00")

    def run(self, *arguments, text=None):
        done = subprocess.run([self.program, *arguments], cwd=self.directory, env=self.environment, input=text, capture_output=True, text=True)
        assert done.returncode == 0, (arguments, done.stderr[-2000:], done.stdout[-2000:])
        return done.stdout

    def sql(self, text):
        return self.run("sql", text=text)

    def rows(self, query):
        return json.loads(self.run("sql", "-r", "json", "-q", query) or "{}").get("rows", [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--frond", required=True)
    parser.add_argument("--dolt", default=shutil.which("dolt"))
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--record", type=pathlib.Path, help="what passes between the two, for the tests in Rust")
    arguments = parser.parse_args()
    if not arguments.dolt:
        print("skipped: Dolt's program isn't there")
        return
    with tempfile.TemporaryDirectory(prefix="frond-dolt-") as directory:
        check = Check(arguments, pathlib.Path(directory))
        for part in (check.history, check.kinds, check.later, check.kills):
            begun = time.monotonic()
            part()
            print(f"{part.__name__}: holds ({time.monotonic() - begun:.1f} s)", flush=True)


class Check:
    def __init__(self, arguments, directory):
        self.frond, self.program, self.count = arguments.frond, arguments.dolt, arguments.kills
        self.record, self.directory = arguments.record, directory
        self.dolt = Dolt(arguments.dolt, directory / "shop")
        self.data = directory / "data"

    def command(self, repository=None, data=None):
        repository = repository or self.dolt
        return [self.frond, "from-dolt", str(repository.directory), "--dolt-program", self.program, "--data", str(data or self.data), "--json"]

    def bring(self, *more, code=0, repository=None, data=None, program=None):
        command = [*self.command(repository, data), *more]
        if program:
            command[command.index("--dolt-program") + 1] = program
        done = subprocess.run(command, capture_output=True, text=True, env=self.dolt.environment)
        assert done.returncode == code, (done.returncode, done.stderr)
        return json.loads(done.stdout) if done.stdout else {}, done.stderr

    def told(self, *arguments, data=None):
        done = subprocess.run([self.frond, *arguments, "--data", str(data or self.data)], capture_output=True, text=True)
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def ask(self, *arguments, data=None):
        return json_util.loads(self.told(*arguments, "--json", data=data))

    def documents(self, database, collection, data=None):
        lines = self.told("export", "-d", database, "-c", collection, "--canonical", data=data).splitlines()
        options = json_util.JSONOptions(json_mode=json_util.JSONMode.CANONICAL, tz_aware=False)
        return [json_util.loads(line, json_options=options) for line in lines]

    def log(self, branch, data=None, database="shop"):
        return self.ask("log", f"{database}@{branch}", data=data)["commits"]

    def compare(self, dolt, branches, data=None, database="shop", rows=True):
        """Every commit of every branch: what it says, its parents, its rows."""
        seen = {}
        for branch in branches:
            told = dolt.rows(f"select commit_hash, committer, email, date, message, parents from dolt_log('{branch}', '--parents')")
            commits = self.log(branch, data, database)
            by_hash = {it["committer"].removeprefix("from-dolt "): it for it in commits}
            assert len(commits) == len(told) == len(by_hash), (branch, len(commits), len(told), len(by_hash))
            for commit in told:
                it = by_hash[commit["commit_hash"]]
                assert it["message"] == commit["message"], (it, commit)
                assert it["author"] == f"{commit['committer']} <{commit['email']}>", (it, commit)
                made = it.get("authored", it["timestamp"]).replace(tzinfo=None)
                assert made == datetime.datetime.fromisoformat(commit["date"]), (it, commit)
                parents = [by_hash[parent]["commitId"] for parent in commit["parents"].replace(",", " ").split()]
                assert it["parents"] == parents, (it, commit)
                assert seen.setdefault(commit["commit_hash"], it["commitId"]) == it["commitId"], "it is there twice"
                if rows:
                    self.compare_rows(dolt, commit["commit_hash"], it["commitId"], data, database)
        return seen

    def compare_rows(self, dolt, hash_, id_, data, database):
        names = [next(iter(row.values())) for row in dolt.rows(f"show tables as of '{hash_}'")]
        listed = self.told("ls", f"{database}@{id_}", "--json", data=data).splitlines()
        found = sorted(json.loads(line)["name"] for line in listed)
        assert found == sorted(names), (hash_, found, names)
        for name in set(names) - {"kinds"}:
            keys = [row["Field"] for row in dolt.rows(f"show columns from {name} as of '{hash_}'") if row["Key"] == "PRI"]
            fields = [row["Field"] for row in dolt.rows(f"show columns from {name} as of '{hash_}'")]
            expected = [plain({field: row.get(field) for field in fields}) for row in dolt.rows(f"select * from {name} as of '{hash_}'")]
            documents = self.documents(f"{database}@{id_}", name, data)
            rows = []
            for document in documents:
                key = document.pop("_id")
                if len(keys) == 1:
                    document[keys[0]] = key
                elif keys:
                    document.update(key)
                rows.append(plain(document))
            count = lambda rows: collections.Counter(json.dumps(row, sort_keys=True) for row in rows)
            assert count(rows) == count(expected), (hash_, name, count(rows) - count(expected), count(expected) - count(rows))

    def history(self):
        self.dolt.sql(HISTORY)
        program = None
        if self.record:
            program = recorder(self.program, self.record, self.directory)
        before = sorted(path.name for path in self.dolt.directory.iterdir())
        told, _ = self.bring(program=program)
        # Dolt's server would put its configuration and users there.
        assert before == sorted(path.name for path in self.dolt.directory.iterdir())
        assert (told["commits"], told["there"], told["branches"], told["tags"]) == (13, 0, 2, 1), told
        self.compare(self.dolt, ["main", "sale"])
        branches = [it["branch"] for it in self.ask("branch", "shop")["branches"]]
        assert branches == ["main", "sale"], branches
        tags = self.ask("tag", "shop")["tags"]
        assert [(it["tag"], it["message"], it["author"]) for it in tags] == [("v1", "as sold", "Ada <ada@example.org>")], tags
        assert self.documents("shop@v1", "items") == self.documents(f"shop@{tags[0]['commitId']}", "items")
        assert len([it for it in self.log("main") if len(it["parents"]) == 2]) == 2

    def kinds(self):
        one, two = sorted(self.documents("shop", "kinds"), key=lambda it: it["_id"])
        for name, expected in EXPECTED_KINDS.items():
            assert one[name] == expected and type(one[name]) is type(expected), (name, one[name], expected)
        assert list(one) == list(EXPECTED_KINDS)
        assert (two["ok"], two["doc"], two["marks"], two["great"], two["bit_many"], two["area"]) == (2, "text", [], 7, 1, None), two
        assert type(two["great"]) is bson.Int64

    def later(self):
        """What Dolt gets later comes too; again there is nothing; what was written here stays."""
        self.dolt.sql("call dolt_checkout('main'); update items set stock = 8; call dolt_commit('-Am', 'later', '--date', '2026-01-11T00:00:00');")
        told, _ = self.bring()
        assert (told["commits"], told["there"]) == (1, 13), told
        assert self.bring()[0]["commits"] == 0
        self.compare(self.dolt, ["main", "sale"])
        self.ask("commit", "shop@sale", "--allow-empty", "-m", "ours")
        self.dolt.sql("call dolt_checkout('sale'); delete from items where id = 5; call dolt_commit('-Am', 'later, too', '--date', '2026-01-12T00:00:00');")
        told, words = self.bring(code=3)
        assert told["commits"] == 1 and "sale is left as it is" in words, words
        assert self.log("sale")[0]["message"] == "ours"
        wrong, words = self.bring("--into", "other", "--branch", "nowhere", code=1)
        assert "no branch nowhere" in words, words

    def kills(self):
        """Killed at any moment and run again: every commit is there, once."""
        dolt = Dolt(self.program, self.directory / "killed")
        script = ["create table many (id int primary key, text varchar(200), n int);"]
        for at in range(40):
            script.append(f"insert into many (id, text, n) with recursive c as (select 1 as i union all select i + 1 from c where i < 300) select i + {at * 300}, repeat('x', 150), {at} from c;")
            script.append(f"update many set n = n + 1 where id % 7 = {at % 7};")
            if at % 10 == 5:
                script.append(f"call dolt_commit('-Am', 'before {at}'); call dolt_checkout('-b', 'side{at}'); insert into many values ({-at}, 'side', 0);")
                script.append(f"call dolt_commit('-Am', 'side {at}'); call dolt_checkout('main'); delete from many where id = {at * 300 + 1};")
                script.append(f"call dolt_commit('-Am', 'main {at}'); call dolt_merge('side{at}', '--no-ff', '-m', 'merge {at}'); call dolt_branch('-D', 'side{at}');")
            else:
                script.append(f"call dolt_commit('-Am', 'commit {at}');")
        dolt.sql("\n".join(script))
        chance, data, killed = random.Random(28), self.directory / "killed-data", 0
        for _ in range(self.count):
            process = subprocess.Popen(self.command(dolt, data), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dolt.environment)
            try:
                process.wait(chance.uniform(0.5, 4))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed += 1
            process.wait()
        told, _ = self.bring(repository=dolt, data=data)
        made = told["commits"] + told["there"]
        seen = self.compare(dolt, ["main"], data, "killed", rows=False)
        last = self.log("main", data, "killed")[0]["commitId"]
        self.compare_rows(dolt, self.log("main", data, "killed")[0]["committer"].removeprefix("from-dolt "), last, data, "killed")
        assert len(seen) == made, (len(seen), made)
        assert [it["branch"] for it in self.ask("branch", "killed", data=data)["branches"]] == ["main"]
        assert not self.ask("tag", "killed", data=data)["tags"]
        # The same commits as without a kill.
        whole = self.directory / "whole-data"
        self.bring(repository=dolt, data=whole)
        again = self.compare(dolt, ["main"], whole, "killed", rows=False)
        assert set(again) == set(seen)
        print(f"  {killed} kills, {made} commits")


def plain(row):
    """A row as Dolt's JSON and ours both tell it."""
    told = {}
    for name, value in row.items():
        number = isinstance(value, (int, float, bson.Decimal128, str)) and not isinstance(value, bool)
        try:
            told[name] = float(str(value)) if number else value
        except ValueError:
            told[name] = value
    return told


def recorder(program, file, directory):
    """A program in Dolt's place that notes what passes by."""
    script = directory / "recording-dolt"
    script.write_text(f"""#!{sys.executable}
import os, pathlib, re, signal, socket, subprocess, sys, threading, time
arguments = sys.argv[1:]
if arguments[0] != "sql-server":
    os.execv({program!r}, [{program!r}, *arguments])
settings = pathlib.Path(arguments[arguments.index("--config") + 1])
text = settings.read_text()
asked = re.search(r"port: (\\d+)", text).group(1)
listener = socket.create_server(("127.0.0.1", int(asked)))
inner = socket.create_server(("127.0.0.1", 0)); port = inner.getsockname()[1]; inner.close()
settings.write_text(text.replace("port: " + asked, "port: " + str(port)))
child = subprocess.Popen([{program!r}, *arguments])
signal.signal(signal.SIGTERM, lambda *_: (child.terminate(), child.wait(), os._exit(0)))
client, _ = listener.accept()
while True:
    try:
        server = socket.create_connection(("127.0.0.1", port)); break
    except OSError:
        time.sleep(0.05)
out = open({str(file.resolve())!r}, "wb")
lock = threading.Lock()
def pump(source, sink, mark):
    while data := source.recv(1 << 16):
        with lock:
            out.write(mark + len(data).to_bytes(4, "little") + data); out.flush()
        sink.sendall(data)
threading.Thread(target=pump, args=(server, client, b"<"), daemon=True).start()
pump(client, server, b">")
signal.pause()
""")
    script.chmod(0o755)
    return str(script)


if __name__ == "__main__":
    main()
