"""The law of redefinition: whatever is defined again, every stored thing is what recomputing gives.

Random views of SQL over views over tables, functions of AMOSQL and a relation of Datalog among
them, some materialized, some monitored, are defined again, materialized or not, with other columns
or another meaning, between random changes of rows and of the columns of tables, by two sessions, in
transactions of one statement or of several, which may be rolled back; sessions are opened anew.

After each commit
- the table of a materialized view has the rows and columns of its query, asked by itself;
- what a client of a monitor was told, of whatever kind, adds up to the rows of the view.

A redefinition may be refused. Then nothing has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken import Database, HarkenError, Subscription

Row = tuple[Any, ...]

some = settings(max_examples=8)
many = settings(max_examples=1_500)

TABLES = ("t0", "t1")
VIEWS = ("v0", "v1", "v2", "v3", "v4")
FUNCTION, RELATION = "g", "d"
SOURCES = (*TABLES, *VIEWS, FUNCTION, RELATION)
KINDS = ("durable", "kept", "where", "auto", "counting", "external", "materialized", "naive")
"""Of monitors: those that outlive their session, one with a condition, and the strategies."""
LASTING = ("durable", "kept")
WHERE = "x > 1"

QUERIES = (
    "SELECT x, y FROM {s} WHERE x > {k}",
    "SELECT x + {k} AS x, y FROM {s}",
    "SELECT * FROM {s}",
    "SELECT *, x AS z FROM {s}",
    "SELECT x FROM {s}",
    "SELECT y AS x, x AS y FROM {s} WHERE y <> {k}",
    "SELECT DISTINCT x, y FROM {s}",
    "SELECT x, count(*) AS y FROM {s} GROUP BY x",
    "SELECT x, sum(y) AS y FROM {s} GROUP BY x",
    "SELECT x, max(y) AS y FROM {s} GROUP BY x HAVING count(*) > {k}",
    "SELECT {k} AS x, avg(y) AS y FROM {s}",
    "SELECT one.x, other.y FROM {s} AS one JOIN {r} AS other ON one.x = other.x",
    "SELECT one.x, other.y FROM {s} AS one LEFT JOIN {r} AS other ON one.y = other.y",
    "SELECT x, y FROM {s} UNION ALL SELECT x, y FROM {r}",
    "SELECT x, y FROM {s} EXCEPT SELECT x, y FROM {r}",
    "SELECT x, y FROM {s} AS s WHERE NOT EXISTS (SELECT 1 FROM {r} AS r WHERE r.x = s.y)",
    "SELECT x, y FROM {s} ORDER BY x, y LIMIT 2",
    "WITH RECURSIVE w AS (SELECT x, y FROM {s} UNION SELECT w.x, r.y FROM w JOIN {r} AS r "
    "ON w.y = r.x) SELECT x, y FROM w",
)

numbers = st.integers(0, 3)
rows = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3)
queries = st.builds(
    lambda text, s, r, k: text.format(s=s, r=r, k=k),
    st.sampled_from(QUERIES),
    st.sampled_from(SOURCES),
    st.sampled_from(SOURCES),
    numbers,
)


@dataclass(frozen=True)
class Redefine:
    """A view, with its query; a function or relation, with the source and number in its text."""

    name: str
    query: str
    materialized: bool
    source: str
    number: int


@dataclass(frozen=True)
class Data:
    texts: tuple[str, ...]


def _data(table: str, new: list[tuple[int, int]], gone: int, changed: int) -> Data:
    values = ", ".join(f"({x}, {y})" for x, y in new)
    return Data(
        (
            f"INSERT INTO {table} (x, y) VALUES {values}",
            f"DELETE FROM {table} WHERE x = {gone}",
            f"UPDATE {table} SET y = {changed} WHERE x < {gone}",
        )
    )


redefinitions = st.builds(
    Redefine,
    st.sampled_from((*VIEWS, *VIEWS, FUNCTION, RELATION)),
    queries,
    st.booleans(),
    st.sampled_from((*TABLES, *VIEWS)),
    numbers,
)
data = st.builds(
    lambda *given, part: Data(_data(*given).texts[part : part + 2]),
    st.sampled_from(TABLES),
    rows,
    numbers,
    numbers,
    part=st.integers(0, 2),
)
alterations = st.sampled_from(
    [
        Data((f"ALTER TABLE {table} {action}",))
        for table in TABLES
        for action in ("ADD COLUMN n INT DEFAULT 7", "DROP COLUMN n", "ALTER COLUMN y SET NOT NULL")
    ]
    + [
        Data((f"CREATE OR REPLACE TABLE {table} (x INT, y INT{more})",))
        for table in TABLES
        for more in ("", ", n INT")
    ]
)
actions = st.one_of(redefinitions, redefinitions, data, data, alterations)
steps = st.one_of(
    st.tuples(st.just("alone"), st.integers(0, 1), st.tuples(actions)),
    st.tuples(st.just("alone"), st.integers(0, 1), st.tuples(actions)),
    st.tuples(
        st.sampled_from(["commit", "rollback"]),
        st.integers(0, 1),
        st.lists(actions, min_size=1, max_size=3).map(tuple),
    ),
    st.tuples(st.just("reopen"), st.integers(0, 1), st.just(())),
)
schemas = st.tuples(*(st.tuples(queries, st.booleans()) for _ in VIEWS))
monitored = st.lists(
    st.tuples(st.sampled_from((*VIEWS, FUNCTION, RELATION)), st.sampled_from(KINDS)),
    min_size=1,
    max_size=4,
    unique=True,
)


@dataclass
class Client:
    """A subscriber to the changes of a view."""

    view: str
    kind: str
    subscription: Subscription
    rows: Counter[Row] = field(default_factory=Counter)

    def take(self) -> None:
        for change in self.subscription.changes():
            if change.fresh:
                self.rows = Counter(change.plus)
                continue
            lost, gained = Counter(change.minus), Counter(change.plus)
            assert lost <= self.rows, (self.view, change, self.rows)
            self.rows = self.rows - lost + gained
        if self.kind == "durable":
            self.subscription.acknowledge()

    def begin(self) -> None:
        change = self.subscription.snapshot()
        self.rows = Counter(change.plus)


class World:
    """Two sessions on one file, and what its views are said to be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions = [harken.connect(path), harken.connect(path)]
        self.queries: dict[str, str] = {}
        self.clients: list[Client] = []
        first = self.sessions[0]
        for table in TABLES:
            first.sql(f"CREATE TABLE {table} (x INT, y INT); INSERT INTO {table} VALUES (1, 2)")
        first.amosql(_function("t0", 0))
        first.datalog(_relation("t0", 1))
        first.amosql("commit;")

    def close(self) -> None:
        for each in self.sessions:
            each.close()

    def watch(self, name: str, kind: str) -> None:
        try:
            subscription = self._subscribe(name, kind)
        except HarkenError as error:
            assert error.code in REFUSALS, error
            return
        client = Client(name, kind, subscription)
        self.clients.append(client)
        if kind == "durable":
            client.rows = Counter(subscription.rows())
        else:
            client.begin()

    def _subscribe(self, name: str, kind: str, since: int | None = None) -> Subscription:
        session = self.sessions[0]
        match kind:
            case "durable":
                return session.monitor(name, durable=f"durable {name}")
            case "kept":
                return session.monitor(name, keep=True, since=since)
            case "where":
                return session.monitor(name, where=WHERE)
        return session.monitor(name, strategy=kind)

    def reopen(self, number: int) -> None:
        self.sessions[number].close()
        self.sessions[number] = harken.connect(self.path)
        if number == 0:
            for each in self.clients:
                position = each.subscription.position
                each.subscription = self._subscribe(each.view, each.kind, position)
                if each.kind not in LASTING:
                    each.begin()

    def define(self, session: Database, wanted: Redefine) -> None:
        """Carry out a redefinition, or have it refused."""
        try:
            if wanted.name == FUNCTION:
                session.amosql(_function(wanted.source, wanted.number))
            elif wanted.name == RELATION:
                session.datalog(_relation(wanted.source, wanted.number, declared=True))
            else:
                kind = "MATERIALIZED VIEW" if wanted.materialized else "VIEW"
                session.sql(f"CREATE OR REPLACE {kind} {wanted.name} AS {wanted.query}")
                self.queries[wanted.name] = wanted.query
        except HarkenError as error:
            assert error.code in REFUSALS, error

    def step(self, how: str, number: int, done: tuple[Redefine | Data, ...]) -> None:
        if how == "reopen":
            self.reopen(number)
            return
        session, known = self.sessions[number], dict(self.queries)
        if how != "alone":
            session.sql("BEGIN")
        for each in done:
            if isinstance(each, Redefine):
                self.define(session, each)
            else:
                for text in each.texts:
                    _change(session, text)
        if session.in_transaction:
            if how == "rollback":
                session.sql("ROLLBACK")
                self.queries = known
            else:
                session.sql("COMMIT")
        if number == 1:
            for client in self.clients:
                if client.kind not in LASTING:
                    client.begin()

    def check(self) -> None:
        for name, query in self.queries.items():
            for session in self.sessions:
                found, wanted = session.sql(f"SELECT * FROM {name}"), session.sql(query)
                assert Counter(found.rows) == Counter(wanted.rows), (name, query)
                assert [c.lower() for c in found.columns] == [c.lower() for c in wanted.columns]
        for client in self.clients:
            client.take()
            condition = f" WHERE {WHERE}" if client.kind == "where" else ""
            wanted_rows = self.sessions[0].sql(f"SELECT * FROM {client.view}{condition}").rows
            assert client.rows == Counter(wanted_rows), client


REFUSALS = frozenset(
    {"unknown-column", "in-use", "unsupported", "transaction", "arity", "type-mismatch", "exists"}
    | {"unknown-relation", "unknown-table", "unknown-function", "negative-cycle", "null"}
)


def _function(source: str, number: int) -> str:
    return (
        f"create function {FUNCTION}() -> bag of <integer x, integer y> as select x, y "
        f"for each integer x, integer y where {source}() = <x, y> and x < {number + 2};"
    )


def _relation(source: str, number: int, *, declared: bool = False) -> str:
    """Datalog adds rules to those that there are."""
    start = "" if declared else f".decl {RELATION}(x: number, y: number)\n"
    return f"{start}{RELATION}(x, y) :- {source}(x, y), x < {number}."


def _change(session: Database, text: str) -> None:
    try:
        session.sql(text)
    except HarkenError as error:
        assert text.startswith(("ALTER", "CREATE")), error
        assert error.code in REFUSALS, error


@contextmanager
def world(schema: tuple[tuple[str, bool], ...]) -> Iterator[World]:
    with TemporaryDirectory() as directory:
        made = World(Path(directory) / "views.db")
        try:
            for name in VIEWS:
                made.queries[name] = "SELECT x, y FROM t0"
                made.sessions[0].sql(f"CREATE VIEW {name} AS {made.queries[name]}")
            for name, (query, materialized) in zip(VIEWS, schema, strict=True):
                made.define(made.sessions[0], Redefine(name, query, materialized, "t0", 0))
            yield made
        finally:
            made.close()


def _holds(
    schema: tuple[tuple[str, bool], ...],
    watched: list[tuple[str, str]],
    done: list[tuple[str, int, tuple[Redefine | Data, ...]]],
) -> None:
    with world(schema) as made:
        made.check()
        for name, kind in watched:
            made.watch(name, kind)
        for step in done:
            made.step(*step)
            made.check()


@some
@given(schemas, monitored, st.lists(steps, min_size=2, max_size=8))
def test_redefinition(
    schema: tuple[tuple[str, bool], ...],
    watched: list[tuple[str, str]],
    done: list[tuple[str, int, tuple[Redefine | Data, ...]]],
) -> None:
    _holds(schema, watched, done)


turns = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.one_of(
            st.builds(
                Redefine,
                st.just("v0"),
                st.sampled_from(["SELECT x, y FROM t0", "SELECT x, y, x AS z FROM t0"]),
                st.booleans(),
                st.just("t0"),
                st.just(0),
            ),
            data,
        ),
    ),
    min_size=3,
    max_size=8,
)
STANDING = (("SELECT x, y FROM t0", True), ("SELECT x, count(*) AS y FROM v0 GROUP BY x", True))


@some
@given(turns)
def test_sessions_that_define_one_view_in_turn(given: list[tuple[int, Redefine | Data]]) -> None:
    """Materialized or not: one session drops the table that the other has triggers on."""
    others = (("SELECT x, y FROM t1", False),) * (len(VIEWS) - len(STANDING))
    _holds((*STANDING, *others), [], [("alone", number, (each,)) for number, each in given])


@pytest.mark.nightly
@many
@given(schemas, monitored, st.lists(steps, min_size=4, max_size=20))
def test_redefinition_at_length(
    schema: tuple[tuple[str, bool], ...],
    watched: list[tuple[str, str]],
    done: list[tuple[str, int, tuple[Redefine | Data, ...]]],
) -> None:
    _holds(schema, watched, done)
