"""A view restricted by a condition in SQL, which is compiled with it.

    SELECT columns of v FROM v WHERE condition

The constants of the condition are lifted out of the resulting clause: conditions that differ only
in their constants have one shape, and one plan.

Law: the rows are those of the view for which the condition is true, with the same multiplicities.
"""

from __future__ import annotations

import datetime
import decimal
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlglot import exp

from harken.consumers.monitors.restriction import Restriction, constant_variable
from harken.database.arguments import check_text
from harken.database.catalog import Catalog
from harken.database.function_tables import SqlTables, table_of
from harken.errors import HarkenError, Span, SyntaxFault, TypeFault
from harken.ir.clauses import Definition
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function
from harken.lang.sql.parser import Statement, statements
from harken.lang.sql.program_draft import Draft, Table
from harken.lang.sql.queries import new_translation
from harken.lang.sql.random_calls import number_random_calls
from harken.planner.lift import lift_constants

PARTS = {"expressions", "from_", "from", "where"}
"""The parts of a query that has a condition and nothing else."""

LONGEST_CACHED = 1_000
"""In characters: longer conditions are translated each time, to keep the cache small."""


def condition_text(where: str | Mapping[str, Any]) -> str:
    """A condition in normal form: texts that parse the same are equal.

    >>> condition_text("price<5"), condition_text({"name": "Pen", "limit": None})
    ('price < 5', "`name` = 'Pen' AND `limit` IS NULL")
    """
    if isinstance(where, Mapping):
        return _equal_to(where)
    check_text(where, "a condition")
    return _text_of(where) if len(where) <= LONGEST_CACHED else _text_of.__wrapped__(where)


@lru_cache(maxsize=4096)
def _text_of(where: str) -> str:
    with _located("view", where):
        node = _statement("view", where).node.args["where"].this
    shown = str(node.sql("spark"))
    if shown == where:
        return shown
    try:
        same = _statement("view", shown).node.args["where"].this == node
    except HarkenError:
        same = False
    return shown if same else where.strip()


def _equal_to(values: Mapping[str, Any]) -> str:
    if not values:
        raise TypeFault("a condition must name at least one column", code="bad-value")
    parts = []
    for name, value in values.items():
        check_text(name, "the name of a column")
        column = exp.column(name, quoted=True)
        missing = exp.Is(this=column, expression=exp.Null())
        equal = exp.EQ(this=column, expression=_literal(value))
        parts.append((missing if value is None else equal).sql("spark"))
    return " AND ".join(parts)


def _literal(value: Any) -> exp.Expr:
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() | decimal.Decimal():
            return exp.Literal.number(str(value))
        case float():
            return exp.cast(exp.Literal.number(repr(value)), "double")
        case str():
            return exp.Literal.string(value)
        case datetime.datetime():
            return exp.cast(exp.Literal.string(value.isoformat(" ")), "timestamp")
        case datetime.date():
            return exp.cast(exp.Literal.string(value.isoformat()), "date")
    raise TypeFault(
        f"a column cannot be compared with {value!r}",
        code="type-mismatch",
        hint="use a number, a text, a boolean, a date or None",
    )


def restricted(function: Function, where: str, catalog: Catalog) -> Restriction:
    """The rows that meet the condition, with the view's columns in their own order."""
    view = _View.of(function)
    alone = _restricted_alone if len(where) <= LONGEST_CACHED else _restricted_alone.__wrapped__
    try:
        return alone(view, where)
    except _ReadsMore:
        return _restricted(view, where, SqlTables(catalog))


@lru_cache(maxsize=4096)
def _restricted_alone(view: _View, where: str) -> Restriction:
    """A condition on the view's columns only. It means the same in all sessions, so it is
    translated once per process."""
    return _restricted(view, where, None)


def _restricted(view: _View, where: str, others: SqlTables | None) -> Restriction:
    translation = _translated(view, where, others, "restricted")
    digest = translation.digest()
    if translation.own:  # auxiliary relations of the condition are named after what it says
        owner = f"{view.relation.name} where {digest}"
        translation = _translated(view, where, others, owner)
    (clause,) = translation.rows.clauses
    lifted, constants = lift_constants(clause, constant_variable)
    return Restriction(
        digest,
        lifted,
        constants,
        translation.own,
        translation.mentions,
    )


@dataclass(frozen=True, slots=True)
class _Translation:
    """A condition as definitions: of the rows that meet it, and of what it mentions."""

    rows: Definition
    own: tuple[Definition, ...]
    mentions: frozenset[str]

    def digest(self) -> str:
        """Identifies what the condition says, apart from its constants."""
        lifted = [lift_constants(clause, constant_variable)[0] for clause in self.rows.clauses]
        text = repr((self.rows.relation, lifted, self.own))
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def _translated(view: _View, where: str, others: SqlTables | None, owner: str) -> _Translation:
    with _located(view.name, where):
        statement = _statement(view.name, where)
        select = statement.node
        select.set("expressions", [exp.column(each.name, quoted=True) for each in view.columns])
        if view.relation.is_set:
            select.set("distinct", exp.Distinct())
        draft = Draft(statement, owner)
        translation = new_translation(draft, _Tables(view, others))
        relation = translation.query(number_random_calls(select)).relation
    own = tuple(each for name, each in draft.definitions.items() if name != relation.id)
    return _Translation(draft.definitions[relation.id], own, frozenset(translation.mentioned))


@contextmanager
def _located(name: str, where: str) -> Iterator[None]:
    """Errors point into the condition, which is all that its author wrote."""
    prefix = len(_select(name, ""))
    try:
        yield
    except HarkenError as error:
        if error.span is not None and error.text is None:
            start = max(0, min(error.span.start - prefix, len(where) - 1))
            error.span = Span(start, max(start + 1, error.span.end - prefix))
        error.locate(where, "where")
        raise


def _select(name: str, where: str) -> str:
    return f"SELECT * FROM {exp.to_identifier(name, quoted=True).sql('spark')} WHERE {where}"


def _statement(name: str, where: str) -> Statement:
    """Reject text that continues after the condition."""
    text = _select(name, where)
    found = statements(text)
    node = found[0].node
    set_parts = {part for part, value in node.args.items() if value}
    if len(found) > 1 or not isinstance(node, exp.Select) or not set_parts <= PARTS:
        raise SyntaxFault(
            "this is more than a condition",
            code="syntax",
            span=Span(len(text) - len(where), len(text)),
            hint="write only what would follow WHERE",
        )
    return found[0]


@dataclass(frozen=True, slots=True)
class _View:
    """A view as its condition sees it: a table with distinct column names."""

    name: str
    relation: Relation
    table: Table

    @classmethod
    def of(cls, function: Function) -> _View:
        assert function.relation is not None
        columns = row_columns(function)
        positions = tuple(range(len(columns)))
        table = replace(table_of(function), columns=columns, positions=positions)
        return cls(function.name, function.relation, table)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.table.columns


class _ReadsMore(Exception):
    """A condition mentions another table than its view."""


class _Tables:
    """The view under its own name, and all other tables."""

    def __init__(self, view: _View, others: SqlTables | None) -> None:
        self._view = view
        self._others = others

    def table(self, name: str) -> Table | None:
        if self._others is None:
            if name == self._view.name:
                return self._view.table
            raise _ReadsMore
        found = self._others.table(name)
        same = found is not None and found.name == self._view.table.name
        return self._view.table if same else found

    def table_names(self) -> list[str]:
        if self._others is None:
            raise _ReadsMore
        return self._others.table_names()


def row_columns(view: Function) -> tuple[Column, ...]:
    """The columns of the rows that a monitor reports; their names are distinct."""
    table = table_of(view)
    ordered = sorted(zip(table.positions, table.columns, strict=True), key=lambda each: each[0])
    return tuple(_different(column for _, column in ordered))


def _different(columns: Iterable[Column]) -> Iterator[Column]:
    """
    >>> from harken.values.types import INTEGER
    >>> [each.name for each in _different([Column("a", INTEGER), Column("a", INTEGER)])]
    ['a', 'a_2']
    """
    known: set[str] = set()
    for column in columns:
        name, number = column.name.lower(), 1
        while name in known:
            number += 1
            name = f"{column.name.lower()}_{number}"
        known.add(name)
        yield Column(name, column.type)


class SqlConditions:
    """Conditions of monitors in SQL (`consumers.monitors.restriction.Conditions`)."""

    def text(self, where: str | Mapping[str, Any]) -> str:
        return condition_text(where)

    def columns(self, function: Function) -> tuple[Column, ...]:
        return row_columns(function)

    def restrict(self, function: Function, where: str, catalog: Catalog) -> Restriction:
        return restricted(function, where, catalog)
