"""Statements that name a relation of Harken's own before it has its first row: it is created."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from harken.database.runtime import Runtime
from harken.lang.sql.continual_statements import Continual
from harken.lang.sql.parser import Statement

Changing = Callable[[Callable[[], None]], None]


def declare_named(runtime: Runtime, statement: Statement, changing: Changing) -> None:
    missing = runtime.standing.missing(statement.text)
    named = [each for each in missing if _names(statement.node, each)]
    if named:
        changing(lambda: _declare(runtime, named))


def _declare(runtime: Runtime, names: list[str]) -> None:
    runtime.standing.declare(names)
    runtime.reactions.synchronise()


def _names(node: exp.Expr, name: str) -> bool:
    if isinstance(node, Continual):  # its query is read later
        return True
    if isinstance(node, exp.Drop):
        return False
    created = node.this.find(exp.Table) if isinstance(node, exp.Create) else None
    tables = (each for each in node.find_all(exp.Table) if each is not created)
    return any(each.name.lower() == name for each in tables)
