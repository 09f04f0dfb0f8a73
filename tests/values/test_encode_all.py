"""A column of values is encoded all at once as each of its values is encoded alone."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import HarkenError
from harken.values.encoding import encode_all, encoder
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, TEXT, Type

ANYTHING = st.one_of(
    st.none(),
    st.integers(-(2**63) - 2, 2**63 + 1),
    st.floats(),
    st.booleans(),
    st.text(st.characters(codec=None), max_size=3),
    st.dates(),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
)
OF_ONE_KIND = st.one_of(
    st.lists(st.integers(-(2**63) - 2, 2**63 + 1)),
    st.lists(st.floats()),
    st.lists(st.text(st.characters(codec=None))),
    st.lists(st.one_of(st.none(), st.integers())),
    st.lists(st.one_of(st.none(), st.text())),
)


@given(
    st.one_of(OF_ONE_KIND, st.lists(ANYTHING)),
    st.sampled_from([INTEGER, NUMBER, TEXT, BOOLEAN, DATE]),
    st.booleans(),
)
def test_a_column_is_encoded_as_its_values_are(
    values: list[Any], type_: Type, nullable: bool
) -> None:
    wanted = type_.or_null(nullable)
    assert outcome(lambda: list(encode_all(values, wanted))) == outcome(
        lambda: list(map(encoder(wanted), values))
    )


def outcome(run: Any) -> tuple[str, Any]:
    try:
        return "values", [(type(value), value) for value in run()]
    except HarkenError as error:
        return "error", (type(error), error.code, error.message)


@pytest.mark.parametrize("wrong", [2**63, True, "1", 1.5, decimal.Decimal(1), datetime.date.max])
def test_one_wrong_value_among_many_is_found(wrong: Any) -> None:
    with pytest.raises(HarkenError):
        encode_all([*range(1000), wrong], INTEGER)
