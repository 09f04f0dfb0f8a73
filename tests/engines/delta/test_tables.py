"""A lake table is a multiset with versions, and Delta's tools agree."""

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.engines.delta.delta_log import change_feed
from harken.engines.delta.tables import LakeTable, Mark
from harken.errors import IntegrityError, StorageError
from tests.generators.multisets import (
    COLUMNS,
    Row,
    difference,
    rows_of,
    schema_of,
    to_arrow,
    to_counter,
    weights,
)

PAIRS = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def pairs(*rows: tuple[int | None, int | None]) -> pa.Table:
    return to_arrow(rows, PAIRS)


NONE = pairs()


def make(path: Path, *rows: Row, bag: bool = False, rows_per_file: int = 4) -> LakeTable:
    table = LakeTable.create(path, PAIRS, key=["k"], bag=bag, rows_per_file=rows_per_file)
    table.commit(pairs(*rows), NONE, expected_version=0)
    return table


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[str], int, bool, int, list[tuple[list[Row], ...]]]:
    """Columns, how many of them are the key, whether a bag, rows per file, and commits."""
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True))
    key = draw(st.integers(1, len(names)))
    bag = draw(st.booleans())
    model: Counter[Row] = Counter()
    commits = []
    pool = draw(st.lists(rows_of(names), min_size=1, max_size=12, unique=True))
    for _ in range(draw(st.integers(1, 5))):
        minus = draw(st.lists(st.sampled_from(sorted(model, key=repr)))) if model else []
        minus = list((Counter(minus) & model).elements())
        rest = model - Counter(minus)
        plus = draw(st.lists(st.sampled_from(pool), max_size=12, unique=not bag))
        if not bag:
            plus = [row for row in plus if row not in rest]
        model = rest + Counter(plus)
        commits.append((plus, minus))
    return names, key, bag, draw(st.sampled_from([1, 2, 5, 100])), commits


@given(histories(), st.data())
@settings(max_examples=40)
def test_a_table_is_a_multiset_with_versions(history: tuple, data: st.DataObject) -> None:
    check_history(history, data)


@pytest.mark.nightly
@given(histories(), st.data())
def test_a_table_is_a_multiset_with_versions_all_night(history: tuple, data: st.DataObject) -> None:
    check_history(history, data)


def check_history(history: tuple, data: st.DataObject) -> None:
    names, key, bag, rows_per_file, commits = history
    schema = schema_of(names)
    with TemporaryDirectory() as directory:
        table = LakeTable.create(
            directory, schema, key=names[:key], bag=bag, rows_per_file=rows_per_file
        )
        versions = {0: Counter[Row]()}
        version = 0
        for number, (plus, minus) in enumerate(commits):
            model = versions[version] - Counter(minus) + Counter(plus)
            before = version
            for _ in range(data.draw(st.sampled_from([1, 1, 2]))):  # a crash, and again
                version = table.commit(
                    to_arrow(plus, schema),
                    to_arrow(minus, schema),
                    expected_version=before,
                    mark=Mark("test", number),
                )
            versions[version] = model
            if data.draw(st.booleans()):
                version = table.compact()
                versions[version] = model
        table = LakeTable.open(directory)
        for at, model in versions.items():
            assert to_counter(table.rows(at)) == model
            assert table.snapshot(at).rows == model.total()
        a, b = (data.draw(st.sampled_from(sorted(versions))) for _ in "ab")
        assert weights(table.changes(a, b)) == difference(versions[b], versions[a])
        sought = data.draw(rows_of(names[:key]))
        assert to_counter(table.rows(version, to_arrow([sought], schema_of(names[:key])))) == {
            row: n for row, n in versions[version].items() if row[:key] == sought
        }
        assert_delta_agrees(directory, versions)
        keep = data.draw(st.sampled_from(sorted(versions)))
        table.remove_old_versions(keep)
        assert weights(table.changes(keep, version)) == difference(
            versions[version], versions[keep]
        )
        for at in range(keep, version + 1):
            assert to_counter(table.rows(at)) == versions[at]


def assert_delta_agrees(directory: str, versions: dict[int, Counter[Row]]) -> None:
    """What other Delta readers see, by way of delta-rs: each version, and the change feed."""
    for at, model in versions.items():
        assert to_counter(pa.table(DeltaTable(directory, version=at).scan())) == model
    newest = max(versions)
    if newest:
        delta = DeltaTable(directory)
        feed = change_feed(delta, 0, newest, pa.schema(delta.schema().to_arrow()))
        assert weights(feed) == difference(versions[newest], Counter())


def test_only_the_files_with_the_key_are_rewritten(tmp_path: Path) -> None:
    table = make(tmp_path, *((k, 0) for k in range(40)))
    before = {file.path for file in table.files(1)}
    version = table.commit(pairs((17, 1)), pairs((17, 0)), expected_version=1)
    after = {file.path for file in table.files(version)}
    assert len(before) == len(after) == 10
    assert len(before - after) == len(after - before) == 1


def test_a_seek_is_given_only_the_files_that_can_hold_the_key(tmp_path: Path) -> None:
    table = make(tmp_path, *((k, 0) for k in range(40)))
    assert len(table.files(keys=pa.table({"k": [17]}))) == 1
    assert len(table.files(keys=pa.table({"k": [3, 17, 18, 99]}))) == 2
    assert table.files(keys=pa.table({"k": [99]})) == []
    assert table.files(keys=pa.table({"k": pa.array([None], pa.int64())})) == []


def test_a_growing_key_fills_files_and_leaves_full_ones_alone(tmp_path: Path) -> None:
    table = make(tmp_path)
    full = set()
    for k in range(12):
        table.commit(pairs((k, 0)), NONE, expected_version=k)
        assert full <= {file.path for file in table.files()}
        full = {file.path for file in table.files() if file.rows == 4}
    assert [file.rows for file in table.files()] == [4, 4, 4]


def test_files_are_sorted_with_bounds_and_bloom_filters(tmp_path: Path) -> None:
    table = make(tmp_path, (9, -9), (2, -2), (5, -5), (None, None), rows_per_file=100)
    (file,) = table.files()
    assert pq.read_table(file.uri)["k"].to_pylist() == [2, 5, 9, None]
    column = pq.ParquetFile(file.uri).metadata.row_group(0).column(0)
    assert (column.statistics.min, column.statistics.max) == (2, 9)
    assert column.bloom_filter_length > 0
    log = (tmp_path / "_delta_log" / f"{1:020}.json").read_text("utf-8").splitlines()
    (entry,) = [json.loads(line)["add"] for line in log if '"add"' in line]
    assert json.loads(entry["stats"]) == {
        "numRecords": 4,
        "minValues": {"k": 2, "v": -9},
        "maxValues": {"k": 9, "v": -2},
        "nullCount": {"k": 1, "v": 1},
    }


def test_rows_that_cancel_make_no_version(tmp_path: Path) -> None:
    table = make(tmp_path, (1, 1))
    assert table.commit(pairs((2, 2)), pairs((2, 2)), expected_version=1) == 1


def test_a_bag_gives_up_one_of_several_copies(tmp_path: Path) -> None:
    table = make(tmp_path, *[(1, 1)] * 9, bag=True)
    version = table.commit(NONE, pairs((1, 1), (1, 1)), expected_version=1)
    assert to_counter(table.rows(version)) == {(1, 1): 7}
    assert weights(table.changes(1, version)) == {(1, 1): -2}


def test_a_set_refuses_a_second_copy_and_any_table_a_missing_row(tmp_path: Path) -> None:
    table = make(tmp_path, (1, 1))
    with pytest.raises(IntegrityError, match=r"\(k=1, v=1\) is there already") as caught:
        table.commit(pairs((1, 1)), NONE, expected_version=1)
    assert caught.value.code == "row-exists"
    with pytest.raises(IntegrityError, match=r"\(k=1, v=2\) is not there") as caught:
        table.commit(NONE, pairs((1, 2)), expected_version=1)
    assert caught.value.code == "no-such-row"
    assert table.version == 1


def test_of_two_writers_one_gets_an_error(tmp_path: Path) -> None:
    first = make(tmp_path, (1, 1))
    second = LakeTable.open(tmp_path)
    first.commit(pairs((2, 2)), NONE, expected_version=1)
    with pytest.raises(IntegrityError, match="version 2, not 1") as caught:
        second.commit(pairs((3, 3)), NONE, expected_version=1)
    assert caught.value.code == "lake-conflict"
    assert to_counter(second.rows()) == {(1, 1): 1, (2, 2): 1}


def test_a_race_past_the_check_is_lost_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make(tmp_path, (1, 1))
    second = LakeTable.open(tmp_path)
    write = second.add_file

    def slow_write(rows: pa.Table) -> object:
        first.commit(pairs((2, 2)), NONE, expected_version=1)
        return write(rows)

    monkeypatch.setattr(second, "add_file", slow_write)
    with pytest.raises(IntegrityError, match="someone else") as caught:
        second.commit(pairs((3, 3)), NONE, expected_version=1)
    assert caught.value.code == "lake-conflict"
    assert to_counter(second.rows()) == {(1, 1): 1, (2, 2): 1}


def test_a_repeated_commit_finds_its_version_though_others_followed(tmp_path: Path) -> None:
    table = make(tmp_path, (1, 1))
    mark = Mark("pipeline", 7)
    made = table.commit(pairs((2, 2)), NONE, expected_version=1, mark=mark)
    table.commit(pairs((3, 3)), NONE, expected_version=made, mark=Mark("pipeline", 8))
    again = LakeTable.open(tmp_path)
    assert again.commit(pairs((2, 2)), NONE, expected_version=1, mark=mark) == made
    assert again.version == made + 1


def test_changes_outlive_a_vacuum_of_their_files(tmp_path: Path) -> None:
    table = make(tmp_path, (1, 1))
    table.commit(pairs((1, 2)), pairs((1, 1)), expected_version=1)
    for path in (tmp_path / "_harken").iterdir():
        path.unlink()
    assert weights(table.changes(1, 2)) == {(1, 2): 1, (1, 1): -1}


def test_rows_that_others_append_are_rows_and_changes(tmp_path: Path) -> None:
    table = make(tmp_path, (1, 1), (5, 5))
    write_deltalake(str(tmp_path), pairs((3, 3), (None, 4)), mode="append")
    assert weights(table.changes(1, table.version)) == {(3, 3): 1, (None, 4): 1}
    version = table.commit(pairs((3, 4)), pairs((3, 3)), expected_version=2)
    assert to_counter(table.rows(version)) == {(1, 1): 1, (5, 5): 1, (3, 4): 1, (None, 4): 1}


def test_compacting_merges_what_is_small_or_overlaps(tmp_path: Path) -> None:
    table = make(tmp_path, *((k, 0) for k in range(0, 40, 2)))
    for k in (3, 33):
        write_deltalake(str(tmp_path), pairs((k, 0)), mode="append")
    rows = to_counter(table.rows())
    before = table.version
    version = table.compact()
    assert to_counter(table.rows(version)) == rows
    assert weights(table.changes(before, version)) == {}
    assert len(table.files(keys=pa.table({"k": [3]}))) == 1
    assert table.compact() == version


def test_old_versions_go_and_a_crash_leaves_nothing_for_ever(tmp_path: Path) -> None:
    table = make(tmp_path, *((k, 0) for k in range(8)))
    version = table.commit(pairs((1, 1)), pairs((1, 0)), expected_version=1)
    abandoned = tmp_path / "part-abandoned.parquet"
    abandoned.write_bytes(b"")
    table.remove_old_versions(version)
    assert abandoned.exists()
    later = datetime.fromtimestamp(abandoned.stat().st_mtime + 1, UTC)
    table.remove_old_versions(version, abandoned_before=later)
    present = {path.name for path in tmp_path.glob("*.parquet")}
    assert present == {file.path for file in table.files(version)}
    with pytest.raises(StorageError) as caught:
        table.remove_old_versions(version + 1)
    assert caught.value.code == "no-such-version"


def test_a_path_may_hold_blanks_and_letters_of_any_script(tmp_path: Path) -> None:
    table = make(tmp_path / "a b#é'日", (1, 1))
    again = LakeTable.open(table.path)
    assert all(Path(file.uri).exists() for file in again.files())
    assert to_counter(again.rows()) == {(1, 1): 1}


@pytest.mark.parametrize("name", ["a%20b", "a*", "a?", "a[b]", "a{b}", "a\\b"])
def test_a_path_that_spark_or_delta_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    """Spark counts the rows of n files n times if their path is a pattern."""
    for use in (make, LakeTable.open):
        with pytest.raises(StorageError) as caught:
            use(tmp_path / name)
        assert caught.value.code == "bad-path"
    assert not (tmp_path / name).exists()


def test_a_table_may_be_named_by_its_address(tmp_path: Path) -> None:
    table = make(tmp_path, (1, 1))
    by_address = LakeTable.open(tmp_path.as_uri())
    by_address.commit(pairs((2, 2)), NONE, expected_version=1)
    assert to_counter(table.rows()) == {(1, 1): 1, (2, 2): 1}


def test_what_is_not_a_lake_table_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        LakeTable.open(tmp_path / "nothing")
    assert caught.value.code == "no-lake-table"
    write_deltalake(str(tmp_path / "theirs"), pairs((1, 1)))
    with pytest.raises(StorageError) as caught:
        LakeTable.open(tmp_path / "theirs")
    assert caught.value.code == "not-a-lake-table"


def test_a_version_that_never_was(tmp_path: Path) -> None:
    with pytest.raises(StorageError) as caught:
        make(tmp_path, (1, 1)).files(9)
    assert caught.value.code == "no-such-version"


def test_a_large_change_of_a_wide_table(tmp_path: Path) -> None:
    """More files than are kept in memory at once."""
    count = 1_000
    table = make(tmp_path, *((k, 0) for k in range(count)))
    old = pairs(*((k, 0) for k in range(0, count, 3)))
    new = old.set_column(1, "v", pa.array(np.ones(old.num_rows, np.int64)))
    version = table.commit(new, old, expected_version=1)
    assert to_counter(table.rows(version)) == {(k, int(k % 3 == 0)): 1 for k in range(count)}
