"""A differential whose Δ is empty does not run (thesis, 7.2 and 7.3)."""

from __future__ import annotations

import pytest

import harken
from harken import Database
from harken.propagation.view_changes import ViewChanges


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The views whose change is computed, in order."""
    found: list[str] = []
    compute = ViewChanges.change_of

    def counted(self: ViewChanges, node, *rest):  # type: ignore[no-untyped-def]
        found.append(node.view.name)
        return compute(self, node, *rest)

    monkeypatch.setattr(ViewChanges, "change_of", counted)
    return found


def shop() -> Database:
    db = harken.connect(":memory:", settings={"compiled_waves": False})
    db.amosql("""
        create type item properties (quantity integer, price integer);
        create function shops(item) -> bag of charstring;
        create item(quantity, price) instances :a(5, 1), :b(20, 1);
        create rule low() as for each item i when quantity(i) < price(i) do print(i);
        create rule sold() as for each item i when count(shops(i)) > quantity(i) do print(i);
        activate low(); activate sold(); commit;
    """)
    return db


def test_what_is_done_and_undone_runs_nothing(evaluated: list[str]) -> None:
    with shop() as db:
        evaluated.clear()
        db.amosql("set quantity(:a) = 6; set quantity(:a) = 5; commit;")
        db.amosql("add shops(:a) = 'x'; remove shops(:a) = 'x'; commit;")
        assert evaluated == []
        db.amosql("set price(:a) = 3; set quantity(:b) = 6; set quantity(:b) = 20; commit;")
        assert evaluated == ["low"]
        db.amosql("set quantity(:a) = 6; commit;")
        assert sorted(evaluated[1:]) == ["low", "sold"]


def test_what_was_undone_is_not_left_behind(evaluated: list[str]) -> None:
    with shop() as db:
        db.amosql("set price(:a) = 6; set price(:a) = 1; commit;")
        assert len(db.amosql("set price(:a) = 6; commit;")) == 1
        assert len(db.amosql("set price(:a) = 1; set price(:a) = 6; commit;")) == 0
