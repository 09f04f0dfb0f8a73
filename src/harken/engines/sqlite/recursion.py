"""Relations as tables. Those that depend on each other are evaluated semi-naively: a rule reads, of
one of its relations, only the rows that it has not read before.

    until no rule has rows to read:
        of the rules that have, run those of the lowest layer, each over its new rows

A table keeps its rows in the order in which they came, so "new" is a range of its row numbers, and
a relation that grows again later is no matter. Layers say what must have come to rest before a rule
may look at what is not there: a rule with a negation or an aggregate is in a higher layer than what
that is about, while a rule that asks for more of it is in the same (`calculus.magic`).

Law: at the end the tables hold the least set closed under the clauses, whatever their shape (linear
or not, mutual or not).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harken.engines.sqlite import layout
from harken.engines.sqlite.compile import FROM_ROW, Compiler, Slots, last_row_of
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.driving import RECENT, SETTLED
from harken.engines.sqlite.expressions import quote
from harken.errors import EvaluationError
from harken.ir.clauses import Aggregation, Atom, Clause, Definition, Literal
from harken.ir.relations import Kind, Relation, Semantics
from harken.ir.strata import Stratum

ROUND_LIMIT = 100_000

Bind = Callable[[Sequence[tuple[int, Any]]], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Table:
    """The temporary table of a relation."""

    name: str
    columns: str
    identity: str
    """What tells two of its rows apart."""
    limit: int | None = None
    """With so many rows it is enough."""
    lookups: tuple[int, ...] = ()
    """The columns by which rules look rows up."""
    kept: bool = False
    """Does it belong to someone else, who keeps its rows?"""

    def create(self) -> list[str]:
        table = quote(self.name)
        return [
            f"CREATE TEMP TABLE {table} ({self.columns or 'c0'})",
            f"CREATE UNIQUE INDEX temp.{quote(f'{self.name} rows')} ON {table} ({self.identity})",
        ]

    def index(self) -> list[str]:
        return [
            f"CREATE INDEX IF NOT EXISTS temp.{quote(f'{self.name} by {column}')} "
            f"ON {quote(self.name)} (c{column})"
            for column in self.lookups
        ]

    @property
    def drop(self) -> str:
        return f"DROP TABLE IF EXISTS temp.{quote(self.name)}"

    @property
    def clear(self) -> str:
        return f"DELETE FROM temp.{quote(self.name)}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A clause as a statement that adds rows to the table number `target`. Of the table number
    `source` it reads the new rows; without one it is run once."""

    sql: str
    slots: tuple[tuple[int, Any], ...]
    target: int
    source: int | None
    layer: int = 0

    def values(self, bind: Bind, seen: int, rows: Sequence[int]) -> tuple[Any, ...]:
        """Row numbers go where the statement wants them, the caller's values everywhere else."""
        return tuple(
            bind(((index, type_),))[0]
            if index >= 0
            else seen
            if index == FROM_ROW.index
            else rows[last_row_of(index)]
            for index, type_ in self.slots
        )


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """The compiled evaluation of relations that depend on each other, or of a single one."""

    tables: tuple[Table, ...]
    rules: tuple[Rule, ...]
    names: tuple[str, ...]
    readers: tuple[tuple[int, ...], ...]
    """For each table the rules that read its new rows."""

    def run(self, connection: Connection, bind: Bind) -> None:
        self.create(connection)
        self.clear(connection)
        rows = [self._rows_before(connection, table) for table in self.tables]
        seen = [0 if rule.source is None else rows[rule.source] for rule in self.rules]
        waiting = {i for i, rule in enumerate(self.rules) if rule.source is None}
        for _ in range(ROUND_LIMIT):
            if not waiting or self._is_enough(rows):
                return
            lowest = min(self.rules[i].layer for i in waiting)
            before = tuple(rows)
            now = sorted(i for i in waiting if self.rules[i].layer == lowest)
            waiting.difference_update(now)
            for i in now:
                rule = self.rules[i]
                added = connection.change(rule.sql, rule.values(bind, seen[i], before))
                if rule.source is not None:
                    seen[i] = before[rule.source]
                if added:
                    rows[rule.target] += added
                    waiting.update(self.readers[rule.target])
        raise EvaluationError(
            f"{' and '.join(self.names)} did not settle after {ROUND_LIMIT} rounds",
            code="no-fixpoint",
            hint="a recursive function must not make new values for ever",
        )

    def _rows_before(self, connection: Connection, table: Table) -> int:
        """The number of the last row that is there, and is new to nobody."""
        if not table.kept:
            return 0
        return connection.value(f"SELECT max(rowid) FROM temp.{quote(table.name)}") or 0

    def _is_enough(self, rows: Sequence[int]) -> bool:
        return any(
            table.limit is not None and count >= table.limit
            for table, count in zip(self.tables, rows, strict=True)
        )

    def create(self, connection: Connection) -> None:
        """Make the tables if they are not there. They were made together: a rollback took all of
        them or none."""
        own = [table for table in self.tables if not table.kept]
        if not own or connection.value(EXISTS, (own[-1].name,)):
            return
        for table in own:
            for sql in (table.drop, *table.create(), *table.index()):
                connection.run(sql)

    def clear(self, connection: Connection) -> None:
        """Let go of the rows."""
        for table in self.tables:
            if not table.kept:
                connection.run(table.clear)

    def drop(self, connection: Connection) -> None:
        for table in self.tables:
            if not table.kept:
                connection.run(table.drop)

    def with_lookups(self, wanted: Mapping[str, Iterable[int]], connection: Connection) -> Fixpoint:
        """The same, with indexes on the columns by which its tables are looked up."""
        tables = tuple(
            replace(each, lookups=tuple(sorted(wanted.get(each.name, ())))) for each in self.tables
        )
        for table in tables:
            for sql in table.index() if not table.kept else ():
                connection.run(sql)
        return replace(self, tables=tables)


EXISTS = "SELECT EXISTS (SELECT 1 FROM temp.sqlite_schema WHERE name = ?)"


def compile_stratum(
    stratum: Stratum,
    compiler: Compiler,
    tables: dict[str, str],
    prefix: str,
    layers: Mapping[str, int],
    kept: Mapping[str, str],
) -> Fixpoint:
    """Compile relations that depend on each other; adds their tables to `tables` for others. Those
    that are `kept` have a table already."""
    made: list[Table] = []
    numbers: dict[str, int] = {}
    for number, definition in enumerate(stratum.definitions):
        relation = definition.relation
        name = kept.get(relation.id, f"{prefix} {number}")
        columns = layout.typed_columns(relation)
        identity = layout.identity(relation) if columns else "c0"
        is_kept = relation.id in kept
        made.append(Table(name, columns, identity, relation.limit, kept=is_kept))
        numbers[relation.id] = number
        for each in (relation, recent(relation), settled(relation)):
            tables[each.id] = name
            compiler.numbers[each.id] = number
    rules: list[Rule] = []
    for definition in stratum.definitions:
        name = definition.relation.id
        target, layer = numbers[name], layers.get(name, 0)
        for clause in definition.clauses:
            for source, variant in _variants(clause, stratum):
                sql, slots = _insert(compiler, variant, made[target])
                rules.append(Rule(sql, slots, target, numbers.get(source), layer))
    names = tuple(sorted(definition.relation.name for definition in stratum.definitions))
    readers = tuple(
        tuple(i for i, rule in enumerate(rules) if rule.source == number)
        for number in range(len(made))
    )
    return Fixpoint(tuple(made), tuple(rules), names, readers)


def recent(relation: Relation) -> Relation:
    """The rows of a relation that a rule has not read before."""
    return replace(relation, name=f"{RECENT}{relation.name}", kind=Kind.STORED)


def settled(relation: Relation) -> Relation:
    """The rows of a relation that were there when the round began."""
    return replace(relation, name=f"{SETTLED}{relation.name}", kind=Kind.STORED)


def _variants(clause: Clause, stratum: Stratum) -> list[tuple[str, Clause]]:
    """One clause for each atom over a relation that grows, with the new rows of that atom.

    Where it is asked what is not there, the other atoms are read as they were when the round began:
    of a row that came later it may not have been asked yet."""
    growing = stratum.names if stratum.recursive else ()
    asks = any(_asks_what_is_not(literal) for literal in clause.body)
    places = [
        i
        for i, each in enumerate(clause.body)
        if isinstance(each, Atom) and not each.negated and each.relation.id in growing
    ]
    variants = []
    for place in places:
        body = list(clause.body)
        for other in places if asks else (place,):
            atom = body[other]
            assert isinstance(atom, Atom)
            seen = recent if other == place else settled
            body[other] = replace(atom, relation=seen(atom.relation))
        source = clause.body[place]
        assert isinstance(source, Atom)
        variants.append((source.relation.id, Clause(clause.head, tuple(body))))
    return variants or [("", clause)]


def _asks_what_is_not(literal: Literal) -> bool:
    if isinstance(literal, Aggregation):
        return True
    return isinstance(literal, Atom) and literal.negated and literal.relation.kind is Kind.DERIVED


def _insert(
    compiler: Compiler, clause: Clause, table: Table
) -> tuple[str, tuple[tuple[int, Any], ...]]:
    """The table lets no row in twice, so the SELECT need not."""
    compiler.slots = Slots()
    relation = replace(clause.head.relation, semantics=Semantics.BAG, key=None)
    head = replace(clause.head, relation=relation)
    select = compiler.definition(Definition(relation, (Clause(head, clause.body),)))
    sql = f"INSERT OR IGNORE INTO temp.{quote(table.name)} {select}"
    return sql, compiler.slots.bound_in(sql)
