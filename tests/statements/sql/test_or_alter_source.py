"""CREATE OR ALTER SOURCE makes a source, or changes the one that is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import harken


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps([{"id": 1, "price": 1.5}]))
    return path


def test_it_makes_alters_and_makes_anew(prices: Path) -> None:
    with harken.connect(":memory:") as db:
        text = f"CREATE OR ALTER SOURCE price USING json OPTIONS (path '{prices}'"
        db.sql(f"{text}) KEY (id)")
        db.sql("CREATE VIEW dear AS SELECT id FROM price WHERE price > 1")
        db.sql("GRANT SELECT ON price TO ann")
        granted = db.sql("SHOW GRANTS").rows
        read = db.sources.list()[0].read_at
        db.sql(f"{text}, retain '1 DAY') KEY (id) POLL EVERY 1 HOUR")
        (found,) = db.sources.list()
        assert (found.read_at, found.statement) == (
            read,
            f"CREATE SOURCE price USING json OPTIONS (path '{prices}', retain '1 DAY') KEY (id) "
            "POLL EVERY 1 HOUR",
        )
        other = prices.with_name("other.json")
        other.write_text(json.dumps([{"id": 2, "price": 9}, {"id": 2, "price": 9}]))
        with pytest.raises(harken.HarkenError):
            db.sql(f"CREATE OR ALTER SOURCE price USING jsn OPTIONS (path '{other}')")
        with pytest.raises(harken.HarkenError):
            db.sql(f"CREATE OR ALTER SOURCE price USING json OPTIONS (path '{other}', pth 1)")
        assert db.sql("SELECT * FROM dear").rows == [(1,)]
        db.sql(f"CREATE OR ALTER SOURCE price USING json OPTIONS (path '{other}')")
        assert db.sql("SELECT * FROM dear").rows == [(2,), (2,)]
        assert db.sql("SHOW GRANTS").rows == granted
        db.sql(f"CREATE OR ALTER SOURCE price USING json OPTIONS (path '{other}') MIRROR none")
        assert db.sql("SELECT * FROM dear").rows == [(2,), (2,)]


def test_it_replaces_no_table(prices: Path) -> None:
    with harken.connect(":memory:") as db:
        db.sql("CREATE TABLE price (id INT)")
        with pytest.raises(harken.HarkenError, match="already a table price"):
            db.sql(f"CREATE OR ALTER SOURCE price USING json OPTIONS (path '{prices}')")
