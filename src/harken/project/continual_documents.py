"""The continual queries of a project: the section `queries` of its .yml files.

A query that the project no longer has is dropped, if the project installed it. Law: applied again,
nothing is done; what is altered keeps its id, its history, and the reference of its difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harken.errors import HarkenError
from harken.project.ownership import Entry

if TYPE_CHECKING:
    from harken.api.database import Database
    from harken.project.documents import Node

QUERY = "query"
KEYS = (
    *("query", "trigger", "stop", "deliver", "zone", "owner", "strategy", "deadline", "coupling"),
    *("notify", "priority", "paused", "muted"),
)
CREATE, CHANGE, DROP = "create", "change", "drop"
_ACTIONS = {"installed": CREATE, "altered": CHANGE}


@dataclass(frozen=True, slots=True)
class ProjectQuery:
    name: str
    document: Mapping[str, Any]
    node: Node

    @property
    def place(self) -> str:
        line, _ = self.node.span.position(self.node.text)
        return f"{self.node.source}:{line}"

    @property
    def entry(self) -> Entry:
        return Entry(QUERY, self.name, "", json.dumps(self.document), "", "", 0)


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    action: str
    name: str
    query: ProjectQuery | None = None

    @property
    def place(self) -> str:
        return "no longer in the project" if self.query is None else self.query.place


def read_query(name: str, node: Node) -> ProjectQuery:
    document: dict[str, Any] = {}
    for key, value in node.known("a continual query", KEYS).items():
        if value.is_list:
            document[key] = [each.words(key) for each in value.items(key)]
        elif key in ("priority", "paused", "muted"):
            document[key] = value.scalar(key)
        else:
            document[key] = value.words(key)
    return ProjectQuery(name, document, node)


def planned_queries(
    db: Database, queries: Sequence[ProjectQuery], record: Mapping[tuple[str, str], Entry]
) -> Iterator[PlannedQuery]:
    """What must be done for the database to have these queries."""
    wanted = {each.name.lower() for each in queries}
    there = {name.lower() for name in db.continual_queries.export()}
    for kind, name in record:
        if kind == QUERY and name.lower() not in wanted and name.lower() in there:
            yield PlannedQuery(DROP, name)
    for each in queries:
        try:
            (done,) = db.continual_queries.compare({each.name: each.document}).values()
        except HarkenError as error:
            each.node.wrong(error.message, error.hint)
        if done in _ACTIONS:
            yield PlannedQuery(_ACTIONS[done], each.name, each)


def carry_out_queries(db: Database, planned: Sequence[PlannedQuery]) -> None:
    """In a transaction: drop, install and alter."""
    for each in planned:
        if each.query is None:
            db.continual(each.name).drop()
            continue
        try:
            db.continual_queries.install_all({each.name: each.query.document})
        except HarkenError as error:
            each.query.node.wrong(error.message, error.hint)
