"""A lake table is a multiset with versions, and Delta's tools agree."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from harken.engines.spark.delta import change_feed
from harken.engines.spark.tables import LakeTable, Mark
from harken.errors import IntegrityError, StorageError

from .multisets import COLUMNS, Row, difference, rows_of, schema_of, to_arrow, to_counter, weights

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


@settings(max_examples=150)
@given(histories(), st.data())
def test_a_table_is_a_multiset_with_versions(history: tuple, data: st.DataObject) -> None:
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
