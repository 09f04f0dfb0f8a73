"""`harken apply`: the exit code, what is printed, and following the files."""

from __future__ import annotations

from pathlib import Path

from harken.errors import HarkenError
from harken.project.file_versions import each_version
from tests.harness.commands import Command


def test_a_mistake_ends_with_its_place(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE TABLE t (a INT);\nCREATE VIEW v AS SELECT b FROM t;")
    done = command("apply", tmp_path)
    assert done.code == 1
    assert done.err.startswith(f"{tmp_path}/a.sql:2:25: [unknown-column]")


def test_json_has_a_line_for_each_change(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE TABLE t (a INT);")
    (tmp_path / "p.yml").write_text("name: p\nseeds: {t: [[1]]}")
    done = command("apply", tmp_path, "--format", "json")
    table, seed, applied = done.results
    assert (table["action"], table["object"], table["name"]) == ("create", "table", "t")
    assert (seed["action"], seed["rows_in"]) == ("seed", 1)
    assert applied == {"kind": "applied", "project": "p", "tests": 0}


def test_what_rules_print_is_json_as_well(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL);")
    rule = "create rule r() as when for each integer i where t(i) > 1 do print(i); activate r();"
    (tmp_path / "r.amosql").write_text(rule)
    (tmp_path / "p.yml").write_text("seeds: {t: [[7, 2]]}")
    done = command("apply", tmp_path, "--format", "json")
    assert {"kind": "print", "values": [7]} in done.results


def test_what_is_missing_is_reported(command: Command, tmp_path: Path) -> None:
    assert "not there, and a project is a directory" in command("apply", tmp_path / "x").err
    assert "there are no files of a project" in command("apply", tmp_path).err


def test_files_are_followed(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("CREATE TABLE t (a INT);")
    edits = iter(["CREATE TABLE t (a INT", "CREATE TABLE t (a INT, b INT);"])
    refused: list[HarkenError] = []

    def edit(seconds: float) -> None:
        file.write_text(next(edits))

    found = each_version(tmp_path, refused.append, sleep=edit)
    assert next(found).declared[0].declaration.columns == ("a",)
    assert next(found).declared[0].declaration.columns == ("a", "b")
    assert len(refused) == 1
