"""Law: a value that goes out as JSON and comes back is the same value, also if JavaScript has read
it and written it in between, which knows only doubles."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harken.database.json_values import json_value, read_json, reader
from harken.database.objects import Object
from harken.database.results import to_json
from harken.values.types import BOOLEAN, DATE, INTEGER, NUMBER, TEXT, TIMESTAMP, Type, decimal_type

EDGES = (0, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))


def decimals(digits: tuple[int, int]) -> st.SearchStrategy[tuple[Type, Any]]:
    precision, scale = max(digits), min(digits)
    units = st.integers(-(10**precision) + 1, 10**precision - 1)
    values = units.map(lambda each: Decimal(each).scaleb(-scale))
    return values.map(lambda value: (decimal_type(precision, scale), value))


def of(type_: Type, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Type, Any]]:
    return values.map(lambda value: (type_, value))


typed_values = st.one_of(
    of(INTEGER, st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)),
    of(NUMBER, st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.integers(1, 18), st.integers(1, 18)).flatmap(decimals),
    of(TEXT, st.text() | st.integers(2**53, 2**63).map(str)),
    of(BOOLEAN, st.booleans()),
    of(DATE, st.dates()),
    of(TIMESTAMP, st.datetimes(timezones=st.just(datetime.UTC))),
    of(Type("item"), st.integers(1, 2**62).map(lambda oid: Object(oid, "item"))),
    of(INTEGER.or_null(), st.none()),
)


def through_javascript(text: str) -> str:
    """`JSON.stringify(JSON.parse(text))`, which has no integers."""
    return json.dumps(json.loads(text, parse_int=float), default=str)


@given(typed_values)
def test_a_value_comes_back(typed: tuple[Type, Any]) -> None:
    type_, value = typed
    written = to_json(json_value(value))
    for text in (written, through_javascript(written)):
        found = reader(type_)(whole(read_json(text), type_))
        assert found == value
        assert type(found) is type(value)


def whole(value: Any, type_: Type) -> Any:
    """Python writes the double 7.0 as it is, where JavaScript writes 7."""
    return int(value) if type_ == INTEGER and isinstance(value, Decimal) else value
