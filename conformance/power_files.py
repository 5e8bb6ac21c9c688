"""A file system in memory that forgets at a power cut what was not synced: writes, lengths and directory entries.

    files = PowerFiles(mountpoint)
    files.mount()
    ...                       # a server works on it, and is killed
    files.cut(dice)           # unmounts, forgets, mounts again

It speaks the kernel's FUSE protocol itself, over /dev/fuse (linux/fuse.h, version 7.31), so that nothing must be installed;
mounting takes root, or a user namespace of its own. What a sync promises is what POSIX says, and no more:

1. fsync and fdatasync of a file make its content durable, not its name.
2. fsync of a directory makes the names in it durable: those that were made, renamed and removed.
3. Of what was not synced, a cut keeps nothing, or what came first, or any part; of a write that is kept perhaps only the
   first sectors. Names change in their order.
"""

import ctypes
import errno
import os
import stat
import struct
import threading

IN = struct.Struct("<IIQQIIIHH")
OUT = struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<6Q10I")
WRITE_BYTES_MAX = 1 << 20
SECTOR_BYTES = 512
ROOT = 1
LOOKUP, FORGET, GETATTR, SETATTR, MKDIR, UNLINK, RMDIR, RENAME = 1, 2, 3, 4, 9, 10, 11, 12
OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT, OPENDIR = 14, 15, 16, 17, 18, 20, 25, 26, 27
READDIR, RELEASEDIR, FSYNCDIR, ACCESS, CREATE, INTERRUPT, DESTROY = 28, 29, 30, 34, 35, 36, 38
BATCH_FORGET, RENAME2 = 42, 45
SIZE_IS_SET = 1 << 3
BIG_WRITES, MAX_PAGES = 1 << 5, 1 << 22


def is_possible():
    """Whether this machine has FUSE at all."""
    return os.path.exists("/dev/fuse")


class File:
    """Its content as everybody sees it, as it is durable, and what was done in between."""

    def __init__(self):
        self.seen, self.durable, self.done = bytearray(), bytearray(), []

    def do(self, act):
        """Writes (offset, bytes), or sets the length (None, length)."""
        apply(self.seen, act)
        self.done.append(act)

    def sync(self):
        for act in self.done:
            apply(self.durable, act)
        self.done = []

    def cut(self, dice, keeps):
        acts = self.done
        if keeps == "nothing":
            acts = []
        elif keeps == "first":
            acts = acts[: dice.randint(0, len(acts))]
        else:
            acts = [torn(act, dice) for act in acts if dice.random() < 0.5]
        for act in acts:
            apply(self.durable, act)
        self.seen, self.done = bytearray(self.durable), []


class Directory:
    """Its names, in the same way: each change is of some names together."""

    def __init__(self):
        self.seen, self.durable, self.done = {}, {}, []

    def do(self, change):
        rename(self.seen, change)
        self.done.append(change)

    def sync(self):
        for change in self.done:
            rename(self.durable, change)
        self.done = []

    def cut(self, dice, keeps):
        count = 0 if keeps == "nothing" else dice.randint(0, len(self.done))
        for change in self.done[:count]:
            rename(self.durable, change)
        self.seen, self.done = dict(self.durable), []


def apply(content, act):
    offset, what = act
    if offset is None:
        del content[what:]
        content.extend(bytes(what - len(content)))
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(what)] = what


def torn(act, dice):
    offset, what = act
    if offset is None or dice.random() < 0.5:
        return act
    sectors = len(what) // SECTOR_BYTES
    return offset, what[: SECTOR_BYTES * dice.randint(0, sectors)]


def rename(names, change):
    for name, node in change.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class PowerFiles:
    """The file system. One thread serves it while it is mounted."""

    def __init__(self, mountpoint):
        self.mountpoint = str(mountpoint)
        os.makedirs(self.mountpoint, exist_ok=True)
        self.nodes = {ROOT: Directory()}
        self.next = ROOT + 1
        self.thread = None

    def mount(self):
        """Mounts it.

        Raises OSError where the system doesn't allow it."""
        self.device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        libc = ctypes.CDLL(None, use_errno=True)
        at = self.mountpoint.encode()
        if libc.mount(b"frond", at, b"fuse.power", 0, options.encode()) != 0:
            error = ctypes.get_errno()
            os.close(self.device)
            raise OSError(error, f"mount of {self.mountpoint}: {os.strerror(error)}")
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def unmount(self):
        """Unmounts it; if a process still uses it, it is lazily detached."""
        if self.thread is None:
            return
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.umount2(self.mountpoint.encode(), 0) != 0:
            libc.umount2(self.mountpoint.encode(), 2)
        self.thread.join(10)
        self.thread = None
        os.close(self.device)

    def cut(self, dice):
        """The power goes, and comes again. Returns what it kept of what wasn't synced, and how much that was."""
        self.unmount()
        keeps = dice.choice(["nothing", "nothing", "first", "any"])
        lost = sum(len(node.done) for node in self.nodes.values())
        for node in self.nodes.values():
            node.cut(dice, keeps)
        reached, left = set(), [ROOT]
        while left:
            node = left.pop()
            reached.add(node)
            if isinstance(self.nodes[node], Directory):
                left += self.nodes[node].seen.values()
        self.nodes = {node: self.nodes[node] for node in reached}
        self.mount()
        return keeps, lost

    def serve(self):
        while True:
            try:
                request = os.read(self.device, WRITE_BYTES_MAX + 8192)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return
            _, opcode, unique, node, *_ = IN.unpack_from(request)
            if opcode in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            try:
                answer, error = self.act(opcode, node, memoryview(request)[IN.size :]), 0
            except OSError as failed:
                answer, error = b"", -failed.errno
            try:
                os.write(self.device, OUT.pack(OUT.size + len(answer), error, unique) + answer)
            except OSError as failed:
                if failed.errno != errno.ENOENT:
                    return

    def act(self, opcode, node, body):
        """The answer to a request."""
        found = self.nodes.get(node)
        if opcode == INIT:
            flags = struct.unpack_from("<4I", body)[3] & (BIG_WRITES | MAX_PAGES)
            fields = (7, 31, 1 << 20, flags, 16, 12, WRITE_BYTES_MAX, 1, WRITE_BYTES_MAX // 4096, 0)
            return struct.pack("<4I2H2I2H", *fields) + bytes(32)
        if opcode == LOOKUP:
            return self.entry(self.named(found, cut_name(body)))
        if opcode == GETATTR:
            return self.attributes_answer(node)
        if opcode == SETATTR:
            valid, _, _, size = struct.unpack_from("<IIQQ", body)
            if valid & SIZE_IS_SET:
                found.do((None, size))
            return self.attributes_answer(node)
        if opcode == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return bytes(found.seen[offset : offset + size])
        if opcode == WRITE:
            _, offset, size = struct.unpack_from("<QQI", body)
            found.do((offset, bytes(body[40 : 40 + size])))
            return struct.pack("<II", size, 0)
        if opcode in (FSYNC, FSYNCDIR):
            found.sync()
            return b""
        if opcode in (OPEN, OPENDIR):
            return struct.pack("<QII", 0, 0, 0)
        if opcode == READDIR:
            return self.list(found, *struct.unpack_from("<QQI", body)[1:])
        if opcode == STATFS:
            return struct.pack("<5Q4I", 1 << 22, 1 << 21, 1 << 21, 1 << 20, 1 << 20, 4096, 255, 4096, 0) + bytes(24)
        if opcode in (RELEASE, RELEASEDIR, FLUSH, ACCESS, DESTROY):
            return b""
        return self.change_names(opcode, found, body)

    def change_names(self, opcode, found, body):
        """What makes, renames and removes."""
        if opcode == MKDIR:
            return self.entry(self.make(found, cut_name(body[8:]), Directory()))
        if opcode == CREATE:
            made = self.make(found, cut_name(body[16:]), File())
            return self.entry(made) + struct.pack("<QII", 0, 0, 0)
        if opcode in (UNLINK, RMDIR):
            name = cut_name(body)
            self.named(found, name)
            found.do({name: None})
            return b""
        if opcode in (RENAME, RENAME2):
            names = bytes(body[8 if opcode == RENAME else 16 :]).split(b"\0")
            if struct.unpack_from("<Q", body)[0] not in self.nodes:
                raise OSError(errno.ENOENT, "no such directory")
            if self.nodes[struct.unpack_from("<Q", body)[0]] is not found:
                raise OSError(errno.EXDEV, "another directory")
            moved = self.named(found, names[0])
            found.do({names[0]: None, names[1]: moved})
            return b""
        raise OSError(errno.ENOSYS, "not needed")

    def make(self, directory, name, made):
        if name in directory.seen:
            raise OSError(errno.EEXIST, "is there")
        node, self.next = self.next, self.next + 1
        self.nodes[node] = made
        directory.do({name: node})
        return node

    def named(self, directory, name):
        if name not in directory.seen:
            raise OSError(errno.ENOENT, "no such name")
        return directory.seen[name]

    def attributes(self, node):
        found = self.nodes[node]
        is_directory = isinstance(found, Directory)
        mode = (stat.S_IFDIR | 0o755) if is_directory else (stat.S_IFREG | 0o644)
        size = 0 if is_directory else len(found.seen)
        owner = (os.getuid(), os.getgid())
        return ATTRIBUTES.pack(node, size, size // 512 + 1, 0, 0, 0, 0, 0, 0, mode, 1, *owner, 0, 4096, 0)

    def attributes_answer(self, node):
        if node not in self.nodes:
            raise OSError(errno.ENOENT, "gone")
        return struct.pack("<QII", 1, 0, 0) + self.attributes(node)

    def entry(self, node):
        return struct.pack("<4Q2I", node, 0, 1, 1, 0, 0) + self.attributes(node)

    def list(self, directory, offset, size):
        listed = b""
        for position, (name, node) in enumerate(sorted(directory.seen.items())):
            kind = 4 if isinstance(self.nodes[node], Directory) else 8
            one = struct.pack("<QQII", node, position + 1, len(name), kind) + name
            one += bytes(-len(one) % 8)
            if position >= offset:
                if len(listed) + len(one) > size:
                    break
                listed += one
        return listed


def cut_name(body):
    return bytes(body).split(b"\0")[0]
