"""One client of history.py: transactions at random, and what they saw, for history_check.py."""

import itertools
import random
import threading
import time

from pymongo import ReadPreference, ReturnDocument
from pymongo.errors import PyMongoError

from history_check import FAILED, OK, UNKNOWN, Read, Transaction, Write

BRANCHES = ("history", "history@side")
# A group of keys is what one search in an index finds; it is used for so many writes.
KEYS = 4
WRITES = 200
GROUPS = 2
COMMIT_TRIES = 8


class Keys:
    """Which groups are written to, and numbers that were never used."""

    def __init__(self):
        self.values, self.groups = itertools.count(1), itertools.count(1)
        self.lock = threading.Lock()
        self.renew()

    def renew(self):
        """New groups for the next epoch."""
        with self.lock:
            self.used = {}
            self.active = [self.new() for _ in range(GROUPS)]

    def new(self):
        group = next(self.groups)
        self.used[group] = 0
        return group

    def some(self, chance):
        return chance.choice(self.active)

    def value(self, group):
        """A value for a key of the group; another group takes its place when it is full."""
        with self.lock:
            self.used[group] += 1
            if self.used[group] == WRITES and group in self.active:
                self.active[self.active.index(group)] = self.new()
            return next(self.values)


class Client:
    """One client: does one transaction after the other, and notes what it saw."""

    def __init__(self, server, keys, seed, inject):
        self.connection, self.keys, self.inject = server.connect(), keys, inject
        self.chance = random.Random(seed)
        self.history, self.earlier, self.commits, self.behind = [], {}, 0, 0
        self.can_be_behind, self.preference = server.has_secondaries, ReadPreference.PRIMARY
        self.fault = None

    def run(self, until):
        kinds = [self.transaction, self.append_alone, self.modify_alone, self.snapshot, self.commit_branch]
        try:
            while time.monotonic() < until:
                done = self.chance.choices(kinds, [70, 12, 8, 8, 2])[0]
                transaction = Transaction(time.monotonic())
                self.note(transaction, done(transaction))
        except Exception as error:
            self.fault = f"{type(error).__name__}: {error}"
            raise

    def note(self, transaction, status):
        transaction.end, transaction.status = time.monotonic(), status
        if transaction.reads or transaction.writes:
            self.history.append(transaction)

    # Whole transactions.

    def transaction(self, transaction):
        with self.connection.start_session() as session:
            try:
                session.start_transaction()
                for _ in range(self.chance.randint(1, 4)):
                    self.statement(transaction, session)
                if self.chance.random() < 0.08:
                    session.abort_transaction()
                    return FAILED
            except PyMongoError:
                return FAILED
            return commit(session)

    def append_alone(self, transaction):
        branch, group, number = self.key()
        write = self.append(transaction, branch, group, number)
        try:
            self.lists(branch).update_one(*write, upsert=True)
            if self.is_injected("doubled"):
                self.lists(branch).update_one(*write, upsert=True)
        except PyMongoError:
            return UNKNOWN
        if self.is_injected("rolled-back"):
            self.take_back(branch, group, number)
        return OK

    def take_back(self, branch, group, number):
        """Undoes the last append, as if the leader that acknowledged it had been alone with it."""
        place = {"_id": group * KEYS + number}
        found = self.lists(branch).find_one(place)
        if len(found["v"]) > 1:
            change = {"$pop": {"v": 1}, "$set": {"last": found["v"][-2]}}
            self.lists(branch).update_one({**place, "last": found["last"]}, change)

    def modify_alone(self, transaction):
        branch, group, number = self.key()
        write = self.append(transaction, branch, group, number)
        before = ReturnDocument.BEFORE
        try:
            found = self.lists(branch).find_one_and_update(*write, upsert=True, return_document=before)
        except PyMongoError:
            return UNKNOWN
        transaction.reads.append(Read((branch, "list", group, number), list_of(found), 0))
        return OK

    def snapshot(self, transaction):
        """Several reads of a snapshot session, which may be one with a secondary."""
        if self.can_be_behind and self.chance.random() < 0.5:
            transaction.is_behind, self.preference = True, ReadPreference.SECONDARY
        try:
            with self.connection.start_session(snapshot=True) as session:
                for _ in range(self.chance.randint(2, 4)):
                    self.read(transaction, session)
            self.behind += transaction.is_behind
            return OK
        except PyMongoError:
            return FAILED
        finally:
            self.preference = ReadPreference.PRIMARY

    def commit_branch(self, transaction):
        """A version commit is a transaction that reads all: what it read, its commit tells."""
        branch = self.chance.choice(BRANCHES)
        groups = list(self.keys.active)
        begin = time.monotonic()
        try:
            answer = self.connection[branch].command("frondCommit", message="all", author="history")
            end = time.monotonic()
            at = f"history@{answer['commitId']}"
            for group in groups:
                self.read_group(transaction, branch, group, at=at)
        except PyMongoError:
            return FAILED
        # It was read later than it was made.
        self.note(transaction, OK)
        transaction.begin, transaction.end = begin, end
        self.commits += 1
        return OK

    # Statements.

    def statement(self, transaction, session):
        roll = self.chance.random()
        if roll < 0.35:
            branch, group, number = self.key()
            is_first = all(write.key != (branch, "list", group, number) for write in transaction.writes)
            outside = is_first and self.is_injected("half")
            write = self.append(transaction, branch, group, number)
            self.lists(branch).update_one(*write, upsert=True, session=None if outside else session)
        elif roll < 0.5:
            self.replace(transaction, session)
        else:
            outside = transaction.reads and self.is_injected("stale")
            self.read(transaction, None if outside else session)

    def append(self, transaction, branch, group, number):
        """Notes that a value is appended; what finds and what changes the list."""
        value = self.keys.value(group)
        transaction.writes.append(Write((branch, "list", group, number), value, None))
        change = {"$push": {"v": value}, "$set": {"last": value, "g": group, "n": number}}
        return {"_id": group * KEYS + number}, change

    def replace(self, transaction, session):
        """Reads a register and replaces it."""
        branch, group, number = self.key()
        key, registers = (branch, "register", group, number), self.connection[branch].registers
        found = registers.find_one({"_id": group * KEYS + number}, session=session)
        before = found["last"] if found else 0
        transaction.reads.append(Read(key, before, len(transaction.writes)))
        value = self.keys.value(group)
        outside = all(write.key != key for write in transaction.writes) and self.is_injected("lost")
        transaction.writes.append(Write(key, value, before))
        change = {"$set": {"last": value, "g": group, "n": number}}
        session = None if outside else session
        registers.update_one({"_id": group * KEYS + number}, change, upsert=True, session=session)

    def read(self, transaction, session):
        branch, group, number = self.key()
        roll = self.chance.random()
        if roll < 0.4:
            found = self.lists(branch).find_one({"_id": group * KEYS + number}, session=session)
            key = (branch, "list", group, number)
            transaction.reads.append(Read(key, list_of(found), len(transaction.writes)))
        elif roll < 0.7:
            self.read_group(transaction, branch, group, session)
        else:
            self.read_covered(transaction, branch, group, session)

    def read_group(self, transaction, branch, group, session=None, at=None):
        """All documents of a group, which an index finds."""
        for name in ("lists", "registers"):
            collection = self.database(at or branch)[name]
            found = list(collection.find({"g": group}, hint="all", session=session))
            of = list_of if name == "lists" else value_of
            self.add_group(transaction, (branch, name[:-1], group), {each["n"]: of(each) for each in found})

    def read_covered(self, transaction, branch, group, session):
        """The last value of each key of a group, as the index has it."""
        name = self.chance.choice(("lists", "registers"))
        collection, fields = self.database(branch)[name], {"_id": 0, "n": 1, "last": 1}
        found = list(collection.find({"g": group, "last": {"$gt": 0}}, fields, hint="all", session=session))
        if len({each["n"] for each in found}) != len(found):
            raise ValueError(f"an index has a document twice: {found}")
        found = {each["n"]: each["last"] for each in found}
        place = (branch, name[:-1], group)
        earlier, self.earlier[place] = self.earlier.get(place), found
        if earlier is not None and self.is_injected("late-index"):
            found = earlier
        self.add_group(transaction, place, found)

    def add_group(self, transaction, place, found):
        # A key that the index doesn't find was never written.
        for number in range(KEYS):
            seen = found.get(number, 0)
            transaction.reads.append(Read((*place, number), seen, len(transaction.writes)))

    def key(self):
        return self.chance.choice(BRANCHES), self.keys.some(self.chance), self.chance.randrange(KEYS)

    def lists(self, branch):
        return self.database(branch).lists

    def database(self, branch):
        return self.connection.get_database(branch, read_preference=self.preference)

    def is_injected(self, fault):
        return self.inject == fault and self.chance.random() < 0.2


def list_of(found):
    """What a list's document holds, whose two fields must agree."""
    if found is None:
        return []
    if found["v"][-1] != found["last"]:
        raise ValueError(f"half a document: {found}")
    return found["v"]


def value_of(found):
    return found["last"]


def commit(session):
    """Commits, and asks again while the answer is unknown, as drivers' `withTransaction` does."""
    for _ in range(COMMIT_TRIES):
        try:
            session.commit_transaction()
            return OK
        except PyMongoError as error:
            if error.has_error_label("TransientTransactionError"):
                return FAILED
            if not error.has_error_label("UnknownTransactionCommitResult"):
                return UNKNOWN
    return UNKNOWN
