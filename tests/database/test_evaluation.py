"""Stored rows become values of Python by the types of their columns."""

from harken.database.evaluation import decode_rows
from harken.values.types import BOOLEAN


def test_a_null_stays_one_after_rows_that_could_have_none() -> None:
    assert decode_rows([(1,)], [BOOLEAN]) == [(True,)]
    assert decode_rows([(1,), (None,)], [BOOLEAN.or_null()]) == [(True,), (None,)]
    assert decode_rows([(0,)], [BOOLEAN]) == [(False,)]
