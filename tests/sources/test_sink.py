"""What a batch of a stream does to a table, without a stream."""

from pathlib import Path

import pyarrow as pa
import pytest

from harken.engines.delta.tables import LakeTable
from harken.errors import HarkenError, IntegrityError
from harken.sources.stream import Mode, Sink, feed_name
from tests.generators.multisets import Row, to_arrow, to_counter

EVENTS = pa.schema([("k", pa.int64()), ("v", pa.string()), ("at", pa.int64())])


def events(*rows: Row) -> pa.Table:
    return to_arrow(rows, EVENTS)


def make(path: Path, *, bag: bool = False) -> LakeTable:
    return LakeTable.create(path, EVENTS, key=["k"], bag=bag)


def sink(table: LakeTable, mode: Mode, latest_by: str | None = None) -> Sink:
    return Sink(table.path, "feed", mode, latest_by)


def test_a_batch_that_is_repeated_counts_once(tmp_path: Path) -> None:
    table = make(tmp_path, bag=True)
    into = sink(table, Mode.APPEND)
    first = into.write(events((1, "a", 1), (1, "a", 1)), 0)
    assert into.write(events((1, "a", 1), (1, "a", 1)), 0) == first
    second = into.write(events((1, "a", 1)), 1)
    assert into.write(events((1, "a", 1), (1, "a", 1)), 0).version == first.version
    assert table.version == second.version == 2
    assert to_counter(table.rows()) == {(1, "a", 1): 3}


def test_another_feed_is_not_taken_for_the_first(tmp_path: Path) -> None:
    table = make(tmp_path, bag=True)
    for feed in ("one", "two"):
        Sink(table.path, feed, Mode.APPEND).write(events((1, "a", 1)), 0)
    assert to_counter(table.rows()) == {(1, "a", 1): 2}


def test_what_a_set_has_is_not_added(tmp_path: Path) -> None:
    table = make(tmp_path)
    into = sink(table, Mode.APPEND)
    into.write(events((1, "a", 1), (1, "a", 1), (None, None, None)), 0)
    done = into.write(events((1, "a", 1), (1, "b", 1), (None, None, None)), 1)
    assert done.rows == 3
    assert to_counter(table.rows()) == {(1, "a", 1): 1, (1, "b", 1): 1, (None, None, None): 1}
    assert into.write(events((1, "a", 1)), 2).version == done.version  # no change, no version


@pytest.mark.parametrize("bag", [False, True])
def test_an_upsert_replaces_the_rows_of_its_keys(tmp_path: Path, bag: bool) -> None:
    table = make(tmp_path, bag=bag)
    into = sink(table, Mode.UPSERT)
    into.write(events((1, "a", 1), (2, "b", 1), (None, "n", 1)), 0)
    into.write(events((2, "c", 0), (2, "c", 0), (3, "d", 1), (None, "m", None)), 1)
    assert to_counter(table.rows()) == {
        (1, "a", 1): 1,
        (2, "c", 0): 1,
        (3, "d", 1): 1,
        (None, "m", None): 1,
    }


def test_two_rows_of_a_key_need_a_latest_one(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(IntegrityError, match="k=2") as caught:
        sink(table, Mode.UPSERT).write(events((2, "a", 1), (2, "b", 2), (3, "c", 1)), 0)
    assert "latest_by" in (caught.value.hint or "")
    assert table.version == 0


def test_the_latest_row_wins_in_the_batch_and_against_the_table(tmp_path: Path) -> None:
    table = make(tmp_path)
    into = sink(table, Mode.UPSERT, latest_by="at")
    into.write(events((1, "old", 1), (1, "new", 5), (2, "b", None), (3, "kept", 9)), 0)
    into.write(events((1, "late", 3), (2, "c", 0), (3, "same age", 9), (4, "d", None)), 1)
    assert to_counter(table.rows()) == {
        (1, "new", 5): 1,
        (2, "c", 0): 1,
        (3, "same age", 9): 1,
        (4, "d", None): 1,
    }
    with pytest.raises(IntegrityError, match="k=4"):
        into.write(events((4, "x", 7), (4, "y", 7)), 2)
    into.write(events((4, "x", None), (1, "x", 4), (1, "y", 4)), 2)  # a tie of rows that lose
    assert to_counter(table.rows(keys=pa.table({"k": [1, 4]}))) == {
        (1, "new", 5): 1,
        (4, "x", None): 1,
    }


def test_a_batch_is_applied_on_top_of_concurrent_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path)
    sink(table, Mode.UPSERT).write(events((1, "a", 1)), 0)
    commit = LakeTable.commit
    others = [events((1, "b", 2)), events((1, "c", 3))]

    def late(self: LakeTable, *rows: pa.Table, **options: object) -> int:
        if others:
            new, other = others.pop(0), LakeTable.open(tmp_path)
            commit(other, new, other.rows(), expected_version=other.version)
        return commit(self, *rows, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(LakeTable, "commit", late)
    done = sink(table, Mode.UPSERT).write(events((1, "d", 4)), 1)
    assert done.version == 4
    assert to_counter(table.rows()) == {(1, "d", 4): 1}


def test_a_batch_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path)
    wrong = pa.table({"k": ["one"], "v": ["x"], "at": [1]})
    with pytest.raises(HarkenError, match="does not fit") as caught:
        sink(table, Mode.APPEND).write(wrong, 0)
    assert caught.value.code == "bad-value"


def test_a_feed_keeps_its_name_with_its_checkpoint(tmp_path: Path) -> None:
    first = feed_name(tmp_path / "one")
    assert first == feed_name(tmp_path / "one") != feed_name(tmp_path / "two")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["harken-feed.json"]
