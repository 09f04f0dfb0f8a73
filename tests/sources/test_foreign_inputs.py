"""Inputs that others write, and what they may do to them between two steps.

Whatever it is: the answers are those of the version that was taken in, or there is an error of ours
that says what is wrong with which table; and once it is mended, the next step goes on.
"""

from __future__ import annotations

import datetime
import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harken
from harken import HarkenError


@pytest.fixture
def db(tmp_path: Path) -> Iterator[harken.Database]:
    with harken.connect(str(tmp_path / "shop.db")) as opened:
        yield opened


@pytest.fixture
def stock(tmp_path: Path) -> Path:
    path = tmp_path / "stock"
    write(path, [1, 2], [10, 20])
    return path


def write(
    path: Path, keys: list[int], values: list[Any], mode: Any = "append", **more: Any
) -> None:
    write_deltalake(str(path), pa.table({"k": keys, "v": values}), mode=mode, **more)


def rows(db: harken.Database, name: str = "f") -> list[tuple[Any, ...]]:
    query = f"select k, v for each integer k, integer v where {name}(k) = v;"
    return sorted(db.amosql(query).rows)


def refused(code: str, work: Callable[[], object]) -> HarkenError:
    with pytest.raises(HarkenError) as caught:
        work()
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


# --- Delta tables --------------------------------------------------------------------------


@pytest.mark.parametrize("appended", [0, 1, 2])
def test_a_table_made_again_is_another_one(
    db: harken.Database, stock: Path, appended: int, tmp_path: Path
) -> None:
    """Its versions have the same numbers, or more, or fewer, and say nothing of the old ones."""
    write(stock, [3], [30])
    db.lake("f", str(stock), key=["k"])
    changes = db.monitor("f")
    db.commit()
    shutil.rmtree(stock)
    write(stock, [7], [70])
    for number in range(appended):
        write(stock, [8 + number], [80])
    error = refused("input-changed", db.step)
    assert "deleted and another was made" in error.message
    assert changes.changes() == []
    refused("input-changed", lambda: rows(db))
    db.close()
    with harken.connect(str(tmp_path / "shop.db")) as again:
        refused("input-changed", lambda: rows(again))
        refused("input-changed", again.step)
        again.amosql("delete function f;")
        again.lake("f", str(stock), key=["k"])
        assert rows(again)[0] == (7, 70)


def test_a_table_from_an_earlier_version_on(
    db: harken.Database, stock: Path, tmp_path: Path
) -> None:
    write(stock, [3], [30])
    write(stock, [1, 3], [11, 30], mode="overwrite")
    db.lake("f", str(stock), key=["k"], version=1)
    changes = db.monitor("f")
    db.commit()
    assert rows(db) == [(1, 10), (2, 20), (3, 30)]
    assert db.step().taken == {"f": 3}
    (change,) = changes.changes()
    assert sorted(change.plus) == [(1, 11)]
    assert sorted(change.minus) == [(1, 10), (2, 20)]
    assert rows(db) == [(1, 11), (3, 30)]
    refused("no-such-version", lambda: db.lake("g", str(stock), key=["k"], version=9))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("k,v\n4,7\n")
    refused("bad-value", lambda: db.lake("g", str(tmp_path / "in"), key=["k"], version=0))


def test_a_table_overwritten_is_the_same_one(db: harken.Database, stock: Path) -> None:
    db.lake("f", str(stock), key=["k"])
    write(stock, [2, 3], [21, 30], mode="overwrite")
    assert db.step().taken == {"f": 4}
    assert rows(db) == [(2, 21), (3, 30)]


def test_a_checkpoint_may_take_the_place_of_the_log(db: harken.Database, stock: Path) -> None:
    write(stock, [3], [30])
    db.lake("f", str(stock), key=["k"])
    DeltaTable(str(stock)).create_checkpoint()
    (stock / "_delta_log" / f"{0:020}.json").unlink()
    assert rows(db) == [(1, 10), (2, 20), (3, 30)]
    write(stock, [4], [40])
    assert db.step().taken == {"f": 1}
    write(stock, [5], [50])
    DeltaTable(str(stock)).create_checkpoint()
    for version in (1, 2):
        (stock / "_delta_log" / f"{version:020}.json").unlink()
    assert db.step().taken == {"f": 1}
    assert rows(db) == [(n, 10 * n) for n in range(1, 6)]


def test_a_log_that_was_shortened(db: harken.Database, stock: Path, tmp_path: Path) -> None:
    db.lake("f", str(stock), key=["k"])
    db.close()
    for number in (3, 4, 5):
        write(stock, [number], [10 * number])
    DeltaTable(str(stock)).create_checkpoint()
    for version in (0, 1, 2):
        (stock / "_delta_log" / f"{version:020}.json").unlink()
    with harken.connect(str(tmp_path / "shop.db")) as again:
        for work in (again.step, lambda: rows(again)):
            error = refused("no-such-version", work)
            assert "has no version 0" in error.message


@pytest.mark.parametrize("watched", [False, True])
def test_a_second_row_with_a_key_is_an_error(
    db: harken.Database, stock: Path, watched: bool
) -> None:
    db.lake("f", str(stock), key=["k"])
    if watched:
        db.monitor("f")
    db.commit()
    write(stock, [2, 3], [22, 30])
    error = refused("not-unique", db.step)
    assert error.message == "the key of f is not unique: there are several rows with k = 2"
    assert rows(db) == [(1, 10), (2, 20)]
    write(stock, [1, 2, 3], [10, 22, 30], mode="overwrite")
    assert db.step().taken == {"f": 3}
    assert rows(db) == [(1, 10), (2, 22), (3, 30)]


def test_two_new_rows_with_one_key_are_an_error(db: harken.Database, stock: Path) -> None:
    db.lake("f", str(stock), key=["k"])
    write(stock, [3, 3], [30, 31])
    refused("not-unique", db.step)
    DeltaTable(str(stock)).delete("v = 31")
    assert db.step().taken == {"f": 1}


def test_a_column_that_is_gone(db: harken.Database, stock: Path, tmp_path: Path) -> None:
    db.lake("f", str(stock), key=["k"])
    db.commit()
    table = pa.table({"k": [1]})
    write_deltalake(str(stock), table, mode="overwrite", schema_mode="overwrite")
    error = refused("input-changed", db.step)
    assert "the column v is gone" in error.message
    assert rows(db) == [(1, 10), (2, 20)]
    db.close()
    with harken.connect(str(tmp_path / "shop.db")) as again:
        assert rows(again) == [(1, 10), (2, 20)]
        refused("input-changed", again.step)
        write(stock, [1, 2], [11, 20], mode="overwrite", schema_mode="overwrite")
        assert again.step().taken == {"f": 2}
        assert rows(again) == [(1, 11), (2, 20)]


def test_a_column_of_another_type(db: harken.Database, stock: Path) -> None:
    db.lake("f", str(stock), key=["k"])
    write(stock, [1], ["ten"], mode="overwrite", schema_mode="overwrite")
    error = refused("input-changed", db.step)
    assert "was int64 and is string now" in error.message
    assert rows(db) == [(1, 10), (2, 20)]


def test_a_column_more_is_no_matter(db: harken.Database, stock: Path) -> None:
    db.lake("f", str(stock), key=["k"])
    more = pa.table({"w": ["x"], "v": [30], "k": [3]})
    write_deltalake(str(stock), more, mode="append", schema_mode="merge")
    assert db.step().taken == {"f": 1}
    assert rows(db) == [(1, 10), (2, 20), (3, 30)]


def test_a_version_that_was_vacuumed(db: harken.Database, stock: Path) -> None:
    db.lake("f", str(stock), key=["k"])
    write(stock, [3], [30], mode="overwrite")
    table = DeltaTable(str(stock))
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    for work in (db.step, lambda: rows(db)):
        error = refused("no-such-version", work)
        assert "of version 0" in error.message


def test_a_table_put_back_to_an_earlier_state(
    db: harken.Database, stock: Path, tmp_path: Path
) -> None:
    """Its version has the same number, and the table is still the one that was registered."""
    db.lake("f", str(stock), key=["k"])
    db.commit()
    shutil.copytree(stock, tmp_path / "backup")
    write(stock, [3], [30])
    db.step()
    shutil.rmtree(stock)
    shutil.copytree(tmp_path / "backup", stock)
    refused("input-changed", db.step)
    for number in (4, 5):
        write(stock, [number], [40])
        error = refused("input-changed", db.step)
        assert "put back to an earlier state" in error.message
    db.close()
    with harken.connect(str(tmp_path / "shop.db")) as again:
        refused("input-changed", again.step)
        refused("input-changed", lambda: rows(again))


def test_a_file_of_the_newest_version_that_is_missing(db: harken.Database, stock: Path) -> None:
    db.lake("f", str(stock), key=["k"])
    known = set(stock.glob("*.parquet"))
    write(stock, [3], [30])
    (new,) = set(stock.glob("*.parquet")) - known
    new.rename(stock.parent / "away")
    refused("no-such-version", db.step)
    (stock.parent / "away").rename(new)
    assert db.step().taken == {"f": 1}


def test_a_table_with_a_missing_file_is_not_registered(db: harken.Database, stock: Path) -> None:
    next(stock.glob("*.parquet")).unlink()
    refused("no-such-version", lambda: db.lake("f", str(stock), key=["k"]))


# --- values --------------------------------------------------------------------------------

NOON = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
LATE = datetime.datetime(2026, 1, 1, 1, 2, 3, 456789, tzinfo=datetime.UTC)


@pytest.mark.parametrize("zone", ["UTC", None])
def test_times_that_the_log_cuts_off(db: harken.Database, tmp_path: Path, zone: str | None) -> None:
    """Delta's bounds are in milliseconds, and the rows are not."""

    def add(value: int) -> None:
        at = pa.array([LATE], pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
        write_deltalake(str(tmp_path / "t"), pa.table({"at": at, "v": [value]}), mode="append")

    add(1)
    db.lake("f", str(tmp_path / "t"), key=["at"])
    assert db.function("f")[LATE] == 1
    add(2)
    refused("not-unique", db.step)
    refused("not-unique", lambda: db.lake("g", str(tmp_path / "t"), key=["at"]))


def test_both_zeros_are_one_key(db: harken.Database, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"k": [0.0], "v": [1]}))
    db.lake("f", path, key=["k"])
    write_deltalake(path, pa.table({"k": [-0.0], "v": [2]}), mode="append")
    refused("not-unique", db.step)


ODD = [1.5, math.nan, math.inf, -math.inf, None]


def test_numbers_that_are_none_say_nothing(db: harken.Database, tmp_path: Path) -> None:
    path = tmp_path / "odd"
    write(path, [1, 2, 3, 4, 5], ODD)
    with pytest.warns(harken.LakeWarning, match="4 of 5 rows are left out"):
        db.lake("f", str(path), key=["k"])
    question = "select k, v for each integer k, number v where f(k) = v;"
    assert db.amosql(question).rows == [(1, 1.5)]
    write(path, [6, 7], [math.nan, 2.5])
    with pytest.warns(harken.LakeWarning, match="1 of 2 new rows is left out"):
        db.step()
    assert sorted(db.amosql(question).rows) == [(1, 1.5), (7, 2.5)]
    write(path, [2], [2.0])  # the other row of this key says nothing
    db.step()
    assert (2, 2.0) in db.amosql(question).rows


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (
            pa.array([NOON], pa.timestamp("us", "Europe/Stockholm")),
            NOON,
        ),
        (pa.array([NOON], pa.timestamp("ns", "UTC")), NOON),
        (pa.array([2**32 - 1], pa.uint32()), 2**32 - 1),
        (pa.array([1.5], pa.float16()), 1.5),
        (pa.array(["a"], pa.large_string()), "a"),
    ],
    ids=["zone", "nanoseconds", "unsigned", "half", "large"],
)
def test_types_that_delta_does_not_have(
    db: harken.Database, tmp_path: Path, column: Any, shown: Any
) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"k": [1], "v": column}), tmp_path / "in" / "a.parquet")
    db.lake("f", str(tmp_path / "in"), key=["k"])
    assert db.amosql("select f(1);").rows == [(shown,)]


def test_a_type_that_nothing_holds_can_be_left_out(db: harken.Database, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    times = pa.array([datetime.time(12)], pa.time64("us"))
    pq.write_table(pa.table({"k": [1], "v": [2], "t": times}), tmp_path / "in" / "a.parquet")
    error = refused("type-mismatch", lambda: db.lake("f", str(tmp_path / "in"), key=["k"]))
    assert "the column t has the type time64" in error.message
    db.lake("f", str(tmp_path / "in"), key=["k"], columns=["v"])
    assert rows(db) == [(1, 2)]


# --- directories ---------------------------------------------------------------------------


def test_a_file_with_a_key_that_is_there(db: harken.Database, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("k,v\n4,7\n")
    db.lake("f", str(tmp_path / "in"), key=["k"])
    second = tmp_path / "in" / "b.csv"
    second.write_text("k,v\n4,8\n5,1\n")
    refused("not-unique", db.step)
    assert rows(db) == [(4, 7)]
    second.write_text("k,v\n5,1\n")
    assert db.step().taken == {"f": 1}
    assert rows(db) == [(4, 7), (5, 1)]


def test_a_file_that_is_no_object_a_line(db: harken.Database, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k":1,"v":2}\n')
    db.lake("f", str(tmp_path / "in"), key=["k"])
    (tmp_path / "in" / "b.json").write_text("null\n")
    refused("bad-file", db.step)
    (tmp_path / "in" / "b.json").write_text('{"k":2,"v":3}\n')
    db.step()
    assert rows(db) == [(1, 2), (2, 3)]


def test_a_file_with_another_type(db: harken.Database, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"k": [1], "v": [2]}), tmp_path / "in" / "a.parquet")
    db.lake("f", str(tmp_path / "in"), key=["k"])
    pq.write_table(pa.table({"k": ["3"], "v": [5]}), tmp_path / "in" / "b.parquet")
    error = refused("bad-file", db.step)
    assert "the column k is string there, not int64" in error.message
    assert rows(db) == [(1, 2)]


def test_rows_that_came_are_counted(db: harken.Database, stock: Path) -> None:
    db.lake("f", str(stock), key=["k"], unique=False)
    write(stock, [7] * 5, [1] * 5)
    assert db.step().taken == {"f": 5}


# --- registering ---------------------------------------------------------------------------


def test_registering_again_with_something_else(db: harken.Database, stock: Path) -> None:
    db.lake("f", str(stock), key=["k"])
    db.lake("f", str(stock), key=["k"])
    db.lake("f", str(stock), key=["k"], columns=["v"])
    for key, options in ((["v"], {}), (["k"], {"unique": False}), (["k"], {"columns": []})):
        error = refused("exists", lambda: db.lake("f", str(stock), key=key, **options))  # noqa: B023
        assert "key=['k']" in str(error.hint)


def test_keys_and_names(db: harken.Database, stock: Path) -> None:
    refused("arity", lambda: db.lake("f", str(stock), key=["k", "k"]))
    refused("arity", lambda: db.lake("f", str(stock), key="k"))  # type: ignore[arg-type]
    refused("arity", lambda: db.lake("f", str(stock), key=["k"], columns=["v", "v"]))
    refused("arity", lambda: db.lake("f", pa.table({"k": [1], "K": [2]}), key=["k"]))
    refused("bad-value", lambda: db.lake("f", str(stock), key=["k"], format="csv"))
    refused("bad-value", lambda: db.lake("f", str(stock), key=["k"], schema={"k": "int"}))
    refused("bad-name", lambda: db.lake("f g", str(stock), key=["k"]))
    assert db.amosql("select 1;").rows == [(1,)]


# --- the law -------------------------------------------------------------------------------

OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["append", "overwrite", "delete", "step", "step", "reopen"]),
        st.lists(st.tuples(st.integers(0, 4), st.sampled_from([1, 2, None])), max_size=3),
    ),
    min_size=3,
    max_size=12,
)


@settings(max_examples=15, suppress_health_check=list(HealthCheck))
@given(operations=OPERATIONS, feed=st.booleans())
def test_whatever_others_do_a_step_is_all_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, operations: list[Any], feed: bool
) -> None:
    directory = tmp_path_factory.mktemp("law")
    table = directory / "t"
    with_feed = {"delta.enableChangeDataFeed": "true"} if feed else {}
    overwrite(table, [], with_feed)
    theirs: list[tuple[int, int | None]] = []
    ours: list[tuple[int, int | None]] = []
    nulls = Counter[tuple[int, int | None]]()
    db = harken.connect(str(directory / "shop.db"))
    db.lake("f", str(table), key=["k"])
    monitor = db.monitor("f", durable="m")
    db.commit()
    for operation, new in operations:
        if operation == "append":
            if new:
                write_deltalake(str(table), arrow(new), mode="append")
                theirs = theirs + new
        elif operation == "overwrite":
            overwrite(table, new, {})
            theirs = new
        elif operation == "delete":
            for k, _ in new:
                DeltaTable(str(table)).delete(f"k = {k}")
                theirs = [row for row in theirs if row[0] != k]
        elif operation == "reopen":
            db.close()
            db = harken.connect(str(directory / "shop.db"))
            monitor = db.monitor("f", durable="m")
        else:
            there = sorted(row for row in theirs if row[1] is not None)
            if len({k for k, _ in there}) < len(there):
                refused("not-unique", db.step)
            else:
                warned: list[str] = []
                db.step(warn=warned.append)
                before, nulls = nulls, Counter(row for row in theirs if row[1] is None)
                left_out = (nulls - before).total()
                assert [each.split(" of ")[0] for each in warned] == [f"f: {left_out}"] * (
                    left_out > 0
                )
                told = monitor.changes()
                monitor.acknowledge()
                plus = sorted(row for change in told for row in change.plus)
                minus = sorted(row for change in told for row in change.minus)
                assert plus == sorted(set(there) - set(ours))
                assert minus == sorted(set(ours) - set(there))
                ours = there
        assert rows(db) == ours
    db.close()


def overwrite(path: Path, given: list[Any], configuration: dict[str, str]) -> None:
    write_deltalake(str(path), arrow(given), mode="overwrite", configuration=configuration)


def arrow(given: list[Any]) -> pa.Table:
    columns = list(zip(*given, strict=True)) or [(), ()]
    return pa.table([pa.array(column, pa.int64()) for column in columns], names=["k", "v"])


# --- logs that others wrote ----------------------------------------------------------------


def last_entry(path: Path) -> Path:
    return sorted((path / "_delta_log").glob("*.json"))[-1]


def set_statistics(path: Path, value: Any) -> None:
    actions = [json.loads(line) for line in last_entry(path).read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["stats"] = value
    last_entry(path).write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize("value", [None, '{"numRecords":-1}', "{}"])
def test_files_without_statistics_are_counted(
    db: harken.Database, stock: Path, value: str | None
) -> None:
    """Statistics are optional in Delta."""
    set_statistics(stock, value)
    db.lake("f", str(stock), key=["k"])
    assert rows(db) == [(1, 10), (2, 20)]
    write(stock, [3], [30])
    set_statistics(stock, value)
    assert db.step().taken == {"f": 1}
    assert rows(db) == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize("value", ["junk", "{", "[]", "5", 7, '{"numRecords":"x"}'])
def test_broken_statistics_are_reported(db: harken.Database, stock: Path, value: Any) -> None:
    set_statistics(stock, value)
    refused("lake-damaged", lambda: db.lake("f", str(stock), key=["k"]))


@pytest.mark.parametrize("entry", ["", "{}\n", '{"add":null}\n'])
def test_an_entry_of_the_log_without_a_commit(db: harken.Database, stock: Path, entry: str) -> None:
    db.lake("f", str(stock), key=["k"])
    number = int(last_entry(stock).stem) + 1
    (stock / "_delta_log" / f"{number:020}.json").write_text(entry)
    assert db.step().taken == {"f": 0}
    assert rows(db) == [(1, 10), (2, 20)]
