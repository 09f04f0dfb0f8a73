"""Statements of one shape share one tree; filled with its constants, it is what `parse` gives."""

import datetime

import pytest

from harken.errors import Span, SyntaxFault
from harken.lang.amosql import statement_shapes
from harken.lang.amosql.parser import parse
from harken.lang.amosql.statement_shapes import Parsed, filled, reparse, split, statements
from harken.lang.amosql.syntax import (
    Call,
    ExpressionStatement,
    InterfaceVariable,
    Literal,
    Name,
    Update,
)


def only(text: str) -> Parsed:
    (parsed,) = statements(text)
    return parsed


def shape(text: str) -> str | None:
    return only(text).shape


# --- splitting -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        ["commit", "rollback"],
        ['print("a;b")', "print('c;\\'d')", "f(|2026-11-15|)"],
        ["commit /* a; b */", "/", "a || b || c"],
        ["begin a; begin b; end; end", "commit"],
        ["create function f(T) -> U as begin a; b; end", "commit"],
        ["if a then b; else begin c; d end", "commit"],
        ["if a then b; /* or */ else c; end if", "commit"],
        ["for each T x do begin a; end", "commit"],
        ["create rule r() as when p do begin a; b; end", "activate r() priority 3", "commit"],
        ["create function begin(begin end) -> end", "set end(:x) = begin(:y)", "commit"],
    ],
)
def test_scripts_are_cut_between_statements(pieces: list[str]) -> None:
    text = " ;\n".join(["", *pieces, ""])
    fragments = split(text)
    assert [fragment.text for fragment in fragments] == pieces
    assert [text[f.offset :][: len(f.text)] for f in fragments] == pieces


@pytest.mark.parametrize("rest", ['print("a; b', "print('a; b", "begin /* a; b"])
def test_what_is_never_closed_is_one_piece(rest: str) -> None:
    assert [fragment.text for fragment in split(f"commit; {rest}")] == ["commit", rest]


def test_a_begin_that_is_never_closed_ends_at_its_first_semicolon() -> None:
    assert [fragment.text for fragment in split("begin a; b")] == ["begin a", "b"]


# --- shapes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shape_of_it", "literals", "variables"),
    [
        ("set quantity(:a) = 5", "set quantity(:?) = ?i", (5,), ("a",)),
        ("set f(:a, :b) = :a", "set f(:?, :?) = :?", (), ("a", "b", "a")),
        ("f(1, 1.5, 'x')", "f(?i, ?r, ?s)", (1, 1.5, "x"), ()),
        ('f("\\u00e5;")', "f(?s)", ("å;",), ()),
        ("f(|2026-11-15|)", "f(?d)", (datetime.date(2026, 11, 15),), ()),
        (
            "f(|2026-11-15/08:30:00|)",
            "f(?t)",
            (datetime.datetime(2026, 11, 15, 8, 30, tzinfo=datetime.UTC),),
            (),
        ),
        ("f(true, False)", "f(true, False)", (), ()),
        ("item5(x1)", "item5(x1)", (), ()),
        ("f(-5, a -5, - 5)", "f(-?i, a -?i, - ?i)", (-5, 5, -5), ()),
        ("f(-(5), --5)", "f(-(?i), --?i)", (5, -5), ()),
        ("f(9223372036854775807)", "f(?i)", (2**63 - 1,), ()),
        ("f(#'g', 'g')", "f(#'g', ?s)", ("g",), ()),
        ('"a"||"b"|||2026-11-15|', "?s||?s||?d", ("a", "b", datetime.date(2026, 11, 15)), ()),
        ("select 1 /* 2 */ ,\n\t :x  ", "select ?i , :?", (1,), ("x",)),
        ("commit", "commit", (), ()),
        ("activate r(:x, 5)", "activate r(:?, ?i)", (5,), ("x",)),
        ("activate r(:x, 5)\n PRIORITY 3", "activate r(:?, ?i) PRIORITY 3", (5,), ("x",)),
        ("deactivate r(:x)", "deactivate r(:?)", (), ("x",)),
        ("f(priority(3), priority - 3)", "f(priority(?i), priority - ?i)", (3, 3), ()),
    ],
)
def test_constants_and_variables_are_cut_out(
    text: str, shape_of_it: str, literals: tuple[object, ...], variables: tuple[str, ...]
) -> None:
    for _ in ("learnt", "recalled"):
        parsed = only(text)
        assert parsed.shape == shape_of_it
        assert parsed.literals == literals
        assert [type(value) for value in parsed.literals] == [type(value) for value in literals]
        assert parsed.variables == variables
        assert (filled(parsed),) == parse(text)


def test_the_slots_of_a_tree() -> None:
    tree = Update(
        "set",
        Call("f", (InterfaceVariable("a", slot=0), InterfaceVariable("b", slot=1))),
        Call("g", (Literal(7, slot=0), Literal(True), Name("n"), Literal("x", slot=1))),
    )
    assert only('set f(:a, :b) = g(7, true, n, "x")').statement == tree


def test_one_shape_has_one_tree() -> None:
    first, second, other = statements("set f(:a) = 1; set  f(:b)  = -2/* ! */; set f(:a) = 2;")
    assert first.statement is other.statement
    assert first.shape is other.shape
    assert second.statement is not first.statement
    assert statements("set f(:z) = 99")[0].statement is first.statement


def test_a_sign_learnt_from_zero_still_is_a_sign() -> None:
    assert [p.literals for p in statements("g(-0); g(-7); g(-7.5); g(-0.0)")] == [
        (0,),
        (-7,),
        (-7.5,),
        (-0.0,),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "create type item",
        "create item instances :x",
        "create rule r() as when p(:x) do q(1)",
        "delete rule r",
        "DELETE /* the */ Rule r",
        "activate r(:x) priority /* high */ 5",
        "begin commit; end",
        "if a then commit",
        "for each item i do print(i)",
        "f(-9223372036854775808)",
    ],
)
def test_statements_without_a_shape(text: str) -> None:
    parsed = only(text)
    assert parsed == Parsed(parse(text)[0], text, 0)
    assert parsed.shape is None


def test_each_priority_has_a_tree_of_its_own() -> None:
    text = "activate r(:a) priority 1; activate r(:b) priority 2; activate r(:c) priority 1"
    first, second, third = statements(text)
    assert first.statement is third.statement
    assert (filled(first), filled(second), filled(third)) == parse(text)


def test_a_number_beyond_64_bits_is_no_reason_to_forget_its_sign() -> None:
    statements("h(-5)")
    assert filled(only("h(-9223372036854775808)")) == parse("h(-9223372036854775808)")[0]
    with pytest.raises(SyntaxFault) as caught:
        statements("h(-5); h(-9223372036854775809)")
    assert (caught.value.code, caught.value.span) == ("overflow", Span(10, 29))


def test_what_stands_for_a_constant_cannot_be_written() -> None:
    statements("set f(:x) = 5")
    for forged in ("set f(:?) = 5", "set f(:x) = ?i", "set f(:?) = ?i"):
        with pytest.raises(SyntaxFault, match="cannot stand here"):
            statements(forged)


# --- places --------------------------------------------------------------------------------


def test_reparsing_gives_the_true_spans() -> None:
    text = "k(1);   k(23456) ; k( 7 )"
    second = statements(text)[1]
    tree = reparse(second)
    assert isinstance(tree, ExpressionStatement)
    assert isinstance(tree.expression, Call)
    (argument,) = tree.expression.arguments
    assert argument == Literal(23456)
    assert text[argument.span.start : argument.span.end] == "23456"
    assert text[second.offset :].startswith(second.text)


def test_statements_without_a_shape_have_true_spans() -> None:
    text = "commit; create type item;  begin a; end"
    found = statements(text)[1:]
    assert [p.statement.span for p in found] == [Span(8, 24), Span(27, 39)]
    assert [p.text for p in found] == ["create type item", "begin a; end"]


@pytest.mark.parametrize(
    "text",
    [
        "set f(:x) = 5; set f(:x) = ; commit",
        "commit; set f(:x) = 5 set f(:y) = 6",
        'commit; print("a; commit',
        "commit; f(|2026-02-30|); commit",
        "commit; begin a; b",
        "commit; a; else b",
        "set f(:x) = 5; )",
        "activate r(:x) priority 5; activate r(:x) priority 6",
    ],
)
def test_faults_are_those_of_the_parser(text: str) -> None:
    with pytest.raises(SyntaxFault) as expected:
        parse(text)
    with pytest.raises(SyntaxFault) as found:
        statements(text)
    assert vars(found.value) == vars(expected.value)


def test_where_a_cut_is_wrong_the_parser_decides() -> None:
    """`begin (a)` looks like a call of `begin`, and is a block all the same."""
    text = "k(1); begin (a); (b); end; k(2)"
    assert [filled(parsed) for parsed in statements(text)] == list(parse(text))


# --- keeping -------------------------------------------------------------------------------


def test_the_number_of_cached_shapes_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_shapes, "_SHAPES_KEPT", 3)
    monkeypatch.setattr(statement_shapes, "known_shapes", type(statement_shapes.known_shapes)())
    statements("a(1); b(1); c(1)")
    statements("a(2)")
    statements("d(1)")
    assert list(statement_shapes.known_shapes) == ["c(?i)", "a(?i)", "d(?i)"]


def test_a_large_script_is_not_parsed_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    monkeypatch.setattr(statement_shapes, "known_shapes", type(statement_shapes.known_shapes)())
    monkeypatch.setattr(statement_shapes, "parse", lambda text: parsed.append(text) or parse(text))
    script = "".join(f"set quantity(:item{n}) = {n};\n" for n in range(5000))
    assert len(statements(script)) == 5000
    assert parsed == ["set quantity(:item0) = 0;"]
