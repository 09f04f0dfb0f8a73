"""A pattern that would take all memory or time is refused before it is compiled."""

from __future__ import annotations

import pytest

import harken
from harken.errors import HarkenError
from tests.harness.counting import counted

LARGE = [
    "SELECT 'x' RLIKE '(((a{100}){100}){100}){100}' AS m",
    "SELECT 'x' RLIKE 'a{1000000}' AS m",
    "SELECT 'x' RLIKE '(?:a{5000,}){5000,}' AS m",
    "SELECT 'x' RLIKE '(a{99999999999999999999})' AS m",
    "SELECT 'x' RLIKE repeat('x?', 20000) AS m",
    "SELECT 'x' RLIKE repeat('(?:a|b)', 20000) AS m",
    "SELECT 'x' RLIKE concat('[', repeat('a', 200000), ']') AS m",
    "SELECT regexp_replace('x', '((a{1000}){1000})', '') AS m",
    "SELECT regexp_extract('x', '((a{1000}){1000})', 1) AS m",
    "SELECT regexp_count('x', '((a{1000}){1000})') AS m",
    "SELECT regexp_substr('x', '((a{1000}){1000})') AS m",
    "SELECT regexp_instr('x', '((a{1000}){1000})') AS m",
    "SELECT split_part('x', 'y', 1), 'x' RLIKE '((a{1000}){1000})' AS m",
    f"SELECT 'x' RLIKE '{'(' * 50}a{')+' * 50}' AS m",
    f"SELECT 'x' RLIKE '{'(' * 50}a{'){1,2}' * 50}' AS m",
    f"SELECT 'x' RLIKE '{'(' * 400}a{')' * 400}' AS m",
    "SELECT 'x' LIKE repeat('%a', 30000) AS m",
    "SELECT to_date('x', repeat('[y]', 20000)) AS m",
    "SELECT date_format(DATE '2020-01-01', repeat('y ', 20000)) AS m",
    f"SELECT to_date('x', '{'[' * 900}y') AS m",
]


MOST_LINES = 60_000
"""Lines of Python that run until a pattern is refused. It takes a few thousand, and up to 30 for
each character of a format."""


@pytest.mark.parametrize("statement", LARGE)
def test_a_pattern_that_is_too_large_is_refused_at_once(statement: str) -> None:
    with harken.connect() as db:
        found: list[HarkenError] = []

        def refuse() -> None:
            with pytest.raises(HarkenError) as caught:
                db.sql(statement)
            found.append(caught.value)

        spent = counted(db, refuse)
        assert found[0].code == "too-complex"
        assert len(found[0].message) < 300
        assert spent.lines < MOST_LINES, spent.places.most_common(5)
        assert db.sql("SELECT 1 AS a").rows == [(1,)]


def test_datalog_refuses_a_large_pattern() -> None:
    program = '.decl s(x: symbol)\ns(x) :- x = "a", match("(a{1000}){1000}", x).\n?- s(x).\n'
    with harken.connect() as db:
        with pytest.raises(HarkenError) as caught:
            db.datalog(program)
        assert caught.value.code == "too-complex"


def test_patterns_that_only_may_repeat_are_kept() -> None:
    with harken.connect() as db:
        statement = (
            "SELECT 'ab' RLIKE '^.{0,65535}$' AS a, 'ab' RLIKE '(a*b{0,9999}){0,9999}' AS b, "
            "'{9999}' RLIKE '\\\\Q{9999}\\\\E' AS c, '9' RLIKE '[{9999}]{1}' AS d"
        )
        assert db.sql(statement).rows == [(True, True, True, True)]


def test_a_format_of_dates_takes_bounded_time() -> None:
    """It had been matched by Python's `re`, where optional parts take exponential time."""
    text, parts = "a" * 40 + "bb", "repeat('[''a'']', 40)"
    with harken.connect() as db, pytest.raises(HarkenError) as caught:
        db.sql(f"SELECT to_date('{text}', concat({parts}, '''b''')) AS d")
    assert caught.value.code in ("timeout", "bad-value")
