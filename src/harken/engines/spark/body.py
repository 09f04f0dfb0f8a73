"""The body of a clause while it becomes a SELECT: what it joins, what it demands, what it knows.

    SELECT ... FROM sources and joins WHERE conditions

Law: a condition that can fail is asked only of rows for which the joins and every condition that
cannot fail hold. `staged` closes a SELECT and goes on over its rows, with values that were
expressions before as columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from harken.engines.spark.grouping import Grouped
from harken.engines.spark.sql_expressions import Risk, Sql, after
from harken.ir.terms import Variable
from harken.values.types import BOOLEAN, INTEGER

Environment = dict[Variable, Sql]


@dataclass(frozen=True, slots=True)
class Condition:
    """`links` says that it equates columns of different sources, which is how Spark joins them."""

    value: Sql
    links: bool = False

    @property
    def text(self) -> str:
        waits = self.value.risk is Risk.FAILURE or (
            self.value.risk is Risk.OVERFLOW and not self.links
        )
        return after(self.value.text, "false") if waits else self.value.text


@dataclass(slots=True)
class Body:
    sources: list[str] = field(default_factory=list)
    """Each but the first begins with the kind of its join."""
    conditions: list[Condition] = field(default_factory=list)
    environment: Environment = field(default_factory=dict)
    asked: bool = False
    """Whether its first source are the keys that someone asks for."""
    groupings: Mapping[str, Grouped] = field(default_factory=dict)
    """What stands behind its grouped atoms."""

    def select(self, columns: str, distinct: bool = False) -> str:
        parts = [f"SELECT {'DISTINCT ' if distinct else ''}{columns}"]
        if self.sources:
            parts.append("FROM " + " ".join(self.sources))
        conditions = sorted(self.conditions, key=lambda each: each.value.risk)
        if conditions:
            parts.append("WHERE " + " AND ".join(each.text for each in conditions))
        return " ".join(parts)

    def cross(self, source: str) -> None:
        self.sources.append(f"CROSS JOIN {source}" if self.sources else source)

    def join(self, kind: str, source: str, equal: Iterable[tuple[Sql, Sql]]) -> None:
        """Join on equations, or on nothing."""
        if not self.sources:
            self.sources.append("(SELECT true AS one) AS t0")
        on = " AND ".join(_same(left, right) for left, right in equal) or "true"
        self.sources.append(f"{kind} JOIN {source} ON {on}")

    def demand(self, value: Sql, links: bool = False) -> None:
        self.conditions.append(Condition(value, links))

    def staged(self, live: Collection[Variable], alias: str) -> tuple[str, Environment]:
        """The SELECT of the rows so far, and what is known of a row under a new name."""
        columns: list[str] = []
        known: Environment = {}
        for variable, value in self.environment.items():
            if variable not in live:
                continue
            if not value.sources and value.risk is Risk.NONE:
                known[variable] = value
                continue
            checked = value.checked()
            text = checked.text if checked.risk is Risk.NONE else after(checked.text)
            name = f"v{len(columns)}"
            columns.append(f"{text} AS {name}")
            column = Sql(f"{alias}.{name}", checked.type, sources=frozenset({alias}))
            known[variable] = column
        return self.select(", ".join(columns) or "true AS one"), known


def compare(operator: str, left: Sql, right: Sql) -> Sql:
    """Whether two values are the same, or not, is asked of NULL as well: see `Comparison`."""
    left, right = _comparable(left.checked(), right.type), _comparable(right.checked(), left.type)
    text = f"{left.text} {operator} {right.text}"
    if operator == "=":
        text = _same(left, right)
    elif operator == "!=" and (left.type.nullable or right.type.nullable):
        text = f"NOT ({left.text} <=> {right.text})"
    return Sql(
        text,
        BOOLEAN,
        risk=max(left.risk, right.risk),
        sources=left.sources | right.sources,
    )


def _same(left: Sql, right: Sql) -> str:
    both = left.type.nullable and right.type.nullable
    return f"{left.text} {'<=>' if both else '='} {right.text}"


def _comparable(value: Sql, other: object) -> Sql:
    """A truth value may be compared with 0 and 1."""
    if value.type == BOOLEAN and other == INTEGER:
        return replace(value, text=f"CAST({value.text} AS BIGINT)", type=INTEGER)
    return value
