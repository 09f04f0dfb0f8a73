"""Directories of Parquet, CSV and JSON: one bad file stops nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.outside import opened, refused, rows_of, table_of, types_of


def write(path: Path, format: str, rows: list[dict[str, object]]) -> None:
    table = pa.Table.from_pylist(rows, pa.schema([("a", pa.int64()), ("b", pa.string())]))
    if format == "parquet":
        pq.write_table(table, path)
    elif format == "csv":
        pa.csv.write_csv(table, path)
    else:
        import json

        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_a_bad_file_is_set_aside_and_the_others_go_on(tmp_path: Path, format: str) -> None:
    write(tmp_path / f"1.{format}", format, [{"a": 1, "b": "x"}])
    write(tmp_path / f"2.{format}", format, [{"a": 2, "b": "y"}])
    source = opened("directory", directory=str(tmp_path))
    first = source.snapshot()
    assert first is not None
    assert rows_of(first) == [(1, "x", f"1.{format}"), (2, "y", f"2.{format}")]
    assert first.set_aside == {}
    assert source.schema() == first.schema
    # The position of files that were just written is not trusted: they may change once more.
    known = first.schema.columns
    (tmp_path / f"1.{format}").write_text('[broken,"\n')
    (tmp_path / "note.txt").write_text("not of the format")
    write(tmp_path / f"3.{format}", format, [{"a": 3, "b": None}])
    again = opened("directory", known, directory=str(tmp_path))
    second = again.snapshot(first.position)
    assert second is not None
    assert rows_of(second) == [(2, "y", f"2.{format}"), (3, None, f"3.{format}")]
    assert list(second.set_aside) == [f"1.{format}"]
    assert second.part_column == "_file"
    for path in tmp_path.iterdir():
        path.write_text("[broken")
    with refused("source-suspect", "none of the 3 files"):
        rows_of(again.snapshot())


def test_nothing_is_read_if_nothing_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harken.sources.local_files.SETTLED_SECONDS", -1.0)
    write(tmp_path / "1.csv", "csv", [{"a": 1, "b": "x"}])
    source = opened("directory", directory=str(tmp_path))
    first = source.snapshot()
    assert first is not None
    assert source.snapshot(first.position) is None
    write(tmp_path / "1.csv", "csv", [{"a": 1, "b": "changed"}])
    assert rows_of(source.snapshot(first.position)) == [(1, "changed", "1.csv")]
    (tmp_path / "1.csv").unlink()
    second = opened(
        "directory", first.schema.columns, directory=str(tmp_path), format="csv"
    ).snapshot(first.position)
    assert rows_of(second) == []


def test_types_and_formats(tmp_path: Path) -> None:
    with refused("bad-option", "format"):
        opened("directory", directory=str(tmp_path)).snapshot()
    with refused("bad-option", "columns are not known"):
        opened("directory", directory=str(tmp_path), format="csv").snapshot()
    given = {"directory": str(tmp_path), "format": "csv", "types": ("a integer", "b text")}
    assert table_of(opened("directory", **given).snapshot()).num_rows == 0
    (tmp_path / "1.dat").write_text("a,b\n1,007\n")
    assert rows_of(opened("directory", **given).snapshot()) == [(1, "007", "1.dat")]
    found = opened("directory", directory=str(tmp_path), format="csv").snapshot()
    assert types_of(found) == {"a": "int64", "b": "int64", "_file": "string"}
    with refused("bad-option", "types", "nothing"):
        opened(
            "directory", directory=str(tmp_path), format="csv", types=("nothing text",)
        ).snapshot()


def test_a_bad_first_file_does_not_hide_the_columns(tmp_path: Path) -> None:
    (tmp_path / "1.parquet").write_text("broken")
    write(tmp_path / "2.parquet", "parquet", [{"a": 2, "b": "y"}])
    found = opened("directory", directory=str(tmp_path)).snapshot()
    assert rows_of(found) == [(2, "y", "2.parquet")]
    assert found is not None
    assert list(found.set_aside) == ["1.parquet"]
