"""Tables, views, relations, functions and rules as the console lists and shows them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harken.api.database import Database
from harken.api.stored_definitions import Definition
from harken.api.views import ViewDescription
from harken.console.lineage import Neighbour
from harken.console.rendering import plural, segment
from harken.console.source_routes import visible
from harken.errors import NameFault
from harken.ir.relations import Column
from harken.statements.declaration import FUNCTION, RULE

MOST_FOUND = 30
"""Entries that the palette shows."""
PAGES = (
    ("Home", "/"),
    ("Data", "/data"),
    ("Query", "/query"),
    ("Queries", "/queries"),
    ("New continual query", "/new/query"),
    ("Sources", "/sources"),
    ("Add a source", "/new/source"),
    ("Rules", "/rules"),
    ("Operator", "/operator"),
)


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    kind: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    text: str

    @property
    def column_names(self) -> list[str]:
        return [each.name for each in self.columns]


@dataclass(frozen=True, slots=True)
class Shown:
    """One object on its page."""

    listed: Listed
    sentence: str
    is_sql: bool
    readers: Sequence[Neighbour]
    reads: Sequence[Neighbour]
    warnings: Sequence[str]

    @property
    def name(self) -> str:
        return self.listed.name

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.listed.columns

    @property
    def key(self) -> tuple[str, ...]:
        return self.listed.key

    @property
    def text(self) -> str:
        return self.listed.text


def all_objects(db: Database) -> list[Listed]:
    """Everything with rows, by name."""
    defined = {_name(each): each for each in db.definitions() if each.kind != RULE}
    return sorted(
        (_listed(each, defined.get(_called(each.name))) for each in db.views()),
        key=lambda each: each.name,
    )


def _name(definition: Definition) -> str:
    """The name by which SQL knows it: a function is defined with the types of its arguments."""
    if definition.kind == FUNCTION:
        return definition.name.partition("(")[0]
    return definition.name


def _called(name: str) -> str:
    """The name of the function of `type.function`, by which several of one name are told apart."""
    return re.sub(r"^\w+\.(?=\w+$)", "", name)


def _listed(view: ViewDescription, definition: Definition | None) -> Listed:
    kind = definition.kind if definition else ("view" if view.is_view else "table")
    key = () if definition is None else definition.key
    text = "" if definition is None else definition.text
    return Listed(view.name, kind, view.columns, key, text)


def rules_of(db: Database) -> list[Definition]:
    return sorted(
        (each for each in db.definitions() if each.kind == RULE), key=lambda each: each.name
    )


def shown_object(db: Database, name: str) -> Shown:
    found = next((each for each in all_objects(db) if each.name == name), None)
    if found is None:
        raise NameFault(
            f"there is no table or view {name}",
            code="unknown-table",
            hint="it may have been dropped or renamed",
        )
    readers = list(_neighbours(db.readers_of(_called(name))))
    names = {each.name for each in all_objects(db)}
    reads = _reads(db, name, names)
    return Shown(
        found,
        _sentence(db, found, reads),
        found.kind in ("table", "view", "materialized view", "domain"),
        readers,
        reads,
        db.describe(name).warnings,
    )


def _reads(db: Database, name: str, names: set[str]) -> list[Neighbour]:
    """What a view reads directly: the objects that have it among their readers, less those that
    are reached through others."""
    above = {each: set(db.readers_of(_called(each))) for each in names if each != name}
    mine = {each for each, readers in above.items() if any(_of(r) == name for r in readers)}
    through = {
        each
        for each in mine
        for middle in mine - {each}
        if any(_of(reader) == middle for reader in above[each])
    }
    return [Neighbour(each, _path(each)) for each in sorted(mine - through)]


def _of(reader: str) -> str:
    return reader.rsplit(" ", 1)[-1]


def _neighbours(titles: Sequence[str]) -> Iterator[Neighbour]:
    for title in titles:
        name = _of(title)
        path = f"/rules/{segment(name)}" if title.startswith("the rule ") else _path(name)
        is_object = title.startswith("the ") and "monitor" not in title
        yield Neighbour(title.removeprefix("the "), path if is_object else "")


def _path(name: str) -> str:
    return f"/data/{segment(name)}"


def _sentence(db: Database, found: Listed, reads: Sequence[Neighbour]) -> str:
    match found.kind:
        case "table":
            key = f"keyed by {', '.join(found.key)}" if found.key else "without a key"
            return f"A table with {plural(len(found.columns), 'column')}, {key}."
        case "materialized view":
            start = "A materialized view: its rows are stored, and each commit updates them"
        case "view":
            start = "A view: its rows are computed when they are read"
        case kind:
            start = f"A {kind}"
    named = ", ".join(each.title for each in reads)
    return f"{start}; it reads {named}." if named else f"{start}."


@dataclass(frozen=True, slots=True)
class Found:
    """An entry of the palette."""

    title: str
    kind: str
    path: str


def search(db: Database, text: str) -> list[Found]:
    """What has a text in its name: names that begin with it first."""
    wanted = text.casefold()
    every = [Found(title, "page", path) for title, path in PAGES]
    every += [Found(each.name, each.kind, _path(each.name)) for each in all_objects(db)]
    every += [
        Found(each.name, "continual query", f"/queries/{segment(each.name)}")
        for each in db.continual_queries.list()
    ]
    every += [Found(each.name, "source", f"/sources/{segment(each.name)}") for each in visible(db)]
    every += [Found(each.name, "rule", f"/rules/{segment(each.name)}") for each in rules_of(db)]
    matching = [each for each in every if wanted in each.title.casefold()]
    matching.sort(key=lambda each: not each.title.casefold().startswith(wanted))
    return matching[:MOST_FOUND]


def first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
