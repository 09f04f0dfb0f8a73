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

SCALE = 0.001
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
    yield refresh.insert_orders(3)
    yield refresh.delete_orders(3)
    for table in UPDATES:
        yield refresh.update(table, 3)
    yield refresh.update_all() + refresh.insert_orders(2)
    yield refresh.delete_orders(2) + refresh.update_all()


@pytest.mark.parametrize("strategy", ["incremental"])
def test_views_follow_every_transaction(strategy: str) -> None:
    tables = benchmark.generated(SCALE)
    duck, db = Duck(tables), benchmark.resident(tables)
    benchmark.add_views(db)
    db.monitoring(strategy)
    subscriptions = {name: db.monitor(name) for name in QUERIES}
    changed: set[str] = set()
    for transaction in transactions(Refresh(tables)):
        apply(transaction, duck)
        with db.transaction():
            apply(transaction, Resident(db))
        for name in QUERIES:
            kept = db.sql(f"SELECT * FROM {name}").rows
            check_same(name, kept, duck.answer(name))
            check_same(name, kept, db.sql(benchmark.view_query(name)).rows)
            if subscriptions[name].changes():
                changed.add(name)
    assert changed == set(QUERIES)
