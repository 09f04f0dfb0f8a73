"""A change of all rows of a table in the lake: are the totals of it followed, or is all evaluated
anew?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harken
from harken.maintenance.chooser import Chooser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOP = "SELECT max(s) AS m FROM (SELECT g, sum(v) AS s FROM sale GROUP BY g) AS t"


def totals(db: harken.Database, text: str) -> list[str]:
    """How the totals that are kept took a transaction in, if nothing is known of the view."""
    view = db.internals.network.graph.node("materialized top()")
    assert view is not None
    view.experience = None
    lines: list[str] = []
    db.trace(lines.append)
    db.sql(text)
    db.trace(None)
    assert db.sql("SELECT * FROM top").rows == db.sql(TOP).rows
    return [line.rpartition("(")[2].partition(")")[0] for line in lines if "kept" in line]


def test_totals_are_followed_where_that_takes_less(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with harken.connect(tmp_path / "sales.db", spark=spark) as db:
        db.sql("CREATE TABLE sale (id INT, g INT NOT NULL, v INT NOT NULL) USING lake KEY (id)")
        db.load("sale", [(n, n % 10, n) for n in range(1000)])
        db.sql(f"CREATE MATERIALIZED VIEW top AS {TOP}")
        for _ in range(2):  # the first one, with a new plan, tells nothing
            assert totals(db, "UPDATE sale SET v = v + 1 WHERE id < 120")[0] == "followed"
        monkeypatch.setattr(Chooser, "naive_seconds", lambda *_: 1e6)
        assert totals(db, "UPDATE sale SET v = v + 1")[0] == "followed"
        monkeypatch.setattr(Chooser, "naive_seconds", lambda *_: 0.0)
        assert totals(db, "UPDATE sale SET v = v + 1")[0].startswith("skipped: ")
