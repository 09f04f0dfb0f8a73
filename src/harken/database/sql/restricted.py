"""A view restricted by a condition in SQL, which is compiled with it.

    SELECT columns of v FROM v WHERE condition

Law: the rows are those of the view for which the condition is true, each as often as there.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sqlglot import exp

from harken.database.catalog import Catalog
from harken.database.complaints import check_text
from harken.database.sql.tables import SqlTables, table_of
from harken.errors import HarkenError, Span, SyntaxFault, TypeFault
from harken.ir.clauses import Definition
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function
from harken.lang.sql.chance import with_places
from harken.lang.sql.draft import Draft, Table
from harken.lang.sql.parser import Statement, statements
from harken.lang.sql.queries import Queries

PARTS = {"expressions", "from_", "from", "where"}
"""What a query with nothing but a condition has."""


def condition_text(where: str | Mapping[str, Any]) -> str:
    """A condition as it is kept: texts that read the same are the same.

    >>> condition_text("price<5"), condition_text({"name": "Pen", "limit": None})
    ('price < 5', "`name` = 'Pen' AND `limit` IS NULL")
    """
    if isinstance(where, Mapping):
        return _equal_to(where)
    check_text(where, "a condition")
    with _located("view", where):
        node = _statement("view", where).node.args["where"].this
    shown = str(node.sql("spark"))
    try:
        same = _statement("view", shown).node.args["where"].this == node
    except HarkenError:
        same = False
    return shown if same else where.strip()


def _equal_to(values: Mapping[str, Any]) -> str:
    if not values:
        raise TypeFault("a condition names a column at least", code="bad-value")
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
        hint="give a number, a text, a boolean, a date or None",
    )


def restricted(
    function: Function, where: str, catalog: Catalog
) -> tuple[Relation, Iterable[Definition], frozenset[str]]:
    """The rows that meet the condition, in the order of the view's own columns; what they are
    defined by; and the names that the condition mentions."""
    relation = function.relation
    assert relation is not None
    tables = _Tables(catalog, function)
    with _located(function.name, where):
        statement = _statement(function.name, where)
        select = statement.node
        select.set("expressions", [exp.column(each.name, quoted=True) for each in tables.columns])
        if relation.is_set:
            select.set("distinct", exp.Distinct())
        draft = Draft(statement, f"{relation.name} where {where}")
        queries = Queries(draft, tables)
        rows = queries.query(with_places(select))
    return rows.relation, draft.definitions.values(), frozenset(queries.mentioned)


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
    """Text that goes on after its condition is none."""
    text = _select(name, where)
    found = statements(text)
    node = found[0].node
    set_parts = {part for part, value in node.args.items() if value}
    if len(found) > 1 or not isinstance(node, exp.Select) or not set_parts <= PARTS:
        raise SyntaxFault(
            "this is more than a condition",
            code="syntax",
            span=Span(len(text) - len(where), len(text)),
            hint="write what would stand after WHERE",
        )
    return found[0]


class _Tables(SqlTables):
    """All tables, and under its own name the view, whose columns all have different names."""

    def __init__(self, catalog: Catalog, view: Function) -> None:
        super().__init__(catalog)
        table = table_of(view)
        ordered = sorted(zip(table.positions, table.columns, strict=True), key=lambda each: each[0])
        self.columns = tuple(_different(column for _, column in ordered))
        self._view = replace(table, columns=self.columns, positions=tuple(range(len(self.columns))))

    def table(self, name: str) -> Table | None:
        found = super().table(name)
        same = found is not None and found.name == self._view.name
        return self._view if same else found


def row_columns(view: Function) -> tuple[Column, ...]:
    """The columns of the rows that a monitor gives, all with different names."""
    table = table_of(view)
    ordered = sorted(zip(table.positions, table.columns, strict=True), key=lambda each: each[0])
    return tuple(_different(column for _, column in ordered))


def _different(columns: Iterable[Column]) -> Iterator[Column]:
    """
    >>> from harken.ir.types import INTEGER
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
