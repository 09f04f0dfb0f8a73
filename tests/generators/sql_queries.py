"""Random queries of SQL: joins of every kind, subqueries, grouping, windows, set operations, WITH,
the first rows in an order.

`LEFT SEMI JOIN` and `LEFT ANTI JOIN` are Spark's words; `duckdb_text` writes them as DuckDB does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.generators.sql_expressions import COMPARISONS, TYPES, Column, Columns, Expressions
from tests.generators.sql_windows import Windows

JOINS = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
FILTERS = ("LEFT SEMI JOIN", "LEFT ANTI JOIN")
BITS = ("bit_and", "bit_or", "bit_xor")
SETS = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


@dataclass(frozen=True, slots=True)
class Named:
    """A table, view or common table expression."""

    name: str
    columns: tuple[tuple[str, str], ...]
    """Names and types."""
    key: str | None = None
    size: int = 1
    """How many tables it reads."""


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    columns: tuple[tuple[str, str], ...]
    size: int


@dataclass(slots=True)
class From:
    text: str
    columns: list[Column]
    stars: list[Named]


def duckdb_text(text: str) -> str:
    for word in ("SEMI", "ANTI"):
        text = text.replace(f"LEFT {word} JOIN", f"{word} JOIN")
    return text


class Queries(Windows):
    def __init__(self, random: Random, known: Sequence[Named]) -> None:
        super().__init__(random)
        self.known = list(known)
        self._budget = 0

    def view(self, depth: int) -> Query:
        """A query that reads few tables: products of many are large."""
        allowed = self._budget = 4
        text, columns = self._query(depth, (), None)
        return Query(text, columns, allowed - self._budget)

    # --- queries ---------------------------------------------------------------------------

    def _query(
        self, depth: int, outer: Columns, types: Sequence[str] | None
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        match self.below(12) if depth > 0 else 0:
            case 8:
                return self._set_operation(depth - 1, outer, types)
            case 9 if not outer:
                return self._with(depth - 1, types)
            case 10 if self._budget > 2:
                return self._first(depth - 1, outer, types)
            case 11 if self._budget > 2:
                return self._windowed(depth - 1, outer, types)
        if self.below(5) < 2:
            return self._grouped(depth, outer, types)
        return self._plain(depth, outer, types)

    def _set_operation(
        self, depth: int, outer: Columns, types: Sequence[str] | None
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        if types is None:
            types = [self.choose(TYPES) for _ in range(1 + self.below(3))]
        one, columns = self._query(depth, outer, types)
        other, _ = self._query(depth, outer, types)
        return f"({one}) {self.choose(SETS)} ({other})", columns

    def _with(
        self, depth: int, types: Sequence[str] | None
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        kept, defined = list(self.known), []
        for _ in range(1 + self.below(2)):
            before = self._budget
            text, columns = self._query(depth, (), None)
            name = self.fresh("w")
            self.known += [Named(name, columns, size=before - self._budget)] * 3
            defined.append(f"{name} AS ({text})")
        text, columns = self._query(depth, (), types)
        self.known = kept
        if text.startswith("WITH"):
            text = f"({text})"
        return f"WITH {', '.join(defined)} {text}", columns

    def _first(
        self, depth: int, outer: Columns, types: Sequence[str] | None
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        """The first rows, in an order by all columns."""
        self._budget -= 1
        text, columns = self._query(depth, outer, types)
        if "LIMIT" in text or text.startswith("WITH"):
            text = f"SELECT * FROM ({text}) AS {self.fresh('q')}"
        text += f" ORDER BY {self.ordered([name for name, _ in columns])}"
        offset = f" OFFSET {self.below(3)}" if self.one_in(3) else ""
        return f"{text} LIMIT {1 + self.below(4)}{offset}", columns

    def _windowed(
        self, depth: int, outer: Columns, types: Sequence[str] | None
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        self._budget -= 1
        source = self._from(depth, outer)
        rest = source.text + self._where(depth, [*source.columns, *outer])
        shown = [self.choose(source.columns) for _ in range(1 + self.below(3))]
        once = self.one_in(4)  # then rows may be placed in two orders
        if once:
            alias = self.fresh("q")
            items = ", ".join(f"{each.text} AS c{i}" for i, each in enumerate(shown))
            rest = f"(SELECT DISTINCT {items} FROM {rest}) AS {alias}"
            shown = _columns(alias, [(f"c{i}", each.type) for i, each in enumerate(shown)])
        over = self.over(shown)
        made = [self.window(shown, over) for _ in range(1 + self.below(2))]
        if once:
            made.append(self.window(shown, self.over(shown)))
        values = [*shown, *made]
        counted = [each.text for each in made if each.type == "bigint"]
        if counted and self.one_in(4):
            rest += (
                f" QUALIFY {self.choose(counted)} {self.choose(COMPARISONS)} {1 + self.below(3)}"
            )
        if types is None:
            names = [f"c{i}" for i in range(len(values))]
            items = ", ".join(f"{v.text} AS {n}" for v, n in zip(values, names, strict=True))
            given = [each.type for each in values]
            return f"SELECT {items} FROM {rest}", tuple(zip(names, given, strict=True))
        return self._select("", types, values, rest, 1)

    def _plain(
        self, depth: int, outer: Columns, types: Sequence[str] | None
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        source = self._from(depth, outer)
        where = self._where(depth, [*source.columns, *outer])
        if types is None and source.stars and self.one_in(6):
            return f"SELECT * FROM {source.text}{where}", source.stars[0].columns
        if types is None:
            types = [self._some_type(source.columns) for _ in range(1 + self.below(4))]
        distinct = "DISTINCT " * self.one_in(5)
        return self._select(distinct, types, [*source.columns, *outer], source.text + where, depth)

    def _select(
        self,
        distinct: str,
        types: Sequence[str],
        columns: Columns,
        rest: str,
        depth: int,
        first: str | None = None,
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        values = [self.value(type_, columns, min(depth, 2)) for type_ in types]
        if first is not None:
            values[0] = first
        names = [f"c{i}" for i in range(len(types))]
        items = ", ".join(f"{v} AS {n}" for v, n in zip(values, names, strict=True))
        return f"SELECT {distinct}{items} FROM {rest}", tuple(zip(names, types, strict=True))

    def _some_type(self, columns: Columns) -> str:
        if columns and self.below(4):
            return self.choose(columns).type
        return self.choose((*TYPES, "ratio"))

    def _where(self, depth: int, columns: Columns) -> str:
        return f" WHERE {self.condition(columns, min(depth, 2) + 1)}" if self.below(2) else ""

    def _grouped(
        self, depth: int, outer: Columns, types: Sequence[str] | None
    ) -> tuple[str, tuple[tuple[str, str], ...]]:
        source = self._from(depth, outer)
        rest = source.text + self._where(depth, [*source.columns, *outer])
        keys: list[Column] = []
        for _ in range(self.choose((0, 1, 1, 1, 2))):
            key = self.choose(source.columns)
            if self.one_in(5):
                type_ = self._some_type(source.columns)
                text = self.value(type_, source.columns, 1)
                key = Column(text, type_) if any(c.text in text for c in source.columns) else key
            keys.append(key)
        sets = bool(keys) and self.one_in(5)
        if sets:
            keys = list(dict.fromkeys(self.choose(source.columns) for _ in keys))
            rest += f" GROUP BY {self._sets([key.text for key in keys])}"
        elif keys:
            rest += f" GROUP BY {', '.join(key.text for key in keys)}"
        made = [self._aggregate(source.columns) for _ in range(1 + self.below(3))]
        above = [*keys, *made, *outer]
        if sets:  # of no rows Spark has no total, and DuckDB has one
            rest += " HAVING count(*) > 0"
        elif self.one_in(3):
            rest += f" HAVING {self.condition(above, 1)}"
        if types is None:
            types = [self._some_type(above) for _ in range(len(keys) + len(made))]
        first = None if keys else self._aggregate(source.columns, types[0]).text
        return self._select("DISTINCT " * self.one_in(8), types, above, rest, 1, first)

    def _sets(self, keys: Sequence[str]) -> str:
        """What ROLLUP, CUBE and GROUPING SETS group by. Each key is in one of the sets, or it could
        not be selected."""
        listed = ", ".join(keys)
        sets = [[key for key in keys if self.below(2)] for _ in range(1 + self.below(3))]
        left = [key for key in keys if not any(key in one for one in sets)]
        if left:
            sets.append(left)
        written = ", ".join(f"({', '.join(one)})" for one in sets)
        return self.choose((f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS ({written})"))

    def _aggregate(self, columns: Columns, type_: str | None = None) -> Column:
        kinds = {
            "bigint": ("count(*)", "count", "count", "sum", "sum", "min", "max", self.choose(BITS)),
            "double": ("sum", "min", "max"),
            "ratio": ("avg", "avg", "median"),
            "boolean": ("bool_and", "bool_or", "min"),
            "string": ("min", "max", "string_agg"),
            "date": ("min", "max"),
            "decimal": ("sum", "min", "max"),
        }
        if type_ is None:
            type_ = self.choose(("bigint", "bigint", *kinds))
        kind = self.choose(kinds[type_])
        kept = ""
        if self.one_in(8):
            kept = f" FILTER (WHERE {Expressions(self.random).condition(columns, 0)})"
        if kind == "count(*)":
            return Column(f"{kind}{kept}", type_)
        given = type_
        if kind == "count":
            given = self._some_type(columns)
        elif kind in ("avg", "median"):
            given = self.choose(("bigint", "double"))
        elif kind == "sum":
            given = type_
        distinct = "DISTINCT " if self.one_in(4) else ""
        value = self._own_value(given, columns)
        if kind == "string_agg":
            rest = f"'-' ORDER BY {'' if distinct else self._own_order(columns)}{value}"
            return Column(f"string_agg({distinct}{value}, {rest}){kept}", type_)
        return Column(f"{kind}({distinct}{value}){kept}", type_)

    def _own_order(self, columns: Columns) -> str:
        if not columns or self.below(2):
            return ""
        return f"{self.choose(columns).text} {self.choose(('DESC', 'ASC NULLS LAST'))}, "

    def _own_value(self, type_: str, columns: Columns) -> str:
        """A value without subqueries."""
        return Expressions(self.random).value(type_, columns, 1)

    # --- FROM ------------------------------------------------------------------------------

    def _from(self, depth: int, outer: Columns) -> From:
        text, columns, named = self._item(depth, outer)
        found = From(text, columns, [named] if named else [])
        while self._budget > 0 and self.below(5) < 2:
            self._join(found, depth, outer)
            found.stars = []
        return found

    def _item(self, depth: int, outer: Columns) -> tuple[str, list[Column], Named | None]:
        alias = self.fresh("q")
        if depth > 0 and self.below(3) == 0:
            correlated = outer if self.one_in(8) else ()
            text, columns = self._query(depth - 1, correlated, None)
            named = Named("", columns)
            return f"({text}) AS {alias}", _columns(alias, columns), named
        fitting = [each for each in self.known if each.size <= max(self._budget, 1)]
        named = self.choose(fitting)
        self._budget -= named.size
        return f"{named.name} AS {alias}", _columns(alias, named.columns), named

    def _lateral(self, found: From) -> None:
        """A query that may mention what it is joined to."""
        around = [each for each in found.columns if each.alias is not None]
        make = self._grouped if self.below(2) else self._plain
        text, columns = make(0, around, None)
        alias = self.fresh("q")
        left = self.below(2)
        kind, on = ("LEFT JOIN", " ON true") if left else ("CROSS JOIN", "")
        found.text += f" {kind} LATERAL ({text}) AS {alias}{on}"
        new = _columns(alias, columns)
        found.columns = _clear_of(new, found.columns) + new

    def _join(self, found: From, depth: int, outer: Columns) -> None:
        if self.one_in(12):
            self._lateral(found)
            return
        text, columns, named = self._item(depth - 1, outer)
        known = _clear_of(columns, found.columns)
        if self.one_in(12):
            found.text += f" CROSS JOIN {text}"
        else:
            kind = self.choose(FILTERS if self.one_in(4) else JOINS)
            common = [
                name
                for name, type_ in (named.columns if named else ())
                if len([c for c in found.columns if c.text.endswith(f".{name}")]) == 1
                and any(c.text.endswith(f".{name}") and c.type == type_ for c in found.columns)
            ]
            names = {each.text for each in found.columns}
            merged = bool(common) and not names & set(common) and self.one_in(3)
            if merged:
                using = common[: 1 + self.below(2)]
                found.text += f" {kind} {text} USING ({', '.join(using)})"
                if kind not in FILTERS:
                    types = dict(named.columns if named else ())
                    merged_columns = [Column(name, types[name]) for name in using]
                    found.columns = known + columns + merged_columns
                return
            found.text += f" {kind} {text} ON {self._on(known, columns)}"
            if kind in FILTERS:
                return
        found.columns = known + columns

    def _on(self, left: Columns, right: Columns) -> str:
        pairs = [(one, other) for one in left for other in right if one.type == other.type]
        plain = Expressions(self.random)
        if not pairs or self.one_in(8):
            return plain.condition([*left, *right], 1)
        one, other = self.choose(pairs)
        sign = "=" if self.below(6) else self.choose(("<", ">=", "<>", "IS NOT DISTINCT FROM"))
        text = f"{one.text} {sign} {other.text}"
        if self.one_in(3):
            word = self.choose(("AND", "AND", "OR"))
            text += f" {word} {plain.condition([*left, *right], 1)}"
        return text

    # --- subqueries in expressions ---------------------------------------------------------

    def scalar_query(self, type_: str, columns: Columns, depth: int) -> str | None:
        columns = [each for each in columns if each.alias is not None]
        if self._budget <= 0:
            return None
        keyed = [
            (table, name)
            for table in self.known
            if table.key is not None
            for name, given in table.columns
            if given == type_
        ]
        keys = [each for each in columns if each.type == "bigint"]
        if keyed and keys and self.below(2):
            table, name = self.choose(keyed)
            self._budget -= 1
            alias = self.fresh("q")
            key = self.choose(keys).text
            text = f"SELECT {alias}.{name} FROM {table.name} AS {alias}"
            return f"({text} WHERE {alias}.{table.key} = {key})"
        source = self._from(depth - 1, columns)
        where = ""
        if self.below(3):
            where = f" WHERE {self.condition([*source.columns, *columns], 1)}"
        aggregate = self._aggregate(source.columns, type_)
        return f"(SELECT {aggregate.text} FROM {source.text}{where})"

    def query_condition(self, columns: Columns, depth: int) -> str | None:
        columns = [each for each in columns if each.alias is not None]
        if self._budget <= 0:
            return None
        if self.below(2):
            text, _ = self._query(depth, columns, None)
            return f"{self.choose(('', 'NOT '))}EXISTS ({text})"
        type_ = self._some_type(columns)
        text, _ = self._query(depth, columns, [type_])
        value = self.value(type_, columns, 0)
        if self.one_in(3):
            sign, word = self.choose(COMPARISONS), self.choose(("ANY", "ALL"))
            return f"{value} {sign} {word} ({text})"
        return f"{value} {self.choose(('', 'NOT '))}IN ({text})"


def _clear_of(new: Columns, columns: Columns) -> list[Column]:
    """Columns that can be mentioned beside those of a new item: a name without a table, as USING
    leaves it, is ambiguous if the new item has it as well."""
    names = {each.text.partition(".")[2] for each in new}
    return [each for each in columns if each.text not in names]


def _columns(alias: str, columns: Sequence[tuple[str, str]]) -> list[Column]:
    return [Column(f"{alias}.{name}", type_, alias) for name, type_ in columns]
