"""Fixtures for pytest: a database for tests, as it was before each of them.

    @pytest.fixture(scope="session")
    def frond_fixtures(frond_base):              # optional: what each test finds
        frond_base.items.insert_many(...)

    def test_sale(frond):                        # a database on a branch of its own
        frond.items.update_many({}, {"$mul": {"price": 0.5}})

The data live in a directory that is removed at the end of the session, in memory (`/dev/shm`) where
there is room; `--frond-data DIR` keeps them in another.
"""

import contextlib
import itertools
import shutil
import tempfile

import pytest

import fronddb

_NAME = "test"
# Nothing waits for a disk in memory.
_MEMORY = "/dev/shm"
_MEMORY_BYTES_MIN = 1 << 30
_numbers = itertools.count(1)


def pytest_addoption(parser):
    group = parser.getgroup("fronddb")
    group.addoption("--frond-data", metavar="DIR", help="data directory of the databases for tests")


@pytest.fixture(scope="session")
def frond_client(request):
    """A client of the session's data directory: `fronddb.Client`."""
    given = request.config.getoption("--frond-data")
    with contextlib.ExitStack() as stack:
        directory = given
        if directory is None:
            own = tempfile.TemporaryDirectory(prefix="frond-test-", dir=_place())
            directory = stack.enter_context(own)
        yield stack.enter_context(fronddb.open(directory))


def _place():
    with contextlib.suppress(OSError):
        if shutil.disk_usage(_MEMORY).free >= _MEMORY_BYTES_MIN:
            return _MEMORY
    return None


@pytest.fixture(scope="session")
def frond_base(frond_client):
    """The database that the tests' branches begin at; `frond_fixtures` fills it."""
    frond_client.drop_database(_NAME)
    yield frond_client[_NAME]


@pytest.fixture(scope="session")
def frond_fixtures(frond_base):
    """What each test finds. Override it: insert into `frond_base`."""


@pytest.fixture(scope="session")
def _frond_committed(frond_base, frond_fixtures):
    frond_base.commit("fixtures", allow_empty=True)
    return frond_base


@pytest.fixture
def frond(_frond_committed):
    """A database on a branch of its own, which goes with the test."""
    name = f"test-{next(_numbers)}"
    database = _frond_committed.branch(name)
    yield database
    _frond_committed.delete_branch(name, force=True)
