"""`harken source`, as a person meets it."""

import json
from pathlib import Path

import pytest

from tests.harness.commands import Command


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps([{"id": 1, "price": 1.5}, {"id": 2, "price": None}]))
    return path


def test_a_source_from_check_to_drop(command: Command, prices: Path, path: str) -> None:
    checked = command("source", "check", "json", f"path={prices}").out
    assert "price   DOUBLE" in checked
    assert "may be a key: id" in checked
    assert not Path(path).exists()
    database = ("--db", path)
    added = command("source", "add", "price", "json", f"path={prices}", "--key", "id", *database)
    assert added == (0, "price: 2 rows, poll\n", "")
    assert "ok" in command("source", "list", *database).out
    prices.write_text(json.dumps([{"id": 1, "price": 2.5}]))
    assert command("source", "refresh", "price", *database).out == "price: +1 −2, ok\n"
    assert "KEY (id)" in command("source", "show", "price", *database).out
    listed = command("source", "list", "--format", "json", *database).results
    assert [(each["name"], each["source"], each["rows"]) for each in listed] == [
        ("price", "json", 1)
    ]
    assert command("source", "drop", "price", *database) == (0, "", "")
    assert command("source", "list", *database) == (0, "", "")


def test_what_is_wrong_is_said(command: Command, prices: Path, path: str) -> None:
    assert "did you mean json" in command("source", "check", "jsn").err
    assert "NAME=VALUE" in command("source", "check", "json", "prices.json").err
    given = ("source", "add", "a", "json", f"path={prices}", "--db", path)
    assert "length of time" in command(*given, "--every", "soon").err
    assert "no scripts" in command(*given, "--sql").err
    assert command(*given).code == 0
    assert "exists" in command(*given).err
