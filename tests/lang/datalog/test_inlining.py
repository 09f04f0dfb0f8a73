"""Inline relations that stand for a condition are written out where they are used."""

from __future__ import annotations

import warnings
from random import Random

import pytest

import harken
from harken.statements.datalog.session import DatalogWarning

INLINE = """
.decl a(x: number)  .decl e(x: number, y: number)
.decl less(x: number, y: number) inline        less(x, y) :- x < y.
.decl near(x: number, y: number) inline        near(x, y) :- less(x, y), y - x < 3.  near(x, x).
.decl after(x: number, y: number) inline       after(x, y) :- x = y + 1.
.decl tagged(x: number, n: number, t: symbol) inline   tagged(x, 1, "one") :- x > 1.
.decl between(v: number, x: number) inline     between(v, x) :- x - 2 < v, v < x + 2.
.decl linked(x: number, y: number) inline      linked(x, y) :- e(x, z), less(z, y).
"""

MEANINGS = {
    # with the inline relations: by hand
    "p(x, y) :- a(x), a(y), less(x, y).": "p(x, y) :- a(x), a(y), x < y.",
    "p(x, y) :- a(x), a(y), !less(x, y).": "p(x, y) :- a(x), a(y), x >= y.",
    "p(x, y) :- a(x), a(y), near(x, y).": "p(x, y) :- a(x), a(y), (x < y, y - x < 3; x = y).",
    "p(x, y) :- a(x), a(y), !near(x, y).": "p(x, y) :- a(x), a(y), (x >= y; y - x >= 3), x != y.",
    "p(x, y) :- a(y), after(x, y).": "p(y + 1, y) :- a(y).",
    "p(x, 0) :- after(x, 4), a(0).": "p(5, 0) :- a(0).",
    "p(x, y) :- a(x), a(y), tagged(x, y, _).": "p(x, 1) :- a(x), x > 1, a(1).",
    "p(x, y) :- a(y), linked(x, y).": "p(x, y) :- a(y), e(x, z), z < y.",
    "p(z, y) :- a(y), a(z), linked(z, y).": "p(x, y) :- a(y), a(x), e(x, z), z < y.",
    "p(x, n) :- a(x), n = count : { a(y), less(y, x) }.": (
        "p(x, n) :- a(x), n = count : { a(y), y < x }."
    ),
    "p(x, 0) :- a(x), between(range(0, 9), x).": (
        "p(x, 0) :- a(x), v = range(0, 9), x - 2 < v, v < x + 2."
    ),
    "p(x, 0) :- a(x), !between(range(0, 9), x).": (
        "p(x, 0) :- a(x), v = range(0, 9), (x - 2 >= v; v >= x + 2)."
    ),
    "p(x, 0) :- a(x), between(max y : { a(y) }, x).": (
        "p(x, 0) :- a(x), v = max y : { a(y) }, x - 2 < v, v < x + 2."
    ),
    "p(x, y) :- e(x, y), near(x, y). p(x, z) :- p(x, y), e(y, z), !near(x, z).": (
        "p(x, y) :- e(x, y), (x < y, y - x < 3; x = y)."
        " p(x, z) :- p(x, y), e(y, z), (x >= z; z - x >= 3), x != z."
    ),
}


@pytest.mark.parametrize("rules", MEANINGS)
def test_what_is_written_out_means_what_the_rules_mean(rules: str) -> None:
    random = Random(rules)
    declared = ".decl p(x: number, y: number) "
    with harken.connect() as db, harken.connect() as plain:
        db.datalog(f"{INLINE} {declared} {rules}")
        plain.datalog(
            f".decl a(x: number) .decl e(x: number, y: number) {declared} {MEANINGS[rules]}"
        )
        told = db.monitor("p")
        copy: set[tuple[object, ...]] = set()
        for _ in range(12):
            x, y = random.randint(0, 5), random.randint(0, 5)
            script = f"{random.choice('++-')}a({x}). +e({x}, {y}). -e({y}, {x + 1})."
            for each in (db, plain):
                each.datalog(script)
            for change in told.changes():
                copy = (copy - set(change.minus)) | set(change.plus)
            assert copy == set(plain.datalog("?- p(x, y).").rows)


def test_they_stand_in_queries_and_components() -> None:
    with harken.connect() as db:
        rows = db.datalog(
            """
            .comp C { .decl low(x: number) inline  low(x) :- x < 3.
                      .decl r(x: number)  r(1). r(5). .decl s(x: number)  s(x) :- r(x), low(x). }
            .init c = C
            ?- c.s(x).
            """
        ).rows
        assert rows == [(1,)]
        text = ".decl low(x: number) inline low(x) :- x < 3. .decl r(x: number) r(1). r(5)."
        assert db.datalog(f"{text} ?- r(x), !low(x).").rows == [(5,)]


def test_a_query_is_answered_with_the_variables_that_were_written() -> None:
    with harken.connect() as db:
        found = db.datalog(f"{INLINE} a(1). e(1, 0). e(1, 2). ?- a(x), linked(x, 3).")
        assert (found.columns, found.rows) == (("x",), [(1,)])
        twice = """.decl twice(x: number, y: number) inline twice(x, y) :- z = x + 1, y = z + 1.
        ?- a(x), twice(x, y). ?- a(x), twice(x, _)."""
        first, second = db.datalog(twice)
        assert (first.columns, first.rows) == (("x", "y"), [(1, 3)])
        assert (second.columns, second.rows) == (("x",), [(1,)])


def test_what_has_rows_keeps_them() -> None:
    program = ".decl a(x: number) a(1). .decl b(x: number) inline b(x + 1) :- a(x). ?- b(x)."
    with harken.connect() as db:
        with pytest.warns(DatalogWarning, match="`inline` has no effect"):
            found = db.datalog(program)
        assert found.rows == [(2,)]
    with harken.connect() as db, warnings.catch_warnings():
        warnings.simplefilter("error")
        db.datalog(".decl b(x: number, y: number) inline b(x, y) :- x < y.")


ERRORS = {
    "nothing gives a value": (".decl q(x: number) q(x) :- less(x, 0).", "unsafe", "x"),
    "variables of its own": (
        ".decl q(x: number) q(x) :- a(x), !linked(x, 3).",
        "unsupported",
        "linked(x, 3)",
    ),
    "too many arguments": (".decl q(x: number) q(x) :- a(x), less(x).", "arity", "less(x)"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    rules, code, marked = ERRORS[name]
    with harken.connect() as db, pytest.raises(harken.HarkenError) as caught:
        db.datalog(INLINE + rules)
    error = caught.value
    assert error.code == code
    assert error.text is not None
    assert error.span is not None
    assert error.text[error.span.start : error.span.end] == marked
