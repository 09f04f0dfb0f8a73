"""Programs that are long, and relations that are large: what is evaluated stays in bounds."""

from __future__ import annotations

from random import Random

import pytest

import harken
from harken.lang.datalog.parser import parse

EDGES = ".decl edge(x: number, y: number) .decl path(x: number, y: number)\n"
LONG, SHORT = 450, 150


def ladder(length: int) -> str:
    """Relations that are each built on three below, in two ways: written out, that is endless."""
    steps = [
        f".decl r{i}(x: number, y: number) r{i}(x, y) :- r{i - 1}(x, y), x < {i + 5}."
        f" r{i}(x, z) :- r{i // 2}(x, y), r{i // 3}(y, z)."
        for i in range(1, length)
    ]
    return ".decl r0(x: number, y: number) r0(1, 2). r0(2, 3).\n" + "\n".join(steps)


def test_relations_that_are_built_on_each_other_are_computed_once() -> None:
    with harken.connect() as db:
        db.datalog(ladder(100))
        assert db.datalog("?- r99(x, y).").rows == [(1, 2), (1, 3), (2, 3)]
        assert db.sql("SELECT count(*) FROM r99").rows == [(3,)]


def test_a_long_program_can_be_monitored() -> None:
    with harken.connect() as db:
        db.datalog(ladder(20) + ".monitor r19")
        (change,) = db.datalog("+r0(3, 4).")
        assert change.rows == [(1, 4), (2, 4), (3, 4)]
        (change,) = db.datalog("-r0(1, 2).")
        assert change.lines() == ["-r19(1, 2)", "-r19(1, 3)", "-r19(1, 4)"]


def test_a_limited_recursion_can_be_monitored() -> None:
    with harken.connect() as db:
        db.datalog(
            ".decl first, up(x: number) up(x) :- first(x). up(x + 1) :- up(x)."
            " .limitsize up(n=3) .monitor up"
        )
        (change,) = db.datalog("+first(5).")
        assert change.rows == [(5,), (6,), (7,)]
        (change,) = db.datalog("-first(5). +first(6).")
        assert change.lines() == ["-up(5)", "+up(8)"]


@pytest.mark.parametrize(
    ("step", "length"),
    [
        pytest.param("path(x, z) :- path(x, y), edge(y, z).", LONG, id="left"),
        pytest.param("path(x, z) :- edge(x, y), path(y, z).", LONG, id="right"),
        pytest.param("path(x, z) :- path(x, y), path(y, z).", SHORT, id="both, short"),
        pytest.param(
            "path(x, z) :- path(x, y), path(y, z).", LONG, id="both", marks=pytest.mark.nightly
        ),
    ],
)
def test_a_closure_of_a_hundred_thousand_rows_adds_each_row_once(step: str, length: int) -> None:
    with harken.connect() as db:
        db.datalog(f"{EDGES} path(x, y) :- edge(x, y). {step}")
        db.load("edge", [(i, i + 1) for i in range(length)])
        before = db.internals.connection.rows_added
        rows = length * (length + 1) // 2
        assert db.datalog(".printsize path")[0].rows == [("path", rows)]
        assert db.internals.connection.rows_added - before == rows


def test_a_closure_from_one_source_looks_at_what_it_reaches() -> None:
    with harken.connect() as db:
        db.datalog(f"{EDGES} path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).")
        random = Random(1)
        edges = {(random.randrange(3000), random.randrange(3000)) for _ in range(6000)}
        db.load("edge", edges | {(7, i) for i in range(50)})
        before = db.internals.connection.rows_added
        rows = db.datalog("?- path(7, x).").rows
        assert len(rows) > 1000
        assert db.internals.connection.rows_added - before < 2 * len(rows)  # all paths: millions


def test_a_text_of_many_facts() -> None:
    facts = "\n".join(f'p({i}, "s{i}").' for i in range(5000))
    with harken.connect() as db:
        db.datalog(f".decl p(x: number, y: symbol)\n{facts}")
        assert db.datalog("?- n = count : { p(_, _) }.").rows == [(5000,)]


def test_deep_nesting_is_an_error_of_ours() -> None:
    with pytest.raises(harken.HarkenError) as caught:
        parse("p(" + "(" * 5000 + "1" + ")" * 5000 + ").")
    assert caught.value.code == "syntax"


def test_a_program_that_is_deeper_than_pythons_stack() -> None:
    chain = "\n".join(f".decl r{i}(x: number) r{i}(x + 1) :- r{i - 1}(x)." for i in range(1, 600))
    with harken.connect() as db:
        db.datalog(f".decl r0(x: number) r0(1).\n{chain}")
        assert db.datalog("?- r599(x).").rows == [(600,)]


def test_a_long_sum_is_an_error_of_ours() -> None:
    """It is read without recursion, but what is made of it is as deep as it is long."""
    with harken.connect() as db:
        with pytest.raises(harken.HarkenError) as caught:
            db.datalog(f".decl p(x: number) p({' + '.join(['1'] * 5000)}).")
        assert caught.value.code == "syntax"
        assert "nested too deeply" in caught.value.message
        assert db.datalog(f".decl p(x: number) p({' + '.join(['1'] * 50)}). ?- p(x).").rows == [
            (50,)
        ]


def test_tables_of_a_query_are_gone_after_it() -> None:
    with harken.connect() as db:
        db.datalog(f"{EDGES} path(x, y) :- edge(x, y). path(x, z) :- path(x, y), edge(y, z).")
        db.datalog("+edge(1, 2). ?- path(x, y). .output path .printsize edge")
        left = db.internals.connection.rows(
            "SELECT name FROM temp.sqlite_schema WHERE type = 'table'"
        )
        assert left == []


def game(cells: int) -> str:
    """Two players take turns to mark a cell; whoever has marked the first three is ahead."""
    before, after = ([f"{side}{i}" for i in range(cells)] for side in "bc")
    b, c = ", ".join(before), ", ".join(after)
    attributes, following = (", ".join(f"{x}: number" for x in side) for side in (before, after))
    moves = (
        f"move({', '.join([*before[:i], '0', *before[i + 1 :]])}, t, "
        f"{', '.join([*before[:i], 't', *before[i + 1 :]])}) :- "
        f"state({', '.join([*before[:i], '0', *before[i + 1 :]])}, t)."
        for i in range(cells)
    )
    return f"""
        .decl state({attributes}, turn: number)  .decl move({attributes}, turn: number, {following})
        .decl step({attributes}, turn: number, {following}, next: number)
        .decl leads({attributes}, turn: number, who: number)  .decl lost({attributes})
        .decl other(a: number, b: number)  other(1, 2).  other(2, 1).
        state({", ".join("0" * cells)}, 1).
        state({b}, t) :- step({", ".join("_" * (cells + 1))}, {b}, t).
        {" ".join(moves)}
        step({b}, t, {c}, u) :- state({b}, t), other(t, u), move({b}, t, {c}).
        leads({b}, t, w) :- state({b}, t), b0 = w, b1 = w, b2 = w, w > 0.
        leads({b}, t, w) :- step({b}, t, {c}, u), leads({c}, u, w).
        lost({b}) :- leads({b}, 2, 1), !leads({b}, 2, 2).
    """


@pytest.mark.timeout(60)
def test_rows_are_looked_up_by_all_columns_that_are_known() -> None:
    """Each of them has three values only: by one of them every third row would be found."""
    with harken.connect() as db:
        db.datalog(game(5))
        whole, _ = db.datalog(".output lost .output leads")
        assert db.datalog(".output lost").rows == whole.rows
        assert len(whole.rows) > 0
    with harken.connect() as db:
        db.datalog(game(9))
        assert len(db.datalog(".output lost .output step")) == 2
