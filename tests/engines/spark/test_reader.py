"""Lake tables through Spark: the rows that Arrow reads, and few of the others looked at."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harken.engines.delta.data_files import ROWS_PER_GROUP
from harken.engines.delta.tables import LakeTable
from harken.engines.spark import keyfilter
from harken.engines.spark import reader as reading
from harken.engines.spark.metrics import metrics
from harken.engines.spark.reader import LakeReader
from harken.engines.spark.spark_session import has_delta, is_connect
from harken.errors import StorageError
from harken.sources.delta_table import DeltaInput
from tests.generators.multisets import COLUMNS, Row, rows_of, schema_of, to_arrow, to_counter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS = pa.schema([("k", pa.int64()), ("v", pa.int64())])
ROWS = 1_000_000
PAGE = 20_000


@pytest.fixture(scope="module")
def reader(spark: SparkSession) -> LakeReader:
    return LakeReader(spark)


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> LakeTable:
    """Even keys, so that odd ones are inside the bounds of a file that does not hold them."""
    table = LakeTable.create(tmp_path_factory.mktemp("million"), PAIRS, key=["k"])
    numbers = np.arange(ROWS, dtype=np.int64)
    rows = pa.table({"k": numbers * 2, "v": numbers}, schema=PAIRS)
    table.commit(rows, rows.slice(0, 0), expected_version=0)
    return table


def sought(reader: LakeReader, table: LakeTable, keys: Any) -> tuple[list[int], Any]:
    frame = reader.frame(table, keys=pa.array(keys, pa.int64()))
    rows = reader.collect(frame, table.schema)
    return sorted(rows["k"].to_pylist()), metrics(frame)


def test_one_key_opens_one_file_and_a_page(reader: LakeReader, million: LakeTable) -> None:
    found, read = sought(reader, million, [1_000_000])
    assert found == [1_000_000]
    assert read.files == 1
    assert 0 < read.rows <= PAGE


def test_a_key_that_is_not_there_is_ruled_out_by_the_bloom_filter(
    reader: LakeReader, million: LakeTable
) -> None:
    found, read = sought(reader, million, [1_000_001])
    assert found == []
    assert (read.files, read.rows) == (1, 0)
    found, read = sought(reader, million, [-5, 2 * ROWS])
    assert (found, read.scans) == ([], 0)


def test_twenty_keys_open_their_pages(reader: LakeReader, million: LakeTable) -> None:
    keys = list(range(0, 2 * ROWS, ROWS // 10))
    found, read = sought(reader, million, keys)
    assert found == keys
    assert read.files == len(million.files())
    assert read.rows <= 20 * PAGE


def test_a_thousand_keys_together_open_their_pages(reader: LakeReader, million: LakeTable) -> None:
    keys = [*range(100_000, 101_000, 2), *range(1_900_000, 1_901_000, 2)]
    found, read = sought(reader, million, keys)
    assert found == keys
    assert read.files == 2
    assert read.rows <= 4 * PAGE  # each half may lie in two pages


def test_a_thousand_keys_in_one_file_leave_the_others_alone(
    reader: LakeReader, million: LakeTable
) -> None:
    keys = list(range(600_000, 600_000 + 100 * 1_000, 100))
    found, read = sought(reader, million, keys)
    assert found == keys
    assert read.files == 1
    assert read.rows <= 100 * 1_000 + 2 * ROWS_PER_GROUP  # the row groups that the keys lie in


def test_a_thousand_keys_all_over_read_nearly_all(reader: LakeReader, million: LakeTable) -> None:
    keys = list(range(0, 2 * ROWS, 2 * ROWS // 1_000))
    found, read = sought(reader, million, keys)
    assert found == keys
    assert read.rows <= ROWS


def test_more_keys_than_a_text_should_hold(reader: LakeReader, million: LakeTable) -> None:
    keys = list(range(400_000, 400_000 + 20_000))
    found, read = sought(reader, million, keys)
    assert found == [key for key in keys if key % 2 == 0]
    assert read.files <= 2
    assert read.rows <= 4 * PAGE


def test_a_whole_version_is_one_frame(reader: LakeReader, million: LakeTable) -> None:
    frame = reader.frame(million)
    assert reader.frame(million, 1) is frame
    counted = frame.groupBy().count()
    assert reader.collect(counted).to_pylist() == [{"count": ROWS}]
    assert metrics(counted).files == len(million.files())
    reader.forget(million, before=1)
    assert reader.frame(million) is frame
    reader.forget(million)
    assert reader.frame(million) is not frame
    assert reader.collect(reader.frame(million, 0), PAIRS).num_rows == 0


@st.composite
def contents(draw: st.DrawFn) -> tuple[list[str], int, list[Row], list[Row]]:
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4, unique=True))
    key = draw(st.integers(1, len(names)))
    rows = draw(st.lists(rows_of(names), max_size=30))
    near = st.sampled_from([row[:key] for row in rows]) if rows else rows_of(names[:key])
    keys = draw(st.lists(near | rows_of(names[:key]), max_size=30))
    return names, key, rows, keys


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(contents(), st.sampled_from([5, reading.MOST_LITERALS]))
def test_spark_reads_what_arrow_reads(
    reader: LakeReader, drawn: tuple[list[str], int, list[Row], list[Row]], most: int
) -> None:
    names, key, rows, keys = drawn
    schema = schema_of(names)
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "MOST_LITERALS", most)
        table = LakeTable.create(directory, schema, key=names[:key], bag=True, rows_per_file=4)
        version = table.commit(to_arrow(rows, schema), schema.empty_table(), expected_version=0)
        read = reader.collect(reader.frame(table), schema)
        assert to_counter(read) == to_counter(table.rows())
        wanted = to_arrow(keys, schema_of(names[:key]))
        read = reader.collect(reader.frame(table, version, wanted), schema)
        assert to_counter(read) == to_counter(table.rows(version, wanted))
        fetched = reader.collect(reader.fetched(table, version, wanted), schema)
        assert to_counter(fetched) == to_counter(read)
        small = reader.collect(reader.small(to_arrow(rows, schema)), schema)
        assert to_counter(small) == to_counter(to_arrow(rows, schema))


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_many_keys_of_every_type(reader: LakeReader, tmp_path: Path, name: str) -> None:
    """Enough for an IN with ranges: each type is written out as a constant and compared."""
    schema = pa.schema([("k", COLUMNS[name][0]), ("n", pa.int64())])
    values = many_values(name)
    rows = [(value, number) for number, value in enumerate(values)]
    table = LakeTable.create(tmp_path, schema, key=["k"], bag=True, rows_per_file=40)
    table.commit(to_arrow(rows, schema), schema.empty_table(), expected_version=0)
    for keys in (values[:1], values[::9], values[::2], values):
        wanted = pa.array(keys, schema.field("k").type)
        read = reader.collect(reader.frame(table, keys=wanted), schema)
        assert to_counter(read) == to_counter(table.rows(keys=pa.table({"k": wanted})))


def many_values(name: str) -> list[Any]:
    numbers = pa.array(range(-150, 150), pa.int64())
    type_ = COLUMNS[name][0]
    if name == "truth":
        return [None, True, False]
    if name == "text":
        return [None, "", *(f"é\\'\"`${number}\n" for number in range(300))]
    if name == "bytes":
        return [None, b"", *(bytes([0, number % 256, 255]) for number in range(300))]
    if name == "exact":
        return [None, *(Decimal(number) / 4 for number in range(-150, 150))]
    if name == "day":
        return [None, *pc.multiply(numbers, 2_000).cast(pa.int32()).cast(type_).to_pylist()]
    if name in ("moment", "instant"):
        return [None, *pc.multiply(numbers, 10**14 + 1).cast(type_).to_pylist()]
    return [None, *numbers.cast(type_).to_pylist()]


def test_keys_of_two_columns(reader: LakeReader, tmp_path: Path) -> None:
    schema = pa.schema([("a`b", pa.string()), ("c d", pa.int32()), ("v", pa.int64())])
    texts = ["x", "it's", "back\\slash", "", None]
    rows = [(a, c, 1) for a in texts for c in [*range(10), None]]
    key = ["a`b", "c d"]
    table = LakeTable.create(tmp_path, schema, key=key, rows_per_file=10)
    table.commit(to_arrow(rows, schema), schema.empty_table(), expected_version=0)
    for count in (1, 5, 25, 55):
        wanted = to_arrow([row[:2] for row in rows[:count]], pa.schema(list(schema)[:2]))
        read = reader.collect(reader.frame(table, keys=wanted), schema)
        assert to_counter(read) == dict.fromkeys(rows[:count], 1)


def test_a_null_key_is_found_by_null_alone(reader: LakeReader, tmp_path: Path) -> None:
    rows = to_arrow([(1, 1), (None, 2), (2, 3), (None, 4)], PAIRS)
    table = LakeTable.create(tmp_path, PAIRS, key=["k"], rows_per_file=1)
    version = table.commit(rows, PAIRS.empty_table(), expected_version=0)
    assert to_counter(reader.collect(reader.frame(table), PAIRS)) == to_counter(rows)
    for read in (reader.frame, reader.fetched):
        found = reader.collect(read(table, version, pa.array([1, 2, 3], pa.int64())), PAIRS)
        assert to_counter(found) == {(1, 1): 1, (2, 3): 1}
        found = reader.collect(read(table, version, pa.array([None], pa.int64())), PAIRS)
        assert to_counter(found) == {(None, 2): 1, (None, 4): 1}


def test_rows_behind_an_empty_chunk_are_not_lost(reader: LakeReader) -> None:
    """Such tables come from files that could have held a key and did not."""
    rows = to_arrow([(k, k) for k in range(6)], PAIRS)
    nothing = PAIRS.empty_table()
    parts = [nothing, rows.slice(0, 2), nothing, nothing, rows.slice(2), nothing]
    holed = pa.concat_tables(parts)
    assert holed["k"].num_chunks > 1
    assert to_counter(reader.collect(reader.small(holed), PAIRS)) == to_counter(rows)


def test_a_path_with_signs_in_it(reader: LakeReader, tmp_path: Path) -> None:
    """No partition is seen in `k=5`, and no list in the comma."""
    table = LakeTable.create(tmp_path / "k=5, a b" / "é#1", PAIRS, key=["k"], rows_per_file=2)
    rows = to_arrow([(k, k) for k in range(6)], PAIRS)
    table.commit(rows, PAIRS.empty_table(), expected_version=0)
    assert to_counter(reader.collect(reader.frame(table), PAIRS)) == to_counter(rows)


@pytest.mark.parametrize("threshold", [2, 7, 32])
def test_many_files_are_read_once_each(spark: SparkSession, tmp_path: Path, threshold: int) -> None:
    table = LakeTable.create(tmp_path, PAIRS, key=["k"], rows_per_file=1)
    rows = to_arrow([(k, k) for k in range(40)], PAIRS)
    table.commit(rows, PAIRS.empty_table(), expected_version=0)
    reader = LakeReader(spark)
    reader.threshold = threshold
    frame = reader.frame(table)
    assert to_counter(reader.collect(frame, PAIRS)) == to_counter(rows)
    assert metrics(frame).files == 40
    frame = reader.frame(table, keys=pa.array(range(0, 40, 3)))
    assert len(reader.collect(frame)) == 14
    assert metrics(frame).files == 14


def test_old_versions_are_read_until_they_are_gone(reader: LakeReader, tmp_path: Path) -> None:
    table = LakeTable.create(tmp_path, PAIRS, key=["k"])
    one, two = to_arrow([(1, 1)], PAIRS), to_arrow([(1, 2)], PAIRS)
    first = table.commit(one, PAIRS.empty_table(), expected_version=0)
    second = table.commit(two, one, expected_version=first)
    old = reader.frame(table, first)
    assert to_counter(reader.collect(old, PAIRS)) == {(1, 1): 1}
    table.remove_old_versions(second)
    for read in (lambda: reader.collect(old), lambda: reader.frame(table, first, pa.array([1]))):
        with pytest.raises(StorageError) as caught:
            read()
        assert caught.value.code == "no-such-version"
    assert to_counter(reader.collect(reader.frame(table, second), PAIRS)) == {(1, 2): 1}


def test_a_table_of_others(reader: LakeReader, tmp_path: Path) -> None:
    plain, parted = (str(tmp_path / name) for name in ("plain", "parted"))
    rows = to_arrow([(k, k % 3) for k in range(12)], PAIRS)
    write_deltalake(plain, rows)
    write_deltalake(parted, rows, partition_by=["v"])
    for path in (plain, parted):
        table = DeltaInput(path, key=("k",))
        assert to_counter(reader.collect(reader.frame(table), PAIRS)) == to_counter(rows)
        for read in (reader.frame, reader.fetched):
            found = reader.collect(read(table, 0, pa.array([3, 4])), PAIRS)
            assert to_counter(found) == {(3, 0): 1, (4, 1): 1}


def test_arrow_types_that_spark_does_not_know(reader: LakeReader) -> None:
    rows = pa.table(
        {
            "a": pa.array(["x"], pa.large_string()),
            "b": pa.array(["x"], pa.string_view()),
            "c": pa.array([2**32 - 1], pa.uint32()),
            "d": pa.array(["x"]).dictionary_encode(),
        }
    )
    assert reader.collect(reader.small(rows)).to_pylist() == [
        {"a": "x", "b": "x", "c": 2**32 - 1, "d": "x"}
    ]


def test_a_delta_connector_is_recognised_by_its_extension(spark: SparkSession) -> None:
    """The connector itself is not available here; only the check for it is tested."""
    assert not has_delta(spark)
    assert not is_connect(spark)
    assert not LakeReader(spark).native


def test_few_ranges_cover_many_values() -> None:
    keys = pa.table({"k": pa.array([*range(1_000), *range(10**6, 10**6 + 1_000)])})
    shown = keyfilter.covering(keys)
    assert shown.count(" OR ") == keyfilter.MOST_RANGES - 1
    assert "`k` <= 999L" in shown
    assert "`k` >= 1000000L" in shown
