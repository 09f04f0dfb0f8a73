"""A change of every row of a lake table: are its totals followed, or is the view recomputed?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import harken
from harken.maintenance.chooser import Chooser
from harken.maintenance.decisions import Decision, DecisionReason
from harken.maintenance.nodes import TotalsNode
from harken.maintenance.strategies import Strategy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOP = "SELECT max(s) AS m FROM (SELECT g, sum(v) AS s FROM sale GROUP BY g) AS t"


def totals(db: harken.Database, text: str) -> Decision:
    """The decision about the sums of `sale`, with no measurements of the view."""
    network = db.internals.network
    view = network.graph.node("materialized top()")
    assert view is not None
    view.experience = None
    db.sql(text)
    assert db.sql("SELECT * FROM top").rows == db.sql(TOP).rows
    (sums,) = (
        node
        for node in network.graph.derived.values()
        if isinstance(node, TotalsNode) and any(n.startswith("sale") for n in node.part.influents)
    )
    return network.chooser.decisions(sums.id)[-1].decision


def test_totals_are_followed_where_that_takes_less(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every wave is decided anew: whether a change counts as settled depends on how long it took.
    monkeypatch.setattr(Chooser, "is_settled", lambda *_: False)
    with harken.connect(tmp_path / "sales.db", spark=spark) as db:
        db.sql("CREATE TABLE sale (id INT, g INT NOT NULL, v INT NOT NULL) USING lake KEY (id)")
        db.load("sale", [(n, n % 10, n) for n in range(1000)])
        db.sql(f"CREATE MATERIALIZED VIEW top AS {TOP}")
        for _ in range(2):  # the first run includes planning and is not recorded
            assert (
                totals(db, "UPDATE sale SET v = v + 1 WHERE id < 120").strategy is Strategy.FOLLOWED
            )
        monkeypatch.setattr(Chooser, "naive_seconds", lambda *_: 1e6)
        assert totals(db, "UPDATE sale SET v = v + 1").strategy is Strategy.FOLLOWED
        monkeypatch.setattr(Chooser, "naive_seconds", lambda *_: 0.0)
        decision = totals(db, "UPDATE sale SET v = v + 1")
        assert (decision.strategy, decision.reason) == (
            Strategy.SKIPPED,
            DecisionReason.MOST_CHANGED,
        )
