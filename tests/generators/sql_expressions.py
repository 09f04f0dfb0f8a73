"""Random expressions and conditions of SQL that mean the same in Spark (ANSI) and in DuckDB.

Numbers are small and no divisor is 0, so nothing overflows. A `double` is a multiple of 1/4: sums
are exact in any order. A `ratio` is a double that need not be one: it is compared and counted, and
never added. A decimal is never divided, and no average of it is taken: DuckDB makes doubles of
those. It always has two digits behind the point: DuckDB loses some where it has not. Date, text and
boolean are what they are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.generators.choices import Choices

TYPES = ("bigint", "bigint", "bigint", "double", "decimal", "string", "boolean", "date")
POOLS: dict[str, tuple[str, ...]] = {
    "bigint": ("0", "1", "2", "3", "-1"),
    "double": ("0.0e0", "0.5e0", "1.0e0", "-1.25e0", "2.0e0"),
    "decimal": ("0.00", "0.50", "1.00", "-1.25", "2.25"),
    "string": ("'a'", "'b'", "'ab'", "''", "'B'", "'é'"),
    "boolean": ("true", "false"),
    "date": ("DATE '2024-02-28'", "DATE '2024-02-29'", "DATE '2023-12-31'"),
}
POOLS["ratio"] = POOLS["double"]
NAMES = {"ratio": "DOUBLE", "decimal": "DECIMAL(18,2)"}
COMPARISONS = ("=", "=", "=", "<>", "<", "<=", ">", ">=")
PATTERNS = ("'a%'", "'%b'", "'_'", "'%'", "''", "'A%'")


@dataclass(frozen=True, slots=True)
class Column:
    """What an expression can be made of: a column, or an aggregate or key of a grouped query."""

    text: str
    type: str
    alias: str | None = None
    """The item of FROM that it is a column of."""


Columns = Sequence[Column]


def type_name(type_: str) -> str:
    return NAMES.get(type_, type_.upper())


class Expressions(Choices):
    def literal(self, type_: str) -> str:
        if self.one_in(8):
            return f"CAST(NULL AS {type_name(type_)})"
        return self.choose(POOLS[type_])

    def of_type(self, type_: str, columns: Columns) -> list[Column]:
        also = {"ratio": ("ratio", "double", "bigint"), "double": ("double",)}
        return [each for each in columns if each.type in also.get(type_, (type_,))]

    def value(self, type_: str, columns: Columns, depth: int) -> str:
        fitting = self.of_type(type_, columns)
        if depth <= 0 or self.below(5) < 3:
            if fitting and self.below(8):
                return self.choose(fitting).text
            if type_ in ("double", "decimal") and self.one_in(6):
                return self.value("bigint", columns, 0)
            return self.literal(type_)
        if self.one_in(6):
            query = self.scalar_query(type_, columns, depth - 1)
            if query is not None:
                return query
        if self.one_in(4):
            return self._choice(type_, columns, depth - 1)
        return getattr(self, f"_{type_}")(type_, columns, depth - 1)

    def scalar_query(self, type_: str, columns: Columns, depth: int) -> str | None:
        """A subquery that is a value, where there are queries."""
        return None

    def _choice(self, type_: str, columns: Columns, depth: int) -> str:
        one = self.value(type_, columns, depth)
        other = self.value(type_, columns, depth)
        match self.below(5):
            case 0:
                return f"COALESCE({one}, {other})"
            case 1:
                return f"NULLIF({one}, {other})"
            case 2:
                return f"CASE WHEN {self.condition(columns, depth)} THEN {one} ELSE {other} END"
            case 3:
                return f"CASE WHEN {self.condition(columns, depth)} THEN {one} END"
        tested = self.choose(("bigint", "string", "boolean"))
        given = self.value(tested, columns, depth)
        first, second = self.value(tested, columns, 0), self.value(tested, columns, 0)
        last = self.value(type_, columns, 0)
        return f"CASE {given} WHEN {first} THEN {one} WHEN {second} THEN {other} ELSE {last} END"

    def _bigint(self, type_: str, columns: Columns, depth: int) -> str:
        one = self.value("bigint", columns, depth)
        match self.below(8):
            case 0:
                return f"({one} + {self.value('bigint', columns, depth)})"
            case 1:
                return f"({one} - {self.value('bigint', columns, depth)})"
            case 2:
                return f"({one} * {self.choose(('2', '-1', '3'))})"
            case 6:
                return f"CAST(floor({self.value('double', columns, depth)}) AS BIGINT)"
            case 7:
                return f"instr({self.value('string', columns, depth)}, 'b')"
            case 3:
                return f"length({self.value('string', columns, depth)})"
            case 4:
                return f"({one} % {self.choose(('2', '3'))})"
        return f"year({self.value('date', columns, depth)})"

    def _double(self, type_: str, columns: Columns, depth: int) -> str:
        one = self.value("double", columns, depth)
        match self.below(5):
            case 0:
                return f"({one} + {self.value('double', columns, depth)})"
            case 1:
                return f"({one} - {self.value('bigint', columns, depth)})"
            case 2:
                return f"({one} * {self.choose(('2', '-1', '0.5e0'))})"
            case 3:
                return f"({one} % {self.choose(('2', '-1.25e0'))})"
        return f"CAST({self.value('bigint', columns, depth)} AS DOUBLE)"

    def _decimal(self, type_: str, columns: Columns, depth: int) -> str:
        one = self.value("decimal", columns, depth)
        match self.below(6):
            case 0:
                return f"({one} + {self.value('decimal', columns, depth)})"
            case 1:
                return f"({one} - {self.value('bigint', columns, depth)})"
            case 2:
                return f"CAST({one} * {self.choose(('2', '-1', '0.5'))} AS DECIMAL(18, 2))"
            case 3:
                return f"abs({one})"
            case 4:
                return f"CAST(CAST({one} AS DECIMAL(17, 1)) AS DECIMAL(18, 2))"
        return f"CAST({self.value('bigint', columns, depth)} AS DECIMAL(18, 2))"

    def _ratio(self, type_: str, columns: Columns, depth: int) -> str:
        one = self.value(self.choose(("bigint", "double")), columns, depth)
        if self.one_in(6):
            return f"CAST({self.value('decimal', columns, depth)} AS DOUBLE)"
        if self.below(2):
            return f"({one} / {self.choose(('2', '3', '0.5e0'))})"
        return f"({one} / NULLIF({self.value('bigint', columns, depth)}, 0))"

    def _string(self, type_: str, columns: Columns, depth: int) -> str:
        one = self.value("string", columns, depth)
        match self.below(5):
            case 0:
                return f"({one} || {self.value('string', columns, depth)})"
            case 1:
                return f"upper({one})"
            case 2:
                return f"left({one}, abs({self.value('bigint', columns, depth)}))"
            case 3:
                old, new = self.value("string", columns, 0), self.value("string", columns, depth)
                return f"replace({one}, {old}, {new})"
        return f"lower({one})"

    def _boolean(self, type_: str, columns: Columns, depth: int) -> str:
        return f"({self.condition(columns, depth)})"

    def _date(self, type_: str, columns: Columns, depth: int) -> str:
        return f"({self.value('date', columns, depth)} {self.choose('+-')} {1 + self.below(2)})"

    # --- conditions ------------------------------------------------------------------------

    def condition(self, columns: Columns, depth: int) -> str:
        if depth > 0 and self.below(3) == 0:
            return self._connected(columns, depth - 1)
        if depth > 0 and self.one_in(4):
            query = self.query_condition(columns, depth - 1)
            if query is not None:
                return query
        return self._simple(columns, depth)

    def query_condition(self, columns: Columns, depth: int) -> str | None:
        """EXISTS or IN, where there are queries."""
        return None

    def _connected(self, columns: Columns, depth: int) -> str:
        one = self.condition(columns, depth)
        match self.below(4):
            case 0 | 1:
                word = self.choose(("AND", "OR"))
                return f"({one} {word} {self.condition(columns, depth)})"
            case 2:
                return f"NOT ({one})"
        return f"({one}) IS {self.choose(('NULL', 'NOT NULL', 'TRUE', 'NOT TRUE', 'FALSE'))}"

    def _simple(self, columns: Columns, depth: int) -> str:
        type_ = self.choose(columns).type if columns else self.choose(TYPES)
        one = self.value(type_, columns, depth - 1)
        match self.below(12):
            case 0 | 1 | 2 | 3 | 4:
                return f"{one} {self.choose(COMPARISONS)} {self.value(type_, columns, depth - 1)}"
            case 5 | 6:
                return f"{one} IS {self.choose(('NULL', 'NOT NULL'))}"
            case 7:
                low, high = self.value(type_, columns, 0), self.value(type_, columns, 0)
                return f"{one} {self.choose(('', 'NOT '))}BETWEEN {low} AND {high}"
            case 8:
                listed = [self.value(type_, columns, 0) for _ in range(1 + self.below(5))]
                listed += ["NULL"] * self.one_in(3)
                return f"{one} {self.choose(('', 'NOT '))}IN ({', '.join(listed)})"
            case 9:
                text = self.value("string", columns, depth - 1)
                return f"{text} {self.choose(('', 'NOT '))}LIKE {self.choose(PATTERNS)}"
            case 10:
                words = self.choose(("IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
                return f"{one} {words} {self.value(type_, columns, depth - 1)}"
        return self.value("boolean", columns, 0)
