"""What people type who come from Prolog or another Datalog, and what they are told."""

from __future__ import annotations

import pytest

import harken


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("p(x) <- q(x).", "head :- body"),
        ("p(x) := q(x).", "head :- body"),
        ("p(x) if q(x).", "head :- body"),
        ("% a comment", "//"),
        ("p(x) :- q(x) and r(x).", "and is a comma"),
        ('p(x) :- q(x), x <> "a".', "!="),
        ('p(x) :- q(x), x == "a".', "equal is written ="),
        ("p(x)?", "?- edge"),
        ("q('a').", "double quotes"),
        (".decl t(x: int)", "did you mean number?"),
        (".decl t(x: string)", "did you mean symbol?"),
    ],
)
def test_a_habit_is_answered(text: str, hint: str) -> None:
    with harken.connect() as db:
        db.datalog(".decl p(x: symbol) .decl q(x: symbol) .decl r(x: symbol)")
        with pytest.raises(harken.HarkenError) as caught:
            db.datalog(text)
        assert hint in (caught.value.hint or "")
