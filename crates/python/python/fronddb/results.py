"""What the version commands answer, as a person wants to read it: in a shell a line each, in a
notebook a table. Each is a dictionary with the answer's own names, too.
"""

import html


class _Row(dict):
    """A part of an answer, whose fields are also attributes (`snake_case`)."""

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        first, *rest = name.split("_")
        camel = first + "".join(part.capitalize() for part in rest)
        if camel in self:
            return self[camel]
        raise AttributeError(f"{type(self).__name__} has no field {camel}; it has {', '.join(self)}")


class _Rows(list):
    """Several of them."""

    _columns = ()

    def __repr__(self):
        return "\n".join(str(row) for row in self) or f"({type(self).__name__.lower()}: nothing)"

    def _repr_html_(self):
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._columns)
        rows = "".join(f"<tr>{self._html_row(row)}</tr>" for row in self)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _html_row(self, row):
        return "".join(f"<td>{html.escape(text)}</td>" for text in self._cells(row))

    def _cells(self, row):
        raise NotImplementedError

    def to_pandas(self):
        """The rows as a pandas data frame."""
        import pandas

        return pandas.DataFrame([dict(row) for row in self])

    def to_polars(self):
        """The rows as a Polars data frame; values of several types in one column become text."""
        import polars

        return polars.DataFrame([dict(zip(self._columns, self._cells(row))) for row in self])


class Commit(_Row):
    """A commit: `commit_id`, `parents`, `message`, `author`, `timestamp` ..."""

    @property
    def short_id(self):
        """The first letters of its id."""
        return self["commitId"][:8]

    @property
    def subject(self):
        """The first line of its message."""
        return self["message"].partition("\n")[0]

    def __str__(self):
        return f"{self.short_id}  {_time(self)}  {self.get('author', '')}  {self.subject}"

    __repr__ = __str__


class Log(_Rows):
    """Commits, newest first."""

    _columns = ("commit", "time", "author", "message")

    def _cells(self, row):
        return row.short_id, _time(row), row.get("author", ""), row.subject


class Branch(_Row):
    """A branch: `branch`, `commit_id` ..."""

    def __str__(self):
        marks = [name for name in ("protected", "closed") if self.get(name)]
        return "  ".join([self["branch"], (self.get("commitId") or "")[:8], *marks]).rstrip()

    __repr__ = __str__


class Branches(_Rows):
    """Branches."""

    _columns = ("branch", "commit", "policy")

    def _cells(self, row):
        marks = ", ".join(name for name in ("protected", "closed") if row.get(name))
        return row["branch"], (row.get("commitId") or "")[:8], marks


class Change(_Row):
    """A row of `$diff`: `collection`, `kind`, `change`, `_id`, `changes`, `before`, `after`."""

    @property
    def lines(self):
        """A line a field that changed."""
        return [_field_change(it) for it in self.get("changes", [])]

    def __str__(self):
        sign = {"added": "+", "removed": "-"}.get(self.get("change"), "~")
        what = f"{sign} {self.get('collection')} {_shown(self.get('_id', self.get('name', '')))}"
        return "\n".join([what.rstrip(), *(f"    {line}" for line in self.lines)])

    __repr__ = __str__


class Diff(_Rows):
    """What differs between two versions."""

    _columns = ("collection", "what", "change", "fields")

    def _cells(self, row):
        return (
            str(row.get("collection", "")), _shown(row.get("_id", row.get("name", ""))),
            str(row.get("change", "")), "\n".join(row.lines),
        )

    def _html_row(self, row):
        color = {"added": "#2da44e33", "removed": "#cf222e33"}.get(row.get("change"), "#bf870033")
        cells = self._cells(row)
        text = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells[:3])
        fields = "<br>".join(html.escape(line) for line in row.lines)
        return f'{text}<td style="background:{color}">{fields}</td>'


class Conflict(_Row):
    """A conflict: `id`, `collection`, `kind`, `_id`, `paths`, `base`, `ours`, `theirs`."""

    def __str__(self):
        paths = ", ".join(self.get("paths", []))
        return f"{self['id']}  {self['collection']} {_shown(self.get('_id', ''))}  {self['kind']}  {paths}".rstrip()

    __repr__ = __str__


class Conflicts(_Rows):
    """The conflicts of a merge."""

    _columns = ("id", "collection", "document", "kind", "paths", "base", "ours", "theirs")

    def _cells(self, row):
        sides = (_shown(row[name]) if name in row else "" for name in ("base", "ours", "theirs"))
        paths = ", ".join(row.get("paths", []))
        return (row["id"], row["collection"], _shown(row.get("_id", "")), row["kind"], paths, *sides)


def _time(commit):
    time = commit.get("timestamp")
    return time.strftime("%Y-%m-%d %H:%M:%S") if hasattr(time, "strftime") else str(time or "")


def _shown(value, most=120):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _field_change(change):
    path = change.get("path", "")
    if "from" in change and "to" in change:
        return f"{path}: {_shown(change['from'])} → {_shown(change['to'])}"
    if "to" in change:
        return f"{path}: + {_shown(change['to'])}"
    return f"{path}: - {_shown(change.get('from'))}"
