"""Aggregates as Spark SQL: the totals of all groups at once, joined to those who ask.

    totals(literals, source)   = one row (g0, g1, ..., v0, v1, ..., n) for each group of the
                                 source's rows, n of them
    value(literal, alias, i)   = the aggregate vi, where no total was joined that of no rows

The minimum, maximum and average of nothing are nothing, so their join is an inner one. Aggregates
that are `alike` are computed together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from harken.engines.spark.faults import raising
from harken.engines.spark.sql_expressions import (
    Risk,
    Sql,
    by_python,
    fold_name,
    spark_type,
)
from harken.engines.spark.sql_expressions import literal as written_out
from harken.ir.clauses import Aggregation, Atom
from harken.ir.operations import FOLDED
from harken.ir.terms import Term, Variable
from harken.values.types import BOOLEAN, NUMBER, TEXT, is_decimal

OF_SOMETHING = frozenset({"min", "max", "avg"})
"""Aggregates that have no value where there is no row."""


def groups(literal: Aggregation) -> dict[Variable, list[int]]:
    """The group variables of an aggregate with their columns."""
    wanted = set(literal.groups)
    found: dict[Variable, list[int]] = {}
    for position, term in enumerate(literal.atom.terms):
        if isinstance(term, Variable) and term in wanted:
            found.setdefault(term, []).append(position)
    return found


def needs_rows(literal: Aggregation) -> bool:
    """Has it no value where there is no row?"""
    return literal.aggregate in OF_SOMETHING and not literal.or_null


def alike(one: Aggregation, other: Aggregation) -> bool:
    """Are they of the same groups of the same rows, and missing for the same reason?"""
    return needs_rows(one) == needs_rows(other) and _shape(one) == _shape(other)


def _shape(literal: Aggregation) -> tuple[object, ...]:
    """The atom, whatever the variables that range over a group are called."""
    wanted = set(literal.groups)
    first: dict[Term, int] = {}
    terms = tuple(
        first.setdefault(term, position)
        if isinstance(term, Variable) and term not in wanted
        else term
        for position, term in enumerate(literal.atom.terms)
    )
    return literal.atom.relation.id, literal.groups, terms


def totals(literals: Sequence[Aggregation], source: str, written: Callable[[Term], str]) -> str:
    """The totals of each group, of aggregates that are alike; without groups those of all rows, if
    there are some.

    `written` says how a constant or parameter is written.
    """
    first = literals[0]
    tests = _tests(_places(first), written, first.atom)
    keys = [f"m.c{positions[0]}" for positions in groups(first).values()]
    shown = [f"{key} AS g{number}" for number, key in enumerate(keys)]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    having = " HAVING count(1) > 0" if not keys and needs_rows(first) else ""
    whole = [f"{_total(each)} AS v{number}" for number, each in enumerate(literals)]
    columns = ", ".join([*shown, *whole, "count(1) AS n"])
    return f"SELECT {columns} FROM {source} AS m{where}{by}{having}"


def _total(literal: Aggregation) -> str:
    value = literal.value
    if literal.aggregate in FOLDED:
        return _folded(literal)
    argument = f"m.c{literal.atom.terms.index(value)}" if value is not None else ""
    return _AGGREGATES[literal.aggregate](argument, literal)


def _folded(literal: Aggregation) -> str:
    """By Python, from all rows of the group that have a value."""
    assert literal.value is not None
    places = [literal.atom.terms.index(each) for each in (literal.value, *literal.others)]
    if literal.aggregate == "nth_value":
        return _nth(literal, places)
    row = ", ".join(f"'r{i}', m.c{place}" for i, place in enumerate(places))
    rows = f"collect_list(CASE WHEN m.c{places[0]} IS NOT NULL THEN named_struct({row}) END)"
    settings = written_out(json.dumps(literal.settings), TEXT)
    return by_python(fold_name(literal.aggregate, literal.result.type), [settings, rows])


def _nth(literal: Aggregation, places: Sequence[int]) -> str:
    """The value at a place in an order, by Spark itself: windows ask for it row by row."""
    *_, count, from_end, without_nulls = literal.settings
    place, value = (f"m.c{each}" for each in places)
    row = f"named_struct('p', {place}, 'v', {value})"
    if without_nulls:
        row = f"CASE WHEN {value} IS NOT NULL THEN {row} END"
    return f"try_element_at(array_sort(collect_list({row})), {'-' * bool(from_end)}{count}).v"


def _places(literal: Aggregation) -> dict[Term, list[int]]:
    places: dict[Term, list[int]] = {}
    for position, term in enumerate(literal.atom.terms):
        places.setdefault(term, []).append(position)
    return places


def _tests(places: dict[Term, list[int]], written: Callable[[Term], str], atom: Atom) -> list[str]:
    """What the terms of the atom demand: equal where they are the same, equal to a constant."""
    tests = []
    for term, (first, *others) in places.items():
        for other in others if isinstance(term, Variable) else (first, *others):
            same = "<=>" if atom.relation.columns[other].type.nullable else "="
            value = f"m.c{first}" if isinstance(term, Variable) else written(term)
            tests.append(f"m.c{other} {same} {value}")
    return tests


def value(literal: Aggregation, alias: str, number: int) -> Sql:
    """The value of an aggregate from the joined total, which is missing where there is no row."""
    column, type_ = f"{alias}.v{number}", literal.type
    own = frozenset({alias})
    if literal.or_null:
        return _or_null(literal, column, own)
    match literal.aggregate:
        case "count":
            return Sql(f"coalesce({column}, 0L)", type_, sources=own)
        case "some":
            return Sql(f"coalesce({column}, false)", BOOLEAN, sources=own)
        case "notany":
            return Sql(f"(NOT coalesce({column}, false))", BOOLEAN, sources=own)
        case "sum" if type_ == NUMBER:
            return Sql(f"coalesce({column}, 0D)", type_, True, Risk.OVERFLOW, own)
        case "sum" if is_decimal(type_):
            nothing = f"CAST(0 AS {spark_type(type_)})"
            whole = f"CASE WHEN coalesce({alias}.n, 0L) = 0L THEN {nothing} ELSE {column} END"
            return Sql(whole, type_, True, Risk.OVERFLOW, own)
        case "sum":
            whole = f"try_cast({column} AS BIGINT)"
            fits = f"CASE WHEN {column} IS NULL THEN 0L ELSE {whole} END"
            return Sql(fits, type_, True, Risk.OVERFLOW, own)
        case "avg":
            return Sql(column, type_, True, Risk.OVERFLOW, own)
    return Sql(column, type_, sources=own)


def _or_null(literal: Aggregation, column: str, own: frozenset[str]) -> Sql:
    """SQL's: NULL where there is no row, or nothing but NULLs."""
    type_ = literal.type
    if literal.aggregate == "sum" and type_ not in (NUMBER,) and not is_decimal(type_):
        fits = f"try_cast({column} AS BIGINT)"
        return Sql(fits, type_, True, Risk.OVERFLOW, own, (column,))
    if literal.aggregate in ("sum", "avg"):
        return Sql(column, type_, True, Risk.OVERFLOW, own, (column,))
    risk = Risk.FAILURE if literal.aggregate == "single value" else Risk.NONE
    return Sql(column, type_, risk=risk, sources=own)


def _sum(value: str, literal: Aggregation) -> str:
    """Of integers exactly: only the whole sum must fit."""
    if literal.result.type == NUMBER:
        return f"sum({value})"
    if is_decimal(literal.result.type):
        return f"try_cast(try_sum({value}) AS {spark_type(literal.result.type)})"
    return f"sum(CAST({value} AS DECIMAL(20, 0)))"


def _average(value: str, literal: Aggregation) -> str:
    if literal.value is not None and literal.value.type == NUMBER:
        return f"avg({value})"
    if is_decimal(literal.result.type):
        return f"try_cast(try_avg({value}) AS {spark_type(literal.result.type)})"
    whole = f"CAST(sum(CAST({value} AS DECIMAL(20, 0))) AS DOUBLE)"
    return f"try_divide({whole}, CAST(count({value}) AS DOUBLE))"


_AGGREGATES: dict[str, Callable[[str, Aggregation], str]] = {
    "count": lambda value, literal: f"count({value or 1})",
    "sum": _sum,
    "avg": _average,
    "min": lambda value, literal: f"min({value})",
    "max": lambda value, literal: f"max({value})",
    "single value": lambda value, literal: (
        f"CASE WHEN count(1) > 1 THEN {raising('many-values')} ELSE max({value}) END"
    ),
    "some": lambda value, literal: "count(1) > 0",
    "notany": lambda value, literal: "count(1) > 0",
}
