"""A SELECT under construction: its sources, and when each of its conditions may run.

SQLite takes sub-queries apart and evaluates conditions in any order.

Law: a condition or column that can fail is evaluated only for rows that every source has and
that pass all less risky conditions.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from harken.engines.sqlite.sql_expressions import Risk, Sql

MOST_IN_A_ROW = 100
"""Conditions that are joined without parentheses."""


class Apart(enum.Enum):
    """When SQLite may merge a SELECT in FROM into the surrounding one."""

    NEVER = enum.auto()
    IF_NOTHING_FAILS = enum.auto()
    """It may hold conditions without which an outer expression fails."""
    ALWAYS = enum.auto()
    """An old state: evaluated on its own it would be a whole table."""


@dataclass(frozen=True, slots=True)
class FromItem:
    """What a SELECT reads: a table, or the rows of another SELECT."""

    rows: str
    alias: str
    apart: Apart | None = None
    """May SQLite merge the SELECT into the surrounding one? None for a table."""

    def text(self, risky: bool) -> str:
        """SQLite moves conditions into a SELECT in FROM, before its own, and computes its
        columns outside it. A LIMIT prevents that."""
        if self.apart is None:
            return f"{self.rows} AS {self.alias}"
        whole = self.apart is Apart.NEVER or (risky and self.apart is Apart.IF_NOTHING_FAILS)
        return f"({self.rows}{' LIMIT -1' if whole else ''}) AS {self.alias}"


@dataclass(slots=True)
class Select:
    """A SELECT under construction: what joins its sources, and what tests their rows.

    A condition that can fail runs only where the less risky ones hold. One that merely might
    overflow does not wait for the joins, so that they stay free to use it early.
    """

    sources: list[FromItem] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    """A column of each source, used to say that a row of it has been found."""
    joins: list[Sql] = field(default_factory=list)
    tests: list[Sql] = field(default_factory=list)
    late: list[Sql] = field(default_factory=list)
    """Costly tests, usually of the old state: they run where the cheap ones hold."""
    lenient: bool = False
    """Does a row pass where a number overflows, instead of raising an error?"""
    driven: bool = False
    """Are the sources joined in their given order?"""

    def text(self, columns: str, distinct: bool = False) -> str:
        parts = [f"SELECT {'DISTINCT ' if distinct else ''}{columns}"]
        if self.sources:
            sources = (each.text(self.risk >= Risk.PRESENCE) for each in self.sources)
            parts.append("FROM " + (" CROSS JOIN " if self.driven else ", ").join(sources))
        where = self.conditions()
        if where:
            parts.append(f"WHERE {conjunction(where)}")
        return " ".join(parts)

    def conditions(self) -> list[str]:
        conditions = [*self.joins, *self.tests]
        if self.lenient:
            conditions = [each.or_passed() for each in conditions]
        safe, growing, present, failing = (
            [each.text for each in conditions if each.risk is risk] for risk in Risk
        )
        tests = [each.text for each in self.tests if each.risk is Risk.NONE]
        waiting = [
            self._looked_up(each.equation, tests) or _guarded(tests, [each.text])[0]
            for each in conditions
            if each.risk is Risk.OVERFLOW
        ]
        # These always hold. They make a condition wait until every source has a row.
        found = [f"{column} IS {column}" for column in self.columns]
        before = [*safe, *growing]
        cheap = [each.text for each in self.tests if each.risk is Risk.NONE and not each.asks]
        late = [each.text for each in self.late if each.risk is Risk.NONE]
        risky = [each.text for each in self.late if each.risk is not Risk.NONE]
        return [
            *safe,
            *waiting,
            *_guarded(before + found, present),
            *_guarded(cheap + found, late),
            *_guarded(before + found + present + late, failing),
            *_guarded(cheap + found + late, risky),
        ]

    def _looked_up(self, equation: tuple[str, str, str] | None, tests: list[str]) -> str | None:
        """An equation between a column and a computed value in which the value alone waits for the
        tests, so that an index finds the column. Tests of the column's own row come after it.
        None where that is not possible."""
        aliases = {column.partition(".")[0] for column in self.columns}
        left, operator, right = equation or ("", "", "")
        for column, value in ((left, right), (right, left)):
            found = _COLUMN.fullmatch(column)
            if found is None or found[1] not in aliases or _mentions(value, found[1]):
                continue
            own = [each for each in tests if _mentions(each, found[1])]
            if any(_mentions(each, other) for each in own for other in aliases - {found[1]}):
                continue
            guards = [each for each in tests if each not in own]
            waiting = f"CASE WHEN {conjunction(guards)} THEN {value} END" if guards else value
            return f"{column} {operator} {waiting}"
        return None

    def guarded(self, value: Sql) -> str:
        """A column computed only for rows that pass, wherever SQLite computes it: SQLite moves a
        condition on a subquery's column into the subquery, before the subquery's own."""
        where = self.conditions()
        if value.risk is Risk.NONE or (not where and not self.sources):
            return value.text
        found = [f"{column} IS {column}" for column in self.columns]
        return f"CASE WHEN {conjunction([*where, *found])} THEN {value.text} END"

    @property
    def risk(self) -> Risk:
        conditions = (*self.joins, *self.tests, *self.late)
        return max((each.risk for each in conditions), default=Risk.NONE)


_COLUMN = re.compile(r"(t\d+)\.c\d+")


def _mentions(text: str, alias: str) -> bool:
    return f"{alias}." in text


def _guarded(guards: list[str], conditions: list[str]) -> list[str]:
    if not guards:
        return conditions
    guard = conjunction(guards)
    return [f"CASE WHEN {guard} THEN {text} ELSE 0 END" for text in conditions]


def conjunction(conditions: Sequence[str]) -> str:
    """All conditions, in a tree of little depth: SQLite takes no expression more than 1,000 deep.

    >>> conjunction(["a", "b"])
    'a AND b'
    """
    if len(conditions) <= MOST_IN_A_ROW:
        return " AND ".join(conditions)
    parts = range(0, len(conditions), MOST_IN_A_ROW)
    return conjunction([f"({' AND '.join(conditions[i : i + MOST_IN_A_ROW])})" for i in parts])
