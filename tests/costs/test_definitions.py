"""What a new table or view costs does not follow the number of materialised views that do not read
it: they are not planned again.

Law: a materialised view is planned when its query comes to mean something else, and only then.
"""

from __future__ import annotations

from typing import Any

import pytest

import harken
from harken.statements.sql import materialized_views


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The goals of the programs that are planned for materialised views, in order."""
    goals: list[str] = []
    prepare = materialized_views.prepare

    def noted(program: Any, *given: Any) -> Any:
        goals.append(program.goal.id)
        return prepare(program, *given)

    monkeypatch.setattr(materialized_views, "prepare", noted)
    return goals


def test_other_definitions_plan_no_materialized_view(planned: list[str]) -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE sale (id INT PRIMARY KEY, shop INT, amount INT)")
        db.sql("CREATE VIEW large AS SELECT * FROM sale WHERE amount > 10")
        for number in range(10):
            db.sql(
                f"CREATE MATERIALIZED VIEW v{number} AS "
                f"SELECT shop, sum(amount) AS s FROM large WHERE shop > {number} GROUP BY shop"
            )
        planned.clear()
        db.sql("CREATE TABLE other (a INT)")
        db.sql("CREATE VIEW seen AS SELECT a FROM other")
        db.sql("DROP VIEW seen; DROP TABLE other")
        assert planned == []
        db.sql("CREATE OR REPLACE VIEW large AS SELECT * FROM sale WHERE amount > 20")
        assert len(planned) >= 10
        db.sql("INSERT INTO sale VALUES (1, 20, 15), (2, 20, 25)")
        assert db.sql("SELECT * FROM v0").rows == [(20, 25)]
