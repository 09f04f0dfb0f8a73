"""Small programs of Datalog and the rows that they put out."""

from __future__ import annotations

from typing import Any

import pytest

import harken

EDGES = '.decl edge(x: symbol, y: symbol)  edge("a", "b"). edge("b", "c"). edge("c", "a").\n'
NUMBERS = ".decl n(x: number)  n(1). n(2). n(3). n(4).\n"
TYPES = ".type A <: number .type B <: number .type C <: number\n"
PAIRS = '.decl r(k: symbol, v: number)  r("a", 1). r("a", 2). r("b", 2). r("b", 2).\n'


def rows(program: str, name: str = "out") -> list[tuple[Any, ...]]:
    """The rows that a program derives for a relation."""
    with harken.connect() as db:
        return db.datalog(f"{program}\n.output {name}").rows


PROGRAMS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "facts are rows, each once": (".decl out(x: number) out(2). out(1). out(2).", [(1,), (2,)]),
    "a rule": (
        EDGES + '.decl out(x: symbol) out(x) :- edge(x, y), edge(y, "c").',
        [("a",)],
    ),
    "the same variable twice": (
        '.decl r(x: symbol, y: symbol) r("a", "a"). r("a", "b").'
        ".decl out(x: symbol) out(x) :- r(x, x).",
        [("a",)],
    ),
    "statements in any order": (
        "out(x) :- p(x). p(1). .decl p(x: number) .decl out(x: number)",
        [(1,)],
    ),
    "several relations declared at once": (
        ".decl p, q, out(x: number) p(1). q(2). out(x) :- p(x). out(x) :- q(x).",
        [(1,), (2,)],
    ),
    "several heads": (
        NUMBERS + ".decl out(x: number) .decl also(x: number) out(x), also(x + 1) :- n(x), x < 2."
        " out(x) :- also(x).",
        [(1,), (2,)],
    ),
    "several heads of the same relation": (
        ".decl p(x: number) .decl out(x: number) p(1). out(x), out(x + 5) :- p(x).",
        [(1,), (6,)],
    ),
    "addresses are numbers": (
        ".decl out(x: number) out(10.0.0.1). out(x) :- x = 255.255.255.255.",
        [(-1,), (167772161,)],
    ),
    "escapes": (
        r'.decl out(x: symbol) out("\a\b\f\n\r\t\v"). out("\"\\\'\q").',
        [("\a\b\f\n\r\t\v",), ("\"\\'\\q",)],
    ),
    "disjunction": (
        NUMBERS + ".decl out(x: number) out(x) :- n(x), (x = 1; x > 3).",
        [(1,), (4,)],
    ),
    "disjunction of whole bodies": (
        ".decl p, q, out(x: number) p(1). q(2). out(x) :- p(x); q(x), x != 1.",
        [(1,), (2,)],
    ),
    "a negated disjunction": (
        NUMBERS + ".decl out(x: number) out(x) :- n(x), !(x = 1; x > 3).",
        [(2,), (3,)],
    ),
    "negation": (
        EDGES + ".decl out(x: symbol, y: symbol) out(x, y) :- edge(x, _), edge(_, y), !edge(x, y),"
        " x != y.",
        [("a", "c"), ("b", "a"), ("c", "b")],
    ),
    "negation of a projection": (
        PAIRS + '.decl s(k: symbol) s(k) :- r(k, _). s("c"). .decl out(k: symbol)'
        " out(k) :- s(k), !r(k, _).",
        [("c",)],
    ),
    "negation of everything": (
        ".decl p, out(x: number) .decl q(x: number) q(1). out(x) :- q(x), !p(_).",
        [(1,)],
    ),
    "true and false": (
        NUMBERS + ".decl out(x: number) out(x) :- n(x), true, x < 3. out(x) :- n(x), false.",
        [(1,), (2,)],
    ),
    "transitive closure": (
        EDGES + ".decl out(x: symbol, y: symbol) out(x, y) :- edge(x, y)."
        " out(x, z) :- out(x, y), edge(y, z).",
        [(x, y) for x in "abc" for y in "abc"],
    ),
    "recursion that is not linear": (
        EDGES + ".decl out(x: symbol, y: symbol) out(x, y) :- edge(x, y)."
        " out(x, z) :- out(x, y), out(y, z).",
        [(x, y) for x in "abc" for y in "abc"],
    ),
    "mutual recursion": (
        ".decl even, odd, out(x: number) even(0). odd(x + 1) :- even(x), x < 10."
        " even(x + 1) :- odd(x), x < 10. out(x) :- even(x).",
        [(0,), (2,), (4,), (6,), (8,), (10,)],
    ),
    "same generation": (
        '.decl up(x: symbol, y: symbol) up("b", "a"). up("c", "a"). up("d", "b"). up("e", "c").'
        ".decl out(x: symbol, y: symbol) out(x, y) :- up(x, p), up(y, p)."
        " out(x, y) :- up(x, p), out(p, q), up(y, q).",
        [tuple(each) for each in ["bb", "bc", "cb", "cc", "dd", "de", "ed", "ee"]],
    ),
    "negation over recursion": (
        EDGES + '.decl node(x: symbol) node(x) :- edge(x, _). node("d").'
        ".decl path(x: symbol, y: symbol) path(x, y) :- edge(x, y). path(x, z) :- path(x, y),"
        ' edge(y, z). .decl out(x: symbol) out(x) :- node(x), !path("a", x).',
        [("d",)],
    ),
    "counting to a limit by hand": (
        ".decl out(i: number, f: number) out(1, 1). out(i + 1, f * (i + 1)) :- out(i, f), i < 5.",
        [(1, 1), (2, 2), (3, 6), (4, 24), (5, 120)],
    ),
    "fibonacci": (
        ".decl out(i: number, f: number) out(1, 1). out(2, 1)."
        " out(i + 1, f + g) :- out(i, f), out(i - 1, g), i < 10.",
        list(enumerate([1, 1, 2, 3, 5, 8, 13, 21, 34, 55], start=1)),
    ),
    "facts and rules of one relation": (
        ".decl p(x: number) p(2). .decl out(x: number) out(1). out(x) :- p(x).",
        [(1,), (2,)],
    ),
    "a relation without attributes": (
        NUMBERS + ".decl some() some() :- n(x), x > 3. .decl out(x: number) out(1) :- some()."
        " out(2) :- !some().",
        [(1,)],
    ),
    "a fact without attributes": (".decl out() out().", [()]),
    "arithmetic in a fact": (".decl out(x: number) out(2 * 3 + 1).", [(7,)]),
    "unsigned numbers": (
        ".decl out(x: unsigned) out(5). out(7u). out(x - 3) :- out(x), x = 7.",
        [(4,), (5,), (7,)],
    ),
    "floats": (
        ".decl p(x: float) p(1). p(0.5). .decl out(x: float) out(x * 2 + 0.25) :- p(x).",
        [(1.25,), (2.25,)],
    ),
    "numbers in other bases": (
        ".decl out(x: number) out(0x1f). out(0b101). out(-3).",
        [(-3,), (5,), (31,)],
    ),
    "escapes in symbols": ('.decl out(x: symbol) out("a\\tb\\"c\\\\").', [('a\tb"c\\',)]),
    "comments": (
        "// first\n.decl out(x: number) /* p(9). \n */ out(1). // out(2).",
        [(1,)],
    ),
    "a subtype where its base is wanted": (
        '.type City <: symbol .decl c(x: City) c("Oslo"). .decl out(x: symbol) out(x) :- c(x).',
        [("Oslo",)],
    ),
    "a variable of two unions is of what they share": (
        TYPES
        + """.type AB = A | B .type BC = B | C .decl ab(x: AB) .decl bc(x: BC)
        .decl out(x: B) ab(1). ab(2). bc(2). bc(3). out(x) :- ab(x), bc(x).""",
        [(2,)],
    ),
    "a union where a greater one is wanted": (
        TYPES
        + """.type AB = A | B .type ABC = C | AB .decl ab(x: AB) .decl out(x: ABC)
        ab(1). out(x) :- ab(x).""",
        [(1,)],
    ),
    "a subtype is not asked for by a negation": (
        TYPES
        + """.decl a(x: A) .decl b(x: B) .decl out(x: A)
        a(1). a(2). b(2). out(x) :- a(x), !b(x).""",
        [(1,)],
    ),
    "a cast gives a variable a value": (
        TYPES
        + """.decl n(x: number) .decl out(x: A) n(1). n(2).
        out(x) :- n(as(x, A)), x > 1. out(y) :- n(x), as(y, number) = x * 10.""",
        [(2,), (10,), (20,)],
    ),
    "what is computed is of any subtype": (
        TYPES
        + """.decl a(x: A) .decl out(x: B) a(1). a(2).
        out(x + 1) :- a(x). out(n) :- n = count : { a(_) }. out(y) :- a(x), y = x * 10.""",
        [(2,), (3,), (10,), (20,)],
    ),
    "a union of subtypes": (
        ".type City <: symbol .type Town <: symbol .type Place = City | Town"
        '.decl c(x: City) .decl t(x: Town) c("Oslo"). t("Moss").'
        ".decl out(x: Place) out(x) :- c(x); t(x).",
        [("Moss",), ("Oslo",)],
    ),
    "another name for a type": (
        ".type Id = number .decl p(x: Id) p(1). .decl out(x: number) out(x) :- p(x)."
        " .decl back(x: Id) back(x) :- out(x).",
        [(1,)],
    ),
    "types of years ago": (
        ".symbol_type Name .number_type Age .type Town .decl p(n: Name, a: Age, t: Town)"
        ' p("Ann", 30, "Moss"). .decl out(n: symbol, a: number, t: symbol)'
        " out(n, a, t) :- p(n, a, t).",
        [("Ann", 30, "Moss")],
    ),
    "a range": (
        ".decl out(x: number) out(x) :- x = range(1, 4).",
        [(1,), (2,), (3,)],
    ),
    "a range that goes down": (
        ".decl out(x: number) out(x) :- x = range(4, 1).",
        [(2,), (3,), (4,)],
    ),
    "a range in steps": (
        ".decl out(x: number) out(x) :- x = range(1, 8, 3); x = range(0, -5, -2); x = range(9, 9).",
        [(-4,), (-2,), (0,), (1,), (4,), (7,)],
    ),
    "a step of nothing": (
        ".decl out(x: number) out(x) :- x = range(1, 4, 0); x = range(5, 5, 0).",
        [(1,)],
    ),
    "a range of floats": (
        ".decl out(x: float) out(x) :- x = range(0.5, 2.0, 0.5).",
        [(0.5,), (1.0,), (1.5,)],
    ),
    "a range of large numbers": (
        ".decl out(x: number) out(x) :- x = range(0, 9007199254740993, 9007199254740992).",
        [(0,), (9007199254740992,)],
    ),
    "a range to the least of nothing": (
        ".decl p(x: number) .decl out(x: number) out(1). out(x) :- out(_), x = range(0, n),"
        " n = min y : { p(y) }.",
        [(1,)],
    ),
    "a range for each row": (
        ".decl p(x: number) p(1). p(3). .decl out(x: number, y: number)"
        " out(x, range(0, x)) :- p(x).",
        [(1, 0), (3, 0), (3, 1), (3, 2)],
    ),
    "a range in an aggregate": (
        ".decl p(x: number) p(3). p(5). .decl out(x: number, n: number)"
        " out(x, n) :- p(x), n = count : { i = range(0, x), i % 2 = 0 }.",
        [(3, 2), (5, 3)],
    ),
    "a range in a recursion": (
        ".decl out(x: number) out(1). out(y) :- out(x), y = range(x, 2 * x + 1), y < 6.",
        [(1,), (2,), (3,), (4,), (5,)],
    ),
    "a cast": (
        '.type City <: symbol .decl s(x: symbol) s("Oslo"). .decl out(x: City)'
        " out(y) :- s(x), y = as(x, City).",
        [("Oslo",)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program, expected = PROGRAMS[name]
    assert rows(program) == expected


EXPRESSIONS: dict[str, Any] = {
    "7 / 2": 3,
    "-7 / 2": -3,
    "7 % 3": 1,
    "-7 % 3": -1,
    "2 ^ 10": 1024,
    "2 ^ 3 ^ 2": 512,
    "-2 ^ 2": -4,
    "2 ^ -1": 0,
    "(1 + 2) * 3": 9,
    "1 + 2 * 3": 7,
    "10 - 3 - 2": 5,
    "6 band 3": 2,
    "6 bor 3": 7,
    "6 bxor 3": 5,
    "bnot 0": -1,
    "1 bshl 4": 16,
    "-16 bshr 2": -4,
    "-1 bshru 60": 15,
    "1 bshl 65": 2,
    "3 land 0": 0,
    "3 land 4": 1,
    "0 lor 4": 1,
    "3 lxor 4": 0,
    "lnot 3": 0,
    "1 + 1 band 3": 2,
    "min(3, 1, 2)": 1,
    "max(3, 1, 2)": 3,
    'strlen("hello")': 5,
    'strlen("blåbær")': 6,
    'to_number("42")': 42,
    'to_number("0x1f")': 31,
    'to_number("-0b101")': -5,
    "to_number(2.9)": 2,
    "to_number(3u)": 3,
    'ord("a") - ord("a")': 0,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_whole_numbers(expression: str) -> None:
    assert rows(f".decl out(x: number) out({expression}).") == [(EXPRESSIONS[expression],)]


TEXTS = {
    'cat("a", "b")': "ab",
    '"a" + "b" + "c"': "abc",
    'cat("a", "b", "c", "d")': "abcd",
    'substr("hello", 1, 3)': "ell",
    'substr("hello", 3, 10)': "lo",
    'substr("hello", -1, 3)': "",
    'substr("hello", 9, 3)': "",
    "to_string(12)": "12",
    "to_string(0.5)": "0.5",
    'min("b", "a")': "a",
    'to_string("x")': "x",
}


@pytest.mark.parametrize("expression", TEXTS)
def test_symbols(expression: str) -> None:
    assert rows(f".decl out(x: symbol) out({expression}).") == [(TEXTS[expression],)]


FLOATS = {
    "7.0 / 2": 3.5,
    "2 ^ 0.5 ^ 2": 2**0.25,
    "-1.5 + 1": -0.5,
    'to_float("2.5")': 2.5,
    "to_float(2)": 2.0,
    "max(1, 2.5)": 2.5,
}


@pytest.mark.parametrize("expression", FLOATS)
def test_floats(expression: str) -> None:
    assert rows(f".decl out(x: float) out({expression}).") == [(FLOATS[expression],)]


@pytest.mark.parametrize(
    ("test", "kept"),
    [
        ('match("a.*", x)', ["abc", "ax"]),
        ('!match("a.*", x)', ["bab"]),
        ('match("a", x)', []),
        ('match("[[:alpha:]]{2}", x)', ["ax"]),
        ('match("[^[:space:]c]*", x)', ["ax", "bab"]),
        ('match(cat(x, "("), x)', []),
        ('contains("b", x)', ["abc", "bab"]),
        ('!contains("b", x)', ["ax"]),
        ('x < "b"', ["abc", "ax"]),
        ('x >= "ax"', ["ax", "bab"]),
        ("strlen(x) = 2", ["ax"]),
        ('cat(x, "!") = "ax!"', ["ax"]),
        ('x = "ax"', ["ax"]),
        ('!x = "ax"', ["abc", "bab"]),
        ("(strlen(x) + 1) * 2 > 6", ["abc", "bab"]),
    ],
)
def test_constraints(test: str, kept: list[str]) -> None:
    program = '.decl s(x: symbol) s("abc"). s("ax"). s("bab"). .decl out(x: symbol)'
    assert rows(f"{program} out(x) :- s(x), {test}.") == [(each,) for each in kept]


AGGREGATES: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "a count of all rows": (".decl out(c: number) out(c) :- c = count : { r(_, _) }.", [(3,)]),
    "a count with an unnamed value": (
        ".decl out(c: number) out(c) :- c = count : { r(k, _) }.",
        [(3,)],
    ),
    "an aggregate of one atom without braces": (
        ".decl out(c: number) out(c) :- c = count : r(_, _).",
        [(3,)],
    ),
    "a variable from outside is the group": (
        ".decl out(k: symbol, c: number) out(k, c) :- r(k, _), c = count : { r(k, v) }.",
        [("a", 2), ("b", 1)],
    ),
    "every solution counts": (
        ".decl out(s: number) out(s) :- s = sum v : { r(_, v) }.",
        [(5,)],
    ),
    "sum of an expression": (
        ".decl out(s: number) out(s) :- s = sum v * v + 1 : { r(_, v) }.",
        [(12,)],
    ),
    "min, max and mean": (
        ".decl out(a: number, b: number, c: float) out(a, b, c) :- a = min v : { r(_, v) },"
        " b = max v : { r(_, v) }, c = mean v : { r(_, v) }.",
        [(1, 2, 5 / 3)],
    ),
    "count and sum of nothing are 0": (
        '.decl out(a: number, b: number) out(a, b) :- a = count : { r("z", _) },'
        ' b = sum v : { r("z", v) }.',
        [(0, 0)],
    ),
    "min of nothing fails": (
        '.decl out(a: number) out(a) :- a = min v : { r("z", v) }.',
        [],
    ),
    "mean of nothing fails": (
        '.decl out(a: float) out(a) :- a = mean v : { r("z", v) }.',
        [],
    ),
    "an aggregate in a comparison": (
        ".decl out(k: symbol) out(k) :- r(k, _), 1 < count : { r(k, _) }.",
        [("a",)],
    ),
    "an aggregate in arithmetic": (
        ".decl out(c: number) out(c) :- c = 1 + count : { r(_, _) } * 2.",
        [(7,)],
    ),
    "an aggregate in a head": (
        ".decl out(k: symbol, c: number) out(k, sum v : { r(k, v) }) :- r(k, _).",
        [("a", 3), ("b", 2)],
    ),
    "two aggregates with variables of the same name": (
        '.decl out(a: number, b: number) out(a, b) :- a = sum v : { r("a", v) },'
        ' b = sum v : { r("b", v) }.',
        [(3, 2)],
    ),
    "a condition on a variable from outside": (
        ".decl out(v: number, c: number) out(v, c) :- r(_, v), c = count : { r(_, w), w <= v }.",
        [(1, 1), (2, 3)],
    ),
    "a negation inside": (
        '.decl out(c: number) out(c) :- c = count : { r(k, v), !r("b", v) }.',
        [(1,)],
    ),
    "a join inside": (
        ".decl out(c: number) out(c) :- c = count : { r(k, v), r(l, v), k != l }.",
        [(2,)],
    ),
    "one inside another": (
        ".decl out(s: number) out(s) :- s = sum c : { r(k, _), c = count : { r(k, _) } }.",
        [(5,)],
    ),
    "one inside another with a variable of the outermost": (
        ".decl out(k: symbol, s: number) out(k, s) :- r(k, _),"
        " s = sum c : { r(l, w), c = count : { r(k, w) } }.",
        [("a", 3), ("b", 2)],
    ),
    "the result of one in another": (
        ".decl out(k: symbol) out(k) :- m = max v : { r(_, v) }, r(k, m).",
        [("a",), ("b",)],
    ),
    "min of symbols": (
        ".decl out(k: symbol) out(m) :- m = min k : { r(k, _) }.",
        [("a",)],
    ),
    "sum of a constant": (
        ".decl out(s: number) out(s) :- s = sum 2 : { r(_, _) }.",
        [(6,)],
    ),
    "sum of a variable from outside": (
        '.decl out(v: number, s: number) out(v, s) :- r("a", v), s = sum v : { r(_, _) }.',
        [(1, 3), (2, 6)],
    ),
    "a variable of the value is the aggregate's own": (
        '.decl out(v: number, s: number) out(v, s) :- r("a", v), s = sum v : { r(_, v) }.',
        [(1, 5), (2, 5)],
    ),
    "the result has the name of a variable inside": (
        ".decl out(v: number) out(v) :- v = max v : { r(_, v) }.",
        [(2,)],
    ),
    "the result has the name of a variable in the braces": (
        ".decl out(n: number) out(n) :- n = count : { r(_, n), n > 1 }.",
        [(2,)],
    ),
    "a name of its own inside another": (
        ".decl out(x: number, y: number) out(x, y) :- y = min v : { r(_, v) },"
        " x = max y : { r(_, y), y > min y : { r(_, y) } }.",
        [(2, 1)],
    ),
    "a witness": (
        ".decl out(k: symbol, m: number) out(k, m) :- m = max v : { r(k, v) }.",
        [("a", 2), ("b", 2)],
    ),
    "a witness of a result that nobody asks for": (
        ".decl out(k: symbol) out(k) :- _ = min v : { r(k, v) }.",
        [("a",)],
    ),
    "a witness in the value": (
        ".decl out(v: number, s: number) out(v, s) :- s = min 3 * v : { r(_, v) }.",
        [(1, 3)],
    ),
    "a witness for each of the rows around": (
        ".decl out(k: symbol, l: symbol) out(k, l) :- r(k, v), w = max x : { r(l, x), x < v }.",
        [("a", "a"), ("b", "a")],
    ),
    "witnesses of two": (
        ".decl out(k: symbol, l: symbol) out(k, l) :- min v : { r(k, v) } = min w : { r(l, w) }.",
        [("a", "a")],
    ),
    "a witness inside an aggregate": (
        ".decl out(k: symbol, n: number) out(k, n) :-"
        " n = count : { r(_, v), v > min w : { r(k, w) } }.",
        [("a", 2)],
    ),
    "an aggregate over an aggregate with a witness": (
        ".decl out(k: symbol, n: number) out(k, n) :-"
        " n = max c : { r(k, _), c = count : { r(k, _) } }.",
        [("a", 2)],
    ),
    "a value that is only equal to something": (
        ".decl out(s: number) out(s) :- s = sum x : { x = 7 }.",
        [(7,)],
    ),
    "an aggregate as an argument of an atom": (
        ".decl out(k: symbol) out(k) :- r(k, max v : { r(_, v) }).",
        [("a",), ("b",)],
    ),
    "an aggregate of a recursive relation": (
        ".decl up(x: number) up(0). up(x + 1) :- up(x), x < 4."
        " .decl out(c: number) out(c) :- c = count : { up(_) }.",
        [(5,)],
    ),
    "count of false": (".decl out(n: number) out(n) :- n = count : { false }.", [(0,)]),
    "sum over false": (
        ".decl out(n: number) out(n) :- n = sum v : { r(_, v), false }.",
        [(0,)],
    ),
    "max over what is not true": (
        ".decl out(n: number) out(n) :- n = max v : { r(_, v), !true }.",
        [],
    ),
    "a count over false for each row": (
        ".decl out(k: symbol) out(k) :- r(k, _), 0 = count : { r(k, _), (false; !true) }.",
        [("a",), ("b",)],
    ),
    "max in parentheses": (".decl out(m: number) out(m) :- m = max (v) : { r(_, v) }.", [(2,)]),
    "sum of floats": (
        ".decl f(x: float) f(0.5). f(1). .decl out(s: float) out(s) :- s = sum x : { f(x) }.",
        [(1.5,)],
    ),
}


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates(name: str) -> None:
    program, expected = AGGREGATES[name]
    assert rows(PAIRS + program) == expected
