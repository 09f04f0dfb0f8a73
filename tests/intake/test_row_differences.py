"""before − minus + plus = after, for any bags of rows."""

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from harken.intake.row_differences import as_rows, difference, first_repeated, row_numbers

ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(0, 3),
        st.none() | st.sampled_from(["", "a", "b"]),
        st.none() | st.sampled_from([0.0, 1.5]),
    ),
    max_size=12,
)
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])


def table(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.table(
        [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA.names
    )


@given(ROWS, ROWS)
def test_the_difference_leads_from_one_bag_to_the_other(
    before: list[tuple[object, ...]], after: list[tuple[object, ...]]
) -> None:
    gone, come = (Counter(as_rows(each)) for each in difference(table(before), table(after)))
    assert gone == Counter(before) - Counter(after)
    assert come == Counter(after) - Counter(before)


@given(ROWS)
def test_rows_have_equal_numbers_exactly_if_they_are_equal(rows: list[tuple[object, ...]]) -> None:
    numbers = row_numbers(table(rows)).to_pylist()
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            assert (numbers[i] == numbers[j]) == (one == other)
    repeated = first_repeated(table(rows))
    assert (repeated is None) == (len(set(rows)) == len(rows))
    assert repeated is None or Counter(rows)[rows[repeated]] > 1


def test_minus_zero_is_zero() -> None:
    gone, come = difference(pa.table({"x": [0.0]}), pa.table({"x": [-0.0]}))
    assert (gone.num_rows, come.num_rows) == (0, 0)


def test_chunks_do_not_matter() -> None:
    whole = pa.table({"x": ["a", "b", "a"]})
    cut = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 2)])
    assert all(not each.num_rows for each in difference(whole, cut))
