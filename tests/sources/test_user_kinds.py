"""Kinds of sources of the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import harken
from harken.sources.kinds import OF_USERS, outside_kind
from tests.harness.outside import opened, refused, rows_of, types_of
from tests.harness.outside_models import MirrorModel
from tests.harness.outside_models import opened as opened_kind


@pytest.fixture(autouse=True)
def no_kind_stays() -> Iterator[None]:
    before = dict(OF_USERS)
    yield
    OF_USERS.clear()
    OF_USERS.update(before)


def test_a_function_that_yields_rows() -> None:
    @harken.source_kind("prices", key="item")
    def prices(place: str, most: int = 2, tags: list[str] | None = None) -> Iterator[Any]:
        for number in range(most):
            yield {"item": f"{place} {number}", "price": number + 0.5}

    source = opened("prices", place="Oslo")
    snapshot = source.snapshot()
    assert snapshot is not None
    assert snapshot.schema.key == ("item",)
    assert types_of(snapshot) == {"item": "string", "price": "double"}
    assert rows_of(snapshot) == [("Oslo 0", 0.5), ("Oslo 1", 1.5)]
    assert [each.type for each in outside_kind("prices").options] == ["text", "integer", "names"]
    assert prices("x") is not None  # the function is as it was


def test_rows_are_dictionaries_tuples_or_arrow() -> None:
    @harken.source_kind("tuples", columns={"a": "integer", "b": "decimal(8, 2)"})
    def tuples() -> Any:
        return [(1, "1.5"), {"a": 2}]

    assert types_of(opened("tuples").snapshot()) == {"a": "int64", "b": "decimal128(8, 2)"}

    @harken.source_kind("arrow")
    def arrow() -> Any:
        yield pa.table({"a": [1, 2]})
        yield pa.record_batch({"a": [3]})

    assert rows_of(opened("arrow").snapshot()) == [(1,), (2,), (3,)]


class Journal:
    """It knows what changed; a number is a position."""

    entries: list[tuple[list[Any], list[Any]]]

    def __init__(self, name: str = "j") -> None:
        self.name = name

    def position(self) -> int:
        return len(self.entries)

    def rows(self) -> Iterator[Any]:
        found: dict[int, Any] = {}
        for minus, plus in self.entries:
            for row in minus:
                del found[row["id"]]
            found.update({row["id"]: row for row in plus})
        yield from found.values()

    def changes(self, since: str) -> Iterator[Any]:
        for number, (minus, plus) in list(enumerate(self.entries, 1))[int(since) :]:
            yield number, minus, plus


def test_a_class_that_knows_its_changes() -> None:
    harken.source_kind("journal", key="id", columns={"id": "integer", "n": "text"})(Journal)
    Journal.entries = [([], [{"id": 1, "n": "a"}])]
    found = opened_kind("journal", {}, name="j")
    assert found.followed is not None
    mirror = MirrorModel([found.table])
    mirror.start(found.followed)
    Journal.entries += [([], [{"id": 2, "n": "b"}]), ([{"id": 1}], [{"id": 2, "n": "c"}])]
    mirror.take_all(found.followed)
    assert sorted(mirror.rows["j"]) == [(2, "c")]
    assert len(mirror.taken) == 2
    found.followed.close()
    polled = opened_kind("journal", {}, "poll").polled
    assert polled is not None
    first = polled.snapshot()
    assert first is not None
    assert polled.snapshot(first.position) is None


def test_what_is_wrong_is_said() -> None:
    @harken.source_kind("broken")
    def broken(how: str) -> Any:
        if how == "raise":
            raise ValueError("no such page")
        yield {"text": "text", "number": 7}[how]

    with refused("source-down", "broken failed", "no such page"):
        opened("broken", how="raise").snapshot()
    with refused("bad-option", "columns of the kind broken"):
        opened("broken", how="text").snapshot()

    @harken.source_kind("narrow", columns={"a": "integer"}, key="b")
    def narrow(row: str) -> Any:
        yield {"long": (1, 2), "other": {"c": 1}, "misfit": ("x",), "fine": (1,)}[row]

    for row, code, words in (
        ("long", "source-changed", "2 values for 1 columns"),
        ("other", "source-changed", "has the column c"),
        ("misfit", "bad-option", "column a"),
        ("fine", "source-changed", "no column b"),
    ):
        with refused(code, words):
            opened("narrow", row=row).snapshot()
    with refused("bad-option", "can be no option"):
        harken.source_kind("many")(lambda *places: None)


def test_a_kind_of_ones_own_reaches_views() -> None:
    quotes = {"tea": 1, "rum": 9}

    @harken.source_kind("quotes", key="item")
    def read() -> Iterator[Any]:
        for item, price in quotes.items():
            yield {"item": item, "price": price}

    with harken.connect(":memory:") as db:
        db.sql("CREATE SOURCE quote USING quotes")
        db.sql("CREATE VIEW cheap AS SELECT item FROM quote WHERE price < 5")
        changes = db.monitor("cheap")
        quotes["rum"] = 2
        db.sql("REFRESH SOURCE quote")
        (change,) = changes.changes()
        assert change.plus == [("rum",)]
