"""Relations as tables. Those that depend on each other are evaluated semi-naively: a rule reads, of
one of its relations, only the rows that it has not read before.

    until no rule has rows to read:
        of the rules that have, run those of the lowest layer, each over its new rows

A table keeps its rows in the order in which they came, so "new" is a range of its row numbers, and
a relation that grows again later is no matter. Layers say what must have come to rest before a rule
may look at what is not there: a rule with a negation or an aggregate is in a higher layer than what
that is about, while a rule that asks for more of it is in the same (`calculus.magic`).

Law: at the end the tables hold the least set closed under the clauses, whatever their shape (linear
or not, mutual or not). Of relations `in_rounds` (UNION ALL) they hold each row as often as it is
derived: no clause reads two of them, so a rule that reads each row once makes the next round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from harken.engines.sqlite import layout
from harken.engines.sqlite.compile import Compiler
from harken.engines.sqlite.connection import Connection
from harken.engines.sqlite.slots import FROM_ROW, Slots, last_row_of
from harken.engines.sqlite.sql_expressions import quote
from harken.engines.sqlite.table_names import stored_name
from harken.ir.clauses import Aggregation, Atom, Clause, Definition, Literal
from harken.ir.relations import Kind, Relation, Role, Semantics
from harken.ir.strata import Stratum, no_fixpoint

ROUND_LIMIT = 100_000
ROW_LIMIT = 10_000_000
"""The most rows of a relation in rounds: on a cycle it would grow forever."""
FIRST_PORTION, SMALLEST_PORTION = 8, 2
"""New rows that a rule reads in one statement at first, and at least. A statement cannot be broken
off, so how many it reads follows what the statements before cost."""
SHORT_STATEMENT, LONG_STATEMENT = 50, 400
"""A rule reads more rows at once after a statement of less work than this, and fewer after more, in
`Connection.work`: 5 and 40 ms on a machine that runs 100 instructions in a microsecond."""

Kept = Mapping[str, str]
"""The tables that already hold a relation's rows, by the relation's id."""

Slotted = tuple[tuple[int, Any], ...]
Bind = Callable[[Slotted], tuple[Any, ...]]


@dataclass(slots=True)
class Table:
    """The temporary table of a relation."""

    name: str
    columns: str
    identity: str
    """The columns that tell two rows apart."""
    limit: int | None = None
    """Enough rows: evaluation stops when the table has this many."""
    lookups: set[tuple[int, ...]] = field(default_factory=set)
    """The columns by which rules look rows up, taken together, because one alone may have few
    values."""
    kept: bool = False
    """Does another object own the table and keep its rows?"""
    in_rounds: bool = False
    """Does the table hold a row as often as it is derived?"""

    def create(self) -> list[str]:
        table = quote(self.name)
        index = f"INDEX temp.{quote(f'{self.name} rows')} ON {table} ({self.identity})"
        unique = [] if self.in_rounds else [f"CREATE UNIQUE {index}"]
        return [f"CREATE TEMP TABLE {table} ({self.columns or 'c0'})", *unique]

    def index(self, columns: tuple[int, ...]) -> str:
        name = quote(f"{self.name} by {','.join(map(str, columns))}")
        listed = ", ".join(f"c{column}" for column in columns)
        return f"CREATE INDEX IF NOT EXISTS temp.{name} ON {quote(self.name)} ({listed})"

    @property
    def drop(self) -> str:
        return f"DROP TABLE IF EXISTS temp.{quote(self.name)}"

    @property
    def clear(self) -> str:
        return f"DELETE FROM temp.{quote(self.name)}"


Fetch = Callable[[Bind], None]
"""Fetches the rows that a statement reads of relations elsewhere, given its values."""


@dataclass(frozen=True, slots=True)
class Statement:
    """`sql` inserts the rows of `select` into a table."""

    sql: str
    select: str
    slots: Slotted
    fetch: Fetch | None = None


Insert = Callable[[Table, Statement, tuple[Any, ...]], int | None]
"""Runs a statement with its values; the rows that are new, or None if it took too much."""


Compile = Callable[[Clause, Table], Statement]
"""Compiles a clause into the statement that adds its rows to a table."""


@dataclass(slots=True)
class Rule:
    """A clause that adds rows to the table number `target`. It reads the new rows of the table
    number `source`; a rule without a source runs once. It is compiled when it first runs,
    because few of many rules are ever used."""

    clause: Clause
    target: int
    source: int | None
    layer: int = 0
    statement: Statement | None = None

    def values(self, slots: Slotted, bind: Bind, seen: int, rows: Sequence[int]) -> tuple[Any, ...]:
        """Bind row numbers where the statement wants them, and the caller's values everywhere
        else."""
        return tuple(
            bind(((index, type_),))[0]
            if index >= 0
            else seen
            if index == FROM_ROW.index
            else rows[last_row_of(index)]
            for index, type_ in slots
        )


@dataclass(frozen=True, slots=True)
class Question:
    """The table of the magic keys asked of a layer; `table` is None if it does not grow here. If
    the keys are whole rows, `unanswered` finds the first one after a given row that was not
    derived."""

    name: str
    table: int | None
    layer: int
    unanswered: str | None

    def size(self, connection: Connection, rows: Sequence[int]) -> int:
        if self.table is not None:
            return rows[self.table]
        return connection.value(f"SELECT max(rowid) FROM temp.{quote(self.name)}") or 0


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """The compiled evaluation of relations that depend on each other, or of a single one."""

    tables: tuple[Table, ...]
    rules: tuple[Rule, ...]
    names: tuple[str, ...]
    readers: tuple[tuple[int, ...], ...]
    """For each table, the rules that read its new rows."""
    compile: Compile
    questions: tuple[Question, ...] = ()
    limited: tuple[tuple[int, int], ...] = ()
    """The tables with a limit of rows."""
    filled: set[int] = field(default_factory=set)
    """The tables that hold rows now."""

    def run(self, connection: Connection, bind: Bind) -> None:
        for _ in self.steps(connection, bind):
            pass

    def steps(
        self, connection: Connection, bind: Bind, insert: Insert | None = None
    ) -> Iterator[None]:
        """Run to the end, with a stop after each statement. `insert` runs those that read no
        portion of a table; where it gives up, the same is tried after the stop."""
        self.create(connection)
        rows = [self._rows_before(connection, table) for table in self.tables]
        seen = [0 if rule.source is None else rows[rule.source] for rule in self.rules]
        portions = [FIRST_PORTION for _ in self.rules]
        waiting = {i for i, rule in enumerate(self.rules) if rule.source is None}
        answered = [0 for _ in self.questions]
        rounds = 0
        while True:
            layers = {self.rules[i].layer for i in waiting}
            if self.questions:
                layers -= self._at_rest(connection, layers, rows, answered)
            if not layers or (self.limited and self._is_enough(rows)):
                return
            lowest = min(layers)
            before = tuple(rows)
            now = sorted(i for i in waiting if self.rules[i].layer == lowest)
            waiting.difference_update(now)
            is_round = True
            for i in now:
                source = self.rules[i].source
                until, last = before, 0
                if source is not None:
                    last = min(before[source], seen[i] + portions[i])
                    until = (*before[:source], last, *before[source + 1 :])
                started = connection.work
                own = insert if source is None else None
                while not self._run_rule(connection, i, bind, seen[i], until, rows, waiting, own):
                    yield
                yield
                if source is not None:
                    portions[i] = _next_portion(portions[i], connection.work - started)
                    seen[i] = last
                    if last < before[source]:
                        waiting.add(i)
                        is_round = False
            rounds += is_round
            if rounds >= ROUND_LIMIT:
                in_rounds = any(table.in_rounds for table in self.tables)
                raise no_fixpoint(self.names, f"{ROUND_LIMIT} rounds", in_rounds)

    def _run_rule(
        self,
        connection: Connection,
        number: int,
        bind: Bind,
        seen: int,
        until: tuple[int, ...],
        rows: list[int],
        waiting: set[int],
        insert: Insert | None,
    ) -> bool:
        """Add the rows of a rule over the new rows of its source, those after the row `seen`; false
        if it was broken off."""
        rule = self.rules[number]
        if rule.statement is None:
            rule.statement = self.compile(rule.clause, self.tables[rule.target])
        statement = rule.statement
        if statement.fetch is not None:
            statement.fetch(partial(rule.values, bind=bind, seen=seen, rows=until))
        values = rule.values(statement.slots, bind, seen, until)
        added: int | None
        try:
            if insert is not None:
                added = insert(self.tables[rule.target], statement, values)
            else:
                added = connection.change(statement.sql, values)
        except BaseException:  # a statement that was broken off may have added rows
            self.filled.add(rule.target)
            raise
        if added:
            self.filled.add(rule.target)
            rows[rule.target] += added
            waiting.update(self.readers[rule.target])
            if self.tables[rule.target].in_rounds and rows[rule.target] > ROW_LIMIT:
                raise no_fixpoint(self.names, f"{ROW_LIMIT} rows", in_rounds=True)
        return added is not None

    def _at_rest(
        self, connection: Connection, layers: set[int], rows: list[int], answered: list[int]
    ) -> set[int]:
        """The layers whose questions are all answered, so that rules waiting in them can wait
        longer. `answered` is the row up to which a table of questions is known to be answered."""
        found = {question.layer for question in self.questions} & layers
        for number, question in enumerate(self.questions):
            if question.layer not in found:
                continue
            size = question.size(connection, rows)
            if answered[number] == size:
                continue
            first: int | None = 1
            if question.unanswered is not None:
                first = connection.value(question.unanswered, (answered[number],))
                answered[number] = size if first is None else first - 1
            if first is not None:
                found.discard(question.layer)
        return found

    def _rows_before(self, connection: Connection, table: Table) -> int:
        """The number of the last row already present, which is new to no rule."""
        if not table.kept:
            return 0
        return connection.value(f"SELECT max(rowid) FROM temp.{quote(table.name)}") or 0

    def _is_enough(self, rows: Sequence[int]) -> bool:
        return any(rows[number] >= limit for number, limit in self.limited)

    def create(self, connection: Connection) -> None:
        """Create the tables if they do not exist. They were created together, so a rollback
        removes all of them or none."""
        own = [table for table in self.tables if not table.kept]
        if not own or connection.has_table(stored_name(own[-1].name), "temp"):
            return
        for table in own:
            for sql in (table.drop, *table.create(), *map(table.index, table.lookups)):
                connection.run(sql)

    def clear(self, connection: Connection) -> None:
        """Delete the rows; the caller of `run` does this."""
        while self.filled:
            table = self.tables[self.filled.pop()]
            if not table.kept:
                connection.run(table.clear)

    def drop(self, connection: Connection) -> None:
        for table in self.tables:
            if not table.kept:
                connection.run(table.drop)


def _next_portion(portion: int, work: int) -> int:
    if work < SHORT_STATEMENT:
        return 8 * portion
    return max(SMALLEST_PORTION, portion // 8) if work > LONG_STATEMENT else portion


def make_tables(
    stratum: Stratum, tables: dict[str, str], numbers: dict[str, int], prefix: str, kept: Kept
) -> tuple[Table, ...]:
    """Tables for relations that depend on each other. Adds their names to `tables` and their
    numbers to `numbers`. Relations in `kept` already have a table."""
    made = []
    for number, definition in enumerate(stratum.definitions):
        relation = definition.relation
        name = kept.get(relation.id, f"{prefix} {number}")
        columns = layout.typed_columns(relation)
        identity = layout.identity(relation) if columns else "c0"
        made.append(
            Table(
                name,
                columns,
                identity,
                definition.limit,
                kept=relation.id in kept,
                in_rounds=stratum.in_rounds,
            )
        )
        for each in (relation, recent(relation), settled(relation)):
            tables[each.id] = name
            numbers[each.id] = number
    return tuple(made)


def make_fixpoint(
    stratum: Stratum,
    made: tuple[Table, ...],
    layers: Mapping[str, int],
    compile_: Compile,
    asked: Mapping[str, tuple[str, Relation, bool]],
) -> Fixpoint:
    """`asked` gives, for each relation of magic keys, its table, the relation that is asked, and
    whether the keys are whole rows."""
    numbers = {each.relation.id: number for number, each in enumerate(stratum.definitions)}
    rules: list[Rule] = []
    for target, definition in enumerate(stratum.definitions):
        layer = layers.get(definition.relation.id, 0)
        for clause in definition.clauses:
            for source, variant in _variants(clause, stratum):
                rules.append(Rule(variant, target, numbers.get(source), layer))
    names = tuple(sorted(definition.relation.written_name for definition in stratum.definitions))
    readers = tuple(
        tuple(i for i, rule in enumerate(rules) if rule.source == number)
        for number in range(len(made))
    )
    questions = tuple(
        Question(
            table,
            numbers.get(name),
            layers[relation.id],
            _unanswered(table, made[numbers[relation.id]].name, relation.arity)
            if is_full
            else None,
        )
        for name, (table, relation, is_full) in asked.items()
        if relation.id in numbers
    )
    limited = tuple((i, each.limit) for i, each in enumerate(made) if each.limit is not None)
    return Fixpoint(made, tuple(rules), names, readers, compile_, questions, limited)


def _unanswered(asked: str, answers: str, columns: int) -> str:
    same = " AND ".join(f"p.c{i} IS q.c{i}" for i in range(columns)) or "1"
    return (
        f"SELECT min(q.rowid) FROM temp.{quote(asked)} AS q WHERE q.rowid > ? "
        f"AND NOT EXISTS (SELECT 1 FROM temp.{quote(answers)} AS p WHERE {same})"
    )


def recent(relation: Relation) -> Relation:
    """The rows of a relation that a rule has not read before."""
    return relation.variant(Role.RECENT, f"recent {relation.name}", kind=Kind.STORED)


def settled(relation: Relation) -> Relation:
    """The rows of a relation that existed when the round began."""
    return relation.variant(Role.SETTLED, f"settled {relation.name}", kind=Kind.STORED)


def _variants(clause: Clause, stratum: Stratum) -> list[tuple[str, Clause]]:
    """One clause for each atom over a growing relation, reading that atom's new rows.

    With a negation or an aggregate, the other atoms are read as of the start of the round:
    nothing may have been asked yet about a row that came later.
    """
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


def insertion(compiler: Compiler, clause: Clause, table: Table) -> Statement:
    """An INSERT of a clause's rows. The table rejects duplicates, so the SELECT need not; a
    table in rounds takes all rows up to its limit and one more, which reports the overflow."""
    compiler.slots = Slots()
    relation = replace(clause.head.relation, semantics=Semantics.BAG, key=None)
    head = replace(clause.head, relation=relation)
    rows = Definition(relation, (Clause(head, clause.body),))
    select = compiler.definition(rows, into_set=not table.in_rounds)
    sql = f"INSERT OR IGNORE INTO temp.{quote(table.name)} {select}"
    if table.in_rounds:
        sql = f"INSERT INTO temp.{quote(table.name)} SELECT * FROM ({select}) LIMIT {ROW_LIMIT + 1}"
    return Statement(sql, select, compiler.slots.bound_in(sql))
