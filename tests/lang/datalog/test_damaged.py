"""Whatever the text, the answer is a result or an error of ours that points into the text."""

from __future__ import annotations

import warnings
from random import Random

import pytest

import harken
from harken.lang.datalog.parser import is_closed
from harken.lang.datalog.tokens import tokens

GRAPH = """
.type Node <: symbol
.decl edge(x: Node, y: Node) brie      // from, to
.decl path(x: Node, y: Node)
edge("a", "b"). edge("b", "c"). edge("c\\n", "d").
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z), !edge(z, x).
.decl degree(x: Node, n: number, m: float)
degree(x, n, m) :- edge(x, _), n = count : { edge(x, _) }, m = mean k : { degree2(_, k) }.
.decl degree2(x: Node, n: number)
degree2(x, n), degree2(y, n) :- edge(x, y), n = 1 + sum strlen(z) : { edge(x, z), z != y }.
+edge("d", "e"). -edge("a", "b"). .commit
?- path(x, y), x < y; edge(x, y).
.printsize path
"""
NUMBERS = """
.decl n(x: number) n(1). n(-2). n(0x1f). n(2 ^ 3 - 4 band 7).
.decl u(x: unsigned, f: float) u(1u, 1.5). u(2, 3).
.decl r(x: number, s: symbol)
r(x * 2 % 7, cat(to_string(x), "!")) :- n(x), (x > 0; !(x = -2, n(x))), n(min(x, 8, 9)).
r(to_number(s), s) :- r(_, t), s = substr(t, 0, 1), match("[0-9]", s), !contains("!", s).
.limitsize r(n=50)
.pragma "legacy" "yes"
.monitor r
+n(5). .commit
?- m = max x : { r(x, _), m2 = count : { n(y), y < x }, m2 > 0 }.
.output u
"""


def damaged(text: str, random: Random) -> str:
    """A text with a few words or characters left out, doubled or exchanged."""
    for _ in range(random.randint(1, 3)):
        if random.random() < 0.3:
            place = random.randrange(len(text))
            text = (
                text[:place]
                + random.choice(["", ".", "(", '"', "!", "_", ":", "é"])
                + text[place + 1 :]
            )
            continue
        try:
            words = tokens(text)[:-1]
        except harken.HarkenError:
            continue
        one, other = random.choice(words).span, random.choice(words).span
        piece = text[one.start : one.end]
        match random.randrange(3):
            case 0:
                text = text[: one.start] + text[one.end :]
            case 1:
                text = text[: one.end] + " " + piece + text[one.end :]
            case 2:
                text = text[: other.start] + piece + " " + text[other.end :]
    return text


def failure(text: str) -> harken.HarkenError | None:
    """What is wrong with a program; anything but an error of ours goes through."""
    with harken.connect() as db, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            db.datalog(text)
        except harken.HarkenError as error:
            return error
        finally:
            assert db.sql("SELECT 1").rows == [(1,)]
    return None


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_program(seed: int) -> None:
    random = Random(seed)
    for _ in range(10):
        text = damaged(random.choice([GRAPH, NUMBERS]), random)
        is_closed(text)
        error = failure(text)
        if error is not None:
            assert error.code != "internal", text
            assert error.report("x.dl"), text
            assert error.span is not None, text
            assert 0 <= error.span.start <= len(error.text or ""), text


@pytest.mark.parametrize("text", [GRAPH, NUMBERS])
def test_the_programs_themselves_are_right(text: str) -> None:
    assert failure(text) is None


@pytest.mark.parametrize("text", [GRAPH, NUMBERS])
def test_a_program_that_breaks_off(text: str) -> None:
    for end in range(0, len(text), 7):
        error = failure(text[:end])
        assert error is None or error.span is not None
