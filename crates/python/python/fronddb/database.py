"""A database with its versions."""

import urllib.parse

import pymongo.database
import pymongo.errors

from fronddb.results import Branch, Branches, Change, Commit, Conflict, Conflicts, Diff, Log

_OPERATION_FAILED = 96


class MergeConflicts(Exception):
    """A merge that waits for decisions: `conflicts` has them; then `merge_continue` or `merge_abort`."""

    def __init__(self, database, counts):
        self.database = database
        counted = ", ".join(f"{it['count']} in {it['collection']}" for it in counts)
        super().__init__(
            f"conflicts: {counted}. Decide them ({database.name}: conflicts(), resolve()), then call "
            "merge_continue(); or merge_abort()"
        )

    @property
    def conflicts(self):
        """The conflicts that are left."""
        return self.database.conflicts()


class Database(pymongo.database.Database):
    """A `pymongo.database.Database` with versions: a branch's working state, or a version to read.

    Collections are reached by attribute or item, as in PyMongo; those that are called as a method
    here is (`commit`, `log`, ...) by item only.
    """

    @property
    def branch_name(self):
        """The branch whose working state this is (or the version); `None` for the default branch."""
        name, at, version = self.name.partition("@")
        return urllib.parse.unquote(version) if at else None

    def at(self, revision):
        """The database at another branch, or, to read only, at a tag, a commit, `main~2` ..."""
        name = self.name.partition("@")[0]
        return self._of(name, revision)

    def commit(self, message, *, author=None, allow_empty=False, amend=False):
        """Commits the working state, and returns the commit."""
        fields = {"message": message, "author": author}
        fields.update({"allowEmpty": allow_empty or None, "amend": amend or None})
        return Commit(self._run("frondCommit", **fields))

    def status(self, documents=None):
        """What has changed since the last commit: the answer of `frondStatus`."""
        return self._run("frondStatus", documents=documents)

    def log(self, revisions=None, **fields):
        """Commits, newest first; `revisions` is one, or `a..b`. `fields` are `frondLog`'s: `limit`,
        `collection`, `document`, `author`, `message`, `since`, `until`, `firstParent`.
        """
        commits = []
        limit = fields.pop("limit", None)
        after = fields.pop("after", None)
        while limit is None or len(commits) < limit:
            left = None if limit is None else limit - len(commits)
            page = self._run("frondLog", range=revisions, limit=left, after=after, **fields)
            commits += page["commits"]
            after = page.get("next")
            if after is None:
                break
        return Log(Commit(it) for it in commits)

    def branch(self, name, start=None, *, protected=None, expire_after_seconds=None):
        """Makes a branch, at this state's commit or at `start`, and returns its database."""
        policy = {"protected": protected, "expireAfterSeconds": expire_after_seconds}
        self._run("frondBranch", branch=name, start=start, **policy)
        return self.at(name)

    def branches(self):
        """All branches."""
        return Branches(Branch(it) for it in self._run("frondBranch")["branches"])

    def delete_branch(self, name, *, force=False):
        """Deletes a branch; one that isn't merged, or has uncommitted changes, by `force` only."""
        return self._run("frondBranch", branch=name, delete=True, forceDelete=force or None)

    def tag(self, name, target=None, *, message=None, force=False):
        """Names a commit, by default the newest of this branch."""
        return self._run("frondTag", tag=name, target=target, message=message, force=force or None)

    def diff(self, old=None, new=None):
        """How two versions differ: by default the last commit and the working state."""
        pipeline = [{"$diff": {key: it for key, it in (("from", old), ("to", new)) if it is not None}}]
        return Diff(Change(it) for it in self.aggregate(pipeline))

    def merge(self, revision, *, message=None, author=None, **fields):
        """Merges another version into this branch; `fields` are `frondMerge`'s (`noFF`, `squash`,
        `dryRun` ...). Returns its answer.

        Raises `MergeConflicts` where documents were changed on both sides: what merged cleanly is
        in the working state then, and the merge waits.
        """
        try:
            return self._run("frondMerge", merge_in=revision, message=message, author=author, **fields)
        except pymongo.errors.OperationFailure as error:
            details = error.details or {}
            if error.code == _OPERATION_FAILED and details.get("result") == "conflicts":
                raise MergeConflicts(self, details["conflicts"]) from None
            raise

    def merge_continue(self, message=None, *, author=None):
        """Commits a merge whose conflicts are all decided."""
        return self._run("frondMerge", **{"continue": True}, message=message, author=author)

    def merge_abort(self):
        """Takes back what a merge that waits has done."""
        return self._run("frondMerge", abort=True)

    def conflicts(self, collection=None):
        """The conflicts of the merge that waits."""
        found = self._run("frondConflicts", collection=collection)["conflicts"]
        return Conflicts(Conflict(it) for it in found)

    def resolve(self, conflict=None, **decision):
        """Decides conflicts: one (`conflict`), those of a `collection`, or `all=True`; by
        `resolution="ours"` or `"theirs"`, by `value=` a document (None removes it), or by `update=`.
        Returns how many are left.
        """
        if conflict is not None:
            decision["id"] = getattr(conflict, "id", conflict)
        # A value of None is a decision, and is sent.
        return self.command({"frondResolveConflict": 1, **decision})["remaining"]

    def reset(self, revision, **fields):
        """Moves this branch to a commit; `undo` takes it back."""
        return self._run("frondReset", target=revision, **fields)

    def undo(self, **fields):
        """Takes back the last change of this branch: a commit, merge, reset, deletion ..."""
        return self._run("frondUndo", **fields)

    def history(self, collection, document_id, **fields):
        """The versions of a document, newest first: the answer of `frondHistory`."""
        return self._run("frondHistory", collection=collection, document=document_id, **fields)["versions"]

    def blame(self, collection, document_id):
        """Which commit each field of a document comes from."""
        return self._run("frondBlame", collection=collection, document=document_id)["fields"]

    def push(self, remote=None, **fields):
        """Pushes to a remote: the answer of `frondPush`."""
        return self._run("frondPush", remote=remote, **fields)

    def pull(self, remote=None, **fields):
        """Fetches from a remote and merges: the answer of `frondPull`."""
        return self._run("frondPull", remote=remote, **fields)

    def with_options(self, *arguments, **options):
        """As PyMongo's: this database with other options."""
        other = super().with_options(*arguments, **options)
        return Database(
            self.client, self.name, other.codec_options, other.read_preference, other.write_concern,
            other.read_concern,
        )

    def _of(self, name, revision):
        # What drivers refuse in a name is percent-encoded, as the server reads it.
        quoted = urllib.parse.quote(revision, safe="~^@{}-_").replace(".", "%2E")
        return Database(
            self.client, f"{name}@{quoted}", self.codec_options, self.read_preference, self.write_concern,
            self.read_concern,
        )

    def _run(self, command, **fields):
        given = {name: value for name, value in fields.items() if value is not None}
        return self.command({command: 1, **given})
