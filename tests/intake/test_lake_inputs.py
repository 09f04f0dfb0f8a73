"""Inputs of the lake are listed, described and made like other sources."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import harken
from harken.database.permissions import Role, User
from tests.harness.toy_sources import ToyKind


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_deltalake(tmp_path / "delta", pa.table({"item": ["a", "b"], "n": [1, 2]}))
    (tmp_path / "files").mkdir()
    pq.write_table(pa.table({"id": [1], "v": [2.0]}), tmp_path / "files" / "1.parquet")
    return tmp_path


def states(db: harken.Database) -> dict[str, tuple[str, str, str]]:
    return {each.name: (each.kind, each.state, each.why) for each in db.sources.list()}


def test_a_delta_table_is_a_source(place: Path) -> None:
    with harken.connect(str(place / "a.db")) as db:
        text = f"CREATE SOURCE stock USING delta OPTIONS (path '{place}/delta') KEY (item)"
        db.sql(text)
        assert db.sql("SELECT * FROM stock").rows == [("a", 1), ("b", 2)]
        assert states(db) == {"stock": ("delta", "ok", "")}
        described = dict(db.sql("DESCRIBE SOURCE stock").rows)
        assert (described["version"], described["rows"]) == ("0", "2")
        write_deltalake(place / "delta", pa.table({"item": ["c"], "n": [3]}), mode="append")
        assert states(db)["stock"][1] == "stale"
        db.step()
        assert states(db)["stock"][1] == "ok"
        for refused in ("REFRESH SOURCE stock", "ALTER SOURCE stock PAUSE", text):
            with pytest.raises(harken.HarkenError):
                db.sql(refused)
        db.sql("DROP SOURCE stock")
        assert db.sources.list() == []


def test_a_file_that_cannot_be_read_is_named(place: Path, toy: ToyKind) -> None:
    toy.table("item", [(1, "pen")])
    with harken.connect(str(place / "a.db")) as db:
        db.lake("sale", place / "files", key=["id"])
        db.source("item", "toy", table="item")
        (place / "files" / "2.parquet").write_text("nonsense")
        pq.write_table(pa.table({"id": [3], "v": [2.0]}), place / "files" / "3.parquet")
        first, second = db.step(strict=False), db.step(strict=False)
        assert (list(first.set_aside["sale"]), second.set_aside) == (["2.parquet"], {})
        assert states(db)["sale"] == ("directory", "ok", "set aside: 2.parquet")
        assert [row[0] for row in db.sql("SHOW SOURCES").rows] == ["item", "sale"]
        assert db.sql("SELECT count(*) FROM sale").rows == [(2,)]


def test_a_table_that_vanished_is_failing(place: Path) -> None:
    with harken.connect(str(place / "a.db")) as db:
        db.source("stock", "delta", path=str(place / "delta"))
    (place / "delta").rename(place / "elsewhere")
    with harken.connect(str(place / "a.db")) as db:
        kind, state, why = states(db)["stock"]
        assert (kind, state, "no Delta table" in why) == ("delta", "failing", True)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE SOURCE f USING frame",
        "CREATE SOURCE f USING stream",
        "CREATE SOURCE f USING delta",
        "CREATE SOURCE f USING delta OPTIONS (pth 'a')",
        "CREATE SOURCE f USING delta OPTIONS (path '/nowhere')",
        "CREATE SOURCE f USING delta OPTIONS (path '/nowhere') POLL EVERY 1 MINUTE",
    ],
)
def test_what_is_no_source_is_said(text: str) -> None:
    with harken.connect(":memory:") as db, pytest.raises(harken.HarkenError) as found:
        db.sql(text)
    assert found.value.hint


def test_a_user_sees_the_sources_that_may_be_read(place: Path, toy: ToyKind) -> None:
    toy.table("a", [(1, "pen")])
    toy.table("b", [(1, "pen")])
    with harken.connect(str(place / "a.db")) as db:
        for name in ("a", "b"):
            db.source(name, "toy", table=name)
        db.sql("GRANT SELECT ON a TO ann")
        with db.acting_as(User("ann", Role.READER)):
            assert [row[0] for row in db.sql("SHOW SOURCES").rows] == ["a"]
            for text in ("DESCRIBE SOURCE a", "REFRESH SOURCE a", "DROP SOURCE a"):
                with pytest.raises(harken.HarkenError):
                    db.sql(text)
