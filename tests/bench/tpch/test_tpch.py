"""The 22 queries of TPC-H as materialized views: after every transaction they are exact.

DuckDB answers each query from scratch on the same data, and so does Harken.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harken.bench.tpch import QUERIES, generated, unordered
from harken.bench.tpch.refresh import UPDATES, Refresh, Transaction, apply
from harken.bench.tpch.stores import Duck, Resident, check_same

pytestmark = pytest.mark.timeout(600)  # on a busy machine
SCALE = 0.001
EVERY_VIEW = 19
"""A seed with which every view changes."""


def transactions(refresh: Refresh) -> Iterator[Transaction]:
    for table in UPDATES:
        yield refresh.update(table, 1 if table in ("region", "nation") else 20)
    yield refresh.insert_orders(40)
    yield refresh.delete_orders(40)
    yield refresh.update_all() + refresh.insert_orders(5)
    yield refresh.delete_orders(5) + refresh.update_all()


def follow(seed: int, strategy: str) -> set[str]:
    """Run the transactions, check all views after each, and say which of them ever changed."""
    tables = generated(SCALE)
    duck, resident = Duck(tables, threads=1), Resident(tables)
    db = resident.db
    for name in QUERIES:
        resident.add_view(name, unordered(name))
    db.monitoring(strategy)
    subscriptions = {name: db.monitor(name) for name in QUERIES}
    changed: set[str] = set()
    for transaction in transactions(Refresh(tables, seed)):
        apply(transaction, duck)
        with db.transaction():
            apply(transaction, resident)
        for name in QUERIES:
            kept = resident.kept(name)
            check_same(name, kept, duck.answer_unordered(name))
            if subscriptions[name].changes():
                changed.add(name)
                check_same(name, kept, db.sql(unordered(name)).rows)
    return changed


def test_views_follow_every_transaction() -> None:
    assert follow(EVERY_VIEW, "incremental") == set(QUERIES)


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", ["adaptive", "incremental", "naive"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_views_follow_other_transactions(seed: int, strategy: str) -> None:
    follow(seed, strategy)
