"""The law of inputs that are bags: what is computed from a Delta table fits its rows after a step.

Others write the table with delta-rs, with and without a change feed. Rows are there several times,
and an update makes some of them equal to others.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import harken
from harken import Copy

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())])
GROUPED = "SELECT s, count(*) AS n, sum(a) AS t, min(a) AS m FROM l GROUP BY s"
ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("xy")), min_size=3, max_size=8)
PREDICATES = st.sampled_from(["s = 'x'", "a = 1", "a > 1", "a < 2 AND s = 'y'"])
ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("update"), PREDICATES),
        st.tuples(st.just("update"), PREDICATES),
        st.tuples(st.just("delete"), PREDICATES),
        st.tuples(st.just("merge"), ROWS),
        st.tuples(st.just("append"), ROWS),
        st.tuples(st.just("overwrite"), ROWS),
        st.tuples(st.just("replace"), ROWS),
        st.tuples(st.just("step"), st.none()),
    ),
    min_size=1,
    max_size=6,
)
relaxed = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)


def arrow(rows: list[tuple[int, str]]) -> pa.Table:
    return pa.table(dict(zip("as", zip(*rows, strict=True), strict=True)), schema=SCHEMA)


def act_on(path: str, name: str, what: Any) -> None:
    delta = DeltaTable(path)
    match name:
        case "update":
            delta.update(predicate=what, updates={"a": "a + 1"})
        case "delete":
            delta.delete(what)
        case "merge":
            source = arrow(list({a: (a, s) for a, s in what}.values()))
            (
                delta.merge(source, "l.a = new.a", source_alias="new", target_alias="l")
                .when_matched_update(updates={"a": "l.a + 1"})
                .when_not_matched_insert_all()
                .execute()
            )
        case "append" | "overwrite":
            write_deltalake(path, arrow(what), mode=name)
        case "replace":
            new = arrow([(a, "x") for a, _ in what])
            write_deltalake(path, new, mode="overwrite", predicate="s = 'x'")


def play(directory: Path, rows: list[tuple[int, str]], feed: bool, acts: list[Any]) -> None:
    path = str(directory / "l")
    configuration = {"delta.enableChangeDataFeed": str(feed).lower()}
    write_deltalake(path, arrow(rows), configuration=configuration)
    with harken.connect(str(directory / "x.db")) as db:
        db.sql(f"CREATE TABLE l USING lake LOCATION '{path}'")
        db.sql(f"CREATE MATERIALIZED VIEW g AS {GROUPED}; CREATE VIEW v AS SELECT a, s FROM l")
        sub, copy = db.monitor("v"), Copy()
        copy.apply(sub.snapshot())
        for name, what in [*acts, ("step", None)]:
            if name != "step":
                act_on(path, name, what)
                continue
            db.step()
            for change in sub.changes():
                copy.apply(change)
            there = DeltaTable(path).to_pyarrow_table().to_pylist()
            assert Counter(copy) == Counter((row["a"], row["s"]) for row in there)
            assert Counter(db.sql("SELECT * FROM g").rows) == grouped(there)


def grouped(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    groups: dict[str, list[int]] = {}
    for row in rows:
        groups.setdefault(row["s"], []).append(row["a"])
    return Counter((s, len(a), sum(a), min(a)) for s, a in groups.items())


def test_an_update_that_makes_rows_equal_to_others(tmp_path: Path) -> None:
    play(tmp_path, [(0, "x"), (0, "x"), (1, "x")], True, [("update", "s = 'x'")])


@pytest.mark.timeout(600)
@settings(max_examples=25, suppress_health_check=relaxed)
@given(rows=ROWS, feed=st.sampled_from([True, True, True, False]), acts=ACTS)
def test_what_is_computed_fits_the_table(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[int, str]],
    feed: bool,
    acts: list[Any],
) -> None:
    play(tmp_path_factory.mktemp("feed"), rows, feed, acts)
