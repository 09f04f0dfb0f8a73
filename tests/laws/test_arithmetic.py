"""Law: arithmetic gives the exact value, or says that there is none.

Integers have 64 bits: what does not fit fails with `overflow`, and nothing is rounded on the way.
A division by zero fails with `division-by-zero`. A condition that does not hold shields what
stands beside it: `n != 0 and 10 / n > 1` never fails.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harken
from tests.models.meanings import Failure, Outcome, operate, tagged

EDGES = (0, 1, -1, 2, 3, -7, 2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)

integers = st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)
Tree = tuple[Any, ...]


def trees(operations: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """An integer, or an operation with trees below it."""
    return st.recursive(
        integers,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(operations), inner, inner),
            st.tuples(st.sampled_from(("negate", "abs")), inner),
        ),
        max_leaves=6,
    )


def written(tree: Any) -> str:
    match tree:
        case int():
            return f"({tree})"
        case ("negate", inner):
            return f"(-({written(inner)}))"
        case ("abs", inner):
            return f"abs({written(inner)})"
        case ("div" | "mod" as name, left, right):
            return f"{name}({written(left)}, {written(right)})"
        case (sign, left, right):
            return f"({written(left)} {sign} {written(right)})"
    raise ValueError(tree)


def signed(tree: Any) -> tuple[int, Any]:
    """`-(-(5))` is a constant with signs: only the whole has to fit."""
    sign = 1
    while isinstance(tree, tuple) and tree[0] == "negate":
        sign, tree = -sign, tree[1]
    return sign, tree


def value(tree: Any) -> Outcome:
    """In Python, whose integers do not overflow: only what an operation gives is checked."""
    sign, number = signed(tree)
    if isinstance(number, int):
        return operate("*", (sign, number))
    name, *inner = tree
    given: list[Any] = []
    for each in inner:
        outcome = value(each)
        if isinstance(outcome, Failure):
            return outcome
        given += outcome
    return operate(name, tuple(given))


def answer(db: harken.Database, text: str) -> Outcome | list[Any]:
    try:
        rows = db.amosql(text).rows
    except harken.EvaluationError as error:
        return Failure(error.code)
    return rows[0] if len(rows) == 1 else rows


@pytest.fixture(scope="module")
def db() -> harken.Database:
    opened = harken.connect()
    opened.amosql(
        "create function first() -> integer; create function second() -> integer;"
        "create function each() -> bag of integer;"
        "create function plus(integer a, integer b) -> integer as select a + b;"
    )
    return opened


@given(tree=trees(("+", "-", "*", "div", "mod")))
@settings(max_examples=400)
def test_of_constants(db: harken.Database, tree: Any) -> None:
    wanted = value(tree)
    found = answer(db, f"select {written(tree)}")
    # A product may overflow in the middle and a division by zero come later: either is right.
    if isinstance(wanted, Failure):
        assert isinstance(found, Failure), (written(tree), found)
    else:
        assert found == wanted, written(tree)


@given(sign=st.sampled_from(("+", "-", "*", "div", "mod")), left=integers, right=integers)
@settings(max_examples=400)
def test_of_stored_values(db: harken.Database, sign: str, left: int, right: int) -> None:
    db.amosql(f"set first() = {left}; set second() = {right}")
    text = f"{sign}(first(), second())" if sign in ("div", "mod") else f"first() {sign} second()"
    assert answer(db, f"select {text}") == operate(sign, (left, right))
    assert answer(db, f"count(select 1 where {text} = {text})") in (
        operate(sign, (left, right)),
        (1,),
    )


@given(left=integers, right=integers)
@settings(max_examples=200)
def test_an_unknown_summand_is_found_or_does_not_exist(
    db: harken.Database, left: int, right: int
) -> None:
    """`i + left = right` has one solution, unless that is no integer of 64 bits."""
    wanted = operate("-", (right, left))
    found = answer(db, f"select i for each integer i where i + {left} = {right}")
    assert found == wanted or (isinstance(wanted, Failure) and found == [])


@given(sign=st.sampled_from("+-*/"), left=st.floats(), right=st.floats())
@settings(max_examples=300)
def test_of_numbers(db: harken.Database, sign: str, left: float, right: float) -> None:
    """Numbers are finite: what grows past them fails."""
    if not (math.isfinite(left) and math.isfinite(right)):
        return
    wanted = operate(sign, (left, right))
    if isinstance(wanted, tuple) and not math.isfinite(wanted[0]):
        wanted = Failure("overflow")
    found = answer(db, f"select ({left!r}) {sign} ({right!r})")
    if isinstance(wanted, tuple) and isinstance(found, tuple):
        assert tagged(found) == tagged(wanted)
    else:
        assert found == wanted


@given(values=st.lists(integers, max_size=6))
@settings(max_examples=200)
def test_a_sum_fails_only_if_it_does_not_fit(db: harken.Database, values: list[int]) -> None:
    """In some order of the rows: a sum that leaves 64 bits on the way may fail, too."""
    db.function("each")[()] = values
    positive = sum(value for value in values if value > 0)
    negative = sum(value for value in values if value < 0)
    always_fits = positive < 2**63 and negative >= -(2**63)
    found = answer(db, "select sum(each())")
    if always_fits or not isinstance(found, Failure):
        assert found == (positive + negative,)
    else:
        assert found == Failure("overflow")
    assert answer(db, "select count(each()), min(each()), max(each())") == (
        (len(values), min(values), max(values)) if values else []
    )


@given(number=st.integers(-3, 3), limit=st.integers(-3, 3))
@settings(max_examples=60)
def test_a_condition_that_does_not_hold_shields_a_division(
    db: harken.Database, number: int, limit: int
) -> None:
    db.amosql(f"set first() = {number}; set second() = {limit}")
    holds = number != 0 and 10 / number > limit
    for condition in (
        "first() != 0 and 10 / first() > second()",
        "10 / first() > second() and first() != 0",
        "not (first() = 0) and not (10 / first() <= second())",
        "not (first() = 0 or 10 / first() <= second())",
        "first() != 0 and some(select 1 where 10 / first() > second())",
        "first() != 0 and count(select 1 where 10 / first() > second()) = 1",
    ):
        rows = db.amosql(f"select 1 where {condition}").rows
        assert bool(rows) == holds, condition
