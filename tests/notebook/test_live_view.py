"""Live tables and charts, in IPython."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

import harken
from harken import Database, HarkenError
from harken.notebook import live
from harken.notebook.charts import chart_svg


@pytest.fixture(scope="module")
def shell() -> Iterator[InteractiveShell]:
    made = InteractiveShell.instance()
    made.display_pub = CapturingDisplayPublisher()
    yield made
    made.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def outputs(shell: InteractiveShell) -> list[dict[str, Any]]:
    """What cells have shown, first and later."""
    shell.display_pub.outputs.clear()
    found: list[dict[str, Any]] = shell.display_pub.outputs
    return found


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with harken.connect(tmp_path / "shop.db") as database:
        database.sql("CREATE TABLE sale (city STRING, amount INT)")
        database.sql("CREATE VIEW total AS SELECT city, sum(amount) s FROM sale GROUP BY city")
        database.sql("INSERT INTO sale VALUES ('<Oslo>', 3)")
        yield database


def shown(outputs: list[dict[str, Any]]) -> list[str]:
    return [each["data"]["text/html"] for each in outputs]


def test_a_table_follows_the_commits_of_its_session(
    db: Database, outputs: list[dict[str, Any]]
) -> None:
    view = live(db, "total", chart=("city", "s"))
    db.sql("INSERT INTO sale VALUES ('Rome', 4)")
    first, second = shown(outputs)
    assert "<td>&lt;Oslo&gt;</td>" in first
    assert first.count("<rect") == 1
    assert "<td>Rome</td>" in second
    assert second.count("<rect") == 2
    assert "2 rows" in second
    assert [each["update"] for each in outputs] == [False, True]
    view.close()
    db.sql("INSERT INTO sale VALUES ('Bonn', 4)")
    assert len(outputs) == 2


def test_following_shows_what_others_commit(
    db: Database, outputs: list[dict[str, Any]], tmp_path: Path
) -> None:
    view = live(db, "total", where="s > 3", rows=1)
    view.follow(timeout=0)
    with harken.connect(tmp_path / "shop.db") as other:
        other.sql("INSERT INTO sale VALUES ('Rome', 4), ('Bonn', 5)")
    view.follow(timeout=0)
    assert "0 rows" in shown(outputs)[0]
    assert "2 rows, the first 1 shown" in shown(outputs)[-1]


def test_wrong_columns_of_a_chart(db: Database) -> None:
    with pytest.raises(HarkenError, match="no column") as caught:
        live(db, "total", chart=("citi", "s"))
    assert caught.value.hint == "did you mean city?"
    with pytest.raises(HarkenError, match="two columns"):
        live(db, "total", chart="city")  # type: ignore[arg-type]


def test_charts() -> None:
    days = [(datetime.date(2026, 1, day), day * 2.5) for day in (3, 1, 2)]
    line = chart_svg(days)
    assert line.index("2026-01-01") < line.index("2026-01-03")
    assert chart_svg([("a", -1), ("b", 2), ("c", None), ("d", True)]).count("<rect") == 2
    assert "&lt;script&gt;" in chart_svg([("<script>", 1)])
    assert chart_svg([]).startswith("<svg")
    assert chart_svg([(1, 0)]).count("<polyline") == 1
