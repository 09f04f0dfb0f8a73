"""Random scripts of SQL: tables, views, and transactions that change the tables.

A script is plain text that can be run whatever the tables hold, so parts of one that fails can be
left out until little is left. Rows come from a small pool: duplicates are usual, and so is a row
that is deleted and put back. Of several views one is taken that changes.

A script of the life of a file also says which views are materialized and which are monitored, which
session runs each transaction, and when a session is closed and opened again; statements that are
sure to be refused are among the others, and its tables may be larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from random import Random

from tests.generators.sql_expressions import POOLS, TYPES, Column, Expressions, type_name
from tests.generators.sql_queries import Named, Queries, Query
from tests.generators.sql_trials import Trials

NAMES = {
    "bigint": ("a", "b"),
    "double": ("x",),
    "decimal": ("m",),
    "string": ("s",),
    "boolean": ("f",),
    "date": ("d",),
}
DEPTHS = (0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4)
TRIED = 4
"""After this many attempts the last view is used, whether it ever changes or not."""
MOMENTS = (0, 4, 8)
"""After so many transactions it is looked at."""
FULL = 8
"""So many rows, and a table takes no more."""
LARGER = 40
"""The same of a larger table."""
LARGE = 400
"""A view over larger tables has at most so many rows."""


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[tuple[str, str], ...]
    required: frozenset[str]
    """The columns that are NOT NULL."""
    key: tuple[str, ...] = ()

    def definition(self, *, keys: bool = True) -> str:
        """DuckDB gets it without constraints: it checks keys before the statement ends."""
        parts = [
            f"{name} {type_name(type_)}" + " NOT NULL" * (keys and name in self.required)
            for name, type_ in self.columns
        ]
        if keys and self.key:
            parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        return f"CREATE TABLE {self.name} ({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Transaction:
    statements: tuple[str, ...]
    commits: bool = True
    whole: bool = False
    """Whether it is one text, and not one for each statement."""
    goes_on: bool = False
    """Whether it goes on after a statement that is refused, or is rolled back."""
    session: int = 0
    reopens: bool = False
    """Whether its session is closed and opened again before."""


@dataclass(frozen=True, slots=True)
class View:
    name: str
    query: str
    materialized: bool = False
    monitored: bool = True

    @property
    def definition(self) -> str:
        kind = "MATERIALIZED VIEW" if self.materialized else "VIEW"
        return f"CREATE {kind} {self.name} AS {self.query}"


@dataclass(frozen=True, slots=True)
class Script:
    tables: tuple[Table, ...]
    views: tuple[View, ...]
    transactions: tuple[Transaction, ...]
    strategy: str = "adaptive"
    full: int = FULL
    keeps_totals: bool = False
    """Whether totals are kept of every group, however small."""


@dataclass(slots=True)
class Scripts(Expressions):
    random: Random
    tables: list[Table] = field(default_factory=list)
    full: int = FULL
    _names: int = 0

    def script(self, views: int, transactions: int) -> Script:
        self.tables = [self._table(f"t{i}") for i in range(2 + self.below(2))]
        fill = Transaction(tuple(self._fill(table) for table in self.tables))
        changes = [self._transaction() for _ in range(transactions)]
        made = self._views(views, (fill, *changes))
        strategy = self.choose(("adaptive", "incremental", "naive"))
        return Script(tuple(self.tables), tuple(made), (fill, *changes), strategy)

    def life(self, views: int, transactions: int, sessions: int) -> Script:
        """A script of several sessions on one file."""
        self.full = LARGER if self.one_in(3) else FULL
        script = self.script(views, transactions)
        fill, *others = script.transactions
        return replace(
            script,
            views=tuple(
                replace(each, materialized=bool(self.below(3)), monitored=bool(self.below(2)))
                for each in script.views
            ),
            transactions=(fill, *(self._in_session(each, sessions) for each in others)),
            full=self.full,
            keeps_totals=bool(self.below(2)),
        )

    def _in_session(self, transaction: Transaction, sessions: int) -> Transaction:
        goes_on = bool(self.below(3))
        statements = list(transaction.statements)
        if goes_on and self.one_in(3):
            refused = [each for each in map(self._refused, self.tables) if each]
            if refused:
                statements.insert(self.below(len(statements) + 1), self.choose(refused))
        return replace(
            transaction,
            statements=tuple(statements),
            whole=transaction.whole and not goes_on,
            goes_on=goes_on,
            session=self.below(sessions),
            reopens=self.one_in(8),
        )

    def _refused(self, table: Table) -> str | None:
        """A statement that inserts a row and then fails."""
        row = self._row(table)
        if table.key:
            return f"INSERT INTO {table.name} VALUES ({row}), ({row})"
        if table.required:
            bad = ", ".join("NULL" for _ in table.columns)
            return f"INSERT INTO {table.name} VALUES ({row}), ({bad})"
        return None

    # --- tables ----------------------------------------------------------------------------

    def _table(self, name: str) -> Table:
        columns: dict[str, str] = {}
        for _ in range(2 + self.below(4)):
            type_ = self.choose(TYPES)
            columns[self.choose(NAMES[type_])] = type_
        required = frozenset(each for each in columns if self.one_in(4))
        key: tuple[str, ...] = ()
        if self.below(2):
            columns = {"k": "bigint", **columns}
            key = ("k", next(each for each in columns if each != "k")) if self.one_in(4) else ("k",)
        return Table(name, tuple(columns.items()), required | set(key), key)

    def _row(self, table: Table) -> str:
        return ", ".join(
            self.choose(POOLS[type_]) if name in table.required else self._nullable(type_)
            for name, type_ in table.columns
        )

    def _nullable(self, type_: str) -> str:
        return "NULL" if self.one_in(4) else self.choose(POOLS[type_])

    def _fill(self, table: Table) -> str:
        rows = [self._row(table) for _ in range(self._filled())]
        if self.full > FULL and table.key:
            rows = [f"{i}, {row.partition(', ')[2]}" for i, row in enumerate(rows)]
        if table.key:  # the first of each key
            width = len(table.key)
            rows = list({tuple(row.split(", ")[:width]): row for row in rows}.values())
        return f"INSERT INTO {table.name} VALUES {', '.join(f'({row})' for row in rows)}"

    def _filled(self) -> int:
        return 1 + self.below(6) if self.full <= FULL else self.full // 2 + self.below(self.full)

    # --- views -----------------------------------------------------------------------------

    def _views(self, count: int, transactions: Sequence[Transaction]) -> list[View]:
        known = [
            Named(each.name, each.columns, each.key[0] if len(each.key) == 1 else None)
            for each in self.tables
        ]
        made = []
        with closing(self._trials(transactions)) as trials:
            for i in range(count):
                query = self._lively(f"v{i}", known, trials)
                made.append(View(f"v{i}", query.text))
                known.append(Named(f"v{i}", query.columns, size=max(query.size, 1)))
        return made

    def _trials(self, transactions: Sequence[Transaction]) -> Trials:
        texts = [each.statements if each.commits else () for each in transactions]
        definitions = [table.definition(keys=False) for table in self.tables]
        return Trials(definitions, [sum(texts[: 1 + moment], ()) for moment in MOMENTS])

    def _lively(self, name: str, known: list[Named], trials: Trials) -> Query:
        for _ in range(TRIED):
            query = Queries(self.random, known).view(self.choose(DEPTHS))
            trials.define(name, query.text)
            if trials.moves(name) and (self.full <= FULL or trials.size(name) <= LARGE):
                break
        return query

    # --- transactions ----------------------------------------------------------------------

    def _transaction(self) -> Transaction:
        statements: list[str] = []
        for _ in range(1 + self.below(4)):
            statements += self._change(self.choose(self.tables))
        return Transaction(tuple(statements), bool(self.below(15)), bool(self.below(2)))

    def _change(self, table: Table) -> list[str]:
        columns = [Column(name, type_) for name, type_ in table.columns]
        match self.below(11):
            case 0 | 1 | 2 | 3:
                return self._inserted(table)
            case 4 | 5 | 6:
                where = self._some(columns) if self.below(2) else ""
                return [f"UPDATE {table.name} SET {self._set(table, columns)}{where}"]
            case 7:
                row = self._row(table)
                same = " AND ".join(
                    f"{c.text} IS NOT DISTINCT FROM {value}"
                    for c, value in zip(columns, row.split(", "), strict=True)
                )
                gone = f"DELETE FROM {table.name} WHERE {same}"
                come = f"INSERT INTO {table.name} VALUES ({row})"
                return self.choose(([gone, come], [come, gone], [gone, come, gone], [gone]))
            case 8 if not table.key or self.one_in(8):
                return [self._copied(table)]
        return [f"DELETE FROM {table.name}{self._some(columns)}"]

    def _inserted(self, table: Table) -> list[str]:
        """New rows; where there is a key, what has it goes first, or else most would be refused."""
        rows = [self._row(table) for _ in range(1 + self.below(2))]
        if not table.key:
            return [f"INSERT INTO {table.name} VALUES {', '.join(f'({row})' for row in rows)}"]
        values = zip(table.key, rows[0].split(", "), strict=False)
        same = " AND ".join(f"{name} = {value}" for name, value in values)
        gone = [f"DELETE FROM {table.name} WHERE {same}"] if self.below(10) else []
        return [*gone, f"INSERT INTO {table.name} VALUES ({rows[0]})"]

    def _set(self, table: Table, columns: list[Column]) -> str:
        plain = [each for each in table.columns if each[0] not in table.key]
        name, type_ = self.choose(plain if plain and self.below(10) else table.columns)
        if name in table.required and self.below(12):
            return f"{name} = {name}" if self.one_in(3) else f"{name} = {self.choose(POOLS[type_])}"
        return f"{name} = {self.value(type_, columns, 1)}"

    def _some(self, columns: list[Column]) -> str:
        return f" WHERE {self.condition(columns, 1)}" if self.below(12) else ""

    def _copied(self, table: Table) -> str:
        """Rows of another table, or of this one."""
        other = self.choose(self.tables)
        columns = [Column(name, type_) for name, type_ in other.columns]
        values = ", ".join(self.value(type_, columns, 0) for _, type_ in table.columns)
        return f"INSERT INTO {table.name} SELECT {values} FROM {other.name}{self._some(columns)}"
