"""Relations as tables. Recursive ones are evaluated semi-naively: each round joins only what the
last one found.

    full ← the clauses without recursion;  delta ← full
    until delta is empty:  new ← the recursive clauses with one recursive atom over delta
                           delta ← new − full;  full ← full ∪ delta

Law: at the end `full` is the least set closed under the clauses, whatever their shape (linear or
not, mutual or not).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harken.engines.sqlite import layout
from harken.engines.sqlite.compile import Compiler, Slots
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.driving import RECENT
from harken.engines.sqlite.expressions import quote
from harken.errors import EvaluationError
from harken.ir.clauses import Atom, Clause, Definition
from harken.ir.relations import Kind, Relation
from harken.ir.strata import Stratum

ROUND_LIMIT = 100_000

Bind = Callable[[Sequence[tuple[int, Any]]], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Statement:
    sql: str
    slots: tuple[tuple[int, Any], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The three temporary tables of a recursive relation, or the one of another."""

    full: str
    delta: str
    new: str
    arity: int
    columns: str
    limit: int | None = None
    """With so many rows it is enough."""
    recursive: bool = True
    lookups: tuple[int, ...] = ()
    """The columns by which rounds look rows up in `full`."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.full, self.delta, self.new) if self.recursive else (self.full,)

    def create(self) -> list[str]:
        key = ", ".join(f"c{i}" for i in range(max(1, self.arity)))
        tables = [
            f"CREATE TEMP TABLE IF NOT EXISTS {quote(name)} "
            f"({self.columns or 'c0'}, PRIMARY KEY ({key})) WITHOUT ROWID"
            for name in self.names
        ]
        indexes = [
            f"CREATE INDEX IF NOT EXISTS temp.{quote(f'{self.full} by {column}')} "
            f"ON {quote(self.full)} (c{column})"
            for column in self.lookups
        ]
        return tables + indexes

    def drop(self) -> list[str]:
        return [f"DROP TABLE IF EXISTS temp.{quote(name)}" for name in self.names]

    def clear(self) -> list[str]:
        return [f"DELETE FROM temp.{quote(name)}" for name in self.names]

    def is_full(self, connection: Connection) -> bool:
        if self.limit is None:
            return False
        rows = connection.value(f"SELECT count(*) FROM temp.{quote(self.full)}")
        return int(rows) >= self.limit

    def advance(self) -> list[str]:
        """Make what is new the next delta."""
        full, delta, new = quote(self.full), quote(self.delta), quote(self.new)
        same = " AND ".join(f"f.c{i} = n.c{i}" for i in range(max(1, self.arity)))
        known = f"SELECT 1 FROM temp.{full} AS f WHERE {same}"
        return [
            f"DELETE FROM temp.{delta}",
            f"INSERT INTO temp.{delta} SELECT * FROM temp.{new} AS n WHERE NOT EXISTS ({known})",
            f"INSERT INTO temp.{full} SELECT * FROM temp.{delta}",
            f"DELETE FROM temp.{new}",
        ]


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """The compiled evaluation of one recursive stratum."""

    tables: tuple[Table, ...]
    start: tuple[Statement, ...]
    step: tuple[Statement, ...]
    names: tuple[str, ...]

    def run(self, connection: Connection, bind: Bind) -> None:
        self.create(connection)
        self.clear(connection)
        statements = self.start
        if not self.step:
            for statement in statements:
                connection.run(statement.sql, bind(statement.slots))
            return
        for _ in range(ROUND_LIMIT):
            for statement in statements:
                connection.run(statement.sql, bind(statement.slots))
            if not self._advance(connection):
                return
            statements = self.step
        raise EvaluationError(
            f"{' and '.join(self.names)} did not settle after {ROUND_LIMIT} rounds",
            code="no-fixpoint",
            hint="a recursive function must not make new values for ever",
        )

    def create(self, connection: Connection) -> None:
        for table in self.tables:
            for sql in table.create():
                connection.run(sql)

    def clear(self, connection: Connection) -> None:
        """Let go of the rows."""
        for table in self.tables:
            for sql in table.clear():
                connection.run(sql)

    def with_lookups(self, wanted: Mapping[str, Iterable[int]]) -> Fixpoint:
        """The same, with indexes on the columns by which its tables are looked up."""
        tables = (
            replace(each, lookups=tuple(sorted(wanted.get(each.full, ())))) for each in self.tables
        )
        return replace(self, tables=tuple(tables))

    def _advance(self, connection: Connection) -> bool:
        for table in self.tables:
            for sql in table.advance():
                connection.run(sql)
        if any(table.is_full(connection) for table in self.tables):
            return False
        return any(
            connection.value(f"SELECT EXISTS (SELECT 1 FROM temp.{quote(table.delta)})")
            for table in self.tables
        )


def compile_stratum(
    stratum: Stratum, compiler: Compiler, tables: dict[str, str], prefix: str
) -> Fixpoint:
    """Compile a stratum; adds its full tables to `tables` for those above it. One that is not
    recursive has no rounds: its rows go where they are to be at once."""
    made: dict[str, Table] = {}
    for number, definition in enumerate(stratum.definitions):
        name = f"{prefix} {number}"
        relation = definition.relation
        made[relation.id] = Table(
            f"{name} full",
            f"{name} delta",
            f"{name} new",
            relation.arity,
            layout.typed_columns(relation),
            relation.limit,
            stratum.recursive,
        )
        tables[definition.relation.id] = f"{name} full"
        tables[_delta(definition.relation).id] = f"{name} delta"
    start: list[Statement] = []
    step: list[Statement] = []
    for definition in stratum.definitions:
        table = made[definition.relation.id]
        target = table.new if stratum.recursive else table.full
        for clause in definition.clauses:
            rounds = _delta_clauses(clause, stratum.names)
            if rounds:
                step += [_insert(compiler, variant, target) for variant in rounds]
            else:
                start.append(_insert(compiler, clause, target))
    names = tuple(sorted(definition.relation.name for definition in stratum.definitions))
    return Fixpoint(tuple(made.values()), tuple(start), tuple(step), names)


def _delta(relation: Relation) -> Relation:
    return replace(relation, name=f"{RECENT}{relation.name}", kind=Kind.STORED)


def _delta_clauses(clause: Clause, recursive: frozenset[str]) -> list[Clause]:
    """One clause for each recursive atom, with that atom over what the last round found."""
    variants = []
    for position, literal in enumerate(clause.body):
        if isinstance(literal, Atom) and literal.relation.id in recursive:
            changed = replace(literal, relation=_delta(literal.relation))
            body = (*clause.body[:position], changed, *clause.body[position + 1 :])
            variants.append(Clause(clause.head, body))
    return variants


def _insert(compiler: Compiler, clause: Clause, target: str) -> Statement:
    compiler.slots = Slots()
    select = compiler.definition(Definition(clause.head.relation, (clause,)))
    sql = f"INSERT OR IGNORE INTO temp.{quote(target)} {select}"
    return Statement(sql, compiler.slots.bound_in(sql))
