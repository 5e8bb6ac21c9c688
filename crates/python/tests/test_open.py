"""Opening a directory: here, again, from other processes, and after the process was killed."""

import os
import pathlib
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import fronddb


def test_data_are_there_when_it_is_opened_again(tmp_path):
    with fronddb.open(tmp_path / "data") as client:
        client["shop"]["items"].insert_one({"_id": 1, "price": 30})
    with fronddb.open(tmp_path / "data") as client:
        assert client["shop"]["items"].find_one() == {"_id": 1, "price": 30}


def test_a_directory_opened_twice_is_served_once(tmp_path):
    first = fronddb.open(tmp_path / "data")
    second = fronddb.open(str(tmp_path / "data"))
    first["shop"]["items"].insert_one({"_id": 1})
    first.close()
    first.close()
    assert second["shop"]["items"].count_documents({}) == 1
    second.close()


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(fronddb.FrondError, match="not empty .it holds mine.txt"):
        fronddb.open(tmp_path)
    assert os.listdir(tmp_path) == ["mine.txt"]


def test_only_this_user_may_connect_and_no_address_is_listened_on(tmp_path):
    before = listening()
    with fronddb.open(tmp_path / "data") as client:
        client.admin.command("ping")
        socket = (tmp_path / "data" / "SOCKET").read_text().splitlines()[0]
        assert stat.S_IMODE(os.stat(socket).st_mode) == 0o600
        assert listening() == before
    assert not os.path.exists(socket)
    assert not (tmp_path / "data" / "SOCKET").exists()


def listening():
    """How many addresses this process listens on."""
    own = set()
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            own.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:
            pass
    count = 0
    for table in ("tcp", "tcp6"):
        with open(f"/proc/self/net/{table}") as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                count += fields[3] == "0A" and f"socket:[{fields[9]}]" in own
    return count


def test_another_process_reaches_the_data_through_the_one_that_has_them(tmp_path):
    program = """
        import sys, fronddb
        with fronddb.open(sys.argv[1]) as client:
            client["shop"]["items"].insert_one({"_id": "theirs"})
            client["shop"].commit("theirs")
    """
    with fronddb.open(tmp_path / "data") as client:
        client["shop"]["items"].insert_one({"_id": "ours"})
        run(program, tmp_path / "data")
        assert client["shop"]["items"].count_documents({}) == 2
        assert [commit.message for commit in client["shop"].log()] == ["theirs"]


def test_a_child_that_was_forked_reaches_them_too(tmp_path):
    with fronddb.open(tmp_path / "data") as client:
        client["shop"]["items"].insert_one({"_id": "parent's"})
        child = os.fork()
        if child == 0:
            status = 1
            try:
                own = fronddb.open(tmp_path / "data")
                own["shop"]["items"].insert_one({"_id": "child's"})
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert client["shop"]["items"].count_documents({}) == 2


@pytest.mark.parametrize("way", ["close", "exit", "open"])
def test_a_child_that_was_forked_leaves_the_parents_server_alone(tmp_path, way):
    program = """
        import os, sys, fronddb
        way, directory = sys.argv[1:]
        with fronddb.open(directory) as client:
            client["shop"]["items"].insert_one({"_id": 1})
            child = os.fork()
            if child == 0:
                if way == "close":
                    client.close()
                if way == "open":
                    fronddb.open(directory).close()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert os.path.exists(os.path.join(directory, "SOCKET"))
            # By a connection of its own.
            with fronddb.open(directory, serverSelectionTimeoutMS=5000) as again:
                assert again["shop"]["items"].count_documents({}) == 1
    """
    run(program, way, tmp_path / "data")


@pytest.mark.parametrize("end", ["leaves", "is killed"])
def test_a_child_that_outlives_its_parent_opens_the_directory_and_so_do_others(tmp_path, end):
    """As a daemon does: it opens, forks, and the parent leaves."""
    program = """
        import os, signal, sys, time, fronddb
        end, directory = sys.argv[1:]
        client = fronddb.open(directory)
        client["shop"]["items"].insert_one({"_id": "parent's"})
        told, tells = os.pipe()
        if os.fork() == 0:
            os.close(tells)
            os.read(told, 1)  # Until the parent has ended.
            signal.alarm(60)
            with fronddb.open(directory) as own:
                own["shop"]["items"].insert_one({"_id": "child's"})
            beside = os.path.dirname(directory)
            open(os.path.join(beside, "child-closed"), "w").close()
            while not os.path.exists(os.path.join(beside, "may-end")):
                time.sleep(0.02)
            os._exit(0)
        os.close(told)
        if end == "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
    """
    run(program, end, tmp_path / "data", check=end == "leaves")
    closed = tmp_path / "child-closed"
    deadline = time.monotonic() + 60
    while not closed.exists():
        assert time.monotonic() < deadline, "the child can't open it"
        time.sleep(0.02)
    # The child lives on, and has let go of it.
    with fronddb.open(tmp_path / "data") as client:
        found = client["shop"]["items"].distinct("_id")
    (tmp_path / "may-end").touch()
    assert found == ["child's", "parent's"]


def test_a_child_that_is_forked_while_a_directory_is_opened_can_open(tmp_path, monkeypatch):
    """The parent's other thread has the lock at that moment, and no thread of the child gives it back."""
    from fronddb import local_server

    opening, go_on = threading.Event(), threading.Event()
    start = local_server._start

    def slow_start(directory, options):
        opening.set()
        assert go_on.wait(60)
        return start(directory, options)

    monkeypatch.setattr(local_server, "_start", slow_start)
    clients = []
    thread = threading.Thread(target=lambda: clients.append(fronddb.open(tmp_path / "parent")))
    thread.start()
    assert opening.wait(60)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(30)
            local_server._start = start
            own = fronddb.open(tmp_path / "child")
            own["shop"]["items"].insert_one({"_id": 1})
            own.close()
            status = 0
        finally:
            os._exit(status)
    go_on.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    clients[0].close()


def test_many_that_open_at_once_after_a_kill(tmp_path):
    """One of them has the directory; what the killed process wrote down leads nowhere."""
    killed = """
        import os, signal, sys, fronddb
        fronddb.open(sys.argv[1])
        os.kill(os.getpid(), signal.SIGKILL)
    """
    run(killed, tmp_path / "data", check=False)
    left = pathlib.Path((tmp_path / "data" / "SOCKET").read_text().splitlines()[0])
    assert left.exists()
    program = """
        import sys, fronddb
        client = fronddb.open(sys.argv[1], serverSelectionTimeoutMS=5000)
        client["shop"]["items"].insert_one({})
        print("open", flush=True)
        sys.stdin.read()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path / "data")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    opened = [subprocess.Popen(command, **pipes) for _ in range(6)]
    assert [process.stdout.readline() for process in opened] == [b"open\n"] * 6
    for process in opened:
        process.communicate()
    assert not left.parent.exists()


def test_a_directory_that_a_server_of_another_kind_has_is_in_use(tmp_path, monkeypatch):
    from fronddb import local_server

    monkeypatch.setattr(local_server, "PATIENCE_SECONDS", 0)
    with fronddb.open(tmp_path / "data"):
        (tmp_path / "data" / "SOCKET").unlink()
        monkeypatch.setattr(local_server, "_running", {})
        with pytest.raises(fronddb.DirectoryInUse):
            fronddb.open(tmp_path / "data")
        monkeypatch.undo()


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    program = """
        import os, signal, sys, fronddb
        client = fronddb.open(sys.argv[1])
        for number in range(100):
            client["shop"]["items"].insert_one({"_id": number})
        os.kill(os.getpid(), signal.SIGKILL)
    """
    assert run(program, tmp_path / "data", check=False) == -signal.SIGKILL
    # The file that names the socket is still there, and nothing listens on it.
    assert (tmp_path / "data" / "SOCKET").exists()
    with fronddb.open(tmp_path / "data") as client:
        assert client["shop"]["items"].count_documents({}) == 100


def test_a_process_that_doesnt_close_ends(tmp_path):
    program = """
        import sys, fronddb
        client = fronddb.open(sys.argv[1])
        client["shop"]["items"].insert_one({"_id": 1})
    """
    assert run(program, tmp_path / "data") == 0
    assert not (tmp_path / "data" / "SOCKET").exists()


def test_a_file_is_no_data_directory(tmp_path):
    (tmp_path / "data").write_text("not a directory")
    with pytest.raises(fronddb.FrondError, match="data"):
        fronddb.open(tmp_path / "data")


def test_asyncio(tmp_path):
    import asyncio

    async def insert_and_count():
        client = fronddb.open_async(tmp_path / "data")
        shop = client["shop"]
        await shop["items"].insert_many([{"_id": number} for number in range(10)])
        await shop.command("frondCommit", message="ten")
        count = await shop["items"].count_documents({})
        await client.close()
        return count

    assert asyncio.run(insert_and_count()) == 10


def run(program, *arguments, check=True):
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.run(command, check=check, timeout=120).returncode
