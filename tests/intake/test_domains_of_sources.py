"""A domain over sources: members that are asked answer at once, and as their mirrors would."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from harken.errors import SourceFault
from harken.sources.kinds import OF_USERS, register_kind
from tests.harness.toy_sources import Clock, ToyKind, ToyPolled


@pytest.fixture
def asked(toy: ToyKind, clock: Clock) -> harken.Database:
    text, year = pa.string(), pa.int64()
    toy.table("old", [("tea", 1990)], word=text, year=year)
    toy.table("new", [("rum", 2020)], word=text, year=year)
    toy.table("page", [("ink",)], word=text)
    db = harken.connect(":memory:", clock=clock)
    for name in ("old", "new", "page"):
        db.source(name, "toy", table=name, mirror=False)
    db.sql("CREATE DOMAIN words OVER old, new, page")
    return db


def shown(db: harken.Database, query: str) -> list[str]:
    return [line for (line,) in db.sql(f"EXPLAIN {query}")[-1]]


def test_a_member_that_cannot_answer_is_not_asked(asked: harken.Database, toy: ToyKind) -> None:
    query = "SELECT word FROM words WHERE year > 2000"
    toy.tables["page"].fault = harken.HarkenError("it was asked")
    assert asked.sql(query).rows == [("rum",)]
    assert "page is not asked: it has no year" in shown(asked, query)
    of_one = "SELECT word FROM words WHERE _member = 'old'"
    assert asked.sql(of_one).rows == [("tea",)]
    assert "new is not asked: its rows are those of new" in shown(asked, of_one)
    missing = "SELECT word FROM words WHERE year IS NULL"
    toy.tables["page"].fault = None
    assert asked.sql(missing).rows == [("ink",)]


def test_members_are_asked_at_the_same_time(
    asked: harken.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(3, timeout=30)
    read = ToyPolled.snapshot

    def snapshot(self: ToyPolled, since: str | None = None) -> object:
        together.wait()  # breaks, if one is asked after another
        return read(self, since)

    monkeypatch.setattr(ToyPolled, "snapshot", snapshot)
    assert len(asked.sql("SELECT * FROM words").rows) == 3
    asked.sql("CREATE VIEW v AS SELECT word FROM words")
    assert len(asked.sql("SELECT * FROM v").rows) == 3


def test_a_member_that_is_away_is_an_error_or_skipped(asked: harken.Database, toy: ToyKind) -> None:
    toy.tables["old"].fault = SourceFault("old is away", code="source-down")
    with pytest.raises(harken.HarkenError, match="old is away"):
        asked.sql("SELECT * FROM words")
    asked.sql("ALTER DOMAIN words UNAVAILABLE skip")
    asked.sql("CREATE VIEW v AS SELECT word FROM words")
    for query in ("SELECT word FROM words", "SELECT word FROM v"):
        assert sorted(asked.sql(query).rows) == [("ink",), ("rum",)]
    with pytest.raises(harken.HarkenError, match="old is away"):
        asked.sql("SELECT * FROM old")
    assert "old is away" in dict(asked.sql("DESCRIBE DOMAIN words").rows)["member old"]
    toy.tables["old"].fault = None
    asked.sql("ALTER SOURCE new PAUSE")
    assert sorted(asked.sql("SELECT word FROM words").rows) == [("ink",), ("tea",)]
    assert "old is away" not in str(asked.sql("DESCRIBE DOMAIN words").rows)


# --- laws ------------------------------------------------------------------------------------

VALUES = st.sampled_from([1, 2, 3, None])
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=3)
TESTS = st.sampled_from(
    ["x = 1", "x > 1", "y <> 2", "y IS NULL", "x IN (1, 3)", "_member <> 'a'", "y IS NOT NULL"]
)


def _database(clock: Clock, toy: ToyKind, rows: list[list[tuple[object, ...]]], mirror: bool):  # type: ignore[no-untyped-def]
    db = harken.connect(":memory:", clock=clock)
    for name, columns, found in zip("abc", (("x", "y"), ("p", "q"), ("x",)), rows, strict=True):
        cut = [row[: len(columns)] for row in found]
        toy.table(name, cut, **dict.fromkeys(columns, pa.int64()))
        db.source(name, "toy", table=name, mirror=mirror)
    db.sql("CREATE DOMAIN d OVER a, b (p AS x, q AS y), c")
    return db


@pytest.fixture(scope="module")
def kind() -> Iterator[ToyKind]:
    made = ToyKind()
    register_kind(made)
    yield made
    OF_USERS.pop(made.name)


@settings(max_examples=8)
@given(
    rows=st.lists(ROWS, min_size=3, max_size=3),
    tests=st.lists(TESTS, min_size=1, max_size=3),
    glue=st.sampled_from([" AND ", " OR "]),
)
def test_asked_members_give_the_rows_of_mirrored_ones(
    rows: list[list[tuple[object, ...]]], tests: list[str], glue: str, kind: ToyKind
) -> None:
    query = f"SELECT * FROM d WHERE {glue.join(tests)}"
    found = []
    for mirror in (True, False):
        with _database(Clock(), kind, rows, mirror) as db:
            found.append(Counter(db.sql(query).rows))
    assert found[0] == found[1]


@settings(max_examples=8)
@given(rows=st.lists(st.lists(ROWS, min_size=3, max_size=3), min_size=2, max_size=3))
def test_watching_a_domain_is_recomputing_it(
    rows: list[list[list[tuple[object, ...]]]], kind: ToyKind
) -> None:
    with _database(Clock(), kind, rows[0], mirror=True) as db:
        for name in "abc":
            db.sources.alter(name, {"suspect_share": 1})
        seen = Counter(db.sql("SELECT * FROM d").rows)
        watched = db.monitor("d")
        for later in rows[1:]:
            for name, found in zip("abc", later, strict=True):
                width = len(kind.tables[name].columns)
                kind.tables[name].rows = [row[:width] for row in found]
            db.step()
            for change in watched.changes():
                seen.update(change.plus)
                seen.subtract(change.minus)
            assert +seen == Counter(db.sql("SELECT * FROM d").rows)
