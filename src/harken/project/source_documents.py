"""The sources and domains of a project: the sections `sources` and `domains` of its .yml files.

Each entry stands for a statement, CREATE SOURCE or CREATE DOMAIN, and is declared like one in a
.sql file. Paths of files begin at the file that has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harken.api.definition_texts import domain_statement, length_of_time, source_statement
from harken.database.language_names import SQL
from harken.errors import HarkenError
from harken.project.project_fault import ProjectFault
from harken.statements.declaration import Declaration
from harken.statements.language_registry import language_named

if TYPE_CHECKING:
    from harken.project.documents import Node

KEYS = ("kind", "options", "key", "capture", "every", "mirror", "in_lake")
DOMAIN_KEYS = ("members", "columns", "unavailable")
PATHS = ("path", "directory")


def source_declared(name: str, node: Node, directory: Path) -> Declaration:
    entries = node.known("a source", KEYS)
    if "kind" not in entries:
        node.wrong(f"the source {name} has no kind", "write `kind: json`, for example")
    options = entries["options"].entries("the options") if "options" in entries else {}

    def text() -> str:
        return source_statement(
            name,
            entries["kind"].words("the kind of a source"),
            {key: _option(key, value, directory) for key, value in options.items()},
            key=_names(entries["key"]) if "key" in entries else None,
            capture=entries["capture"].words("the capture") if "capture" in entries else None,
            every=_seconds(entries["every"]) if "every" in entries else None,
            mirror="mirror" not in entries or _flag(entries["mirror"], "mirror"),
            in_lake="in_lake" in entries and _flag(entries["in_lake"], "in_lake"),
        )

    return _declared(node, text)


def domain_declared(name: str, node: Node) -> Declaration:
    entries = node.known("a domain", DOMAIN_KEYS)
    if "members" not in entries:
        node.wrong(f"the domain {name} has no members", "write `members: [a, b]`, for example")
    skips = False
    if "unavailable" in entries:
        said = entries["unavailable"].words("unavailable")
        skips = said == "skip"
        if said not in ("skip", "fail"):
            entries["unavailable"].wrong(f"unavailable is {said}", "write skip or fail")

    def text() -> str:
        return domain_statement(
            name,
            _members(entries["members"]),
            columns=_names(entries["columns"]) if "columns" in entries else None,
            skip_unavailable=skips,
        )

    return _declared(node, text)


def _declared(node: Node, text: Callable[[], str]) -> Declaration:
    """The declaration of the statement, which stands where the entry does."""
    try:
        (found,) = language_named(SQL).declarations(text())
    except ProjectFault:
        raise
    except HarkenError as error:
        node.wrong(error.message, error.hint)
    return replace(found, span=node.span, parts=tuple(replace(e, start=None) for e in found.parts))


def _option(name: str, node: Node, directory: Path) -> Any:
    if node.is_list:
        return ", ".join(each.words(name) for each in node.items(name))
    value = node.scalar(f"the option {name}")
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, str) and name.lower() in PATHS and "://" not in value:
        return value if value.startswith("secret:") else str((directory / value).absolute())
    return value


def _names(node: Node) -> list[str]:
    if node.is_list:
        return [each.words("a column").lower() for each in node.items("the columns")]
    return [each.strip().lower() for each in node.words("the columns").split(",")]


def _seconds(node: Node) -> float:
    found = length_of_time(node.words("how often it is read"))
    if found is None:
        node.wrong("this is no length of time", "write `every: 20 minutes`, or a number of seconds")
    return found


def _flag(node: Node, what: str) -> bool:
    value = node.scalar(what)
    if value == "none":
        return False
    if not isinstance(value, bool):
        node.wrong(f"{what} is true or false")
    return value


def _members(node: Node) -> dict[str, Any]:
    if node.is_list:
        return {each.words("a member"): None for each in node.items("the members")}
    return {name: _columns(each) for name, each in node.entries("the members").items()}


def _columns(node: Node) -> Any:
    if node.is_mapping:
        return {name: _names(each) for name, each in node.entries("the columns").items()}
    if node.is_list:
        return _names(node)
    return None if node.scalar("the columns") is None else _names(node)
