"""Inputs that others write: what they hold now, and the net change since a version."""

import json
import os
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from harken.errors import StorageError
from harken.sources.delta_table import DeltaInput
from harken.sources.directory import DirectoryInput
from tests.generators.multisets import to_arrow, to_counter, weights

PAIRS = pa.schema([("k", pa.int64()), ("v", pa.string())])

Pair = tuple[int | None, str | None]


def pairs(*rows: Pair) -> pa.Table:
    return to_arrow(rows, PAIRS)


@pytest.mark.parametrize("feed", ["true", "false"])
def test_changes_of_a_delta_table_with_and_without_its_feed(tmp_path: Path, feed: str) -> None:
    path = str(tmp_path)
    settings = {"delta.enableChangeDataFeed": feed}
    write_deltalake(path, pairs((1, "a"), (2, "b"), (2, "b")), configuration=settings)
    delta = DeltaTable(path)
    delta.update({"v": "'b'"}, predicate="k = 2")  # pre- and postimages that are equal
    delta.update({"v": "'c'"}, predicate="k = 1")
    delta.delete("k = 2")
    write_deltalake(path, pairs((None, None)), mode="append")
    table = DeltaInput(path, key=("k",))
    assert table.version == 4
    assert weights(table.changes(0, 1)) == {}
    assert weights(table.changes(0, 4)) == {
        (1, "a"): -1,
        (1, "c"): 1,
        (2, "b"): -2,
        (None, None): 1,
    }
    assert weights(table.changes(4, 2)) == {(2, "b"): 2, (None, None): -1}
    assert to_counter(table.rows(2)) == {(1, "c"): 1, (2, "b"): 2}


def test_a_partitioned_table_is_not_read_as_plain_files(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pairs((1, "a"), (2, "b")), partition_by=["v"])
    write_deltalake(str(tmp_path), pairs((3, "c")), mode="append")
    table = DeltaInput(tmp_path, key=("k",))
    assert not table.plain_files
    assert to_counter(table.rows()) == {(1, "a"): 1, (2, "b"): 1, (3, "c"): 1}
    assert weights(table.changes(0, 1)) == {(3, "c"): 1}


def test_a_seek_in_a_delta_table_is_given_few_files(tmp_path: Path) -> None:
    for start in (0, 10, 20):
        rows = pairs(*((k, "x") for k in range(start, start + 10)))
        write_deltalake(str(tmp_path), rows, mode="append")
    table = DeltaInput(tmp_path, key=("k",))
    assert table.plain_files
    assert len(table.files()) == 3
    assert len(table.files(keys=pa.table({"k": [12, 13]}))) == 1


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def write_csv(path: Path, *rows: Pair) -> None:
    shown = [f"{'' if k is None else k},{'' if v is None else quoted(v)}" for k, v in rows]
    path.write_text("\n".join(["k,v", *shown, ""]), "utf-8")


def write_json(path: Path, *rows: Pair) -> None:
    path.write_text("".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in rows), "utf-8")


def write_parquet(path: Path, *rows: Pair) -> None:
    pq.write_table(pairs(*rows), path)


WRITERS = {"csv": write_csv, "json": write_json, "parquet": write_parquet}


@pytest.mark.parametrize("format", sorted(WRITERS))
def test_a_directory_that_grows_shrinks_and_changes(tmp_path: Path, format: str) -> None:
    write = WRITERS[format]
    source = tmp_path / "in"
    (source / "deeper").mkdir(parents=True)
    table = DirectoryInput.create(source, tmp_path / "kept", PAIRS, key=["k"], format=format)
    assert table.capture() == 0

    write(source / "one", (1, "a"), (1, "a"), (None, ""), (2, None))
    write(source / "_unfinished", (9, "no"))
    first = table.capture()
    assert contents(table, first) == {(1, "a"): 2, (None, ""): 1, (2, None): 1}
    assert table.capture() == first

    write(source / "deeper" / "two", (1, "a"), (3, "é"))
    second = table.capture()
    assert weights(table.changes(first, second)) == {(1, "a"): 1, (3, "é"): 1}

    (source / "one").unlink()
    write(source / "deeper" / "two", (3, "é"), (4, "new"))
    os.utime(source / "deeper" / "two", ns=(1, 1))
    third = table.capture()
    assert contents(table, third) == {(3, "é"): 1, (4, "new"): 1}
    assert weights(table.changes(second, third)) == {
        (1, "a"): -3,
        (None, ""): -1,
        (2, None): -1,
        (4, "new"): 1,
    }


def contents(table: DirectoryInput, version: int) -> Counter[tuple[object, ...]]:
    return to_counter(table.table.rows(version).select(table.schema.names))


def test_a_file_that_only_moved_is_no_change(tmp_path: Path) -> None:
    table = csv_input(tmp_path)
    write_csv(tmp_path / "in" / "a", (1, "x"))
    first = table.capture()
    (tmp_path / "in" / "a").rename(tmp_path / "in" / "b")
    assert weights(table.changes(first, table.capture())) == {}


def test_a_file_without_rows_is_seen_once(tmp_path: Path) -> None:
    table = csv_input(tmp_path)
    write_csv(tmp_path / "in" / "a")
    assert table.capture() == table.capture() == 1


def test_what_was_captured_is_known_after_compaction_and_removal(tmp_path: Path) -> None:
    table = csv_input(tmp_path)
    for name in "abc":
        write_csv(tmp_path / "in" / name, (1, name))
        table.capture()
    version = table.table.compact()
    table.table.remove_old_versions(version)
    again = DirectoryInput(tmp_path / "in", table.table.open(table.table.path), format="csv")
    assert again.capture() == version


def test_a_bad_file_stops_the_capture_and_is_named(tmp_path: Path) -> None:
    table = csv_input(tmp_path)
    write_csv(tmp_path / "in" / "good", (1, "x"))
    (tmp_path / "in" / "bad").write_text("k,v\nfive,x\n", "utf-8")
    with pytest.raises(StorageError, match="bad as csv") as caught:
        table.capture()
    assert caught.value.code == "bad-file"
    assert table.table.version == 0


def test_a_format_that_no_one_knows(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="xml") as caught:
        DirectoryInput.create(tmp_path, tmp_path / "kept", PAIRS, key=["k"], format="xml")
    assert caught.value.code == "unknown-format"
    assert "csv, json, parquet" in (caught.value.hint or "")
    assert not (tmp_path / "kept").exists()


def csv_input(tmp_path: Path) -> DirectoryInput:
    (tmp_path / "in").mkdir()
    kept = tmp_path / "kept"
    return DirectoryInput.create(tmp_path / "in", kept, PAIRS, key=["k"], format="csv")
