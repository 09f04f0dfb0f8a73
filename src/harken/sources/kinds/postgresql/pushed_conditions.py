"""The conditions of a query as a WHERE of PostgreSQL.

Only what PostgreSQL decides as we do is pushed: texts by code points (COLLATE "C"), whole numbers,
booleans, dates. A value that becomes NULL here, such as NaN or an infinite date, is no NULL there,
so of such columns IS NULL is not pushed, and with a condition on one no limit is.

Law: what is pushed holds for every row for which the condition holds here.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from psycopg import sql

from harken.sources.kinds.postgresql.postgres_tables import TableColumn
from harken.sources.kinds.postgresql.postgres_values import (
    BOOL,
    DATE,
    INTEGERS,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
)
from harken.sources.outside import Condition, Order

LARGEST = 2**63 - 1
YEARS = {DATE: "date", TIMESTAMP: "timestamp", TIMESTAMPTZ: "timestamptz"}
IN_CODE_POINTS = frozenset({"UTF8", "LATIN1"})
"""Encodings of a server in which the order of bytes is that of code points."""


def asked(
    conditions: Sequence[Condition], columns: Mapping[str, TableColumn], encoding: str
) -> tuple[sql.Composable | None, tuple[Condition, ...], bool]:
    """The conditions that are pushed, as text and as they are, and whether they keep no other
    rows."""
    texts, pushed, is_exact = [], [], True
    for condition in conditions:
        column = columns.get(condition.column)
        text = None if column is None else _text(condition, column, encoding)
        if column is not None and text is not None:
            texts.append(text)
            pushed.append(condition)
            is_exact = is_exact and column.value.is_exact
    return (sql.SQL(" AND ").join(texts) if texts else None), tuple(pushed), is_exact


def ordered(
    order: Sequence[Order], columns: Mapping[str, TableColumn], encoding: str
) -> sql.Composable | None:
    """The order as an ORDER BY, if PostgreSQL has the same."""
    keys = []
    for each in order:
        subject = _sorted_as(columns.get(each.column), encoding)
        if subject is None:
            return None
        down = "DESC" if each.descending else "ASC"
        nulls = "FIRST" if each.nulls_first else "LAST"
        keys.append(sql.SQL("{} {} NULLS {}").format(subject, sql.SQL(down), sql.SQL(nulls)))
    return sql.SQL(", ").join(keys)


def _sorted_as(column: TableColumn | None, encoding: str) -> sql.Composable | None:
    """What is NULL here must be so there: infinite dates, for instance."""
    if column is None:
        return None
    name, base = sql.Identifier(column.name), column.value.base
    if base in INTEGERS or base == BOOL:
        return name
    if base in (TEXT, VARCHAR) and encoding in IN_CODE_POINTS:
        return sql.SQL('{} COLLATE "C"').format(name)
    if base in YEARS:
        first, end = (
            sql.SQL("{}::{}").format(sql.Literal(each), sql.SQL(YEARS[base]))
            for each in ("0001-01-01", "10000-01-01")
        )
        return sql.SQL("CASE WHEN {name} >= {first} AND {name} < {end} THEN {name} END").format(
            name=name, first=first, end=end
        )
    if base == NUMERIC and pa.types.is_decimal(column.value.arrow):
        return sql.SQL("nullif({}, 'NaN')").format(name)
    return None


def _text(condition: Condition, column: TableColumn, encoding: str) -> sql.Composable | None:
    name, operator = sql.Identifier(column.name), condition.operator
    if operator in ("is null", "is not null"):
        if operator == "is null" and not column.value.is_exact:
            return None
        return sql.SQL("{} {}").format(name, sql.SQL(operator.upper()))
    literal = _LITERALS.get(column.value.base)
    if literal is None or (literal is _exact and not pa.types.is_decimal(column.value.arrow)):
        return None
    values = [literal(value) for value in condition.values]
    if any(value is None for value in values):
        return None
    subject: sql.Composable = name
    is_text = column.value.base in (TEXT, VARCHAR)
    is_equality = operator in ("=", "in", "<>")
    if is_text and not is_equality and encoding not in IN_CODE_POINTS:
        return None
    if is_text and not (is_equality and column.is_deterministic):
        subject = sql.SQL('{} COLLATE "C"').format(name)
    written = [each for each in values if each is not None]
    if operator == "in":
        if not written:
            return sql.SQL("false")
        return sql.SQL("{} IN ({})").format(subject, sql.SQL(", ").join(written))
    return sql.SQL("{} {} {}").format(subject, sql.SQL(operator), written[0])


def _integer(value: Any) -> sql.Composable | None:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > LARGEST:
        return None
    return sql.Literal(value)


def _truth(value: Any) -> sql.Composable | None:
    return sql.Literal(value) if isinstance(value, bool) else None


def _characters(value: Any) -> sql.Composable | None:
    if not isinstance(value, str) or "\0" in value or not _is_unicode(value):
        return None
    return sql.Literal(value)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _day(value: Any) -> sql.Composable | None:
    if isinstance(value, datetime.datetime) or not isinstance(value, datetime.date):
        return None
    return sql.SQL("{}::date").format(sql.Literal(value.isoformat()))


def _moment(type: str, zone: datetime.timezone | None) -> Callable[[Any], sql.Composable | None]:
    def literal(value: Any) -> sql.Composable | None:
        if not isinstance(value, datetime.datetime):
            return None
        utc = value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value
        written = utc.astimezone(datetime.UTC).replace(tzinfo=zone).isoformat(" ")
        return sql.SQL("{}::{}").format(sql.Literal(written), sql.SQL(type))

    return literal


def _exact(value: Any) -> sql.Composable | None:
    if isinstance(value, bool) or not isinstance(value, int | decimal.Decimal):
        return None
    exact = decimal.Decimal(value)
    return sql.Literal(exact) if exact.is_finite() else None


_LITERALS: dict[int, Callable[[Any], sql.Composable | None]] = {
    **dict.fromkeys(INTEGERS, _integer),
    BOOL: _truth,
    TEXT: _characters,
    VARCHAR: _characters,
    DATE: _day,
    TIMESTAMP: _moment("timestamp", None),
    TIMESTAMPTZ: _moment("timestamptz", datetime.UTC),
    NUMERIC: _exact,
}
