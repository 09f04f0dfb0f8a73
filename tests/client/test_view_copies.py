"""A client's copy of a view follows its changes, and refuses one that cannot be right."""

import pytest

from harken.client.view_copies import Copy
from harken.database.changes import Change
from harken.errors import ValueFault


def test_copies_of_a_row_are_counted() -> None:
    copy = Copy()
    copy.apply(Change("v", [(1,), (1,), (2,)], [], 1, fresh=True))
    copy.apply(Change("v", [], [(1,)], 2))
    assert sorted(copy) == [(1,), (2,)]
    assert (len(copy), copy.position, (1,) in copy, (3,) in copy) == (2, 2, True, False)


def test_a_fresh_change_starts_over() -> None:
    copy = Copy()
    copy.apply(Change("v", [(1,)], [], 1, fresh=True))
    copy.apply(Change("v", [(2,)], [], 7, fresh=True))
    assert (list(copy), copy.position) == ([(2,)], 7)


def test_a_row_that_is_not_there_cannot_go() -> None:
    copy = Copy()
    copy.apply(Change("v", [(1,)], [], 1, fresh=True))
    with pytest.raises(ValueFault, match="not in the copy"):
        copy.apply(Change("v", [], [(2,)], 2))
