"""What is wrong with a program of Datalog is said with a code, a place and what to do."""

from __future__ import annotations

import pytest

import harken

P = ".decl p(x: number)\n.decl q(x: number, y: symbol)\n"


def failure(program: str) -> harken.HarkenError:
    with harken.connect() as db:
        with pytest.raises(harken.HarkenError) as caught:
            db.datalog(program)
        assert db.sql("SELECT 1").rows == [(1,)]
        return caught.value


ERRORS: dict[str, tuple[str, str, str, str]] = {
    # what is wrong: the program, the code, the text that is marked, a part of the message
    "no dot at the end": (P + "p(1)", "syntax", "", "`.` is expected here"),
    "an unknown directive": (".ouput p", "syntax", ".ouput", "there is no directive .ouput"),
    "a text without end": ('.decl s(x: symbol) s("a', "syntax", '"', "does not end"),
    "a comment without end": ("/* p(1).", "syntax", "/*", "does not end"),
    "a strange character": (P + "p(1) ~ p(2).", "syntax", "~", "means nothing here"),
    "a bad number": (P + "p(1x).", "syntax", "1", "this is no number"),
    "a missing parenthesis": (P + "p(1.", "syntax", ".", "`)` is expected here"),
    "a body without a test": (P + "p(x) :- x.", "syntax", ".", "a comparison is expected"),
    "an unknown functor": (P + "p(f(1)).", "syntax", "f", "there is no functor f"),
    "a keyword as a name": (P + "p(cat) :- p(cat).", "syntax", "cat", "a word of the language"),
    "a rule behind +": (P + "+p(x) :- p(x).", "syntax", ":-", "`.` is expected here"),
    "an unknown relation": (P + "p(x) :- pp(x).", "unknown-relation", "pp(x)", "no relation pp"),
    "an unknown head": ("p(1).", "unknown-relation", "p(1)", "no relation p"),
    "an unknown input": (".input p", "unknown-relation", ".input p", "no relation p"),
    "an unknown output": (".output p", "unknown-relation", ".output p", "no relation p"),
    "an unknown monitor": (".monitor p", "unknown-relation", ".monitor p", "no relation p"),
    "an unknown query": ("?- p(x).", "unknown-relation", "p(x)", "no relation p"),
    "an unknown type": (".decl p(x: numbr)", "unknown-type", "x: numbr", "no type numbr"),
    "too few arguments": (P + "p(x) :- q(x).", "arity", "q(x)", "2 attributes, and 1 argument"),
    "too many arguments": (P + "p(1, 2).", "arity", "p(1, 2)", "1 attribute, and 2 arguments"),
    "a functor with too few": (
        P + 'q(1, cat("a")).',
        "arity",
        'cat("a")',
        "cat takes 2 or more values, and 1 is given",
    ),
    "a test with too few": (
        P + 'p(1) :- match("a").',
        "arity",
        'match("a")',
        "match takes 2 values, and 1 is given",
    ),
    "a functor with too many": (
        P + 'p(strlen("a", "b")).',
        "arity",
        'strlen("a", "b")',
        "strlen takes 1 value, and 2 are given",
    ),
    "an ungrounded head": (P + "p(x) :- q(_, y).", "unsafe", "x", "x is not grounded"),
    "an ungrounded negation": (P + "p(1) :- !p(x).", "unsafe", "x", "x is not grounded"),
    "an ungrounded comparison": (P + "p(x) :- p(x), y < x.", "unsafe", "y", "y is not grounded"),
    "an argument that is computed": (P + "p(x) :- p(x + 1).", "unsafe", "x", "x is not grounded"),
    "variables that ground each other": (
        P + "p(x) :- x = y, y = x.",
        "unsafe",
        "x",
        "x is not grounded",
    ),
    "a fact with a variable": (P + "p(x).", "unsafe", "x", "x is not grounded"),
    "a variable of an aggregate outside": (
        P + "p(y) :- n = count : { q(y, _) }, n > 0.",
        "unsafe",
        "y",
        "y is not grounded",
    ),
    "an aggregate that grounds nothing": (
        P + "p(n) :- n = sum v : { q(_, s) }.",
        "unsafe",
        "v",
        "v is not grounded",
    ),
    "an unnamed head": (P + "p(_) :- p(_).", "syntax", "_", "`_` has no value"),
    "an unnamed operand": (P + "p(x) :- p(x), x < _.", "syntax", "_", "`_` has no value"),
    "a symbol for a number": (P + 'p("a").', "type-mismatch", '"a"', 'symbol ("a") and number'),
    "a number for a symbol": (P + "q(1, 2).", "type-mismatch", "2", "2 is a number"),
    "a float for a number": (P + "p(1.5).", "type-mismatch", "1.5", "float (1.5) and number"),
    "an unsigned for a number": (P + "p(1u).", "type-mismatch", "1u", "unsigned"),
    "a number below zero for an unsigned": (
        ".decl u(x: unsigned) u(-1).",
        "type-mismatch",
        "-1",
        "-1 is below zero",
    ),
    "a variable of two kinds": (
        P + "p(x) :- q(_, x).",
        "type-mismatch",
        "x",
        "symbol (q.y) and number (p.x)",
    ),
    "a comparison of two kinds": (
        P + "p(x) :- q(x, y), x < y.",
        "type-mismatch",
        "x < y",
        "this is number (q.x) and symbol (q.y)",
    ),
    "symbols subtracted": (
        P + "q(1, y - y) :- q(_, y).",
        "type-mismatch",
        "y - y",
        "`-` cannot take symbol",
    ),
    "a rest of floats": (
        ".decl f(x: float) f(1.5 % 2).",
        "type-mismatch",
        "1.5 % 2",
        "`%` cannot take float",
    ),
    "a sum of symbols": (
        P + "q(1, s) :- s = sum y : { q(_, y) }.",
        "type-mismatch",
        "sum y : { q(_, y) }",
        "`sum` cannot take symbol",
    ),
    "subtypes that do not meet": (
        ".type A <: number .type B <: number .decl a(x: A) .decl b(x: B) .decl c(x: number)"
        " c(x) :- a(x), b(x).",
        "type-mismatch",
        "x",
        "x is of type A, which is no subtype of B",
    ),
    "an address that is none": (
        ".decl n(x: number) n(1.2.3.256).",
        "syntax",
        "1.2.3.256",
        "1.2.3.256 is no address",
    ),
    "a base type where a subtype is wanted": (
        ".type A <: number .decl a(x: A) .decl n(x: number) a(x) :- n(x).",
        "type-mismatch",
        "x",
        "x is of type number, which is no subtype of A",
    ),
    "a base type where a subtype is wanted, by an equal sign": (
        ".type A <: number .decl a(x: A) .decl n(x: number) a(x) :- n(y), x = y.",
        "type-mismatch",
        "x",
        "x is of type number, which is no subtype of A",
    ),
    "subtypes that are compared": (
        ".type A <: number .type B <: number .decl a(x: A) .decl b(x: B) .decl c(x: A)"
        " c(x) :- a(x), b(y), x < y.",
        "type-mismatch",
        "x < y",
        "x is of type A, which is no subtype of B",
    ),
    "the greatest of a base type where a subtype is wanted": (
        ".type A <: number .decl a(x: A) .decl n(x: number) a(m) :- m = max x : { n(x) }.",
        "type-mismatch",
        "m",
        "m is of type number, which is no subtype of A",
    ),
    "a cast to a base type where a subtype is wanted": (
        ".type A <: number .decl a(x: A) .decl b(x: A) a(as(x, number)) :- b(x).",
        "type-mismatch",
        "as(x, number)",
        "as(..., number) is of type number, which is no subtype of A",
    ),
    "a union of two kinds": (
        ".type A = number | symbol",
        "type-mismatch",
        ".type A = number | symbol",
        "would hold number and symbol",
    ),
    "a type that is its own base": (".type A <: A", "syntax", ".type A <: A", "its own base"),
    "a type declared twice": (
        ".type A <: number .type A <: symbol",
        "exists",
        ".type A <: symbol",
        "already a type A",
    ),
    "a relation declared twice": (
        ".decl p(x: number) .decl p(x: symbol)",
        "exists",
        ".decl p(x: symbol)",
        "already a relation p",
    ),
    "a relation declared twice in the same way": (
        ".decl p(x: number) p(1). .decl p(x: number)",
        "exists",
        ".decl p(x: number)",
        "already a relation p",
    ),
    "two attributes of one name": (".decl p(x: number, x: number)", "exists", "x", "called x"),
    "a number too large": (
        P + "p(9223372036854775808).",
        "overflow",
        "9223372036854775808",
        "does not fit in 64 bits",
    ),
    "an overflow in a fact": (P + "p(9223372036854775807 + 1).", "overflow", "", "64 bits"),
    "an overflow in a rule": (
        P + "p(9223372036854775807). .decl r(x: number) r(x * 2) :- p(x). .output r",
        "overflow",
        ".output r",
        "64 bits",
    ),
    "a shift out of the left": (P + "p(1 bshl 63).", "overflow", "", "64 bits"),
    "a power too large": (P + "p(10 ^ 19).", "overflow", "", "64 bits"),
    "an unsigned below zero": (".decl u(x: unsigned) u(1 - 2).", "overflow", "", "below zero"),
    "a division by zero": (P + "p(1 / 0).", "division-by-zero", "", "division by zero"),
    "a text that is no number": (P + 'p(to_number("x")).', "bad-value", "", "is not an integer"),
    "a bad pattern": (P + 'p(1) :- match("(", "a").', "bad-value", '"("', "no pattern"),
    "a fact of several rows": (P + "+p(range(1, 3)).", "syntax", "p(range(1, 3))", "2 rows"),
    "a fact of no row": (P + "+p(min x : { p(x) }).", "syntax", "", "0 rows"),
    "a range that is too long": (
        P + "p(x) :- x = range(0, 1000000000). .output p",
        "too-complex",
        ".output p",
        "too many values",
    ),
    "a range of symbols": (
        P + 'q(1, x) :- x = range("a", "b").',
        "type-mismatch",
        'range("a", "b")',
        "`range` cannot take symbol",
    ),
    "negation of oneself": (
        P + "p(x) :- q(x, _), !p(x).",
        "not-stratified",
        "p(x)",
        "p → !p",
    ),
    "negation in a circle": (
        ".decl a, b, c(x: number) a(x) :- b(x). b(x) :- c(x), !a(x). c(x) :- a(x).",
        "not-stratified",
        "a(x)",
        "a → b → !a",
    ),
    "an aggregate of oneself": (
        P + "p(c) :- c = count : { p(_) }.",
        "not-stratified",
        "count : { p(_) }",
        "p → !p",
    ),
    "a projection of oneself negated": (
        P + "q(x, y) :- q(x, y), !q(_, y).",
        "not-stratified",
        "q(_, y)",
        "q → !q",
    ),
    "a recursion without end": (
        P + "p(1). p(x + 1) :- p(x). .output p",
        "no-fixpoint",
        ".output p",
        "did not settle",
    ),
    "a disjunction too large": (
        P + "p(1) :- " + ", ".join(["(p(1); p(2))"] * 9) + ".",
        "too-complex",
        "",
        "512 alternatives",
    ),
    "a limit without a number": (P + ".limitsize p", "syntax", ".limitsize p", "takes a number n"),
    "a change of something derived in SQL": (
        P + "+v(1).",
        "unknown-relation",
        "v(1)",
        "no relation v",
    ),
    "a query whose alternatives are of two kinds": (
        P + "?- p(x); q(_, x).",
        "type-mismatch",
        "p(x); q(_, x)",
        "x is number in one alternative and symbol in another",
    ),
    "a query whose alternatives differ": (P + "?- p(x); q(y, _).", "unsafe", "", "every alternat"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    program, code, marked, message = ERRORS[name]
    error = failure(program)
    assert (error.code, error.text) == (code, program)
    assert message in error.message
    assert error.span is not None
    if marked:
        assert program[error.span.start : error.span.end] == marked


OUTSIDE = {
    "a record": ".decl p(x: number) p([1, 2]).",
    "records": ".type R = [x: number]",
    "nil": ".decl p(x: number) p(nil).",
    "algebraic data types": ".type T = Leaf {} | Node {x: number}",
    "a branch": ".decl p(x: number) p($Leaf()).",
    "eqrel": ".decl p(x: number, y: number) eqrel",
    "choice-domain": ".decl p(x: number) choice-domain x",
    "subsumption": ".decl p(x: number) p(x) <= p(y) :- x < y.",
    "user-defined functors": ".functor f(x: number): number",
    "a user-defined functor": ".decl p(x: number) p(@f(1)).",
    "lattices": ".lattice L<> { }",
    "the preprocessor": "#define N 1",
    "including": '.include "x.dl"',
    "a disjunction in an aggregate": (".decl p(x: number) p(c) :- c = count : { p(1); p(2) }."),
    "btree_max": ".decl p(x: number) btree_max",
    "autoinc": ".decl p(x: number) p(autoinc()).",
    "annotations": "@[doc = 1] .decl p(x: number)",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_outside_the_subset_is_named(name: str) -> None:
    error = failure(OUTSIDE[name])
    assert error.code == "unsupported"
    assert name in error.message
    assert error.span is not None


HINTS = {
    "the nearest relation": (".decl path(x: number) paht(x) :- path(x).", "did you mean path?"),
    "the declared attributes": (P + "q(1).", "it is q(x, y)"),
    "the nearest directive": (".ouput p", "did you mean .output?"),
    "the nearest type": (".decl p(x: numbr)", "did you mean number?"),
    "how to declare": ("zebra(1).", "declare it: .decl zebra(...)"),
    "how to convert": (P + "p(x) :- q(_, x).", "to_number"),
    "a quoted number": (P + "q(1, 2).", 'write "2"'),
}


@pytest.mark.parametrize("name", HINTS)
def test_hint(name: str) -> None:
    program, hint = HINTS[name]
    assert hint in str(failure(program).hint)


def test_a_report_shows_the_line() -> None:
    error = failure(P + "p(x) :-\n  q(x, _),\n  !pp(x).")
    assert error.report("prog.dl") == (
        "prog.dl:5:4: [unknown-relation] there is no relation pp\n"
        "    !pp(x).\n"
        "     ^^^^^\n"
        "hint: did you mean p?"
    )


def test_nothing_of_a_text_that_fails_is_left() -> None:
    with harken.connect() as db:
        with pytest.raises(harken.HarkenError):
            db.datalog(".decl p(x: number) p(1). +p(2). ?- p(x), y < 1.")
        with pytest.raises(harken.HarkenError) as caught:
            db.datalog("?- p(x).")
        assert caught.value.code == "unknown-relation"


def test_what_was_committed_stays() -> None:
    with harken.connect() as db:
        with pytest.raises(harken.HarkenError):
            db.datalog(".decl p(x: number) p(1). .commit +p(2). ?- q(x).")
        assert db.datalog("?- p(x).").rows == [(1,)]


@pytest.mark.parametrize("word", ["inline", "brie", "btree", "magic", "no_magic", "btree_delete"])
def test_a_qualifier_is_ignored_with_a_warning(word: str) -> None:
    with harken.connect() as db, pytest.warns(UserWarning, match=f"1:20: `{word}` has no effect"):
        assert db.datalog(f".decl p(x: number) {word}\np(1).\n?- p(x).").rows == [(1,)]


@pytest.mark.parametrize("line", ['.pragma "legacy"', '.pragma "jobs" "4"', ".plan 0:(1,2)"])
def test_advice_to_the_compiler_is_ignored_with_a_warning(line: str) -> None:
    with harken.connect() as db, pytest.warns(UserWarning, match="has no effect"):
        db.datalog(f".decl p(x: number)\np(x) :- p(x).\n{line}\n")
