"""The kinds of outside sources: one module each, which holds the kind as `KIND`.

A new kind is a module that keeps the contract of `harken.sources.outside`, and a line in `MODULES`.
A kind of the user's own is registered in the process (`harken.source_kind`), or by a package under
the entry point `harken.sources`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from harken.errors import SourceFault, nearest
from harken.packages import needs
from harken.sources.outside import OutsideKind

MODULES: dict[str, str] = {
    "bibtex": "harken.sources.kinds.bibtex",
    "directory": "harken.sources.kinds.directory",
    "documents": "harken.sources.kinds.documents",
    "feed": "harken.sources.kinds.feed",
    "html": "harken.sources.kinds.html",
    "json": "harken.sources.kinds.json",
    "postgresql": "harken.sources.kinds.postgresql.postgres_kind",
    "sqlalchemy": "harken.sources.kinds.sqlalchemy",
    "sqlite": "harken.sources.kinds.sqlite",
    "text": "harken.sources.kinds.text",
    "xml": "harken.sources.kinds.xml",
}
"""The module of each kind, by the name that follows USING."""
INPUTS: dict[str, str] = {
    "delta": "CREATE SOURCE name USING delta OPTIONS (path '...'), or db.lake(name, path, key=...)",
    "frame": "db.lake(name, frame, key=...) in Python, with the DataFrame",
    "stream": "db.feed(name, stream, checkpoint) in Python, with the stream of Spark",
}
"""The kinds that stay in the lake with versions of their own (`sources/registry.py`), and how one
is made."""
OF_USERS: dict[str, OutsideKind] = {}
"""The kinds that were registered in this process."""
GROUP = "harken.sources"
"""The entry points of packages that bring kinds."""


def outside_kind(name: str) -> OutsideKind:
    """The kind of this name. Imported at first use, because drivers and parsers take time to
    load."""
    if name in OF_USERS:
        return OF_USERS[name]
    if name in MODULES:
        return _imported(MODULES[name])
    for entry in entry_points(group=GROUP, name=name):
        made: OutsideKind = entry.load()
        return made
    if name in INPUTS:
        raise SourceFault(
            f"a source of the kind {name} is an input of the lake, which steps read",
            code="bad-option",
            hint=INPUTS[name],
        )
    known = sorted([*kind_names(), *INPUTS])
    near = nearest(name, known)
    raise SourceFault(
        f"there is no kind of source {name}",
        code="unknown-kind",
        hint=f"did you mean {near}?"
        if near
        else f"there are: {', '.join(known)}; one of your own is registered with "
        "@harken.source_kind, in this process or by a package with the entry point harken.sources",
    )


def kind_names() -> list[str]:
    brought = (entry.name for entry in entry_points(group=GROUP))
    return sorted({*MODULES, *OF_USERS, *brought})


def register_kind(kind: OutsideKind) -> None:
    """Let a kind be used in this process. One of the same name is replaced."""
    OF_USERS[kind.name] = kind


@cache
def _imported(module: str) -> OutsideKind:
    with needs("sources"):
        found: OutsideKind = import_module(module).KIND
    return found
