"""Law: an expression that fails matters in the state at the end of a transaction, and nowhere else.

Views whose expressions can fail (divisions, casts, sums that overflow, queries that stand for a
value and have several rows) are stored and monitored while random transactions change their tables.
A twin database has the same tables and plain views. If the twin can answer a view after a
transaction, the transaction is committed, the stored rows are the answer, and so is what the
clients of the monitors hold. If it cannot, the transaction fails, and nothing has changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken import Change, Database, HarkenError, Subscription
from harken.maintenance import tuning
from tests.laws import test_rules as rules

Row = tuple[Any, ...]

some = settings(rules.some, max_examples=15)
many = settings(rules.many, max_examples=2000)

SCHEMA = "CREATE TABLE t (k INT, x INT, s STRING); CREATE TABLE u (k INT NOT NULL, d BIGINT)"
BIG = 4_611_686_018_427_387_904
"""Twice this is no integer of 64 bits any more."""
CODES = {"division-by-zero", "overflow", "bad-value", "many-values"}
"""Which of several expressions fails first is up to the plan."""
VIEWS = (
    "SELECT x FROM t WHERE x >= (SELECT 1 / count(*) FROM t)",
    "SELECT DISTINCT x FROM t WHERE x >= (SELECT 1 / count(*) FROM u)",
    "SELECT t.k, t.x / u.d AS q FROM t JOIN u ON u.k = t.k",
    "SELECT DISTINCT t.x % u.d AS q FROM t JOIN u ON u.k = t.k WHERE t.x > 0",
    "SELECT k, CAST(s AS INT) + x AS n FROM t WHERE k <> 2",
    "SELECT k, x FROM t WHERE CAST(s AS INT) > 1 OR k = 3",
    "SELECT x, (SELECT d FROM u WHERE u.k = t.k) AS d FROM t",
    "SELECT k FROM t WHERE x = (SELECT d FROM u WHERE u.k = 1)",
    "SELECT k, sum(d) AS total FROM u GROUP BY k",
    "SELECT k, 6 / (count(*) - 2) AS q FROM t GROUP BY k",
    "SELECT k, sum(6 / x) AS q FROM t GROUP BY k HAVING count(*) > 1",
    "SELECT k, max(x) AS m FROM t GROUP BY k HAVING 4 / (sum(x) - 1) > 1",
    "SELECT g.k, g.n, u.d FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS g"
    " JOIN u ON u.k = g.k AND u.d / (g.n - 1) >= 0",
    "SELECT sum(d + d) AS total FROM u",
    "SELECT x FROM t EXCEPT SELECT 6 / d FROM u",
    "SELECT x FROM t INTERSECT ALL SELECT 6 / d FROM u WHERE k > 0",
    "SELECT x FROM t WHERE x NOT IN (SELECT 6 / d FROM u WHERE u.k = t.k)",
    "SELECT t.k, t.x FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND t.x / u.d = 1)",
    "SELECT t.k, u.d, coalesce(t.x / u.d, -1) AS q FROM t LEFT JOIN u ON u.k = t.k",
    "SELECT k, x, 6 / x AS q FROM t ORDER BY x DESC, k, s LIMIT 2",
    "SELECT k, x, 6 / row_number() OVER (PARTITION BY k ORDER BY x, s) / x AS q FROM t",
    "SELECT k, x, sum(6 / x) OVER (PARTITION BY k) AS q FROM t",
    "WITH RECURSIVE r(k) AS (SELECT k FROM t WHERE x = 1"
    " UNION SELECT u.k + CAST(6 DIV u.d AS INT) FROM r"
    " JOIN u ON u.k = r.k WHERE u.k < 6) SELECT k FROM r",
    "WITH RECURSIVE r(k, n) AS (SELECT k, 1 FROM t"
    " UNION ALL SELECT u.k + 1, n + CAST(6 DIV u.d AS INT) FROM r"
    " JOIN u ON u.k = r.k WHERE u.k < 3) SELECT k, n FROM r",
    "SELECT k, CASE WHEN x > 1 THEN 6 / (x - 2) ELSE 0 END AS q FROM t",
    "SELECT k, d * 2 AS b FROM u WHERE k IN (SELECT k FROM t WHERE x > 0)",
)

keys, numbers = st.integers(1, 3), st.integers(-1, 3)
texts = st.sampled_from(["'1'", "'2'", "'x'", "NULL"])
divisors = st.sampled_from([0, 1, 2, 3, BIG])
t_rows = st.builds("({}, {}, {})".format, keys, numbers, texts)
u_rows = st.builds("({}, {})".format, keys, divisors)


def _inserts(table: str, rows: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    several = st.lists(rows, min_size=1, max_size=3).map(", ".join)
    return several.map(lambda each: f"INSERT INTO {table} VALUES {each}")


statements = st.one_of(
    _inserts("t", t_rows),
    _inserts("u", u_rows),
    st.builds("DELETE FROM t WHERE k = {} AND x = {}".format, keys, numbers),
    st.builds("DELETE FROM t WHERE k = {}".format, keys),
    st.just("DELETE FROM t"),
    st.builds("DELETE FROM u WHERE k = {}".format, keys),
    st.builds("DELETE FROM u WHERE d = {}".format, divisors),
    st.just("DELETE FROM u"),
    st.builds("UPDATE t SET x = {} WHERE x = {}".format, numbers, numbers),
    st.builds("UPDATE t SET s = {} WHERE k = {}".format, texts, keys),
    st.builds("UPDATE u SET d = {} WHERE d = {}".format, divisors, divisors),
    st.builds("UPDATE u SET k = {} WHERE k = {}".format, keys, keys),
)


@dataclass(frozen=True)
class Transaction:
    changes: tuple[str, ...]
    monitoring: str


transactions = st.builds(
    Transaction,
    st.lists(statements, min_size=1, max_size=3).map(tuple),
    st.sampled_from(["adaptive", "adaptive", "incremental", "naive"]),
)
scenarios = given(
    views=st.lists(st.sampled_from(VIEWS), min_size=1, max_size=2, unique=True),
    strategy=st.sampled_from(["auto", "counting", "external", "materialized", "naive"]),
    stored=st.booleans(),
    script=st.lists(transactions, min_size=3, max_size=8),
)


@pytest.fixture
def no_change_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "SMALL_CHANGE", 0)
    monkeypatch.setattr(tuning, "LEAST_GROUP_MEMBERS", 0)


class Client:
    """Holds a copy of a view, and brings it up to date with nothing but its changes."""

    def __init__(self, sub: Subscription) -> None:
        self.sub = sub
        self.copy = Counter[Row](sub.rows())

    def follow(self) -> None:
        for change in self.sub.changes():
            self.apply(change)

    def apply(self, change: Change) -> None:
        plus, minus = Counter(change.plus), Counter(change.minus)
        if change.fresh:
            self.copy.clear()
        assert not plus & minus
        assert minus <= self.copy
        self.copy = self.copy - minus + plus


class Twins:
    """The same tables twice: with plain views, and with all that follows them."""

    def __init__(self, views: Sequence[str], strategy: str, stored: bool) -> None:
        self.plain, self.watched = harken.connect(":memory:"), harken.connect(":memory:")
        self.names = [f"v{n}" for n in range(len(views))]
        self.clients: dict[str, list[Client]] = {}
        for db in (self.plain, self.watched):
            db.sql(SCHEMA)
            for name, view in zip(self.names, views, strict=True):
                db.sql(f"CREATE VIEW {name} AS {view}")
        for name, view in zip(self.names, views, strict=True):
            if stored:
                self.watched.sql(f"CREATE MATERIALIZED VIEW m_{name} AS {view}")
            self.clients[name] = [
                Client(self.watched.monitor(name, strategy=strategy)),
                Client(self.watched.monitor(name, durable=name)),
                Client(self.watched.monitor(name, keep=True)),
            ]
        self.stored = stored

    def run(self, transaction: Transaction) -> None:
        self.watched.monitoring(transaction.monitoring)
        text = f"BEGIN; {'; '.join(transaction.changes)}"
        self.plain.sql(text)
        self.watched.sql(text)
        expected = [self.answer(self.plain, name) for name in self.names]
        failing = next((each for each in expected if isinstance(each, str)), None)
        if failing is None:
            self.plain.sql("COMMIT")
            self.watched.sql("COMMIT")
        else:
            self.plain.sql("ROLLBACK")
            with pytest.raises(HarkenError) as caught:
                self.watched.sql("COMMIT")
            assert caught.value.code in CODES
            self.watched.rollback()
        self.check()

    def check(self) -> None:
        for table in ("t", "u"):
            assert self.answer(self.plain, table) == self.answer(self.watched, table)
        for name in self.names:
            rows = self.answer(self.plain, name)
            assert self.answer(self.watched, name) == rows
            if self.stored:
                assert self.answer(self.watched, f"m_{name}") == rows
            for client in self.clients[name]:
                client.follow()
                assert client.copy == rows, name

    def answer(self, db: Database, name: str) -> Counter[Row] | str:
        """The rows of a view, or the code of what it fails with."""
        try:
            (result,) = db.sql(f"SELECT * FROM {name}")
        except HarkenError as error:
            return error.code
        return Counter(result.rows)


def follow(
    views: Sequence[str], strategy: str, stored: bool, script: Sequence[Transaction]
) -> None:
    twins = Twins(views, strategy, stored)
    try:
        for transaction in script:
            twins.run(transaction)
    finally:
        twins.plain.close()
        twins.watched.rollback()
        twins.watched.close()


@some
@scenarios
@pytest.mark.usefixtures("no_change_is_small")
def test_only_an_error_at_the_end_fails_a_transaction(
    views: list[str], strategy: str, stored: bool, script: list[Transaction]
) -> None:
    follow(views, strategy, stored, script)


@pytest.mark.nightly
@many
@scenarios
@pytest.mark.usefixtures("no_change_is_small")
def test_only_an_error_at_the_end_fails_a_transaction_search(
    views: list[str], strategy: str, stored: bool, script: list[Transaction]
) -> None:
    follow(views, strategy, stored, script)
