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


def test_a_project_declares_sources(
    command: Command, prices: Path, path: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "harken.yml").write_text("name: shop\n")
    source = f"CREATE SOURCE price USING json OPTIONS (path '{prices}') KEY (id)"
    (project / "a.sql").write_text(f"CREATE VIEW dear AS SELECT id FROM price;\n{source};\n")
    database = ("--db", path)
    assert command("apply", project, *database).code == 0
    assert "nothing to do" in command("apply", project, *database).out
    assert command("query", "SELECT * FROM dear", "--format", "csv", *database).out == "id\n1\n2\n"
    (project / "a.sql").write_text(f"{source} POLL EVERY 1 MINUTE;\n")
    assert command("apply", project, *database).code == 0
    assert "POLL EVERY 1 MINUTE" in command("source", "show", "price", *database).out
    (project / "a.sql").write_text("")
    assert command("apply", project, *database).code == 0
    assert command("source", "list", *database).out == ""


def test_the_pipeline_reads_sources(command: Command, prices: Path, path: str) -> None:
    database = ("--db", path)
    command("source", "add", "price", "json", f"path={prices}", "--key", "id", *database)
    prices.write_text(json.dumps([{"id": 1, "price": 2.5}]))
    assert "price: ok, +1 −2" in command("pipeline", "run", *database).out
    assert "price: ok, 1 rows" in command("pipeline", "status", *database).out
    prices.write_text("[")
    (line,) = [
        each
        for each in command("pipeline", "run", "--format", "json", *database).results
        if each["kind"] == "source"
    ]
    assert (line["name"], line["state"]) == ("price", "suspect")


def test_a_source_is_altered(command: Command, prices: Path, path: str) -> None:
    database = ("--db", path)
    command("source", "add", "price", "json", f"path={prices}", "--key", "id", *database)
    prices.write_text(json.dumps([{"id": 1, "price": 1.5, "place": "Oslo"}]))
    altered = command(
        *("source", "alter", "price", "retain=1 DAY", "--every", "1 HOUR"),
        *("--add-column", "place", "--drop-column", "price", "--pause", *database),
    )
    assert altered == (0, "", "")
    shown = command("source", "show", "price", *database).out
    assert "retain '1 DAY', take 'id, place') KEY (id) POLL EVERY 1 HOUR" in shown
    assert "paused" in shown
    command("source", "alter", "price", "retain=", "--resume", *database)
    assert "retain '" not in command("source", "show", "price", *database).out
    refused = command("source", "alter", "price", "--add-column", "nothing", *database)
    assert "no column nothing" in refused.err


def test_domains_of_sources(command: Command, prices: Path, path: str) -> None:
    database = ("--db", path)
    for name in ("a", "b"):
        command("source", "add", name, "json", f"path={prices}", *database)
    members = ("a:id=number,price=cost", "b:id=number")
    assert command("domain", "create", "goods", *members, *database) == (0, "", "")
    assert "goods   a, b     number, cost" in command("domain", "list", *database).out
    assert "number from id; no cost" in command("domain", "show", "goods", *database).out
    command("domain", "remove", "goods", "b", *database)
    command("domain", "add", "goods", "b:id=number,price=cost", *database)
    (listed,) = command("domain", "list", "--format", "json", *database).results
    assert listed["members"]["b"] == {"number": ["id"], "cost": ["price"]}
    assert "MEMBER:COLUMN=NAME" in command("domain", "add", "goods", "c:", *database).err
    assert command("domain", "drop", "goods", *database).code == 0
