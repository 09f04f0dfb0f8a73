"""One budget in bytes for everything that is kept; with a small one, changes are still exact."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

import harken
from harken import Database
from harken.maintenance.decisions import DecisionReason
from harken.maintenance.nodes import TotalsNode

SMALL = 200
"""Bytes: not even the totals of ten groups fit."""
VIEWS = {
    "total": "SELECT g, sum(v) AS s, count(*) AS c FROM member GROUP BY g",
    "largest": "SELECT g, max(v) AS m FROM member GROUP BY g",
    "first": "SELECT id, v FROM member ORDER BY v DESC, id LIMIT 5",
}


def members(**settings: int) -> Database:
    db = harken.connect(settings=settings)
    db.sql("CREATE TABLE member (id INT PRIMARY KEY, g INT NOT NULL, v INT NOT NULL)")
    db.load("member", [(n, n % 10, n * 7 % 100) for n in range(500)])
    for name, query in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    return db


@pytest.fixture(params=[0, SMALL, 10_000, 2**30])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    with members(kept_bytes=request.param) as db:
        yield db


def test_changes_are_exact_with_any_budget(db: Database) -> None:
    random = Random(1)
    for _ in range(30):
        low = random.randrange(500)
        high = low + random.choice([1, 3, 200])
        verb = random.choice(
            [f"UPDATE member SET v = v + {random.randrange(9)}", "DELETE FROM member"]
        )
        db.sql(f"{verb} WHERE id >= {low} AND id < {high} AND id % 7 > 2")
        db.sql("INSERT INTO member VALUES (?, ?, ?)", (random.randrange(10**9), 3, 50))
        for name, query in VIEWS.items():
            assert sorted(db.sql(f"SELECT * FROM {name}").rows) == sorted(db.sql(query).rows)
    limit = db.settings["kept_bytes"]
    assert not limit or db.kept().bytes <= limit


def test_what_does_not_fit_is_not_kept() -> None:
    with members(kept_bytes=SMALL) as db:
        assert db.kept().bytes <= SMALL
        db.sql("UPDATE member SET v = v + 1 WHERE id = 7")
        network = db.internals.network
        totals = [n for n in network.graph.derived.values() if isinstance(n, TotalsNode)]
        taken = [network.chooser.decisions(each.id)[-1].decision.reason for each in totals]
        assert DecisionReason.OVER_BUDGET in taken
        assert "kept_bytes" in str(db.explain("total"))
        db.settings["kept_bytes"] = 2**30
        db.sql("UPDATE member SET v = v + 1 WHERE id = 8")
        assert db.kept().bytes > SMALL  # there is room again


def test_the_report_lists_what_is_kept_the_largest_first() -> None:
    with members() as db:
        report = db.kept()
        assert {each.kind for each in report.items} == {"totals", "first rows"}
        sizes = [each.bytes for each in report.items]
        assert sizes == sorted(sizes, reverse=True)
        assert report.bytes == sum(sizes) > 0
        assert report.limit == 2**30
        assert "bytes are kept" in str(report)


@pytest.mark.parametrize("strategy", ["auto", "materialized"])
def test_the_rows_of_a_recursion_count(strategy: str) -> None:
    with harken.connect(settings={"kept_bytes": SMALL}) as db:
        db.datalog(
            ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n"
            "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
            + "".join(f"edge({n}, {n + 1})." for n in range(20))
        )
        monitor = db.monitor("path", strategy=strategy)
        rows = set(db.sql("SELECT * FROM path").rows)
        for text in ("-edge(4, 5).", "+edge(4, 5).", "-edge(9, 10).", "+edge(30, 1).") * 4:
            db.datalog(text)
            for change in monitor.changes():
                rows = (rows - set(change.minus)) | set(change.plus)
            assert rows == set(db.sql("SELECT * FROM path").rows)
            assert db.kept().bytes <= SMALL
