"""The 22 queries of TPC-H as materialized views: after every transaction they are exact.

DuckDB answers each query from scratch on the same data, and so does Harken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest

from harken import Database
from tpch import benchmark
from tpch.benchmark import QUERIES, Duck, Row
from tpch.refresh import UPDATES, Refresh, Transaction, apply

pytestmark = pytest.mark.timeout(600)  # on a busy machine
SCALE = 0.001
EVERY_VIEW = 19
"""A seed with which every view changes."""
DIGITS = Decimal("0.0001")
"""DuckDB has averages and quotients of decimals as floating-point numbers."""


class Resident:
    def __init__(self, db: Database) -> None:
        self.db = db

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        self.db.load(table, rows)

    def run(self, text: str) -> None:
        self.db.sql(text)


def is_same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, float) and isinstance(ours, Decimal):
        return abs(ours - Decimal(theirs)) < DIGITS
    return bool(ours == theirs)


def check_same(name: str, ours: Iterable[Row], theirs: Iterable[Row]) -> None:
    """The same bag of rows, but for the last digits of quotients."""
    only_ours, only_theirs = Counter(ours), Counter(theirs)
    both = only_ours & only_theirs
    left = sorted((only_ours - both).elements(), key=repr)
    right = sorted((only_theirs - both).elements(), key=repr)
    for row in left:
        found = next((r for r in right if all(map(is_same, row, r))), None)
        assert found is not None, f"{name} has {row}, and should have one of {right[:5]}"
        right.remove(found)
    assert not right, f"{name} lacks {right[:5]}"


def transactions(refresh: Refresh) -> Iterator[Transaction]:
    for table in UPDATES:
        yield refresh.update(table, 1 if table in ("region", "nation") else 20)
    yield refresh.insert_orders(40)
    yield refresh.delete_orders(40)
    yield refresh.update_all() + refresh.insert_orders(5)
    yield refresh.delete_orders(5) + refresh.update_all()


def follow(seed: int, strategy: str) -> set[str]:
    """Run the transactions, check all views after each, and say which of them ever changed."""
    tables = benchmark.generated(SCALE)
    duck, db = Duck(tables), benchmark.resident(tables)
    benchmark.add_views(db)
    db.monitoring(strategy)
    subscriptions = {name: db.monitor(name) for name in QUERIES}
    changed: set[str] = set()
    for transaction in transactions(Refresh(tables, seed)):
        apply(transaction, duck)
        with db.transaction():
            apply(transaction, Resident(db))
        for name in QUERIES:
            kept = db.sql(f"SELECT * FROM {name}").rows
            check_same(name, kept, duck.answer(name))
            if subscriptions[name].changes():
                changed.add(name)
                check_same(name, kept, db.sql(benchmark.view_query(name)).rows)
    return changed


def test_views_follow_every_transaction() -> None:
    assert follow(EVERY_VIEW, "incremental") == set(QUERIES)


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["adaptive", "incremental", "naive"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_views_follow_other_transactions(seed: int, strategy: str) -> None:
    follow(seed, strategy)
