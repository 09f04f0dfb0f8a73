"""Aggregates as SQLite computes them: of one group, or of all groups at once.

Law: a sum of integers or decimals is exact and fails only if the whole of it leaves the range; it
does not depend on the order of the rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from harken.engines.sqlite.fallible import can_overflow
from harken.engines.sqlite.native_grouping import GroupBy
from harken.engines.sqlite.sql_expressions import Risk, Sql
from harken.ir.clauses import Aggregation
from harken.ir.operations import FOLDED
from harken.values.types import NUMBER, decimal_digits, is_decimal


def exact_sum(value: str, weight: str = "1") -> str:
    """The exact sum of weighted integers, added in halves. SQLite's own sum fails when a partial
    sum overflows, so its result would depend on the order of the rows. This one overflows, into
    a real number, only if the whole sum does."""
    times = "" if weight == "1" else f" * {weight}"
    high, low = f"sum(({value} >> 32){times})", f"sum(({value} & 4294967295){times})"
    return f"coalesce(({high} + ({low} >> 32)) * 4294967296 + ({low} & 4294967295), 0)"


def of_one_group(literal: Aggregation, rows: str) -> Sql:
    """The aggregate of all `rows`. Their column `v` holds the value, if the aggregate takes one,
    and their column `pN` the atom's term number N."""
    terms = literal.atom.terms
    beside = ["v" if each == literal.value else f"p{terms.index(each)}" for each in literal.others]
    found = _of_members(literal, "v" if literal.value is not None else "*", beside)
    if can_overflow(literal):
        rows = f"SELECT {found} AS s FROM ({rows})"
        found = _result(literal, "s").text
    return Sql(f"(SELECT {found} FROM ({rows}))", literal.type, risk=Risk.FAILURE)


def of_each_group(grouped: GroupBy, rows: str) -> str:
    """One row per group of the members in `rows`, with all of the group's aggregates."""
    groups = [f"c{i}" for i in range(grouped.groups)]
    found, shown = list(groups), list(groups)
    for number, (literal, column) in enumerate(grouped.aggregates, start=grouped.groups):
        beside = [f"c{literal.atom.terms.index(each)}" for each in literal.others]
        members = _of_members(literal, "*" if column is None else f"c{column}", beside)
        found.append(f"{members} AS c{number}")
        shown.append(f"{_result(literal, f'c{number}').text} AS c{number}")
    by = f" GROUP BY {', '.join(groups)}" if groups else ""
    inner = f"SELECT {', '.join(found)} FROM ({rows}){by}"
    return f"SELECT {', '.join(shown)} FROM ({inner})"


def _of_members(literal: Aggregation, value: str, beside: Sequence[str]) -> str:
    """The aggregate of the members' column `value`, and any columns `beside` it; sums are not
    checked for overflow yet."""
    match literal.aggregate:
        case name if name in FOLDED:
            settings = json.dumps(literal.settings).replace("'", "''")
            return f"harken_{name}('{settings}', {', '.join((value, *beside))})"
        case "sum":
            whole = f"total({value})" if literal.type == NUMBER else exact_sum(value)
            return _of_some(value, whole) if literal.type.nullable else whole
        case "avg" if is_decimal(literal.type):
            return _of_some(value, _decimal_average(literal, value))
        case "single value":
            return f"CASE WHEN count(*) > 1 THEN harken_many_rows() ELSE max({value}) END"
    return f"{literal.aggregate}({value})"


def _of_some(value: str, text: str) -> str:
    return f"CASE WHEN count({value}) > 0 THEN {text} END"


def _decimal_average(literal: Aggregation, value: str) -> str:
    """Exact sum, rounded quotient."""
    assert literal.value is not None
    _, given = decimal_digits(literal.value.type)
    _, wanted = decimal_digits(literal.result.type)
    return f"harken_decimal_average({exact_sum(value)}, count({value}), {wanted - given})"


def _result(literal: Aggregation, column: str) -> Sql:
    """The aggregate in a column, with its overflow check."""
    return Sql(column, literal.type, raw=can_overflow(literal)).checked()
