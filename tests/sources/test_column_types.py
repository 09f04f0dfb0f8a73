"""The type of a column depends on its values alone, and holds each of them."""

from __future__ import annotations

import datetime
import doctest
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import SourceFault
from harken.sources import column_types, number_texts, typed_rows
from harken.sources.column_types import Numeral, converter, infer
from harken.sources.outside import OutsideSchema
from harken.sources.typed_rows import TypedRows

NUMERALS = st.one_of(
    st.integers().map(str),
    st.integers(-(2**70), 2**70).map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: f"{d:f}"[:300]),
    st.sampled_from(["1e5", "1.0", "-0", "0.1", "1.50", "1e400", "-9223372036854775808", "9" * 18]),
)
TEXTS = st.one_of(
    st.sampled_from(
        ["007", "1", "-5", "2.50", "true", "False", "2026-05-01", "2026-02-30", "calm", "-", "1e5"]
    ),
    st.sampled_from(["2026-05-01T10:00:00Z", "2026-05-01 10:00", "2026-05-01T10:00:00.5+02:00"]),
    NUMERALS,
    st.text(max_size=5),
)
VALUES = st.one_of(st.none(), TEXTS, NUMERALS.map(Numeral), st.booleans())


@pytest.mark.parametrize("module", [column_types, typed_rows, number_texts])
def test_the_examples_are_true(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


@given(st.lists(VALUES, max_size=8), st.randoms(), st.booleans())
def test_neither_order_nor_count_matters(values: list[Any], random: Any, textual: bool) -> None:
    found = infer(values, textual=textual)
    again = [*values, *values]
    random.shuffle(again)
    assert infer(again, textual=textual) == found


@given(st.lists(VALUES, max_size=8), st.booleans())
def test_each_value_fits_its_type_exactly(values: list[Any], textual: bool) -> None:
    type_ = infer(values, textual=textual)
    convert = converter(type_)
    found = [None if value is None else convert(value) for value in values]
    array = pa.array(found, type_)
    for value, kept in zip(values, array.to_pylist(), strict=True):
        if isinstance(kept, int | float | Decimal) and not isinstance(kept, bool):
            shortest = Decimal(repr(kept)) if isinstance(kept, float) else Decimal(kept)
            assert shortest == Decimal(value)
        elif isinstance(kept, str):
            assert kept == column_types.text_of(value)


@given(st.lists(VALUES, min_size=1, max_size=6), st.lists(VALUES, max_size=6), st.booleans())
def test_a_column_of_the_mirror_keeps_its_type(
    first: list[Any], later: list[Any], textual: bool
) -> None:
    table = TypedRows.of(None, textual=textual).table(["c"], [[value] for value in first])
    known = OutsideSchema(table.schema)
    typed, rows = TypedRows.of(known, textual=textual), [[value] for value in later]
    if infer(later, textual=textual) == table.schema.field("c").type:
        assert typed.table(["c"], rows).schema == table.schema
        return
    with suppress(SourceFault):
        assert typed.table(["c"], rows).schema == table.schema


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([], pa.string()),
        ([None], pa.string()),
        ([Numeral("1"), Numeral("2.5")], pa.float64()),
        ([Numeral("9007199254740993")], pa.int64()),
        ([Numeral("9007199254740993"), Numeral("0.5")], pa.decimal128(17, 1)),
        ([Numeral("0.1234567890123456")], pa.float64()),
        ([Numeral("0.12345678901234567")], pa.decimal128(18, 17)),
        ([Numeral("0.30000000000000001665")], pa.string()),
        ([Numeral("18446744073709551616")], pa.string()),
        ([True, Numeral("1")], pa.string()),
        (["2026-05-01", "2026-05-01T10:00:00Z"], pa.timestamp("us")),
        (["2026-05-01", "2026-02-30"], pa.string()),
        ([datetime.datetime(2026, 5, 1, 10, tzinfo=datetime.UTC)], pa.timestamp("us")),
        ([Decimal("1.50"), 1], pa.decimal128(3, 2)),
        ([1, 2.5], pa.float64()),
        ([{"a": 1}], pa.string()),
    ],
    ids=str,
)
def test_types(values: list[Any], type_: pa.DataType) -> None:
    assert infer(values) == type_
