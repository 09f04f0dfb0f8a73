"""A new kind of source is one module and one line in the registry."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken
from harken.sources import registry
from tests.sources.toy_source import Toy


@pytest.fixture(autouse=True)
def toy_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.MODULES, "toy", "tests.sources.toy_source")


def test_a_new_kind_needs_a_module_and_a_line(tmp_path: Path) -> None:
    toy = Toy([(1, 10), (2, 20)])
    with harken.connect(tmp_path / "t.db") as db:
        db.lake("v", toy, key=["k"])
        assert db.amosql("v(2);").rows == [(20,)]
        toy.rows[:] = [(1, 11), (3, 30)]
        assert db.step().taken == {"v": 4}
        assert sorted(db.amosql("select k, v(k) for each integer k;").rows) == [(1, 11), (3, 30)]
    with harken.connect(tmp_path / "t.db") as db:
        assert db.amosql("v(3);").rows == [(30,)]
        toy.rows.append((4, 40))
        db.lake("v", toy, key=["k"])
        db.step()
        assert db.amosql("v(4);").rows == [(40,)]


def test_dropping_a_relation_removes_the_files_that_its_kind_keeps(tmp_path: Path) -> None:
    with harken.connect(tmp_path / "t.db") as db:
        db.lake("v", Toy([(1, 10)]), key=["k"])
        assert (tmp_path / "t.lake" / "v").is_dir()
        db.amosql("delete function v; commit;")
        assert not (tmp_path / "t.lake" / "v").exists()


def test_what_no_kind_accepts_is_refused() -> None:
    with harken.connect() as db, pytest.raises(harken.HarkenError, match="is no table"):
        db.lake("v", 7, key=["k"])


@pytest.mark.parametrize("name", registry.MODULES)
def test_every_kind_knows_its_name(name: str) -> None:
    assert registry.kind_named(name).name == name
